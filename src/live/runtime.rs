//! Running kernels on a device: one-shot, with every stage in the profile, and prepared, with nothing but the dispatch.
//!
//! Stages of a one-shot call: `load_library`, `create_pipeline`, `create_input_buffers`, `create_output_buffers`,
//! `gpu_dispatch`, `read_output`, `release_resources`, all inside `execute_total`. Of a prepared one: `gpu_dispatch`
//! inside `prepared_dispatch`. Both kinds wait for the GPU with or without a profile, so a profile changes no schedule;
//! [`PreparedKernel::submit`] does not wait in either case.

use std::path::PathBuf;
use std::sync::Arc;

use super::backend::{Argument, Backend, Batch, Constant, Contents, Dispatch, KernelSource, Observation};
use super::event::{Category, CommandBufferTimes, Launch, PipelineLimits, Via};
use super::metrics::Metrics;
use super::session::Stage;
use crate::error::{Error, Result};

/// The event of a launch.
pub(super) const GPU_DISPATCH: &str = "gpu_dispatch";
/// The stage around a one-shot call.
pub(super) const EXECUTE_TOTAL: &str = "execute_total";
/// The stage around a prepared dispatch.
pub(super) const PREPARED_DISPATCH: &str = "prepared_dispatch";

/// Where the code of a kernel is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelCode {
    /// Text in the Metal shading language.
    Msl(String),
    /// A compiled library on disk.
    Metallib(PathBuf),
}

/// A kernel: its code, its name there, and the values of its function constants.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Its code.
    pub code: KernelCode,
    /// Name of the function.
    pub name: String,
    /// Function constants.
    pub constants: Vec<Constant>,
}

impl Kernel {
    /// A kernel of this text, without constants.
    pub fn msl(text: impl Into<String>, name: impl Into<String>) -> Kernel {
        Kernel {
            code: KernelCode::Msl(text.into()),
            name: name.into(),
            constants: Vec::new(),
        }
    }

    fn source(&self) -> KernelSource<'_> {
        match &self.code {
            KernelCode::Msl(text) => KernelSource::Msl(text),
            KernelCode::Metallib(path) => KernelSource::Metallib(path),
        }
    }
}

/// A device that is open.
#[derive(Debug)]
pub struct Runtime<B> {
    backend: B,
}

impl<B: Backend> Runtime<B> {
    /// A runtime on this device.
    pub fn new(backend: B) -> Runtime<B> {
        Runtime { backend }
    }

    /// The device.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Whether the device samples counters at stage boundaries.
    pub fn supports_stage_counters(&self) -> bool {
        self.backend.device().supports_stage_counters()
    }

    /// Compiles, runs and reads in one call. The output buffer of `output_bytes` stands behind the inputs; `grid` counts
    /// threads.
    ///
    /// # Errors
    /// The code does not compile, a size is 0, there is no memory, or the GPU reports an error.
    pub fn execute(
        &self,
        kernel: &Kernel,
        inputs: &[&[u8]],
        output_bytes: u64,
        grid: [u64; 3],
        threads: [u64; 3],
    ) -> Result<Vec<u8>> {
        let _total = Stage::enter(EXECUTE_TOTAL, Category::Runtime, None, None);
        let prepared = self.prepare(kernel, inputs, output_bytes)?;
        prepared.run(grid, threads)?;
        let bytes = prepared.output();
        prepared.release();
        bytes
    }

    /// Compiles, and makes the buffers: the inputs, and behind them the output of `output_bytes` (none for 0).
    ///
    /// # Errors
    /// The code does not compile, or there is no memory.
    pub fn prepare(&self, kernel: &Kernel, inputs: &[&[u8]], output_bytes: u64) -> Result<PreparedKernel<'_, B>> {
        let pipeline = self.pipeline(kernel)?;
        let input_bytes = inputs.iter().map(|input| input.len() as u64).sum();
        let mut buffers = {
            let _stage = Stage::enter("create_input_buffers", Category::Memory, Some(input_bytes), None);
            let make = |input: &&[u8]| self.backend.buffer(Contents::Bytes(input)).map(Arc::new);
            inputs.iter().map(make).collect::<Result<Vec<_>>>()?
        };
        if output_bytes > 0 {
            let _stage = Stage::enter("create_output_buffers", Category::Memory, None, Some(output_bytes));
            buffers.push(Arc::new(self.backend.buffer(Contents::Zeros(output_bytes))?));
        }
        Ok(self.bind(kernel, pipeline, buffers, (input_bytes, output_bytes)))
    }

    /// Compiles a kernel: two stages.
    pub(super) fn pipeline(&self, kernel: &Kernel) -> Result<(Arc<B::Pipeline>, PipelineLimits)> {
        let library = {
            let _stage = Stage::enter("load_library", Category::Compile, None, None);
            self.backend.library(kernel.source())?
        };
        let _stage = Stage::enter("create_pipeline", Category::Compile, None, None);
        let (pipeline, limits) = self.backend.pipeline(&library, &kernel.name, &kernel.constants)?;
        Ok((Arc::new(pipeline), limits))
    }

    /// A kernel with its arguments; `bytes` are those of its inputs and of its output.
    pub(super) fn bind(
        &self,
        kernel: &Kernel,
        (pipeline, limits): (Arc<B::Pipeline>, PipelineLimits),
        buffers: Vec<Arc<B::Buffer>>,
        bytes: (u64, u64),
    ) -> PreparedKernel<'_, B> {
        PreparedKernel {
            backend: &self.backend,
            name: kernel.name.clone(),
            pipeline,
            limits,
            buffers,
            input_bytes: bytes.0,
            output_bytes: bytes.1,
            metrics: Metrics::new(),
        }
    }
}

/// A kernel with its pipeline and buffers, ready to be launched any number of times.
pub struct PreparedKernel<'r, B: Backend> {
    backend: &'r B,
    name: String,
    pipeline: Arc<B::Pipeline>,
    limits: PipelineLimits,
    buffers: Vec<Arc<B::Buffer>>,
    input_bytes: u64,
    output_bytes: u64,
    metrics: Metrics,
}

impl<'r, B: Backend> PreparedKernel<'r, B> {
    /// The same, with the work of each of its launches: its hook is not asked then.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Name of the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Limits of its pipeline.
    pub fn limits(&self) -> PipelineLimits {
        self.limits
    }

    pub(super) fn backend(&self) -> &'r B {
        self.backend
    }

    pub(super) fn pipeline(&self) -> &B::Pipeline {
        &self.pipeline
    }

    pub(super) fn buffers(&self) -> &[Arc<B::Buffer>] {
        &self.buffers
    }

    /// Bytes of all its buffers.
    pub(super) fn bytes(&self) -> u64 {
        self.input_bytes + self.output_bytes
    }

    /// Launches it and waits for the GPU.
    ///
    /// # Errors
    /// A size is 0 or larger than the pipeline allows, or the GPU reports an error.
    pub fn dispatch(&self, grid: [u64; 3], threads: [u64; 3]) -> Result<()> {
        let _stage = Stage::enter(PREPARED_DISPATCH, Category::Runtime, None, None);
        self.run(grid, threads).map(|_| ())
    }

    /// Launches it and does not wait: several may be in flight.
    ///
    /// # Errors
    /// A size is 0 or larger than the pipeline allows, or Metal gives no command buffer.
    pub fn submit(&self, grid: [u64; 3], threads: [u64; 3]) -> Result<InFlight<'r, B>> {
        let _stage = Stage::enter(PREPARED_DISPATCH, Category::Runtime, None, None);
        self.launch(grid, threads)
    }

    fn run(&self, grid: [u64; 3], threads: [u64; 3]) -> Result<CommandBufferTimes> {
        self.launch(grid, threads)?.wait()
    }

    fn launch(&self, grid: [u64; 3], threads: [u64; 3]) -> Result<InFlight<'r, B>> {
        self.check(grid, threads)?;
        let launch = Launch {
            pipeline: Some(self.limits),
            input_bytes: Some(self.input_bytes),
            output_bytes: Some(self.output_bytes),
            metrics: self.metrics.clone(),
            ..Launch::new(&self.name, grid, threads)
        };
        let device = self.backend.device();
        let observation = Observation::open(GPU_DISPATCH, Via::OwnDispatch, Some(&launch), Some(device));
        let arguments: Vec<_> = self.buffers.iter().map(|buffer| Argument::Buffer(&**buffer)).collect();
        let dispatch = Dispatch {
            pipeline: &*self.pipeline,
            arguments: &arguments,
            grid,
            threads,
        };
        let batch = Batch {
            label: &self.name,
            dispatches: &[dispatch],
        };
        Ok(InFlight {
            backend: self.backend,
            submitted: self.backend.submit(&batch, observation.as_ref())?,
        })
    }

    /// Metal ends the process on a threadgroup that is too large, so it is asked here.
    pub(super) fn check(&self, grid: [u64; 3], threads: [u64; 3]) -> Result<()> {
        if grid.contains(&0) || threads.contains(&0) {
            return Err(Error::usage(format!(
                "`{}`: grid {grid:?} and threads {threads:?} must be at least 1 in each direction",
                self.name
            )));
        }
        let most = self.limits.max_threads_per_threadgroup;
        match threads.iter().try_fold(1u64, |all, &n| all.checked_mul(n)) {
            Some(all) if all <= most => Ok(()),
            _ => Err(Error::usage(format!(
                "`{}`: a threadgroup of {threads:?} is larger than the {most} threads that its pipeline allows",
                self.name
            ))),
        }
    }

    /// The bytes of the output buffer; empty when it has none.
    ///
    /// # Errors
    /// The device does not give them.
    pub fn output(&self) -> Result<Vec<u8>> {
        let _stage = Stage::enter("read_output", Category::Memory, None, Some(self.output_bytes));
        match self.buffers.last() {
            Some(buffer) if self.output_bytes > 0 => self.backend.read(buffer),
            _ => Ok(Vec::new()),
        }
    }

    /// Gives buffers and pipeline back, as a stage of its own.
    pub fn release(self) {
        let _stage = Stage::enter("release_resources", Category::Memory, None, None);
        drop(self);
    }
}

/// A launch that was not waited for.
pub struct InFlight<'r, B: Backend> {
    backend: &'r B,
    submitted: B::Submitted,
}

impl<B: Backend> InFlight<'_, B> {
    /// Waits until it has run.
    ///
    /// # Errors
    /// The GPU reports an error, in Metal's words.
    pub fn wait(self) -> Result<CommandBufferTimes> {
        self.backend.wait(self.submitted)
    }
}
