//! Scales and their ticks: where a number lies in a picture, in percent of its width.
//!
//! Pictures are SVG without a view box: horizontal places are percentages, so a picture fills its column and its text keeps
//! its size.

use super::markup::Html;

/// How far names on an axis lie apart, in percent: a short one's width where a picture is narrowest.
const APART: f64 = 9.0;

/// From a lowest to a highest value, with some room at both ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    /// Room at each end, percent of the width.
    room: f64,
}

impl Scale {
    /// From 0 to `high`.
    pub(super) fn from_zero(high: f64) -> Scale {
        Scale {
            low: 0.0,
            high: if high > 0.0 { high } else { 1.0 },
            room: 0.0,
        }
    }

    /// Over all values; some width even when they are one. `None` for no values.
    pub(super) fn over(values: impl IntoIterator<Item = f64>) -> Option<Scale> {
        let values = values.into_iter().filter(|value| value.is_finite());
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return None;
        }
        let least = if low == 0.0 && high == 0.0 {
            1.0
        } else {
            low.abs().max(high.abs()) * 1e-3
        };
        let widen = ((least - (high - low)) / 2.0).max(0.0);
        Some(Scale {
            low: low - widen,
            high: high + widen,
            room: 6.0,
        })
    }

    /// Where a value lies, in percent; what lies outside is at the edge.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.room + share * (100.0 - 2.0 * self.room)
    }

    /// Round values in the scale, at most `most` and about as many.
    pub(super) fn ticks(&self, most: u32) -> Vec<f64> {
        let rough = (self.high - self.low) / f64::from(most.max(1));
        let power = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = steps
            .into_iter()
            .find(|step| *step >= rough * (1.0 - 1e-9))
            .unwrap_or(rough);
        let first = (self.low / step - 1e-9).ceil();
        let places = (0..=most).map(|nth| (first + f64::from(nth)) * step);
        // −0 would print its sign.
        places
            .take_while(|value| *value <= self.high + step * 1e-9)
            .map(|value| value + 0.0)
            .collect()
    }
}

/// A place or a length in percent, as an attribute has it.
pub(super) fn percent(value: f64) -> String {
    let text = format!("{value:.2}");
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A number of pixels, as an attribute has it.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// How a text at this place is anchored, so that it stays inside.
fn anchor(place: f64) -> &'static str {
    match place {
        ..4.0 => "start",
        4.0..96.0 => "middle",
        _ => "end",
    }
}

/// A text in a picture, at a place in percent.
fn label(html: &mut Html, class: &'static str, place: f64, y: f64, text: &str) {
    let (x, y) = (percent(place), px(y));
    html.leaf(
        "text",
        &[("class", class), ("x", &x), ("y", &y), ("text-anchor", anchor(place))],
        text,
    );
}

/// Names of places on an axis, in their order; one that would touch the one before is left out.
pub(super) fn labels(html: &mut Html, class: &'static str, y: f64, names: impl IntoIterator<Item = (f64, String)>) {
    let mut free_from = f64::NEG_INFINITY;
    for (place, name) in names {
        if place >= free_from {
            label(html, class, place, y, &name);
            free_from = place + APART;
        }
    }
}

/// The ticks of a scale, with their names.
pub(super) fn ruler(html: &mut Html, scale: &Scale, most: u32, name: impl Fn(f64) -> String) {
    picture(html, "axis", 20.0, |html| {
        let ticks = scale.ticks(most);
        for tick in &ticks {
            upright(html, "tick", scale.place(*tick), 0.0, 4.0);
        }
        labels(
            html,
            "tick",
            17.0,
            ticks.iter().map(|tick| (scale.place(*tick), name(*tick))),
        );
    });
}

/// A vertical line.
pub(super) fn upright(html: &mut Html, class: &'static str, place: f64, from: f64, to: f64) {
    let (x, y1, y2) = (percent(place), px(from), px(to));
    html.empty(
        "line",
        &[("class", class), ("x1", &x), ("x2", &x), ("y1", &y1), ("y2", &y2)],
    );
}

/// A rectangle: from a place and as wide in percent, from `y` on and as high in px, with a text that is shown when one points
/// at it.
pub(super) fn rect(html: &mut Html, class: &'static str, (x, width): (f64, f64), (y, height): (f64, f64), title: &str) {
    let (x, width, y, height) = (percent(x), percent(width), px(y), px(height));
    let attributes = [
        ("class", class),
        ("x", &*x),
        ("width", &*width),
        ("y", &*y),
        ("height", &*height),
    ];
    if title.is_empty() {
        html.empty("rect", &attributes);
    } else {
        html.element("rect", &attributes, |html| html.leaf("title", &[], title));
    }
}

/// A dot.
pub(super) fn dot(html: &mut Html, class: &'static str, place: f64, y: f64, radius: &'static str, title: &str) {
    let (x, y) = (percent(place), px(y));
    let attributes = [("class", class), ("cx", &*x), ("cy", &*y), ("r", radius)];
    html.element("circle", &attributes, |html| html.leaf("title", &[], title));
}

/// A horizontal line.
pub(super) fn level(html: &mut Html, class: &'static str, (from, to): (f64, f64), y: f64) {
    let (x1, x2, y) = (percent(from), percent(to), px(y));
    html.empty(
        "line",
        &[("class", class), ("x1", &x1), ("x2", &x2), ("y1", &y), ("y2", &y)],
    );
}

/// A picture that is as wide as its place and `height` px high; what it shows stands beside it as text.
pub(super) fn picture(html: &mut Html, class: &'static str, height: f64, content: impl FnOnce(&mut Html)) {
    let height = px(height);
    html.element(
        "svg",
        &[
            ("class", class),
            ("width", "100%"),
            ("height", &height),
            ("aria-hidden", "true"),
        ],
        content,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let ticks = |low, high| Scale { low, high, room: 0.0 }.ticks(5);
        assert_eq!(ticks(0.0, 100.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(-3.2, 11.0), [0.0, 5.0, 10.0]);
        assert_eq!(ticks(519.0, 574.0), [520.0, 540.0, 560.0]);
        assert!(
            ticks(-1.0, 1.0)
                .iter()
                .all(|tick| tick.is_sign_positive() || *tick < 0.0)
        );
    }

    #[test]
    fn a_scale_has_a_width_whatever_its_values() {
        assert!(Scale::over([]).is_none() && Scale::over([f64::NAN]).is_none());
        for values in [vec![0.0], vec![5.0], vec![-2.0, 7.0]] {
            let scale = Scale::over(values.clone()).unwrap();
            for value in values {
                assert!((5.9..=94.1).contains(&scale.place(value)), "{scale:?}");
            }
        }
        assert_eq!(Scale::over([5.0]).unwrap().place(5.0), 50.0);
        assert_eq!(Scale::from_zero(0.0).place(0.0), 0.0);
    }

    #[test]
    fn places_are_short() {
        assert_eq!(
            [0.0, 12.345, 50.0, 99.999].map(percent),
            ["0%", "12.35%", "50%", "100%"]
        );
        assert_eq!([3.0, 3.25].map(px), ["3", "3.2"]);
    }
}
