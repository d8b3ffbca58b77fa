//! `label_map`: what fell under which rule of a label map.

use serde::Serialize;

use super::{Number, Sides};
use crate::compare::{self, MappedTime};

#[derive(Serialize)]
pub(super) struct LabelMap<'a> {
    rules: Vec<Rule<'a>>,
    matched: Sides<Option<Time>>,
    same_name: Sides<Option<Time>>,
    unmatched: Sides<Option<Vec<Phase<'a>>>>,
}

#[derive(Serialize)]
struct Rule<'a> {
    name: &'a str,
    a_pattern: Option<&'a str>,
    b_pattern: Option<&'a str>,
    a: Option<Matched<'a>>,
    b: Option<Matched<'a>>,
}

#[derive(Serialize)]
struct Time {
    total_us: Number,
    share_pct: Option<Number>,
}

#[derive(Serialize)]
struct Matched<'a> {
    phases: Vec<&'a str>,
    #[serde(flatten)]
    time: Time,
}

#[derive(Serialize)]
struct Phase<'a> {
    phase: &'a str,
    #[serde(flatten)]
    time: Time,
}

impl<'a> LabelMap<'a> {
    /// `two_sided`: whether the comparison has a B at all.
    pub(super) fn new(mapped: &'a compare::MappedLabels, two_sided: bool) -> Self {
        let rule = |rule: &'a compare::MappedRule| Rule {
            name: &rule.rule.name,
            a_pattern: rule.rule.a.as_deref(),
            b_pattern: rule.rule.b.as_deref(),
            a: Some(Matched::from(&rule.a)),
            b: rule.b.as_ref().map(Matched::from),
        };
        let unmatched = |totals: &'a compare::MappedTotals| {
            let phase = |(phase, time): &'a (String, MappedTime)| Phase {
                phase,
                time: time.into(),
            };
            totals.unmatched_phases.iter().map(phase).collect()
        };
        Self {
            rules: mapped.rules.iter().map(rule).collect(),
            matched: Sides {
                a: Some((&mapped.a.matched).into()),
                b: two_sided.then(|| mapped.b.as_ref().map(|totals| (&totals.matched).into())),
            },
            same_name: Sides {
                a: mapped.a.same_name.as_ref().map(Time::from),
                b: two_sided.then(|| mapped.b.as_ref()?.same_name.as_ref().map(Time::from)),
            },
            unmatched: Sides {
                a: Some(unmatched(&mapped.a)),
                b: two_sided.then(|| mapped.b.as_ref().map(unmatched)),
            },
        }
    }
}

impl From<&MappedTime> for Time {
    fn from(time: &MappedTime) -> Self {
        Time {
            total_us: time.total_us.into(),
            share_pct: time.share_pct.map(Number::from),
        }
    }
}

impl<'a> From<&'a MappedTime> for Matched<'a> {
    fn from(time: &'a MappedTime) -> Self {
        Matched {
            phases: time.phases.iter().map(String::as_str).collect(),
            time: time.into(),
        }
    }
}
