//! Phases of different engines under one name: ordered rules, each with an expression for a side's phases.
//!
//! What an expression is held against is the phase as a report prints it without a map (`hf2q.decode.layer.attn`),
//! because that is what its author sees. `(unlabelled)`, `(unknown)` and `(ambiguous)` are no labels and match nothing.
//! The first rule that fits decides; a phase that already has a rule's name fits it, whatever its expressions say, so
//! that one side can be named after the other.

use std::collections::BTreeMap;

use regex::Regex;
use regex_syntax::hir::Hir;
use serde::Deserialize;

use super::group::{Key, is_real_label, phase_labels};
use crate::error::{Error, Result};
use crate::model::{Nanos, Trace};

/// One entry, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelRule {
    /// The phase's name in reports.
    pub name: String,
    /// Expression for side A's phases; found anywhere in them unless it has `^` and `$`.
    pub a: Option<String>,
    /// Expression for side B's.
    pub b: Option<String>,
}

/// A file of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MapFile {
    #[serde(default)]
    phase: Vec<LabelRule>,
}

/// Which side of a comparison; a report of one side is A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappedSide {
    /// What you work on.
    A,
    /// What you compare it to.
    B,
}

/// Rules for both sides, in their order.
#[derive(Debug, Clone, Default)]
pub struct LabelMap {
    rules: Vec<(LabelRule, Option<Regex>, Option<Regex>)>,
}

/// Rules for one side.
#[derive(Debug, Clone, Default)]
pub struct PhaseNames {
    rules: Vec<(String, Option<Regex>)>,
}

impl LabelMap {
    /// The rules of a TOML text: `[[phase]]` with `name`, and `a`, `b` or both.
    ///
    /// # Errors
    /// No TOML, an unknown key, no entry, or an entry that cannot be used; the message names it.
    pub fn parse(toml_text: &str) -> Result<Self> {
        let file: MapFile = toml::from_str(toml_text).map_err(|error| {
            let text = error.to_string();
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            Error::usage(format!("label map: {line}")).with_help(EXAMPLE)
        })?;
        if file.phase.is_empty() {
            return Err(Error::usage("label map: there is no entry").with_help(EXAMPLE));
        }
        LabelMap::with_rules(file.phase)
    }

    /// Rules that were read elsewhere.
    ///
    /// # Errors
    /// An entry without a name or an expression, with a name that means no label, a bad expression, or one that
    /// nothing can ever reach.
    pub fn with_rules(rules: Vec<LabelRule>) -> Result<Self> {
        let mut checked: Vec<(LabelRule, Option<Regex>, Option<Regex>)> = Vec::new();
        // Of each side, the entry behind which nothing is left.
        let mut takes_all: [Option<String>; 2] = [None, None];
        for (number, rule) in (1..).zip(rules) {
            let entry = format!("entry {number} (`{}`)", rule.name);
            let refuse = |why: String| Error::usage(format!("label map: {entry}: {why}")).with_help(EXAMPLE);
            if rule.name.trim().is_empty() {
                return Err(refuse("the name is empty".to_owned()));
            }
            if !is_real_label(&rule.name) {
                return Err(refuse("this name is for phases without a label".to_owned()));
            }
            if rule.a.is_none() && rule.b.is_none() {
                return Err(refuse(
                    "it has an expression for neither side, so it can match nothing".to_owned(),
                ));
            }
            let mut compiled = [None, None];
            for ((side, pattern, before), (regex, all)) in [
                (
                    "A",
                    &rule.a,
                    checked.iter().map(|(rule, ..)| &rule.a).collect::<Vec<_>>(),
                ),
                ("B", &rule.b, checked.iter().map(|(rule, ..)| &rule.b).collect()),
            ]
            .into_iter()
            .zip(compiled.iter_mut().zip(&mut takes_all))
            {
                let Some(pattern) = pattern else { continue };
                let hir = expression(pattern).map_err(|why| refuse(format!("its expression for {side}: {why}")))?;
                if let Some(earlier) = all {
                    return Err(refuse(format!(
                        "its expression for {side} can match nothing: {earlier} takes every phase"
                    )));
                }
                if let Some(at) = before.iter().position(|earlier| earlier.as_ref() == Some(pattern)) {
                    return Err(refuse(format!(
                        "its expression for {side} can match nothing: entry {} has the same one",
                        at + 1
                    )));
                }
                if fits_everything(&hir) {
                    *all = Some(entry.clone());
                }
                *regex = Some(Regex::new(pattern).map_err(|error| refuse(short(&error.to_string())))?);
            }
            let [a, b] = compiled;
            checked.push((rule, a, b));
        }
        Ok(LabelMap { rules: checked })
    }

    /// The entries as they were written, in their order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &LabelRule> {
        self.rules.iter().map(|(rule, ..)| rule)
    }

    /// The rules of a side.
    pub fn side(&self, side: MappedSide) -> PhaseNames {
        let rule = |(rule, a, b): &(LabelRule, Option<Regex>, Option<Regex>)| {
            let regex = match side {
                MappedSide::A => a,
                MappedSide::B => b,
            };
            (rule.name.clone(), regex.clone())
        };
        PhaseNames {
            rules: self.rules.iter().map(rule).collect(),
        }
    }
}

/// The remedy for an entry that cannot be used.
const EXAMPLE: &str =
    "an entry is written `[[phase]]`, then `name = \"attn\"` and `a = '^hf2q\\..*\\.attn$'`, `b = '^attn_'` or both";

/// The expression's structure, or why there is none.
fn expression(pattern: &str) -> std::result::Result<Hir, String> {
    if pattern.is_empty() {
        return Err("it is empty".to_owned());
    }
    let hir = regex_syntax::parse(pattern).map_err(|error| short(&error.to_string()))?;
    if hir.properties().minimum_len().is_none() {
        return Err(format!("`{pattern}` can match nothing"));
    }
    Ok(hir)
}

/// Whether it finds an empty text anywhere, and so something in every phase.
fn fits_everything(hir: &Hir) -> bool {
    hir.properties().minimum_len() == Some(0) && hir.properties().look_set().is_empty()
}

/// The last line of a message of the expression library: those before it draw the place.
fn short(message: &str) -> String {
    let last = message.lines().last().unwrap_or_default().trim();
    last.trim_start_matches("error: ").to_owned()
}

impl PhaseNames {
    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The place of the rule that a phase falls under.
    fn rule_of(&self, phase: &str) -> Option<usize> {
        if !is_real_label(phase) {
            return None;
        }
        let fits = |(name, regex): &(String, Option<Regex>)| {
            name == phase || regex.as_ref().is_some_and(|regex| regex.is_match(phase))
        };
        self.rules.iter().position(fits)
    }

    /// A phase under its new name, or as it was.
    pub(super) fn named(&self, key: Key) -> Key {
        match self.rule_of(&key.text).and_then(|at| self.rules.get(at)) {
            Some((name, _)) => Key {
                text: name.clone(),
                ..key
            },
            None => key,
        }
    }
}

/// How much of a trial's GPU time fell under which rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelMatches {
    /// Of each rule, in their order: the phases that it took, with their time.
    pub rules: Vec<BTreeMap<String, Nanos>>,
    /// Phases that no rule took, with their time; those without a label among them.
    pub unmatched: BTreeMap<String, Nanos>,
}

/// Holds the phases of a trace against the rules; `None` when there are none.
pub fn label_matches(trace: &Trace, names: &PhaseNames) -> Option<LabelMatches> {
    if names.is_empty() {
        return None;
    }
    let keys = phase_labels(trace);
    let mut times = vec![0u64; keys.len()];
    let mut seen = vec![false; keys.len()];
    for submission in &trace.submissions {
        let at = usize::try_from(submission.label.0).unwrap_or(usize::MAX);
        if let (Some(time), Some(seen)) = (times.get_mut(at), seen.get_mut(at)) {
            *time = time.saturating_add(submission.duration.0);
            *seen = true;
        }
    }
    let mut matches = LabelMatches {
        rules: vec![BTreeMap::new(); names.rules.len()],
        unmatched: BTreeMap::new(),
    };
    for (key, time) in keys
        .into_iter()
        .zip(times)
        .zip(seen)
        .filter_map(|(one, seen)| seen.then_some(one))
    {
        let place = names.rule_of(&key.text).and_then(|at| matches.rules.get_mut(at));
        let sum = place.unwrap_or(&mut matches.unmatched).entry(key.text).or_default();
        sum.0 = sum.0.saturating_add(time);
    }
    Some(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(toml: &str) -> LabelMap {
        LabelMap::parse(toml).unwrap()
    }

    fn renamed(map: &LabelMap, side: MappedSide, phase: &str) -> String {
        let key = Key {
            text: phase.to_owned(),
            coalesced: false,
        };
        map.side(side).named(key).text
    }

    #[test]
    fn each_side_has_its_own_expression_and_the_first_rule_that_fits_decides() {
        let map = map("[[phase]]\nname = 'attn'\na = '\\.attn$'\nb = '^attn_'\n\
             [[phase]]\nname = 'ffn'\na = '\\.(ffn|attn)'\n\
             [[phase]]\nname = 'head'\nb = 'output'\n");
        let a = |phase: &str| renamed(&map, MappedSide::A, phase);
        let b = |phase: &str| renamed(&map, MappedSide::B, phase);
        assert_eq!(a("engine.layer.attn"), "attn");
        assert_eq!(b("attn_qkv"), "attn");
        assert_eq!(a("attn_qkv"), "attn_qkv");
        // The first rule leaves this one to the second.
        assert_eq!(a("engine.layer.attn.out"), "ffn");
        // An expression for B alone: what A already calls so is the same phase.
        assert_eq!(b("result_output"), "head");
        assert_eq!(a("head"), "head");
        assert_eq!(a("result_output"), "result_output");
    }

    #[test]
    fn what_is_no_label_matches_nothing() {
        let map = map("[[phase]]\nname = 'all'\na = '.'\n");
        assert_eq!(renamed(&map, MappedSide::A, "x"), "all");
        for special in ["(unlabelled)", "(unknown)", "(ambiguous)"] {
            assert_eq!(renamed(&map, MappedSide::A, special), special);
        }
    }

    #[test]
    fn entries_that_cannot_be_used_are_refused_by_name() {
        for (toml, parts) in [
            ("", &["there is no entry"][..]),
            (
                "[[phase]]\nname = 'x'\na = '('\n",
                &["entry 1 (`x`)", "for A", "unclosed group"],
            ),
            (
                "[[phase]]\nname = 'x'\na = 'a'\n[[phase]]\nname = 'y'\nb = '['\n",
                &["entry 2 (`y`)", "for B", "unclosed character class"],
            ),
            ("[[phase]]\nname = 'x'\na = ''\n", &["entry 1 (`x`)", "empty"]),
            ("[[phase]]\nname = ' '\na = 'a'\n", &["entry 1", "name is empty"]),
            ("[[phase]]\nname = '(unknown)'\na = 'a'\n", &["without a label"]),
            ("[[phase]]\nname = 'x'\n", &["entry 1 (`x`)", "neither side"]),
            ("[[phase]]\na = 'a'\n", &["name"]),
            ("[[phase]]\nname = 'x'\na = 'a'\nc = 'a'\n", &["unknown field `c`"]),
            ("[[phases]]\nname = 'x'\na = 'a'\n", &["unknown field `phases`"]),
            // Nothing is both in and out of a class.
            (
                "[[phase]]\nname = 'x'\na = '[a&&b]'\n",
                &["entry 1 (`x`)", "can match nothing"],
            ),
            (
                "[[phase]]\nname = 'x'\na = '.*'\n[[phase]]\nname = 'y'\na = 'b'\n",
                &["entry 2 (`y`)", "for A", "entry 1 (`x`) takes every phase"],
            ),
            (
                "[[phase]]\nname = 'x'\nb = 'b'\n[[phase]]\nname = 'y'\na = 'b'\nb = 'b'\n",
                &["entry 2 (`y`)", "for B", "entry 1 has the same one"],
            ),
            ("not toml", &["label map"]),
        ] {
            let error = LabelMap::parse(toml).unwrap_err();
            let text = error.to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{toml:?}: {text}");
            assert!(!text.contains('\n') && error.help().is_some(), "{text}");
        }
        // All of A's phases does not mean all of B's.
        map("[[phase]]\nname = 'x'\na = '.*'\n[[phase]]\nname = 'y'\nb = 'b'\n");
        map("[[phase]]\nname = 'x'\na = '^$'\n[[phase]]\nname = 'y'\na = 'b'\n");
    }
}
