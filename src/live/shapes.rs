//! A profile as the two shapes that other tools want: a timeline with host and GPU tracks, and a call tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::averages::Family;
use super::event::{Event, GpuWork, Launch};
use super::profile::Profile;
use crate::calltree::CallTree;
use crate::model::Nanos;
use crate::timeline::{About, Slice, Timeline, Track, TrackGroup, Value};

/// Whole metrics of every frame; those of the program are others.
const METRICS: [&str; 4] = ["gpu_ns", "cpu_ns", "calls", "command_buffers"];

/// Columns that Hatchet has itself.
const RESERVED: [&str; 3] = ["name", "node", "type"];

/// The timeline: a track for each thread, and one for the GPU, joined where a launch ran.
pub(super) fn timeline(profile: &Profile) -> Timeline<'_> {
    let origin = profile.started();
    let threads: BTreeSet<u32> = profile.events().iter().map(|event| event.thread).collect();
    let numbered = || profile.events().iter().zip(0u64..);
    let flow = |event: &Event, at: u64| event.gpu_span().map(|_| at);
    let host = |thread: &u32| {
        let slices: Vec<Slice> = numbered()
            .filter(|(event, _)| event.thread == *thread)
            .map(|(event, at)| Slice {
                name: event.frame(),
                category: event.category.name(),
                start_ns: event.start.since(origin).0,
                length_ns: event.cpu().0,
                arguments: arguments(event),
                flow: flow(event, at),
            })
            .collect();
        Track {
            name: format!("thread {thread}"),
            nests: true,
            slices: Box::new(slices),
        }
    };
    let mut gpu: Vec<Slice> = numbered()
        .filter_map(|(event, at)| {
            let span = event.gpu_span()?;
            Some(Slice {
                name: event.frame(),
                category: event.category.name(),
                start_ns: span.start.since(origin).0,
                length_ns: span.length().0,
                arguments: arguments(event),
                flow: flow(event, at),
            })
        })
        .collect();
    gpu.sort_by_key(|slice| slice.start_ns);
    let mut groups = vec![TrackGroup {
        name: "host".to_owned(),
        tracks: threads.iter().map(host).collect(),
    }];
    if !gpu.is_empty() {
        groups.push(TrackGroup {
            name: profile.device().unwrap_or("GPU").to_owned(),
            tracks: vec![Track {
                name: "command buffers".to_owned(),
                nests: false,
                slices: Box::new(gpu),
            }],
        });
    }
    let mut about = about(profile);
    about.insert(0, ("origin_ns".into(), Value::Text(origin.0.to_string().into())));
    Timeline { about, groups }
}

/// What the profile could not hold or measure.
fn about(profile: &Profile) -> About {
    let counts = profile.counts();
    let counts = [
        ("command_buffers", counts.command_buffers),
        ("without_gpu_time", counts.without_gpu_time),
        ("failed", counts.failed),
        ("unfinished", counts.unfinished),
        ("never_committed", counts.never_committed),
        ("events_over_limit", counts.events_over_limit),
    ];
    counts.map(|(name, count)| (name.into(), Value::Whole(count))).into()
}

/// What is known of an event besides its times, with the reason where something is not.
fn arguments(event: &Event) -> Vec<(&'static str, Value)> {
    let mut arguments = vec![(
        "call_path",
        Value::List(
            event
                .path
                .frames()
                .iter()
                .map(|frame| Value::Text(Arc::clone(frame)))
                .collect(),
        ),
    )];
    let mut put = |name, value: Option<Value>| arguments.extend(value.map(|value| (name, value)));
    put("input_bytes", event.input_bytes.map(Value::Whole));
    put("output_bytes", event.output_bytes.map(Value::Whole));
    if let Some(gpu) = &event.gpu {
        put("status", Some(Value::Text(gpu.status.name().into())));
        put("via", Some(Value::Text(gpu.via.name().into())));
        for (name, value) in times(gpu) {
            put(name, Some(value));
        }
        if let Ok(launch) = &gpu.launch {
            for (name, value) in of_launch(launch) {
                put(name, Some(value));
            }
        }
    }
    let metrics = event
        .metrics
        .iter()
        .map(|(name, value)| (name.into(), Value::Number(value)));
    let metrics = Value::Named(metrics.collect());
    put("metrics", (!event.metrics.is_empty()).then_some(metrics));
    arguments
}

fn times(gpu: &GpuWork) -> [(&'static str, Value); 4] {
    let ns = |time: super::Measured<Nanos>| match time {
        Ok(Nanos(ns)) => Value::Whole(ns),
        Err(absent) => Value::Absent(absent.code()),
    };
    [
        ("gpu_ns", ns(gpu.span.map(|span| span.length()))),
        ("scheduling_ns", ns(gpu.scheduling)),
        ("queue_wait_ns", ns(gpu.queue_wait)),
        ("encoder_gpu_ns", ns(gpu.encoder)),
    ]
}

fn of_launch(launch: &Launch) -> Vec<(&'static str, Value)> {
    let sizes = |sizes: [u64; 3]| Value::List(sizes.map(Value::Whole).to_vec());
    let mut values = vec![
        ("kernel", Value::Text(Arc::clone(&launch.kernel))),
        ("grid", sizes(launch.grid)),
        ("threads", sizes(launch.threads)),
    ];
    if let Some(limits) = launch.pipeline {
        values.extend([
            (
                "max_threads_per_threadgroup",
                Value::Whole(limits.max_threads_per_threadgroup),
            ),
            ("thread_execution_width", Value::Whole(limits.thread_execution_width)),
            (
                "static_threadgroup_memory_bytes",
                Value::Whole(limits.static_threadgroup_memory_bytes),
            ),
        ]);
    }
    let occupancy = launch.threadgroup_occupancy();
    values.extend(occupancy.map(|part| ("threadgroup_occupancy", Value::Number(part))));
    values
}

/// The call tree: scopes with stages and launches in them, self values everywhere.
pub(super) fn call_tree(profile: &Profile) -> CallTree {
    let family = Family::new(profile);
    let work = family.own_work();
    let names: BTreeSet<&str> = work
        .iter()
        .flat_map(|metrics| metrics.iter().map(|(name, _)| name))
        .collect();
    let of_program = names.iter().map(|&name| {
        // A program may call its work anything, also what we call ours.
        if METRICS.contains(&name) || RESERVED.contains(&name) {
            format!("work {name}").into()
        } else {
            name.into()
        }
    });
    let whole = METRICS.map(Arc::from).into();
    let mut tree = CallTree::new("profile", whole, of_program.collect());
    tree.about = about(profile);
    for (at, event) in profile.events().iter().enumerate() {
        let mut frame = CallTree::ROOT;
        for name in event.path.frames() {
            frame = tree.child(frame, name, "scope");
        }
        frame = tree.child(frame, &event.frame(), event.category.name());
        let gpu = event.gpu_span().map_or(0, |span| span.length().0);
        let of_program: Vec<f64> = names
            .iter()
            .map(|name| work.get(at).and_then(|metrics| metrics.get(name)).unwrap_or(0.0))
            .collect();
        let whole = [gpu, family.own_cpu(at).0, 1, u64::from(event.gpu.is_some())];
        tree.add(frame, &whole, &of_program);
    }
    tree
}
