//! Runs the real binary as a user does, and states what must hold of every run.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A path of the repository.
pub fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A folder with the files of one test; the binary runs in it.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Nothing is on this path: no test may find a real xcrun.
        std::fs::create_dir(folder.path().join("no-tools")).unwrap();
        Place { folder }
    }

    /// A place with one file, `in.xml`.
    pub fn with(text: impl AsRef<[u8]>) -> Self {
        let place = Place::new();
        place.write("in.xml", text);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and the folders it stands in; gives its name back.
    pub fn write<'n>(&self, name: &'n str, bytes: impl AsRef<[u8]>) -> &'n str {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        name
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The binary, without anything of the caller's settings.
    pub fn command<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trace-attr"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PATH", self.path("no-tools"))
            .env("TRACE_ATTR_CACHE_DIR", self.path("cache"))
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    pub fn run<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    /// Runs with `input` on standard input.
    pub fn pipe<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, input: &[u8], arguments: I) -> Ran {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // A refusal ends the reading early.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran::from_output(&output)
    }

    /// `report in.xml --format json` with more options.
    pub fn report(&self, options: &[&str]) -> Value {
        self.run([&["report", "in.xml", "--format", "json"], options].concat())
            .json()
    }
}

/// What a run of the binary left.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(command: &mut Command) -> Self {
        Self::from_output(&command.output().unwrap())
    }

    pub fn from_output(output: &std::process::Output) -> Self {
        let ran = Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout.clone()).expect("UTF-8 on stdout"),
            stderr: String::from_utf8(output.stderr.clone()).expect("UTF-8 on stderr"),
        };
        assert!(
            !ran.stderr.contains("panicked") && !ran.stderr.contains("a fault of trace-attr itself"),
            "{ran:#?}"
        );
        ran
    }

    /// Succeeded without a word on standard error.
    #[track_caller]
    pub fn done(&self) -> &Self {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.any_json()
    }

    /// JSON on stdout whatever the status.
    #[track_caller]
    pub fn any_json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// One object per line.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.done();
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Exit status 2, nothing on stdout, `error: …` in one line, then at most `help: …`; holds all `parts`.
    #[track_caller]
    pub fn refused(&self, parts: &[&str]) -> &Self {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{self:#?}");
        let lines: Vec<&str> = self.stderr.lines().collect();
        assert!(
            matches!(lines.as_slice(), [error] if error.starts_with("error: "))
                || matches!(lines.as_slice(), [error, help] if error.starts_with("error: ") && help.starts_with("help: ")),
            "{self:#?}"
        );
        self.says(parts)
    }

    #[track_caller]
    pub fn says(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is not in {self:#?}");
        }
        self
    }
}

/// The row of a section by its key.
#[track_caller]
pub fn row<'v>(report: &'v Value, section: &str, key: &str) -> &'v Value {
    let rows = report[section]
        .as_array()
        .unwrap_or_else(|| panic!("{section} in {report}"));
    rows.iter()
        .find(|row| row["key"] == key)
        .unwrap_or_else(|| panic!("`{key}` in {section}: {:?}", keys(report, section)))
}

pub fn keys(report: &Value, section: &str) -> Vec<String> {
    let rows = report[section].as_array().unwrap();
    rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

/// Keys of rows with submissions: buckets stand there also when they are empty.
pub fn used(report: &Value, section: &str) -> Vec<String> {
    let rows = report[section].as_array().unwrap();
    rows.iter()
        .filter(|row| !row["a"].is_null() || !row["b"].is_null())
        .map(|row| row["key"].as_str().unwrap().to_owned())
        .collect()
}

/// The first trial of side A.
pub fn trial(report: &Value) -> &Value {
    &report["a"]["trials"][0]
}

/// Codes of the notes.
pub fn notes(report: &Value) -> Vec<String> {
    let notes = report["notes"].as_array().unwrap();
    notes
        .iter()
        .map(|note| note["code"].as_str().unwrap().to_owned())
        .collect()
}

/// The text of a note.
#[track_caller]
pub fn note<'v>(report: &'v Value, code: &str) -> &'v str {
    let notes = report["notes"].as_array().unwrap();
    notes
        .iter()
        .find(|note| note["code"] == code)
        .unwrap_or_else(|| panic!("note `{code}` in {notes:#?}"))["text"]
        .as_str()
        .unwrap()
}
