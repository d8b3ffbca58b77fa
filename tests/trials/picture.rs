//! The picture of `docs/statistics.md`: intervals of an unchanged build, against a limit.
//!
//! Drawn from the intervals of the crate; the same bytes every time. `cargo run --example statistics_picture` writes it.
#![allow(missing_docs, unreachable_pub)]

use std::fmt::Write;

use trace_attr::inference::{log_of, percent, welch};

use crate::support::normal::Normal;

/// Where it lies in the repository.
pub const FILE: &str = "docs/statistics.svg";

const COMPARISONS: usize = 40;
const LIMIT: f64 = 3.0;
/// Percent at the upper edge of a panel; the lower edge is its negative.
const EDGE: f64 = 6.0;
const PANEL: (f64, f64) = (330.0, 240.0);

const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #424a53 } .title { font-weight: 600 } .grid { stroke: #8c959f; stroke-width: 0.5 } \
.limit { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 5 4 } line { stroke-width: 3 } \
.passed { stroke: #2f81f7 } .cannot { stroke: #9a8700 } .alarm { stroke: #d1242f } \
@media (prefers-color-scheme: dark) { text { fill: #c9d1d9 } .passed { stroke: #58a6ff } .cannot { stroke: #d4b000 } .alarm { stroke: #ff6b70 } }";

fn y(percent: f64) -> f64 {
    60.0 + PANEL.1 * (EDGE - percent) / (2.0 * EDGE)
}

fn panel(svg: &mut String, left: f64, trials: usize, normal: &mut Normal) {
    let right = left + PANEL.0;
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{left}\" y=\"46\">{trials} trials a side</text>"
    );
    for mark in [-6.0, -3.0, 0.0, 3.0, 6.0] {
        let (class, at) = (if mark == LIMIT { "limit" } else { "grid" }, y(mark));
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{left}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\"/>"
        );
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}{mark}</text>",
            left - 6.0,
            at + 4.0,
            if mark > 0.0 { "+" } else { "" }
        );
    }
    for at in 0..COMPARISONS {
        let mut side = || (0..trials).map(|_| 0.01 * normal.next()).collect::<Vec<f64>>();
        let (a, b) = (side(), side());
        let Some(interval) = welch(&a, &b) else { continue };
        let class = if interval.low() > 0.0 {
            "alarm"
        } else if interval.high() <= log_of(LIMIT) {
            "passed"
        } else {
            "cannot"
        };
        let x = left + PANEL.0 * (at as f64 + 0.5) / COMPARISONS as f64;
        let end = |log: f64| y(percent(log).clamp(-EDGE, EDGE));
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>",
            end(interval.high()),
            end(interval.low())
        );
    }
}

pub fn svg() -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 350\" width=\"760\" height=\"350\" role=\"img\">\n\
         <title>Intervals of an unchanged build with 3 and with 6 trials a side, against a limit of 3 %</title>\n\
         <style>{STYLE}</style>\n\
         <text x=\"40\" y=\"20\">A build compared with itself, {COMPARISONS} times: intervals of the change in %, limit 3 %</text>\n"
    );
    let mut normal = Normal::new(11);
    panel(&mut svg, 40.0, 3, &mut normal);
    panel(&mut svg, 420.0, 6, &mut normal);
    for (at, (class, words)) in [
        ("passed", "passes the limit"),
        ("cannot", "limit inside: cannot judge"),
        ("alarm", "wholly above 0: a limit of 0 % fails"),
    ]
    .into_iter()
    .enumerate()
    {
        let x = [40.0, 200.0, 420.0].get(at).copied().unwrap_or_default();
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{x}\" y1=\"330\" x2=\"{:.0}\" y2=\"330\"/>",
            x + 18.0
        );
        let _ = writeln!(svg, "<text x=\"{:.0}\" y=\"334\">{words}</text>", x + 24.0);
    }
    svg.push_str("</svg>\n");
    svg
}
