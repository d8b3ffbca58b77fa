//! Submissions of any number of trials as one CSV file: RFC 4180 with LF, a line per submission.
//!
//! ```text
//! side,trial,name,input,unit,units,commit,process,pid,channel,phase,…,start_ns,trace_start_ns,duration_ns,…
//! a,t-6d3f9c2a51b07e84,hf2q,hf2q-1,token,64,0c1f2ab,hf2q,4201,Compute,hf2q.decode.lm_head,…,0,867410250,75041,…
//! ```
//!
//! A value that is not known is empty. Labels are text: made visible, and no spreadsheet takes one for a formula; numbers
//! are never touched. Trials come one after the other, and nothing of a trial is kept when it is written.

use std::io::{self, Write};

use super::submissions::{COLUMNS, Cell, Keys, Rows};
use super::trials::{FleetTrial, SetColumn, Value};
use crate::attribution::{Buckets, PhaseNames};
use crate::label::{guarded, visible};

/// Columns of a trial that stand in front of those of its submissions; what the user set follows them.
const TRIAL_COLUMNS: [&str; 6] = ["side", "trial", "name", "input", "unit", "units"];
/// Bytes that are put together before they are written.
const BLOCK: usize = 1 << 16;

/// Writes the line of column names; `set` is what the user said of every trial.
///
/// # Errors
/// Whatever `out` refuses.
pub fn write_header(set: &[SetColumn], out: &mut dyn Write) -> io::Result<()> {
    let names = TRIAL_COLUMNS.into_iter().chain(set.iter().map(|set| set.name.as_str()));
    let names: Vec<String> = names
        .chain(COLUMNS.iter().map(|column| column.name))
        .map(field)
        .collect();
    writeln!(out, "{}", names.join(","))
}

/// Writes a line for each submission of a trial.
///
/// # Errors
/// Whatever `out` refuses.
pub fn write_trial(
    trial: &FleetTrial<'_>,
    phase_names: &PhaseNames,
    buckets: &Buckets,
    out: &mut dyn Write,
) -> io::Result<()> {
    let keys = Keys::new(trial.trace, phase_names);
    let rows = Rows::new(trial.trace, &keys, buckets);
    let texts: Vec<String> = rows.texts().iter().copied().map(field).collect();
    let (side, key) = (trial.side_letter(), trial.key());
    let own = trial.values();
    let of_trial = |name: &str| match name {
        "side" => side.to_owned(),
        "trial" => key.clone(),
        name => own
            .iter()
            .find(|(other, _)| other == name)
            .map_or_else(String::new, |(_, value)| match value {
                Value::Text(text) => text.as_deref().map(field).unwrap_or_default(),
                Value::Number(number) => number.map(|number| number.to_string()).unwrap_or_default(),
            }),
    };
    let set = trial.set.iter().map(|set| set.name.as_str());
    let prefix: Vec<String> = TRIAL_COLUMNS.into_iter().chain(set).map(of_trial).collect();
    let prefix = prefix.join(",");
    let mut block: Vec<u8> = Vec::with_capacity(BLOCK + 4096);
    // Formatting a number in the general way would be a sixth of all the work.
    let mut digits = itoa::Buffer::new();
    for submission in rows.submissions() {
        block.extend_from_slice(prefix.as_bytes());
        for column in &COLUMNS {
            block.push(b',');
            match rows.cell(column, submission) {
                Cell::Null => {}
                Cell::Text(text) => block.extend_from_slice(texts.get(text).map_or(&[], |text| text.as_bytes())),
                Cell::Number(number) | Cell::Id(number) => {
                    block.extend_from_slice(digits.format(number).as_bytes());
                }
                Cell::Flag(flag) => write!(block, "{flag}")?,
            }
        }
        block.push(b'\n');
        if block.len() >= BLOCK {
            out.write_all(&block)?;
            block.clear();
        }
    }
    out.write_all(&block)
}

/// A text as a field: harmless, and in quotes where it has to be.
fn field(text: &str) -> String {
    let text = guarded(visible(text));
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
