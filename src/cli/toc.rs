//! `toc`: runs, targets and tables of an input.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::output::to_stdout;
use super::progress::Bar;
use super::values::BundleArgs;
use super::{Console, ExitStatus, Stop, print_warning};
use crate::error::{Error, Result};
use crate::label::visible;
use crate::recording::{Progress, shown};
use crate::source::{self, Source};
use crate::tables::contents::{Contents, Run, run_number};
use crate::xctrace::Bundle;
use crate::xml::{ExportReader, Keep, Part, RunReference};

const EXAMPLES: &str = "\
Examples:
  trace-attr toc run.trace
  trace-attr toc exported/ --format json";

/// Arguments of `toc`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TocArgs {
    /// A bundle, a folder of exported files, a file, or `-`
    input: PathBuf,
    /// How the list is written
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: TocFormat,
    /// Show command lines, environment, user paths and device names too
    #[arg(long)]
    show_private: bool,
    #[command(flatten)]
    bundle: BundleArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TocFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// A table that was read, not only listed.
#[derive(Debug, Clone, Default)]
struct Found {
    nodes: u64,
    rows: u64,
    columns: Vec<String>,
}

/// Tables by run (as the node's path names it) and schema.
type Tables = BTreeMap<(RunReference, String), Found>;

pub(super) fn run(args: TocArgs, console: Console) -> Result<ExitStatus, Stop> {
    let source = Source::from_argument(&args.input)?;
    let (contents, tables) = read(&source, &args, console).map_err(|error| error.with_origin(source.origin()))?;
    if contents.is_none() && tables.is_empty() {
        return Err(Error::unfit("the export holds no table and no table of contents")
            .with_origin(source.origin())
            .with_help(
                "`xctrace export` succeeds even when --xpath matches nothing; export with `--toc` to see what there is",
            )
            .into());
    }
    to_stdout(ExitStatus::Done, |out| match args.format {
        TocFormat::Text => text(out, contents.as_ref(), &tables, args.show_private),
        TocFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &as_json(contents.as_ref(), &tables, args.show_private))?;
            out.write_all(b"\n")
        }
    })?;
    Ok(ExitStatus::Done)
}

fn read(source: &Source, args: &TocArgs, console: Console) -> Result<(Option<Contents>, Tables)> {
    let (mut contents, mut tables) = (None, Tables::new());
    let bar = Bar::new(console);
    match source {
        Source::Bundle(path) => {
            let mut stream = Bundle::open(path, args.bundle.options()?)?.toc()?;
            let parsed = source::decode(&mut stream).and_then(|input| scan(input, &mut contents, &mut tables));
            let ((), warning) = stream.finish(parsed)?;
            if let Some(warning) = warning {
                print_warning(console, &warning);
            }
        }
        Source::Stdin => scan(source::decode(io::stdin())?, &mut contents, &mut tables)?,
        Source::File(_) | Source::Folder(_) => {
            for file in source.files()? {
                bar.begin(
                    &file.display().to_string(),
                    std::fs::metadata(&file).ok().map(|metadata| metadata.len()),
                );
                let input = source::open(&file, |amount| bar.advance(amount))?;
                scan(input, &mut contents, &mut tables)
                    .map_err(|error| error.with_origin(file.display().to_string()))?;
            }
        }
    }
    if let Some(contents) = &contents {
        // The table of contents knows the numbers of the places.
        let numbered = |((run, schema), found)| {
            let number = RunReference::Number(run_number(Some(contents), run));
            ((number, schema), found)
        };
        tables = tables.into_iter().map(numbered).collect();
    }
    Ok((contents, tables))
}

fn scan(input: source::Input<'_>, contents: &mut Option<Contents>, tables: &mut Tables) -> Result<()> {
    // Nothing of the cells is needed; they are checked all the same.
    let mut reader = ExportReader::new(input, Keep::Types(&[]));
    loop {
        let key = match reader.next_part()? {
            None => return Ok(()),
            Some(Part::Contents(root)) => {
                *contents = Some(Contents::from_element(&root));
                continue;
            }
            Some(Part::Table { schema, run }) => {
                let key = (run, schema.name().to_owned());
                let found = tables.entry(key.clone()).or_default();
                found.nodes += 1;
                found.columns = schema.columns().iter().map(|column| column.mnemonic.clone()).collect();
                key
            }
        };
        let mut rows = 0;
        while reader.read_row()?.is_some() {
            rows += 1;
        }
        if let Some(found) = tables.get_mut(&key) {
            found.rows += rows;
        }
    }
}

/// Facts of a run that may be shown, as label and value.
fn facts(run: &Run, private: bool) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    add("target", run.target.as_ref().map(shown));
    add("started", run.start_date.clone());
    // Recordings are written with six decimals; so are they shown.
    add(
        "duration",
        run.duration
            .map(|ns| format!("{}.{:06} s", ns.0 / 1_000_000_000, ns.0 % 1_000_000_000 / 1_000)),
    );
    add("ended", run.end_reason.clone());
    add("template", run.template.clone());
    add("instruments", run.instruments_version.clone());
    add("system", run.os_version.clone());
    add("shader timeline", run.shader_timeline.clone());
    if private {
        facts.extend(run.private.iter().map(|fact| {
            (
                "private",
                format!("{} {}: {}", fact.element, fact.attribute, fact.value),
            )
        }));
    }
    facts
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 {
        format!("1 {word}")
    } else {
        format!("{count} {word}s")
    }
}

fn text(out: &mut dyn Write, contents: Option<&Contents>, tables: &Tables, private: bool) -> io::Result<()> {
    for run in contents.iter().flat_map(|contents| &contents.runs) {
        writeln!(out, "run {}", run.number)?;
        for (name, value) in facts(run, private) {
            writeln!(out, "  {name:<16}{}", visible(&value))?;
        }
        let hidden = run.private.len() as u64;
        if !private && hidden > 0 {
            writeln!(
                out,
                "  {:<16}{} (--show-private)",
                "not shown",
                plural(hidden, "private value")
            )?;
        }
        writeln!(
            out,
            "  tables listed   {}",
            run.tables.iter().map(|(_, count)| count).sum::<u64>()
        )?;
        for (schema, count) in &run.tables {
            let times = if *count > 1 {
                format!("  ({count} times)")
            } else {
                String::new()
            };
            let read = if crate::tables::NEEDED.contains(&schema.as_str()) {
                " *"
            } else {
                ""
            };
            writeln!(out, "    {}{read}{times}", visible(schema))?;
        }
        writeln!(out, "  * read by compare and report")?;
    }
    if !tables.is_empty() {
        writeln!(out, "tables in the files")?;
        let mut runs: Vec<RunReference> = tables.keys().map(|(run, _)| *run).collect();
        runs.dedup();
        for ((run, schema), found) in tables {
            let run = match run {
                // One run needs no telling apart.
                _ if runs.len() == 1 => String::new(),
                RunReference::Number(number) => format!("run {number}: "),
                RunReference::Place(place) => format!("run at place {place}: "),
                RunReference::Unknown => String::new(),
            };
            let nodes = if found.nodes > 1 {
                format!(" in {}", plural(found.nodes, "node"))
            } else {
                String::new()
            };
            writeln!(out, "  {run}{}: {}{nodes}", visible(schema), plural(found.rows, "row"))?;
            writeln!(out, "    {}", visible(&found.columns.join(", ")))?;
        }
    }
    Ok(())
}

fn as_json(contents: Option<&Contents>, tables: &Tables, private: bool) -> Value {
    let runs: Vec<Value> = contents
        .iter()
        .flat_map(|contents| &contents.runs)
        .map(|run| {
            let mut object = json!({
                "number": run.number,
                "target": run.target.as_ref().map(|process| json!({"name": process.name, "pid": process.pid})),
                "start_date": run.start_date,
                "duration_ns": run.duration.map(|ns| ns.0),
                "end_reason": run.end_reason,
                "template": run.template,
                "instruments_version": run.instruments_version,
                "os_version": run.os_version,
                "shader_timeline": run.shader_timeline,
                "tables": run.tables.iter().map(|(schema, count)| json!({"schema": schema, "count": count})).collect::<Vec<_>>(),
            });
            if private {
                let values = run
                    .private
                    .iter()
                    .map(|fact| json!({"element": fact.element, "attribute": fact.attribute, "value": fact.value}));
                if let Some(object) = object.as_object_mut() {
                    object.insert("private".to_owned(), values.collect());
                }
            }
            object
        })
        .collect();
    let tables: Vec<Value> = tables
        .iter()
        .map(|((run, schema), found)| {
            let (number, place) = match run {
                RunReference::Number(number) => (Some(number), None),
                RunReference::Place(place) => (None, Some(place)),
                RunReference::Unknown => (None, None),
            };
            json!({"run": number, "run_place": place, "schema": schema, "nodes": found.nodes, "rows": found.rows, "columns": found.columns})
        })
        .collect();
    json!({"schema": "trace-attr.toc", "schema_version": 1, "runs": runs, "tables": tables})
}
