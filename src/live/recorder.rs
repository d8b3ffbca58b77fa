//! Collects the events of one profile, from every thread that it is active on and from every handler.
//!
//! An event is entered when it begins and filled in when it ends, so its place is its identity: parents are known at
//! once, and what has not ended when the profile closes is still there, and told.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::backend::Device;
use super::clock::{Calibration, HostTime, Offset, Pair};
use super::event::{Absent, CommandBufferTimes, Event, EventIndex, GpuWork, Measured, Status, Via, encoder_time};
use super::profile::{Counts, Origin, Profile};
use crate::model::Nanos;

/// Collects the events of one profile.
pub(super) struct Recorder {
    started: HostTime,
    most_events: usize,
    state: Mutex<State>,
    /// A command buffer has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    slots: Vec<Slot>,
    /// Command buffers that have not ended.
    in_flight: usize,
    threads: u32,
    counts: Counts,
    devices: Vec<SeenDevice>,
}

/// An event and what is needed until it is whole.
struct Slot {
    event: Event,
    running: bool,
    commit: Option<HostTime>,
    /// A commit was seen: our own, or the scheduled handler.
    committed: bool,
    device: Option<usize>,
    samples: Option<[u64; 2]>,
}

struct SeenDevice {
    device: Arc<dyn Device>,
    first: Option<Pair>,
}

impl Recorder {
    pub(super) fn new(most_events: usize) -> Arc<Recorder> {
        Arc::new(Recorder {
            started: HostTime::now(),
            most_events,
            state: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a thread that was not seen before.
    pub(super) fn new_thread(&self) -> u32 {
        let mut state = self.state();
        let number = state.threads;
        state.threads += 1;
        number
    }

    /// Enters an event that begins. `None` when the profile is closed or has as many events as it may have.
    pub(super) fn begin(&self, mut event: Event, device: Option<&Arc<dyn Device>>) -> Option<EventIndex> {
        let device = device.and_then(|device| self.place_of(device));
        let mut state = self.state();
        if state.closed {
            return None;
        }
        let place = u32::try_from(state.slots.len())
            .ok()
            .filter(|_| state.slots.len() < self.most_events);
        let Some(place) = place else {
            state.counts.events_over_limit += 1;
            return None;
        };
        state.counts.unusable_metrics += event.metrics.take_out_unusable();
        state.in_flight += usize::from(event.gpu.is_some());
        state.slots.push(Slot {
            event,
            running: true,
            commit: None,
            committed: false,
            device,
            samples: None,
        });
        Some(EventIndex(place))
    }

    /// Where a device stands; its clock is read when it is new.
    fn place_of(&self, device: &Arc<dyn Device>) -> Option<usize> {
        let known = |state: &State| state.devices.iter().position(|seen| Arc::ptr_eq(&seen.device, device));
        if let Some(place) = known(&self.state()) {
            return Some(place);
        }
        // Not under the lock: the device is not ours.
        let first = device.clock_pair();
        let mut state = self.state();
        if state.closed {
            return None;
        }
        known(&state).or_else(|| {
            state.devices.push(SeenDevice {
                device: Arc::clone(device),
                first,
            });
            Some(state.devices.len() - 1)
        })
    }

    /// Changes an event that has not ended, while the profile is open.
    fn update(&self, place: EventIndex, change: impl FnOnce(&mut Slot)) {
        let mut state = self.state();
        let state = &mut *state;
        let Some(slot) = state.slots.get_mut(place.get()).filter(|slot| slot.running) else {
            return;
        };
        change(slot);
        if !slot.running && slot.event.gpu.is_some() {
            state.in_flight = state.in_flight.saturating_sub(1);
            self.ended.notify_all();
        }
    }

    /// A scope or stage ends.
    pub(super) fn end(&self, place: EventIndex, end: HostTime) {
        self.update(place, |slot| {
            slot.event.end = end;
            slot.running = false;
        });
    }

    pub(super) fn committed(&self, place: EventIndex, at: HostTime) {
        self.update(place, |slot| {
            slot.commit = Some(at);
            slot.committed = true;
            slot.event.end = at.max(slot.event.start);
        });
    }

    pub(super) fn scheduled(&self, place: EventIndex) {
        self.update(place, |slot| slot.committed = true);
    }

    pub(super) fn completed(&self, place: EventIndex, times: &CommandBufferTimes, offset: Offset) {
        self.update(place, |slot| {
            slot.running = false;
            let commit = slot.commit;
            if let Some(gpu) = &mut slot.event.gpu {
                gpu.status = Status::Completed;
                gpu.span = times.span(offset);
                gpu.scheduling = times.scheduling();
                gpu.queue_wait = queue_wait(gpu, commit);
            }
        });
    }

    pub(super) fn failed(&self, place: EventIndex, message: &str) {
        self.update(place, |slot| {
            slot.running = false;
            without_times(slot, Status::Failed(message.to_owned()), Absent::Failed);
        });
    }

    /// Nobody can tell of the command buffer any more.
    pub(super) fn abandoned(&self, place: EventIndex) {
        self.update(place, |slot| {
            slot.running = false;
            not_ended(slot);
        });
    }

    /// Samples at the stage boundaries; they come when the command buffer has ended.
    pub(super) fn samples(&self, place: EventIndex, samples: Measured<[u64; 2]>) {
        let mut state = self.state();
        let Some(slot) = state.slots.get_mut(place.get()) else {
            return;
        };
        match (samples, &mut slot.event.gpu) {
            (Ok(samples), Some(_)) => slot.samples = Some(samples),
            (Err(absent), Some(gpu)) => gpu.encoder = Err(absent),
            (_, None) => {}
        }
    }

    /// Waits until no command buffer is in flight, for at most `limit`.
    pub(super) fn wait(&self, limit: Duration) {
        let begun = Instant::now();
        let mut state = self.state();
        while state.in_flight > 0 {
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return;
            }
            let waited = self.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes: what has not ended is told as such, and whatever comes later changes nothing.
    pub(super) fn close(&self, captured: bool) -> Profile {
        let devices: Vec<Arc<dyn Device>> = self.state().devices.iter().map(|d| Arc::clone(&d.device)).collect();
        // Both may call back: not under the lock.
        let last: Vec<Option<Pair>> = devices
            .iter()
            .map(|device| {
                device.resolve_samples();
                device.clock_pair()
            })
            .collect();
        let closed = HostTime::now();
        let State {
            slots,
            devices,
            mut counts,
            ..
        } = std::mem::replace(
            &mut *self.state(),
            State {
                closed: true,
                ..State::default()
            },
        );
        let calibrations: Vec<Measured<Calibration>> = devices
            .iter()
            .zip(last)
            .map(|(seen, last)| match (seen.first, last) {
                (Some(first), Some(last)) => Calibration::new(first, last),
                _ => Err(Absent::CalibrationTooShort),
            })
            .collect();
        let mut events = Vec::with_capacity(slots.len());
        for mut slot in slots {
            if slot.running {
                match slot.event.gpu {
                    Some(_) => not_ended(&mut slot),
                    None => {
                        slot.event.end = closed.max(slot.event.start);
                        counts.open_scopes += 1;
                    }
                }
            }
            let calibration = slot.device.and_then(|place| calibrations.get(place));
            if let (Some(samples), Some(calibration), Some(gpu)) = (slot.samples, calibration, &mut slot.event.gpu) {
                let span = gpu.span.map(|span| span.length());
                gpu.encoder = calibration.and_then(|calibration| encoder_time(samples, &calibration, span));
            }
            if let Some(gpu) = &slot.event.gpu {
                counts.count(gpu);
            }
            events.push(slot.event);
        }
        let device = devices.first().map(|seen| seen.device.name());
        let origin = Origin::here(closed.since(self.started), device, captured);
        Profile::new((self.started, closed), events, counts, origin)
    }
}

/// From the commit to the start, where both are known.
fn queue_wait(gpu: &GpuWork, commit: Option<HostTime>) -> Measured<Nanos> {
    if matches!(gpu.via, Via::Observed | Via::ObservedLaunch) {
        return Err(Absent::NotCommittedHere);
    }
    let start = gpu.span?.start;
    let commit = commit.ok_or(Absent::NotCommittedHere)?;
    if start < commit {
        return Err(Absent::StartBeforeCommit);
    }
    Ok(start.since(commit))
}

fn not_ended(slot: &mut Slot) {
    if slot.committed {
        without_times(slot, Status::Unfinished, Absent::Unfinished);
    } else {
        without_times(slot, Status::NeverCommitted, Absent::NeverCommitted);
    }
}

/// A command buffer that did not complete has no time.
fn without_times(slot: &mut Slot, status: Status, absent: Absent) {
    slot.samples = None;
    if let Some(gpu) = &mut slot.event.gpu {
        gpu.status = status;
        gpu.span = Err(absent);
        gpu.scheduling = Err(absent);
        if !matches!(gpu.queue_wait, Err(Absent::NotCommittedHere)) {
            gpu.queue_wait = Err(absent);
        }
        if !matches!(gpu.encoder, Err(Absent::NotOwnDispatch | Absent::CountersUnsupported)) {
            gpu.encoder = Err(absent);
        }
    }
}
