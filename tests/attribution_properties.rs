//! Properties of the numbers: parts add up, unions and percentiles match naive references, comparisons mirror.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    missing_docs
)]

use std::cmp::Reverse;
use std::collections::BTreeSet;

use proptest::prelude::*;
use trace_attr::attribution::{
    Buckets, Durations, Group, GroupBy, Histogram, Key, Latency, PhaseNames, Stats, attribute, encoder_family, gaps,
    phase,
};
use trace_attr::compare::{
    Change, CompareOptions, Comparison, Row, Settings, Side, Trial, TrialOptions, compare, headline,
};
use trace_attr::measure::{median, nearest_rank, union_length};
use trace_attr::model::{
    CommandBufferId, Encoder, EncoderId, Label, LabelId, LeftOut, Names, Nanos, Process, RecordingState, Submission,
    SubmissionId, Timestamp, Timing, Trace, Window, WindowFound, WindowRule,
};

const LABELS: [(&str, &str); 8] = [
    ("[0] layers.3.attn", "Compute Command 0"),
    ("layers.4.attn", "x"),
    ("Command Buffer 0", "Compute Command 7"),
    ("", "mlp.up & mlp.gate"),
    ("", ""),
    ("decode", "Blit Command 1"),
    ("12", "Render Command 1"),
    ("Command Buffer", "Coelasced 4 Encoders"),
];

/// Start, duration, label, channel, encoder.
type Raw = (u64, u64, usize, usize, Option<u64>);

fn raw() -> impl Strategy<Value = Raw> {
    let duration = prop_oneof![Just(0), 1..3_000_u64, 1_000..200_000_u64];
    (
        0..300_000_u64,
        duration,
        0..LABELS.len() + 2,
        0..3_usize,
        prop::option::of(1..20_u64),
    )
}

fn build(mut rows: Vec<Raw>, cut: u64, fingerprint: u64) -> Trace {
    rows.sort();
    let mut names = Names::default();
    let mut labels: Vec<Label> = LABELS
        .iter()
        .map(|(buffer, encoder)| Label::Known {
            command_buffer: names.intern(buffer),
            encoder: names.intern(encoder),
            coalesced: false,
        })
        .collect();
    labels.extend([Label::NoEncoder, Label::Ambiguous]);
    let channels = ["Compute", "Blit", "Vertex"].map(|name| names.intern(name));
    let submissions: Vec<Submission> = rows
        .iter()
        .enumerate()
        .map(|(at, (start, duration, label, channel, encoder))| Submission {
            start: Timestamp(*start),
            duration: Nanos(*duration),
            id: SubmissionId::new(at as u64),
            encoder: encoder.and_then(EncoderId::new),
            command_buffer: encoder.and_then(|id| CommandBufferId::new(id / 2)),
            latency: (duration % 2 == 0).then_some(Nanos(duration / 2)),
            channel: channels[*channel],
            label: LabelId(u32::try_from(*label).unwrap()),
        })
        .collect();
    let first = submissions.first().map_or(0, |s| s.start.0);
    let last = submissions.iter().map(|s| s.end().0).max().unwrap_or(0);
    let encoders = (1..20).map(|id| Encoder {
        id: EncoderId::new(id).unwrap(),
        label: LabelId(u32::try_from(id % LABELS.len() as u64).unwrap()),
        cpu_encode: Some(Nanos(id * 10)),
        has_gpu_rows: rows.iter().any(|row| row.4 == Some(id)),
    });
    Trace {
        run: 1,
        process: Process {
            name: "bench".into(),
            pid: None,
        },
        timing: Timing::Intervals,
        gpu: None,
        names,
        labels,
        encoders: Some(encoders.collect()),
        // Some windows end before the last submission does.
        window_found: WindowFound::Given,
        window: Window {
            from: Timestamp(first),
            to: Timestamp(last.saturating_sub(cut).max(first)),
        },
        submissions_in_process: submissions.len() as u64,
        rows_read: submissions.len() as u64,
        submissions,
        left_out: LeftOut::default(),
        cross_check: None,
        kernels: None,
        shader_timeline_rows: None,
        shader_samples: Vec::new(),
        shader_sampled_span: None,
        state: RecordingState::default(),
        notes: Vec::new(),
        fingerprint,
    }
}

fn trace() -> impl Strategy<Value = Trace> {
    (
        prop::collection::vec(raw(), 0..60),
        prop_oneof![3 => Just(0), 1 => 0..100_000_u64],
    )
        .prop_map(|(rows, cut)| build(rows, cut, 1))
}

fn side(name: &'static str, first: u64) -> impl Strategy<Value = Side> {
    prop::collection::vec((prop::collection::vec(raw(), 0..25), 1..5_u64), 1..4).prop_map(move |trials| {
        let trials = trials.into_iter().enumerate();
        let trial = |(at, (rows, units)): (usize, (Vec<Raw>, u64))| {
            let trace = build(rows, 0, first + at as u64);
            let options = TrialOptions {
                slowest: 3,
                ..TrialOptions::default()
            };
            Trial::from_trace(&trace, format!("{name}-{at}"), Some(units), &options)
        };
        Side {
            name: name.into(),
            trials: trials.map(trial).collect(),
        }
    })
}

fn settings() -> Settings {
    Settings {
        timing: Timing::Intervals,
        timing_b: Timing::Intervals,
        unit: Some("token".into()),
        unit_b: Some("token".into()),
        buckets: Buckets::default(),
        window_a: WindowRule::default(),
        window_b: WindowRule::default(),
        slowest: 3,
    }
}

fn groupings() -> [GroupBy; 5] {
    let own = Buckets::parse("500ns,5us,0.1ms").unwrap();
    [
        GroupBy::Bucket(Buckets::default()),
        GroupBy::Bucket(own),
        GroupBy::Encoder,
        GroupBy::Phase(PhaseNames::default()),
        GroupBy::Channel,
    ]
}

fn naive_union(intervals: &[(u64, u64)], window: Window) -> u64 {
    // Count the ns that some interval covers, on the grid of all bounds.
    let mut bounds: Vec<u64> = intervals
        .iter()
        .flat_map(|(a, b)| [*a, *b])
        .chain([window.from.0, window.to.0])
        .collect();
    bounds.sort_unstable();
    bounds.dedup();
    let inside = |a: u64, b: u64| {
        window.from.0 <= a && b <= window.to.0 && intervals.iter().any(|(start, end)| *start <= a && b <= *end)
    };
    bounds
        .windows(2)
        .filter(|pair| inside(pair[0], pair[1]))
        .map(|pair| pair[1] - pair[0])
        .sum()
}

/// What the glossary says of a set of submissions, computed for it alone and without regard to time.
fn naive_stats(trace: &Trace, of: &[&Submission], encoders: impl Fn(&Encoder) -> Option<bool>) -> Stats {
    let sorted = |values: Vec<u64>| {
        let mut values = values;
        values.sort();
        values
    };
    // At least `percent` of the values do not exceed it.
    let rank = |sorted: &[u64], percent: usize| {
        let reached =
            |value: &&u64| sorted.iter().filter(|other| other <= value).count() * 100 >= percent * sorted.len();
        Nanos(*sorted.iter().find(reached).unwrap())
    };
    let middle = |sorted: &[u64]| (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) as f64 / 2.0;
    let durations = sorted(of.iter().map(|s| s.duration.0).collect());
    let latencies = sorted(of.iter().filter_map(|s| s.latency).map(|latency| latency.0).collect());
    let intervals: Vec<(u64, u64)> = of.iter().map(|s| (s.start.0, s.end().0)).collect();
    let ids: BTreeSet<EncoderId> = of.iter().filter_map(|s| s.encoder).collect();
    let buffers: BTreeSet<CommandBufferId> = of.iter().filter_map(|s| s.command_buffer).collect();
    let counted = |encoder: &&Encoder| {
        encoders(encoder) == Some(true) && trace.submissions.iter().any(|s| s.encoder == Some(encoder.id))
    };
    let encode: Vec<u64> = trace
        .encoders
        .iter()
        .flatten()
        .filter(counted)
        .map(|e| e.cpu_encode.unwrap().0)
        .collect();
    let total: u64 = durations.iter().sum();
    Stats {
        submissions: durations.len() as u64,
        total: Nanos(total),
        busy: Nanos(naive_union(&intervals, trace.window)),
        durations: (!durations.is_empty()).then(|| Durations {
            mean: total as f64 / durations.len() as f64,
            p50: middle(&durations),
            p95: rank(&durations, 95),
            p99: rank(&durations, 99),
            min: Nanos(durations[0]),
            max: Nanos(durations[durations.len() - 1]),
        }),
        encoders: trace
            .submissions
            .iter()
            .any(|s| s.encoder.is_some())
            .then_some(ids.len() as u64),
        command_buffers: trace
            .submissions
            .iter()
            .any(|s| s.command_buffer.is_some())
            .then_some(buffers.len() as u64),
        cpu_encode: (!encode.is_empty()).then(|| Nanos(encode.iter().sum())),
        latency: (!latencies.is_empty()).then(|| Latency {
            samples: latencies.len() as u64,
            p50: middle(&latencies),
            p95: rank(&latencies, 95),
        }),
    }
}

/// The key of a label by one of the rules for labels.
fn key_of(trace: &Trace, label: LabelId, by: &GroupBy) -> Key {
    let plain = |text: &str| Key {
        text: text.to_owned(),
        coalesced: false,
    };
    match trace.label(label) {
        Label::NoEncoder => plain("(unknown)"),
        Label::Ambiguous => plain("(ambiguous)"),
        Label::Known {
            command_buffer,
            encoder,
            ..
        } => {
            let (buffer, encoder) = (trace.names.get(*command_buffer), trace.names.get(*encoder));
            if matches!(by, GroupBy::Phase(_)) {
                phase(buffer, encoder)
            } else {
                encoder_family(encoder)
            }
        }
    }
}

/// Groups one by one, each from its own submissions.
fn naive_groups(trace: &Trace, by: &GroupBy) -> Vec<Group> {
    let key = |submission: &Submission| match by {
        GroupBy::Bucket(buckets) => buckets.names[buckets.index(submission.duration.0)].clone(),
        GroupBy::Channel => trace.names.get(submission.channel).to_owned(),
        _ => key_of(trace, submission.label, by).text,
    };
    let labelled = matches!(by, GroupBy::Encoder | GroupBy::Phase(_));
    let keys: Vec<String> = match by {
        GroupBy::Bucket(buckets) => buckets.names.clone(),
        _ => trace
            .submissions
            .iter()
            .map(key)
            .collect::<BTreeSet<String>>()
            .into_iter()
            .collect(),
    };
    let group = |text: String| {
        let of: Vec<&Submission> = trace.submissions.iter().filter(|s| key(s) == text).collect();
        let own = |encoder: &Encoder| labelled.then(|| key_of(trace, encoder.label, by).text == text);
        let encoders: Vec<&Encoder> = trace
            .encoders
            .iter()
            .flatten()
            .filter(|e| own(e) == Some(true))
            .collect();
        let without = encoders.iter().filter(|encoder| !encoder.has_gpu_rows).count();
        Group {
            coalesced: labelled && of.iter().any(|s| key_of(trace, s.label, by).coalesced),
            encoders_without_submission: (labelled && trace.encoders.is_some())
                .then_some((without as u64, encoders.len() as u64)),
            stats: naive_stats(trace, &of, own),
            key: text,
        }
    };
    let mut groups: Vec<Group> = keys.into_iter().map(group).collect();
    if !matches!(by, GroupBy::Bucket(_)) {
        groups.sort_by_key(|group| Reverse(group.stats.total));
    }
    groups
}

fn rows(comparison: &Comparison) -> Vec<(&'static str, &Row)> {
    let mut rows = vec![("busy", &comparison.busy), ("total", &comparison.total)];
    let sections = [
        ("buckets", &comparison.buckets),
        ("encoders", &comparison.encoders),
        ("phases", &comparison.phases),
        ("channels", &comparison.channels),
    ];
    for (name, section) in sections {
        rows.extend(section.iter().map(|row| (name, row)));
    }
    rows
}

proptest! {
    // Traces are large values: fewer cases keep the suite quick.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn parts_add_up_for_every_grouping(trace in trace()) {
        let total: u64 = trace.submissions.iter().map(|s| s.duration.0).sum();
        let encoders = trace.encoders.as_ref().unwrap().len() as u64;
        for by in groupings() {
            let groups = attribute(&trace, &by).groups;
            let sum = |value: fn(&trace_attr::attribution::Group) -> u64| groups.iter().map(value).sum::<u64>();
            prop_assert_eq!(sum(|g| g.stats.submissions), trace.submissions.len() as u64);
            prop_assert_eq!(sum(|g| g.stats.total.0), total);
            prop_assert_eq!(
                sum(|g| g.stats.latency.map_or(0, |latency| latency.samples)),
                trace.submissions.iter().filter(|s| s.latency.is_some()).count() as u64
            );
            prop_assert!(sum(|g| g.encoders_without_submission.map_or(0, |(_, all)| all)) <= encoders);
            let mut keys: Vec<&str> = groups.iter().map(|g| g.key.as_str()).collect();
            keys.sort_unstable();
            keys.dedup();
            prop_assert_eq!(keys.len(), groups.len());
        }
    }

    #[test]
    fn every_number_of_every_group_is_what_its_own_submissions_give(
        mut trace in trace(), listed in any::<bool>(), backwards in any::<bool>(), ids in any::<bool>()
    ) {
        if !listed {
            trace.encoders = None;
        } else if backwards {
            trace.encoders.as_mut().unwrap().reverse();
        }
        if !ids {
            for submission in &mut trace.submissions {
                submission.command_buffer = None;
                submission.latency = None;
            }
        }
        for by in groupings() {
            prop_assert_eq!(attribute(&trace, &by).groups, naive_groups(&trace, &by));
        }
        let options = TrialOptions { slowest: 7, ..TrialOptions::default() };
        let trial = Trial::from_trace(&trace, "t".into(), None, &options);
        let all: Vec<&Submission> = trace.submissions.iter().collect();
        prop_assert_eq!(trial.all, naive_stats(&trace, &all, |_| Some(true)));
        for (by, groups) in [
            (GroupBy::Bucket(Buckets::default()), trial.buckets),
            (GroupBy::Encoder, trial.encoders),
            (GroupBy::Phase(PhaseNames::default()), trial.phases),
            (GroupBy::Channel, trial.channels),
        ] {
            prop_assert_eq!(groups, naive_groups(&trace, &by));
        }
        // Equally long ones keep their order.
        let mut slowest = all;
        slowest.sort_by_key(|s| (Reverse(s.duration), s.start, s.id));
        let slowest: Vec<_> = slowest.iter().take(7).map(|s| (s.start, s.duration)).collect();
        prop_assert_eq!(trial.slowest.iter().map(|s| (s.start, s.duration)).collect::<Vec<_>>(), slowest);
        let mut longest = gaps(&trace, usize::MAX).longest;
        longest.truncate(7);
        prop_assert_eq!(trial.gaps.longest, longest);
    }

    #[test]
    fn busy_is_the_union_and_within_total_and_window(trace in trace()) {
        for by in groupings() {
            let mut sum = 0;
            for group in attribute(&trace, &by).groups {
                prop_assert!(group.stats.busy <= group.stats.total.min(trace.window.length()));
                sum += group.stats.busy.0;
            }
            let intervals: Vec<(u64, u64)> = trace.submissions.iter().map(|s| (s.start.0, s.end().0)).collect();
            let busy = union_length(&intervals, trace.window).0;
            prop_assert_eq!(busy, naive_union(&intervals, trace.window));
            prop_assert!(sum >= busy);
            let trial = Trial::from_trace(&trace, "t".into(), None, &TrialOptions::default());
            prop_assert_eq!(trial.all.busy.0, busy);
            let phase = trial.phases.iter().map(|group| group.stats.busy.0).max().unwrap_or(0);
            prop_assert!(phase <= busy);
        }
    }

    #[test]
    fn union_matches_a_naive_one(
        intervals in prop::collection::vec((0..200_u64, 0..50_u64), 0..40), from in 0..100_u64, length in 0..200_u64
    ) {
        let intervals: Vec<(u64, u64)> = intervals.into_iter().map(|(start, length)| (start, start + length)).collect();
        let window = Window { from: Timestamp(from), to: Timestamp(from + length) };
        prop_assert_eq!(union_length(&intervals, window).0, naive_union(&intervals, window));
    }

    #[test]
    fn gaps_are_the_window_without_the_busy_time(trace in trace()) {
        let gaps = gaps(&trace, usize::MAX);
        let busy = union_length(
            &trace.submissions.iter().map(|s| (s.start.0, s.end().0)).collect::<Vec<_>>(),
            trace.window,
        );
        let idle: u64 = gaps.bands.iter().map(|band| band.idle.0).sum();
        prop_assert_eq!(idle, trace.window.length().0 - busy.0);
        prop_assert_eq!(gaps.longest.iter().map(|gap| gap.length.0).sum::<u64>(), idle);
        prop_assert_eq!(gaps.bands.iter().map(|band| band.count).sum::<u64>(), gaps.longest.len() as u64);
        prop_assert!(gaps.longest.windows(2).all(|pair| pair[0].length >= pair[1].length));
    }

    #[test]
    fn every_submission_is_in_one_bin_of_the_histogram(trace in trace()) {
        let trial = Trial::from_trace(&trace, "t".into(), None, &TrialOptions::default());
        let histogram = trial.histogram.unwrap();
        let bins: Vec<_> = (0..300).map(|bin| histogram.bin(bin)).collect();
        prop_assert_eq!(bins.iter().map(|bin| bin.submissions).sum::<u64>(), trial.all.submissions);
        prop_assert_eq!(bins.iter().map(|bin| bin.total.0).sum::<u64>(), trial.all.total.0);
        for (at, bin) in bins.iter().enumerate() {
            let (lower, upper) = (Histogram::lower_edge(at), Histogram::lower_edge(at + 1));
            let inside = trace.submissions.iter().filter(|s| lower <= s.duration && s.duration < upper);
            prop_assert_eq!(bin.submissions, inside.count() as u64);
        }
    }

    #[test]
    fn the_timeline_is_as_busy_as_the_trace(trace in trace(), most in 1..20_usize) {
        let options = TrialOptions { timeline_spans: most, ..TrialOptions::default() };
        let trial = Trial::from_trace(&trace, "t".into(), None, &options);
        let Some(timeline) = trial.timeline else {
            prop_assert_eq!(trial.all.busy.0, 0);
            return Ok(());
        };
        prop_assert_eq!(timeline.lanes[0].busy(), trial.all.busy);
        for lane in &timeline.lanes {
            prop_assert!((1..=most).contains(&lane.spans.len()));
            for span in &lane.spans {
                prop_assert!(Nanos(0) < span.busy && span.busy <= span.length);
                prop_assert!(timeline.from <= span.start && span.start + span.length <= timeline.to);
            }
            prop_assert!(lane.spans.windows(2).all(|pair| pair[0].start + pair[0].length < pair[1].start));
            let group = trial.channels.iter().find(|group| Some(&group.key) == lane.channel.as_ref());
            prop_assert_eq!(lane.busy(), group.map_or(trial.all.busy, |group| group.stats.busy));
        }
    }

    #[test]
    fn percentiles_lie_between_the_extremes_and_rise(mut values in prop::collection::vec(0..1_000_u64, 1..80)) {
        values.sort_unstable();
        let mut before = values[0];
        for percent in 0..=100 {
            let value = nearest_rank(&values, percent).unwrap();
            prop_assert!(value >= before && value <= *values.last().unwrap());
            // By definition: the smallest value that at least that many values do not exceed.
            let not_above = values.iter().filter(|other| **other <= value).count();
            prop_assert!(not_above * 100 >= usize::from(percent) * values.len());
            before = value;
        }
        let middle = median(&values).unwrap();
        prop_assert!(middle >= values[0] as f64 && middle <= *values.last().unwrap() as f64);
        prop_assert!(middle <= nearest_rank(&values, 95).unwrap() as f64 || values.len() < 2);
    }

    #[test]
    fn bucket_membership_follows_the_edges(ns in 0..10_000_000_u64) {
        let buckets = Buckets::parse("500ns,5us,0.1ms").unwrap();
        let at = buckets.index(ns);
        prop_assert!(at == 0 || buckets.edges[at - 1] <= ns);
        prop_assert!(at == buckets.edges.len() || ns < buckets.edges[at]);
    }

    #[test]
    fn comparing_a_side_with_itself_shows_no_change(a in side("a", 1)) {
        let comparison = compare(a.clone(), Some(a), settings(), &CompareOptions::default()).unwrap();
        for (_, row) in rows(&comparison) {
            let Some(Change::Both { delta_us, delta_pct, share_pct, count_pct, per_submission_pct }) = row.change else {
                panic!("{row:?}")
            };
            prop_assert_eq!((delta_us, delta_pct), (0.0, Some(0.0)));
            for percent in [share_pct, count_pct, per_submission_pct].into_iter().flatten() {
                prop_assert_eq!(percent, 0.0);
            }
        }
        prop_assert!(comparison.findings.iter().all(|finding| finding.section == "submissions"));
        prop_assert!(comparison.notes.iter().any(|note| note.code == "same_recording"));
        prop_assert!(!headline(&comparison).contains("slower") && !headline(&comparison).contains("faster"));
    }

    #[test]
    fn swapping_the_sides_negates_deltas(a in side("a", 1), b in side("b", 100)) {
        let one = compare(a.clone(), Some(b.clone()), settings(), &CompareOptions::default()).unwrap();
        let other = compare(b, Some(a), settings(), &CompareOptions::default()).unwrap();
        let other_rows = rows(&other);
        for (section, row) in rows(&one) {
            let mirrored = other_rows.iter().find(|(name, other)| *name == section && other.key == row.key).unwrap().1;
            prop_assert_eq!(&row.a, &mirrored.b);
            prop_assert_eq!(&row.b, &mirrored.a);
            let (change, back) = (row.change.unwrap(), mirrored.change.unwrap());
            prop_assert_eq!(change.delta_us(), 0.0 - back.delta_us());
            let mirror = matches!(
                (change, back),
                (Change::Both { .. }, Change::Both { .. })
                    | (Change::OnlyA { .. }, Change::OnlyB { .. })
                    | (Change::OnlyB { .. }, Change::OnlyA { .. })
            );
            prop_assert!(mirror);
        }
        prop_assert_eq!(rows(&one).len(), other_rows.len());
    }

    #[test]
    fn the_split_is_exact_and_no_number_is_infinite(a in side("a", 1), b in side("b", 100)) {
        let comparison = compare(a, Some(b), settings(), &CompareOptions::default()).unwrap();
        for (_, row) in rows(&comparison) {
            if let Some(Change::Both { delta_pct, count_pct: Some(count), per_submission_pct: Some(per), .. }) = row.change {
                let ratio = 1.0 + delta_pct.unwrap() / 100.0;
                let product = (1.0 + count / 100.0) * (1.0 + per / 100.0);
                prop_assert!((product - ratio).abs() <= 1e-12 * ratio.max(1.0), "{product} {ratio}");
            }
        }
        let text = format!("{comparison:?} {}", headline(&comparison));
        prop_assert!(!text.contains("NaN") && !text.contains("inf,") && !text.contains("inf)"));
    }
}
