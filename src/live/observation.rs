//! The recorder's hold on one command buffer: opened where it is committed or observed, told of its end from a handler.

use std::sync::Arc;

use super::backend::Device;
use super::clock::{HostTime, Offset};
use super::event::{Absent, Category, CommandBufferTimes, Event, EventIndex, GpuWork, Launch, Measured, Status, Via};
use super::hooks;
use super::metrics::Metrics;
use super::recorder::Recorder;
use super::thread;

/// What a command buffer without a label is called.
const UNLABELLED: &str = "(unlabelled)";

/// A command buffer that one or more profiles wait for.
///
/// Clones are the same command buffer. Every method may be called on any thread, any number of times; what comes after
/// the end, or after the profile was closed, changes nothing.
#[derive(Clone)]
pub struct Observation {
    shared: Arc<Shared>,
}

struct Shared {
    places: Vec<(Arc<Recorder>, EventIndex)>,
}

impl Observation {
    /// Takes the call path of this thread for a command buffer with this label; `None` when no profile is active here.
    ///
    /// `launch` belongs to [`Via::ObservedLaunch`] and [`Via::OwnDispatch`]; when it brings no metrics of its own, its
    /// kernel's hook is called. `device` is whose counters are sampled, and whose name the profile has.
    pub fn open(
        label: &str,
        via: Via,
        launch: Option<&Launch>,
        device: Option<&Arc<dyn Device>>,
    ) -> Option<Observation> {
        if !thread::is_active() {
            return None;
        }
        let launch = launch.map(hooks::with_metrics);
        let label = if label.is_empty() { UNLABELLED } else { label };
        let encoder = match (via, device) {
            (Via::OwnDispatch, Some(device)) if device.supports_stage_counters() => Absent::NotAvailable,
            (Via::OwnDispatch, _) => Absent::CountersUnsupported,
            _ => Absent::NotOwnDispatch,
        };
        let queue_wait = match via {
            Via::Observed | Via::ObservedLaunch => Absent::NotCommittedHere,
            Via::Committed | Via::OwnDispatch => Absent::NotAvailable,
        };
        let event = |path, parent, number, now| Event {
            name: label.into(),
            category: Category::Gpu,
            path,
            parent,
            thread: number,
            start: now,
            end: now,
            input_bytes: launch.as_ref().and_then(|launch| launch.input_bytes),
            output_bytes: launch.as_ref().and_then(|launch| launch.output_bytes),
            metrics: launch
                .as_ref()
                .map_or_else(Metrics::new, |launch| launch.metrics.clone()),
            gpu: Some(GpuWork {
                via,
                status: Status::NeverCommitted,
                span: Err(Absent::NotAvailable),
                scheduling: Err(Absent::NotAvailable),
                queue_wait: Err(queue_wait),
                encoder: Err(encoder),
                launch: launch.clone().ok_or(Absent::NoLaunch),
            }),
        };
        let places = thread::enter_leaf(event, device);
        (!places.is_empty()).then(|| Observation {
            shared: Arc::new(Shared { places }),
        })
    }

    /// It is committed now, by this library: to be called just before the commit, on the committing thread.
    pub fn committed(&self) {
        let now = HostTime::now();
        self.each(|recorder, place| recorder.committed(place, now));
    }

    /// It was scheduled, so somebody has committed it.
    pub fn scheduled(&self) {
        self.each(Recorder::scheduled);
    }

    /// It has run. `offset` is that of the clock of `times`.
    pub fn completed(&self, times: &CommandBufferTimes, offset: Offset) {
        self.each(|recorder, place| recorder.completed(place, times, offset));
    }

    /// It ended in an error, in Metal's words.
    pub fn failed(&self, message: &str) {
        self.each(|recorder, place| recorder.failed(place, message));
    }

    /// The raw counter samples at the start and the end of its encoder, in ticks of the device.
    pub fn encoder_samples(&self, start: u64, end: u64) {
        self.encoder(Ok([start, end]));
    }

    /// Why there are none (`ring_full`, …).
    pub fn encoder_absent(&self, reason: Absent) {
        self.encoder(Err(reason));
    }

    fn encoder(&self, samples: Measured<[u64; 2]>) {
        self.each(|recorder, place| recorder.samples(place, samples));
    }

    fn each(&self, tell: impl Fn(&Recorder, EventIndex)) {
        for (recorder, place) in &self.shared.places {
            tell(recorder, *place);
        }
    }
}

impl std::fmt::Debug for Observation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observation")
            .field("profiles", &self.shared.places.len())
            .finish()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for (recorder, place) in &self.places {
            recorder.abandoned(*place);
        }
    }
}
