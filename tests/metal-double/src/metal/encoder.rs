//! Compute encoders: pipeline and arguments as they stand at a dispatch become a launch.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use super::{Argument, Arguments, Kernel, Memory, Size, command_buffer};
use crate::foundation::text;
use crate::runtime::{Id, Owned, Sel, body, hidden_class, keep, method, new_object};
use crate::session::setup;

hidden_class!(
    ENCODER,
    c"MTLComputeCommandEncoder(double)",
    [
        method!(c"setLabel:", c"v@:@", set_label),
        method!(c"setComputePipelineState:", c"v@:@", set_pipeline),
        method!(c"setBuffer:offset:atIndex:", c"v@:@QQ", set_buffer),
        method!(c"setBytes:length:atIndex:", c"v@:^vQQ", set_bytes),
        method!(
            c"dispatchThreads:threadsPerThreadgroup:",
            c"v@:{?=QQQ}{?=QQQ}",
            dispatch_threads
        ),
        method!(c"endEncoding", c"v@:", end_encoding),
    ]
);

struct Encoder {
    command_buffer: Owned,
    pipeline: Mutex<Option<Owned>>,
    bound: Mutex<BTreeMap<usize, Argument>>,
    ended: AtomicBool,
}
impl Drop for Encoder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.ended.load(SeqCst), "an encoder was dropped before endEncoding");
        }
    }
}
pub(super) fn new_encoder(command_buffer: Owned) -> Id {
    let encoder = Encoder {
        command_buffer,
        pipeline: Mutex::default(),
        bound: Mutex::default(),
        ended: AtomicBool::new(false),
    };
    new_object(&ENCODER, encoder)
}
fn of<'a>(id: Id) -> &'a Encoder {
    let encoder = body::<Encoder>(id);
    assert!(!encoder.ended.load(SeqCst), "encoder used after endEncoding");
    encoder
}

/// A kernel with what it was given.
pub(super) struct Launch {
    kernel: Kernel,
    bound: BTreeMap<usize, Argument>,
    grid: [usize; 3],
    threads: [usize; 3],
}
impl Launch {
    /// Runs it and says how long that took on the GPU, in nanoseconds.
    pub(super) fn run(&self) -> u64 {
        let Launch {
            kernel,
            bound,
            grid,
            threads,
        } = self;
        (kernel.run)(&Arguments {
            grid: *grid,
            threads: *threads,
            constants: &kernel.constants,
            bound,
        });
        kernel.nanoseconds
    }
}

unsafe extern "C-unwind" fn set_label(id: Id, _: Sel, label: Id) {
    of(id);
    setup().labels.push(format!("encoder: {}", text(label)));
}
unsafe extern "C-unwind" fn set_pipeline(id: Id, _: Sel, pipeline: Id) {
    *of(id).pipeline.lock().unwrap() = Some(keep(pipeline));
}
unsafe extern "C-unwind" fn set_buffer(id: Id, _: Sel, buffer: Id, offset: usize, index: usize) {
    assert!(index < 31, "Metal has 31 buffer arguments");
    assert!(offset < body::<Memory>(buffer).length, "offset past the buffer");
    of(id)
        .bound
        .lock()
        .unwrap()
        .insert(index, Argument::Buffer(keep(buffer), offset));
}
unsafe extern "C-unwind" fn set_bytes(id: Id, _: Sel, bytes: *const c_void, length: usize, index: usize) {
    assert!(index < 31, "Metal has 31 buffer arguments");
    assert!((1..=4096).contains(&length), "setBytes takes at most 4,096 bytes");
    let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), length).to_vec();
    of(id).bound.lock().unwrap().insert(index, Argument::Bytes(bytes));
}
unsafe extern "C-unwind" fn dispatch_threads(id: Id, _: Sel, grid: Size, threads: Size) {
    let encoder = of(id);
    let pipeline = encoder.pipeline.lock().unwrap();
    let kernel = body::<Kernel>(pipeline.as_ref().expect("dispatch without a pipeline").0).clone();
    let (grid, threads) = (grid.0, threads.0);
    let group: usize = threads.iter().product();
    assert!(
        (1..=kernel.max_threads).contains(&group),
        "a threadgroup of {group}, the pipeline allows {}",
        kernel.max_threads
    );
    assert!(grid.iter().all(|size| *size > 0), "an empty grid");
    let bound = encoder.bound.lock().unwrap();
    let bound = bound.iter().map(|(index, argument)| {
        let kept = match argument {
            Argument::Buffer(buffer, offset) => Argument::Buffer(keep(buffer.0), *offset),
            Argument::Bytes(bytes) => Argument::Bytes(bytes.clone()),
        };
        (*index, kept)
    });
    let launch = Launch {
        kernel,
        bound: bound.collect(),
        grid,
        threads,
    };
    command_buffer::add_launch(encoder.command_buffer.0, launch);
}
unsafe extern "C-unwind" fn end_encoding(id: Id, _: Sel) {
    let encoder = of(id);
    encoder.ended.store(true, SeqCst);
    command_buffer::end_encoding(encoder.command_buffer.0);
}
