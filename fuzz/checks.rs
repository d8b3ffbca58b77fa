//! What must hold for every input: fuzz targets and `tests/fuzz_finds.rs` share it.
//!
//! Bytes go the whole way, from [`read_recording_from`] to every report; a refusal is as good an end as a result.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    dead_code
)]

pub mod readers;

use std::sync::LazyLock;

use trace_attr::analysis::{TracedSide, TracedTrial, Traces};
use trace_attr::attribution::{Buckets, Group, KernelRules, PhaseNames};
use trace_attr::compare::{CompareOptions, Comparison, Settings, Side, Trial, TrialOptions, compare, headline};
use trace_attr::convert::{self, Conversion};
use trace_attr::error::Error;
use trace_attr::join::{JoinOptions, ProcessChoice, RunInput, TimingChoice, choose_timing, join};
use trace_attr::model::{Nanos, Reason, Timestamp, Timing, Trace, WindowRule};
use trace_attr::recording::{ReadOptions, Recording, RunChoice, cache_bytes, read_recording_from};
use trace_attr::report::{Format, ReportOptions, write};
use trace_attr::source;
use trace_attr::tables::TYPES;
use trace_attr::tables::contents::Contents;
use trace_attr::xml::{Cell, CellKind, ExportReader, Keep, Part};

/// Parsed once: every input needs them.
static RULES: LazyLock<KernelRules> = LazyLock::new(KernelRules::default);

/// Element names that [`Keep::Types`] keeps beside the types themselves: parts of labels and processes.
const PARTS: &[&str] = &["string", "metal-object-label", "narrative-text", "pid"];

/// Everything that a cell can be asked.
fn ask(cell: Cell<'_>) {
    let _ = (cell.name(), cell.kind(), cell.child("pid").map(|child| child.kind()));
    for child in cell.children() {
        ask(child);
    }
}

/// A row as values that can be kept.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    Null,
    Number(u64),
    Text(String),
    Composite(Vec<(String, Kept)>),
}

/// The cell as [`Keep::Types`] would have kept it.
fn kept(cell: Cell<'_>) -> Kept {
    match cell.kind() {
        CellKind::Null => Kept::Null,
        CellKind::Number(number) => Kept::Number(number),
        CellKind::Text(text) => Kept::Text(text.to_owned()),
        CellKind::Composite => {
            let process = cell.name() == "process";
            let own = cell.child("@text").filter(|_| !process);
            let real = cell.children().any(|child| !child.name().starts_with('@'));
            if !process && !real {
                // Only attributes made it a composite.
                let text = own.map_or_else(String::new, |own| own.text());
                return match text.parse::<u64>() {
                    Ok(number) if number < 1 << 50 && number.to_string() == text => Kept::Number(number),
                    _ => Kept::Text(text),
                };
            }
            // Whether a NULL inside an element that is not kept is there makes no difference to anybody.
            let is_kept = |child: &Cell<'_>| match child.name() {
                _ if child.kind() == CellKind::Null => false,
                "@fmt" => process,
                "@text" => true,
                name => TYPES.contains(&name) || PARTS.contains(&name),
            };
            let children = cell.children().filter(is_kept);
            Kept::Composite(children.map(|child| (child.name().to_owned(), kept(child))).collect())
        }
    }
}

/// Rows of all tables; `None` for cells that only [`Keep::All`] keeps.
type Rows = Vec<Vec<Option<Kept>>>;

fn rows(bytes: &[u8], keep: Keep<'_>) -> Result<Rows, Error> {
    let mut reader = ExportReader::new(source::decode(bytes)?, keep);
    let mut all = Vec::new();
    loop {
        let schema = match reader.next_part()? {
            None => return Ok(all),
            Some(Part::Contents(root)) => {
                let _ = Contents::from_element(&root);
                continue;
            }
            Some(Part::Table { schema, .. }) => schema.clone(),
        };
        let columns: Vec<_> = schema
            .columns()
            .iter()
            .filter_map(|column| Some((schema.opt_column(&column.mnemonic)?, column)))
            .collect();
        while let Some(row) = reader.read_row()? {
            let mut cells = Vec::new();
            for (at, column) in &columns {
                let cell = row.cell(*at);
                // The first column of a name stands for its namesakes, so the cell's own name decides.
                let wanted = TYPES.contains(&cell.name()) || TYPES.contains(&column.kind.as_str());
                cells.push(wanted.then(|| kept(cell)));
            }
            all.push(cells);
        }
    }
}

/// Reads every cell of everything in every way.
pub fn read(bytes: &[u8]) {
    for keep in [Keep::All, Keep::Types(TYPES)] {
        let _ = read_all(bytes, keep);
    }
}

fn read_all(bytes: &[u8], keep: Keep<'_>) -> Result<(), Error> {
    let mut reader = ExportReader::new(source::decode(bytes)?, keep);
    let mut before = 0;
    loop {
        let schema = match reader.next_part()? {
            None => return Ok(()),
            Some(Part::Contents(root)) => {
                let _ = Contents::from_element(&root);
                continue;
            }
            Some(Part::Table { schema, .. }) => schema.clone(),
        };
        let columns: Vec<_> = schema
            .columns()
            .iter()
            .filter_map(|column| schema.opt_column(&column.mnemonic))
            .collect();
        while let Some(row) = reader.read_row()? {
            assert!(row.position().byte >= before, "rows go forward");
            before = row.position().byte;
            for at in &columns {
                let _ = (
                    row.text(*at),
                    row.process(*at),
                    row.time(*at),
                    row.opt_u64(*at),
                    row.key(*at),
                );
                ask(row.cell(*at));
            }
        }
    }
}

/// What is kept by type is what would have been read anyway, and nothing is refused only because less is kept.
pub fn read_types(bytes: &[u8]) {
    let whole = rows(bytes, Keep::All);
    let typed = rows(bytes, Keep::Types(TYPES));
    match (whole, typed) {
        (Ok(whole), Ok(typed)) => assert_eq!(whole, typed),
        (Ok(_), Err(error)) => panic!("refused only by Keep::Types: {error}"),
        (Err(_), _) => {}
    }
}

/// Any bytes as an entry of the cache, as values under right checksums, and as a document whose entry was changed by
/// somebody who knows how: each ends in a recording or a refusal, and what is a recording can be kept again.
pub fn cache(bytes: &[u8]) {
    let _ = cache_bytes::to_recording(bytes);
    if let Ok(recording) = cache_bytes::to_recording(&cache_bytes::sealed(bytes)) {
        kept_alike(&recording);
    }
    for signposts in [false, true] {
        let options = ReadOptions {
            run: RunChoice::All,
            signposts,
            ..ReadOptions::default()
        };
        let Ok(recording) = read_recording_from(bytes, "fuzz", &options, &()) else {
            return;
        };
        let entry = kept_alike(&recording);
        let values = cache_bytes::values(&entry);
        // Places all over the entry, the same for the same document.
        for place in 0..64 {
            let at = (place * 7919 + bytes.len()) % values.len();
            let mut changed = values.to_vec();
            changed[at] = changed[at].wrapping_add(1 << (place % 8));
            if let Ok(recording) = cache_bytes::to_recording(&cache_bytes::sealed(&changed)) {
                kept_alike(&recording);
            }
        }
    }
}

/// The recording's entry, which gives the same recording.
fn kept_alike(recording: &Recording) -> Vec<u8> {
    let entry = cache_bytes::of_recording(recording).expect("a recording without remarks of xctrace");
    let again = cache_bytes::to_recording(&entry).expect("what was written a moment ago");
    let told = |recording: &Recording| {
        let Recording {
            contents, runs, notes, ..
        } = recording;
        format!("{contents:?} {runs:?} {notes:?}")
    };
    assert_eq!(told(&again), told(recording));
    // Texts too, by their ids.
    assert!(cache_bytes::of_recording(&again).as_ref() == Some(&entry));
    entry
}

/// How a document is looked at.
#[derive(Debug, Clone, Default)]
pub struct View {
    pub timing: TimingChoice,
    pub process: ProcessChoice,
    pub window: WindowRule,
    pub buckets: Option<Buckets>,
    pub units: Option<u64>,
}

/// Any document, in every view that needs no knowledge of it.
pub fn pipeline(bytes: &[u8]) {
    for choice in [RunChoice::All, RunChoice::Only, RunChoice::Number(1)] {
        let options = ReadOptions {
            run: choice,
            ..ReadOptions::default()
        };
        let Ok(recording) = read_recording_from(bytes, "fuzz", &options, &()) else {
            continue;
        };
        if choice != RunChoice::All {
            continue;
        }
        let views = [
            (ProcessChoice::Target, TimingChoice::Auto),
            (ProcessChoice::All, TimingChoice::Auto),
            (ProcessChoice::All, TimingChoice::Points),
            (ProcessChoice::parse("*"), TimingChoice::Points),
        ];
        for (process, timing) in views {
            let view = View {
                timing,
                process,
                ..View::default()
            };
            if let Ok(comparison) = compared(&recording, &view) {
                reports(&comparison);
            }
        }
    }
}

/// Joins every run, checks every trace and trial, and compares the first half of the trials with the rest.
pub fn compared(recording: &Recording, view: &View) -> Result<Comparison, Error> {
    let options = JoinOptions {
        process: view.process.clone(),
        window: view.window.clone(),
        show_private: false,
    };
    let inputs: Vec<RunInput<'_>> = recording
        .runs
        .iter()
        .map(|run| RunInput {
            recording,
            run,
            options: &options,
        })
        .collect();
    let timing = choose_timing(&inputs, view.timing)?;
    let trial_options = TrialOptions {
        phase_names: PhaseNames::default(),
        buckets: view.buckets.clone().unwrap_or_default(),
        kernel_rules: RULES.clone(),
        slowest: 5,
        timeline_spans: 50,
        ..TrialOptions::default()
    };
    let mut trials = Vec::new();
    for run in &recording.runs {
        let trace = join(recording, run.clone(), &options, timing)?;
        let trial = Trial::from_trace(&trace, format!("run {}", trace.run), view.units, &trial_options);
        check(&trace, &trial);
        conversions(trace, &trial);
        trials.push(trial);
    }
    let b = trials.split_off(trials.len().div_ceil(2));
    let b = (!b.is_empty()).then(|| Side {
        name: "b".to_owned(),
        trials: b,
    });
    let settings = Settings {
        timing,
        timing_b: timing,
        unit: view.units.map(|_| "token".to_owned()),
        unit_b: view.units.map(|_| "token".to_owned()),
        buckets: trial_options.buckets.clone(),
        window_a: view.window.clone(),
        window_b: view.window.clone(),
        slowest: trial_options.slowest,
    };
    let a = Side {
        name: "a".to_owned(),
        trials,
    };
    if b.is_none() {
        // The same trace on both sides: no row may show a change.
        let same = compare(
            a.clone(),
            Some(Side {
                name: "b".to_owned(),
                ..a.clone()
            }),
            settings.clone(),
            &CompareOptions::default(),
        )?;
        for row in same.phases.iter().chain(&same.buckets).chain([&same.busy, &same.total]) {
            let delta = row.change.map_or(0.0, |change| change.delta_us());
            assert!(delta == 0.0, "{} differs from itself by {delta}", row.key);
        }
        report(&same, Format::Terminal, &ReportOptions::default());
    }
    compare(a, b, settings, &CompareOptions::default())
}

fn check(trace: &Trace, trial: &Trial) {
    let rows_each = match trace.timing {
        Timing::Intervals | Timing::Live => 1,
        Timing::Points => 2,
    };
    let counted = trace.submissions.len() as u64;
    assert_eq!(
        trace.rows_read,
        counted * rows_each + trace.left_out.rows(),
        "{:?}",
        trace.left_out
    );
    let by_reason: u64 = Reason::ALL.iter().map(|reason| trace.left_out.get(*reason).rows).sum();
    assert_eq!(by_reason, trace.left_out.rows());
    assert!(trace.submissions_in_process >= counted);
    assert!(
        trace
            .submissions
            .is_sorted_by_key(|submission| (submission.start, submission.end()))
    );
    let total: u64 = trace.submissions.iter().map(|submission| submission.duration.0).sum();
    let window = trial.window.length();
    assert_eq!((trial.all.submissions, trial.all.total), (counted, Nanos(total)));
    assert!(trial.all.busy <= window && trial.all.busy <= trial.all.total);
    assert!(trial.labelled_total <= trial.all.total);
    for groups in [&trial.buckets, &trial.encoders, &trial.phases, &trial.channels] {
        let sum = |value: fn(&Group) -> u64| groups.iter().map(value).sum::<u64>();
        assert_eq!(sum(|group| group.stats.total.0), total);
        assert_eq!(sum(|group| group.stats.submissions), counted);
        assert!(sum(|group| group.stats.busy.0) >= trial.all.busy.0);
        for group in groups {
            assert!(group.stats.busy <= window && group.stats.busy <= group.stats.total);
        }
    }
    let idle: u64 = trial.gaps.bands.iter().map(|band| band.idle.0).sum();
    assert_eq!(
        idle,
        window.0 - trial.all.busy.0,
        "gaps and busy time make up the window"
    );
    for submission in &trace.submissions {
        assert!(submission.start >= trace.window.from && submission.start <= trace.window.to);
    }
    if let Some(check) = trace.cross_check {
        assert!(check.both + check.differ <= counted + check.only_points);
    }
}

/// Every file for other tools is written; JSON is JSON, and the stacks add up to the trial.
fn conversions(trace: Trace, trial: &Trial) {
    let side = |name: &str, trace| TracedSide {
        name: name.to_owned(),
        trials: vec![TracedTrial {
            input: "fuzz".to_owned(),
            number: 1,
            trace,
            live: None,
        }],
        phase_names: PhaseNames::default(),
    };
    let traces = Traces {
        a: side("a", trace.clone()),
        b: Some(side("b", trace)),
        missing: Vec::new(),
    };
    let written = |conversion| {
        let mut out = Vec::new();
        convert::write(&traces, conversion, &mut out).expect("a Vec takes everything");
        out
    };
    written(Conversion::Perfetto);
    written(Conversion::Pprof);
    for conversion in [Conversion::Chrome, Conversion::Speedscope, Conversion::Hatchet] {
        serde_json::from_slice::<serde_json::Value>(&written(conversion)).expect("JSON");
    }
    let stacks = String::from_utf8(written(Conversion::FoldedDiff)).expect("text");
    let mut sums = [0, 0];
    for line in stacks.lines() {
        let columns = line.rsplitn(3, ' ').take(2);
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum += column.parse::<u64>().expect("a number");
        }
    }
    assert_eq!(sums, [trial.all.total.0; 2]);
}

/// Every report renders, wide and narrow, short and with everything; the JSON is JSON.
pub fn reports(comparison: &Comparison) {
    let _ = headline(comparison);
    let short = ReportOptions::default();
    let everything = ReportOptions {
        width: 40,
        color: true,
        show_kernels: true,
        show_trials: true,
        show_private: true,
        command: Some("trace-attr".to_owned()),
        ..ReportOptions::default()
    };
    report(comparison, Format::Terminal, &short);
    report(comparison, Format::Terminal, &everything);
    report(comparison, Format::Markdown, &everything);
    for format in [
        Format::Csv,
        Format::Junit,
        Format::Github,
        Format::Benchstat,
        Format::GithubActionBenchmark,
        Format::Bencher,
    ] {
        report(comparison, format, &short);
    }
    let value: serde_json::Value =
        serde_json::from_str(&report(comparison, Format::Json, &everything)).expect("the report is JSON");
    assert_eq!(value["schema_version"], 1);
}

/// One report as text.
pub fn report(comparison: &Comparison, format: Format, options: &ReportOptions) -> String {
    let mut out = Vec::new();
    write(comparison, format, options, &mut out).expect("a Vec takes everything");
    let text = String::from_utf8(out).expect("a report is UTF-8");
    assert!(!text.is_empty());
    text
}

/// A time for a window rule.
pub fn window(from: Option<u64>, to: Option<u64>, skip_first: Option<u64>) -> WindowRule {
    WindowRule {
        from: from.map(Timestamp),
        to: to.map(Timestamp),
        skip_first: skip_first.map(Nanos),
        ..WindowRule::default()
    }
}
