//! The files of a folder, several at once: each is read as a recording of its own, and they are taken together in the
//! order of the files, so that rows, numbers and the first error are those of one file after the other.

use std::cmp::Reverse;
use std::path::PathBuf;

use super::{Builder, MAX_RUNS, Progress, RunTables, too_many_runs};
use crate::error::Result;
use crate::parallel::{Jobs, in_order};
use crate::source;

/// Which files are read in which order; places among them.
struct Schedule {
    /// One after the other, each on every thread: so large that a thread of its own would be the last to end.
    alone: Vec<usize>,
    /// A thread each, large ones first, so that all threads end at about the same time.
    together: Vec<usize>,
}

impl Schedule {
    fn new(jobs: Jobs, sizes: impl Iterator<Item = u64>) -> Self {
        let sizes: Vec<u64> = sizes.collect();
        let size = |at: &usize| sizes.get(*at).copied().unwrap_or(0);
        let threads = jobs.count() as u64;
        // Two threads on one file gain less than a file for each: only for what is a sixth more than a thread's share.
        let share = sizes.iter().fold(0, |all: u64, size| all.saturating_add(*size)) / threads;
        let mut by_size: Vec<usize> = (0..sizes.len()).collect();
        by_size.sort_by_key(|at| Reverse(size(at)));
        let (alone, together) = by_size
            .into_iter()
            .partition(|at| size(at) > share.saturating_add(share / 6));
        Schedule { alone, together }
    }
}

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
        let size = |path: &PathBuf| std::fs::metadata(path).ok().map(|metadata| metadata.len());
        progress.begin(&self.origin, tables.iter().map(|(_, path)| size(path)).sum());
        let had_contents = self.contents.is_some();
        let this = self.part();
        let read = |path: &PathBuf, number, jobs| {
            let mut part = this.part();
            part.options.jobs = jobs;
            let result = part.read_file_within(path, number, progress);
            (part, result)
        };
        let Schedule { alone, together } = Schedule::new(jobs, tables.iter().map(|(_, path)| size(path).unwrap_or(0)));
        let mut parts: Vec<Option<_>> = tables.iter().map(|_| None).collect();
        let table = |at: usize| tables.get(at).copied();
        for at in alone {
            if let (Some((number, path)), Some(part)) = (table(at), parts.get_mut(at)) {
                *part = Some(read(path, number, jobs));
            }
        }
        let each = jobs.each_of(together.len());
        let of_table = |at| table(at).map(|(number, path)| (at, read(path, number, each)));
        let failed = |done: &Option<(usize, (Builder, Result<()>))>| matches!(done, Some((_, (_, Err(_)))));
        for (at, done) in in_order(jobs, together, of_table, failed).into_iter().flatten() {
            if let Some(part) = parts.get_mut(at) {
                *part = Some(done);
            }
        }
        let mut tables = tables.into_iter();
        for (part, (number, path)) in parts.into_iter().zip(tables.by_ref()) {
            // Behind a fault some were not begun, and what is before it in the order of the files comes first.
            let (part, result) = part.unwrap_or_else(|| read(path, number, jobs));
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

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    #[test]
    fn large_files_are_begun_first_and_what_is_too_large_for_one_thread_is_read_by_all() {
        let schedule = |jobs: usize, sizes: &[u64]| {
            let jobs = Jobs::new(NonZeroUsize::new(jobs).unwrap());
            let Schedule { alone, together } = Schedule::new(jobs, sizes.iter().copied());
            (alone, together)
        };
        assert_eq!(schedule(2, &[13, 18, 36]), (vec![], vec![2, 1, 0]));
        assert_eq!(schedule(2, &[13, 18, 80, 18]), (vec![2], vec![1, 3, 0]));
        assert_eq!(schedule(8, &[100, 100, 1]), (vec![0, 1], vec![2]));
        assert_eq!(schedule(2, &[0, 0]), (vec![], vec![0, 1]));
        assert_eq!(schedule(2, &[u64::MAX, u64::MAX]), (vec![0, 1], vec![]));
    }
}
