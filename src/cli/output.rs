//! Where reports go: standard output, and files that are replaced whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{ExitStatus, Stop, stdout_failed};
use crate::error::{Error, Result};
use crate::report::Format;
use crate::source::Source;

/// Files to write, checked before the work starts.
pub(super) struct OutputPlan {
    files: Vec<(PathBuf, Format)>,
}

impl OutputPlan {
    /// Checks that every file has a known format, is no input, and can be written.
    pub(super) fn new(files: &[PathBuf], inputs: &[&PathBuf]) -> Result<OutputPlan> {
        let mut plan: Vec<(PathBuf, Format)> = Vec::new();
        for file in files {
            let origin = file.display().to_string();
            let format = Format::of_path(file).ok_or_else(|| {
                Error::usage(format!("--output {origin}: no format is known by this extension"))
                    .with_help("use .txt, .json or .md")
            })?;
            if plan.iter().any(|(other, _)| same_file(other, file)) {
                return Err(Error::usage(format!("--output {origin}: this file is given twice")));
            }
            check(file, inputs)?;
            plan.push((file.clone(), format));
        }
        Ok(OutputPlan { files: plan })
    }

    /// Writes each file through `render`.
    pub(super) fn write(&self, render: impl Fn(Format, &mut dyn Write) -> io::Result<()>) -> Result<()> {
        for (file, format) in &self.files {
            replace(file, |out| render(*format, out))?;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// Checks that a file is no folder, is no input, and can be written.
pub(super) fn check(file: &Path, inputs: &[&PathBuf]) -> Result<()> {
    let origin = file.display().to_string();
    if file.is_dir() {
        return Err(Error::usage(format!("--output {origin}: this is a folder"))
            .with_help("name a file in it, such as report.json"));
    }
    if inputs.iter().any(|input| is_part(file, input)) {
        return Err(Error::usage(format!("--output {origin}: this is an input")).with_help("write to another file"));
    }
    // Written and taken away again: better to fail now than after the work.
    scratch(file).and_then(|scratch| scratch.close()).map_err(|error| {
        Error::io("write there", error)
            .with_origin(&origin)
            .with_help("choose a folder that exists and that you may write to")
    })
}

/// Writes a file whole or not at all.
pub(super) fn replace(file: &Path, render: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let failed = |error: io::Error| Error::io("write it", error).with_origin(file.display().to_string());
    let mut scratch = scratch(file).map_err(failed)?;
    render(&mut scratch).map_err(failed)?;
    scratch.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Whether an output is an input or would stand in a bundle. A report may stand beside exported files: by its
/// extension it is none of them.
fn is_part(file: &Path, input: &Path) -> bool {
    let bundle = matches!(Source::from_argument(input), Ok(Source::Bundle(_)));
    same_file(file, input)
        || matches!((resolved(file), input.canonicalize()), (Some(file), Ok(input)) if bundle && file.starts_with(&input))
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((resolved(one), resolved(other)), (Some(one), Some(other)) if one == other)
}

/// The path without links and detours, also of a file that is not there yet.
fn resolved(file: &Path) -> Option<PathBuf> {
    file.canonicalize()
        .ok()
        .or_else(|| Some(folder_of(file).canonicalize().ok()?.join(file.file_name()?)))
}

fn folder_of(file: &Path) -> &Path {
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
