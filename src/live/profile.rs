//! What was recorded: events, counts of what could not be measured, and whose it is.

use std::time::Duration;

use super::clock::HostTime;
use super::event::{Event, EventIndex, GpuWork, Status};

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

/// Everything that was recorded between the opening and the closing of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    started: HostTime,
    closed: HostTime,
    events: Vec<Event>,
    counts: Counts,
    device: Option<String>,
    captured: bool,
}

impl Profile {
    pub(super) fn new(
        started: HostTime,
        closed: HostTime,
        events: Vec<Event>,
        counts: Counts,
        device: Option<String>,
        captured: bool,
    ) -> Profile {
        Profile {
            started,
            closed,
            events,
            counts,
            device,
            captured,
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

    /// The first device that was seen.
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Whether Xcode's GPU capture was on: then its times say nothing of a run without it.
    pub fn captured(&self) -> bool {
        self.captured
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
