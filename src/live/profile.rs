//! What was recorded: events, counts of what could not be measured, and whose it is.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::averages::{self, GroupBy, KeyAverages};
use super::clock::HostTime;
use super::event::{Event, EventIndex, GpuWork, Status};
use super::{json, shapes, table, trace};
use crate::calltree::CallTree;
use crate::convert::Shapes;
use crate::error::Result;
use crate::model::{Nanos, Trace};
use crate::timeline::Timeline;

/// What a profile could not hold or measure, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Command buffers.
    pub command_buffers: u64,
    /// Those without a GPU time, for any reason.
    pub without_gpu_time: u64,
    /// Those that ended in an error.
    pub failed: u64,
    /// Those that were committed and had not completed when the profile was closed.
    pub unfinished: u64,
    /// Those of which no commit was seen.
    pub never_committed: u64,
    /// Scopes that were open when the profile was closed; they end there.
    pub open_scopes: u64,
    /// Events that were more than the profile may hold.
    pub events_over_limit: u64,
    /// Metrics that were no finite number.
    pub unusable_metrics: u64,
}

impl Counts {
    pub(super) fn count(&mut self, gpu: &GpuWork) {
        self.command_buffers += 1;
        self.without_gpu_time += u64::from(gpu.span.is_err());
        match gpu.status {
            Status::Completed => {}
            Status::Failed(_) => self.failed += 1,
            Status::Unfinished => self.unfinished += 1,
            Status::NeverCommitted => self.never_committed += 1,
        }
    }
}

/// Where a profile comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Name of the program.
    pub process: String,
    /// Its pid.
    pub pid: u32,
    /// When the profile was opened, since 1970; `None` when the machine's calendar says nothing usable.
    pub unix: Option<Nanos>,
    /// The first device that was seen.
    pub device: Option<String>,
    /// Whether Xcode's GPU capture was on.
    pub captured: bool,
}

impl Origin {
    /// This process, `since` its opening.
    pub(super) fn here(since: Nanos, device: Option<String>, captured: bool) -> Origin {
        let program = std::env::current_exe().ok();
        let name = program.as_deref().and_then(Path::file_stem);
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        let unix = unix.and_then(|now| u64::try_from(now.as_nanos()).ok());
        Origin {
            process: name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            pid: std::process::id(),
            unix: unix.map(|now| Nanos(now.saturating_sub(since.0))),
            device,
            captured,
        }
    }
}

/// Everything that was recorded between the opening and the closing of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    started: HostTime,
    closed: HostTime,
    events: Vec<Event>,
    counts: Counts,
    origin: Origin,
}

impl Profile {
    /// `time` is that of opening and closing.
    pub(super) fn new(time: (HostTime, HostTime), events: Vec<Event>, counts: Counts, origin: Origin) -> Profile {
        Profile {
            started: time.0,
            closed: time.1,
            events,
            counts,
            origin,
        }
    }

    /// When it was opened.
    pub fn started(&self) -> HostTime {
        self.started
    }

    /// When it was closed.
    pub fn closed(&self) -> HostTime {
        self.closed
    }

    /// Every event, in the order in which they began on their threads.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The event at a place that came from this profile.
    pub fn event(&self, at: EventIndex) -> Option<&Event> {
        self.events.get(at.get())
    }

    /// What could not be held or measured.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Where it comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The first device that was seen.
    pub fn device(&self) -> Option<&str> {
        self.origin.device.as_deref()
    }

    /// Whether Xcode's GPU capture was on: then its times say nothing of a run without it.
    pub fn captured(&self) -> bool {
        self.origin.captured
    }

    /// Rows by name or call path, in the order in which they were first seen.
    pub fn key_averages(&self, by: GroupBy) -> KeyAverages {
        averages::key_averages(self, by)
    }

    /// The call tree as text.
    pub fn tree(&self) -> String {
        table::tree(&self.key_averages(GroupBy::CallPath))
    }

    /// The profile as one run of a trace; `None` when no command buffer has a GPU time.
    pub fn to_trace(&self) -> Option<Trace> {
        trace::trace(self)
    }

    /// The profile as JSON, schema [`json::SCHEMA`].
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// A profile that was written as JSON. Its times count from its opening.
    ///
    /// # Errors
    /// No JSON of the schema, a newer version, or an event that contradicts itself.
    pub fn from_json(text: &str) -> Result<Profile> {
        json::read(text)
    }
}

impl Shapes for Profile {
    fn timeline(&self) -> Timeline<'_> {
        shapes::timeline(self)
    }

    fn call_tree(&self) -> CallTree {
        shapes::call_tree(self)
    }
}

/// How a profile is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileOptions {
    /// Write an Xcode GPU capture to this path (`.gputrace`) meanwhile.
    pub capture: Option<std::path::PathBuf>,
    /// How long closing waits for command buffers in flight; by default 5 s.
    pub close_limit: Duration,
    /// Most events that are kept; by default 4 million. More are counted.
    pub most_events: usize,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        ProfileOptions {
            capture: None,
            close_limit: Duration::from_secs(5),
            most_events: 4_000_000,
        }
    }
}
