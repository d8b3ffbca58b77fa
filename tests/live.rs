//! Profiles as a program makes them: scopes, threads, command buffers of every fate, and what can be said of them after.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod made_device;

use std::sync::Arc;
use std::time::Duration;

use made_device::{MadeDevice, Play, in_handler, offset, ran};
use trace_attr::live::backend::Observation;
use trace_attr::live::{
    self, Absent, Category, Event, GroupBy, HostTime, Kernel, Launch, Metrics, Profile, ProfileOptions, Runtime,
    Status, Via,
};
use trace_attr::metrics;

/// A command buffer of a program that runs `[start, end)` after the beginning of the clock, in ns.
fn run(label: &str, via: Via, launch: Option<&Launch>, start: u64, end: u64) {
    let observation = Observation::open(label, via, launch, None).expect("a profile is active");
    if via == Via::Committed {
        observation.committed();
    }
    in_handler(move || observation.completed(&ran(start, end), offset()));
}

fn observed(label: &str, start: u64, end: u64) {
    run(label, Via::Observed, None, start, end);
}

fn paths(profile: &Profile) -> Vec<String> {
    let path = |event: &Event| {
        let frames = event.path.frames().iter().map(|frame| &**frame);
        frames.chain([&*event.frame()]).collect::<Vec<_>>().join(" > ")
    };
    profile.events().iter().map(path).collect()
}

fn quick() -> ProfileOptions {
    ProfileOptions {
        close_limit: Duration::from_millis(20),
        ..ProfileOptions::default()
    }
}

#[test]
fn a_kernel_of_two_scopes_stays_two() {
    let ((), profile) = live::profile(|_| {
        live::scope("attention", metrics![], || observed("gemm", 1_000, 2_000));
        live::scope("mlp", metrics![], || observed("gemm", 3_000, 7_000));
    });
    assert_eq!(paths(&profile), ["attention", "attention > gemm", "mlp", "mlp > gemm"]);
    let rows = profile.key_averages(GroupBy::CallPath).rows;
    let times: Vec<_> = rows.iter().map(|row| (row.label(), row.gpu_total.unwrap().0)).collect();
    assert_eq!(
        times,
        [
            ("attention".to_owned(), 1_000),
            ("attention/gemm".to_owned(), 1_000),
            ("mlp".to_owned(), 4_000),
            ("mlp/gemm".to_owned(), 4_000)
        ]
    );
    let by_name = profile.key_averages(GroupBy::Name).rows;
    let gemm = by_name.iter().find(|row| row.label() == "gemm").unwrap();
    assert_eq!(
        (gemm.calls, gemm.gpu_total.unwrap().0, gemm.gpu_avg),
        (2, 5_000, Some(2_500.0))
    );
}

#[test]
fn a_scope_ends_when_its_body_panics() {
    let (caught, profile) = live::profile(|_| {
        let caught = std::panic::catch_unwind(|| {
            let _step = live::enter("step", metrics![]);
            live::scope("inner", metrics![], || panic!("no"));
        });
        live::scope("after", metrics![], || ());
        caught.is_err()
    });
    assert!(caught);
    assert_eq!(paths(&profile), ["step", "step > inner", "after"]);
    assert_eq!(profile.counts().open_scopes, 0);
}

#[test]
fn a_profile_that_is_left_by_a_panic_is_active_no_more() {
    let caught = std::panic::catch_unwind(|| live::profile(|_| panic!("no")));
    assert!(caught.is_err());
    assert!(Observation::open("x", Via::Observed, None, None).is_none());
}

#[test]
fn metrics_are_not_worked_out_without_a_profile() {
    let mut asked = 0;
    let mut work = || {
        asked += 1;
        f64::from(asked)
    };
    live::scope("cold", metrics![flops = work()], || ());
    let ((), profile) = live::profile(|_| live::scope("hot", metrics![flops = work(), tokens = 3], || ()));
    assert_eq!(asked, 1);
    let metrics = &profile.events()[0].metrics;
    assert_eq!((metrics.get("flops"), metrics.get("tokens")), (Some(1.0), Some(3.0)));
}

#[test]
fn what_happens_inside_a_nested_profile_is_in_both() {
    let (inner, outer) = live::profile(|_| {
        live::scope("step", metrics![], || {
            let ((), inner) = live::profile(|_| live::scope("ffn", metrics![], || observed("up", 10, 20)));
            live::scope("rest", metrics![], || ());
            inner
        })
    });
    assert_eq!(paths(&inner), ["ffn", "ffn > up"]);
    assert_eq!(paths(&outer), ["step", "step > ffn", "step > ffn > up", "step > rest"]);
    assert_eq!(inner.events()[1].gpu_span(), outer.events()[2].gpu_span());
}

#[test]
fn a_profile_is_of_its_thread_and_of_those_with_its_handle() {
    let ((), profile) = live::profile(|active| {
        live::scope("step", metrics![], || {
            let handle = active.handle();
            std::thread::scope(|threads| {
                threads
                    .spawn(|| live::scope("not mine", metrics![], || ()))
                    .join()
                    .unwrap();
                let worker = || {
                    let _attached = handle.attach();
                    live::scope("worker", metrics![], || observed("copy", 10, 20));
                };
                threads.spawn(worker).join().unwrap();
                // The handle's guard is gone.
                threads
                    .spawn(|| assert!(Observation::open("x", Via::Observed, None, None).is_none()))
                    .join()
                    .unwrap();
            });
        });
    });
    assert_eq!(paths(&profile), ["step", "step > worker", "step > worker > copy"]);
    let events = profile.events();
    assert_ne!(events[0].thread, events[1].thread);
    assert_eq!(events[1].parent.unwrap().get(), 0);
    let rows = profile.key_averages(GroupBy::Name).rows;
    assert_eq!(
        rows[0].gpu_total.unwrap().0,
        10,
        "work of a worker is below the scope that it was given"
    );
}

#[test]
fn guards_may_be_dropped_in_any_order_and_outlive_the_profile() {
    let active = live::open_profile(&ProfileOptions::default()).unwrap();
    let a = live::enter("a", metrics![]);
    let b = live::enter("b", metrics![]);
    drop(a);
    let c = live::enter("c", metrics![]);
    let profile = active.finish();
    drop(b);
    drop(c);
    assert_eq!(paths(&profile), ["a", "a > b", "b > c"]);
    assert_eq!(profile.counts().open_scopes, 2);
    assert!(profile.events().iter().all(|event| event.end <= profile.closed()));
}

#[test]
fn each_way_of_watching_knows_what_it_can_know() {
    let launch = Launch::new("mul_mv", [4096, 1, 1], [256, 1, 1]);
    let ((), profile) = live::profile(|_| {
        let now = || HostTime::now().0 + 1_000;
        let ways = [
            (Via::Observed, None),
            (Via::ObservedLaunch, Some(&launch)),
            (Via::Committed, None),
        ];
        for (via, launch) in ways {
            let observation = Observation::open("ffn", via, launch, None).unwrap();
            if via == Via::Committed {
                observation.committed();
            }
            observation.completed(&ran(now(), now() + 5_000), offset());
        }
    });
    let gpu: Vec<_> = profile
        .events()
        .iter()
        .map(|event| event.gpu.as_ref().unwrap())
        .collect();
    let queue_waits: Vec<_> = gpu.iter().map(|gpu| gpu.queue_wait.map(|_| ())).collect();
    let not_here = Err(Absent::NotCommittedHere);
    assert_eq!(queue_waits, [not_here, not_here, Ok(())]);
    let kernels: Vec<_> = gpu.iter().map(|gpu| gpu.launch.as_ref().map(|l| &*l.kernel)).collect();
    assert_eq!(kernels, [Err(&Absent::NoLaunch), Ok("mul_mv"), Err(&Absent::NoLaunch)]);
    for gpu in gpu {
        assert_eq!(gpu.encoder, Err(Absent::NotOwnDispatch));
        assert_eq!(gpu.scheduling.unwrap().0, 2_000);
        assert!(gpu.span.is_ok());
    }
}

#[test]
fn a_failed_command_buffer_has_no_time() {
    let ((), profile) = live::profile(|_| {
        let observation = Observation::open("bad", Via::Committed, None, None).unwrap();
        observation.committed();
        in_handler(move || observation.failed("out of memory (MTLCommandBufferErrorDomain 8)"));
    });
    let gpu = profile.events()[0].gpu.as_ref().unwrap();
    assert!(matches!(&gpu.status, Status::Failed(message) if message.contains("out of memory")));
    assert_eq!((gpu.span, gpu.queue_wait), (Err(Absent::Failed), Err(Absent::Failed)));
    let counts = profile.counts();
    assert_eq!(
        (counts.failed, counts.without_gpu_time, counts.command_buffers),
        (1, 1, 1)
    );
    assert_eq!(profile.key_averages(GroupBy::Name).rows[0].gpu_total, None);
}

#[test]
fn a_command_buffer_in_flight_is_waited_for() {
    let options = ProfileOptions {
        close_limit: Duration::from_secs(60),
        ..ProfileOptions::default()
    };
    let (handler, profile) = live::profile_with(&options, |_| {
        let observation = Observation::open("slow", Via::Observed, None, None).unwrap();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            observation.completed(&ran(5, 9), offset());
        })
    })
    .unwrap();
    handler.join().unwrap();
    assert_eq!(profile.events()[0].gpu_span().unwrap().length().0, 4);
}

#[test]
fn what_does_not_complete_in_time_is_unfinished_and_its_late_handler_touches_nothing() {
    let (late, profile) = live::profile_with(&quick(), |_| {
        let observation = Observation::open("slow", Via::Committed, None, None).unwrap();
        observation.committed();
        observation
    })
    .unwrap();
    assert_eq!(profile.counts().unfinished, 1);
    let before = profile.clone();
    in_handler(move || {
        late.scheduled();
        late.completed(&ran(5, 9), offset());
        late.encoder_samples(1, 2);
        late.failed("late");
    });
    assert_eq!(profile, before);
    assert_eq!(profile.events()[0].gpu.as_ref().unwrap().status, Status::Unfinished);
}

#[test]
fn a_command_buffer_that_is_never_committed_is_counted() {
    // Metal frees the handlers of a command buffer that is released without a commit.
    let ((), profile) = live::profile(|_| drop(Observation::open("forgotten", Via::Observed, None, None).unwrap()));
    assert_eq!(profile.counts().never_committed, 1);
    // One that is kept, and of which no commit was seen until the profile is closed.
    let (_kept, profile) = live::profile_with(&quick(), |_| {
        Observation::open("kept", Via::Observed, None, None).unwrap()
    })
    .unwrap();
    assert_eq!(profile.events()[0].gpu.as_ref().unwrap().status, Status::NeverCommitted);
    // One that was scheduled has been committed by somebody.
    let (_kept, profile) = live::profile_with(&quick(), |_| {
        let observation = Observation::open("kept", Via::Observed, None, None).unwrap();
        observation.scheduled();
        observation
    })
    .unwrap();
    assert_eq!(profile.events()[0].gpu.as_ref().unwrap().status, Status::Unfinished);
}

#[test]
fn many_command_buffers_are_in_flight_at_once() {
    let ((), profile) = live::profile(|_| {
        let open = |at: u64| (at, Observation::open("token", Via::Observed, None, None).unwrap());
        let in_flight: Vec<_> = (0..64).map(open).collect();
        // They end in another order than they began.
        for (at, observation) in in_flight.into_iter().rev() {
            in_handler(move || observation.completed(&ran(at * 100, at * 100 + 150), offset()));
        }
    });
    let row = &profile.key_averages(GroupBy::Name).rows[0];
    assert_eq!((row.timed, row.gpu_total.unwrap().0), (64, 64 * 150));
    assert_eq!(row.gpu_busy.unwrap().0, 63 * 100 + 150, "busy is the union");
}

#[test]
fn a_hook_is_asked_for_launches_without_metrics_of_their_own() {
    live::register_kernel_hook("hooked", |launch| Metrics::new().with("flops", launch.grid[0] * 2));
    let mut own = Launch::new("hooked", [8, 1, 1], [8, 1, 1]);
    own.metrics = Metrics::new().with("flops", 1.0);
    let without = Launch::new("hooked", [8, 1, 1], [8, 1, 1]);
    let flops = |launch: &Launch| {
        let ((), profile) = live::profile(|_| run("x", Via::ObservedLaunch, Some(launch), 1, 2));
        profile.events()[0].metrics.get("flops")
    };
    assert_eq!((flops(&without), flops(&own)), (Some(16.0), Some(1.0)));
    assert!(live::unregister_kernel_hook("hooked") && !live::unregister_kernel_hook("hooked"));
    assert_eq!(flops(&without), None);
}

#[test]
fn a_one_shot_call_has_every_stage_and_a_prepared_one_only_its_dispatch() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(7_000)]));
    let kernel = Kernel::msl("kernel void vector_add() {}", "vector_add");
    let (output, profile) = live::profile(|_| {
        live::scope("step", metrics![bytes = 12_000.0], || {
            runtime
                .execute(&kernel, &[&[0; 16], &[0; 16]], 32, [4, 1, 1], [4, 1, 1])
                .unwrap()
        })
    });
    assert_eq!(output.len(), 32);
    assert_eq!(
        paths(&profile),
        [
            "step",
            "step > execute_total",
            "step > load_library",
            "step > create_pipeline",
            "step > create_input_buffers",
            "step > create_output_buffers",
            "step > gpu_dispatch:vector_add",
            "step > read_output",
            "step > release_resources",
        ]
    );
    let events = profile.events();
    assert!(
        events[2..].iter().all(|event| event.parent.unwrap().get() == 1),
        "stages stand in the call"
    );
    let launch = events[6].gpu.as_ref().unwrap().launch.as_ref().unwrap();
    assert_eq!((launch.input_bytes, launch.output_bytes), (Some(32), Some(32)));
    assert_eq!(launch.threadgroup_occupancy(), Some(4.0 / 1024.0));

    let prepared = runtime.prepare(&kernel, &[&[0; 16]], 16).unwrap();
    let ((), profile) = live::profile(|_| prepared.dispatch([4, 1, 1], [4, 1, 1]).unwrap());
    assert_eq!(paths(&profile), ["prepared_dispatch", "gpu_dispatch:vector_add"]);
}

#[test]
fn one_shot_and_prepared_launches_are_never_added_up() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(5_000)]));
    let kernel = Kernel::msl("kernel void add() {}", "add");
    let prepared = runtime.prepare(&kernel, &[&[0; 16]], 16).unwrap();
    let ((), profile) = live::profile(|_| {
        runtime.execute(&kernel, &[&[0; 16]], 16, [4, 1, 1], [4, 1, 1]).unwrap();
        for _ in 0..2 {
            prepared.dispatch([4, 1, 1], [4, 1, 1]).unwrap();
        }
    });
    let averages = profile.key_averages(GroupBy::Name);
    let launches = averages.rows.iter().filter(|row| row.label() == "gpu_dispatch:add");
    let calls: Vec<_> = launches.map(|row| (row.mode.unwrap().name(), row.calls)).collect();
    assert_eq!(calls, [("one_shot", 1), ("prepared", 2)]);
    let table = averages.table();
    assert!(
        table.contains("gpu_dispatch:add (one-shot)") && table.contains("gpu_dispatch:add (prepared)"),
        "{table}"
    );
}

#[test]
fn an_encoder_has_its_own_time_where_stage_boundaries_are_sampled() {
    let kernel = Kernel::msl("kernel void add() {}", "add");
    let encoder = |counters, samples| {
        let mut device = MadeDevice::with_counters([Play::Runs(5_000)], counters);
        device.samples = samples;
        let runtime = Runtime::new(device);
        assert_eq!(runtime.supports_stage_counters(), counters);
        let prepared = runtime.prepare(&kernel, &[], 16).unwrap();
        let ((), profile) = live::profile(|_| prepared.dispatch([4, 1, 1], [4, 1, 1]).unwrap());
        profile.events()[1].gpu.as_ref().unwrap().encoder
    };
    // 100 ns a tick, by the device's own pairs.
    assert_eq!(encoder(true, Some([2_000, 2_040])).unwrap().0, 4_000);
    assert_eq!(
        encoder(true, Some([2_000, 2_070])),
        Err(Absent::LongerThanCommandBuffer)
    );
    assert_eq!(encoder(true, None), Err(Absent::NotAvailable));
    assert_eq!(encoder(false, None), Err(Absent::CountersUnsupported));
}

#[test]
fn sizes_that_would_end_the_process_are_refused() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(1)]));
    let kernel = Kernel::msl("kernel void add() {}", "add");
    let prepared = runtime.prepare(&kernel, &[], 16).unwrap();
    for (grid, threads) in [([0, 1, 1], [1, 1, 1]), ([1, 1, 1], [1, 0, 1]), ([9, 9, 9], [32, 32, 2])] {
        assert!(prepared.dispatch(grid, threads).is_err(), "{grid:?} {threads:?}");
    }
    assert!(
        runtime.backend().log.lock().unwrap().is_empty(),
        "nothing was committed"
    );
}

#[test]
fn a_capture_never_fails_silently() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there.gputrace");
    std::fs::create_dir(&there).unwrap();
    let mut told = Vec::new();
    for path in [folder.path().join("x.trace"), there, folder.path().join("x.gputrace")] {
        let options = ProfileOptions {
            capture: Some(path),
            ..ProfileOptions::default()
        };
        let result = live::profile_with(&options, |_| panic!("it must not run"));
        told.push(result.map(|((), _)| ()).unwrap_err().to_string());
    }
    assert!(told[0].contains("must end in .gputrace"), "{told:?}");
    assert!(told[1].contains("exists already"), "{told:?}");
    assert!(told[2].contains("nothing that could capture"), "{told:?}");
}

#[test]
fn more_events_than_a_profile_may_hold_are_counted() {
    let options = ProfileOptions {
        most_events: 3,
        ..ProfileOptions::default()
    };
    let ((), profile) = live::profile_with(&options, |_| {
        for _ in 0..5 {
            live::scope("step", metrics![nan = f64::NAN], || ());
        }
    })
    .unwrap();
    assert_eq!(profile.events().len(), 3);
    assert_eq!(profile.counts().events_over_limit, 2);
    assert_eq!(profile.counts().unusable_metrics, 3, "of events that were kept");
}

#[test]
fn stages_have_their_categories() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(7_000)]));
    let kernel = Kernel::msl("kernel void add() {}", "add");
    let (_, profile) = live::profile(|_| runtime.execute(&kernel, &[&[0; 4]], 4, [1, 1, 1], [1, 1, 1]));
    let categories: Vec<_> = profile.events().iter().map(|event| event.category).collect();
    use Category::{Compile, Gpu, Memory, Runtime as Whole};
    assert_eq!(
        categories,
        [Whole, Compile, Compile, Memory, Memory, Gpu, Memory, Memory]
    );
    let names: Vec<Arc<str>> = profile.events().iter().map(|event| event.name.clone()).collect();
    assert_eq!(&*names[0], "execute_total");
}
