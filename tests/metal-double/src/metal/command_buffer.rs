//! Queues and command buffers.
//!
//! A queue lends at most 64 command buffers; it gets one back when the command buffer is freed, so a program that keeps them
//! starves. When the GPU has nothing to do, or is held, to ask for one more would never return, and is a panic.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::counters::Sampled;
use super::encoder::{Launch, new_encoder};
use super::gpu;
use crate::blocks::{Block, Handler};
use crate::clock;
use crate::foundation::{nserror, nsstring, text};
use crate::pools::autorelease;
use crate::runtime::{Id, Owned, Sel, body, hidden_class, keep, method, new_object};
use crate::session::{Outcome, setup};

hidden_class!(
    QUEUE,
    c"MTLCommandQueue(double)",
    [
        method!(c"setLabel:", c"v@:@", queue_set_label),
        method!(c"commandBuffer", c"@@:", new_command_buffer),
    ]
);
hidden_class!(
    COMMAND_BUFFER,
    c"MTLCommandBuffer(double)",
    [
        method!(c"setLabel:", c"v@:@", set_label),
        method!(c"label", c"@@:", label),
        method!(c"computeCommandEncoder", c"@@:", compute_encoder),
        method!(
            c"computeCommandEncoderWithDescriptor:",
            c"@@:@",
            compute_encoder_of_pass
        ),
        method!(c"addScheduledHandler:", c"v@:@?", add_scheduled),
        method!(c"addCompletedHandler:", c"v@:@?", add_completed),
        method!(c"commit", c"v@:", commit),
        method!(c"waitUntilCompleted", c"v@:", wait_until_completed),
        method!(c"status", c"Q@:", status),
        method!(c"error", c"@@:", error),
        method!(c"kernelStartTime", c"d@:", kernel_start),
        method!(c"kernelEndTime", c"d@:", kernel_end),
        method!(c"GPUStartTime", c"d@:", gpu_start),
        method!(c"GPUEndTime", c"d@:", gpu_end),
    ]
);

#[derive(Default)]
struct Lent {
    buffers: AtomicUsize,
    lock: Mutex<()>,
    returned: Condvar,
}

pub(super) fn new_queue() -> Id {
    new_object(&QUEUE, Arc::new(Lent::default()))
}
unsafe extern "C-unwind" fn queue_set_label(_: Id, _: Sel, label: Id) {
    text(label);
}
unsafe extern "C-unwind" fn new_command_buffer(queue: Id, _: Sel) -> Id {
    let lent = body::<Arc<Lent>>(queue).clone();
    let mut lock = lent.lock.lock().unwrap();
    let most = setup().command_buffers;
    while lent.buffers.load(SeqCst) >= most {
        assert!(
            gpu::is_running(),
            "commandBuffer would never return: {most} command buffers are kept"
        );
        // Looks again now and then, because the GPU may have stopped meanwhile.
        lock = lent.returned.wait_timeout(lock, Duration::from_millis(10)).unwrap().0;
    }
    lent.buffers.fetch_add(1, SeqCst);
    drop(lock);
    let command_buffer = CommandBuffer {
        state: Mutex::default(),
        changed: Condvar::new(),
        loan: Loan(lent),
    };
    autorelease(new_object(&COMMAND_BUFFER, command_buffer))
}

struct Loan(Arc<Lent>);
impl Drop for Loan {
    fn drop(&mut self) {
        let _lock = self.0.lock.lock();
        self.0.buffers.fetch_sub(1, SeqCst);
        self.0.returned.notify_all();
    }
}

/// `MTLCommandBufferStatus`
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    #[default]
    NotEnqueued = 0,
    Committed = 2,
    Scheduled = 3,
    Completed = 4,
    Error = 5,
}

pub(super) struct Pass {
    pub(super) launches: Vec<Launch>,
    sampled: Option<Sampled>,
}

#[derive(Default)]
struct State {
    label: Option<String>,
    passes: Vec<Pass>,
    encoding: bool,
    status: Status,
    /// Kernel start and end, GPU start and end.
    times: [f64; 4],
    scheduled: Vec<Handler>,
    completed: Vec<Handler>,
    error: Option<Owned>,
}

struct CommandBuffer {
    state: Mutex<State>,
    changed: Condvar,
    #[expect(dead_code, reason = "gives the loan back when the command buffer is freed")]
    loan: Loan,
}
fn of<'a>(id: Id) -> &'a CommandBuffer {
    body(id)
}

/// What a command buffer costs beside its launches, on both sides of them.
const OVERHEAD_NS: u64 = 500;
const SCHEDULING_NS: u64 = 2_000;

pub(super) fn execute(command_buffer: &Owned) {
    let this = of(command_buffer.0);
    let outcome = setup().outcomes.pop_front().unwrap_or(Outcome::Completed);
    let kernel_start = clock::now_ns();
    let kernel_end = kernel_start + SCHEDULING_NS;
    clock::sleep_until(kernel_end);
    let (passes, scheduled, completed) = {
        let mut state = this.state.lock().unwrap();
        state.status = Status::Scheduled;
        state.times = [clock::seconds(kernel_start), clock::seconds(kernel_end), 0.0, 0.0];
        (
            std::mem::take(&mut state.passes),
            std::mem::take(&mut state.scheduled),
            std::mem::take(&mut state.completed),
        )
    };
    let argument = command_buffer.0.expose_provenance();
    let call = |handlers: Vec<Handler>| {
        if !handlers.is_empty() {
            gpu::on_another_thread(move || {
                let argument: Id = std::ptr::with_exposed_provenance(argument);
                handlers.iter().for_each(|handler| handler.call(argument));
            });
        }
    };
    call(scheduled);

    let start = clock::now_ns();
    let mut now = start + OVERHEAD_NS;
    if outcome != Outcome::Cancelled {
        for pass in &passes {
            let begin = now;
            now += pass.launches.iter().map(Launch::run).sum::<u64>();
            if let Some(sampled) = &pass.sampled {
                sampled.write(clock::ticks_at(begin), clock::ticks_at(now));
            }
        }
    }
    let end = now + OVERHEAD_NS;
    clock::sleep_until(end);
    drop(passes);
    {
        let mut state = this.state.lock().unwrap();
        let (status, times, failure) = match outcome {
            Outcome::Completed => (Status::Completed, [start, end].map(clock::seconds), None),
            Outcome::Times { start, end } => {
                let times = [start, end].map(|ns| std::time::Duration::from_nanos(ns).as_secs_f64());
                (Status::Completed, times, None)
            }
            Outcome::Fault => {
                let failure = nserror("MTLCommandBufferErrorDomain", 2, "Caused GPU Timeout Error");
                (Status::Error, [start, end].map(clock::seconds), Some(failure))
            }
            Outcome::Cancelled => {
                let failure = nserror(
                    "MTLCommandBufferErrorDomain",
                    7,
                    "Insufficient Permission to submit GPU work",
                );
                (Status::Error, [0.0; 2], Some(failure))
            }
        };
        state.status = status;
        [state.times[2], state.times[3]] = times;
        state.error = failure.map(Owned);
    }
    // Who waits goes on before the handlers have been called: nothing promises the other order.
    this.changed.notify_all();
    call(completed);
}

fn encode(id: Id, sampled: Option<Sampled>) -> Id {
    let mut state = of(id).state.lock().unwrap();
    assert!(!state.encoding, "an encoder of this command buffer is still open");
    assert!(state.status == Status::NotEnqueued, "encoding after commit");
    state.encoding = true;
    state.passes.push(Pass {
        launches: Vec::new(),
        sampled,
    });
    autorelease(new_encoder(keep(id)))
}
pub(super) fn add_launch(id: Id, launch: Launch) {
    of(id)
        .state
        .lock()
        .unwrap()
        .passes
        .last_mut()
        .expect("an encoder has a pass")
        .launches
        .push(launch);
}
pub(super) fn end_encoding(id: Id) {
    of(id).state.lock().unwrap().encoding = false;
}

unsafe extern "C-unwind" fn set_label(id: Id, _: Sel, label: Id) {
    setup().labels.push(format!("command buffer: {}", text(label)));
    of(id).state.lock().unwrap().label = Some(text(label).to_owned());
}
unsafe extern "C-unwind" fn label(id: Id, _: Sel) -> Id {
    match &of(id).state.lock().unwrap().label {
        Some(label) => autorelease(nsstring(label)),
        None => std::ptr::null(),
    }
}
unsafe extern "C-unwind" fn compute_encoder(id: Id, _: Sel) -> Id {
    encode(id, None)
}
unsafe extern "C-unwind" fn compute_encoder_of_pass(id: Id, _: Sel, pass: Id) -> Id {
    encode(id, Sampled::of_pass(pass))
}
unsafe extern "C-unwind" fn add_scheduled(id: Id, _: Sel, block: *mut Block) {
    let mut state = of(id).state.lock().unwrap();
    assert!(state.status == Status::NotEnqueued, "handler added after commit");
    state.scheduled.push(Handler::copy_of(block));
}
unsafe extern "C-unwind" fn add_completed(id: Id, _: Sel, block: *mut Block) {
    let mut state = of(id).state.lock().unwrap();
    assert!(state.status == Status::NotEnqueued, "handler added after commit");
    state.completed.push(Handler::copy_of(block));
}
unsafe extern "C-unwind" fn commit(id: Id, _: Sel) {
    {
        let mut state = of(id).state.lock().unwrap();
        assert!(!state.encoding, "commit with an open encoder");
        assert!(state.status == Status::NotEnqueued, "committed twice");
        state.status = Status::Committed;
    }
    gpu::submit(keep(id));
}
unsafe extern "C-unwind" fn wait_until_completed(id: Id, _: Sel) {
    let this = of(id);
    let mut state = this.state.lock().unwrap();
    assert!(
        state.status >= Status::Committed,
        "waitUntilCompleted before commit would never return"
    );
    while state.status < Status::Completed {
        assert!(!gpu::is_held(), "waiting for a GPU that the test holds");
        state = this.changed.wait(state).unwrap();
    }
}
unsafe extern "C-unwind" fn status(id: Id, _: Sel) -> usize {
    of(id).state.lock().unwrap().status as usize
}
unsafe extern "C-unwind" fn error(id: Id, _: Sel) -> Id {
    match &of(id).state.lock().unwrap().error {
        Some(error) => crate::foundation::give(error),
        None => std::ptr::null(),
    }
}
fn time(id: Id, index: usize) -> f64 {
    of(id).state.lock().unwrap().times[index]
}
unsafe extern "C-unwind" fn kernel_start(id: Id, _: Sel) -> f64 {
    time(id, 0)
}
unsafe extern "C-unwind" fn kernel_end(id: Id, _: Sel) -> f64 {
    time(id, 1)
}
unsafe extern "C-unwind" fn gpu_start(id: Id, _: Sel) -> f64 {
    time(id, 2)
}
unsafe extern "C-unwind" fn gpu_end(id: Id, _: Sel) -> f64 {
    time(id, 3)
}
