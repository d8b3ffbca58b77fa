//! All needed tables of one input, typed: what [`crate::join`] works on.
//!
//! Files, folders, streams and bundles end up here as runs with rows. Pairing of execution points happens while
//! they are read (in file order), and pairs are joined to the submission map as soon as a run is complete, so
//! that both timing tables look the same from then on.

mod cache;
mod folder;
mod pairing;
mod run;
mod submission_map;
mod timing;

#[doc(hidden)]
pub use cache::bytes as cache_bytes;
use run::skip;
pub use run::{RunTables, Seen};
pub use timing::{Measured, ProcessRows, Provenance, ProvenanceRows, TimingTable};

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use hashbrown::HashMap;

use crate::cache::Cache;
use crate::error::{Error, ErrorKind, Result};
use crate::model::Note;
use crate::parallel::Jobs;
use crate::source::{self, Source};
use crate::tables::contents::{Contents, run_number};
use crate::tables::{NEEDED, SIGNPOST_TYPES, SIGNPOSTS, TYPES, Texts};
use crate::xctrace::{Bundle, XctraceOptions};
use crate::xml::{Blocks, ExportReader, Keep, Part};

/// A run takes memory even when its tables are empty; recordings have a few.
const MAX_RUNS: usize = 10_000;
/// Code of the remark that a table stood in several nodes.
const MERGED_NODES: &str = "merged_nodes";

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

/// What is told while reading, for a progress display; by several threads when several files are read at once.
pub trait Progress: Sync {
    /// A file, a folder or an export begins; `bytes` is its size where that is known.
    fn begin(&self, name: &str, bytes: Option<u64>);
    /// A table begins.
    fn table(&self, schema: &str);
    /// So many more bytes of the file were read.
    fn advance(&self, bytes: u64);
    /// Something that concerns this reading and not its result: whatever is said here, the result is the same.
    fn warning(&self, text: &str);
}

/// Tells nobody.
impl Progress for () {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn table(&self, _: &str) {}
    fn advance(&self, _: u64) {}
    fn warning(&self, _: &str) {}
}

/// How to read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Which runs.
    pub run: RunChoice,
    /// Read signposts, too.
    pub signposts: bool,
    /// How bundles are exported.
    pub xctrace: XctraceOptions,
    /// How many files are read at once; what is read is the same for any number.
    pub jobs: Jobs,
    /// Where large inputs are kept once they were read, and looked for; by default nowhere.
    pub cache: Option<Cache>,
    /// Keep small inputs, too: for tests.
    #[doc(hidden)]
    pub cache_small: bool,
    /// Leave every row to the tokenizer: the check and the measure of the row scanner.
    #[doc(hidden)]
    pub without_scanner: bool,
    /// Bytes of the blocks in which several threads read a file, however small it is: for tests.
    #[doc(hidden)]
    pub block_bytes: Option<usize>,
}

/// Below this, a file is read before another thread has begun to help.
const LARGE_FILE: u64 = 8 << 20;

impl ReadOptions {
    /// Whether one file is worth several threads. A compressed one is small, and unpacked by one thread anyway.
    fn is_large(&self, path: &Path) -> bool {
        let from = if self.block_bytes.is_some() { 0 } else { LARGE_FILE };
        !self.without_scanner && std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() >= from)
    }
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

/// Reads an input, or takes what is kept of it in the cache.
///
/// # Errors
/// Whatever is wrong with the input; its message names it.
pub fn read_recording(source: &Source, options: &ReadOptions, progress: &dyn Progress) -> Result<Recording> {
    let entry = cache::Entry::of(source, options);
    if let Some(recording) = entry.as_ref().and_then(|entry| entry.recall(progress)) {
        return Ok(recording);
    }
    let recording = read_anew(source, options, progress)?;
    if let Some(entry) = entry {
        entry.keep(&recording, progress);
    }
    Ok(recording)
}

fn read_anew(source: &Source, options: &ReadOptions, progress: &dyn Progress) -> Result<Recording> {
    let mut builder = Builder::new(source.origin(), options);
    let result = match source {
        Source::Stdin => {
            progress.begin("standard input", None);
            return read_recording_from(CountedStdin { progress }, &source.origin(), options, progress);
        }
        Source::Bundle(path) => builder.read_bundle(path, options, progress),
        Source::File(_) | Source::Folder(_) => source
            .files()
            .and_then(|files| builder.read_files(&files, options.jobs, progress)),
    };
    result.map_err(|error| error.with_origin(source.origin()))?;
    builder.finish().map_err(|error| error.with_origin(source.origin()))
}

/// Reads an input that is no file: a stream, or bytes in memory, in any form that [`source::decode`] knows.
///
/// # Errors
/// Whatever is wrong with the input; its message names `origin`.
pub fn read_recording_from(
    input: impl Read + Send,
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
    options: ReadOptions,
    contents: Option<Contents>,
    runs: BTreeMap<u64, RunTables>,
    texts: Texts,
    notes: Vec<Note>,
    /// Which file each table of a run came from: the same schema in two files is refused.
    files: HashMap<(u64, String), usize>,
    /// The tables of each run in the order in which they were met.
    order: Vec<(u64, String)>,
    file_names: Vec<String>,
    tables: u64,
    /// Read tables in blocks, on as many threads as there are jobs.
    in_blocks: bool,
}

impl Builder {
    fn new(origin: String, options: &ReadOptions) -> Self {
        Builder {
            origin,
            options: options.clone(),
            contents: None,
            runs: BTreeMap::new(),
            texts: Texts::default(),
            notes: Vec::new(),
            files: HashMap::new(),
            order: Vec::new(),
            file_names: Vec::new(),
            tables: 0,
            in_blocks: false,
        }
    }

    fn read_file(&mut self, path: &Path, number: usize, progress: &dyn Progress) -> Result<()> {
        let size = std::fs::metadata(path).ok().map(|metadata| metadata.len());
        progress.begin(&path.display().to_string(), size);
        self.read_file_within(path, number, progress)
    }

    /// Reads a file of something that was told to have begun.
    fn read_file_within(&mut self, path: &Path, number: usize, progress: &dyn Progress) -> Result<()> {
        if self.options.jobs.count() > 1 && self.options.is_large(path) {
            let mut part = self.part();
            part.in_blocks = true;
            let input = source::open(path, |bytes| progress.advance(bytes))?;
            // Whatever is wrong or unusual is for one thread.
            if part.read(input, number, progress).is_ok() {
                return self
                    .absorb(part, number)
                    .map_err(|error| error.with_origin(path.display().to_string()));
            }
        }
        let input = source::open(path, |bytes| progress.advance(bytes))?;
        self.read(input, number, progress)
            .map_err(|error| error.with_origin(path.display().to_string()))
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
            let signposts: &[&str] = if self.options.signposts { SIGNPOSTS } else { &[] };
            let there: Vec<&str> = NEEDED
                .iter()
                .chain(signposts)
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

    fn read(&mut self, input: impl Read + Send, file: usize, progress: &dyn Progress) -> Result<()> {
        self.read_parts(input, file, None, progress)
    }

    fn read_run(&mut self, input: impl Read + Send, run: Option<u64>, progress: &dyn Progress) -> Result<()> {
        // Calls for different tables are different files as far as doubled tables are concerned.
        self.tables += 1;
        let file = usize::try_from(self.tables).unwrap_or(usize::MAX);
        self.read_parts(input, file, run, progress)
    }

    fn read_parts(
        &mut self,
        input: impl Read + Send,
        file: usize,
        known_run: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let blocks = self.in_blocks.then(|| Blocks {
            threads: self.options.jobs.count(),
            bytes: self.options.block_bytes.unwrap_or(Blocks::BYTES),
        });
        let types = if self.options.signposts {
            [TYPES, SIGNPOST_TYPES].concat()
        } else {
            TYPES.to_vec()
        };
        let keep = Keep::Types(&types);
        let mut reader = if self.options.without_scanner {
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
            self.begin_table(number, schema.name(), file)?;
            let wanted = match self.options.run {
                RunChoice::Number(chosen) => chosen == number,
                RunChoice::Only | RunChoice::All => true,
            } && (self.options.signposts || !SIGNPOSTS.contains(&schema.name()));
            if self.runs.len() >= MAX_RUNS && !self.runs.contains_key(&number) {
                return Err(too_many_runs());
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
                run.read_table(&mut reader, &schema, &mut self.texts, blocks)?
            } else {
                skip(&mut reader)?
            };
            if let Some(seen) = run.seen.get_mut(schema.name()) {
                seen.rows += rows;
            }
            if nodes == 2 && NEEDED.contains(&schema.name()) {
                self.notes.push(Note::remark(
                    MERGED_NODES,
                    format!("several instances of {} in one run were taken together", schema.name()),
                ));
            }
        }
    }

    /// Remembers where a table came from.
    fn begin_table(&mut self, run: u64, schema: &str, file: usize) -> Result<()> {
        let key = (run, schema.to_owned());
        match self.files.get(&key) {
            Some(other) if *other == file => Ok(()),
            Some(other) => {
                let name = |at: &usize| self.file_names.get(*at).map_or("another file", |name| name);
                Err(Error::unfit(format!(
                    "table `{schema}` of run {run} stands in two files: {} and {}",
                    name(other),
                    name(&file)
                ))
                .with_help("keep one of them: which one is right cannot be told from here"))
            }
            None => {
                self.order.push(key.clone());
                self.files.insert(key, file);
                Ok(())
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
        match self.options.run {
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
            run.join_map();
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

fn too_many_runs() -> Error {
    Error::unfit(format!(
        "the export has tables of more than {MAX_RUNS} runs: no recording has so many"
    ))
}

/// A process as messages show it.
pub(crate) fn shown(process: &crate::model::Process) -> String {
    match process.pid {
        Some(pid) if process.name.is_empty() => format!("pid {pid}"),
        Some(pid) => format!("{} ({pid})", process.name),
        None => process.name.clone(),
    }
}
