//! Where reports go: standard output, and files that are replaced whole or not at all.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::{ExitStatus, Stop, stdout_failed};
use crate::error::{Error, Result};
use crate::report::Format;
use crate::source::{self, Source};

/// What GitHub takes as the summary of a step, in bytes.
const SUMMARY_BYTES: usize = 1 << 20;

/// Files to write, checked before the work starts.
pub(super) struct OutputPlan {
    files: Vec<Output>,
}

/// One file.
struct Output {
    file: PathBuf,
    format: Format,
    /// The step summary of a GitHub job: other commands of the step have written to it, and it has a limit.
    summary: bool,
}

impl OutputPlan {
    /// Checks that every file has a format, is no input, and can be written.
    ///
    /// `FILE` has the format of its extension, `FORMAT=FILE` the one that is named.
    pub(super) fn new(outputs: &[PathBuf], inputs: &[&PathBuf]) -> Result<OutputPlan> {
        let mut plan: Vec<Output> = Vec::new();
        for output in outputs {
            let (named, file) = parts(output);
            let origin = file.display().to_string();
            let word = output
                .to_str()
                .and_then(|text| text.split_once('='))
                .map(|(word, _)| word);
            if let (None, Some(word)) = (named, word)
                && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
            {
                return Err(
                    Error::usage(format!("--output {}: `{word}` is no format", output.display())).with_help(format!(
                        "use one of {}; a file of that name is ./{}",
                        formats().join(", "),
                        output.display()
                    )),
                );
            }
            check(file, inputs)?;
            let format = named.or_else(|| Format::of_path(file)).ok_or_else(|| {
                Error::usage(format!("--output {origin}: no format is known by this extension")).with_help(format!(
                    "use .txt, .json, .md, .html, .csv or .xml, or name the format: --output FORMAT={origin} with {}",
                    formats().join(", ")
                ))
            })?;
            if plan.iter().any(|other| same_file(&other.file, file)) {
                return Err(Error::usage(format!("--output {origin}: this file is given twice")));
            }
            let summary = std::env::var_os("GITHUB_STEP_SUMMARY");
            plan.push(Output {
                file: file.to_owned(),
                format,
                summary: format == Format::Markdown && summary.is_some_and(|summary| same_file(file, summary.as_ref())),
            });
        }
        Ok(OutputPlan { files: plan })
    }

    /// Writes each file through `render`, which is given the format, and the most bytes where the file has a limit.
    pub(super) fn write(&self, render: impl Fn(Format, Option<usize>, &mut dyn Write) -> io::Result<()>) -> Result<()> {
        for Output { file, format, summary } in &self.files {
            replace(file, |out| {
                let mut room = None;
                if *summary {
                    let before = written_before(file)?;
                    out.write_all(&before)?;
                    room = Some(SUMMARY_BYTES.saturating_sub(before.len()));
                }
                render(*format, room, out)
            })?;
        }
        Ok(())
    }

    /// Whether a file has this format.
    pub(super) fn has(&self, format: Format) -> bool {
        self.files.iter().any(|output| output.format == format)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// Checks that a file is no folder, is no input, and can be written.
pub(super) fn check(file: &Path, inputs: &[&PathBuf]) -> Result<()> {
    let origin = file.display().to_string();
    if file.as_os_str() == "-" {
        return Err(Error::usage("--output -: this is no file")
            .with_help("standard output is where it goes without --output; a file of that name is ./-"));
    }
    if file.is_dir() {
        return Err(Error::usage(format!("--output {origin}: this is a folder")).with_help("name a file in it"));
    }
    if let Ok(there) = fs::symlink_metadata(file) {
        let target = fs::metadata(file);
        let dangling = there.is_symlink() && target.is_err();
        if dangling || target.is_ok_and(|target| !target.is_file()) {
            // A device or a pipe would be replaced by a file of its name.
            let what = if dangling { "a link to nothing" } else { "no plain file" };
            return Err(Error::usage(format!("--output {origin}: this is {what}"))
                .with_help("name a file, or print one format with --format and redirect it"));
        }
    }
    for input in inputs {
        if is_part(file, input) {
            return Err(Error::usage(format!("--output {origin}: this is an input")).with_help("write to another file"));
        }
        if would_be_part(file, input) {
            return Err(Error::usage(format!(
                "--output {origin}: in a folder of exported files it would be read as one of them"
            ))
            .with_help("write to another folder, or give the file an extension other than .xml"));
        }
    }
    // Written and taken away again: better to fail now than after the work.
    scratch(&behind_links(file))
        .and_then(|scratch| scratch.close())
        .map_err(|error| {
            Error::io("write there", error)
                .with_origin(&origin)
                .with_help("choose a folder that exists and that you may write to")
        })
}

/// Where a file really stands: behind links, so that these stay.
fn behind_links(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

/// Writes a file whole or not at all.
pub(super) fn replace(file: &Path, render: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<()> {
    let failed = |error: io::Error| Error::io("write it", error).with_origin(file.display().to_string());
    let target = behind_links(file);
    let mut scratch = scratch(&target).map_err(failed)?;
    render(&mut scratch).map_err(failed)?;
    scratch.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
}

/// A format that is named in front of a file, and the file. A `=` behind anything else is part of the file's name.
fn parts(output: &Path) -> (Option<Format>, &Path) {
    let named = output.to_str().and_then(|text| {
        let (name, file) = text.split_once('=')?;
        let format = Format::from_str(name, false).ok()?;
        (!file.is_empty()).then_some((format, Path::new(file)))
    });
    named.map_or((None, output), |(format, file)| (Some(format), file))
}

/// Names of all formats.
fn formats() -> Vec<String> {
    let values = Format::value_variants().iter().filter_map(Format::to_possible_value);
    values.map(|value| value.get_name().to_owned()).collect()
}

/// What a file holds, with a line break at its end when it holds anything.
fn written_before(file: &Path) -> io::Result<Vec<u8>> {
    let mut before = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    if before.last().is_some_and(|last| *last != b'\n') {
        before.push(b'\n');
    }
    Ok(before)
}

/// Whether an output is an input or would stand in a bundle.
fn is_part(file: &Path, input: &Path) -> bool {
    let bundle = matches!(Source::from_argument(input), Ok(Source::Bundle(_)));
    same_file(file, input)
        || matches!((resolved(file), input.canonicalize()), (Some(file), Ok(input)) if bundle && file.starts_with(&input))
}

/// Whether an output would stand among the exported files of an input. Other reports may stand beside them: by their
/// extension they are none of them.
fn would_be_part(file: &Path, input: &Path) -> bool {
    source::is_export(file)
        && input.is_dir()
        && matches!((resolved(file), input.canonicalize()), (Some(file), Ok(input)) if file.parent() == Some(&input))
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((resolved(one), resolved(other)), (Some(one), Some(other)) if one == other)
}

/// The path without links and detours, also of a file that is not there yet.
pub(super) fn resolved(file: &Path) -> Option<PathBuf> {
    file.canonicalize()
        .ok()
        .or_else(|| Some(folder_of(file).canonicalize().ok()?.join(file.file_name()?)))
}

pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// A new file beside `file`, to take its place; it has the mode that a new file has.
pub(super) fn scratch(file: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".trace-attr-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The scratch file's own name would be in the message; nobody asked for that file.
    builder
        .tempfile_in(folder_of(file))
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotFound, "there is no such folder"),
            kind => io::Error::from(kind),
        })
}

/// Writes to standard output.
pub(super) fn to_stdout(
    status: ExitStatus,
    render: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> std::result::Result<(), Stop> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    render(&mut out)
        .and_then(|()| out.flush())
        .map_err(|error| stdout_failed(error, status))
}

/// Columns of the terminal; `COLUMNS`, else 100, when standard output is none.
pub(super) fn width() -> usize {
    let asked = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    terminal.or_else(asked).unwrap_or(100).clamp(40, 1_000)
}

/// Whether standard output is a terminal that draws block characters: not the Linux console's few glyphs, and not a locale
/// without UTF-8, whose text the terminal would show byte by byte.
pub(super) fn draws_blocks() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let plain = set("TERM").is_some_and(|term| term == "dumb" || term == "linux");
    // The first that is set counts.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    let utf8 = locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    io::stdout().is_terminal() && !plain && utf8
}
