//! Trials for tests of what is said of them: values go in, a [`Comparison`] comes out by the way that a user's takes.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

use trace_attr::attribution::Buckets;
use trace_attr::compare::gate::Percent;
use trace_attr::compare::{CompareOptions, Comparison, GateRules, Settings, Side, Trial, TrialOptions, compare};
use trace_attr::model::{
    Label, LabelId, LeftOut, Names, Nanos, Process, RecordingState, Submission, SubmissionId, Timestamp, Timing, Trace,
    Window, WindowRule,
};

pub fn settings(unit: Option<&str>) -> Settings {
    Settings {
        timing: Timing::Intervals,
        timing_b: Timing::Intervals,
        unit: unit.map(str::to_owned),
        unit_b: unit.map(str::to_owned),
        buckets: Buckets::default(),
        window_a: WindowRule::default(),
        window_b: WindowRule::default(),
        slowest: 0,
    }
}

/// One trial: a submission of each phase and duration (ns), one after the other.
pub fn trial(input: &str, rows: &[(&str, u64)], units: Option<u64>) -> Trial {
    let mut names = Names::default();
    let mut labels = Vec::new();
    let channel = names.intern("Compute");
    let encoder = names.intern("Compute Command 0");
    let mut at = 0;
    let submissions: Vec<Submission> = rows
        .iter()
        .enumerate()
        .map(|(number, (phase, ns))| {
            labels.push(Label::Known {
                command_buffer: names.intern(phase),
                encoder,
                coalesced: false,
            });
            let start = at;
            at += ns;
            Submission {
                start: Timestamp(start),
                duration: Nanos(*ns),
                id: SubmissionId::new(number as u64),
                encoder: None,
                command_buffer: None,
                latency: None,
                channel,
                label: LabelId(number as u32),
            }
        })
        .collect();
    let trace = Trace {
        run: 1,
        process: Process {
            name: "engine".into(),
            pid: None,
        },
        timing: Timing::Intervals,
        gpu: None,
        names,
        labels,
        encoders: None,
        window: Window {
            from: Timestamp(0),
            to: Timestamp(at),
        },
        window_found: trace_attr::model::WindowFound::Given,
        submissions_in_process: submissions.len() as u64,
        rows_read: submissions.len() as u64,
        submissions,
        left_out: LeftOut::default(),
        cross_check: None,
        kernels: None,
        shader_timeline_rows: None,
        shader_samples: Vec::new(),
        shader_sampled_span: None,
        state: RecordingState::default(),
        notes: Vec::new(),
        // Told apart by their names: every trial is a recording of its own.
        fingerprint: input
            .bytes()
            .fold(17, |sum: u64, byte| sum.wrapping_mul(31) + u64::from(byte)),
    };
    Trial::from_trace(&trace, input.to_owned(), units, &TrialOptions::default())
}

/// A side of trials, each with its phases; all have `units`.
pub fn side(name: &str, trials: &[Vec<(&str, u64)>], units: Option<u64>) -> Side {
    let trials = trials.iter().enumerate();
    Side {
        name: name.to_owned(),
        trials: trials
            .map(|(at, rows)| trial(&format!("{name}-{at}"), rows, units))
            .collect(),
    }
}

pub fn percent(value: f64) -> Percent {
    value.to_string().parse().unwrap()
}

/// A gate with a limit (percent) on each row.
pub fn gate(rows: &[(&str, f64)]) -> GateRules {
    GateRules {
        limits: rows
            .iter()
            .map(|(key, limit)| (key.parse().unwrap(), percent(*limit)))
            .collect(),
        pass_inconclusive: false,
        exceptions: Vec::new(),
        today: "2026-01-01".parse().unwrap(),
        self_test: false,
    }
}

pub fn gated(a: Side, b: Side, rows: &[(&str, f64)]) -> Comparison {
    let options = CompareOptions {
        gate: Some(gate(rows)),
        ..CompareOptions::default()
    };
    compare(a, Some(b), settings(None), &options).unwrap()
}
