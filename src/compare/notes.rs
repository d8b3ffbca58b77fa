//! What limits a comparison: reasons why the sides do not compare, and remarks.

use std::collections::{BTreeMap, BTreeSet};

use super::assess::far_trials;
use super::order;
use super::words::{count, rate, short, side_names};
use super::{Comparison, Incomparable, Over, Side, Trial, label_map};
use crate::attribution::is_real_label;
use crate::model::{Note, Reason, StateTime, WindowRule, WindowSpan};

/// Medians of submissions that differ by more than this, in percent of the smaller, mean unequal work.
const COUNT_LIMIT_PCT: f64 = 5.0;
/// Shares of the window that a state may differ by between the sides, in points.
const STATE_LIMIT_POINTS: f64 = 10.0;

/// Reasons in their fixed order; empty with one side.
pub(super) fn incomparable(comparison: &Comparison) -> Vec<Incomparable> {
    let Some(b) = &comparison.b else { return Vec::new() };
    let a = &comparison.a;
    let (name_a, name_b) = side_names(a, b);
    let mut reasons = Vec::new();
    let mut add = |code, text| reasons.push(Incomparable { code, text });

    let (gpus_a, gpus_b) = (gpus(a), gpus(b));
    if !gpus_a.is_empty() && !gpus_b.is_empty() && gpus_a.union(&gpus_b).count() > 1 {
        let text = format!(
            "the GPUs differ ({name_a}: {}, {name_b}: {})",
            joined(&gpus_a),
            joined(&gpus_b)
        );
        add("gpu_differs", text);
    }
    let without: Vec<&str> = trials(comparison)
        .filter(|t| t.units.is_none())
        .map(|t| t.input.as_str())
        .collect();
    let trial_count = trials(comparison).count();
    if !without.is_empty() && without.len() < trial_count {
        let unit = comparison.settings.unit.as_deref().unwrap_or("unit");
        add(
            "unit_differs",
            format!(
                "only some trials have a number of {unit}s (none: {})",
                without.join(", ")
            ),
        );
    }
    let (unit_a, unit_b) = (&comparison.settings.unit, &comparison.settings.unit_b);
    if without.is_empty() && unit_a != unit_b {
        let word = |unit: &Option<String>| unit.clone().unwrap_or_else(|| "trial".to_owned());
        let text = format!(
            "the units differ ({name_a}: {}, {name_b}: {})",
            word(unit_a),
            word(unit_b)
        );
        add("unit_differs", text);
    }
    if comparison.settings.window_a != comparison.settings.window_b {
        let (window_a, window_b) = (rule(&comparison.settings.window_a), rule(&comparison.settings.window_b));
        add(
            "window_differs",
            format!("the window rules differ ({name_a}: {window_a}, {name_b}: {window_b})"),
        );
    }
    if comparison.settings.timing != comparison.settings.timing_b {
        let (timing_a, timing_b) = (comparison.settings.timing.name(), comparison.settings.timing_b.name());
        add(
            "timing_differs",
            format!("the times come from different tables ({name_a}: {timing_a}, {name_b}: {timing_b})"),
        );
    }
    let mut unequal = Vec::new();
    if !without.is_empty()
        && let Some((count_a, count_b)) = counts(comparison)
        && count_differs(count_a, count_b)
    {
        let text = format!(
            "{name_a} has {} submissions, {name_b} {}",
            short(count_a),
            short(count_b)
        );
        unequal.push(format!("no unit is given and {text}"));
    }
    let cut: Vec<&str> = trials(comparison)
        .filter(|trial| trial.units.is_none() && at_time_limit(trial))
        .map(|trial| trial.input.as_str())
        .collect();
    if !cut.is_empty() {
        unequal.push(format!(
            "no unit is given and recordings ended at their time limit ({})",
            cut.join(", ")
        ));
    }
    // Times of a part are divided by the units of the whole: that compares only when the parts are equal.
    if without.is_empty()
        && let (Some(held_a), Some(held_b)) = (held(a), held(b))
        && count_differs(held_a, held_b)
    {
        unequal.push(format!(
            "the windows hold different parts of the work ({name_a}: {} % of the submissions, {name_b}: {} %)",
            short(100.0 * held_a),
            short(100.0 * held_b)
        ));
    }
    if !unequal.is_empty() {
        add("unequal_work", unequal.join("; "));
    }
    reasons
}

fn trials(comparison: &Comparison) -> impl Iterator<Item = &Trial> {
    comparison
        .a
        .trials
        .iter()
        .chain(comparison.b.iter().flat_map(|side| &side.trials))
}

/// GPUs by one name: Metal says `Apple M5 Max` of what traces call `M5 Max`.
fn gpus(side: &Side) -> BTreeSet<&str> {
    let names = side.trials.iter().filter_map(|trial| trial.gpu.as_deref());
    names.map(|name| name.strip_prefix("Apple ").unwrap_or(name)).collect()
}

fn joined(texts: &BTreeSet<&str>) -> String {
    texts.iter().copied().collect::<Vec<_>>().join(", ")
}

/// A window rule in the words of the options.
pub(super) fn rule(rule: &WindowRule) -> String {
    let span = match &rule.span {
        WindowSpan::Process => None,
        WindowSpan::Signpost(name) => Some(format!("signpost `{name}`")),
        WindowSpan::Quiet(gap) => Some(format!("quiet with pauses up to {} s", gap.0 as f64 / 1e9)),
    };
    let parts: Vec<String> = [
        span,
        rule.from.map(|at| format!("from {} s", at.0 as f64 / 1e9)),
        rule.to.map(|at| format!("to {} s", at.0 as f64 / 1e9)),
        rule.skip_first
            .map(|length| format!("without the first {} s", length.0 as f64 / 1e9)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        "first start to last end".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Which part of the process's submissions the windows of a side hold, median over trials.
fn held(side: &Side) -> Option<f64> {
    let of_trial = |trial: &Trial| {
        (trial.submissions_in_process > 0).then(|| trial.all.submissions as f64 / trial.submissions_in_process as f64)
    };
    Over::of(side.trials.iter().filter_map(of_trial)).map(|over| over.median)
}

/// Medians of submissions per unit.
fn counts(comparison: &Comparison) -> Option<(f64, f64)> {
    let (a, b) = (comparison.total.a.as_ref()?, comparison.total.b.as_ref()?);
    Some((a.submissions.median, b.submissions.median))
}

/// Of the smaller, so that swapping the sides does not change whether they compare.
fn count_differs(a: f64, b: f64) -> bool {
    100.0 * (a - b).abs() > COUNT_LIMIT_PCT * a.min(b)
}

fn at_time_limit(trial: &Trial) -> bool {
    trial
        .state
        .end_reason
        .as_ref()
        .is_some_and(|reason| reason.to_lowercase().contains("time limit"))
}

/// All remarks: warnings first, then by code and text.
///
/// `remarks` came up while the rows were judged.
pub(super) fn notes(comparison: &Comparison, remarks: Vec<Note>) -> Vec<Note> {
    let mut notes = from_trials(comparison);
    notes.extend(remarks);
    notes.extend(far_trials(comparison));
    for trial in trials(comparison) {
        notes.extend(of_trial(trial));
    }
    for side in std::iter::once(&comparison.a).chain(&comparison.b) {
        notes.extend(no_labels(side));
        notes.extend(several_names(side));
        let gpus = gpus(side);
        if comparison.b.is_none() && gpus.len() > 1 {
            notes.push(Note::warning(
                "gpu_differs",
                format!("the trials ran on several GPUs: {}", joined(&gpus)),
            ));
        }
    }
    if let Some(mapped) = &comparison.label_map {
        notes.extend(label_map::notes(mapped, &comparison.a, comparison.b.as_ref()));
    }
    if let Some(b) = &comparison.b {
        notes.extend(between(comparison, b));
    }
    notes.sort_by(|x, y| {
        y.severity
            .cmp(&x.severity)
            .then(x.code.cmp(y.code))
            .then_with(|| x.text.cmp(&y.text))
    });
    notes.dedup();
    notes
}

/// What joining remarked, with the names of the inputs; a remark that holds for several is told once.
fn from_trials(comparison: &Comparison) -> Vec<Note> {
    let mut inputs: BTreeMap<(&'static str, &str, &'static str), Vec<&str>> = BTreeMap::new();
    let mut severity = BTreeMap::new();
    for trial in trials(comparison) {
        for note in &trial.notes {
            let key = (note.code, note.text.as_str(), note.severity.name());
            let inputs = inputs.entry(key).or_default();
            if !inputs.contains(&trial.input.as_str()) {
                inputs.push(&trial.input);
            }
            severity.insert(key, note.severity);
        }
    }
    let note = |(key, inputs): ((&'static str, &str, &'static str), Vec<&str>)| {
        let severity = severity.get(&key).copied()?;
        Some(Note {
            code: key.0,
            severity,
            text: format!("{}: {}", inputs.join(", "), key.1),
        })
    };
    inputs.into_iter().filter_map(note).collect()
}

fn of_trial(trial: &Trial) -> Vec<Note> {
    [
        time_limit(trial),
        window_units(trial),
        unlabelled(trial),
        cross_check(trial),
        left_out_share(trial),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether the part is more than 1 % of the whole, in integers.
fn above_one_percent(part: u64, whole: u64) -> bool {
    u128::from(part) * 100 > u128::from(whole)
}

fn percent_of(part: u64, whole: u64) -> String {
    if whole == 0 {
        "100".to_owned()
    } else {
        short(100.0 * part as f64 / whole as f64)
    }
}

/// A recording that a clock ended holds as much work as fitted, not a whole piece of it.
fn time_limit(trial: &Trial) -> Option<Note> {
    at_time_limit(trial).then(|| {
        let text = format!(
            "{}: the recording ended at its time limit, so it holds as much work as fitted",
            trial.input
        );
        Note::remark("time_limit", text)
    })
}

/// Submissions without a label while others have one.
fn unlabelled(trial: &Trial) -> Option<Note> {
    let time = trial.all.total.0.saturating_sub(trial.labelled_total.0);
    if trial.labelled_total.0 == 0 || !above_one_percent(time, trial.all.total.0) {
        return None;
    }
    let of = |key: &str| {
        trial
            .phases
            .iter()
            .find(|group| group.key == key)
            .map_or(0, |group| group.stats.submissions)
    };
    let kinds = [
        (of("(unknown)"), "no encoder row"),
        (of("(unlabelled)"), "an empty or default label"),
        (of("(ambiguous)"), "encoder rows with different labels"),
    ];
    let parts: Vec<String> = kinds
        .iter()
        .filter(|(submissions, _)| *submissions > 0)
        .enumerate()
        .map(|(at, (submissions, what))| {
            let verb = match (at, submissions) {
                (0, 1) => " has",
                (0, _) => " have",
                _ => "",
            };
            format!("{}{verb} {what}", count(*submissions))
        })
        .collect();
    let submissions = kinds.iter().map(|(submissions, _)| submissions).sum();
    let text = format!(
        "{}: {} of {} submissions ({} % of GPU time) have no label: {}",
        trial.input,
        count(submissions),
        count(trial.all.submissions),
        percent_of(time, trial.all.total.0),
        parts.join(", ")
    );
    Some(Note::remark("unlabelled", text))
}

/// Both timing tables disagree on more than 1 % of the time.
fn cross_check(trial: &Trial) -> Option<Note> {
    let check = trial.cross_check?;
    let told = trial.notes.iter().any(|note| note.code == "cross_check");
    if told || !above_one_percent(check.disputed.0, trial.all.total.0) {
        return None;
    }
    let text = format!(
        "{}: the two timing tables disagree on {} % of the GPU time: {} submissions only in the execution points, \
         {} only in the intervals, {} more than 42 ns apart, {} equal",
        trial.input,
        percent_of(check.disputed.0, trial.all.total.0),
        count(check.only_points),
        count(check.only_intervals),
        count(check.differ),
        count(check.both),
    );
    Some(Note::warning("cross_check", text))
}

/// More rows than 1 % could not be counted, though they may belong to the process.
fn left_out_share(trial: &Trial) -> Option<Note> {
    let reasons = [
        Reason::UnpairedStart,
        Reason::UnpairedEnd,
        Reason::Invalid,
        Reason::NoMapping,
        Reason::NoProcess,
    ];
    let rows: u64 = reasons.iter().map(|reason| trial.left_out.get(*reason).rows).sum();
    if !above_one_percent(rows, trial.rows_read) {
        return None;
    }
    let parts: Vec<String> = reasons
        .iter()
        .map(|reason| (trial.left_out.get(*reason).rows, reason))
        .filter(|(rows, _)| *rows > 0)
        .map(|(rows, reason)| format!("{} {}", count(rows), reason.code()))
        .collect();
    let text = format!(
        "{}: {} of {} rows ({} %) could not be counted: {}",
        trial.input,
        count(rows),
        count(trial.rows_read),
        percent_of(rows, trial.rows_read),
        parts.join(", ")
    );
    Some(Note::warning("left_out_share", text))
}

/// A side whose phases are all the same to us.
pub(super) fn no_labels(side: &Side) -> Option<Note> {
    let phases = || side.trials.iter().flat_map(|trial| &trial.phases);
    let labelled_encoders = side
        .trials
        .iter()
        .filter_map(|trial| trial.encoder_labels)
        .any(|l| l.labelled > 0);
    if phases().next().is_none() || labelled_encoders || phases().any(|group| is_real_label(&group.key)) {
        return None;
    }
    let what = if phases().all(|group| group.key == "(unknown)") {
        format!("the traces of {} hold no labels", side.name)
    } else {
        format!("{} sets no labels", side.name)
    };
    Some(Note::remark(
        "no_labels",
        format!("{what}: its phases cannot be told apart"),
    ))
}

/// Trials of different programs are hardly trials of one thing.
fn several_names(side: &Side) -> Option<Note> {
    let mut names: Vec<&str> = side.trials.iter().map(|trial| trial.process.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    (names.len() > 1).then(|| {
        let text = format!(
            "the trials of {} are of different processes: {}",
            side.name,
            names.join(", ")
        );
        Note::warning("processes_differ", text)
    })
}

/// Times of a part are divided by the units of the whole.
fn window_units(trial: &Trial) -> Option<Note> {
    let units = trial.units?;
    (trial.all.submissions < trial.submissions_in_process).then(|| {
        let text = format!(
            "{}: the window holds {} of {} submissions; its times are divided by all {} units",
            trial.input,
            count(trial.all.submissions),
            count(trial.submissions_in_process),
            count(units)
        );
        Note::remark("window_units", text)
    })
}

/// Remarks on how the sides stand to each other.
fn between(comparison: &Comparison, b: &Side) -> Vec<Note> {
    let a = &comparison.a;
    let (name_a, name_b) = side_names(a, b);
    let mut notes = Vec::new();
    for trial in &a.trials {
        for other in b.trials.iter().filter(|other| other.fingerprint == trial.fingerprint) {
            let text = if trial.input == other.input {
                format!("`{}` stands on both sides", trial.input)
            } else {
                format!(
                    "`{}` ({name_a}) and `{}` ({name_b}) are the same recording",
                    trial.input, other.input
                )
            };
            notes.push(Note::remark("same_recording", text));
        }
    }
    let (gpus_a, gpus_b) = (gpus(a), gpus(b));
    if gpus_a.is_empty() != gpus_b.is_empty() {
        let silent = if gpus_a.is_empty() { &name_a } else { &name_b };
        let text = format!("the traces of {silent} do not name their GPU: whether both sides ran on one is not known");
        notes.push(Note::remark("gpu_unknown", text));
    }
    if trials(comparison).all(|trial| trial.units.is_some())
        && let Some((count_a, count_b)) = counts(comparison)
        && count_differs(count_a, count_b)
    {
        let unit = comparison.settings.unit.as_deref().unwrap_or("unit");
        let text = format!(
            "{name_a} makes {} submissions per {unit}, {name_b} {}: fewer can be a way to be faster, or less work",
            rate(count_a),
            rate(count_b)
        );
        notes.push(Note::remark("count_differs", text));
        // The same work, but not the same number of units: then the number is likely the mistake.
        let submissions = |side: &Side| Over::of(side.trials.iter().map(|trial| trial.all.submissions as f64));
        if let (Some(all_a), Some(all_b)) = (submissions(a), submissions(b))
            && !count_differs(all_a.median, all_b.median)
        {
            let text = format!(
                "a trial of {name_a} and one of {name_b} hold as many submissions ({}), but not as many {unit}s: is the \
                 number of {unit}s right?",
                short(all_a.median)
            );
            notes.push(Note::warning("units_suspect", text));
        }
    }
    let (n_a, n_b) = (a.trials.len(), b.trials.len());
    if n_a.max(n_b) > 2 * n_a.min(n_b) {
        let text = format!("{name_a} has {n_a} trials, {name_b} {n_b}: the smaller side hardly shows its spread");
        notes.push(Note::remark("unequal_trials", text));
    }
    notes.extend(order::notes(comparison));
    notes.extend(machine_states(a, b, "thermal state", |trial| &trial.state.thermal));
    notes.extend(machine_states(a, b, "GPU performance state", |trial| {
        &trial.state.performance
    }));
    notes
}

/// States whose share of the window differs between the sides; a side that records none says nothing.
fn machine_states(a: &Side, b: &Side, kind: &str, states: fn(&Trial) -> &[StateTime]) -> Vec<Note> {
    let known = |side: &Side| side.trials.iter().any(|trial| !states(trial).is_empty());
    if !known(a) || !known(b) {
        return Vec::new();
    }
    let (name_a, name_b) = side_names(a, b);
    let keys: BTreeSet<(&str, bool)> = a
        .trials
        .iter()
        .chain(&b.trials)
        .flat_map(|trial| states(trial).iter().map(|state| (state.state.as_str(), state.induced)))
        .collect();
    let share = |side: &Side, (name, induced): (&str, bool)| {
        let of_trial = |trial: &Trial| {
            let window = trial.window.length().0;
            let recorded = states(trial);
            if recorded.is_empty() || window == 0 {
                return None;
            }
            let same = recorded
                .iter()
                .filter(|state| state.state == name && state.induced == induced);
            let time = same.fold(0_u64, |sum, state| sum.saturating_add(state.time.0));
            Some(100.0 * time as f64 / window as f64)
        };
        Over::of(side.trials.iter().filter_map(of_trial)).map(|over| over.median)
    };
    keys.into_iter()
        .filter_map(|key| {
            let (share_a, share_b) = (share(a, key)?, share(b, key)?);
            let induced = if key.1 { " (induced)" } else { "" };
            let text = format!(
                "{kind} {}{induced}: {} % of {name_a}'s window, {} % of {name_b}'s",
                key.0,
                short(share_a),
                short(share_b)
            );
            ((share_a - share_b).abs() > STATE_LIMIT_POINTS).then(|| Note::warning("machine_state", text))
        })
        .collect()
}
