//! Properties of verdicts and of the gate over random trials, by the way that a user's trials take.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    missing_docs
)]

mod trials;

use proptest::prelude::*;
use trace_attr::compare::gate::{GateResult, RowKey};
use trace_attr::compare::{CompareOptions, Comparison, Judgement, Side, Verdict, compare};
use trace_attr::inference::percent;
use trace_attr::report::{Format, ReportOptions, write};
use trials::{gate, gated, settings, side};

const PHASES: [&str; 5] = ["attn", "ffn", "head", "copy", "norm"];

/// Phases of one trial with their durations in ns.
type Rows = Vec<(&'static str, u64)>;

/// Trials of one side: some phases change, some are missing in a trial or on the side, some are noisy, some are exact.
fn trials_of_a_side() -> impl Strategy<Value = Vec<Rows>> {
    let phase = (
        prop_oneof![4 => 100_000..110_000_u64, 1 => Just(100_000), 1 => Just(0)],
        prop_oneof![3 => Just(2_000_u64), 1 => Just(0), 1 => Just(60_000)],
        prop_oneof![6 => Just(1.0), 1 => Just(0.7), 1 => Just(0.0)],
    );
    let phases = prop::collection::vec(phase, PHASES.len());
    let draws = prop::collection::vec(prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), PHASES.len()), 1..6);
    (phases, draws).prop_map(|(phases, draws)| {
        let trial = |draws: Vec<(f64, f64)>| -> Rows {
            let kept = phases.iter().zip(draws).zip(PHASES);
            kept.filter(|(((_, _, there), (_, chance)), _)| chance < there)
                .map(|(((base, noise, _), (draw, _)), name)| {
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 60,000")]
                    let noise = (*noise as f64 * draw) as u64;
                    (name, base + noise)
                })
                .collect()
        };
        draws.into_iter().map(trial).collect()
    })
}

fn two_sides() -> impl Strategy<Value = (Side, Side)> {
    // With a unit unequal numbers of submissions still compare.
    let units = prop_oneof![3 => Just(Some(64)), 1 => Just(None)];
    (trials_of_a_side(), trials_of_a_side(), units)
        .prop_map(|(a, b, units)| (side("a", &a, units), side("b", &b, units)))
}

const GATED: [&str; 5] = ["busy", "total", "phase:attn", "phase:nowhere", "bucket:xl_>=80us"];

fn limit() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(0.5), Just(3.0), Just(40.0)]
}

fn with_limit(a: Side, b: Side, limit: f64) -> Comparison {
    gated(a, b, &GATED.map(|key| (key, limit)))
}

fn judged(comparison: &Comparison) -> Vec<(RowKey, &Judgement)> {
    let rows = comparison.rows().into_iter();
    rows.map(|(key, row)| (key, row.judgement.as_ref().unwrap())).collect()
}

fn mirrored(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Regressed => Verdict::Improved,
        Verdict::Improved => Verdict::Regressed,
        Verdict::OnlyInA => Verdict::OnlyInB,
        Verdict::OnlyInB => Verdict::OnlyInA,
        same => same,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn swapping_the_sides_mirrors_every_verdict((a, b) in two_sides(), limit in limit()) {
        let there = with_limit(a.clone(), b.clone(), limit);
        let back = with_limit(b, a, limit);
        prop_assert_eq!(there.rows().len(), back.rows().len());
        for (key, judgement) in judged(&there) {
            let other = back.row(&key).unwrap().judgement.as_ref().unwrap();
            prop_assert_eq!(other.verdict, mirrored(judgement.verdict), "{}", key);
            prop_assert_eq!(&other.reasons, &judgement.reasons);
            prop_assert_eq!(other.q, judgement.q);
            match (&judgement.test, &other.test) {
                (Some(one), Some(two)) => {
                    prop_assert_eq!(one.interval.low(), -two.interval.high());
                    prop_assert_eq!(one.interval.high(), -two.interval.low());
                    prop_assert_eq!(one.interval.p, two.interval.p);
                    prop_assert_eq!(one.interval.resolution, two.interval.resolution);
                    prop_assert_eq!(one.trials_needed, two.trials_needed);
                }
                (one, two) => prop_assert!(one.is_none() && two.is_none()),
            }
        }
        // What the gate decides by is the mirrored interval too; its answer is not, since a limit is one-sided.
        let (there, back) = (there.gate.unwrap(), back.gate.unwrap());
        for (one, two) in there.rows.iter().zip(&back.rows) {
            prop_assert_eq!(&one.key, &two.key);
            prop_assert_eq!(mirrored(one.judgement.verdict), two.judgement.verdict);
            let change = |row: &trace_attr::compare::gate::GatedRow| row.judgement.test.map(|test| test.interval.change);
            prop_assert_eq!(change(one), change(two).map(|change| 0.0 - change));
            prop_assert!(
                (one.result, two.result) != (GateResult::Failed, GateResult::Failed),
                "both directions cannot be slower"
            );
        }
    }

    #[test]
    fn the_gate_never_contradicts_the_verdict((a, b) in two_sides(), limit in limit()) {
        let comparison = with_limit(a, b, limit);
        let gate = comparison.gate.as_ref().unwrap();
        for row in &gate.rows {
            let verdict = row.judgement.verdict;
            if row.result == GateResult::Failed {
                prop_assert_eq!(verdict, Verdict::Regressed, "{}", row.key);
            }
            match verdict {
                Verdict::Improved | Verdict::Unchanged => prop_assert_eq!(row.result, GateResult::Passed, "{}", row.key),
                Verdict::Incomparable | Verdict::OnlyInA | Verdict::OnlyInB => {
                    prop_assert_eq!(row.result, GateResult::CannotJudge, "{}", row.key);
                }
                Verdict::Regressed | Verdict::Inconclusive => {}
            }
            prop_assert_eq!(row.result == GateResult::CannotJudge, row.reason.is_some());
            if let (Some(shown), Some(found)) = (comparison.row(&row.key), row.judgement.test) {
                // The interval that decides is the one that stands in the table.
                prop_assert_eq!(shown.judgement.as_ref().unwrap().test.unwrap().interval, found.interval);
            }
        }
        let any = |result| gate.rows.iter().any(|row| row.result == result);
        let worst = if any(GateResult::Failed) {
            GateResult::Failed
        } else if any(GateResult::CannotJudge) {
            GateResult::CannotJudge
        } else {
            GateResult::Passed
        };
        prop_assert_eq!(gate.result, worst);
    }

    #[test]
    fn q_is_never_below_p((a, b) in two_sides()) {
        let comparison = compare(a, Some(b), settings(None), &CompareOptions::default()).unwrap();
        for (key, judgement) in judged(&comparison) {
            let alone = matches!(key, RowKey::Busy | RowKey::Total);
            let q = judgement.q;
            prop_assert_eq!(q.is_some(), !alone && judgement.test.is_some(), "{}", key);
            if let (Some(q), Some(test)) = (q, judgement.test) {
                prop_assert!(test.interval.p <= q && q <= 1.0, "{}: p {}, q {}", key, test.interval.p, q);
                if judgement.verdict == Verdict::Regressed || judgement.verdict == Verdict::Improved {
                    prop_assert!(q <= 0.10);
                }
            }
        }
    }

    #[test]
    fn the_order_of_rows_does_not_matter(
        (a, b) in (trials_of_a_side(), trials_of_a_side()),
        turn in 1..PHASES.len(),
        limit in limit(),
    ) {
        let turned = |trials: &[Rows]| -> Vec<Rows> {
            let turn = |rows: &Rows| {
                let mut rows = rows.clone();
                let middle = turn.min(rows.len());
                rows.rotate_left(middle);
                rows
            };
            trials.iter().map(turn).collect()
        };
        let one = with_limit(side("a", &a, Some(64)), side("b", &b, Some(64)), limit);
        let other = with_limit(side("a", &turned(&a), Some(64)), side("b", &turned(&b), Some(64)), limit);
        prop_assert_eq!(judged(&one), judged(&other));
        prop_assert_eq!(one.gate, other.gate);
    }

    #[test]
    fn rows_beside_it_do_not_change_what_is_said_of_a_gated_row(
        (a, b) in (trials_of_a_side(), trials_of_a_side()),
        (more_a, more_b) in (trials_of_a_side(), trials_of_a_side()),
        limit in limit(),
    ) {
        let with = |trials: &[Rows], more: &[Rows]| -> Vec<Rows> {
            let added = |(at, rows): (usize, &Rows)| {
                let beside = more.get(at).into_iter().flatten();
                let beside = beside.map(|(name, ns)| match *name {
                    "attn" => ("other", *ns),
                    name => (name, *ns),
                });
                rows.iter().copied().filter(|(name, _)| *name == "attn").chain(beside).collect()
            };
            trials.iter().enumerate().map(added).collect()
        };
        let said = |a: &[Rows], b: &[Rows]| {
            let comparison = gated(side("a", a, Some(64)), side("b", b, Some(64)), &[("phase:attn", limit)]);
            let gate = comparison.gate.unwrap();
            (gate.rows[0].result, gate.rows[0].reason, gate.rows[0].judgement.clone())
        };
        let alone = said(&with(&a, &[]), &with(&b, &[]));
        let among = said(&with(&a, &more_a), &with(&b, &more_b));
        // A row that neither side has is no row, with or without others.
        prop_assert_eq!(alone, among);
    }

    #[test]
    fn every_number_is_finite((a, b) in two_sides(), limit in limit()) {
        let comparison = with_limit(a, b, limit);
        for (key, judgement) in judged(&comparison) {
            if let Some(test) = &judgement.test {
                let interval = &test.interval;
                let numbers = [interval.low(), interval.high(), interval.df, interval.p, interval.resolution];
                prop_assert!(numbers.iter().all(|x| x.is_finite()), "{}: {:?}", key, interval);
                prop_assert!(numbers.iter().all(|x| percent(*x).is_finite()));
                prop_assert!(interval.low() <= interval.change && interval.change <= interval.high());
                prop_assert!((0.0..=1.0).contains(&interval.p));
            }
        }
        let mut json = Vec::new();
        write(&comparison, Format::Json, &ReportOptions::default(), &mut json).unwrap();
        let json = String::from_utf8(json).unwrap();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
        let words = json.split(|c: char| !c.is_ascii_alphanumeric());
        for word in words {
            prop_assert!(!matches!(word, "NaN" | "nan" | "inf" | "Infinity"));
        }
    }

    /// Both limits are printed alike; which side of them the bound lies on decides.
    #[test]
    fn a_limit_beside_a_bound_is_decided_by_unrounded_values(
        a in prop::collection::vec(104_000_000..106_000_000_u64, 2..5),
        b in prop::collection::vec(100_000_000..101_000_000_u64, 2..5),
    ) {
        let of = |name, values: &[u64]| {
            let trials: Vec<Rows> = values.iter().map(|ns| vec![("attn", *ns)]).collect();
            side(name, &trials, Some(64))
        };
        let (a, b) = (of("a", &a), of("b", &b));
        let at = |limit: f64| {
            let comparison = gated(a.clone(), b.clone(), &[("busy", limit)]);
            comparison.gate.unwrap().rows.remove(0)
        };
        let interval = at(0.0).judgement.test.unwrap().interval;
        let (low, high) = (percent(interval.low()), percent(interval.high()));
        prop_assume!(low > 0.01 && high - low > 0.01);
        prop_assert_eq!(at(low - 1e-6).result, GateResult::Failed);
        prop_assert_eq!(at(low + 1e-6).result, GateResult::CannotJudge);
        prop_assert_eq!(at(high - 1e-6).result, GateResult::CannotJudge);
        prop_assert_eq!(at(high + 1e-6).result, GateResult::Passed);
        // On the bound itself: "more than" is not shown at the lower one, "at most" is at the upper one.
        prop_assert_eq!(at(low).result, GateResult::CannotJudge);
        prop_assert_eq!(at(high).result, GateResult::Passed);
    }
}

/// Trials of equal values: the interval is a point, and 3 % keep a limit of 3 % although ln 103 − ln 100 > ln 1.03 in
/// the last bit.
#[test]
fn exactly_the_limit_keeps_it() {
    let flat = |name, ns| side(name, &vec![vec![("attn", ns)]; 3], Some(64));
    for (whole, pct) in [(103, 3.0), (101, 1.0), (110, 10.0), (107, 7.0)] {
        for scale in [1, 10, 1_000, 7_919] {
            let comparison = gated(flat("a", whole * scale), flat("b", 100 * scale), &[("busy", pct)]);
            assert_eq!(comparison.gate.unwrap().result, GateResult::Passed, "{whole} × {scale}");
        }
    }
    let above = gated(flat("a", 103_001), flat("b", 100_000), &[("busy", 3.0)]);
    assert_eq!(above.gate.unwrap().result, GateResult::Failed);
}

/// 105 against 100 submissions is 4.8 % of the one and 5 % of the other: the same pair must not compare in one
/// direction only.
#[test]
fn whether_sides_compare_does_not_depend_on_their_order() {
    let of = |name: &str, count: usize| side(name, &vec![vec![("attn", 1_000); count]; 2], None);
    for count in 100..112 {
        let reasons = |a: Side, b: Side| {
            let comparison = compare(a, Some(b), settings(None), &CompareOptions::default()).unwrap();
            comparison
                .incomparable
                .iter()
                .map(|reason| reason.code)
                .collect::<Vec<_>>()
        };
        let there = reasons(of("a", count), of("b", 100));
        assert_eq!(there, reasons(of("a", 100), of("b", count)), "{count}");
        assert_eq!(there.is_empty(), count <= 105, "{count}");
    }
}

/// With all of one side first, pairs would take a drift for a change: the settings say what was done, not what was
/// asked.
#[test]
fn pairs_that_are_not_taken_are_not_reported() {
    let dated = |name: &str, minutes: [u32; 3]| {
        let rows = |at: u64| vec![("attn", 100_000 + at)];
        let mut side = side(name, &[rows(5), rows(90), rows(40)], Some(64));
        for (trial, minute) in side.trials.iter_mut().zip(minutes) {
            trial.state.start_date = Some(format!("2026-01-01T10:{minute:02}:00Z"));
        }
        side
    };
    let options = CompareOptions {
        paired: true,
        gate: Some(gate(&[("busy", 1.0)])),
        ..CompareOptions::default()
    };
    for (minutes_b, paired) in [([1, 3, 5], false), ([1, 2, 5], true)] {
        let minutes_a = if paired { [0, 3, 4] } else { [0, 2, 4] };
        let (a, b) = (dated("a", minutes_a), dated("b", minutes_b));
        let comparison = compare(a, Some(b), settings(Some("token")), &options).unwrap();
        assert_eq!(comparison.inference.paired, paired);
        let method = comparison.busy.judgement.unwrap().test.unwrap().interval.method;
        assert_eq!(method.name(), if paired { "paired" } else { "welch" });
        let told = comparison.notes.iter().any(|note| note.code == "always_second");
        assert_eq!(told, !paired);
    }
}
