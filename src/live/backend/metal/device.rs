//! The device, and the backend that a thread opens on it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{MTLCommandQueue, MTLCounterSet, MTLCreateSystemDefaultDevice, MTLDevice};

use super::counters::{self, Ring};
use super::{capture, clock, failed, nil};
use crate::error::Result;
use crate::live::backend::{Device, register_capture};
use crate::live::clock::Pair;

// Metal's framework needs CoreGraphics to be linked for `MTLCreateSystemDefaultDevice`.
#[cfg(target_vendor = "apple")]
#[expect(unsafe_code, reason = "links a framework and declares nothing")]
mod core_graphics {
    #[link(name = "CoreGraphics", kind = "framework")]
    unsafe extern "C" {}
}

/// The device of this machine, opened by a thread for its own kernels.
///
/// It belongs to the thread: counter samples and buffers do in Metal. Several threads open several; they share the GPU.
pub struct Metal {
    pub(super) shared: Arc<SharedDevice>,
    as_device: Arc<dyn Device>,
    pub(super) queue: Retained<ProtocolObject<dyn MTLCommandQueue>>,
    pub(super) ring: Option<Rc<RefCell<Ring>>>,
    counters_refused: Option<String>,
}

/// What may be asked on any thread.
pub(super) struct SharedDevice {
    pub(super) device: Retained<ProtocolObject<dyn MTLDevice>>,
    /// Tells the devices that were opened apart.
    number: u64,
    stage_counters: bool,
}

impl Metal {
    /// Opens the default device.
    ///
    /// # Errors
    /// This machine has none, or Metal gives no queue.
    pub fn open() -> Result<Metal> {
        autoreleasepool(|_| {
            let device = MTLCreateSystemDefaultDevice().ok_or_else(|| {
                failed("this machine has no Metal device")
                    .with_help("a virtual machine, or a session without a GPU, has none; `system_profiler SPDisplaysDataType` shows what there is")
            })?;
            let queue = device.newCommandQueue().ok_or_else(|| nil("command queue"))?;
            queue.setLabel(Some(&NSString::from_str("trace-attr live")));
            let (ring, counters_refused) = match Ring::new(&device) {
                Ok(ring) => (ring, None),
                Err(error) => (None, Some(error.to_string())),
            };
            let ring = ring.map(|ring| Rc::new(RefCell::new(ring)));
            static OPENED: AtomicU64 = AtomicU64::new(0);
            let number = OPENED.fetch_add(1, Ordering::Relaxed);
            if let Some(ring) = &ring {
                counters::own(number, ring);
            }
            let shared = Arc::new(SharedDevice {
                device,
                number,
                stage_counters: ring.is_some(),
            });
            register_capture(Arc::new(capture::Document));
            Ok(Metal {
                as_device: Arc::clone(&shared) as Arc<dyn Device>,
                shared,
                queue,
                ring,
                counters_refused,
            })
        })
    }

    pub(super) fn device(&self) -> &Arc<dyn Device> {
        &self.as_device
    }

    /// Bytes that the device recommends to use at most; `None` when it says 0.
    pub(super) fn working_set(&self) -> Option<u64> {
        Some(self.shared.device.recommendedMaxWorkingSetSize()).filter(|bytes| *bytes > 0)
    }

    /// What only Metal knows of the device, for [`doctor`](crate::live::doctor): name and value.
    pub fn facts(&self) -> Vec<(String, String)> {
        let sets = self.counter_sets();
        let sets = if sets.is_empty() {
            "none".to_owned()
        } else {
            sets.join(", ")
        };
        let capture = if self.supports_capture() {
            "on"
        } else {
            "off (start with MTL_CAPTURE_ENABLED=1)"
        };
        let mut facts = vec![("counter sets", sets), ("GPU capture", capture.to_owned())];
        if let Some(why) = &self.counters_refused {
            facts.push(("stage counters refused", why.clone()));
        }
        facts
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn counter_sets(&self) -> Vec<String> {
        autoreleasepool(|_| {
            let sets = counters::counter_sets(&self.shared.device);
            sets.iter().map(|set| set.name().to_string()).collect()
        })
    }

    /// Whether a GPU capture could start now.
    pub fn supports_capture(&self) -> bool {
        autoreleasepool(|_| capture::is_supported())
    }
}

impl Drop for Metal {
    /// On the thread that opened it, which is the last chance to resolve its samples.
    fn drop(&mut self) {
        counters::resolve(self.shared.number);
        counters::disown(self.shared.number);
    }
}

impl Device for SharedDevice {
    fn name(&self) -> String {
        autoreleasepool(|_| self.device.name().to_string())
    }

    fn supports_stage_counters(&self) -> bool {
        self.stage_counters
    }

    fn clock_pair(&self) -> Option<Pair> {
        clock::pair(&self.device)
    }

    fn resolve_samples(&self) {
        counters::resolve(self.number);
    }
}
