//! Signpost intervals of the chosen process: begins and ends paired, and what could not be paired counted.
//!
//! As with execution points, an end closes the open begin of its key, a second begin leaves the first one unpaired, and
//! at the same ns an end comes before a begin. Events are sorted first: a recording has several tables of them.

use std::collections::BTreeMap;

use super::process::Selection;
use crate::model::Timestamp;
use crate::recording::RunTables;
use crate::tables::signposts::{EventKind, Scope, Signpost, SignpostEvent};
use crate::tables::{ProcessId, Texts};

/// The signposts of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// Start and end, sorted, each once.
    pub(super) intervals: Vec<(Timestamp, Timestamp)>,
    /// Begins without an end.
    pub(super) open: u64,
    /// Ends without a begin.
    pub(super) ends: u64,
    /// Single events.
    pub(super) points: u64,
}

/// What a begin and its end have in common.
type Key = (
    Scope,
    Signpost,
    Option<Result<u32, ProcessId>>,
    Option<crate::model::NameId>,
);

/// Every name with a signpost of the process; `None` when the run has no table of signposts.
pub(super) fn signposts(run: &RunTables, texts: &Texts, selection: &Selection) -> Option<BTreeMap<String, Named>> {
    if run.signpost_events.is_none() && run.signpost_intervals.is_none() {
        return None;
    }
    let mut found: Found<'_> = Found {
        texts,
        selection,
        named: BTreeMap::new(),
        intervals: Vec::new(),
    };
    found.pair(run.signpost_events.as_deref().unwrap_or_default());
    for row in run.signpost_intervals.iter().flatten() {
        match (row.start, row.duration) {
            (Some(start), Some(duration)) => {
                found.interval(&row.signpost, row.process, start, start.saturating_add(duration));
            }
            // Without a usable start nothing says where it would be.
            _ => found.count(&row.signpost, row.process, |named| &mut named.open),
        }
    }
    Some(found.finish())
}

struct Found<'a> {
    texts: &'a Texts,
    selection: &'a Selection,
    named: BTreeMap<String, Named>,
    intervals: Vec<(Signpost, u64, u64)>,
}

impl Found<'_> {
    fn pair(&mut self, events: &[SignpostEvent]) {
        // One pid is one process, whatever the rows call it.
        let pid = |id: ProcessId| self.texts.get_process(id).and_then(|process| process.pid).ok_or(id);
        let key = |event: &SignpostEvent| -> Key {
            let process = event.process.map(pid).filter(|_| event.scope != Scope::System);
            let thread = event.thread.filter(|_| event.scope == Scope::Thread);
            (event.scope, event.signpost, process, thread)
        };
        let mut sorted: Vec<_> = events
            .iter()
            .map(|event| (key(event), event.time, event.kind, event.process, event.thread))
            .collect();
        sorted.sort_unstable();
        // Tables cut by subsystem and by category both hold an event that fits both.
        sorted.dedup();
        for of_key in sorted.chunk_by(|a, b| a.0 == b.0) {
            let mut open: Option<(u64, Option<ProcessId>)> = None;
            for ((_, signpost, ..), time, kind, process, _) in of_key {
                match (kind, *time) {
                    (EventKind::Point, _) => self.count(signpost, *process, |named| &mut named.points),
                    (EventKind::Begin, Some(time)) => {
                        if let Some((_, process)) = open.replace((time, *process)) {
                            self.count(signpost, process, |named| &mut named.open);
                        }
                    }
                    (EventKind::Begin, None) => self.count(signpost, *process, |named| &mut named.open),
                    (EventKind::End, Some(end)) if open.is_some() => {
                        if let Some((start, process)) = open.take() {
                            self.interval(signpost, process, start, end);
                        }
                    }
                    (EventKind::End, _) => self.count(signpost, *process, |named| &mut named.ends),
                }
            }
            if let (Some((_, process)), Some(((_, signpost, ..), ..))) = (open, of_key.first()) {
                self.count(signpost, process, |named| &mut named.open);
            }
        }
    }

    fn interval(&mut self, signpost: &Signpost, process: Option<ProcessId>, start: u64, end: u64) {
        if self.selection.has(process) {
            self.intervals.push((*signpost, start, end));
        }
    }

    fn count(&mut self, signpost: &Signpost, process: Option<ProcessId>, counter: fn(&mut Named) -> &mut u64) {
        if self.selection.has(process)
            && let Some(name) = signpost.name
        {
            let named = self.named.entry(self.texts.names.get(name).to_owned()).or_default();
            *counter(named) += 1;
        }
    }

    fn finish(mut self) -> BTreeMap<String, Named> {
        // Instruments' own intervals repeat those that are paired here.
        self.intervals.sort_unstable();
        self.intervals.dedup();
        for (signpost, start, end) in self.intervals {
            if let Some(name) = signpost.name {
                let named = self.named.entry(self.texts.names.get(name).to_owned()).or_default();
                named.intervals.push((Timestamp(start), Timestamp(end)));
            }
        }
        for named in self.named.values_mut() {
            named.intervals.sort_unstable();
        }
        self.named
    }
}
