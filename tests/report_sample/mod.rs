//! A comparison with everything in it that a report can meet, made by hand: two sides of three trials, labels that
//! are wide, long or hostile, rows of one side only, a zero row, values that were not measured.

use std::collections::{BTreeMap, BTreeSet};

use trace_attr::attribution::{
    Buckets, BusyLane, BusySpan, BusyTimeline, Durations, EncoderLabels, Gap, GapBand, Gaps, Group, Histogram,
    HistogramBin, KernelFamilies, Latency, SlowSubmission, Stats,
};
use trace_attr::compare::gate::{Exception, Gate, GateResult, GatedRow, Percent, RowKey, SelfTest, Table};
use trace_attr::compare::verdict::{Judgement, Test};
use trace_attr::compare::{
    Cell, Change, Comparison, Finding, GapRow, HistogramCell, HistogramRow, InferenceSettings, LatencyCell, Over, Row,
    Settings, Side, Slot, Trial,
};
use trace_attr::inference::{Verdict, welch};
use trace_attr::model::{
    CrossCheck, LeftOut, Nanos, Note, Process, Reason, RecordingState, ShaderSamples, StateTime, Timestamp, Timing,
    Window, WindowFound, WindowRule,
};

/// Tokens of every trial.
const UNITS: u64 = 64;
/// A label that tries everything.
pub(crate) const NASTY: &str = "a|b `c`\n\u{1b}[31m<img src=x> *x* _y_ [z](u) #1 @octocat &amp; \u{202e}evil\u{feff}";

/// What a group of submissions is in one trial: submissions, ns in all, CPU encoding ns.
type Trials = [(u64, u64, Option<u64>); 3];

fn over(values: impl IntoIterator<Item = f64>) -> Over {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    };
    Over {
        median,
        low: sorted[0],
        high: sorted[sorted.len() - 1],
    }
}

fn stats(&(submissions, total, cpu): &(u64, u64, Option<u64>), latency: bool) -> Stats {
    let mean = total as f64 / submissions.max(1) as f64;
    let part = |of: f64| Nanos((mean * of) as u64);
    Stats {
        submissions,
        total: Nanos(total),
        busy: Nanos(total - total / 50),
        durations: (submissions > 0).then(|| Durations {
            mean,
            p50: (mean * 0.9).round() + 0.5,
            p95: part(1.9),
            p99: part(2.6),
            min: part(0.2),
            max: part(4.0),
        }),
        encoders: Some(submissions / 2),
        command_buffers: Some(submissions / 4),
        cpu_encode: cpu.map(Nanos),
        latency: latency.then_some(Latency {
            samples: submissions,
            p50: 11_250.5,
            p95: Nanos(41_000),
        }),
    }
}

fn cell(trials: &Trials, latency: bool) -> Cell {
    let raw: Vec<Stats> = trials.iter().map(|trial| stats(trial, latency)).collect();
    let per_unit = |of: fn(&Stats) -> f64| over(raw.iter().map(|stats| of(stats) / UNITS as f64));
    let us = |of: fn(&Durations) -> f64| {
        let some: Vec<f64> = raw
            .iter()
            .filter_map(|stats| stats.durations.as_ref())
            .map(|d| of(d) / 1e3)
            .collect();
        (!some.is_empty()).then(|| over(some))
    };
    Cell {
        submissions: per_unit(|stats| stats.submissions as f64),
        total_us: per_unit(|stats| stats.total.0 as f64 / 1e3),
        busy_us: per_unit(|stats| stats.busy.0 as f64 / 1e3),
        encoders: Some(per_unit(|stats| stats.encoders.unwrap() as f64)),
        command_buffers: Some(per_unit(|stats| stats.command_buffers.unwrap() as f64)),
        us_per_command_buffer: (trials[0].0 > 0).then(|| {
            over(
                raw.iter()
                    .map(|s| s.total.0 as f64 / 1e3 / s.command_buffers.unwrap().max(1) as f64),
            )
        }),
        cpu_encode_us: trials[0]
            .2
            .map(|_| per_unit(|stats| stats.cpu_encode.unwrap().0 as f64 / 1e3)),
        p50_us: us(|d| d.p50),
        p95_us: us(|d| d.p95.0 as f64),
        p99_us: us(|d| d.p99.0 as f64),
        mean_us: us(|d| d.mean),
        min_us: us(|d| d.min.0 as f64),
        max_us: us(|d| d.max.0 as f64),
        latency: latency.then(|| LatencyCell {
            samples: over(raw.iter().map(|stats| stats.submissions as f64)),
            p50_us: over([11.2505, 11.4, 11.1]),
            p95_us: over([41.0, 42.5, 40.25]),
        }),
        trials: raw,
    }
}

/// B's total, for shares.
const B_TOTAL_US: f64 = 7_412.5;

fn row(key: &str, a: Option<Trials>, b: Option<Trials>) -> Row {
    let latency = key != "Blit";
    let (a, b) = (a.map(|a| cell(&a, latency)), b.map(|b| cell(&b, latency)));
    let share = |delta: f64| Some(100.0 * delta / B_TOTAL_US);
    let change = match (&a, &b) {
        (Some(a), Some(b)) => {
            let delta = a.total_us.median - b.total_us.median;
            let positive = b.total_us.median > 0.0 && a.submissions.median > 0.0;
            let count = a.submissions.median / b.submissions.median;
            let ratio = a.total_us.median / b.total_us.median;
            Change::Both {
                delta_us: delta,
                delta_pct: if b.total_us.median > 0.0 {
                    Some(100.0 * (ratio - 1.0))
                } else {
                    Some(0.0)
                },
                share_pct: share(delta),
                count_pct: positive.then_some(100.0 * (count - 1.0)),
                per_submission_pct: positive.then_some(100.0 * (ratio / count - 1.0)),
            }
        }
        (Some(a), None) => Change::OnlyA {
            delta_us: a.total_us.median,
            share_pct: share(a.total_us.median),
        },
        (None, Some(b)) => Change::OnlyB {
            delta_us: -b.total_us.median,
            share_pct: share(-b.total_us.median),
        },
        (None, None) => panic!("a row needs a side"),
    };
    let judgement = judged(a.as_ref(), b.as_ref());
    Row {
        key: key.to_owned(),
        a,
        b,
        change: Some(change),
        flags: Vec::new(),
        judgement: Some(judgement),
    }
}

/// What trials of these cells allow to be said, with a q for the largest changes only.
fn judged(a: Option<&Cell>, b: Option<&Cell>) -> Judgement {
    let say = |verdict, test| Judgement {
        verdict,
        reasons: Vec::new(),
        q: None,
        test,
        relative: None,
    };
    let (Some(a), Some(b)) = (a, b) else {
        let verdict = if a.is_some() {
            Verdict::OnlyInA
        } else {
            Verdict::OnlyInB
        };
        return say(verdict, None);
    };
    let logs = |cell: &Cell| {
        cell.trials
            .iter()
            .map(|stats| (stats.total.0 as f64).ln())
            .collect::<Vec<f64>>()
    };
    if a.total_us.low <= 0.0 || b.total_us.low <= 0.0 {
        return Judgement {
            reasons: vec!["both_zero"],
            ..say(Verdict::Unchanged, None)
        };
    }
    let interval = welch(&logs(a), &logs(b)).unwrap();
    let (verdict, reasons, needed) = if interval.low() > 0.0 {
        (Verdict::Regressed, vec![], None)
    } else if interval.high() < 0.0 {
        (Verdict::Improved, vec![], None)
    } else {
        (Verdict::Inconclusive, vec!["wide_interval"], Some(7))
    };
    let test = Some(Test {
        interval,
        trials_needed: needed,
    });
    Judgement {
        reasons,
        q: Some(interval.p.min(1.0)),
        ..say(verdict, test)
    }
}

/// A gate with a row of each result, an exception and a label that tries everything.
fn gate(busy: &Row, total: &Row) -> Gate {
    let limit = |key: RowKey, limit_pct: f64, result, reason, row: Option<&Row>| GatedRow {
        key,
        limit_pct,
        result,
        reason,
        excused: false,
        trials_needed: (reason == Some("limit_in_interval")).then_some(8),
        delta_pct: row.and_then(|row| match row.change {
            Some(Change::Both { delta_pct, .. }) => delta_pct,
            _ => None,
        }),
        judgement: row.and_then(|row| row.judgement.clone()).unwrap_or(Judgement {
            verdict: Verdict::Inconclusive,
            reasons: vec!["missing"],
            q: None,
            test: None,
            relative: None,
        }),
        exception: None,
    };
    let nasty = RowKey::In(Table::Phases, NASTY.to_owned());
    Gate {
        result: GateResult::Failed,
        rows: vec![
            limit(RowKey::Busy, 3.0, GateResult::Failed, None, Some(busy)),
            GatedRow {
                exception: Some(Exception {
                    row: RowKey::Total,
                    up_to: "25 %".parse::<Percent>().unwrap(),
                    until: "2026-12-31".parse().unwrap(),
                    why: "the new tokenizer, issue 12".to_owned(),
                }),
                ..limit(RowKey::Total, 25.0, GateResult::Passed, None, Some(total))
            },
            limit(
                RowKey::In(Table::Channels, "Compute".to_owned()),
                14.0,
                GateResult::CannotJudge,
                Some("limit_in_interval"),
                Some(total),
            ),
            limit(nasty, 1.0, GateResult::CannotJudge, Some("missing"), None),
        ],
        self_test: Some(SelfTest {
            rows: vec![(RowKey::Busy, Some(SelfTest::EXPECTED)), (RowKey::Total, None)],
        }),
    }
}

fn flagged(mut row: Row, flags: &[&'static str]) -> Row {
    row.flags = flags.to_vec();
    row
}

/// Three trials around a submission count and a total of ns, with an even spread.
fn around(submissions: u64, ns: u64) -> Option<Trials> {
    Some([
        (submissions, ns, Some(ns / 9)),
        (submissions + submissions / 40, ns + ns / 30, Some(ns / 9 + 321)),
        (
            submissions - submissions / 60,
            ns - ns / 45,
            Some((ns / 9).saturating_sub(123)),
        ),
    ])
}

/// Without CPU encoding times, as buckets and channels are.
fn gpu(trials: Option<Trials>) -> Option<Trials> {
    trials.map(|trials| trials.map(|(submissions, ns, _)| (submissions, ns, None)))
}

/// Durations around 1, 10 and 100 µs, those of A longer; few, so that a picture of them can be checked by hand.
fn histogram(mine: bool, number: u64) -> Histogram {
    let mut histogram = Histogram::default();
    let longer = if mine { 5 } else { 4 };
    for (ns, count) in [
        (250 * longer, 640),
        (2_500 * longer, 1_280),
        (25_000 * longer, 64 + number),
    ] {
        (0..count).for_each(|_| histogram.add(Nanos(ns)));
    }
    histogram
}

/// What [`histogram`] gives for both sides, per token.
fn histogram_rows() -> Vec<HistogramRow> {
    let sides = [true, false].map(|mine| [1, 2, 3].map(|number| histogram(mine, number)));
    let ranges = || sides.iter().flatten().filter_map(Histogram::range);
    let first = ranges().map(|range| *range.start()).min().unwrap();
    let last = ranges().map(|range| *range.end()).max().unwrap();
    let row = |bin| {
        let cell = |trials: &[Histogram; 3]| {
            let per_unit =
                |of: fn(HistogramBin) -> u64| over(trials.iter().map(|trial| of(trial.bin(bin)) as f64 / UNITS as f64));
            let time = per_unit(|bin| bin.total.0);
            Some(HistogramCell {
                submissions: per_unit(|bin| bin.submissions),
                total_us: Over {
                    median: time.median / 1e3,
                    low: time.low / 1e3,
                    high: time.high / 1e3,
                },
            })
        };
        HistogramRow {
            from: Histogram::lower_edge(bin),
            to: Histogram::lower_edge(bin + 1),
            a: cell(&sides[0]),
            b: cell(&sides[1]),
        }
    };
    (first..=last).map(row).collect()
}

/// Busy in the first tenth of every millisecond.
fn timeline(from: Timestamp, length: Nanos) -> BusyTimeline {
    let span = |at| BusySpan {
        start: from + Nanos(at * 1_000_000),
        length: Nanos(100_000),
        busy: Nanos(100_000),
    };
    BusyTimeline {
        from,
        to: from + length,
        lanes: vec![BusyLane {
            channel: None,
            spans: (0..length.0 / 1_000_000).map(span).collect(),
        }],
    }
}

fn trial(side: &str, number: u64, pid: u32, total: u64) -> Trial {
    let mut left_out = LeftOut::default();
    left_out.add(Reason::OtherProcess, 412 + number, Some(Nanos(9_876_543)));
    left_out.add(Reason::Invalid, 2, None);
    if side == "hf2q" && number == 2 {
        left_out.add(Reason::Nested, 18, Some(Nanos(1_234_567)));
    }
    let start = Timestamp(812_345_678);
    let length = Nanos(total + 61_000_000);
    let mine = side == "hf2q";
    let submissions = 12_800 + 7 * number;
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<String>>()
    };
    let families: BTreeMap<String, BTreeSet<String>> = if mine {
        BTreeMap::from([
            (
                "moe_q4_0_mv".to_owned(),
                names(&[
                    "kernel_mul_mv_id_q4_0_f32",
                    "kernel_mul_mv_id_q4_0_f32_nsg4",
                    "kernel_mul_mv_id_q4_0_f32_rows8",
                    "kernel_mul_mv_id_q4_0_f32_swiglu",
                    "kernel_mul_mv_id_q4_0_f32_tail",
                    "kernel_mul_mv_id_q4_0_f32_wide",
                ]),
            ),
            (
                "flash_attn".to_owned(),
                names(&["kernel_flash_attn_ext_f16_h128", "kernel_flash_attn_ext_vec_f16_h128"]),
            ),
            ("other_rope|x".to_owned(), names(&["::rope\u{200b}_neox"])),
        ])
    } else {
        BTreeMap::from([(
            "flash_attn".to_owned(),
            names(&["kernel_flash_attn_ext_f16_dk128_dv128"]),
        )])
    };
    Trial {
        input: format!("{side}-{number}"),
        run: 1,
        process: Process {
            name: if mine { "hf2q".into() } else { "llama-cli".into() },
            pid: Some(pid),
        },
        units: Some(UNITS),
        gpu: Some("Apple M5 Max".into()),
        rows_read: submissions + left_out.rows(),
        submissions_in_process: submissions,
        all: stats(&(submissions, total, Some(total / 9)), true),
        window_found: WindowFound::Given,
        window: Window {
            from: start,
            to: start + length,
        },
        first_start: Some(start),
        last_end: Some(start + length),
        buckets: Vec::<Group>::new(),
        encoders: Vec::new(),
        phases: Vec::new(),
        channels: Vec::new(),
        encoder_labels: Some(EncoderLabels {
            all: 2_560,
            labelled: if mine { 2_498 } else { 0 },
        }),
        labelled_total: Nanos(if mine { total - total / 60 } else { 0 }),
        label_matches: None,
        kernels: Some(KernelFamilies(families)),
        shader_timeline_rows: Some(if mine { 1_204 } else { 0 }),
        shader_samples: if mine && number == 1 {
            vec![
                ShaderSamples {
                    name: "kernel_mul_mv_id_q4_0_f32".into(),
                    rows: 900,
                    sampled: Nanos(410_000_000),
                },
                ShaderSamples {
                    name: "kernel_flash_attn_ext_f16_h128".into(),
                    rows: 304,
                    sampled: Nanos(95_500_000),
                },
            ]
        } else {
            Vec::new()
        },
        shader_sampled_span: (mine && number == 1).then_some(Window {
            from: Timestamp(900_000_000),
            to: Timestamp(1_150_000_000),
        }),
        histogram: Some(histogram(mine, number)),
        timeline: Some(timeline(start, length)),
        gaps: Gaps {
            bands: vec![
                GapBand {
                    key: "lt_10us".into(),
                    count: 9_000 + number,
                    idle: Nanos(30_000_000 + number),
                },
                GapBand {
                    key: "10_100us".into(),
                    count: 640,
                    idle: Nanos(21_000_000),
                },
                GapBand {
                    key: "ge_100us".into(),
                    count: 3,
                    idle: Nanos(10_000_000),
                },
            ],
            longest: vec![
                Gap {
                    start: Timestamp(913_000_000 + number),
                    length: Nanos(4_210_000 + number * 1_000),
                    after: Some("lm_head".into()),
                    before: Some("moe.ffn.gate_up".into()),
                },
                Gap {
                    start,
                    length: Nanos(180_000),
                    after: None,
                    before: Some(NASTY.into()),
                },
            ],
        },
        slowest: vec![
            SlowSubmission {
                start: Timestamp(955_123_456),
                duration: Nanos(1_482_910 + number * 10_000),
                channel: "Compute".into(),
                phase: if mine { "lm_head".into() } else { "(unlabelled)".into() },
                encoder: "compute".into(),
            },
            SlowSubmission {
                start: Timestamp(999_000_041),
                duration: Nanos(911_041),
                channel: "Compute".into(),
                phase: if mine {
                    "行列積".into()
                } else {
                    "(unlabelled)".into()
                },
                encoder: "compute".into(),
            },
        ],
        left_out,
        cross_check: mine.then_some(CrossCheck {
            both: 12_790,
            only_points: 3,
            only_intervals: 7,
            differ: 2,
            disputed: Nanos(81_250),
        }),
        state: RecordingState {
            end_reason: Some("Target app exited".into()),
            start_date: Some("2026-05-01T10:00:00Z".into()),
            thermal: vec![StateTime {
                state: "Nominal".into(),
                induced: false,
                time: length,
            }],
            performance: if mine {
                vec![
                    StateTime {
                        state: "Maximum".into(),
                        induced: true,
                        time: Nanos(length.0 - 20_000_000),
                    },
                    StateTime {
                        state: "Medium".into(),
                        induced: false,
                        time: Nanos(20_000_000),
                    },
                ]
            } else {
                Vec::new()
            },
            shader_timeline: Some(if mine { "Enabled".into() } else { "Disabled".into() }),
            ..RecordingState::default()
        },
        notes: Vec::new(),
        fingerprint: 1,
    }
}

/// The key of a wide label that is far too long.
pub(crate) fn long_wide() -> String {
    "試".repeat(100)
}

/// `hf2q` against `llama`.
pub(crate) fn two_sides() -> Comparison {
    let total = row("total", around(12_800, 541_000_000), around(12_300, 474_400_000));
    let mut busy = row("busy", around(12_800, 541_000_000), around(12_300, 474_400_000));
    if let (Some(Change::Both { delta_us, .. }), Some(a), Some(b)) = (&mut busy.change, &busy.a, &busy.b) {
        *delta_us = a.busy_us.median - b.busy_us.median;
    }
    let phases = vec![
        row("moe.ffn.gate_up", around(3_900, 231_000_000), None),
        flagged(
            row("attn.qkv & attn.rope", around(2_600, 120_000_000), None),
            &["coalesced"],
        ),
        row(
            "attn.flash",
            around(1_280, 88_640_000),
            Some([
                (1_280, 79_000_000, Some(9)),
                (0, 0, Some(0)),
                (1_281, 79_100_000, Some(9)),
            ]),
        ),
        flagged(
            row("(unlabelled)", around(640, 61_000_000), around(12_300, 395_000_000)),
            &["incomplete"],
        ),
        row("行列積", around(640, 22_000_000), None),
        row("✅ ok", around(64, 9_000_000), None),
        row("e\u{301}tape", around(64, 5_000_000), None),
        row(&long_wide(), around(64, 3_900_000), None),
        row(NASTY, around(64, 500_000), None),
        row("never.ran", Some([(0, 0, Some(0)); 3]), Some([(0, 0, Some(0)); 3])),
        row("llama.only", None, around(64, 320)),
    ];
    let finding = |section, key: &str, delta: f64, hint: Option<&str>| Finding {
        section,
        key: key.into(),
        delta_us: Some(delta),
        share_pct: Some(100.0 * delta / B_TOTAL_US),
        hint: hint.map(str::to_owned),
        text: format!(
            "{section}: {key} takes {delta:.1} µs/token more ({:.1} % of llama's total)",
            100.0 * delta / B_TOTAL_US
        ),
    };
    let side = |name: &str, pids: [u32; 3], total: u64| Side {
        name: name.into(),
        trials: (1..=3)
            .zip(pids)
            .map(|(n, pid)| trial(name, n, pid, total + n * 1_000_000))
            .collect(),
    };
    let slots = [1, 4, 5, 2, 3, 6].map(|rank| Slot {
        start: Some(format!("2026-09-01T10:{rank:02}:00.000+00:00")),
        rank: Some(rank),
    });
    Comparison {
        gate: Some(gate(&busy, &total)),
        controls: None,
        slots: slots.into(),
        inference: InferenceSettings {
            margin_pct: 1.0,
            paired: false,
            forced: false,
            noise_sessions: None,
            baseline: false,
        },
        settings: Settings {
            timing: Timing::Intervals,
            timing_b: Timing::Intervals,
            unit: Some("token".into()),
            unit_b: Some("token".into()),
            buckets: Buckets {
                edges: vec![2_000, 8_000, 32_000, 80_000],
                names: ["xs_<2us", "sm_2_8us", "md_8_32us", "lg_32_80us", "xl_>=80us"]
                    .map(str::to_owned)
                    .into(),
            },
            window_a: WindowRule::default(),
            window_b: WindowRule::default(),
            slowest: 4,
        },
        a: side("hf2q", [4_242, 4_243, 4_244], 541_000_000),
        b: Some(side("llama", [777, 778, 779], 474_400_000)),
        busy,
        total,
        buckets: vec![
            row("xs_<2us", gpu(around(3_200, 4_810_000)), gpu(around(1_600, 2_400_000))),
            row(
                "sm_2_8us",
                gpu(around(4_100, 19_300_000)),
                gpu(around(4_080, 19_450_000)),
            ),
            row(
                "md_8_32us",
                gpu(around(1_340, 23_663_861)),
                gpu(around(1_344, 21_013_500)),
            ),
            row(
                "lg_32_80us",
                gpu(around(2_100, 101_234_567)),
                gpu(around(2_105, 99_000_001)),
            ),
            row(
                "xl_>=80us",
                gpu(around(2_060, 391_991_572)),
                gpu(around(3_171, 332_536_499)),
            ),
        ],
        encoders: vec![
            row("compute", around(12_700, 540_000_000), around(12_300, 474_000_000)),
            row("blit", around(64, 1_000_000), None),
        ],
        phases,
        label_map: None,
        kernel_hints: BTreeMap::new(),
        channels: vec![
            row(
                "Compute",
                gpu(around(12_700, 540_000_000)),
                gpu(around(12_300, 474_000_000)),
            ),
            row("Blit", gpu(around(64, 1_000_000)), gpu(around(64, 400_000))),
        ],
        histogram: histogram_rows(),
        gaps: ["lt_10us", "10_100us", "ge_100us"]
            .into_iter()
            .zip([(140.6, 468.75), (10.0, 328.125), (0.046_875, 156.25)])
            .map(|(key, (count, idle))| {
                let near = |value: f64| over([value, value * 1.01, value * 0.98]);
                GapRow {
                    key: key.into(),
                    a_count: near(count),
                    a_idle_us: near(idle),
                    b: Some((near(count * 0.7), near(idle * 0.6))),
                }
            })
            .collect(),
        findings: vec![
            finding(
                "phases",
                "moe.ffn.gate_up",
                3_609.4,
                Some("mul_mv_id_q4_0: try rows = 8"),
            ),
            finding("buckets", "xl_>=80us", 929.0, None),
            finding("phases", NASTY, 7.8, None),
        ],
        notes: vec![
            Note::warning(
                "cross_check",
                "hf2q-2: 12 of 12,802 submissions (1.4 % of GPU time) differ between intervals and execution points",
            ),
            Note::remark(
                "merged_nodes",
                "llama-1: two nodes of `metal-gpu-intervals` in one run were merged",
            ),
            Note::remark("label", format!("a label in a note: {NASTY}")),
        ],
        incomparable: Vec::new(),
    }
}

/// `hf2q` alone, without a unit, one trial, with little known.
pub(crate) fn one_side() -> Comparison {
    let mut one = two_sides();
    one.b = None;
    one.gate = None;
    one.slots.truncate(1);
    one.settings.unit = None;
    one.settings.timing = Timing::Points;
    one.a.trials.truncate(1);
    for row in &mut one.histogram {
        row.b = None;
        let cell = row.a.as_mut().unwrap();
        for value in [&mut cell.submissions, &mut cell.total_us] {
            *value = over([value.median * UNITS as f64]);
        }
    }
    let trial = &mut one.a.trials[0];
    trial.units = None;
    trial.rows_read = 2 * trial.all.submissions + trial.left_out.rows();
    trial.gpu = None;
    trial.encoder_labels = None;
    trial.kernels = None;
    trial.shader_timeline_rows = None;
    trial.shader_samples.clear();
    trial.state = RecordingState::default();
    trial.cross_check = None;
    let rows = [&mut one.buckets, &mut one.encoders, &mut one.phases, &mut one.channels]
        .into_iter()
        .flatten();
    for row in rows.chain([&mut one.busy, &mut one.total]) {
        row.b = None;
        row.change = None;
        row.judgement = None;
        if let Some(cell) = &mut row.a {
            cell.trials.truncate(1);
            // Per trial instead of per token, and without a spread.
            let first = |value: &mut Over| *value = over([value.median * UNITS as f64]);
            let values = [&mut cell.submissions, &mut cell.total_us, &mut cell.busy_us];
            let optional = [&mut cell.encoders, &mut cell.command_buffers, &mut cell.cpu_encode_us];
            values.into_iter().chain(optional.into_iter().flatten()).for_each(first);
        }
    }
    one.phases.retain(|row| row.a.is_some());
    for row in &mut one.gaps {
        row.b = None;
    }
    for finding in &mut one.findings {
        finding.text = format!(
            "{}: {} takes {:.1} µs",
            finding.section,
            finding.key,
            finding.delta_us.unwrap()
        );
    }
    one
}
