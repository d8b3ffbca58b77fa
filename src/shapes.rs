//! Traces of one side or two as the two shapes that other tools want.
//!
//! The timeline has a group for each trial with a track for each channel, and begins at the trial's first submission:
//! trials are looked at side by side, and have no clock in common. The call tree goes side → process → phase → encoder
//! family → channel; its values are sums over the trials of a side, because parts of a tree must add up, which medians do
//! not. A trial that is a live profile brings its own tracks, from its opening on, and its own scopes below the process.

use std::collections::HashMap;
use std::sync::Arc;

use crate::analysis::{TracedSide, TracedTrial, Traces};
use crate::attribution::group::{UNKNOWN, family_keys, key_of, phase_keys};
use crate::calltree::{CallTree, FrameId};
use crate::convert::Shapes;
use crate::model::{Label, LabelId, NameId, Nanos, Reason, Trace};
use crate::timeline::{About, Slice, Slices, Timeline, Track, TrackGroup, Value};

impl Shapes for Traces {
    fn timeline(&self) -> Timeline<'_> {
        let mut groups = Vec::new();
        for (number, (side, trial)) in (0u64..).zip(self.each()) {
            let name = group_name(side, trial);
            match &trial.live {
                None => groups.push(TrackGroup {
                    name,
                    tracks: channels(side, &trial.trace),
                }),
                Some(profile) => groups.extend(profile.timeline().groups.into_iter().map(|group| TrackGroup {
                    name: format!("{name} · {}", group.name),
                    tracks: group.tracks.into_iter().map(|track| apart(track, number)).collect(),
                })),
            }
        }
        Timeline {
            about: self.about(),
            groups,
        }
    }

    fn call_tree(&self) -> CallTree {
        let live: Vec<Option<CallTree>> = self
            .each()
            .map(|(_, trial)| trial.live.as_ref().map(|profile| profile.call_tree()))
            .collect();
        let mut whole: Vec<Arc<str>> = vec!["gpu_ns".into()];
        if live.iter().any(Option::is_none) {
            whole.push("submissions".into());
        }
        let mut other: Vec<Arc<str>> = Vec::new();
        for tree in live.iter().flatten() {
            for (known, own) in [(&mut whole, tree.whole()), (&mut other, tree.other())] {
                let new: Vec<Arc<str>> = own.iter().filter(|name| !known.contains(name)).cloned().collect();
                known.extend(new);
            }
        }
        let mut tree = CallTree::new("all", whole, other);
        tree.about = self.about();
        for ((side, trial), live) in self.each().zip(live) {
            let process = match trial.trace.process.name.as_str() {
                "" => UNKNOWN,
                name => name,
            };
            let frame = tree.child(CallTree::ROOT, &side.name.as_str().into(), "side");
            let frame = tree.child(frame, &process.into(), "process");
            match live {
                Some(live) => tree.graft(frame, &live),
                None => add_submissions(&mut tree, frame, side, &trial.trace),
            }
        }
        tree
    }
}

impl Traces {
    /// All trials with their sides, side A first.
    pub fn each(&self) -> impl Iterator<Item = (&TracedSide, &TracedTrial)> {
        let sides = std::iter::once(&self.a).chain(&self.b);
        sides.flat_map(|side| side.trials.iter().map(move |trial| (side, trial)))
    }

    /// What no slice or frame says: whose trials these are, where they began, and what was left out of them.
    fn about(&self) -> About {
        let traces = || self.each().map(|(_, trial)| &trial.trace);
        let submissions = traces().map(|trace| trace.submissions.len() as u64).sum();
        let trials = self.each().map(|(side, trial)| Value::Named(facts(side, trial)));
        let mut about: About = vec![
            ("submissions".into(), Value::Whole(submissions)),
            (
                "rows_left_out".into(),
                Value::Whole(traces().map(|trace| trace.left_out.rows()).sum()),
            ),
            ("trials".into(), Value::List(trials.collect())),
        ];
        if !self.missing.is_empty() {
            let inputs = self.missing.iter().map(|(input, _)| Value::Text(input.as_str().into()));
            about.push(("missing_trials".into(), Value::List(inputs.collect())));
        }
        about
    }
}

/// Side and input, with the run where a recording has several.
fn group_name(side: &TracedSide, trial: &TracedTrial) -> String {
    let several = side.trials.iter().filter(|other| other.input == trial.input).count() > 1;
    match several {
        true => format!("{} · {} run {}", side.name, trial.input, trial.trace.run),
        false => format!("{} · {}", side.name, trial.input),
    }
}

fn facts(side: &TracedSide, trial: &TracedTrial) -> About {
    let trace = &trial.trace;
    let text = |text: &str| Value::Text(text.into());
    // Nanoseconds of a clock are texts: a reader may take numbers for floats.
    let time = |ns: u64| Value::Text(ns.to_string().into());
    let mut facts: About = vec![
        ("side".into(), text(&side.name)),
        ("input".into(), text(&trial.input)),
        ("trial".into(), Value::Whole(trial.number as u64)),
        ("run".into(), Value::Whole(trace.run)),
        ("process".into(), text(&trace.process.name)),
    ];
    let mut put = |name: &str, value: Option<Value>| facts.extend(value.map(|value| (name.into(), value)));
    put("pid", trace.process.pid.map(|pid| Value::Whole(pid.into())));
    put("gpu", trace.gpu.as_deref().map(text));
    put("timing", Some(text(trace.timing.name())));
    let begin = if trial.live.is_some() {
        Some(0)
    } else {
        Some(origin(trace))
    };
    put("origin_ns", begin.map(time));
    put("window_from_ns", Some(time(trace.window.from.0)));
    put("window_to_ns", Some(time(trace.window.to.0)));
    put("submissions", Some(Value::Whole(trace.submissions.len() as u64)));
    put("rows_read", Some(Value::Whole(trace.rows_read)));
    let left_out = Reason::ALL
        .into_iter()
        .map(|reason| (reason, trace.left_out.get(reason)));
    let left_out = left_out.filter(|(_, count)| count.rows > 0).map(|(reason, count)| {
        let mut counts: About = vec![("rows".into(), Value::Whole(count.rows))];
        counts.extend(count.total.map(|Nanos(ns)| ("total_ns".into(), Value::Whole(ns))));
        (reason.code().into(), Value::Named(counts))
    });
    put("left_out", Some(Value::Named(left_out.collect())));
    facts
}

/// Where the time of a trial begins in its file: its first submission.
fn origin(trace: &Trace) -> u64 {
    trace.submissions.first().map_or(0, |first| first.start.0)
}

/// Texts of a label of a trace, each once.
struct LabelTexts {
    phase: Arc<str>,
    /// Label of the command buffer and of the encoder; empty ones are none.
    own: [Option<Arc<str>>; 2],
}

fn label_texts(side: &TracedSide, trace: &Trace) -> Vec<LabelTexts> {
    let phases = phase_keys(trace, &side.phase_names);
    let own = |name: NameId| {
        Some(trace.names.get(name))
            .filter(|text| !text.is_empty())
            .map(Arc::from)
    };
    let texts = |(label, phase): (&Label, crate::attribution::Key)| LabelTexts {
        phase: phase.text.into(),
        own: match label {
            Label::Known {
                command_buffer,
                encoder,
                ..
            } => [own(*command_buffer), own(*encoder)],
            Label::NoEncoder | Label::Ambiguous => [None, None],
        },
    };
    trace.labels.iter().zip(phases).map(texts).collect()
}

/// A track for each channel, in the order in which they were first used.
fn channels<'t>(side: &TracedSide, trace: &'t Trace) -> Vec<Track<'t>> {
    let texts = Arc::new(label_texts(side, trace));
    let mut channels: Vec<(NameId, Vec<usize>)> = Vec::new();
    for (place, submission) in trace.submissions.iter().enumerate() {
        match channels.iter_mut().find(|(channel, _)| *channel == submission.channel) {
            Some((_, places)) => places.push(place),
            None => channels.push((submission.channel, vec![place])),
        }
    }
    let track = |(channel, places): (NameId, Vec<usize>)| Track {
        name: trace.names.get(channel).to_owned(),
        nests: false,
        slices: Box::new(Channel {
            trace,
            texts: Arc::clone(&texts),
            places,
        }),
    };
    channels.into_iter().map(track).collect()
}

/// The submissions of one channel, made into slices when they are asked for.
struct Channel<'t> {
    trace: &'t Trace,
    texts: Arc<Vec<LabelTexts>>,
    places: Vec<usize>,
}

impl Slices for Channel<'_> {
    fn spans(&self) -> Box<dyn Iterator<Item = (u64, u64)> + '_> {
        let begin = origin(self.trace);
        let submissions = self
            .places
            .iter()
            .filter_map(|place| self.trace.submissions.get(*place));
        Box::new(submissions.map(move |submission| (submission.start.0.saturating_sub(begin), submission.duration.0)))
    }

    fn slice(&self, place: usize) -> Option<Slice> {
        let submission = self.trace.submissions.get(*self.places.get(place)?)?;
        let texts = usize::try_from(submission.label.0)
            .ok()
            .and_then(|at| self.texts.get(at));
        let mut arguments = Vec::new();
        let mut put = |name, value: Option<Value>| arguments.extend(value.map(|value| (name, value)));
        if let Some(texts) = texts {
            for (name, text) in ["command_buffer", "encoder"].into_iter().zip(&texts.own) {
                put(name, text.clone().map(Value::Text));
            }
        }
        put("submission_id", submission.id.map(|id| Value::Whole(id.get())));
        put("encoder_id", submission.encoder.map(|id| Value::Whole(id.get())));
        let command_buffer = submission.command_buffer.map(|id| Value::Whole(id.get()));
        put("command_buffer_id", command_buffer);
        put("latency_ns", submission.latency.map(|Nanos(ns)| Value::Whole(ns)));
        Some(Slice {
            name: texts.map_or_else(|| UNKNOWN.into(), |texts| Arc::clone(&texts.phase)),
            category: "submission",
            start_ns: submission.start.0.saturating_sub(origin(self.trace)),
            length_ns: submission.duration.0,
            arguments,
            flow: None,
        })
    }
}

/// The track with flows that no other trial has.
fn apart(track: Track<'_>, trial: u64) -> Track<'_> {
    struct Apart<'t>(Box<dyn Slices + 't>, u64);
    impl Slices for Apart<'_> {
        fn spans(&self) -> Box<dyn Iterator<Item = (u64, u64)> + '_> {
            self.0.spans()
        }

        fn slice(&self, place: usize) -> Option<Slice> {
            let slice = self.0.slice(place)?;
            Some(Slice {
                flow: slice.flow.map(|flow| flow | self.1 << 32),
                ..slice
            })
        }
    }
    Track {
        slices: Box::new(Apart(track.slices, trial)),
        ..track
    }
}

/// Counts every submission under its phase, encoder family and channel.
fn add_submissions(tree: &mut CallTree, process: FrameId, side: &TracedSide, trace: &Trace) {
    // Few things differ between a million submissions.
    let mut places: HashMap<(LabelId, NameId), usize> = HashMap::new();
    let mut cells: Vec<((LabelId, NameId), [u64; 2])> = Vec::new();
    for submission in &trace.submissions {
        let key = (submission.label, submission.channel);
        let place = *places.entry(key).or_insert_with(|| {
            cells.push((key, [0; 2]));
            cells.len() - 1
        });
        if let Some((_, [ns, count])) = cells.get_mut(place) {
            *ns = ns.saturating_add(submission.duration.0);
            *count += 1;
        }
    }
    let (phases, families) = (phase_keys(trace, &side.phase_names), family_keys(trace));
    for ((label, channel), values) in cells {
        let mut frame = process;
        for (name, kind) in [
            (key_of(&phases, label), "phase"),
            (key_of(&families, label), "encoder"),
            (trace.names.get(channel), "channel"),
        ] {
            frame = tree.child(frame, &name.into(), kind);
        }
        tree.add(frame, &values, &[]);
    }
}
