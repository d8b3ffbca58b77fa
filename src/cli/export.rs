//! `export`: a bundle's tables as files, for a machine without Xcode.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::output::{scratch, to_stdout};
use super::progress::Bar;
use super::values::ReadArgs;
use super::{Console, ExitStatus, Stop, print_warning};
use crate::error::{Error, Result};
use crate::recording::{Progress, RunChoice};
use crate::source::{self, Source};
use crate::tables::NEEDED;
use crate::tables::contents::Contents;
use crate::xctrace::{Bundle, ExportStream};
use crate::xml::{Element, ExportReader, Keep, Part};

const EXAMPLES: &str = "\
Examples:
  trace-attr export run.trace -o exported
  trace-attr export run.trace -o exported --zst --table os-signpost

Writes toc.xml and one <schema>.xml per table into the folder, which every other command takes as an input. \
Command lines, environment, user paths, device names and the list of processes are left out of toc.xml, and \
the user's name in paths is replaced in the tables, unless --show-private is given.";

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExportArgs {
    /// The .trace bundle
    bundle: PathBuf,
    /// The folder to write into; it is made if it is not there
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Compress the files (.xml.zst)
    #[arg(long)]
    zst: bool,
    /// Also write this table; can be given several times
    #[arg(long, value_name = "SCHEMA")]
    table: Vec<String>,
    /// Keep command lines, environment, user paths and device names
    #[arg(long)]
    show_private: bool,
    #[command(flatten)]
    read: ReadArgs,
}

pub(super) fn run(args: ExportArgs, console: Console) -> Result<ExitStatus, Stop> {
    let source = Source::from_argument(&args.bundle)?;
    let Source::Bundle(path) = &source else {
        return Err(Error::usage("this is no .trace bundle")
            .with_origin(source.origin())
            .with_help("exported files need no export: give them to the other commands as they are")
            .into());
    };
    if args.output.starts_with(path) || args.output.is_file() {
        return Err(Error::usage(format!(
            "--output {}: name a folder outside the bundle",
            args.output.display()
        ))
        .into());
    }
    let bundle = Bundle::open(path, args.read.xctrace()?)?;
    let (root, contents) = contents(&bundle, console)?;
    let run = chosen(&contents, args.read.run()).map_err(|error| error.with_origin(source.origin()))?;
    let listed: Vec<&str> = run.tables.iter().map(|(schema, _)| schema.as_str()).collect();
    let mut schemas: Vec<&str> = NEEDED
        .iter()
        .copied()
        .filter(|schema| listed.contains(schema))
        .collect();
    for table in &args.table {
        if !listed.contains(&table.as_str()) {
            return Err(Error::unfit(format!(
                "run {} has no table `{table}`; it has: {}",
                run.number,
                listed.join(", ")
            ))
            .with_origin(source.origin())
            .into());
        }
        if table.eq_ignore_ascii_case("toc") {
            return Err(
                Error::unfit("a table called `toc` would take the place of the table of contents")
                    .with_origin(source.origin())
                    .with_help("print it with `trace-attr rows`")
                    .into(),
            );
        }
        if !schemas.contains(&table.as_str()) {
            schemas.push(table);
        }
    }
    if schemas.is_empty() {
        return Err(Error::unfit("the run has none of the tables that are read here")
            .with_origin(source.origin())
            .with_help("record with the Metal System Trace template, or name a table with --table")
            .into());
    }
    fs::create_dir_all(&args.output)
        .map_err(|error| Error::io("make the folder", error).with_origin(args.output.display().to_string()))?;
    let bar = Bar::new(console);
    let mut written = Vec::new();
    let toc = redacted(&root, run.number, args.show_private).to_xml();
    written.push(write_file(&args, "toc", |out| out.write_all(toc.as_bytes()))?);
    for schema in schemas {
        // A schema's name was checked by the runner before it became an argument; here it becomes a file name.
        let mut stream = bundle.export(run.number, &[schema])?;
        bar.begin(schema, None);
        let name = schema.to_owned();
        let mut outcome = None;
        let file = write_file(&args, &name, |out| {
            let copied = copy(&mut stream, out, !args.show_private, &bar);
            outcome = Some(copied);
            Ok(())
        });
        let parsed = outcome.unwrap_or_else(|| Err(Error::unfit("nothing was written")));
        let failed = parsed.is_err();
        let finished = stream.finish(parsed);
        if failed || finished.is_err() {
            // Half a table must not look like one.
            if let Ok(file) = &file {
                let _ = fs::remove_file(file);
            }
        }
        let (rows, warning) = finished?;
        if let Some(warning) = warning {
            print_warning(console, &warning);
        }
        written.push(file?);
        // Shader Timeline is off in nearly every recording; an empty table of times is worth a word.
        if rows == 0 && !schema.starts_with("metal-shader-profiler") {
            print_warning(console, &format!("table `{schema}` has no row"));
        }
    }
    bar.clear();
    to_stdout(ExitStatus::Done, |out| {
        for file in &written {
            writeln!(out, "{}", crate::label::visible(&file.display().to_string()))?;
        }
        Ok(())
    })?;
    Ok(ExitStatus::Done)
}

fn contents(bundle: &Bundle, console: Console) -> Result<(Element, Contents)> {
    let mut stream = bundle.toc()?;
    let parsed = source::decode(&mut stream).and_then(|input| {
        let mut reader = ExportReader::new(input, Keep::Types(&[]));
        let mut found = None;
        while let Some(part) = reader.next_part()? {
            if let Part::Contents(root) = part {
                found = Some(root);
            }
        }
        found.ok_or_else(|| Error::unfit("xctrace gave no table of contents"))
    });
    let (root, warning) = stream.finish(parsed)?;
    if let Some(warning) = warning {
        print_warning(console, &warning);
    }
    let contents = Contents::from_element(&root);
    Ok((root, contents))
}

fn chosen(contents: &Contents, choice: RunChoice) -> Result<&crate::tables::contents::Run> {
    let list = || {
        contents
            .runs
            .iter()
            .map(|run| run.number.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (choice, contents.runs.as_slice()) {
        (RunChoice::Number(number), _) => contents
            .run(number)
            .ok_or_else(|| Error::unfit(format!("the recording has no run {number}; it has: {}", list()))),
        (RunChoice::Only, [only]) => Ok(only),
        (RunChoice::All, _) => Err(Error::usage(
            "a folder holds one run: export each with --run N into a folder of its own",
        )),
        _ => {
            Err(Error::unfit(format!("the recording has several runs: {}", list()))
                .with_help("choose one with --run N"))
        }
    }
}

/// The table of contents with one run, and without what is private.
fn redacted(root: &Element, run: u64, private: bool) -> Element {
    let mut root = root.clone();
    let place = |element: &Element, at: usize| {
        element
            .attribute("number")
            .and_then(|number| number.parse().ok())
            .unwrap_or(at as u64 + 1)
    };
    let mut at = 0;
    root.children.retain(|child| {
        let number = place(child, at);
        at += 1;
        child.name != "run" || number == run
    });
    if private {
        return root;
    }
    for run in &mut root.children {
        for part in &mut run.children {
            match part.name.as_str() {
                // Other programs on somebody's machine are nobody's business.
                "processes" => part.children.clear(),
                "info" => {
                    for target in part.children.iter_mut().filter(|child| child.name == "target") {
                        for element in &mut target.children {
                            let is_process = element.name == "process";
                            element.attributes.retain(|(key, _)| {
                                let public = [
                                    "platform",
                                    "model",
                                    "os-version",
                                    "type",
                                    "pid",
                                    "return-exit-status",
                                    "termination-reason",
                                ];
                                public.contains(&key.as_str()) || (is_process && key == "name")
                            });
                            element.children.clear();
                        }
                    }
                }
                _ => {}
            }
        }
    }
    root
}

/// Writes a file of the folder whole or not at all, compressed if asked for.
fn write_file(
    args: &ExportArgs,
    name: &str,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<PathBuf> {
    let end = if args.zst { ".xml.zst" } else { ".xml" };
    let path = args.output.join(format!("{name}{end}"));
    let failed = |error: io::Error| Error::io("write it", error).with_origin(path.display().to_string());
    let mut plain = scratch(&path).map_err(failed)?;
    {
        let mut out = io::BufWriter::new(plain.as_file_mut());
        fill(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    }
    let done = if args.zst {
        compressed(&path, plain.path()).map_err(failed)?
    } else {
        plain
    };
    done.persist(&path).map_err(|error| failed(error.error))?;
    // The other form of the same table would be a second copy of it.
    let other = args
        .output
        .join(format!("{name}{}", if args.zst { ".xml" } else { ".xml.zst" }));
    match fs::remove_file(other) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    Ok(path)
}

fn compressed(path: &Path, plain: &Path) -> io::Result<tempfile::NamedTempFile> {
    let packed = scratch(path)?;
    let source = io::BufReader::new(fs::File::open(plain)?);
    ruzstd::encoding::compress(source, packed.as_file(), ruzstd::encoding::CompressionLevel::Fastest);
    Ok(packed)
}

/// Copies a table while it is checked; returns its rows.
fn copy(stream: &mut ExportStream, out: &mut (dyn Write + Send), redact: bool, progress: &dyn Progress) -> Result<u64> {
    let mut failure = None;
    let tee = Tee {
        input: stream,
        out: UserPaths::new(out, redact),
        failure: &mut failure,
        progress,
    };
    let parsed = source::decode(tee).and_then(|input| {
        let mut reader = ExportReader::new(input, Keep::Types(&[]));
        let mut rows = 0;
        while let Some(part) = reader.next_part()? {
            if matches!(part, Part::Table { .. }) {
                while reader.read_row()?.is_some() {
                    rows += 1;
                }
            }
        }
        Ok(rows)
    });
    match failure {
        Some(error) => Err(Error::io("write the table", error)),
        None => parsed,
    }
}

/// Passes on what it reads to a writer.
struct Tee<'a, R, W: Write> {
    input: R,
    out: UserPaths<W>,
    failure: &'a mut Option<io::Error>,
    progress: &'a dyn Progress,
}

impl<R: Read, W: Write> Read for Tee<'_, R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let amount = self.input.read(buffer)?;
        self.progress.advance(amount as u64);
        let copied = if amount == 0 {
            self.out.finish()
        } else {
            self.out.push(buffer.get(..amount).unwrap_or_default())
        };
        if let Err(error) = copied {
            *self.failure = Some(error);
            return Err(io::Error::other("the output could not be written"));
        }
        Ok(amount)
    }
}

/// Replaces the user's name in `/Users/<name>` by `user`, also where a buffer ends inside it.
struct UserPaths<W: Write> {
    out: W,
    redact: bool,
    /// How much of [`HOME`] the last bytes were.
    matched: usize,
    /// Inside a name that is left out.
    inside: bool,
}

const HOME: &[u8] = b"/Users/";

impl<W: Write> UserPaths<W> {
    fn new(out: W, redact: bool) -> Self {
        UserPaths {
            out,
            redact,
            matched: 0,
            inside: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.redact {
            return self.out.write_all(bytes);
        }
        for byte in bytes {
            if self.inside {
                if !matches!(byte, b'/' | b'"' | b'\'' | b'<' | b'>' | b'&' | b' ' | b'\n') {
                    continue;
                }
                self.inside = false;
                self.out.write_all(b"user")?;
            }
            self.out.write_all(std::slice::from_ref(byte))?;
            let next = HOME.get(self.matched) == Some(byte);
            self.matched = if next {
                self.matched + 1
            } else {
                usize::from(*byte == b'/')
            };
            if self.matched == HOME.len() {
                self.matched = 0;
                self.inside = true;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.inside) {
            self.out.write_all(b"user")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b18_the_users_name_is_replaced_wherever_a_buffer_ends() {
        let text = "<binary path=\"/Users/jo.doe/x/Users/y\"/><p>/Users/ann</p>//Users/bob";
        let expected = "<binary path=\"/Users/user/x/Users/user\"/><p>/Users/user</p>//Users/user";
        for cut in 0..text.len() {
            let mut out = Vec::new();
            let mut paths = UserPaths::new(&mut out, true);
            paths.push(&text.as_bytes()[..cut]).unwrap();
            paths.push(&text.as_bytes()[cut..]).unwrap();
            paths.finish().unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected, "cut at {cut}");
        }
    }
}
