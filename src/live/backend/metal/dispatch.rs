//! Command buffers of our own: one compute encoder with its launches, committed, waited for.
//!
//! Everything that Metal would end the program for (a threadgroup that is too large, an argument without bytes) is refused
//! before anything is encoded, so no encoder is left open.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{MTLCommandBuffer, MTLCommandEncoder, MTLCommandQueue, MTLComputeCommandEncoder, MTLSize};

use super::{Buffer, Library, Metal, Pipeline, failed, nil, observe};
use crate::error::{Error, Result};
use crate::live::PipelineLimits;
use crate::live::backend::{Argument, Backend, Batch, Constant, Contents, Device, Dispatch, KernelSource, Observation};
use crate::live::event::CommandBufferTimes;

/// A command buffer that was committed. To drop it without waiting is fine: it runs all the same.
pub struct Submitted(Retained<ProtocolObject<dyn MTLCommandBuffer>>);

/// Metal's limits on the arguments of a kernel.
const MOST_ARGUMENTS: usize = 31;
const MOST_BYTES: usize = 4096;

impl Backend for Metal {
    type Library = Library;
    type Pipeline = Pipeline;
    type Buffer = Buffer;
    type Submitted = Submitted;

    fn device(&self) -> &Arc<dyn Device> {
        Metal::device(self)
    }

    fn recommended_working_set(&self) -> Option<u64> {
        self.working_set()
    }

    fn library(&self, source: KernelSource<'_>) -> Result<Library> {
        self.make_library(source)
    }

    fn pipeline(&self, library: &Library, kernel: &str, constants: &[Constant]) -> Result<(Pipeline, PipelineLimits)> {
        let pipeline = self.make_pipeline(library, kernel, constants)?;
        let limits = pipeline.limits;
        Ok((pipeline, limits))
    }

    fn buffer(&self, contents: Contents<'_>) -> Result<Buffer> {
        self.make_buffer(contents)
    }

    fn read(&self, buffer: &Buffer) -> Result<Vec<u8>> {
        Ok(self.read_buffer(buffer))
    }

    fn submit(&self, batch: &Batch<'_, Self>, observation: Option<&Observation>) -> Result<Submitted> {
        let sizes = batch.dispatches.iter().map(checked).collect::<Result<Vec<_>>>()?;
        autoreleasepool(|_| {
            let command_buffer = self.queue.commandBuffer().ok_or_else(|| nil("command buffer"))?;
            // These are what a Metal System Trace shows; debug groups are not.
            let label = NSString::from_str(batch.label);
            command_buffer.setLabel(Some(&label));
            let sampled = match (observation, &self.ring) {
                (Some(observation), Some(ring)) => match ring.borrow_mut().pass(observation) {
                    Ok(sampled) => Some(sampled),
                    Err(absent) => {
                        observation.encoder_absent(absent);
                        None
                    }
                },
                _ => None,
            };
            let (encoder, progress) = match sampled {
                Some((pass, progress)) => (
                    command_buffer.computeCommandEncoderWithDescriptor(&pass),
                    Some(progress),
                ),
                None => (command_buffer.computeCommandEncoder(), None),
            };
            let encoder = encoder.ok_or_else(|| nil("compute encoder"))?;
            encoder.setLabel(Some(&label));
            for (dispatch, size) in batch.dispatches.iter().zip(sizes) {
                encode(&encoder, dispatch, size);
            }
            encoder.endEncoding();
            if let Some(observation) = observation {
                observe::add_handlers(&command_buffer, observation, progress);
                observation.committed();
            }
            command_buffer.commit();
            Ok(Submitted(command_buffer))
        })
    }

    fn wait(&self, submitted: Submitted) -> Result<CommandBufferTimes> {
        autoreleasepool(|_| {
            submitted.0.waitUntilCompleted();
            observe::times(&submitted.0).map_err(|words| failed(format!("the command buffer failed: {words}")))
        })
    }
}

/// Grid and threads of a launch that Metal takes.
fn checked(dispatch: &Dispatch<'_, Metal>) -> Result<[MTLSize; 2]> {
    let most = dispatch.pipeline.limits.max_threads_per_threadgroup;
    let threads = dispatch.threads.iter().try_fold(1u64, |all, &n| all.checked_mul(n));
    let [x, y, z] = dispatch.threads;
    match threads {
        Some(0) => return Err(Error::usage(format!("a threadgroup of {x} × {y} × {z} has no thread"))),
        Some(threads) if threads <= most => {}
        _ => {
            return Err(Error::usage(format!(
                "a threadgroup of {x} × {y} × {z} has more threads than the {most} that its pipeline allows"
            )));
        }
    }
    let [x, y, z] = dispatch.grid;
    if dispatch.grid.contains(&0) {
        return Err(Error::usage(format!("a grid of {x} × {y} × {z} has no thread")));
    }
    let count = dispatch.arguments.len();
    if count > MOST_ARGUMENTS {
        return Err(Error::usage(format!(
            "{count} arguments are more than the {MOST_ARGUMENTS} that Metal takes"
        )));
    }
    for (at, argument) in dispatch.arguments.iter().enumerate() {
        if let Argument::Bytes(bytes) = argument
            && !(1..=MOST_BYTES).contains(&bytes.len())
        {
            let length = bytes.len();
            return Err(Error::usage(format!(
                "argument {at} has {length} bytes; by value Metal takes 1 to {MOST_BYTES}"
            )));
        }
    }
    Ok([size(dispatch.grid)?, size(dispatch.threads)?])
}

fn size(sizes: [u64; 3]) -> Result<MTLSize> {
    let [width, height, depth] = sizes.map(usize::try_from);
    match (width, height, depth) {
        (Ok(width), Ok(height), Ok(depth)) => Ok(MTLSize { width, height, depth }),
        _ => Err(Error::usage("a size is too large for this machine")),
    }
}

fn encode(encoder: &ProtocolObject<dyn MTLComputeCommandEncoder>, dispatch: &Dispatch<'_, Metal>, sizes: [MTLSize; 2]) {
    encoder.setComputePipelineState(&dispatch.pipeline.state);
    for (at, argument) in dispatch.arguments.iter().enumerate() {
        #[expect(
            unsafe_code,
            reason = "index and length are within Metal's limits; the command buffer retains the buffer and copies the bytes; \
                      what the kernel makes of them stays on the GPU"
        )]
        // SAFETY: as the reason says: `checked` looked at both limits.
        unsafe {
            match argument {
                Argument::Buffer(buffer) => encoder.setBuffer_offset_atIndex(Some(&buffer.0), 0, at),
                Argument::Bytes(bytes) => {
                    encoder.setBytes_length_atIndex(NonNull::from(*bytes).cast::<c_void>(), bytes.len(), at);
                }
            }
        }
    }
    let [grid, threads] = sizes;
    encoder.dispatchThreads_threadsPerThreadgroup(grid, threads);
}
