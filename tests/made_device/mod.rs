//! A device for tests: it runs nothing, and gives each command buffer the times that the test says.
//!
//! A command buffer completes on another thread, as Metal's handlers do, when it is waited for or when the test says so.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use trace_attr::error::ErrorKind;
use trace_attr::live::backend::{Backend, Batch, Constant, Contents, Device, KernelSource, Observation};
use trace_attr::live::clock::{Offset, Pair};
use trace_attr::live::event::CommandBufferTimes;
use trace_attr::live::{HostTime, PipelineLimits};
use trace_attr::{Error, Result};

/// Seconds that a device shows so many ns after this process began to look at the clock.
pub(crate) fn seconds(ns: u64) -> f64 {
    1_000.0 + ns as f64 / 1e9
}

/// How [`seconds`] lies against the host's clock.
pub(crate) fn offset() -> Offset {
    Offset::known(HostTime(0), 1_000_000_000_000)
}

/// Times of a command buffer that ran `[start, end)`, ns on the host's clock, after 2 µs of scheduling.
pub(crate) fn ran(start: u64, end: u64) -> CommandBufferTimes {
    CommandBufferTimes {
        gpu_start: seconds(start),
        gpu_end: seconds(end),
        kernel_start: seconds(0),
        kernel_end: seconds(2_000),
    }
}

/// Calls `told` on another thread, as a completed handler is called.
pub(crate) fn in_handler(told: impl FnOnce() + Send + 'static) {
    std::thread::spawn(told).join().unwrap();
}

/// What a command buffer does.
#[derive(Debug, Clone)]
pub(crate) enum Play {
    /// Runs so many ns.
    Runs(u64),
    /// Gives these times.
    Gives(CommandBufferTimes),
    /// Ends in this error.
    Fails(&'static str),
}

/// The device's clock and counters.
pub(crate) struct MadeClock {
    pub(crate) counters: bool,
    /// Ticks of 100 ns.
    ticks: AtomicU64,
    host: AtomicU64,
}

impl Device for MadeClock {
    fn name(&self) -> String {
        "Made GPU".to_owned()
    }
    fn supports_stage_counters(&self) -> bool {
        self.counters
    }
    fn clock_pair(&self) -> Option<Pair> {
        // A second of made time between any two readings.
        let host = self.host.fetch_add(1_000_000_000, Ordering::SeqCst);
        Some(Pair {
            host: HostTime(host),
            ticks: self.ticks.fetch_add(10_000_000, Ordering::SeqCst),
        })
    }
    fn resolve_samples(&self) {}
}

/// A device whose command buffers do what they are told, one after the other, the last for ever.
pub(crate) struct MadeDevice {
    device: Arc<dyn Device>,
    plays: Mutex<Vec<Play>>,
    /// Ticks that the counters show at the stage boundaries.
    pub(crate) samples: Option<[u64; 2]>,
    pub(crate) working_set: Option<u64>,
    /// Labels and numbers of launches that were committed, and whether they were observed.
    pub(crate) log: Mutex<Vec<(String, usize, bool)>>,
    /// Buffers that each launch had.
    pub(crate) buffers_of: Mutex<Vec<Vec<u64>>>,
    next_buffer: AtomicU64,
}

impl MadeDevice {
    pub(crate) fn new(plays: impl Into<Vec<Play>>) -> MadeDevice {
        MadeDevice::with_counters(plays, false)
    }

    pub(crate) fn with_counters(plays: impl Into<Vec<Play>>, counters: bool) -> MadeDevice {
        let mut plays = plays.into();
        plays.reverse();
        MadeDevice {
            device: Arc::new(MadeClock {
                counters,
                ticks: AtomicU64::new(1_000),
                host: AtomicU64::new(0),
            }),
            plays: Mutex::new(plays),
            samples: None,
            working_set: None,
            log: Mutex::default(),
            buffers_of: Mutex::default(),
            next_buffer: AtomicU64::new(0),
        }
    }
}

pub(crate) struct MadeBuffer {
    number: u64,
    bytes: Vec<u8>,
}

pub(crate) struct Submitted {
    play: Play,
    begun: HostTime,
    observation: Option<Observation>,
    samples: Option<[u64; 2]>,
}

impl Backend for MadeDevice {
    type Library = String;
    type Pipeline = String;
    type Buffer = MadeBuffer;
    type Submitted = Submitted;

    fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }
    fn recommended_working_set(&self) -> Option<u64> {
        self.working_set
    }
    fn library(&self, source: KernelSource<'_>) -> Result<String> {
        match source {
            KernelSource::Msl(text) if text.contains("kernel") => Ok(text.to_owned()),
            _ => Err(Error::new(ErrorKind::Device("there is no kernel in it".to_owned()))),
        }
    }
    fn pipeline(&self, library: &String, kernel: &str, _: &[Constant]) -> Result<(String, PipelineLimits)> {
        if !library.contains(kernel) {
            return Err(Error::new(ErrorKind::Device(format!("no kernel named {kernel}"))));
        }
        let limits = PipelineLimits {
            max_threads_per_threadgroup: 1024,
            thread_execution_width: 32,
            static_threadgroup_memory_bytes: 0,
        };
        Ok((kernel.to_owned(), limits))
    }
    fn buffer(&self, contents: Contents<'_>) -> Result<MadeBuffer> {
        Ok(MadeBuffer {
            number: self.next_buffer.fetch_add(1, Ordering::SeqCst),
            bytes: match contents {
                Contents::Bytes(bytes) => bytes.to_vec(),
                Contents::Zeros(length) => vec![0; usize::try_from(length).unwrap()],
            },
        })
    }
    fn read(&self, buffer: &MadeBuffer) -> Result<Vec<u8>> {
        Ok(buffer.bytes.clone())
    }
    fn submit(&self, batch: &Batch<'_, Self>, observation: Option<&Observation>) -> Result<Submitted> {
        use trace_attr::live::backend::Argument;
        let label = batch.label.to_owned();
        self.log
            .lock()
            .unwrap()
            .push((label, batch.dispatches.len(), observation.is_some()));
        for dispatch in batch.dispatches {
            let numbers = dispatch.arguments.iter().filter_map(|argument| match argument {
                Argument::Buffer(buffer) => Some(buffer.number),
                Argument::Bytes(_) => None,
            });
            self.buffers_of.lock().unwrap().push(numbers.collect());
        }
        let mut plays = self.plays.lock().unwrap();
        let play = if plays.len() > 1 {
            plays.pop()
        } else {
            plays.last().cloned()
        };
        if let Some(observation) = observation {
            observation.committed();
        }
        Ok(Submitted {
            play: play.unwrap(),
            begun: HostTime::now(),
            observation: observation.cloned(),
            samples: self.samples,
        })
    }
    fn wait(&self, submitted: Submitted) -> Result<CommandBufferTimes> {
        let Submitted {
            play,
            begun,
            observation,
            samples,
        } = submitted;
        let times = match play {
            Play::Runs(ns) => ran(begun.0 + 500, begun.0 + 500 + ns),
            Play::Gives(times) => times,
            Play::Fails(message) => {
                if let Some(observation) = observation {
                    in_handler(move || observation.failed(message));
                }
                return Err(Error::new(ErrorKind::Device(message.to_owned())));
            }
        };
        if let Some(observation) = observation {
            in_handler(move || {
                observation.completed(&times, offset());
                if let Some([start, end]) = samples {
                    observation.encoder_samples(start, end);
                }
            });
        }
        Ok(times)
    }
}
