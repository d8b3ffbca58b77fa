//! `rows`: any table of any schema as CSV or JSON Lines, streamed.

mod fields;

use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;

use fields::{Fields, is_text, json_value};

use super::output::to_stdout;
use super::values::ReadArgs;
use super::{Console, ExitStatus, Stop, print_warning, stdout_failed};
use crate::error::{Error, Result};
use crate::label::visible;
use crate::recording::RunChoice;
use crate::source::{self, Source};
use crate::tables::contents::{Contents, run_number};
use crate::xctrace::Bundle;
use crate::xml::{ColumnIndex, ExportReader, Keep, Part, Row, RunReference, Schema};

const EXAMPLES: &str = "\
Examples:
  trace-attr rows exported/ --table metal-gpu-intervals --columns start,duration,process
  trace-attr rows profile.xml --table time-profile --format jsonl --limit 10
  trace-attr rows run.trace --table metal-gpu-state-intervals > states.csv

A cell is its machine value, never what Instruments displays; NULL is empty in CSV and null in JSON.
Composite cells are objects in JSON Lines, stacks are arrays from the leaf on; in CSV they are text.";

/// Arguments of `rows`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RowsArgs {
    /// A bundle, a folder of exported files, a file, or `-`
    input: PathBuf,
    /// Schema of the table [default: the only one there is]
    #[arg(long, value_name = "SCHEMA")]
    table: Option<String>,
    /// Columns by mnemonic, in this order [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Stop after so many rows
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// How the rows are written
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    format: RowsFormat,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RowsFormat {
    /// Comma-separated values, with a header
    Csv,
    /// One JSON object per line
    Jsonl,
}

pub(super) fn run(args: RowsArgs, console: Console) -> Result<ExitStatus, Stop> {
    let source = Source::from_argument(&args.input)?;
    let named = |error: Error| error.with_origin(source.origin());
    let mut printer = Printer::new(&args);
    let result = match &source {
        Source::Bundle(path) => bundle(path, &args, &mut printer, console),
        Source::Stdin => source::decode(io::stdin())
            .map_err(Stop::from)
            .and_then(|input| printer.read(input)),
        Source::File(_) | Source::Folder(_) => source.files().map_err(Stop::from).and_then(|files| {
            if args.table.is_none() {
                only_table(&files)?;
            }
            for file in files {
                let input = source::open(&file, |_| {})?;
                printer.read(input).map_err(|stop| match stop {
                    Stop::Failed(error) => Stop::Failed(error.with_origin(file.display().to_string())),
                    closed => closed,
                })?;
                if printer.is_full() {
                    break;
                }
            }
            Ok(())
        }),
    };
    match result.and_then(|()| printer.finish()) {
        Err(Stop::Failed(error)) => Err(Stop::Failed(named(error))),
        Err(closed) => Err(closed),
        Ok(()) => Ok(ExitStatus::Done),
    }
}

fn bundle(path: &std::path::Path, args: &RowsArgs, printer: &mut Printer, console: Console) -> Result<(), Stop> {
    let bundle = Bundle::open(path, args.read.xctrace()?)?;
    let mut contents = None;
    let mut stream = bundle.toc()?;
    let parsed = source::decode(&mut stream).and_then(|input| {
        let mut reader = ExportReader::new(input, Keep::Types(&[]));
        while let Some(part) = reader.next_part()? {
            if let Part::Contents(root) = part {
                contents = Some(Contents::from_element(&root));
            }
        }
        Ok(())
    });
    stream.finish(parsed)?;
    let runs = contents.map(|contents| contents.runs).unwrap_or_default();
    let list = || {
        runs.iter()
            .map(|run| run.number.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let run = match (args.read.run(), runs.as_slice()) {
        (RunChoice::Number(number), _) => runs.iter().find(|run| run.number == number),
        (_, [only]) => Some(only),
        _ => None,
    };
    let run = run.ok_or_else(|| Error::unfit(format!("choose one of the runs {} with --run N", list())))?;
    let tables = run.tables.iter().map(|(schema, _)| schema.as_str()).collect::<Vec<_>>();
    let table = args.table.as_deref().ok_or_else(|| {
        Error::usage("--table is needed: a bundle has many tables").with_help(format!("it has: {}", tables.join(", ")))
    })?;
    // Only that run is asked for, whatever its nodes are called.
    printer.run = RunChoice::All;
    let mut stream = bundle.export(run.number, &[table])?;
    if !tables.contains(&table) {
        return Err(no_such_table(table, &tables).into());
    }
    let mut closed = None;
    let parsed = source::decode(&mut stream).and_then(|input| match printer.read(input) {
        Ok(()) => Ok(()),
        Err(Stop::Failed(error)) => Err(error),
        Err(other) => {
            closed = Some(other);
            Ok(())
        }
    });
    if let Some(closed) = closed {
        return Err(closed);
    }
    if printer.is_full() && parsed.is_ok() {
        // Enough was read: the rest of the export is of no interest.
        return Ok(());
    }
    let ((), warning) = stream.finish(parsed)?;
    if let Some(warning) = warning {
        print_warning(console, &warning);
    }
    Ok(())
}

fn no_such_table(table: &str, there: &[&str]) -> Error {
    let list = if there.is_empty() {
        "none".to_owned()
    } else {
        there.join(", ")
    };
    Error::unfit(format!("there is no table `{table}`; there is: {list}"))
        .with_help("`trace-attr toc INPUT` lists the tables with their columns")
}

fn several_tables(there: &[String]) -> Error {
    Error::usage(format!("there are several tables: {}", there.join(", "))).with_help("choose one with --table")
}

/// Refuses files of several tables before anything is printed, by the first table of each.
fn only_table(files: &[PathBuf]) -> Result<()> {
    let mut there: Vec<String> = Vec::new();
    for file in files {
        let named = |error: Error| error.with_origin(file.display().to_string());
        let input = source::open(file, |_| {}).map_err(named)?;
        let mut reader = ExportReader::new(input, Keep::Types(&[]));
        if let Some(Part::Table { schema, .. }) = reader.next_part().map_err(named)?
            && !there.iter().any(|name| name == schema.name())
        {
            there.push(schema.name().to_owned());
        }
    }
    if there.len() > 1 {
        return Err(several_tables(&there));
    }
    Ok(())
}

/// Prints rows as they are read.
struct Printer {
    table: Option<String>,
    columns: Vec<String>,
    limit: u64,
    format: RowsFormat,
    run: RunChoice,
    /// Which run has which number, when a table of contents came before the tables.
    contents: Option<Contents>,
    /// Runs of the table that were met, without a choice among them.
    runs: Vec<u64>,
    seen: Vec<String>,
    terminal: bool,
    header: Option<Vec<String>>,
    printed: u64,
    fields: Fields,
    out: csv::Writer<io::BufWriter<io::Stdout>>,
}

impl Printer {
    fn new(args: &RowsArgs) -> Self {
        Printer {
            table: args.table.clone(),
            columns: args.columns.clone(),
            limit: args.limit.unwrap_or(u64::MAX),
            format: args.format,
            run: args.read.run(),
            contents: None,
            runs: Vec::new(),
            seen: Vec::new(),
            terminal: io::stdout().is_terminal(),
            header: None,
            printed: 0,
            fields: Fields::default(),
            out: csv::WriterBuilder::new().from_writer(io::BufWriter::new(io::stdout())),
        }
    }

    fn is_full(&self) -> bool {
        self.header.is_some() && self.printed >= self.limit
    }

    fn read(&mut self, input: impl Read) -> Result<(), Stop> {
        let mut reader = ExportReader::new(input, Keep::All);
        self.fields = Fields::default();
        loop {
            let (schema, run) = match reader.next_part()? {
                None => return Ok(()),
                Some(Part::Contents(root)) => {
                    self.contents = Some(Contents::from_element(&root));
                    continue;
                }
                Some(Part::Table { schema, run }) => (schema.clone(), run),
            };
            if !self.seen.iter().any(|seen| seen == schema.name()) {
                self.seen.push(schema.name().to_owned());
            }
            let table = match &self.table {
                Some(table) => table,
                // Without a choice there must be one table only; a second one in the same document comes too late to
                // take back the rows of the first, but not to say so.
                None if self.seen.len() > 1 => return Err(several_tables(&self.seen).into()),
                None => schema.name(),
            };
            if table != schema.name() || !self.wants(run)? {
                continue;
            }
            let columns = self.bind(&schema)?;
            while !self.is_full() {
                let Some(row) = reader.read_row()? else { break };
                self.print(&row, &columns)?;
            }
            if self.is_full() {
                return Ok(());
            }
        }
    }

    fn wants(&mut self, run: RunReference) -> Result<bool> {
        let number = run_number(self.contents.as_ref(), run);
        match self.run {
            RunChoice::Number(wanted) => Ok(wanted == number),
            RunChoice::All => Ok(true),
            RunChoice::Only => {
                if !self.runs.contains(&number) {
                    self.runs.push(number);
                }
                let listed = self.contents.as_ref().map_or(0, |contents| contents.runs.len());
                if self.runs.len() > 1 || listed > 1 {
                    return Err(Error::unfit("the recording has several runs")
                        .with_help("choose one with --run N, or print all with --run all"));
                }
                Ok(true)
            }
        }
    }

    fn bind(&mut self, schema: &Schema) -> Result<Vec<(ColumnIndex, bool)>, Stop> {
        let all: Vec<String> = schema.columns().iter().map(|column| column.mnemonic.clone()).collect();
        let names = if self.columns.is_empty() {
            all
        } else {
            self.columns.clone()
        };
        let mut columns = Vec::new();
        for name in &names {
            let at = schema.column(name)?;
            let kind = schema
                .columns()
                .iter()
                .find(|column| &column.mnemonic == name)
                .map_or("", |column| &column.kind);
            columns.push((at, is_text(kind)));
        }
        match &self.header {
            None => {
                if self.format == RowsFormat::Csv {
                    self.out.write_record(&names).map_err(csv_failed)?;
                }
                self.header = Some(names);
            }
            Some(header) if *header == names => {}
            Some(_) => {
                return Err(Error::unfit(format!(
                    "two instances of table `{}` have different columns",
                    schema.name()
                ))
                .with_help("name the columns that both have with --columns")
                .into());
            }
        }
        Ok(columns)
    }

    fn print(&mut self, row: &Row<'_>, columns: &[(ColumnIndex, bool)]) -> Result<(), Stop> {
        self.printed += 1;
        match self.format {
            RowsFormat::Csv => {
                for (at, text) in columns {
                    let field = self.fields.csv(row, *at, *text);
                    // On a terminal a label must not move the cursor; a file gets the bytes of the trace.
                    if self.terminal {
                        self.out.write_field(visible(&field)).map_err(csv_failed)?;
                    } else {
                        self.out.write_field(&*field).map_err(csv_failed)?;
                    }
                }
                self.out.write_record(None::<&[u8]>).map_err(csv_failed)
            }
            RowsFormat::Jsonl => {
                let mut line = vec![b'{'];
                for ((at, text), name) in columns.iter().zip(self.header.iter().flatten()) {
                    if line.len() > 1 {
                        line.push(b',');
                    }
                    json_to(&mut line, &Value::from(name.as_str()))?;
                    line.push(b':');
                    json_to(&mut line, &json_value(row.cell(*at), *text))?;
                }
                line.extend_from_slice(b"}\n");
                // The CSV writer owns standard output; it has nothing pending in this format.
                io::stdout()
                    .write_all(&line)
                    .map_err(|error| stdout_failed(error, ExitStatus::Done))
            }
        }
    }

    fn finish(mut self) -> Result<(), Stop> {
        self.out
            .flush()
            .map_err(|error| stdout_failed(error, ExitStatus::Done))?;
        to_stdout(ExitStatus::Done, |_| Ok(()))?;
        if self.header.is_some() {
            return Ok(());
        }
        let there: Vec<&str> = self.seen.iter().map(String::as_str).collect();
        if there.is_empty() && self.contents.is_some() {
            return Err(
                Error::unfit("this is a table of contents: it lists tables and has no rows")
                    .with_help("`trace-attr toc INPUT` shows it")
                    .into(),
            );
        }
        Err(match self.table {
            Some(table) if !there.contains(&table.as_str()) => no_such_table(&table, &there),
            Some(table) => Error::unfit(format!("table `{table}` is not there for this run")),
            None if !there.is_empty() => Error::unfit(format!("table `{}` is not there for this run", there.join(", "))),
            None => Error::unfit("the export holds no table")
                .with_help("`xctrace export` succeeds even when --xpath matches nothing; list what a trace has with `trace-attr toc`"),
        }
        .into())
    }
}

fn csv_failed(error: csv::Error) -> Stop {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => stdout_failed(error, ExitStatus::Done),
        other => Stop::Failed(Error::unfit(format!("could not write CSV: {other:?}"))),
    }
}

fn json_to(out: &mut Vec<u8>, value: &Value) -> Result<()> {
    serde_json::to_writer(out, value).map_err(|error| Error::io("write JSON", error.into()))
}
