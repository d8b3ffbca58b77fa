//! The files of a folder, several at once: each is read as a recording of its own, and they are taken together in the
//! order of the files, so that rows, numbers and the first error are those of one file after the other.

use std::path::PathBuf;

use super::{Builder, MAX_RUNS, Progress, RunTables, too_many_runs};
use crate::error::Result;
use crate::parallel::{Jobs, in_order};
use crate::source;

impl Builder {
    /// Reads files in their order; those behind the table of contents, which all others need, several at once.
    pub(super) fn read_files(&mut self, files: &[PathBuf], jobs: Jobs, progress: &dyn Progress) -> Result<()> {
        self.file_names = files
            .iter()
            .map(|path| {
                path.file_name()
                    .unwrap_or(path.as_os_str())
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        let (contents, tables): (Vec<_>, Vec<_>) = files
            .iter()
            .enumerate()
            .partition(|(_, path)| source::is_contents(path));
        for (number, path) in contents {
            self.read_file(path, number, progress)?;
        }
        if jobs.count() == 1 || tables.len() < 2 {
            return tables
                .into_iter()
                .try_for_each(|(number, path)| self.read_file(path, number, progress));
        }
        let size = |(_, path): &(usize, &PathBuf)| std::fs::metadata(path).ok().map(|metadata| metadata.len());
        progress.begin(&self.origin, tables.iter().map(size).sum());
        let mut this = self.part();
        this.options.jobs = jobs.each_of(tables.len());
        let this = &this;
        let read = |(number, path): (usize, &PathBuf)| {
            let mut part = this.part();
            let result = part.read_file_within(path, number, progress);
            (part, result)
        };
        let parts = in_order(jobs, tables.clone(), read, |(_, result)| result.is_err());
        let had_contents = self.contents.is_some();
        let mut tables = tables.into_iter();
        for ((part, result), (number, path)) in parts.into_iter().zip(tables.by_ref()) {
            self.absorb(part, number)
                .map_err(|error| error.with_origin(path.display().to_string()))?;
            result?;
            if self.contents.is_some() && !had_contents {
                // A table of contents by another name: the files behind it were read without it.
                return tables.try_for_each(|(number, path)| self.read_file(path, number, progress));
            }
        }
        Ok(())
    }

    /// For one more file of the same recording.
    pub(super) fn part(&self) -> Builder {
        Builder {
            origin: self.origin.clone(),
            contents: self.contents.clone(),
            ..Builder::new(String::new(), &self.options)
        }
    }

    /// Takes over what another file held.
    pub(super) fn absorb(&mut self, part: Builder, file: usize) -> Result<()> {
        self.contents = part.contents;
        let ids = self.texts.take_over(&part.texts);
        let mut runs = part.runs;
        for (number, schema) in part.order {
            self.begin_table(number, &schema, file)?;
            if let Some(mut run) = runs.remove(&number) {
                if self.runs.len() >= MAX_RUNS && !self.runs.contains_key(&number) {
                    return Err(too_many_runs());
                }
                run.renumber(&ids);
                self.runs
                    .entry(number)
                    .or_insert_with(|| RunTables {
                        number,
                        ..RunTables::default()
                    })
                    .absorb(run);
            }
        }
        self.notes.extend(part.notes);
        Ok(())
    }
}
