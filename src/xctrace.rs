//! Runs `xcrun xctrace` on a `.trace` bundle, or to make one; nothing else in the project starts it.
//!
//! In: a bundle, a run, schema names. Out: a stream of the exported XML while xctrace writes it (or from the cache
//! of earlier exports), and, when the caller has parsed it, one judgement of what the tool did and what the parser
//! said. The judgement goes by what came out: exit status 0 without output is a failure, a status such as 54 with a
//! complete document is a warning, and a truncated document is told after the signal that cut it.
//!
//! ```text
//! xcrun xctrace export --input run.trace --toc
//! xcrun xctrace export --input run.trace --xpath '/trace-toc/run[@number="1"]/data/table[@schema="a" or @schema="b"]'
//! ```

mod cache;
mod document;
mod process;
mod program;
mod record;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Take};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cache::Cache;
use crate::error::{Error, ErrorKind, Result};

pub use process::end_children;
pub use program::Program;
pub use record::{ShortRecording, record};

use cache::Pending;
use document::Document;
use process::{Output, Running, describe};

/// For xctrace to end after the last byte of a complete document.
const FAREWELL: Duration = Duration::from_secs(60);
/// For xctrace to end after the parser has refused its output.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// For `xctrace version`; xcrun can take a while when it looks for xctrace for the first time.
const VERSION: Duration = Duration::from_secs(20);
/// Longest text of xctrace's own in an error, in characters.
const QUOTED: usize = 2000;

/// How xctrace is run.
#[derive(Debug, Clone)]
pub struct XctraceOptions {
    /// The xcrun to run; by default `xcrun` from `PATH`.
    pub program: PathBuf,
    /// How long xctrace may be silent before it is ended (`--timeout`); by default 30 minutes, because the export of
    /// a large table can take most of that before its first byte.
    pub timeout: Duration,
    /// Where earlier exports are; `None`, the default, neither reads nor keeps any.
    pub cache: Option<Cache>,
}

impl Default for XctraceOptions {
    fn default() -> Self {
        XctraceOptions {
            program: PathBuf::from("xcrun"),
            timeout: Duration::from_secs(30 * 60),
            cache: None,
        }
    }
}

/// A `.trace` bundle.
#[derive(Debug, Clone)]
pub struct Bundle {
    path: PathBuf,
    options: XctraceOptions,
}

impl Bundle {
    /// Takes a bundle; xctrace is not run yet.
    ///
    /// # Errors
    /// When `path` is not a folder, or is the frame capture that a `.gputrace` is.
    pub fn open(path: &Path, options: XctraceOptions) -> Result<Bundle> {
        let name = shown(path);
        let metadata = fs::metadata(path).map_err(|error| Error::io(format!("open `{name}`"), error))?;
        if path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("gputrace"))
        {
            return Err(Error::new(ErrorKind::NotAnExport(format!(
                "`{name}` is a frame capture, not a recording: it has no timeline to export"
            )))
            .with_help("record one: `xcrun xctrace record --template 'Metal System Trace' …` makes a .trace bundle"));
        }
        if !metadata.is_dir() {
            return Err(Error::new(ErrorKind::NotAnExport(format!(
                "`{name}` is a file; a .trace bundle is a folder (unzip it first if it came as an archive)"
            ))));
        }
        Ok(Bundle {
            path: path.to_path_buf(),
            options,
        })
    }

    /// The bundle as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The table of contents: the bundle's runs and the tables of each.
    ///
    /// # Errors
    /// When xcrun cannot be started; later failures are told by [`ExportStream::finish`].
    pub fn toc(&self) -> Result<ExportStream> {
        self.stream(&["--toc"], "the table of contents".to_owned())
    }

    /// All tables of one run with one of these schema names.
    ///
    /// What the run does not have is not in the document, and no failure of xctrace's.
    ///
    /// # Errors
    /// When `schemas` is empty or holds a name that no schema can have (xctrace is not started then), and when xcrun
    /// cannot be started; later failures are told by [`ExportStream::finish`].
    pub fn export(&self, run: u64, schemas: &[&str]) -> Result<ExportStream> {
        let xpath = xpath(run, schemas)?;
        let (named, others) = schemas.split_at(schemas.len().min(3));
        let mut what = format!("`{}`", named.join("`, `"));
        if !others.is_empty() {
            what += &format!(" and {} more", others.len());
        }
        self.stream(&["--xpath", &xpath], format!("{what} of run {run}"))
    }

    /// `query` is the end of the command line, `what` the same for people.
    fn stream(&self, query: &[&str], what: String) -> Result<ExportStream> {
        let key = self.key(query);
        let job = Job {
            bundle: self.clone(),
            query: query.iter().map(|&part| part.to_owned()).collect(),
            what,
        };
        if let Some((cache, key)) = &key
            && let Some(xml) = cache::open(cache, key)
        {
            return Ok(ExportStream {
                source: Source::Kept(xml),
            });
        }

        // An argument that begins with `-` would be read as an option.
        let dashed = self.path.as_os_str().as_encoded_bytes().starts_with(b"-");
        let input = if dashed {
            Path::new(".").join(&self.path)
        } else {
            self.path.clone()
        };
        let arguments: Vec<&OsStr> = ["xctrace", "export", "--input"]
            .into_iter()
            .map(OsStr::new)
            .chain([input.as_os_str()])
            .chain(query.iter().map(OsStr::new))
            .collect();
        let child = Running::start(&self.options.program, &arguments).map_err(|error| job.not_started(&error))?;
        let entry = key.and_then(|(cache, key)| Pending::begin(cache, key));
        Ok(ExportStream {
            source: Source::Tool(Box::new(Tool {
                job,
                child,
                document: Document::new(),
                ready: Vec::new(),
                given: 0,
                entry,
                state: State::Open,
            })),
        })
    }

    /// What the bundle and its xctrace are now, as a text that changes with either; `None` when that cannot be told.
    pub(crate) fn state(&self) -> Option<String> {
        cache::key(&self.path, &version(&self.options)?, "")
    }

    /// Where this export is or will be cached.
    fn key(&self, query: &[&str]) -> Option<(&Cache, String)> {
        let cache = self.options.cache.as_ref()?;
        let version = version(&self.options)?;
        Some((cache, cache::key(&self.path, &version, &query.join(" "))?))
    }
}

/// The expression for xctrace; its grammar has no escapes, so only names that need none are let in.
fn xpath(run: u64, schemas: &[&str]) -> Result<String> {
    let sound = |name: &str| {
        // Names become files when they are exported; one with a dot first would be hidden.
        !name.is_empty()
            && !name.starts_with('.')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
    };
    if schemas.is_empty() {
        return Err(Error::usage("no table was named to export"));
    }
    if let Some(name) = schemas.iter().find(|name| !sound(name)) {
        return Err(Error::usage(format!(
            "`{}` is not the name of a table: one has letters, digits, `-`, `_` and `.` only",
            name.escape_debug()
        ))
        .with_help("list what a trace has with `trace-attr toc`"));
    }
    let tests: Vec<String> = schemas.iter().map(|name| format!("@schema=\"{name}\"")).collect();
    Ok(format!(
        "/trace-toc/run[@number=\"{run}\"]/data/table[{}]",
        tests.join(" or ")
    ))
}

/// What `xcrun xctrace version` says, asked once per process and xcrun; `None` when it says nothing usable.
fn version(options: &XctraceOptions) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(version) = known.get(&options.program) {
        return version.clone();
    }
    let version = ask_version(options);
    known.insert(options.program.clone(), version.clone());
    version
}

fn ask_version(options: &XctraceOptions) -> Option<String> {
    let mut child = Running::start(&options.program, &[OsStr::new("xctrace"), OsStr::new("version")]).ok()?;
    let limit = options.timeout.min(VERSION);
    let asked = Instant::now();
    let mut text = Vec::new();
    loop {
        match child.output(limit.saturating_sub(asked.elapsed())) {
            Output::Bytes(bytes) if text.len() < 4096 => text.extend(bytes),
            Output::End => break,
            _ => return None,
        }
    }
    if !child.wait(limit) || !child.close()?.success() {
        return None;
    }
    Some(String::from_utf8_lossy(&text).trim().to_owned()).filter(|text| !text.is_empty())
}

/// The bytes of one exported XML document, while xctrace writes them or from the cache.
///
/// Read it to the end of the document, then call [`ExportStream::finish`]; text that xctrace prints around the
/// document is not in it. Dropping it ends xctrace.
pub struct ExportStream {
    source: Source,
}

enum Source {
    Kept(Take<BufReader<File>>),
    Tool(Box<Tool>),
}

impl std::fmt::Debug for ExportStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = match &self.source {
            Source::Kept(_) => "cache",
            Source::Tool(_) => "xctrace",
        };
        f.debug_struct("ExportStream")
            .field("from", &from)
            .finish_non_exhaustive()
    }
}

impl Read for ExportStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            Source::Kept(xml) => xml.read(buffer),
            Source::Tool(tool) => tool.read(buffer),
        }
    }
}

impl ExportStream {
    /// Whether the document comes from the cache.
    pub fn is_cached(&self) -> bool {
        matches!(self.source, Source::Kept(_))
    }

    /// Judges the export by what the parser made of it and how xctrace ended; to be called after parsing.
    ///
    /// Gives the parsed value, and a warning when xctrace reported a failure although its document is complete.
    /// A complete document of an xctrace that ended well is kept in the cache.
    ///
    /// # Errors
    /// The parser's error alone when xctrace ended well or was still writing; otherwise what xctrace did, in its own
    /// words, followed by what the parser said.
    pub fn finish<T>(self, parsed: Result<T>) -> Result<(T, Option<String>)> {
        match self.source {
            Source::Kept(_) => parsed.map(|value| (value, None)),
            Source::Tool(tool) => tool.finish(parsed),
        }
    }
}

/// How far the output was read.
enum State {
    /// More may come.
    Open,
    /// It has ended.
    Ended,
    /// Nothing came for this long, or the child did not go.
    Silent(Duration),
    /// Too much text without a document.
    NoDocument,
    /// The pipe failed.
    Broken(io::Error),
}

/// A running export.
struct Tool {
    job: Job,
    child: Running,
    document: Document,
    /// Bytes of the document; those before `given` were read.
    ready: Vec<u8>,
    given: usize,
    entry: Option<Pending>,
    state: State,
}

impl Tool {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut rest = self.ready.get(self.given..).unwrap_or_default();
            if !rest.is_empty() {
                let length = rest.read(buffer)?;
                self.given += length;
                return Ok(length);
            }
            // `finish` tells the whole story; these texts are seen only by somebody who does not call it.
            match &self.state {
                State::Ended => return Ok(0),
                State::Open if self.document.is_complete() => return Ok(0),
                State::Open => self.fill(self.job.bundle.options.timeout),
                State::Silent(limit) => {
                    let text = format!("timed out after {} without output", seconds(*limit));
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                State::NoDocument => return Err(io::Error::new(io::ErrorKind::InvalidData, "no XML in the output")),
                State::Broken(error) => return Err(io::Error::new(error.kind(), error.to_string())),
            }
        }
    }

    /// Takes the next output, after all that is ready was given.
    fn fill(&mut self, limit: Duration) {
        self.ready.clear();
        self.given = 0;
        match self.child.output(limit) {
            Output::Bytes(bytes) => {
                if !self.document.push(&bytes, &mut self.ready) {
                    self.state = State::NoDocument;
                }
            }
            Output::End => {
                self.document.end(&mut self.ready);
                self.state = State::Ended;
            }
            Output::Silence => self.state = State::Silent(limit),
            Output::Failed(error) => self.state = State::Broken(error),
        }
        self.entry = self.entry.take().and_then(|entry| entry.write(&self.ready));
    }

    /// Reads on to the end of the output, for at most `total` when there is such a limit.
    fn drain(&mut self, total: Option<Duration>) {
        let started = Instant::now();
        while matches!(self.state, State::Open) {
            let mut limit = self.job.bundle.options.timeout;
            if self.document.is_complete() {
                limit = limit.min(FAREWELL);
            }
            if let Some(total) = total {
                let left = total.saturating_sub(started.elapsed());
                if left.is_zero() {
                    return;
                }
                if left < limit {
                    limit = left;
                }
            }
            self.fill(limit);
        }
    }

    fn finish<T>(mut self, parsed: Result<T>) -> Result<(T, Option<String>)> {
        let timeout = self.job.bundle.options.timeout;
        if parsed.is_ok() {
            self.drain(None);
        } else if matches!(self.state, State::Open) {
            // What stopped the parser may be xctrace's last act.
            self.drain(Some(LAST_WORDS.min(timeout)));
            if !matches!(self.state, State::Ended) {
                self.state = State::Open;
            }
        }
        if matches!(self.state, State::Ended) {
            let limit = timeout.min(FAREWELL);
            if !self.child.wait(limit) {
                self.state = State::Silent(limit);
            }
        }
        let status = self.child.close();
        let Tool {
            job,
            child,
            document,
            entry,
            state,
            ..
        } = self;

        let messages = one_line(&child.messages());
        let said = match state {
            _ if !messages.is_empty() => messages,
            State::NoDocument => format!("`{}`", first_line(document.chatter())),
            _ => one_line(document.chatter()),
        };
        let complete = document.is_complete();
        let well = matches!(state, State::Ended) && status.is_some_and(|status| status.success());
        match parsed {
            Ok(value) if well && complete => {
                if let Some(entry) = entry {
                    job.keep(entry);
                }
                Ok((value, None))
            }
            _ if !well && process::interrupted() => Err(job.failed("interrupted")),
            Ok(value) if complete => Ok((value, Some(job.warning(&state, status, &said)))),
            // The parser gave up on what xctrace was still writing: xctrace is not the cause.
            Err(error) if matches!(state, State::Open) => Err(error),
            Err(error) if well && document.has_begun() => Err(error),
            parsed => {
                // In the other states it only repeats what `read` told the parser.
                let cut = matches!(state, State::Ended) && document.has_begun();
                let parse_error = parsed.err().filter(|_| cut);
                Err(job.error(&state, status, &said, parse_error.as_ref()))
            }
        }
    }
}

/// What was asked of xctrace, and how its failures read.
struct Job {
    bundle: Bundle,
    query: Vec<String>,
    what: String,
}

impl Job {
    fn failed(&self, cause: &str) -> Error {
        Error::new(ErrorKind::Xctrace(format!(
            "could not export from `{}`: {cause}",
            shown(&self.bundle.path)
        )))
    }

    fn not_started(&self, error: &io::Error) -> Error {
        let program = &self.bundle.options.program;
        let name = shown(program.file_name().map_or(program, Path::new));
        if error.kind() == io::ErrorKind::NotFound {
            return self.failed(&format!("`{name}` was not found")).with_help(
                "reading a .trace bundle needs macOS with Xcode; on this machine pass the exported XML instead \
                 (`trace-attr export` makes it on a Mac)",
            );
        }
        if process::interrupted() {
            return self.failed("interrupted");
        }
        self.failed(&format!("could not start `{name}`: {error}"))
    }

    /// Files the entry, unless the bundle is no longer what it was when the export began.
    fn keep(&self, entry: Pending) {
        let query: Vec<&str> = self.query.iter().map(String::as_str).collect();
        if self.bundle.key(&query).is_some_and(|(_, key)| key == entry.key()) {
            entry.store();
        }
    }

    /// What xctrace did, without what it said.
    fn cause(&self, state: &State, status: Option<ExitStatus>) -> String {
        let did = match state {
            State::Silent(limit) => format!("timed out after {} without output", seconds(*limit)),
            State::Broken(error) => format!("could not be read from ({error})"),
            State::NoDocument => "gave text instead of XML".to_owned(),
            State::Open | State::Ended => describe(status),
        };
        format!("`xcrun xctrace` {did} while exporting {}", self.what)
    }

    fn warning(&self, state: &State, status: Option<ExitStatus>, said: &str) -> String {
        let name = shown(&self.bundle.path);
        let mut text = format!("{name}: {}, but the export is complete", self.cause(state, status));
        if !said.is_empty() {
            text += &format!(": {said}");
        }
        text
    }

    fn error(&self, state: &State, status: Option<ExitStatus>, said: &str, parse_error: Option<&Error>) -> Error {
        let well = matches!(state, State::Ended) && status.is_some_and(|status| status.success());
        let mut cause = match (well, said.is_empty(), parse_error) {
            (true, true, None) => format!("`xcrun xctrace` reported success but gave no output for {}", self.what),
            (true, false, None) => format!(
                "`xcrun xctrace` reported success but gave no complete XML for {}",
                self.what
            ),
            _ => self.cause(state, status),
        };
        if !said.is_empty() {
            cause += &format!(": {said}");
        }
        let help = if said.contains("Document Missing Template") || said.contains("run data is missing") {
            cause += " (the recording was not finished)";
            Some("the recording was not finished: record again, and let it end by its time limit or by one Ctrl-C")
        } else if said.contains("unable to find utility") || said.contains("active developer") {
            Some(
                "xctrace comes with Xcode, not with the Command Line Tools: install Xcode, then \
                 `sudo xcode-select --switch /Applications/Xcode.app`",
            )
        } else if matches!(state, State::Silent(_)) {
            Some("the export of a large trace can be silent for long: raise the limit with `--timeout`")
        } else if matches!(state, State::Ended) && status.is_some_and(process::crashed) {
            Some("xctrace itself crashed, which is often not repeated: try again; what it wrote before is not used")
        } else {
            None
        };
        if let Some(error) = parse_error {
            cause += &format!("; then: {}", error.kind());
        }
        let error = self.failed(&cause);
        match help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }
}

/// A path for a message of one line.
fn shown(path: &Path) -> String {
    path.display()
        .to_string()
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// `2 s`, `0.5 s`, `30 min`.
fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    if time.subsec_nanos() == 0 && whole >= 120 && whole.is_multiple_of(60) {
        format!("{} min", whole / 60)
    } else {
        format!("{} s", time.as_secs_f64())
    }
}

/// What a program printed, as one line: its last lines in its own words, without colours, blank or repeated ones.
fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = Vec::new();
    for line in text.split(['\n', '\r']) {
        let line = without_colours(line);
        if !line.is_empty() && lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    let line = lines.join(" ");
    match line.char_indices().rev().nth(QUOTED) {
        Some((at, _)) => format!("…{}", line.get(at..).unwrap_or_default()),
        None => line,
    }
}

/// The first line that is not blank, or its beginning.
fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text
        .lines()
        .map(without_colours)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    match line.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// The line without terminal escapes and other control characters.
fn without_colours(line: &str) -> String {
    let mut clean = String::new();
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            if characters.next_if_eq(&'[').is_some() {
                let _ = characters.by_ref().find(|c| ('@'..='~').contains(c));
            }
        } else {
            clean.push(if character.is_control() { ' ' } else { character });
        }
    }
    clean.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xpath_has_balanced_quotes_and_only_sound_names() {
        assert_eq!(
            xpath(3, &["metal-gpu-intervals", "a.b_c"]).unwrap(),
            r#"/trace-toc/run[@number="3"]/data/table[@schema="metal-gpu-intervals" or @schema="a.b_c"]"#
        );
        for name in ["metal\"x", "", "a b", "a'", "a]", "é", "a\n"] {
            let error = xpath(1, &["ok", name]).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Usage(_)), "{name:?}");
            assert!(!error.to_string().contains('\n'));
        }
        assert!(xpath(1, &[]).is_err());
    }

    #[test]
    fn messages_are_one_line_in_their_own_words() {
        assert_eq!(
            one_line(b"\x1b[31mRun issues:\x1b[0m\r\n\n* [Error] a\n* [Error] a\n"),
            "Run issues: * [Error] a"
        );
        let long = one_line("é".repeat(QUOTED * 2).as_bytes());
        assert_eq!(long.chars().count(), QUOTED + 2);
        assert_eq!(one_line(b""), "");
    }

    #[test]
    fn a_limit_is_told_in_the_usual_unit() {
        let told = [
            (2000, "2 s"),
            (500, "0.5 s"),
            (60_000, "60 s"),
            (1_800_000, "30 min"),
            (121_000, "121 s"),
        ];
        for (ms, text) in told {
            assert_eq!(seconds(Duration::from_millis(ms)), text);
        }
    }
}
