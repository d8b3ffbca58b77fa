//! `trace-attr.toml`: what a project always says on the command line, and hints that only its people know.
//!
//! A text goes in; out comes a [`Config`] whose values know the line that they stand in. What a key means is what the
//! option of the same name means; which of both counts is decided by whoever has both. Paths are relative to the file.

use std::path::{Path, PathBuf};

use crate::attribution::{Buckets, KernelRule, KernelRules, LabelMap, LabelRule};
use crate::compare::Hints;
use crate::compare::gate::{Limit, Percent};
use crate::error::{Error, Result};
use crate::join::TimingChoice;
use crate::model::{Nanos, WindowSpan, parse_time};
pub use crate::placed::Placed;
use crate::placed::{self, Value};

/// What the file is called, in the current folder or in one above.
pub const FILE_NAME: &str = "trace-attr.toml";

/// A value for both sides, and for one alone (`process`, `process_a`, `process_b`).
#[derive(Debug, Clone, PartialEq)]
pub struct Sided<T> {
    /// For both.
    pub both: Option<Placed<T>>,
    /// For side A.
    pub a: Option<Placed<T>>,
    /// For side B.
    pub b: Option<Placed<T>>,
}

impl<T> Default for Sided<T> {
    fn default() -> Self {
        Sided {
            both: None,
            a: None,
            b: None,
        }
    }
}

/// Rules that stand in the file, or in one that it names.
#[derive(Debug, Clone, PartialEq)]
pub enum Written<T> {
    /// In another file.
    File(PathBuf),
    /// Here.
    Here(T),
}

/// A configuration file.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The file as messages name it.
    pub name: String,
    /// `process`.
    pub process: Sided<String>,
    /// `window`.
    pub window: Sided<WindowSpan>,
    /// `skip_first`.
    pub skip_first: Sided<Nanos>,
    /// `units`: one number for all trials, or one each.
    pub units: Sided<Vec<u64>>,
    /// `name_a`.
    pub name_a: Option<Placed<String>>,
    /// `name_b`.
    pub name_b: Option<Placed<String>>,
    /// `unit`.
    pub unit: Option<Placed<String>>,
    /// `timing`.
    pub timing: Option<Placed<TimingChoice>>,
    /// `buckets`, as `--buckets` takes them.
    pub buckets: Option<Placed<String>>,
    /// `slowest`.
    pub slowest: Option<Placed<u16>>,
    /// `kernel_rules`: a path, or rules with `prefix` and `family`.
    pub kernel_rules: Option<Placed<Written<Vec<KernelRule>>>>,
    /// `label_map`: a path, or entries with `name`, `a` and `b`.
    pub label_map: Option<Placed<Written<Vec<LabelRule>>>>,
    /// `margin`.
    pub margin: Option<Placed<Percent>>,
    /// `control`.
    pub control: Option<Placed<regex::Regex>>,
    /// `noise`.
    pub noise: Option<Placed<PathBuf>>,
    /// `gate.fail_above`.
    pub fail_above: Option<Placed<Percent>>,
    /// `gate.rows`.
    pub gate_rows: Option<Placed<Vec<Limit>>>,
    /// `gate.on_inconclusive` is `"pass"`.
    pub pass_inconclusive: Option<Placed<bool>>,
    /// `gate.accept`.
    pub accept: Option<Placed<PathBuf>>,
    /// `hints`, by table.
    pub hints: Option<Placed<Hints>>,
}

/// What a unit is called: one short word.
///
/// # Errors
/// Anything else, with what to do.
pub fn unit_name(text: &str) -> std::result::Result<String, String> {
    let plain =
        !text.is_empty() && text.len() <= 24 && text.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    if plain {
        Ok(text.to_owned())
    } else {
        Err("use one short word, such as frame".to_owned())
    }
}

/// The configuration file of a folder: in it or in the nearest one above.
pub fn find(folder: &Path) -> Option<PathBuf> {
    folder
        .ancestors()
        .map(|folder| folder.join(FILE_NAME))
        // A link to nothing, or a folder of that name, is a slip that must not switch a gate off: reading it says so.
        .find(|path| path.symlink_metadata().is_ok())
}

impl Config {
    /// Reads the file at `path`; messages call it `name`.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, has a key that is not known, or a value that its key cannot have.
    pub fn read(path: &Path, name: &str) -> Result<Config> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io("open it", error).with_origin(name))?;
        Config::parse(&text, path.parent().unwrap_or(Path::new("")), name)
    }

    /// Reads a text whose paths are relative to `folder`.
    ///
    /// # Errors
    /// As [`Config::read`], but for the file.
    pub fn parse(text: &str, folder: &Path, name: &str) -> Result<Config> {
        let mut config = Config {
            name: name.to_owned(),
            ..Config::default()
        };
        for (key, value) in placed::table(text, name)?.known(KEYS)? {
            config.set(key, &value, folder)?;
        }
        Ok(config)
    }

    fn set(&mut self, key: &'static str, value: &Value<'_>, folder: &Path) -> Result<()> {
        let string = |value: &Value<'_>| value.string().map(str::to_owned);
        let path = |value: &Value<'_>| value.string().map(|path| folder.join(path));
        let sided = |key: &str| match key.strip_suffix("_a") {
            Some(_) => 1,
            None if key.ends_with("_b") => 2,
            None => 0,
        };
        match key {
            "process" | "process_a" | "process_b" => {
                *self.process.slot(sided(key)) = value.placed(string)?;
            }
            "window" | "window_a" | "window_b" => {
                *self.window.slot(sided(key)) = value.placed(Value::parsed)?;
            }
            "skip_first" | "skip_first_a" | "skip_first_b" => {
                *self.skip_first.slot(sided(key)) = value.placed(|value| value.by(parse_time))?;
            }
            "units" | "units_a" | "units_b" => {
                *self.units.slot(sided(key)) = value.placed(units)?;
            }
            "name_a" => self.name_a = value.placed(string)?,
            "name_b" => self.name_b = value.placed(string)?,
            "unit" => self.unit = value.placed(|value| value.by(unit_name))?,
            "timing" => {
                let choices = [
                    ("auto", TimingChoice::Auto),
                    ("intervals", TimingChoice::Intervals),
                    ("points", TimingChoice::Points),
                ];
                self.timing = value.placed(|value| value.one_of(&choices))?;
            }
            "buckets" => self.buckets = value.placed(buckets)?,
            "slowest" => self.slowest = value.placed(|value| value.whole(u64::from(u16::MAX)).and_then(narrow))?,
            "kernel_rules" => self.kernel_rules = value.placed(|value| written(value, folder, kernel_rules))?,
            "label_map" => self.label_map = value.placed(|value| written(value, folder, label_map))?,
            "margin" => self.margin = value.placed(Value::number)?,
            "control" => self.control = value.placed(Value::parsed)?,
            "noise" => self.noise = value.placed(path)?,
            "gate" => {
                for (key, value) in value.table()?.known(GATE_KEYS)? {
                    match key {
                        "fail_above" => self.fail_above = value.placed(Value::number)?,
                        "rows" => {
                            self.gate_rows = value.placed(|value| value.each(Value::parsed))?;
                        }
                        "accept" => self.accept = value.placed(path)?,
                        _ => {
                            let choices = [("fail", false), ("pass", true)];
                            self.pass_inconclusive = value.placed(|value| value.one_of(&choices))?;
                        }
                    }
                }
            }
            _ => self.hints = value.placed(hints)?,
        }
        Ok(())
    }
}

/// Keys at the top; the rest of the options are of one run, not of a project.
const KEYS: &[&str] = &[
    "process",
    "process_a",
    "process_b",
    "window",
    "window_a",
    "window_b",
    "skip_first",
    "skip_first_a",
    "skip_first_b",
    "units",
    "units_a",
    "units_b",
    "name_a",
    "name_b",
    "unit",
    "timing",
    "buckets",
    "slowest",
    "kernel_rules",
    "label_map",
    "margin",
    "control",
    "noise",
    "gate",
    "hints",
];
const GATE_KEYS: &[&str] = &["fail_above", "rows", "accept", "on_inconclusive"];
const HINT_KEYS: &[&str] = &["buckets", "encoders", "phases", "channels", "kernels"];

impl<T> Sided<T> {
    /// 0: both, 1: A, 2: B.
    fn slot(&mut self, at: u8) -> &mut Option<Placed<T>> {
        match at {
            1 => &mut self.a,
            2 => &mut self.b,
            _ => &mut self.both,
        }
    }
}

fn narrow(value: u64) -> Result<u16> {
    u16::try_from(value).map_err(|_| Error::usage("too large"))
}

/// One number, or one per trial.
fn units(value: &Value<'_>) -> Result<Vec<u64>> {
    let units = if value.is_list() {
        value.each(|value| value.whole(u64::MAX))?
    } else {
        vec![value.whole(u64::MAX)?]
    };
    if units.is_empty() || units.contains(&0) {
        return Err(value.refuse("times cannot be divided by 0, or by nothing"));
    }
    Ok(units)
}

/// `"2us,8us"` or `["2us", "8us"]`.
fn buckets(value: &Value<'_>) -> Result<String> {
    let text = if value.is_list() {
        value.each(|value| value.string().map(str::to_owned))?.join(",")
    } else {
        value.string()?.to_owned()
    };
    Buckets::parse(&text).map_err(|error| value.misfit(error))?;
    Ok(text)
}

/// A path, or the rules themselves.
fn written<T>(value: &Value<'_>, folder: &Path, rules: impl Fn(&Value<'_>) -> Result<T>) -> Result<Written<T>> {
    if value.is_list() {
        rules(value).map(Written::Here)
    } else {
        value.string().map(|path| Written::File(folder.join(path)))
    }
}

fn kernel_rules(value: &Value<'_>) -> Result<Vec<KernelRule>> {
    let rules = value.each(|value| {
        let mut rule = KernelRule {
            prefix: String::new(),
            family: String::new(),
        };
        for (key, value) in value.table()?.known(&["prefix", "family"])? {
            let text = value.string()?.to_owned();
            match key {
                "prefix" => rule.prefix = text,
                _ => rule.family = text,
            }
        }
        // Each is checked alone, so that a message has the rule's own line.
        KernelRules::with_rules(vec![rule.clone()]).map_err(|error| value.misfit(error))?;
        Ok(rule)
    })?;
    if rules.is_empty() {
        return Err(value.refuse("there is no rule"));
    }
    Ok(rules)
}

fn label_map(value: &Value<'_>) -> Result<Vec<LabelRule>> {
    let rules = value.each(|value| {
        let mut rule = LabelRule {
            name: String::new(),
            a: None,
            b: None,
        };
        for (key, value) in value.table()?.known(&["name", "a", "b"])? {
            let text = value.string()?.to_owned();
            match key {
                "name" => rule.name = text,
                "a" => rule.a = Some(text),
                _ => rule.b = Some(text),
            }
        }
        Ok(rule)
    })?;
    if rules.is_empty() {
        return Err(value.refuse("there is no entry"));
    }
    // Together, because an entry can take everything from a later one; the message names the entry.
    LabelMap::with_rules(rules.clone()).map_err(|error| value.misfit(error))?;
    Ok(rules)
}

fn hints(value: &Value<'_>) -> Result<Hints> {
    let mut hints = Hints::default();
    for (section, value) in value.table()?.known(HINT_KEYS)? {
        for (key, value) in value.table()?.entries() {
            let text = value.string()?;
            if text.trim().is_empty() {
                return Err(value.refuse("the hint is empty"));
            }
            hints.add(section, key, text);
        }
    }
    Ok(hints)
}

#[cfg(test)]
mod tests;
