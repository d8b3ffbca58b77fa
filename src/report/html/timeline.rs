//! When the GPU was busy: one trial of each side on one axis, which begins at each trial's first submission.
//!
//! The picture of the whole is drawn here, so it is there without a script and on paper. The spans go into a data block of
//! the page, from which the script draws parts of it. A lane is cut into columns of equal time; the height of a column is the
//! share of it in which the GPU was busy.

use serde::Serialize;

use super::axis::{Scale, ruler};
use super::markup::Html;
use crate::attribution::{BusyLane, BusySpan, BusyTimeline};
use crate::compare::{Side, Trial};
use crate::report::sections::{View, input};
use crate::report::series::per;
use crate::report::sheet::{number, percent_of, text};

/// Columns of a lane.
const COLUMNS: u64 = 600;
/// Height of a lane, in its own units.
const LANE: f64 = 40.0;

/// What the script draws from; described in `docs/html.md`.
#[derive(Serialize)]
struct Data {
    columns: u64,
    length_ns: u64,
    lanes: Vec<Lane>,
}

#[derive(Serialize)]
struct Lane {
    side: &'static str,
    trial: usize,
    channel: Option<String>,
    /// For each span: ns since the end of the one before (or since the first submission), its length, its busy ns.
    spans: Vec<[u64; 3]>,
}

/// A trial that is shown.
struct Shown<'a> {
    class: &'static str,
    name: &'a str,
    at: usize,
    trial: &'a Trial,
    timeline: &'a BusyTimeline,
}

/// The figure and its data; nothing where no trial has a timeline.
pub(super) fn timeline(html: &mut Html, view: &View<'_>) {
    let sides = view.sides.iter().zip(["a", "b"]);
    let shown: Vec<Shown<'_>> = sides
        .filter_map(|((name, side), class)| {
            let (at, trial) = typical(side)?;
            Some(Shown {
                class,
                name,
                at,
                trial,
                timeline: trial.timeline.as_ref()?,
            })
        })
        .collect();
    let length = |timeline: &BusyTimeline| timeline.to.since(timeline.from).0;
    let Some(longest) = shown.iter().map(|shown| length(shown.timeline)).max() else {
        return;
    };
    html.element("figure", &[("class", "timeline"), ("id", "timeline")], |html| {
        html.element("div", &[("class", "lanes")], |html| {
            for shown in &shown {
                for lane in &shown.timeline.lanes {
                    draw(html, shown, lane, longest);
                }
            }
            html.leaf("div", &[("class", "side")], "");
            axis(html, longest);
        });
        html.leaf("figcaption", &[], &caption(&shown, view));
    });
    let lanes = shown.iter().flat_map(|shown| {
        shown.timeline.lanes.iter().map(|lane| Lane {
            side: shown.class,
            trial: shown.at,
            channel: lane.channel.clone(),
            spans: steps(lane, shown.timeline),
        })
    });
    let data = Data {
        columns: COLUMNS,
        length_ns: longest,
        lanes: lanes.collect(),
    };
    // Numbers and texts only: this cannot fail.
    html.data("trace-attr-timeline", &serde_json::to_string(&data).unwrap_or_default());
}

/// The trial whose busy time per unit is the side's median, or nearest to it; the first of equal ones.
fn typical(side: &Side) -> Option<(usize, &Trial)> {
    let per_unit = |trial: &Trial| trial.all.busy.0 as f64 / trial.units.unwrap_or(1) as f64;
    let mut by_time: Vec<(usize, &Trial)> = side.trials.iter().enumerate().collect();
    by_time.retain(|(_, trial)| trial.timeline.is_some());
    by_time.sort_by(|(_, x), (_, y)| per_unit(x).total_cmp(&per_unit(y)));
    by_time.get(by_time.len().saturating_sub(1) / 2).copied()
}

fn draw(html: &mut Html, shown: &Shown<'_>, lane: &BusyLane, longest: u64) {
    let name = match &lane.channel {
        None => shown.name.to_owned(),
        Some(channel) => text(channel),
    };
    let class = match (shown.class, &lane.channel) {
        ("a", None) => "side a",
        ("a", Some(_)) => "side channel a",
        (_, None) => "side b",
        _ => "side channel b",
    };
    html.leaf("div", &[("class", class)], &name);
    let path = path(&shares(&lane.spans, shown.timeline.from.0, longest));
    let view_box = format!("0 0 {COLUMNS} {LANE}");
    let attributes = [
        ("class", "lane"),
        ("viewBox", &*view_box),
        ("preserveAspectRatio", "none"),
        ("aria-hidden", "true"),
    ];
    html.element("svg", &attributes, |html| {
        html.empty("path", &[("class", shown.class), ("d", &path)]);
    });
}

/// How much of each column is busy, 0 to 1.
fn shares(spans: &[BusySpan], from: u64, longest: u64) -> Vec<f64> {
    let edge = |column: u64| u128::from(longest) * u128::from(column) / u128::from(COLUMNS);
    let mut shares = vec![0.0; usize::try_from(COLUMNS).unwrap_or_default()];
    for span in spans {
        let start = u128::from(span.start.0.saturating_sub(from));
        let end = start + u128::from(span.length.0);
        let first = start * u128::from(COLUMNS) / u128::from(longest.max(1));
        let columns = (0..COLUMNS).skip(usize::try_from(first).unwrap_or_default());
        for column in columns.take_while(|column| edge(*column) < end) {
            let overlap = end.min(edge(column + 1)).saturating_sub(start.max(edge(column)));
            let width = edge(column + 1) - edge(column);
            if let Some(share) = usize::try_from(column).ok().and_then(|column| shares.get_mut(column))
                && width > 0
            {
                *share += overlap as f64 / width as f64 * span.busy.0 as f64 / span.length.0 as f64;
            }
        }
    }
    shares
}

/// The columns as an area over the foot of the lane; equal neighbours are one.
fn path(shares: &[f64]) -> String {
    let mut path = format!("M0 {LANE}");
    let mut before = String::new();
    for (column, share) in shares.iter().enumerate() {
        let y = format!("{:.1}", LANE * (1.0 - share.clamp(0.0, 1.0)));
        if y != before {
            path.push_str(&format!("H{column}V{y}"));
            before = y;
        }
    }
    path + &format!("H{COLUMNS}V{LANE}Z")
}

fn axis(html: &mut Html, longest: u64) {
    let ms = longest as f64 / 1e6;
    let scale = Scale::from_zero(ms);
    ruler(html, &scale, 4, |tick| format!("{} ms", (tick * 1e6).round() / 1e6));
}

fn steps(lane: &BusyLane, timeline: &BusyTimeline) -> Vec<[u64; 3]> {
    let mut before = timeline.from;
    let step = |span: &BusySpan| {
        let step = [span.start.since(before).0, span.length.0, span.busy.0];
        before = span.start + span.length;
        step
    };
    lane.spans.iter().map(step).collect()
}

fn caption(shown: &[Shown<'_>], view: &View<'_>) -> String {
    let mut text = "When the GPU was busy: ".to_owned();
    for (at, shown) in shown.iter().enumerate() {
        let length = shown.timeline.to.since(shown.timeline.from).0;
        let busy = shown.timeline.lanes.first().map_or(0, |lane| lane.busy().0);
        text.push_str(if at == 0 { "" } else { "; " });
        text.push_str(&format!(
            "{}, {} of {} ms",
            input(shown.trial),
            percent_of(busy as f64, length as f64),
            number(length as f64 / 1e6)
        ));
    }
    if view.repeated() {
        text.push_str(&format!(
            " (of each side the trial whose busy time per {} is the median)",
            per(view.comparison)
        ));
    }
    text.push_str(". Time begins at the first submission; the height of a column is the share of it that is busy.");
    let joined = |lane: &BusyLane| lane.spans.iter().any(|span| span.busy != span.length);
    if shown.iter().flat_map(|shown| &shown.timeline.lanes).any(joined) {
        text.push_str(" The shortest gaps are not drawn one by one; busy time is exact.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Nanos, Timestamp};

    fn span(start: u64, length: u64, busy: u64) -> BusySpan {
        BusySpan {
            start: Timestamp(start),
            length: Nanos(length),
            busy: Nanos(busy),
        }
    }

    #[test]
    fn the_columns_hold_the_busy_time() {
        let spans = [span(1_000, 500, 500), span(1_750, 6_001, 3_000), span(9_999, 1, 1)];
        let shares = shares(&spans, 1_000, 9_000);
        let busy: f64 = shares.iter().sum::<f64>() * 9_000.0 / 600.0;
        assert!((busy - 3_501.0).abs() < 1e-6, "{busy}");
        assert!(shares.iter().all(|share| (0.0..=1.0 + 1e-9).contains(share)));
    }

    #[test]
    fn equal_columns_are_one_step() {
        assert_eq!(path(&[1.0, 1.0, 0.0, 0.5]), "M0 40H0V0.0H2V40.0H3V20.0H600V40Z");
    }
}
