//! A stored report as side B: what `report --format json` wrote earlier is compared with trials of today.
//!
//! What goes in: the text of such a file. What comes out: a [`Baseline`], a side with its settings, made from the raw
//! values of each trial. Each schema version has its reader, so old baselines stay readable; newer or unknown ones are
//! refused, and so is a file whose numbers do not fit together.

mod version_1;

use serde::Deserialize;

use super::{Settings, Side};
use crate::error::{Error, Result};
use crate::model::Note;

const SCHEMA: &str = "trace-attr.report";

/// A side that was stored.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// Its trials; those without a fingerprint in the file have one of their numbers.
    pub side: Side,
    /// What held when it was made.
    pub settings: Settings,
    /// Label map that its phases were named by, entry by entry: name, expression for A, expression for B.
    pub label_map: Vec<(String, Option<String>, Option<String>)>,
    /// Warnings that stood in the report.
    pub notes: Vec<Note>,
}

impl Baseline {
    /// Reads a report.
    ///
    /// # Errors
    /// No JSON of this tool, another kind of report, a version that is not known, missing fields, or numbers that
    /// contradict each other.
    pub fn from_json(text: &str) -> Result<Baseline> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
            schema_version: u32,
        }
        let head: Head = serde_json::from_str(text).map_err(|error| refuse(format!("this is no baseline: {error}")))?;
        match (head.schema.as_str(), head.schema_version) {
            (SCHEMA, 1) => version_1::read(text),
            (SCHEMA, newer) => Err(Error::unfit(format!(
                "the baseline has schema version {newer}, and this trace-attr reads version 1"
            ))
            .with_help("use the trace-attr that wrote it, or a newer one, or make the baseline anew")),
            (other, _) => Err(refuse(format!("this is no baseline: its schema is `{other}`"))),
        }
    }
}

fn refuse(message: String) -> Error {
    Error::unfit(message).with_help("make one with `trace-attr report TRIAL… --format json -o base.json`")
}
