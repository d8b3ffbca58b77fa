//! An engine that drives Metal itself, on the stand-in: its command buffers are watched and nothing else changes.

mod support;

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::SeqCst;

use metal_double::blocks::BLOCKS_ALIVE;
use metal_double::{Outcome, Session, session};
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::*;
use support::add;
use trace_attr::live::{
    self, Absent, Event, Launch, Metrics, PipelineLimits, Profile, ProfileOptions, Status, Via, metal,
};

/// The part of an engine that is needed here: a queue, and command buffers with one launch.
struct Engine {
    queue: Retained<ProtocolObject<dyn MTLCommandQueue>>,
    pipeline: Retained<ProtocolObject<dyn MTLComputePipelineState>>,
    buffer: Retained<ProtocolObject<dyn MTLBuffer>>,
}

impl Engine {
    fn start(session: &Session) -> Engine {
        session.kernel("add", 1_000_000, add);
        autoreleasepool(|_| {
            let device = MTLCreateSystemDefaultDevice().unwrap();
            let library = device
                .newLibraryWithSource_options_error(&NSString::from_str(support::ADD), None)
                .unwrap();
            let function = library.newFunctionWithName(&NSString::from_str("add")).unwrap();
            Engine {
                queue: device.newCommandQueue().unwrap(),
                pipeline: device.newComputePipelineStateWithFunction_error(&function).unwrap(),
                buffer: device
                    .newBufferWithLength_options(64, MTLResourceOptions::StorageModeShared)
                    .unwrap(),
            }
        })
    }

    /// Encodes a launch, has `submit` do what it does, and keeps nothing.
    fn layer<R>(&self, submit: impl FnOnce(&ProtocolObject<dyn MTLCommandBuffer>) -> R) -> R {
        autoreleasepool(|_| {
            let command_buffer = self.queue.commandBuffer().unwrap();
            let encoder = command_buffer.computeCommandEncoder().unwrap();
            encoder.setComputePipelineState(&self.pipeline);
            for at in 0..3 {
                unsafe { encoder.setBuffer_offset_atIndex(Some(&self.buffer), 16 * at, at) };
            }
            let size = |width| MTLSize {
                width,
                height: 1,
                depth: 1,
            };
            encoder.dispatchThreads_threadsPerThreadgroup(size(4), size(4));
            encoder.endEncoding();
            submit(&command_buffer)
        })
    }
}

/// Runs `body` on an engine, and looks at what it leaves behind.
fn with_engine(body: impl FnOnce(&Session, &Engine)) {
    let session = session();
    {
        let engine = Engine::start(&session);
        body(&session, &engine);
        session.wait_for_gpu();
    }
    session.end();
}

fn only(profile: &Profile) -> &Event {
    let mut buffers = profile.events().iter().filter(|event| event.gpu.is_some());
    let event = buffers.next().expect("a command buffer");
    assert!(buffers.next().is_none(), "one command buffer");
    event
}

#[test]
fn commit_is_in_the_place_of_the_engines_commit() {
    with_engine(|session, engine| {
        let ((), profile) = live::profile(|_| {
            live::scope("layer 3", trace_attr::metrics![], || {
                engine.layer(|command_buffer| metal::commit(command_buffer, "attention").unwrap());
            });
        });
        let event = only(&profile);
        let gpu = event.gpu.as_ref().unwrap();
        assert_eq!((&*event.name, event.path.joined().as_str()), ("attention", "layer 3"));
        assert_eq!((gpu.via, &gpu.status), (Via::Committed, &Status::Completed));
        assert!(gpu.span.unwrap().length().0.abs_diff(1_001_000) <= 1);
        assert_eq!(gpu.span.unwrap().start.since(event.end), gpu.queue_wait.unwrap());
        assert_eq!(gpu.encoder, Err(Absent::NotOwnDispatch));
        assert_eq!(gpu.launch, Err(Absent::NoLaunch));
        assert_eq!(session.labels(), [""; 0], "what Metal shows stays the engine's");
    });
}

#[test]
fn observe_leaves_the_commit_to_the_engine_and_knows_no_queue_wait() {
    with_engine(|_, engine| {
        let ((), profile) = live::profile(|_| {
            engine.layer(|command_buffer| {
                metal::observe(command_buffer, "mlp").unwrap();
                command_buffer.commit();
            });
        });
        let event = only(&profile);
        let gpu = event.gpu.as_ref().unwrap();
        assert_eq!(
            (&*event.name, gpu.via, &gpu.status),
            ("mlp", Via::Observed, &Status::Completed)
        );
        assert!(gpu.span.is_ok() && gpu.scheduling.is_ok());
        assert_eq!(gpu.queue_wait, Err(Absent::NotCommittedHere));
    });
}

#[test]
fn observe_launch_knows_the_kernel_and_asks_its_hook() {
    with_engine(|_, engine| {
        let limits = PipelineLimits {
            max_threads_per_threadgroup: 512,
            thread_execution_width: 32,
            static_threadgroup_memory_bytes: 0,
        };
        let launch = Launch {
            pipeline: Some(limits),
            ..Launch::new("add", [4, 1, 1], [128, 1, 1])
        };
        live::register_kernel_hook("add", |launch| Metrics::new().with("flops", launch.grid[0]));
        let ((), profile) = live::profile(|_| {
            for label in ["", "layer 7"] {
                engine.layer(|command_buffer| {
                    if !label.is_empty() {
                        command_buffer.setLabel(Some(&NSString::from_str(label)));
                    }
                    metal::observe_launch(command_buffer, &launch).unwrap();
                    command_buffer.commit();
                });
            }
        });
        assert!(live::unregister_kernel_hook("add"));
        let names: Vec<_> = profile.events().iter().map(|event| &*event.name).collect();
        assert_eq!(names, ["add", "layer 7"], "the label that Metal knows, else the kernel");
        for event in profile.events() {
            let launch = event.gpu.as_ref().unwrap().launch.as_ref().unwrap();
            assert_eq!(launch.threadgroup_occupancy(), Some(0.25));
            assert_eq!(event.metrics.get("flops"), Some(4.0));
        }
    });
}

#[test]
fn a_pointer_of_other_bindings_is_as_good() {
    with_engine(|_, engine| {
        let ((), profile) = live::profile(|_| {
            engine.layer(|command_buffer| {
                let pointer = NonNull::from(command_buffer).as_ptr().cast::<c_void>();
                unsafe { metal::commit_pointer(pointer, "by pointer").unwrap() };
            });
            let error = unsafe { metal::observe_pointer(std::ptr::null_mut(), "nothing") }.unwrap_err();
            assert_eq!(error.to_string(), "the pointer to the command buffer is null");
        });
        assert!(only(&profile).gpu_span().is_some());
    });
}

#[test]
fn without_a_profile_there_is_no_handler_and_the_commit_is_a_commit() {
    with_engine(|session, engine| {
        let no_handlers = || assert_eq!(BLOCKS_ALIVE.load(SeqCst), 0);
        session.hold_gpu();
        engine.layer(|command_buffer| {
            metal::observe(command_buffer, "x").unwrap();
            no_handlers();
        });
        engine.layer(|command_buffer| {
            metal::observe_launch(command_buffer, &Launch::new("add", [1; 3], [1; 3])).unwrap();
            no_handlers();
        });
        engine.layer(|command_buffer| {
            metal::commit(command_buffer, "x").unwrap();
            no_handlers();
            assert_eq!(command_buffer.status(), MTLCommandBufferStatus::Committed);
        });
        session.release_gpu();
    });
}

#[test]
fn a_command_buffer_that_was_committed_is_refused() {
    with_engine(|_, engine| {
        let ((), profile) = live::profile(|_| {
            engine.layer(|command_buffer| {
                command_buffer.commit();
                let error = metal::observe(command_buffer, "late").unwrap_err();
                assert_eq!(
                    error.to_string(),
                    "the command buffer was committed already, and Metal takes no handler then"
                );
                assert!(metal::commit(command_buffer, "twice").is_err());
            });
        });
        assert_eq!(profile.events(), []);
    });
}

#[test]
fn an_engine_with_64_in_flight_does_not_starve() {
    with_engine(|session, engine| {
        session.hold_gpu();
        let active = live::open_profile(&ProfileOptions::default()).unwrap();
        for _ in 0..64 {
            engine.layer(|command_buffer| metal::commit(command_buffer, "layer").unwrap());
        }
        session.release_gpu();
        session.wait_for_gpu();
        // All came back to the queue: with the GPU held, one that is kept would make this wait for ever.
        session.hold_gpu();
        for _ in 0..64 {
            engine.layer(|command_buffer| metal::commit(command_buffer, "layer").unwrap());
        }
        session.release_gpu();
        let profile = active.finish();
        assert_eq!(profile.events().len(), 128);
        assert!(profile.events().iter().all(|event| event.gpu_span().is_some()));
    });
}

#[test]
fn one_that_is_never_committed_is_counted_and_leaks_nothing() {
    with_engine(|_, engine| {
        let ((), profile) =
            live::profile(|_| engine.layer(|command_buffer| metal::observe(command_buffer, "lost").unwrap()));
        assert_eq!(only(&profile).gpu.as_ref().unwrap().status, Status::NeverCommitted);
        assert_eq!(profile.counts().never_committed, 1);
    });
}

#[test]
fn one_that_is_in_flight_at_the_end_is_unfinished_and_its_handler_touches_nothing() {
    with_engine(|session, engine| {
        session.hold_gpu();
        let options = ProfileOptions {
            close_limit: std::time::Duration::ZERO,
            ..ProfileOptions::default()
        };
        let active = live::open_profile(&options).unwrap();
        engine.layer(|command_buffer| metal::commit(command_buffer, "slow").unwrap());
        let profile = active.finish();
        let gpu = only(&profile).gpu.as_ref().unwrap();
        assert_eq!((&gpu.status, gpu.span), (&Status::Unfinished, Err(Absent::Unfinished)));
        assert_eq!(profile.counts().unfinished, 1);
        let before = profile.clone();
        session.release_gpu();
        session.wait_for_gpu();
        assert_eq!(profile, before);
    });
}

#[test]
fn a_command_buffer_that_fails_has_no_time_and_the_others_have_theirs() {
    with_engine(|session, engine| {
        session.outcomes([
            Outcome::Completed,
            Outcome::Fault,
            Outcome::Cancelled,
            Outcome::Completed,
        ]);
        let ((), profile) = live::profile(|_| {
            for _ in 0..4 {
                engine.layer(|command_buffer| metal::commit(command_buffer, "layer").unwrap());
            }
        });
        let spans: Vec<_> = profile
            .events()
            .iter()
            .map(|event| event.gpu_span().is_some())
            .collect();
        assert_eq!(spans, [true, false, false, true]);
        let fault = Status::Failed("Caused GPU Timeout Error (MTLCommandBufferErrorDomain 2)".to_owned());
        assert_eq!(profile.events()[1].gpu.as_ref().unwrap().status, fault);
        assert_eq!(profile.counts().failed, 2);
    });
}

#[test]
fn engine_threads_without_a_pool_leak_nothing() {
    with_engine(|_, engine| {
        let launch = Launch::new("add", [1; 3], [1; 3]);
        let active = live::open_profile(&ProfileOptions::default()).unwrap();
        let handle = active.handle();
        // The engine has its own pools for what it makes; what this library asks Metal for may need one more.
        let command_buffers = autoreleasepool(|_| {
            [
                engine.queue.commandBuffer().unwrap(),
                engine.queue.commandBuffer().unwrap(),
            ]
        });
        let [first, second] = command_buffers;
        first.setLabel(Some(&NSString::from_str("labelled")));
        {
            let _attached = handle.attach();
            metal::observe_launch(&first, &launch).unwrap();
            metal::commit(&second, "second").unwrap();
        }
        first.commit();
        drop((first, second));
        assert_eq!(active.finish().events().len(), 2);
    });
}

#[test]
fn profiles_on_many_threads_each_see_their_own() {
    with_engine(|session, _| {
        let run = |thread: usize| {
            let engine = Engine::start(session);
            let ((), profile) = live::profile(|_| {
                for _ in 0..10 {
                    let label = format!("thread {thread}");
                    engine.layer(|command_buffer| metal::commit(command_buffer, &label).unwrap());
                }
            });
            profile
        };
        let profiles: Vec<Profile> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || run(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (thread, profile) in profiles.iter().enumerate() {
            let names: Vec<_> = profile.events().iter().map(|event| &*event.name).collect();
            assert_eq!(names, vec![format!("thread {thread}"); 10]);
        }
    });
}
