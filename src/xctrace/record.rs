//! Records a running program for a short time: one call of `xctrace record`, judged by what it leaves.
//!
//! ```text
//! xcrun xctrace record --template 'Metal System Trace' --attach 4242 --time-limit 2000ms --no-prompt --output w.trace
//! ```
//!
//! xctrace ends with 54 (or 2) when one of its instruments had issues, and saves the trace all the same: what counts is
//! whether there is one. The reason may stand on standard output, with nothing on standard error. `--launch` is not
//! used, because xctrace kills what it launched at the time limit.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::process::{Output, Running, Tail, describe, interrupted};
use super::{FAREWELL, XctraceOptions, one_line, seconds, shown};
use crate::error::{Error, ErrorKind, Result};

/// What is kept of what xctrace says while it records.
const CHATTER: usize = 8 << 10;

/// What is recorded.
#[derive(Debug, Clone)]
pub struct ShortRecording<'a> {
    /// The program.
    pub pid: u32,
    /// For how long.
    pub length: Duration,
    /// Instruments template.
    pub template: &'a str,
    /// The bundle to make; it must not be there.
    pub output: PathBuf,
}

/// Records.
///
/// Gives a warning, in xctrace's own words and with its status, when it saved a trace and reported a failure.
///
/// # Errors
/// xcrun cannot be started, is silent for longer than the timeout beyond the recording's length, is interrupted, or
/// leaves no trace.
pub fn record(recording: &ShortRecording<'_>, options: &XctraceOptions) -> Result<Option<String>> {
    let failed = |cause: String| {
        Error::new(ErrorKind::Xctrace(format!(
            "could not record process {}: {cause}",
            recording.pid
        )))
    };
    let (pid, limit) = (recording.pid.to_string(), format!("{}ms", recording.length.as_millis()));
    let arguments: [&OsStr; 11] = [
        "xctrace".as_ref(),
        "record".as_ref(),
        "--template".as_ref(),
        recording.template.as_ref(),
        "--attach".as_ref(),
        pid.as_ref(),
        "--time-limit".as_ref(),
        limit.as_ref(),
        "--no-prompt".as_ref(),
        "--output".as_ref(),
        recording.output.as_os_str(),
    ];
    let mut child = Running::start(&options.program, &arguments).map_err(|error| {
        let name = shown(options.program.file_name().map_or(&options.program, Path::new));
        match error.kind() {
            _ if interrupted() => failed("interrupted".to_owned()),
            io::ErrorKind::NotFound => failed(format!("`{name}` was not found"))
                .with_help("recording needs macOS with Xcode; a live profile is made by the program itself"),
            _ => failed(format!("could not start `{name}`: {error}")),
        }
    })?;
    let mut chatter = Tail::default();
    let limit = options.timeout.saturating_add(recording.length);
    let silent = loop {
        match child.output(limit) {
            Output::Bytes(bytes) => chatter.push(&bytes, CHATTER),
            Output::End => break !child.wait(limit.min(FAREWELL)),
            Output::Silence | Output::Failed(_) => break true,
        }
    };
    let status = child.close();
    if interrupted() {
        return Err(failed("interrupted".to_owned()));
    }
    let did = match silent {
        true => format!("timed out after {} without output", seconds(limit)),
        false => describe(status),
    };
    // Both may hold the reason: issues of a run are told on standard output.
    let said = [one_line(chatter.bytes()), one_line(&child.messages())];
    let said: Vec<&str> = said
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    let said = said.join("; ");
    let with_words = |text: String| {
        if said.is_empty() {
            text
        } else {
            format!("{text}: {said}")
        }
    };
    // A bundle with nothing in it is none.
    let saved = fs::read_dir(&recording.output).is_ok_and(|mut entries| entries.next().is_some());
    match (saved, !silent && status.is_some_and(|status| status.success())) {
        (true, true) => Ok(None),
        (true, false) => Ok(Some(with_words(format!(
            "`xcrun xctrace record` {did}, but the trace was saved"
        )))),
        (false, true) => Err(failed(with_words(
            "`xcrun xctrace record` reported success but saved no trace".to_owned(),
        ))),
        (false, false) => Err(failed(with_words(format!("`xcrun xctrace record` {did}"))).with_help(
            "is the process still running, and may it be attached to? A hardened program needs the entitlement \
             get-task-allow",
        )),
    }
}
