//! What a label map did: how much GPU time of each side fell under which rule, what has the same name on both sides
//! without one, and what is left.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::us_per_unit;
use super::{Over, Side, Trial};
use crate::attribution::{LabelMap, LabelMatches, LabelRule, is_real_label};
use crate::model::{Nanos, Note};

/// A label map, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedLabels {
    /// Its rules, in their order.
    pub rules: Vec<MappedRule>,
    /// What side A has in all.
    pub a: MappedTotals,
    /// What side B has in all; `None` without B, or when it was stored without a map.
    pub b: Option<MappedTotals>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedRule {
    /// As it was written.
    pub rule: LabelRule,
    /// What of side A fell under it.
    pub a: MappedTime,
    /// What of side B did.
    pub b: Option<MappedTime>,
}

/// Time of some phases.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedTime {
    /// The phases, as they are called without a map, of all trials.
    pub phases: BTreeSet<String>,
    /// µs per unit, over the trials.
    pub total_us: Over,
    /// Percent of a trial's total, over the trials; `None` when no trial has any time.
    pub share_pct: Option<Over>,
}

/// A side's time by whether a rule took it.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedTotals {
    /// What some rule took.
    pub matched: MappedTime,
    /// What no rule took, but both sides call the same; `None` with one side.
    pub same_name: Option<MappedTime>,
    /// The rest.
    pub unmatched: MappedTime,
    /// The phases of the rest, most time first.
    pub unmatched_phases: Vec<(String, MappedTime)>,
}

/// What the map did; `None` without one.
pub(super) fn mapped(map: &LabelMap, a: &Side, b: Option<&Side>) -> Option<MappedLabels> {
    let totals = Totals::of(a)?;
    let totals_b = b.and_then(Totals::of);
    let rules = map.rules().enumerate().map(|(at, rule)| MappedRule {
        rule: rule.clone(),
        a: totals.rule(at),
        b: totals_b.as_ref().map(|totals| totals.rule(at)),
    });
    let names = |side: &Side| -> BTreeSet<String> {
        let phases = side.trials.iter().flat_map(|trial| &trial.phases);
        phases
            .map(|group| group.key.clone())
            .filter(|key| is_real_label(key))
            .collect()
    };
    Some(MappedLabels {
        rules: rules.collect(),
        a: totals.all(b.map(names)),
        b: totals_b.as_ref().map(|totals| totals.all(Some(names(a)))),
    })
}

/// Expressions that took nothing: a name was changed, or an earlier rule takes it.
pub(super) fn notes(mapped: &MappedLabels, a: &Side, b: Option<&Side>) -> Vec<Note> {
    let mut notes = Vec::new();
    if let (Some(b), None) = (b, &mapped.b) {
        let text = format!(
            "label map: {} was stored with the names that it has, and is not held against it",
            b.name
        );
        notes.push(Note::warning("label_map_not_applied", text));
    }
    for (number, rule) in (1..).zip(&mapped.rules) {
        let sides = [
            (Some(a), &rule.rule.a, Some(&rule.a)),
            (b, &rule.rule.b, rule.b.as_ref()),
        ];
        for (side, pattern, time) in sides {
            let (Some(side), Some(pattern), Some(time)) = (side, pattern, time) else {
                continue;
            };
            if time.phases.is_empty() {
                notes.push(Note::remark(
                    "label_rule_unused",
                    format!(
                        "label map: entry {number} (`{}`): `{pattern}` matches no phase of {} that an earlier entry left",
                        rule.rule.name, side.name
                    ),
                ));
            }
        }
    }
    notes
}

/// Phases with their time.
type Phases<'a> = Vec<(&'a String, Nanos)>;

/// The trials of a side that were held against the rules.
struct Totals<'a>(Vec<(&'a Trial, &'a LabelMatches)>);

impl<'a> Totals<'a> {
    fn of(side: &'a Side) -> Option<Self> {
        let held = |trial: &'a Trial| Some((trial, trial.label_matches.as_ref()?));
        side.trials.iter().map(held).collect::<Option<Vec<_>>>().map(Totals)
    }

    /// Time of the phases that `pick` finds in each trial.
    fn time(&self, pick: impl Fn(&'a LabelMatches) -> Phases<'a>) -> MappedTime {
        let picked: Vec<_> = self.0.iter().map(|(trial, matches)| (*trial, pick(matches))).collect();
        let sum = |phases: &[(&String, Nanos)]| phases.iter().fold(0u64, |sum, (_, time)| sum.saturating_add(time.0));
        let totals = picked.iter().map(|(trial, phases)| us_per_unit(sum(phases), trial));
        let shares = picked.iter().filter(|(trial, _)| trial.all.total.0 > 0);
        let shares = shares.map(|(trial, phases)| 100.0 * sum(phases) as f64 / trial.all.total.0 as f64);
        MappedTime {
            phases: picked
                .iter()
                .flat_map(|(_, phases)| phases.iter().map(|(phase, _)| (*phase).clone()))
                .collect(),
            // A side without trials is refused before anything is compared.
            total_us: Over::of(totals).unwrap_or(Over {
                median: 0.0,
                low: 0.0,
                high: 0.0,
            }),
            share_pct: Over::of(shares),
        }
    }

    fn rule(&self, at: usize) -> MappedTime {
        self.time(|matches| matches.rules.get(at).map(all).unwrap_or_default())
    }

    /// `others`: what the other side calls its phases.
    fn all(&self, others: Option<BTreeSet<String>>) -> MappedTotals {
        let is_shared = |phase: &String| others.as_ref().is_some_and(|others| others.contains(phase));
        let unmatched = |matches: &'a LabelMatches, shared: bool| -> Phases<'a> {
            let phases = matches.unmatched.iter().map(|(phase, time)| (phase, *time));
            phases.filter(|(phase, _)| is_shared(phase) == shared).collect()
        };
        let rest = self.time(|matches| unmatched(matches, false));
        let one = |name: &String| {
            self.time(|matches| {
                let found = matches.unmatched.get_key_value(name);
                found.map(|(phase, time)| (phase, *time)).into_iter().collect()
            })
        };
        let mut unmatched_phases: Vec<(String, MappedTime)> =
            rest.phases.iter().map(|name| (name.clone(), one(name))).collect();
        // Stable: equal times keep the order of the names.
        unmatched_phases.sort_by(|(_, x), (_, y)| y.total_us.median.total_cmp(&x.total_us.median));
        MappedTotals {
            matched: self.time(|matches| matches.rules.iter().flat_map(all).collect()),
            same_name: others.is_some().then(|| self.time(|matches| unmatched(matches, true))),
            unmatched: rest,
            unmatched_phases,
        }
    }
}

fn all(phases: &BTreeMap<String, Nanos>) -> Phases<'_> {
    phases.iter().map(|(phase, time)| (phase, *time)).collect()
}
