//! Kernels of a bench on the stand-in: what they compute, what a profile holds of them, what is refused.

mod support;

use std::time::Duration;

use metal_double::{Outcome, Samples, session};
use support::{ADD, add, floats, of_bytes};
use trace_attr::live::backend::{Argument, Backend, Batch, Constant, ConstantValue, Contents, Dispatch, KernelSource};
use trace_attr::live::metal::Metal;
use trace_attr::live::{self, Absent, Event, GpuWork, Kernel, KernelCode, ProfileOptions, Runtime, Status};

/// What a launch of `add` takes.
const ADD_NS: u64 = 2_000_000;
/// Times of command buffers are seconds in floating point; the counter ticks every 41.67 ns.
const TICK_NS: u64 = 42;

/// Thousands of command buffers take their time on a machine that has other things to do.
fn patient() -> ProfileOptions {
    ProfileOptions {
        close_limit: Duration::from_secs(300),
        ..ProfileOptions::default()
    }
}

fn metallib(path: &std::path::Path, name: &str) -> Kernel {
    Kernel {
        code: KernelCode::Metallib(path.to_owned()),
        name: name.to_owned(),
        constants: vec![],
    }
}

fn gpu(event: &Event) -> &GpuWork {
    event.gpu.as_ref().expect("a command buffer")
}

fn names(profile: &live::Profile) -> Vec<&str> {
    profile.events().iter().map(|event| &*event.name).collect()
}

#[test]
fn execute_gives_the_output_and_the_stages_of_the_page() {
    let session = session();
    session.kernel("add", ADD_NS, add);
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let (a, b) = (of_bytes(&[1.0, 2.0, 3.0]), of_bytes(&[10.0, 20.0, 30.0]));
        let (output, profile) = live::profile(|_| {
            live::scope("step", trace_attr::metrics![bytes = 36], || {
                runtime
                    .execute(&Kernel::msl(ADD, "add"), &[&a, &b], 12, [3, 1, 1], [3, 1, 1])
                    .unwrap()
            })
        });
        assert_eq!(floats(&output), [11.0, 22.0, 33.0]);
        let stages = [
            "step",
            "execute_total",
            "load_library",
            "create_pipeline",
            "create_input_buffers",
            "create_output_buffers",
            "gpu_dispatch",
            "read_output",
            "release_resources",
        ];
        assert_eq!(names(&profile), stages);
        let dispatch = &profile.events()[6];
        assert_eq!(&*dispatch.frame(), "gpu_dispatch:add");
        assert_eq!(dispatch.path.joined(), "step");
        assert_eq!((dispatch.input_bytes, dispatch.output_bytes), (Some(24), Some(12)));
        assert_eq!(gpu(dispatch).status, Status::Completed);
        // The launch, and half a microsecond of the stand-in on both sides.
        let length = gpu(dispatch).span.unwrap().length().0;
        assert!(length.abs_diff(ADD_NS + 1_000) <= 1, "{length}");
        assert!(gpu(dispatch).scheduling.unwrap().0.abs_diff(2_000) <= 1);
        let queue_wait = gpu(dispatch).queue_wait.unwrap();
        assert_eq!(
            gpu(dispatch).span.unwrap().start.since(dispatch.end),
            queue_wait,
            "counted from the commit"
        );
        let launch = gpu(dispatch).launch.as_ref().unwrap();
        assert_eq!(launch.threadgroup_occupancy(), Some(3.0 / 512.0));
        let limits = launch.pipeline.unwrap();
        assert_eq!(
            (limits.thread_execution_width, limits.static_threadgroup_memory_bytes),
            (32, 4096)
        );
        assert_eq!(
            session.labels(),
            ["command buffer: add", "encoder: add"],
            "what a Metal System Trace shows"
        );
    }
    session.end();
}

#[test]
fn a_prepared_kernel_has_two_rows_a_launch_and_several_may_be_in_flight() {
    let session = session();
    session.kernel("add", ADD_NS, add);
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
        let prepared = runtime.prepare(&Kernel::msl(ADD, "add"), &[&a, &b], 4).unwrap();
        session.hold_gpu();
        let active = live::open_profile(&live::ProfileOptions::default()).unwrap();
        let first = prepared.submit([1, 1, 1], [1, 1, 1]).unwrap();
        let second = prepared.submit([1, 1, 1], [1, 1, 1]).unwrap();
        // Both came back while the GPU stood still.
        session.release_gpu();
        first.wait().unwrap();
        second.wait().unwrap();
        let profile = active.finish();
        assert_eq!(
            names(&profile),
            ["prepared_dispatch", "gpu_dispatch", "prepared_dispatch", "gpu_dispatch"]
        );
        let [first, second] = [1, 3].map(|at| gpu(&profile.events()[at]).span.unwrap());
        assert!(first.end <= second.start, "one after the other");
        assert_eq!(floats(&prepared.output().unwrap()), [3.0]);
        prepared.release();
    }
    session.end();
}

#[test]
fn the_encoder_has_its_own_time_when_the_clocks_were_compared_for_long_enough() {
    for ticks_per_second in [24_000_000, 1_000_000_000] {
        let session = session();
        session.kernel("add", ADD_NS, add).ticks_per_second(ticks_per_second);
        {
            let (event, _) = one_dispatch(|work| support::calibrated(work));
            let encoder = gpu(&event).encoder.unwrap().0;
            // A tenth of a percent for the reading of both clocks.
            assert!(
                encoder.abs_diff(ADD_NS) <= TICK_NS + ADD_NS / 1_000,
                "{encoder} at {ticks_per_second} ticks/s"
            );
        }
        session.end();
    }
}

#[test]
fn clocks_that_were_not_compared_for_long_enough_give_no_encoder_time() {
    let session = session();
    session.kernel("add", 1_000, add);
    {
        let (event, _) = one_dispatch(|work| work());
        assert_eq!(gpu(&event).encoder, Err(Absent::CalibrationTooShort));
        assert!(gpu(&event).span.is_ok());
    }
    session.end();
}

#[test]
fn counter_values_that_mean_nothing_are_absent_with_their_reason() {
    let cases = [
        (Samples::Zero, Absent::SampleEmpty),
        (Samples::Partial, Absent::SamplePartial),
        (Samples::Error, Absent::SampleErrorValue),
        (Samples::EndBeforeStart, Absent::SampleNotOrdered),
        (Samples::Equal, Absent::BelowResolution),
        (Samples::Longer, Absent::LongerThanCommandBuffer),
    ];
    let session = session();
    session
        .kernel("add", ADD_NS, add)
        .samples(cases.map(|(written, _)| written));
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
        let prepared = runtime.prepare(&Kernel::msl(ADD, "add"), &[&a, &b], 4).unwrap();
        let ((), profile) = live::profile(|_| {
            support::calibrated(|| {
                for _ in cases {
                    drop(prepared.submit([1, 1, 1], [1, 1, 1]).unwrap());
                }
            })
        });
        let found: Vec<_> = profile
            .events()
            .iter()
            .filter_map(|event| event.gpu.as_ref())
            .map(|gpu| gpu.encoder)
            .collect();
        assert_eq!(found, cases.map(|(_, absent)| Err(absent)));
        drop(prepared);
    }
    session.end();
}

#[test]
fn a_device_without_counters_gives_no_encoder_time_and_everything_else() {
    let session = session();
    session.kernel("add", ADD_NS, add).without_stage_counters();
    {
        let metal = Metal::open().unwrap();
        assert!(!metal.device().supports_stage_counters());
        assert!(metal.facts().contains(&("counter sets".to_owned(), "none".to_owned())));
        drop(metal);
        let (event, _) = one_dispatch(|work| support::calibrated(work));
        assert_eq!(gpu(&event).encoder, Err(Absent::CountersUnsupported));
        assert!(gpu(&event).span.is_ok());
    }
    session.end();
}

#[test]
fn a_device_that_promises_counters_and_refuses_them_says_why() {
    let session = session();
    session.kernel("add", ADD_NS, add).without_sample_buffers();
    {
        let metal = Metal::open().unwrap();
        assert!(!metal.device().supports_stage_counters());
        let why = "counter sample buffer: Cannot allocate sample buffer (MTLCounterErrorDomain 1)";
        let fact = |name: &str, value: &str| metal.facts().contains(&(name.to_owned(), value.to_owned()));
        assert!(fact("counter sets", "timestamp") && fact("stage counters refused", why));
    }
    session.end();
}

#[test]
fn one_sample_buffer_serves_every_dispatch() {
    let session = session();
    session.kernel("add", 100, add);
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
        let prepared = runtime.prepare(&Kernel::msl(ADD, "add"), &[&a, &b], 4).unwrap();
        let ((), profile) = live::profile_with(&patient(), |_| {
            support::calibrated(|| {
                // Its 4,096 samples are those of 2,048 dispatches: this goes once around the ring.
                for _ in 0..2_100 {
                    drop(prepared.submit([1, 1, 1], [1, 1, 1]).unwrap());
                }
            })
        })
        .unwrap();
        let encoders: Vec<_> = profile
            .events()
            .iter()
            .filter_map(|event| event.gpu.as_ref())
            .map(|gpu| gpu.encoder)
            .collect();
        assert_eq!(encoders.len(), 2_100);
        assert!(
            encoders.iter().all(Result::is_ok),
            "{:?}",
            encoders.iter().find(|encoder| encoder.is_err())
        );
        assert_eq!(session.sample_buffers_made(), 1);
        drop(prepared);
    }
    session.end();
}

#[test]
fn a_ring_that_is_full_of_dispatches_in_flight_is_told() {
    let session = session();
    session.kernel("add", 100, add).command_buffers(3_000);
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
        let prepared = runtime.prepare(&Kernel::msl(ADD, "add"), &[&a, &b], 4).unwrap();
        let ((), profile) = live::profile_with(&patient(), |_| {
            support::calibrated(|| {
                session.hold_gpu();
                for _ in 0..2_050 {
                    drop(prepared.submit([1, 1, 1], [1, 1, 1]).unwrap());
                }
                session.release_gpu();
            })
        })
        .unwrap();
        let gpus: Vec<_> = profile.events().iter().filter_map(|event| event.gpu.as_ref()).collect();
        let full: Vec<_> = gpus.iter().map(|gpu| gpu.encoder == Err(Absent::RingFull)).collect();
        assert_eq!(full, [vec![false; 2_048], vec![true; 2]].concat());
        assert!(
            gpus.iter().all(|gpu| gpu.span.is_ok()),
            "the command buffers have their times all the same"
        );
        drop(prepared);
    }
    session.end();
}

/// Threads that finish a profile elsewhere than where the device was opened do not resolve its samples: they are another
/// thread's.
#[test]
fn samples_are_resolved_on_the_thread_that_owns_them() {
    let session = session();
    session.kernel("add", ADD_NS, add);
    {
        let active = live::open_profile(&live::ProfileOptions::default()).unwrap();
        let handle = active.handle();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _attached = handle.attach();
                let runtime = Runtime::new(Metal::open().unwrap());
                let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
                support::calibrated(|| {
                    runtime
                        .execute(&Kernel::msl(ADD, "add"), &[&a, &b], 4, [1, 1, 1], [1, 1, 1])
                        .unwrap();
                });
                session.wait_for_gpu();
            });
        });
        let profile = active.finish();
        let dispatch = profile
            .events()
            .iter()
            .find(|event| &*event.name == "gpu_dispatch")
            .unwrap();
        let encoder = gpu(dispatch).encoder.unwrap().0;
        assert!(
            encoder.abs_diff(ADD_NS) <= TICK_NS + ADD_NS / 1_000,
            "resolved when the owner closed its device: {encoder}"
        );
    }
    session.end();
}

#[test]
fn a_fault_on_the_gpu_is_an_error_in_metals_words_and_has_no_time() {
    let session = session();
    session
        .kernel("add", ADD_NS, add)
        .outcomes([Outcome::Fault, Outcome::Cancelled]);
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
        let words = [
            "Caused GPU Timeout Error (MTLCommandBufferErrorDomain 2)",
            "Insufficient Permission to submit GPU work (MTLCommandBufferErrorDomain 7)",
        ];
        for words in words {
            let (result, profile) = live::profile(|_| {
                support::calibrated(|| runtime.execute(&Kernel::msl(ADD, "add"), &[&a, &b], 4, [1, 1, 1], [1, 1, 1]))
            });
            assert_eq!(
                result.unwrap_err().to_string(),
                format!("the command buffer failed: {words}")
            );
            let event = profile.events().iter().find(|event| event.gpu.is_some()).unwrap();
            assert_eq!(gpu(event).status, Status::Failed(words.to_owned()));
            assert_eq!(gpu(event).span, Err(Absent::Failed));
            assert_eq!(gpu(event).encoder, Err(Absent::Failed));
            assert_eq!(profile.counts().failed, 1);
        }
        let result = runtime.execute(&Kernel::msl(ADD, "add"), &[&a, &b], 4, [1, 1, 1], [1, 1, 1]);
        assert_eq!(floats(&result.unwrap()), [3.0], "the next one runs");
    }
    session.end();
}

#[test]
fn times_that_a_driver_gives_wrongly_are_absent() {
    let session = session();
    session.kernel("add", ADD_NS, add).outcomes([
        Outcome::Times {
            start: 0,
            end: 86_400_500_000_000,
        },
        Outcome::Times { start: 0, end: 0 },
        Outcome::Times {
            start: 86_400_500_000_000,
            end: 86_400_400_000_000,
        },
        Outcome::Times {
            start: 86_400_500_000_000,
            end: 86_400_500_000_000,
        },
    ]);
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
        let prepared = runtime.prepare(&Kernel::msl(ADD, "add"), &[&a, &b], 4).unwrap();
        let ((), profile) = live::profile(|_| {
            for _ in 0..4 {
                prepared.dispatch([1, 1, 1], [1, 1, 1]).unwrap();
            }
        });
        let spans: Vec<_> = profile
            .events()
            .iter()
            .filter_map(|event| event.gpu.as_ref())
            .map(|gpu| gpu.span)
            .collect();
        let wanted = [
            Absent::NotAvailable,
            Absent::NotAvailable,
            Absent::EndBeforeStart,
            Absent::BelowResolution,
        ]
        .map(Err);
        assert_eq!(spans, wanted);
        assert_eq!(profile.counts().without_gpu_time, 4);
        drop(prepared);
    }
    session.end();
}

#[test]
fn function_constants_reach_the_kernel_and_a_missing_one_is_named() {
    const SCALE: &str = "constant float factor [[function_constant(0)]];
        constant uint step [[function_constant(1)]];
        kernel void scale(device float* x [[buffer(0)]], device float* y [[buffer(1)]]) { }";
    let session = session();
    session.kernel("scale", ADD_NS, |arguments| {
        let factor = f32::from_ne_bytes(arguments.constants["factor"].as_slice().try_into().unwrap());
        let step = u32::from_ne_bytes(arguments.constants["step"].as_slice().try_into().unwrap());
        arguments.floats(1)[0].set(arguments.floats(0)[0].get() * factor + step as f32);
    });
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let constant = |name: &str, value| Constant {
            name: name.to_owned(),
            value,
        };
        let mut kernel = Kernel::msl(SCALE, "scale");
        kernel.constants = vec![
            constant("factor", ConstantValue::Float(2.5)),
            constant("step", ConstantValue::Uint(7)),
        ];
        let run = |kernel: &Kernel| runtime.execute(kernel, &[&of_bytes(&[4.0])], 4, [1, 1, 1], [1, 1, 1]);
        assert_eq!(floats(&run(&kernel).unwrap()), [17.0]);
        kernel.constants.pop();
        let missing = run(&kernel).unwrap_err().to_string();
        assert_eq!(
            missing,
            "kernel `scale` with these constants: Function scale requires a value for the constant 'step' \
             (MTLLibraryErrorDomain 3)"
        );
        kernel.constants.clear();
        assert!(
            run(&kernel)
                .unwrap_err()
                .to_string()
                .starts_with("kernel `scale` gives no pipeline: ")
        );
    }
    session.end();
}

#[test]
fn a_metallib_is_loaded_from_its_file() {
    let session = session();
    session.kernel("add", ADD_NS, add);
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (
        folder.path().join("kernels é.metallib"),
        folder.path().join("bad.metallib"),
    );
    std::fs::write(&good, "MTLB add other").unwrap();
    std::fs::write(&bad, "not a library").unwrap();
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
        let run = |kernel: Kernel| runtime.execute(&kernel, &[&a, &b], 4, [1, 1, 1], [1, 1, 1]);
        assert_eq!(floats(&run(metallib(&good, "add")).unwrap()), [3.0]);
        let error = run(metallib(&bad, "add")).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "could not load `{}`: Invalid library file (MTLLibraryErrorDomain 1)",
                bad.display()
            )
        );
        let nowhere = folder.path().join("nowhere.metallib");
        let error = run(metallib(&nowhere, "add")).unwrap_err().to_string();
        assert!(error.contains("library not found"), "{error}");
    }
    session.end();
}

#[test]
fn what_metal_refuses_is_told_in_its_words() {
    let session = session();
    session.kernel("add", ADD_NS, add);
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let run = |code: &str, name: &str, inputs: &[&[u8]], output, grid, threads| {
            let kernel = Kernel {
                code: KernelCode::Msl(code.to_owned()),
                name: name.to_owned(),
                constants: vec![],
            };
            runtime
                .execute(&kernel, inputs, output, grid, threads)
                .unwrap_err()
                .to_string()
        };
        let one = of_bytes(&[1.0]);
        let inputs: [&[u8]; 2] = [&one, &one];
        let cases = [
            (
                run("kernel void add( {", "add", &inputs, 4, [1; 3], [1; 3]),
                "the kernels do not compile: program_source:1:16: error: expected '}' (MTLLibraryErrorDomain 3)",
            ),
            (
                run(ADD, "nope", &inputs, 4, [1; 3], [1; 3]),
                "there is no kernel `nope`; the library has: add",
            ),
            (
                run("", "nope", &inputs, 4, [1; 3], [1; 3]),
                "there is no kernel `nope`; the library has: none",
            ),
            (
                run(ADD, "add", &[&[]], 4, [1; 3], [1; 3]),
                "a buffer must have at least one byte",
            ),
            (
                run(ADD, "add", &inputs, 1 << 40, [1; 3], [1; 3]),
                "Metal gave no buffer of 1099511627776 bytes; the device takes at most 1073741824 in one",
            ),
        ];
        for (found, wanted) in cases {
            assert_eq!(found, wanted);
        }
        let many: Vec<&[u8]> = vec![&one; 31];
        let found = run(ADD, "add", &many, 4, [1; 3], [1; 3]);
        assert_eq!(found, "32 arguments are more than the 31 that Metal takes");
    }
    session.end();
}

/// Metal would end the program for these.
#[test]
fn sizes_that_metal_does_not_take_are_refused_before_anything_is_encoded() {
    let session = session();
    session.kernel("add", ADD_NS, add);
    {
        let metal = Metal::open().unwrap();
        let library = metal.library(KernelSource::Msl(ADD)).unwrap();
        let (pipeline, _) = metal.pipeline(&library, "add", &[]).unwrap();
        let refused = |arguments: &[Argument<_>], grid, threads| {
            let dispatch = Dispatch {
                pipeline: &pipeline,
                arguments,
                grid,
                threads,
            };
            let batch = Batch {
                label: "refused",
                dispatches: &[dispatch],
            };
            metal.submit(&batch, None).err().unwrap().to_string()
        };
        let bytes = [0; 4097];
        let many: Vec<_> = (0..32).map(|_| Argument::Bytes(&bytes[..4])).collect();
        let cases = [
            (
                refused(&[], [1; 3], [32, 32, 1]),
                "a threadgroup of 32 × 32 × 1 has more threads than the 512 that its pipeline allows",
            ),
            (
                refused(&[], [1; 3], [u64::MAX, 2, 1]),
                "a threadgroup of 18446744073709551615 × 2 × 1 has more threads than the 512 that its pipeline allows",
            ),
            (
                refused(&[], [1; 3], [0, 1, 1]),
                "a threadgroup of 0 × 1 × 1 has no thread",
            ),
            (refused(&[], [0, 1, 1], [1; 3]), "a grid of 0 × 1 × 1 has no thread"),
            (
                refused(&many, [1; 3], [1; 3]),
                "32 arguments are more than the 31 that Metal takes",
            ),
            (
                refused(&[Argument::Bytes(&bytes)], [1; 3], [1; 3]),
                "argument 0 has 4097 bytes; by value Metal takes 1 to 4096",
            ),
            (
                refused(&[Argument::Bytes(&[])], [1; 3], [1; 3]),
                "argument 0 has 0 bytes; by value Metal takes 1 to 4096",
            ),
        ];
        for (found, wanted) in cases {
            assert_eq!(found, wanted);
        }
    }
    session.end();
}

#[test]
fn arguments_by_value_reach_the_kernel() {
    let session = session();
    session.kernel("add", ADD_NS, add);
    {
        let metal = Metal::open().unwrap();
        let library = metal.library(KernelSource::Msl(ADD)).unwrap();
        let (pipeline, _) = metal.pipeline(&library, "add", &[]).unwrap();
        let output = metal.buffer(Contents::Zeros(4)).unwrap();
        let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
        let arguments = [Argument::Bytes(&a), Argument::Bytes(&b), Argument::Buffer(&output)];
        let dispatch = Dispatch {
            pipeline: &pipeline,
            arguments: &arguments,
            grid: [1; 3],
            threads: [1; 3],
        };
        let batch = Batch {
            label: "by value",
            dispatches: &[dispatch],
        };
        metal.wait(metal.submit(&batch, None).unwrap()).unwrap();
        assert_eq!(floats(&metal.read(&output).unwrap()), [3.0]);
    }
    session.end();
}

#[test]
fn no_device_is_said_with_what_to_look_at() {
    let session = session();
    session.without_device();
    let error = Metal::open().err().unwrap();
    assert_eq!(error.to_string(), "this machine has no Metal device");
    assert!(error.help().unwrap().contains("SPDisplaysDataType"));
    session.end();
}

#[test]
fn without_a_profile_no_handler_is_added_and_the_times_are_there() {
    let session = session();
    session.kernel("add", ADD_NS, add);
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
        let prepared = runtime.prepare(&Kernel::msl(ADD, "add"), &[&a, &b], 4).unwrap();
        session.hold_gpu();
        let in_flight = prepared.submit([1; 3], [1; 3]).unwrap();
        assert_eq!(
            metal_double::blocks::BLOCKS_ALIVE.load(std::sync::atomic::Ordering::SeqCst),
            0
        );
        session.release_gpu();
        let times = in_flight.wait().unwrap();
        let length = ((times.gpu_end - times.gpu_start) * 1e9).round() as u64;
        assert!(length.abs_diff(ADD_NS + 1_000) <= 100, "{length} ns");
        assert_eq!(session.sample_buffers_made(), 1, "and no sample of it is used");
        drop(prepared);
    }
    session.end();
}

/// One dispatch in a profile that `around` keeps open.
fn one_dispatch(around: impl FnOnce(&mut dyn FnMut())) -> (Event, live::Profile) {
    let runtime = Runtime::new(Metal::open().unwrap());
    let (a, b) = (of_bytes(&[1.0]), of_bytes(&[2.0]));
    let prepared = runtime.prepare(&Kernel::msl(ADD, "add"), &[&a, &b], 4).unwrap();
    let ((), profile) = live::profile(|_| around(&mut || prepared.dispatch([1, 1, 1], [1, 1, 1]).unwrap()));
    drop(prepared);
    let event = profile
        .events()
        .iter()
        .find(|event| event.gpu.is_some())
        .unwrap()
        .clone();
    (event, profile)
}
