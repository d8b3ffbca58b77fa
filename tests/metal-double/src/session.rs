//! What a test sets up, and what it leaves behind. The device is one per process, as on a Mac, so tests take turns.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::blocks::BLOCKS_ALIVE;
use crate::clock;
use crate::metal::{Kernel, gpu};
use crate::pools::WITHOUT_POOL;
use crate::runtime::{forget_alive, objects_alive};

/// How a command buffer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    /// The GPU failed while it ran: an error, and times that mean nothing.
    Fault,
    /// It never ran: an error, and no times.
    Cancelled,
    /// Completed, but the driver gives these times, in seconds.
    Times {
        start: u64,
        end: u64,
    },
}

/// What the device writes for the two samples of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    Right,
    /// Both are 0, as when a pass is dropped with its samples.
    Zero,
    /// The end is still 0.
    Partial,
    /// The end is the error value, all bits set.
    Error,
    EndBeforeStart,
    /// Start and end are one value.
    Equal,
    /// The pass took ten times as long as its command buffer.
    Longer,
}

pub(crate) struct Setup {
    pub(crate) device: bool,
    pub(crate) stage_counters: bool,
    pub(crate) sample_buffers: bool,
    pub(crate) capture: bool,
    pub(crate) command_buffers: usize,
    pub(crate) kernels: HashMap<String, Kernel>,
    pub(crate) outcomes: VecDeque<Outcome>,
    pub(crate) samples: VecDeque<Samples>,
    pub(crate) labels: Vec<String>,
    pub(crate) samples_resolved_elsewhere: usize,
    pub(crate) sample_buffers_made: usize,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            device: true,
            stage_counters: true,
            sample_buffers: true,
            capture: false,
            command_buffers: 64,
            kernels: HashMap::new(),
            outcomes: VecDeque::new(),
            samples: VecDeque::new(),
            labels: Vec::new(),
            samples_resolved_elsewhere: 0,
            sample_buffers_made: 0,
        }
    }
}

static SETUP: LazyLock<Mutex<Setup>> = LazyLock::new(Mutex::default);
static TURN: Mutex<()> = Mutex::new(());

pub(crate) fn setup() -> MutexGuard<'static, Setup> {
    SETUP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One test's turn with the device.
pub struct Session {
    _turn: MutexGuard<'static, ()>,
}

/// Waits for the device and gives it back as it was when the process began: stage counters, no capture, no kernel.
pub fn session() -> Session {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    *setup() = Setup::default();
    clock::set_ticks_per_second(24_000_000);
    forget_alive();
    BLOCKS_ALIVE.store(0, SeqCst);
    WITHOUT_POOL.store(0, SeqCst);
    Session { _turn: turn }
}

impl Session {
    /// Teaches the device what a kernel of this name does: a launch takes `nanoseconds`, whatever its grid.
    pub fn kernel(
        &self,
        name: &str,
        nanoseconds: u64,
        run: impl Fn(&crate::metal::Arguments) + Send + Sync + 'static,
    ) -> &Self {
        let kernel = Kernel {
            max_threads: 512,
            width: 32,
            static_memory: 4096,
            nanoseconds,
            constants: BTreeMap::new(),
            run: Arc::new(run),
        };
        setup().kernels.insert(name.into(), kernel);
        self
    }
    pub fn without_device(&self) -> &Self {
        setup().device = false;
        self
    }
    pub fn without_stage_counters(&self) -> &Self {
        setup().stage_counters = false;
        self
    }
    /// The device supports counters, and refuses to make a buffer for them.
    pub fn without_sample_buffers(&self) -> &Self {
        setup().sample_buffers = false;
        self
    }
    /// How many command buffers a queue lends; Metal's default is 64.
    pub fn command_buffers(&self, most: usize) -> &Self {
        setup().command_buffers = most;
        self
    }
    /// As with `MTL_CAPTURE_ENABLED=1`.
    pub fn with_capture(&self) -> &Self {
        setup().capture = true;
        self
    }
    pub fn ticks_per_second(&self, rate: u64) -> &Self {
        clock::set_ticks_per_second(rate);
        self
    }
    /// How the next command buffers end, in order; those after them complete.
    pub fn outcomes(&self, outcomes: impl IntoIterator<Item = Outcome>) -> &Self {
        setup().outcomes.extend(outcomes);
        self
    }
    /// What the next sampled passes write, in order; those after them are right.
    pub fn samples(&self, samples: impl IntoIterator<Item = Samples>) -> &Self {
        setup().samples.extend(samples);
        self
    }
    /// The labels that were set on command buffers and encoders, in order.
    pub fn labels(&self) -> Vec<String> {
        setup().labels.clone()
    }
    /// How many counter sample buffers were made.
    pub fn sample_buffers_made(&self) -> usize {
        setup().sample_buffers_made
    }
    /// Whether a capture runs.
    pub fn is_capturing(&self) -> bool {
        crate::metal::is_capturing()
    }
    /// Stops the GPU until `release_gpu`: what is committed stays in flight.
    pub fn hold_gpu(&self) {
        gpu::hold(true);
    }
    pub fn release_gpu(&self) {
        gpu::hold(false);
    }
    /// Waits until all that was committed has run and every handler has returned.
    pub fn wait_for_gpu(&self) {
        gpu::wait_until_idle();
    }

    /// Ends the turn: nothing may be left alive, and nothing may have been autoreleased outside of a pool.
    #[track_caller]
    pub fn end(self) {
        gpu::wait_until_idle();
        assert_eq!(objects_alive(), [], "leaked objects");
        assert_eq!(BLOCKS_ALIVE.load(SeqCst), 0, "leaked blocks");
        assert_eq!(WITHOUT_POOL.load(SeqCst), 0, "autoreleased with no pool in place");
        assert!(!self.is_capturing(), "a capture was not stopped");
        assert_eq!(
            setup().samples_resolved_elsewhere,
            0,
            "samples resolved on a thread that does not own their buffer"
        );
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        gpu::hold(false);
        gpu::wait_until_idle();
        crate::metal::forget_capture();
    }
}
