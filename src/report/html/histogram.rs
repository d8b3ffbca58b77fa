//! How long submissions take: side A upwards, side B downwards from one axis of durations, with the edges of the buckets.
//!
//! Twice: how many submissions are of a duration, and how much GPU time they take together. The bins are those of the JSON.

use super::axis::{labels, level, picture, rect, upright};
use super::markup::Html;
use crate::compare::{HistogramCell, HistogramRow, Over};
use crate::model::Nanos;
use crate::report::sections::View;
use crate::report::sheet::{number, quantity};

/// Height of one side's bars.
const SIDE: f64 = 84.0;
/// Where the bars of side A begin, below the edges' names.
const TOP: f64 = 20.0;

/// Both pictures; nothing without submissions, or where a baseline was stored without durations on both sides.
pub(super) fn histogram(html: &mut Html, view: &View<'_>) {
    let rows = &view.comparison.histogram;
    if rows.iter().all(|row| row.a.is_none() && row.b.is_none()) {
        return;
    }
    html.element("figure", &[("class", "histogram")], |html| {
        html.element("div", &[("class", "pair")], |html| {
            panel(html, view, &view.per("submissions"), |cell| cell.submissions);
            panel(html, view, &view.us_per(), |cell| cell.total_us);
        });
        html.leaf("figcaption", &[], &caption(view));
    });
}

fn caption(view: &View<'_>) -> String {
    let sides = match view.sides.as_slice() {
        [(a, _), (b, _)] => format!("{a} upwards, {b} downwards"),
        _ => view.name_a().to_owned(),
    };
    let missing = view
        .comparison
        .histogram
        .first()
        .is_some_and(|row| row.a.is_none() || (view.two_sided() && row.b.is_none()));
    format!(
        "Submissions by their duration, {sides}: how many there are, and the GPU time that they take together{}. Four bins to \
         each doubling of the duration; dashed lines are the edges of the duration buckets.{}",
        if view.repeated() {
            ", medians over the trials"
        } else {
            ""
        },
        if missing {
            " The stored side has no durations."
        } else {
            ""
        }
    )
}

fn panel(html: &mut Html, view: &View<'_>, title: &str, of: fn(&HistogramCell) -> Over) {
    let rows = &view.comparison.histogram;
    let value = |cell: &Option<HistogramCell>| cell.as_ref().map(|cell| of(cell).median);
    let all = rows.iter().flat_map(|row| [value(&row.a), value(&row.b)]).flatten();
    let highest = all.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let two = view.two_sided();
    let bottom = TOP + if two { 2.0 * SIDE } else { SIDE };
    html.element("div", &[], |html| {
        html.element("p", &[("class", "panel")], |html| {
            html.text(title);
            html.text(" ");
            html.leaf("small", &[], &format!("highest bin {}", quantity(highest)));
        });
        picture(html, "bins", bottom + 22.0, |html| {
            let axis = Axis { rows };
            let places = |durations: &[u64]| -> Vec<(f64, String)> {
                let place = |ns: &u64| Some((axis.place(*ns)?, plain(*ns)));
                durations.iter().filter_map(place).collect()
            };
            let edges = places(&view.comparison.settings.buckets.edges);
            for (place, _) in &edges {
                upright(html, "edge", *place, TOP - 4.0, bottom);
            }
            labels(html, "edge", TOP - 8.0, edges);
            let zero = TOP + SIDE;
            let width = 100.0 / rows.len().max(1) as f64;
            for (at, row) in rows.iter().enumerate() {
                let x = (at as f64 * width, width * 0.94);
                let height = |value: f64| if highest > 0.0 { SIDE * value / highest } else { 0.0 };
                let about = about(row, view, title, value);
                if let Some(up) = value(&row.a).map(height).filter(|up| *up > 0.0) {
                    rect(html, "a", x, (zero - up.max(0.5), up.max(0.5)), &about);
                }
                if let Some(down) = value(&row.b).map(height).filter(|down| *down > 0.0) {
                    rect(html, "b", x, (zero, down.max(0.5)), &about);
                }
            }
            level(html, "base", (0.0, 100.0), zero);
            let ticks = places(&axis.ticks());
            for (place, _) in &ticks {
                upright(html, "tick", *place, bottom, bottom + 4.0);
            }
            labels(html, "tick", bottom + 17.0, ticks);
        });
    });
}

/// What a bin holds, for who points at it.
fn about(
    row: &HistogramRow,
    view: &View<'_>,
    unit: &str,
    value: impl Fn(&Option<HistogramCell>) -> Option<f64>,
) -> String {
    let us = |Nanos(ns): Nanos| number(ns as f64 / 1e3);
    let mut text = format!("{} to {} µs", us(row.from), us(row.to));
    for (cell, (name, _)) in [&row.a, &row.b].into_iter().zip(&view.sides) {
        if let Some(value) = value(cell) {
            text.push_str(&format!("\n{name}: {} {unit}", quantity(value)));
        }
    }
    text
}

/// Durations along the bins, which are as wide as each other.
struct Axis<'a> {
    rows: &'a [HistogramRow],
}

impl Axis<'_> {
    /// Where a duration lies, in percent; `None` outside of the bins.
    fn place(&self, ns: u64) -> Option<f64> {
        let at = self.rows.iter().position(|row| row.from.0 <= ns && ns < row.to.0)?;
        let row = self.rows.get(at)?;
        let share = (ns - row.from.0) as f64 / (row.to.0 - row.from.0) as f64;
        Some(100.0 * (at as f64 + share) / self.rows.len() as f64)
    }

    /// Powers of ten; where these are few, 2 and 5 of each.
    fn ticks(&self) -> Vec<u64> {
        let powers = || (0..=19).filter_map(|power| 10_u64.checked_pow(power));
        let inside = |ns: &u64| self.place(*ns).is_some();
        let few: Vec<u64> = powers().filter(inside).collect();
        if few.len() > 2 {
            return few;
        }
        let more = powers().flat_map(|power| [1, 2, 5].map(|times| power.saturating_mul(times)));
        more.filter(inside).collect()
    }
}

/// A round duration in its unit: `8 µs`, `500 ns`, `1 ms`.
fn plain(ns: u64) -> String {
    let (scale, unit) = match ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", ns as f64 / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_lies_within_its_bin() {
        let row = |from, to| HistogramRow {
            from: Nanos(from),
            to: Nanos(to),
            a: None,
            b: None,
        };
        let rows = [row(8_192, 10_240), row(10_240, 12_288)];
        let axis = Axis { rows: &rows };
        assert_eq!(
            [8_192, 9_216, 10_240].map(|ns| axis.place(ns)),
            [0.0, 25.0, 50.0].map(Some)
        );
        assert_eq!([8_191, 12_288].map(|ns| axis.place(ns)), [None, None]);
        assert_eq!(axis.ticks(), [10_000]);
        assert_eq!([500, 8_000, 1_500_000].map(plain), ["500 ns", "8 µs", "1.5 ms"]);
    }
}
