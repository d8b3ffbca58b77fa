//! The table of contents (`xctrace export --toc`): runs, targets, settings, and which tables there are.
//!
//! Traps: attribute order varies within one file; the settings element is misspelt in every version
//! (`intruments-recording-settings`) and changed its form; a run's number is not its place; it holds command
//! lines, user paths and device names, which stay here unless somebody asks for them.

use std::collections::HashMap;

use crate::model::{Nanos, PrivateFact, Process};
use crate::xml::{Element, RunReference};

/// A recording's table of contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Its runs, in order.
    pub runs: Vec<Run>,
}

/// One run of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// Its number, which need not start at 1.
    pub number: u64,
    /// What was recorded; `None` when all processes were, or when it does not say.
    pub target: Option<Process>,
    /// Length of the recording; `None` when it failed (0) or does not say.
    pub duration: Option<Nanos>,
    /// Date and time of the start, ISO 8601.
    pub start_date: Option<String>,
    /// Why it ended.
    pub end_reason: Option<String>,
    /// Instruments' version with its build.
    pub instruments_version: Option<String>,
    /// Name of the recording template.
    pub template: Option<String>,
    /// The device's operating system.
    pub os_version: Option<String>,
    /// The Shader Timeline setting.
    pub shader_timeline: Option<String>,
    /// Schema names with how often each occurs, in order of the first.
    pub tables: Vec<(String, u64)>,
    /// Attributes that are private.
    pub private: Vec<PrivateFact>,
}

/// Attributes of `target` that can hold secrets or names of people.
const PRIVATE: &[&str] = &["arguments", "environment", "path", "name", "uuid"];

impl Contents {
    /// Reads the `<trace-toc>` element.
    pub fn from_element(root: &Element) -> Contents {
        let runs = root.children("run").enumerate();
        Contents {
            runs: runs.map(|(at, run)| Run::from_element(run, at as u64 + 1)).collect(),
        }
    }

    /// The run of that number.
    pub fn run(&self, number: u64) -> Option<&Run> {
        self.runs.iter().find(|run| run.number == number)
    }
}

/// The number of the run that a node's path names; `contents` where they are known.
pub fn run_number(contents: Option<&Contents>, reference: RunReference) -> u64 {
    let runs = contents.map_or(&[][..], |contents| &contents.runs);
    match (reference, runs) {
        (RunReference::Number(number), _) => number,
        // A table of contents of one run (as `export` writes it) says which run all of it is.
        (RunReference::Place(_) | RunReference::Unknown, [only]) => only.number,
        (RunReference::Place(place), _) => usize::try_from(place.saturating_sub(1))
            .ok()
            .and_then(|at| runs.get(at))
            .map_or(place, |run| run.number),
        (RunReference::Unknown, _) => 1,
    }
}

impl Run {
    fn from_element(run: &Element, place: u64) -> Run {
        let empty = Element::default();
        let info = run.child("info").unwrap_or(&empty);
        let target = info.child("target").unwrap_or(&empty);
        let summary = info.child("summary").unwrap_or(&empty);
        let text = |name: &str| {
            summary
                .child(name)
                .map(|child| child.text.clone())
                .filter(|text| !text.is_empty())
        };
        let process = target.child("process").map(|process| Process {
            name: process.attribute("name").unwrap_or("").to_owned(),
            pid: process.attribute("pid").and_then(|pid| pid.parse().ok()),
        });
        let mut tables: Vec<(String, u64)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for table in run.child("data").unwrap_or(&empty).children("table") {
            let Some(schema) = table.attribute("schema") else {
                continue;
            };
            let place = *places.entry(schema).or_insert(tables.len());
            match tables.get_mut(place) {
                Some((_, count)) => *count += 1,
                None => tables.push((schema.to_owned(), 1)),
            }
        }
        let mut private = Vec::new();
        for element in &target.children {
            for (key, value) in &element.attributes {
                let shown = element.name == "process" && key == "name";
                if PRIVATE.contains(&key.as_str()) && !shown {
                    private.push(PrivateFact {
                        element: element.name.clone(),
                        attribute: key.clone(),
                        value: value.clone(),
                    });
                }
            }
        }
        Run {
            number: run
                .attribute("number")
                .and_then(|number| number.parse().ok())
                .unwrap_or(place),
            target: process.filter(|process| !process.name.is_empty() || process.pid.is_some()),
            duration: text("duration")
                .and_then(|seconds| seconds_to_ns(&seconds))
                .filter(|ns| ns.0 > 0),
            start_date: text("start-date"),
            end_reason: text("end-reason"),
            instruments_version: text("instruments-version"),
            template: text("template-name"),
            os_version: target
                .child("device")
                .and_then(|device| device.attribute("os-version"))
                .map(str::to_owned),
            shader_timeline: shader_timeline(summary),
            tables,
            private,
        }
    }
}

/// `45.688094` as ns, without a detour through a float.
fn seconds_to_ns(text: &str) -> Option<Nanos> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    Some(Nanos(
        whole
            .parse::<u64>()
            .ok()?
            .checked_mul(1_000_000_000)?
            .checked_add(part)?,
    ))
}

/// `<value>Shader Timeline: Disabled</value>` (to 26.6) or `<option key="Shader Timeline" value="…"/>` (27).
fn shader_timeline(element: &Element) -> Option<String> {
    if let Some(setting) = element.text.strip_prefix("Shader Timeline:") {
        return Some(setting.trim().to_owned());
    }
    if element.attribute("key") == Some("Shader Timeline") {
        return element.attribute("value").map(str::to_owned);
    }
    element.children.iter().find_map(shader_timeline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact() {
        assert_eq!(seconds_to_ns("45.688094"), Some(Nanos(45_688_094_000)));
        assert_eq!(seconds_to_ns("0.000001"), Some(Nanos(1_000)));
        assert_eq!(seconds_to_ns("3"), Some(Nanos(3_000_000_000)));
        assert_eq!(seconds_to_ns("-1.5"), None);
        assert_eq!(seconds_to_ns("99999999999999999999"), None);
    }

    #[test]
    fn both_forms_of_the_settings_are_read() {
        let value = Element {
            text: "Shader Timeline: Disabled".to_owned(),
            ..Element::default()
        };
        let old = Element {
            children: vec![value],
            ..Element::default()
        };
        assert_eq!(shader_timeline(&old).as_deref(), Some("Disabled"));
        let option = Element {
            attributes: vec![
                ("key".into(), "Shader Timeline".into()),
                ("value".into(), "Enabled".into()),
            ],
            ..Element::default()
        };
        assert_eq!(shader_timeline(&option).as_deref(), Some("Enabled"));
    }
}
