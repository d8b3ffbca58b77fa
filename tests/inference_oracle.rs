//! Intervals, probabilities and quantiles are those of scipy, to nine digits.
//!
//! `tests/oracle/inference.json` holds the vectors; `tests/oracle/inference.py` makes them, and says with `--check`
//! whether they still are what scipy says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use serde_json::Value;
use trace_attr::inference::{Interval, calibrated, false_discovery, paired, quantile, welch};

const RELATIVE: f64 = 1e-9;

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/inference.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// `rounding` is what the last bits of the inputs allow where large numbers nearly cancel.
#[track_caller]
fn same(found: f64, expected: &Value, rounding: f64, what: &str) {
    let expected = expected.as_f64().unwrap();
    let allowed = RELATIVE * expected.abs() + rounding;
    assert!(
        (found - expected).abs() <= allowed,
        "{what}: {found}, scipy says {expected}"
    );
}

#[track_caller]
fn same_interval(interval: &Interval, vector: &Value) {
    let logs: Vec<f64> = [&vector["a"], &vector["b"]].iter().flat_map(|v| numbers(v)).collect();
    let largest = logs.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let what = vector.to_string();
    // A mean of n numbers is known to about one last bit of the largest; a bound is a difference of two of them.
    let rounding = 4.0 * f64::EPSILON * largest;
    same(interval.low(), &vector["low"], rounding, &what);
    same(interval.high(), &vector["high"], rounding, &what);
    // A change that is uncertain by its last bits makes p uncertain by those over the standard error.
    let p = vector["p"].as_f64().unwrap();
    let t = interval.change / interval.error;
    let slack = p * (1.0 + t.abs()) * rounding / interval.error;
    same(interval.p, &vector["p"], slack, &what);
    same(interval.df, &vector["df"], 0.0, &what);
    same(interval.resolution, &vector["resolution"], 0.0, &what);
    for need in vector["needs"].as_array().into_iter().flatten() {
        let expected = need[1].as_u64().map(|n| usize::try_from(n).unwrap());
        assert_eq!(interval.trials_needed(need[0].as_f64().unwrap()), expected, "{what}");
    }
}

/// Each vector of a kind; there are some.
fn each(kind: &str, check: impl Fn(&Value)) {
    let all = vectors();
    let vectors = all[kind].as_array().unwrap();
    assert!(vectors.len() >= 12, "{kind}");
    vectors.iter().for_each(check);
}

#[test]
fn quantiles() {
    each("quantiles", |vector| {
        let (p, df) = (vector[0].as_f64().unwrap(), vector[1].as_f64().unwrap());
        same(quantile(p, df), &vector[2], 0.0, &format!("p {p}, df {df}"));
    });
}

#[test]
fn welch_intervals() {
    each("welch", |vector| {
        same_interval(&welch(&numbers(&vector["a"]), &numbers(&vector["b"])).unwrap(), vector);
    });
}

#[test]
fn paired_intervals() {
    each("paired", |vector| {
        same_interval(&paired(&numbers(&vector["a"]), &numbers(&vector["b"])).unwrap(), vector);
    });
}

#[test]
fn calibrated_intervals() {
    each("calibrated", |vector| {
        let sessions = usize::try_from(vector["sessions"].as_u64().unwrap()).unwrap();
        let (a, b) = (numbers(&vector["a"]), numbers(&vector["b"]));
        let sd = vector["sd"].as_f64().unwrap();
        same_interval(&calibrated(&a, &b, None, sessions, sd).unwrap(), vector);
    });
}

#[test]
fn adjusted_for_the_number_of_rows() {
    each("false_discovery", |vector| {
        let list = |value: &Value| value.as_array().unwrap().iter().map(Value::as_f64).collect::<Vec<_>>();
        let (p, expected) = (list(&vector["p"]), list(&vector["q"]));
        let found = false_discovery(&p);
        assert_eq!(found.len(), expected.len());
        for ((p, q), expected) in p.iter().zip(&found).zip(&expected) {
            match (q, expected) {
                (Some(q), Some(expected)) => {
                    assert!(
                        (q - expected).abs() <= RELATIVE * expected,
                        "{p:?}: {q}, scipy says {expected}"
                    );
                    assert!(*q >= p.unwrap(), "q {q} below p {p:?}");
                }
                _ => assert_eq!((q, p), (&None, &None)),
            }
        }
    });
}
