//! All needed tables of one input, typed: what [`crate::join`] works on.
//!
//! Files, folders, streams and bundles end up here as runs with rows. Pairing of execution points happens while
//! they are read (in file order), and pairs are joined to the submission map as soon as a run is complete, so
//! that both timing tables look the same from then on.

mod pairing;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use hashbrown::HashMap;

use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    CommandBufferId, EncoderId, Label, LabelId, LeftOut, NameId, Nanos, Note, Reason, Submission, SubmissionId,
    Timestamp,
};
use crate::source::{self, Source};
use crate::tables::contents::{Contents, run_number};
use crate::tables::encoders::EncoderRow;
use crate::tables::execution_points::PointRow;
use crate::tables::gpu_info::GpuRow;
use crate::tables::gpu_intervals::IntervalRow;
use crate::tables::shaders::{ShaderRow, ShaderSampleRow};
use crate::tables::states::{self, StateRow};
use crate::tables::submission_map::MapRow;
use crate::tables::{NEEDED, ProcessId, TYPES, Table, Texts};
use crate::xctrace::{Bundle, XctraceOptions};
use crate::xml::{ExportReader, Keep, Part};
use pairing::Pairing;

/// A run takes memory even when its tables are empty; recordings have a few.
const MAX_RUNS: usize = 10_000;

/// Which runs of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunChoice {
    /// The only one; an error when there are several.
    #[default]
    Only,
    /// The run of that number.
    Number(u64),
    /// Every run; each is a trial.
    All,
}

/// What is told while reading, for a progress display.
pub trait Progress {
    /// A file or an export begins; `bytes` is its size where that is known.
    fn begin(&self, name: &str, bytes: Option<u64>);
    /// A table begins.
    fn table(&self, schema: &str);
    /// So many more bytes of the file were read.
    fn advance(&self, bytes: u64);
}

/// Tells nobody.
impl Progress for () {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn table(&self, _: &str) {}
    fn advance(&self, _: u64) {}
}

/// How to read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Which runs.
    pub run: RunChoice,
    /// How bundles are exported.
    pub xctrace: XctraceOptions,
    /// Leave every row to the tokenizer: the check and the measure of the row scanner.
    #[doc(hidden)]
    pub without_scanner: bool,
}

/// One input, read.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The input as the user named it.
    pub origin: String,
    /// Its table of contents, if there is one.
    pub contents: Option<Contents>,
    /// The chosen runs, by number.
    pub runs: Vec<RunTables>,
    /// Names, processes and labels of all runs.
    pub texts: Texts,
    /// Remarks that arose while reading.
    pub notes: Vec<Note>,
}

/// One run's tables.
#[derive(Debug, Clone, Default)]
pub struct RunTables {
    /// The run's number.
    pub number: u64,
    /// Every schema that was seen: nodes and rows.
    pub seen: BTreeMap<String, Seen>,
    /// `metal-gpu-intervals`.
    pub intervals: Option<TimingTable>,
    /// `metal-gpu-execution-points`, joined to the map where there is one.
    pub points: Option<TimingTable>,
    /// Whether the submission map is there.
    pub has_map: bool,
    /// `metal-application-encoders-list`.
    pub encoders: Option<Vec<EncoderRow>>,
    /// `metal-shader-profiler-shader-list`.
    pub shaders: Option<Vec<ShaderRow>>,
    /// `metal-shader-profiler-intervals`.
    pub shader_samples: Option<Vec<ShaderSampleRow>>,
    /// GPU name, from `metal-gpu-info`.
    pub gpu: Option<NameId>,
    /// Thermal states.
    pub thermal: Vec<StateRow>,
    /// GPU performance states.
    pub performance: Vec<StateRow>,
    pairing: Pairing,
    map: HashMap<SubmissionId, Mapping>,
}

/// How often a schema was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Nodes (instances) of the schema.
    pub nodes: u64,
    /// Rows of all of them.
    pub rows: u64,
}

/// A timing table: rows = 2 × or 1 × measured + left out.
#[derive(Debug, Clone, Default)]
pub struct TimingTable {
    /// Rows of the table.
    pub rows: u64,
    /// Submissions with a usable start and duration, in file order.
    pub measured: Vec<Measured>,
    /// Rows that never became a submission.
    pub left_out: LeftOut,
    /// A submission id column was there.
    pub has_ids: bool,
}

/// A submission of any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Its times, ids and (for intervals) the label of its own row.
    pub submission: Submission,
    /// Its process; `None`: the trace does not say.
    pub process: Option<ProcessId>,
    /// GPU name.
    pub gpu: Option<NameId>,
    /// Lane.
    pub depth: u32,
    /// Whether the submission map knows it; always true for intervals.
    pub mapped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mapping {
    encoder: Option<EncoderId>,
    command_buffer: Option<CommandBufferId>,
    process: Option<ProcessId>,
}

/// Reads an input.
///
/// # Errors
/// Whatever is wrong with the input; its message names it.
pub fn read_recording(source: &Source, options: &ReadOptions, progress: &dyn Progress) -> Result<Recording> {
    let mut builder = Builder::new(source.origin(), options);
    let result = match source {
        Source::Stdin => {
            progress.begin("standard input", None);
            return read_recording_from(CountedStdin { progress }, &source.origin(), options, progress);
        }
        Source::Bundle(path) => builder.read_bundle(path, options, progress),
        Source::File(_) | Source::Folder(_) => source.files().and_then(|files| {
            files
                .iter()
                .enumerate()
                .try_for_each(|(number, path)| builder.read_file(path, number, progress))
        }),
    };
    result.map_err(|error| error.with_origin(source.origin()))?;
    builder.finish().map_err(|error| error.with_origin(source.origin()))
}

/// Reads an input that is no file: a stream, or bytes in memory, in any form that [`source::decode`] knows.
///
/// # Errors
/// Whatever is wrong with the input; its message names `origin`.
pub fn read_recording_from(
    input: impl Read,
    origin: &str,
    options: &ReadOptions,
    progress: &dyn Progress,
) -> Result<Recording> {
    let mut builder = Builder::new(origin.to_owned(), options);
    source::decode(input)
        .and_then(|input| builder.read(input, 0, progress))
        .and_then(|()| builder.finish())
        .map_err(|error| error.with_origin(origin))
}

struct CountedStdin<'a> {
    progress: &'a dyn Progress,
}

impl Read for CountedStdin<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let amount = std::io::stdin().lock().read(out)?;
        self.progress.advance(amount as u64);
        Ok(amount)
    }
}

struct Builder {
    origin: String,
    choice: RunChoice,
    without_scanner: bool,
    contents: Option<Contents>,
    runs: BTreeMap<u64, RunTables>,
    texts: Texts,
    notes: Vec<Note>,
    /// Which file each table of a run came from: the same schema in two files is refused.
    files: HashMap<(u64, String), usize>,
    file_names: Vec<String>,
    tables: u64,
}

impl Builder {
    fn new(origin: String, options: &ReadOptions) -> Self {
        Builder {
            origin,
            choice: options.run,
            without_scanner: options.without_scanner,
            contents: None,
            runs: BTreeMap::new(),
            texts: Texts::default(),
            notes: Vec::new(),
            files: HashMap::new(),
            file_names: Vec::new(),
            tables: 0,
        }
    }

    fn read_file(&mut self, path: &Path, number: usize, progress: &dyn Progress) -> Result<()> {
        let name = path.display().to_string();
        progress.begin(&name, std::fs::metadata(path).ok().map(|metadata| metadata.len()));
        let short = path
            .file_name()
            .map_or_else(|| name.clone(), |name| name.to_string_lossy().into_owned());
        self.file_names.push(short);
        let input = source::open(path, |bytes| progress.advance(bytes))?;
        self.read(input, number, progress)
            .map_err(|error| error.with_origin(name))
    }

    /// Table of contents first; then the needed tables of each chosen run in one call, or one by one when that fails.
    fn read_bundle(&mut self, path: &Path, options: &ReadOptions, progress: &dyn Progress) -> Result<()> {
        let bundle = Bundle::open(path, options.xctrace.clone())?;
        progress.begin("table of contents", None);
        let mut stream = bundle.toc()?;
        let parsed = source::decode(&mut stream).and_then(|input| self.read(input, 0, progress));
        let ((), warning) = stream.finish(parsed)?;
        self.warn_of_xctrace(warning);
        let Some(contents) = self.contents.clone() else {
            return Err(Error::unfit("xctrace gave no table of contents")
                .with_help("open the trace in Instruments once, save it, and try again"));
        };
        for number in self.chosen(&contents.runs.iter().map(|run| run.number).collect::<Vec<_>>())? {
            let Some(run) = contents.run(number) else { continue };
            let there: Vec<&str> = NEEDED
                .iter()
                .copied()
                .filter(|name| run.tables.iter().any(|(schema, _)| schema == name))
                .collect();
            if there.is_empty() {
                continue;
            }
            progress.begin(&format!("run {number}"), None);
            let before = (self.texts.clone(), self.notes.clone());
            let whole = self.export(&bundle, number, &there, progress);
            let missing = |builder: &Builder| {
                let seen = builder.runs.get(&number).map(|run| &run.seen);
                there
                    .iter()
                    .any(|schema| seen.is_none_or(|seen| !seen.contains_key(*schema)))
            };
            match whole {
                Ok(()) if !missing(self) => continue,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Usage(_)) || error.to_string().contains("timed out") =>
                {
                    return Err(error);
                }
                _ => {}
            }
            // The one call died or left tables out: ask for each, so that the fault has a name.
            (self.texts, self.notes) = before;
            self.runs.remove(&number);
            self.files.retain(|(run, _), _| *run != number);
            for schema in there {
                self.export(&bundle, number, &[schema], progress)?;
            }
        }
        Ok(())
    }

    fn export(&mut self, bundle: &Bundle, run: u64, schemas: &[&str], progress: &dyn Progress) -> Result<()> {
        let mut stream = bundle.export(run, schemas)?;
        let parsed = source::decode(&mut stream).and_then(|input| self.read_run(input, Some(run), progress));
        let ((), warning) = stream.finish(parsed)?;
        self.warn_of_xctrace(warning);
        Ok(())
    }

    fn warn_of_xctrace(&mut self, warning: Option<String>) {
        self.notes.extend(warning.map(|text| Note::warning("xctrace", text)));
    }

    fn read(&mut self, input: impl Read, file: usize, progress: &dyn Progress) -> Result<()> {
        self.read_parts(input, file, None, progress)
    }

    fn read_run(&mut self, input: impl Read, run: Option<u64>, progress: &dyn Progress) -> Result<()> {
        // Calls for different tables are different files as far as doubled tables are concerned.
        self.tables += 1;
        let file = usize::try_from(self.tables).unwrap_or(usize::MAX);
        self.read_parts(input, file, run, progress)
    }

    fn read_parts(
        &mut self,
        input: impl Read,
        file: usize,
        known_run: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let keep = Keep::Types(TYPES);
        let mut reader = if self.without_scanner {
            ExportReader::without_scanner(input, keep)
        } else {
            ExportReader::new(input, keep)
        };
        loop {
            let (schema, reference) = match reader.next_part()? {
                None => return Ok(()),
                Some(Part::Contents(root)) => {
                    if self.contents.is_some() {
                        return Err(Error::unfit("there are two tables of contents")
                            .with_help("give one recording per input; several trials are several inputs"));
                    }
                    self.contents = Some(Contents::from_element(&root));
                    continue;
                }
                Some(Part::Table { schema, run }) => (schema.clone(), run),
            };
            progress.table(schema.name());
            self.texts.begin_table();
            let number = known_run.unwrap_or_else(|| run_number(self.contents.as_ref(), reference));
            let key = (number, schema.name().to_owned());
            if let Some(other) = self.files.get(&key).filter(|other| **other != file) {
                let name = |at: &usize| {
                    self.file_names
                        .get(*at)
                        .cloned()
                        .unwrap_or_else(|| "another file".to_owned())
                };
                return Err(Error::unfit(format!(
                    "table `{}` of run {number} stands in two files: {} and {}",
                    schema.name(),
                    name(other),
                    name(&file)
                ))
                .with_help("keep one of them: which one is right cannot be told from here"));
            }
            self.files.insert(key, file);
            let wanted = match self.choice {
                RunChoice::Number(chosen) => chosen == number,
                RunChoice::Only | RunChoice::All => true,
            };
            if self.runs.len() >= MAX_RUNS && !self.runs.contains_key(&number) {
                return Err(Error::unfit(format!(
                    "the export has tables of more than {MAX_RUNS} runs: no recording has so many"
                )));
            }
            let run = self.runs.entry(number).or_insert_with(|| RunTables {
                number,
                ..RunTables::default()
            });
            let nodes = {
                let seen = run.seen.entry(schema.name().to_owned()).or_default();
                seen.nodes += 1;
                seen.nodes
            };
            let rows = if wanted {
                run.read_table(&mut reader, &schema, &mut self.texts)?
            } else {
                skip(&mut reader)?
            };
            if let Some(seen) = run.seen.get_mut(schema.name()) {
                seen.rows += rows;
            }
            if nodes == 2 && NEEDED.contains(&schema.name()) {
                self.notes.push(Note::remark(
                    "merged_nodes",
                    format!("several instances of {} in one run were taken together", schema.name()),
                ));
            }
        }
    }

    fn chosen(&self, numbers: &[u64]) -> Result<Vec<u64>> {
        let list = || {
            let describe = |number: &u64| {
                let target = self
                    .contents
                    .as_ref()
                    .and_then(|contents| contents.run(*number)?.target.clone());
                match target {
                    Some(process) => format!("{number} ({})", shown(&process)),
                    None => number.to_string(),
                }
            };
            let mut shown: Vec<String> = numbers.iter().take(12).map(describe).collect();
            if numbers.len() > 12 {
                shown.push(format!("and {} more", numbers.len() - 12));
            }
            shown.join(", ")
        };
        match self.choice {
            RunChoice::All => Ok(numbers.to_vec()),
            RunChoice::Number(number) if numbers.contains(&number) => Ok(vec![number]),
            RunChoice::Number(number) => Err(Error::unfit(format!(
                "the recording has no run {number}; it has: {}",
                list()
            ))
            .with_help("choose one with --run N")),
            RunChoice::Only if numbers.len() > 1 => {
                Err(Error::unfit(format!("the recording has several runs: {}", list()))
                    .with_help("choose one with --run N, or take each as a trial with --run all"))
            }
            RunChoice::Only => Ok(numbers.to_vec()),
        }
    }

    fn finish(mut self) -> Result<Recording> {
        let mut numbers: Vec<u64> = self.runs.keys().copied().collect();
        if let Some(contents) = &self.contents {
            numbers.extend(contents.runs.iter().map(|run| run.number));
        }
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() {
            return Err(Error::unfit("the export holds no table").with_help(
                "`xctrace export` succeeds even when --xpath matches nothing; list what a trace has with `trace-attr toc`",
            ));
        }
        let chosen = self.chosen(&numbers)?;
        let mut runs = Vec::new();
        for number in chosen {
            let mut run = self.runs.remove(&number).unwrap_or(RunTables {
                number,
                ..RunTables::default()
            });
            run.join_map(&mut self.texts);
            runs.push(run);
        }
        Ok(Recording {
            origin: self.origin,
            contents: self.contents,
            runs,
            texts: self.texts,
            notes: self.notes,
        })
    }
}

/// A process as messages show it.
pub(crate) fn shown(process: &crate::model::Process) -> String {
    match process.pid {
        Some(pid) if process.name.is_empty() => format!("pid {pid}"),
        Some(pid) => format!("{} ({pid})", process.name),
        None => process.name.clone(),
    }
}

fn skip<R: Read>(reader: &mut ExportReader<R>) -> Result<u64> {
    let mut rows = 0;
    while reader.read_row()?.is_some() {
        rows += 1;
    }
    Ok(rows)
}

/// Reads the rest of a table into `push`.
fn each<R: Read, T: Table>(
    reader: &mut ExportReader<R>,
    schema: &crate::xml::Schema,
    texts: &mut Texts,
    mut push: impl FnMut(T, &mut Texts),
) -> Result<u64> {
    let columns = T::bind(schema)?;
    let mut rows = 0;
    while let Some(row) = reader.read_row()? {
        let typed = T::read(&row, &columns, texts)?;
        rows += 1;
        push(typed, texts);
    }
    Ok(rows)
}

impl RunTables {
    fn read_table<R: Read>(
        &mut self,
        reader: &mut ExportReader<R>,
        schema: &crate::xml::Schema,
        texts: &mut Texts,
    ) -> Result<u64> {
        match schema.name() {
            IntervalRow::SCHEMA => {
                let none = texts.intern_label(Label::NoEncoder);
                let unnamed = texts.names.intern("(no channel)");
                let table = self.intervals.get_or_insert_default();
                table.has_ids |= schema.opt_column("gpu-submission-id").is_some();
                let rows = each(reader, schema, texts, |row, _| table.push_interval(&row, none, unnamed))?;
                table.rows += rows;
                Ok(rows)
            }
            PointRow::SCHEMA => {
                let none = texts.intern_label(Label::NoEncoder);
                let table = self.points.get_or_insert_default();
                table.has_ids = true;
                let pairing = &mut self.pairing;
                let rows = each(reader, schema, texts, |row, texts| {
                    pairing.push(&row, table, none, texts)
                })?;
                table.rows += rows;
                Ok(rows)
            }
            MapRow::SCHEMA => {
                self.has_map = true;
                let map = &mut self.map;
                each(reader, schema, texts, |row: MapRow, _| {
                    if let Some(id) = row.submission {
                        let new = Mapping {
                            encoder: row.encoder,
                            command_buffer: row.command_buffer,
                            process: row.process,
                        };
                        // Two rows that contradict each other say nothing about what they contradict each other in.
                        map.entry(id).and_modify(|old| *old = old.agreed(new)).or_insert(new);
                    }
                })
            }
            EncoderRow::SCHEMA => {
                let encoders = self.encoders.get_or_insert_default();
                each(reader, schema, texts, |row, _| encoders.push(row))
            }
            ShaderRow::SCHEMA => {
                let shaders = self.shaders.get_or_insert_default();
                each(reader, schema, texts, |row, _| shaders.push(row))
            }
            ShaderSampleRow::SCHEMA => {
                let samples = self.shader_samples.get_or_insert_default();
                each(reader, schema, texts, |row, _| samples.push(row))
            }
            GpuRow::SCHEMA => {
                let gpu = &mut self.gpu;
                each(reader, schema, texts, |row: GpuRow, _| *gpu = gpu.or(row.name))
            }
            states::THERMAL => {
                let thermal = &mut self.thermal;
                each(reader, schema, texts, |row, _| thermal.push(row))
            }
            states::PERFORMANCE => {
                let performance = &mut self.performance;
                each(reader, schema, texts, |row, _| performance.push(row))
            }
            _ => skip(reader),
        }
    }

    /// Ends pairing and gives every pair its encoder, command buffer and process.
    fn join_map(&mut self, texts: &mut Texts) {
        let map = std::mem::take(&mut self.map);
        let pairing = std::mem::take(&mut self.pairing);
        let Some(points) = &mut self.points else { return };
        pairing.finish(points);
        let _ = texts;
        for measured in &mut points.measured {
            let mapping = measured.submission.id.and_then(|id| map.get(&id));
            measured.mapped = mapping.is_some();
            if let Some(mapping) = mapping {
                measured.submission.encoder = mapping.encoder;
                measured.submission.command_buffer = mapping.command_buffer;
                measured.process = mapping.process;
            }
        }
    }
}

impl Mapping {
    fn agreed(self, other: Mapping) -> Mapping {
        fn same<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<T> {
            if a == b { a } else { None }
        }
        Mapping {
            encoder: same(self.encoder, other.encoder),
            command_buffer: same(self.command_buffer, other.command_buffer),
            process: same(self.process, other.process),
        }
    }
}

impl TimingTable {
    fn push_interval(&mut self, row: &IntervalRow, no_label: LabelId, no_channel: NameId) {
        let (Some(start), Some(duration)) = (row.start, row.duration) else {
            self.left_out.add(Reason::Invalid, 1, None);
            return;
        };
        self.measured.push(Measured {
            submission: Submission {
                start: Timestamp(start),
                duration: Nanos(duration),
                id: row.submission,
                encoder: row.encoder,
                command_buffer: row.command_buffer,
                latency: row.latency,
                channel: row.channel.unwrap_or(no_channel),
                label: row.label.unwrap_or(no_label),
            },
            process: row.process,
            gpu: row.gpu,
            depth: row.depth,
            mapped: true,
        });
    }
}
