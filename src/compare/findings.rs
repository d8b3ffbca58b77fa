//! What to look at first: single submissions that hide the rest, then rows with a positive delta.

use super::notes::no_labels;
use super::words::{bound, count, rate, short, side_names, sign, size, slash_unit};
use super::{Cell, Change, Comparison, Finding, Row, Side, Verdict};
use crate::attribution::is_real_label;

/// How many phases are told.
const PHASES: usize = 3;

pub(super) fn findings(comparison: &Comparison) -> Vec<Finding> {
    let mut findings = submissions(comparison);
    match &comparison.b {
        Some(b) => findings.extend(deltas(comparison, b)),
        None => findings.extend(largest(comparison)),
    }
    findings
}

/// What would otherwise hide in a mean: one submission longer than the rest, or one without a known end.
fn submissions(comparison: &Comparison) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |input: &str, text: String| {
        let finding = Finding {
            section: "submissions",
            key: input.to_owned(),
            delta_us: None,
            share_pct: None,
            hint: None,
            text,
        };
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    };
    for trial in comparison
        .a
        .trials
        .iter()
        .chain(comparison.b.iter().flat_map(|side| &side.trials))
    {
        for note in trial.notes.iter().filter(|note| note.code == "ends_after_recording") {
            add(&trial.input, format!("{}: {}", trial.input, note.text));
        }
        let Some(durations) = &trial.all.durations else {
            continue;
        };
        let rest = trial.all.total.0.saturating_sub(durations.max.0);
        if trial.all.submissions > 1 && durations.max.0 > rest {
            let place = trial.slowest.first().map(|slow| {
                format!(
                    " ({}, {} channel, at {} s)",
                    slow.phase,
                    slow.channel,
                    slow.start.0 as f64 / 1e9
                )
            });
            add(
                &trial.input,
                format!(
                    "{}: one submission of {} µs{} is longer than the {} other{} together",
                    trial.input,
                    size(durations.max.0 as f64 / 1_000.0),
                    place.unwrap_or_default(),
                    count(trial.all.submissions - 1),
                    if trial.all.submissions == 2 { "" } else { "s" },
                ),
            );
        }
    }
    findings
}

/// Rows in which A takes longer, most first; then, where one side sets no labels, where A's own time goes.
///
/// Without labels on a side a phase or a family of the other has no counterpart: its time is no difference.
fn deltas(comparison: &Comparison, b: &Side) -> Vec<Finding> {
    let comparable = no_labels(&comparison.a).is_none() && no_labels(b).is_none();
    let sections: [(&'static str, &[Row], usize); 4] = [
        ("phases", &comparison.phases, PHASES),
        ("encoders", &comparison.encoders, 1),
        ("buckets", &comparison.buckets, 1),
        ("channels", &comparison.channels, 1),
    ];
    let mut found: Vec<(f64, Finding)> = Vec::new();
    for (section, rows, most) in sections {
        if section == "phases" && !comparable {
            continue;
        }
        let mut slower: Vec<(f64, &Row, &Change)> = rows
            .iter()
            .filter_map(|row| row.change.as_ref().map(|change| (change.delta_us(), row, change)))
            .filter(|(delta, _, change)| {
                *delta > 0.0 && (comparable || section != "encoders" || matches!(change, Change::Both { .. }))
            })
            .collect();
        slower.sort_by(|x, y| y.0.total_cmp(&x.0).then_with(|| x.1.key.cmp(&y.1.key)));
        for (delta, row, change) in slower.into_iter().take(most) {
            let finding = Finding {
                section,
                key: row.key.clone(),
                delta_us: Some(delta),
                share_pct: change.share_pct(),
                hint: None,
                text: delta_text(comparison, b, section, row, change),
            };
            found.push((delta, finding));
        }
    }
    // Stable: equal deltas keep the order of the sections.
    found.sort_by(|x, y| y.0.total_cmp(&x.0));
    let mut findings: Vec<Finding> = found.into_iter().map(|(_, finding)| finding).collect();
    if !comparable && no_labels(&comparison.a).is_none() {
        let own = largest(comparison)
            .into_iter()
            .filter(|finding| is_real_label(&finding.key));
        findings.extend(own.map(|finding| Finding {
            delta_us: None,
            share_pct: None,
            text: format!("{}'s own time, not a difference: {}", comparison.a.name, finding.text),
            ..finding
        }));
    }
    findings
}

fn delta_text(comparison: &Comparison, b: &Side, section: &str, row: &Row, change: &Change) -> String {
    let (name_a, name_b) = side_names(&comparison.a, b);
    let delta = change.delta_us();
    let mut text = format!(
        "{}: {}{} µs{}",
        title(section, &row.key),
        sign(delta),
        size(delta),
        slash_unit(&comparison.settings)
    );
    if let Some(share) = change.share_pct() {
        text += &format!(" ({} % of {name_b}'s total)", short(share));
    }
    match change {
        Change::OnlyA { .. } => text += &format!(": only in {name_a}"),
        Change::OnlyB { .. } => text += &format!(": only in {name_b}"),
        Change::Both {
            count_pct: Some(count),
            per_submission_pct: Some(per),
            ..
        } => {
            text += &format!(
                ": {}, {}",
                split(*count, "more", "fewer", " submissions"),
                split(*per, "longer", "shorter", " each")
            );
        }
        Change::Both { .. } if row.b.as_ref().is_some_and(|cell| cell.submissions.high <= 0.0) => {
            text += &format!(": only in {name_a}");
        }
        Change::Both { .. } => {}
    }
    if let Some(judgement) = &row.judgement
        && matches!(judgement.verdict, Verdict::Inconclusive | Verdict::Unchanged)
        && let Some(test) = &judgement.test
    {
        let (low, high) = (bound(test.interval.low()), bound(test.interval.high()));
        let why = if judgement.verdict == Verdict::Unchanged {
            "within the margin"
        } else if judgement.reasons.contains(&"one_of_many") {
            "one of many rows"
        } else {
            "not shown"
        };
        text += &format!("; {why}: interval {low} to {high} %");
    }
    text
}

/// `4 % more submissions`, `as many submissions`, `12 % longer each`, `as long each`.
fn split(percent: f64, up: &str, down: &str, what: &str) -> String {
    if percent > 0.0 {
        format!("{} % {up}{what}", short(percent))
    } else if percent < 0.0 {
        format!("{} % {down}{what}", short(percent))
    } else if up == "more" {
        format!("as many{what}")
    } else {
        format!("as long{what}")
    }
}

/// A phase's key speaks for itself; keys of the other sections need a word.
fn title(section: &str, key: &str) -> String {
    match section {
        "buckets" => format!("bucket {key}"),
        "encoders" => format!("encoder family {key}"),
        "channels" => format!("channel {key}"),
        _ => key.to_owned(),
    }
}

/// With one side: the phases that take most time.
fn largest(comparison: &Comparison) -> Vec<Finding> {
    let total = comparison.total.a.as_ref().map_or(0.0, |cell| cell.total_us.median);
    let unit = slash_unit(&comparison.settings);
    let phases = comparison
        .phases
        .iter()
        .filter_map(|row| row.a.as_ref().map(|cell| (row, cell)));
    phases
        .filter(|(_, cell)| cell.total_us.median > 0.0)
        .take(PHASES)
        .map(|(row, cell): (&Row, &Cell)| {
            let time = cell.total_us.median;
            let share = (total > 0.0).then(|| 100.0 * time / total);
            let mut text = format!("{}: {} µs{unit}", row.key, size(time));
            if let Some(share) = share {
                text += &format!(" ({} % of the total)", short(share));
            }
            if cell.submissions.median > 0.0 {
                let each = time / cell.submissions.median;
                let count = rate(cell.submissions.median);
                let word = if count == "1" { "submission" } else { "submissions" };
                text += &format!(": {count} {word}{unit} × {} µs each", size(each));
            }
            Finding {
                section: "phases",
                key: row.key.clone(),
                delta_us: Some(time),
                share_pct: share,
                hint: None,
                text,
            }
        })
        .collect()
}
