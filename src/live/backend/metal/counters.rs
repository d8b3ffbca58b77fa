//! The ring of stage counter samples: one sample buffer for all, because a device has few of them (about 32) and each takes
//! at most 4,096 samples.
//!
//! A watched dispatch takes two samples, for the start and the end of its encoder. They are resolved when their command buffer
//! has ended, on the thread that owns the ring, and are free again then. With no two samples free, the dispatch goes without,
//! and its event says so.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::{NSRange, NSString};
use objc2_metal::{
    MTLCommonCounterSetTimestamp, MTLComputePassDescriptor, MTLCounterSampleBuffer, MTLCounterSampleBufferDescriptor,
    MTLCounterSamplingPoint, MTLCounterSet, MTLDevice, MTLStorageMode,
};

use super::observe::Progress;
use super::refusing;
use crate::error::Result;
use crate::live::Absent;
use crate::live::backend::Observation;

/// Most samples of one buffer, by Metal's limit.
const SAMPLES: usize = 4096;
const PAIRS: usize = SAMPLES / 2;

type CounterSet = Retained<ProtocolObject<dyn MTLCounterSet>>;

/// The counter set of timestamps, when the device samples it at stage boundaries.
fn timestamps(device: &ProtocolObject<dyn MTLDevice>) -> Option<CounterSet> {
    if !device.supportsCounterSampling(MTLCounterSamplingPoint::AtStageBoundary) {
        return None;
    }
    #[expect(unsafe_code, reason = "a constant string that Metal exports")]
    // SAFETY: as the reason says.
    let wanted = unsafe { MTLCommonCounterSetTimestamp }.to_string();
    counter_sets(device)
        .into_iter()
        .find(|set| set.name().to_string() == wanted)
}

/// The counter sets of a device, in its order.
pub(super) fn counter_sets(device: &ProtocolObject<dyn MTLDevice>) -> Vec<CounterSet> {
    let sets = device.counterSets();
    sets.map_or_else(Vec::new, |sets| {
        (0..sets.count()).map(|at| sets.objectAtIndex(at)).collect()
    })
}

/// The samples of one thread. Neither it nor what it holds leaves the thread.
pub(super) struct Ring {
    samples: Retained<ProtocolObject<dyn MTLCounterSampleBuffer>>,
    /// Who waits for a pair of samples; `None` is a free pair.
    pairs: Vec<Option<Waiting>>,
    next: usize,
}

struct Waiting {
    observation: Observation,
    progress: Arc<Progress>,
}

impl Ring {
    /// `None` when the device samples no timestamps at stage boundaries.
    ///
    /// # Errors
    /// It says that it does, and refuses the buffer.
    pub(super) fn new(device: &ProtocolObject<dyn MTLDevice>) -> Result<Option<Ring>> {
        let Some(timestamps) = timestamps(device) else {
            return Ok(None);
        };
        let descriptor = MTLCounterSampleBufferDescriptor::new();
        descriptor.setCounterSet(Some(&timestamps));
        descriptor.setStorageMode(MTLStorageMode::Shared);
        descriptor.setLabel(&NSString::from_str("trace-attr live"));
        #[expect(unsafe_code, reason = "any count is sound; one that is too large is refused below")]
        // SAFETY: as the reason says.
        unsafe {
            descriptor.setSampleCount(SAMPLES);
        }
        let samples = device
            .newCounterSampleBufferWithDescriptor_error(&descriptor)
            .map_err(refusing("counter sample buffer"))?;
        Ok(Some(Ring {
            samples,
            pairs: std::iter::repeat_with(|| None).take(PAIRS).collect(),
            next: 0,
        }))
    }

    /// A pass that samples both ends of its encoder, and the progress that its command buffer must report.
    ///
    /// # Errors
    /// Every pair of samples waits for a command buffer that has not ended.
    pub(super) fn pass(
        &mut self,
        observation: &Observation,
    ) -> Result<(Retained<MTLComputePassDescriptor>, Arc<Progress>), Absent> {
        let is_free = |ring: &Ring| matches!(ring.pairs.get(ring.next), Some(None));
        if !is_free(self) {
            self.resolve();
        }
        if !is_free(self) {
            return Err(Absent::RingFull);
        }
        let pass = MTLComputePassDescriptor::computePassDescriptor();
        #[expect(
            unsafe_code,
            reason = "a pass has an attachment 0, and both samples lie in the buffer: 2 × next + 1 < SAMPLES"
        )]
        // SAFETY: as the reason says.
        unsafe {
            let attachment = pass.sampleBufferAttachments().objectAtIndexedSubscript(0);
            attachment.setSampleBuffer(Some(&self.samples));
            attachment.setStartOfEncoderSampleIndex(2 * self.next);
            attachment.setEndOfEncoderSampleIndex(2 * self.next + 1);
        }
        let progress = Arc::new(Progress::default());
        if let Some(pair) = self.pairs.get_mut(self.next) {
            *pair = Some(Waiting {
                observation: observation.clone(),
                progress: Arc::clone(&progress),
            });
        }
        self.next = (self.next + 1) % PAIRS;
        Ok((pass, progress))
    }

    /// Gives the samples of every command buffer that has ended to its observation, and frees them.
    pub(super) fn resolve(&mut self) {
        for (at, pair) in self.pairs.iter_mut().enumerate() {
            let Some(completed) = pair.as_ref().and_then(|waiting| waiting.progress.completed()) else {
                continue;
            };
            if let Some(waiting) = pair.take()
                && completed
            {
                match read(&self.samples, at) {
                    Some([start, end]) => waiting.observation.encoder_samples(start, end),
                    None => waiting.observation.encoder_absent(Absent::NotAvailable),
                }
            }
        }
    }
}

/// The two samples of a pair, as they stand: the recorder judges them.
fn read(samples: &ProtocolObject<dyn MTLCounterSampleBuffer>, pair: usize) -> Option<[u64; 2]> {
    autoreleasepool(|_| {
        #[expect(
            unsafe_code,
            reason = "the range lies in the buffer: the pairs are as many as it has samples for"
        )]
        // SAFETY: as the reason says.
        let data = unsafe { samples.resolveCounterRange(NSRange::new(2 * pair, 2)) }?;
        let bytes = data.to_vec();
        let (values, _) = bytes.as_chunks::<8>();
        match values {
            [start, end] => Some([u64::from_ne_bytes(*start), u64::from_ne_bytes(*end)]),
            _ => None,
        }
    })
}

/// A ring, and which device it belongs to.
type Owned = (u64, Rc<RefCell<Ring>>);

thread_local! {
    /// The rings that this thread owns: a device is shared by all threads and finds here what it may resolve.
    static RINGS: RefCell<Vec<Owned>> = const { RefCell::new(Vec::new()) };
}

/// Lets the device with this number find its ring on this thread.
pub(super) fn own(device: u64, ring: &Rc<RefCell<Ring>>) {
    RINGS.with_borrow_mut(|rings| rings.push((device, Rc::clone(ring))));
}

/// Ends that.
pub(super) fn disown(device: u64) {
    // A thread that is ending has freed them itself.
    let taken = RINGS.try_with(|rings| {
        let mut rings = rings.borrow_mut();
        let at = rings.iter().position(|(owner, _)| *owner == device)?;
        Some(rings.swap_remove(at))
    });
    drop(taken);
}

/// Resolves what this thread owns of a device; on another thread than the owner's, nothing.
pub(super) fn resolve(device: u64) {
    let ring = RINGS.try_with(|rings| {
        let rings = rings.borrow();
        rings
            .iter()
            .find(|(owner, _)| *owner == device)
            .map(|(_, ring)| Rc::clone(ring))
    });
    if let Ok(Some(ring)) = ring
        && let Ok(mut ring) = ring.try_borrow_mut()
    {
        ring.resolve();
    }
}
