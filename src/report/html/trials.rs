//! How far the trials of a side lie apart, beside how far the sides do: a dot per trial, on an axis that need not begin at 0.

use super::axis::{Scale, dot, level, picture, ruler, upright};
use super::markup::Html;
use crate::compare::gate::RowKey;
use crate::report::sections::{View, input};
use crate::report::series::Series;
use crate::report::sheet::number;

/// Height of a side.
const LANE: f64 = 34.0;

/// Busy time of each trial; nothing when no side has several.
pub(super) fn strip(html: &mut Html, view: &View<'_>) {
    if !view.repeated() {
        return;
    }
    let busy = Series {
        key: RowKey::Busy,
        row: &view.comparison.busy,
    };
    let cells = || [&busy.row.a, &busy.row.b].into_iter().zip(&view.sides).zip(["a", "b"]);
    let values = cells().flat_map(|((cell, (_, side)), class)| {
        let trials = cell.iter().flat_map(|cell| &cell.trials).zip(&side.trials);
        let busy = &busy;
        trials.map(move |(stats, trial)| (class, busy.trial_ns(stats, trial) / 1e3, input(trial)))
    });
    let values: Vec<_> = values.collect();
    let Some(scale) = Scale::over(values.iter().map(|(_, us, _)| *us)) else {
        return;
    };
    html.element("figure", &[("class", "strip")], |html| {
        html.element("div", &[("class", "lanes")], |html| {
            for ((cell, (name, _)), class) in cells() {
                let class_of_name = if class == "a" { "side a" } else { "side b" };
                html.leaf("div", &[("class", class_of_name)], name);
                picture(html, "dots", LANE, |html| {
                    let Some(time) = cell.as_ref().map(|cell| busy.time(cell)) else {
                        return;
                    };
                    let middle = LANE / 2.0;
                    level(html, class, (scale.place(time.low), scale.place(time.high)), middle);
                    upright(html, class, scale.place(time.median), 5.0, LANE - 5.0);
                    for (_, us, input) in values.iter().filter(|(side, ..)| *side == class) {
                        let title = format!("{input}: {} {}", number(*us), view.us_per());
                        dot(html, class, scale.place(*us), middle, "5", &title);
                    }
                });
            }
            html.leaf("div", &[("class", "side")], &view.us_per());
            ruler(html, &scale, 5, number);
        });
        html.leaf(
            "figcaption",
            &[],
            &format!(
                "GPU busy time of each trial, {}: a dot per trial, a bar at the side's median, a line from the lowest to the \
                 highest. The axis does not begin at 0.",
                view.us_per()
            ),
        );
    });
}
