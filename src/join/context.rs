//! What stands beside the submissions: kernels, Shader Timeline samples, the recording and its machine.

use std::collections::{BTreeMap, BTreeSet};

use super::RunInput;
use super::process::Selection;
use crate::model::{Kernel, NameId, Names, Nanos, RecordingState, ShaderSamples, StateTime, Timestamp, Window};
use crate::recording::RunTables;
use crate::tables::Texts;
use crate::tables::shaders::without_id;
use crate::tables::states::StateRow;

pub(super) fn kernels(run: &RunTables, texts: &Texts, selection: &Selection) -> Option<Vec<Kernel>> {
    let mut kernels = BTreeSet::new();
    for row in run.shaders.as_ref()?.iter().filter(|row| selection.has(row.process)) {
        let name = |id: Option<NameId>| id.map_or("", |id| without_id(texts.names.get(id)));
        let (function, pipeline) = (name(row.name), name(row.pipeline));
        if function.is_empty() && pipeline.is_empty() {
            continue;
        }
        let function = if function.is_empty() { pipeline } else { function };
        let pipeline = if pipeline.is_empty() { function } else { pipeline };
        kernels.insert(Kernel {
            function: function.to_owned(),
            pipeline: pipeline.to_owned(),
        });
    }
    Some(kernels.into_iter().collect())
}

pub(super) fn shader_samples(
    run: &RunTables,
    texts: &Texts,
    selection: &Selection,
) -> (Vec<ShaderSamples>, Option<Window>) {
    let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut span: Option<Window> = None;
    for row in run
        .shader_samples
        .iter()
        .flatten()
        .filter(|row| selection.has(row.process))
    {
        let (Some(start), Some(duration)) = (row.start, row.duration) else {
            continue;
        };
        let (rows, sampled) = by_name
            .entry(row.name.map_or("", |id| without_id(texts.names.get(id))))
            .or_default();
        *rows += 1;
        *sampled = sampled.saturating_add(duration);
        let (from, to) = (Timestamp(start), Timestamp(start) + Nanos(duration));
        span = Some(span.map_or(Window { from, to }, |span| Window {
            from: span.from.min(from),
            to: span.to.max(to),
        }));
    }
    let mut samples: Vec<ShaderSamples> = by_name
        .into_iter()
        .map(|(name, (rows, sampled))| ShaderSamples {
            name: name.to_owned(),
            rows,
            sampled: Nanos(sampled),
        })
        .collect();
    samples.sort_by(|a, b| b.sampled.cmp(&a.sampled).then_with(|| a.name.cmp(&b.name)));
    (samples, span)
}

pub(super) fn state(input: &RunInput<'_>, names: &Names, window: Window) -> RecordingState {
    let contents = input.contents();
    RecordingState {
        end_reason: contents.and_then(|run| run.end_reason.clone()),
        start_date: contents.and_then(|run| run.start_date.clone()),
        duration: contents.and_then(|run| run.duration),
        instruments_version: contents.and_then(|run| run.instruments_version.clone()),
        os_version: contents.and_then(|run| run.os_version.clone()),
        shader_timeline: contents.and_then(|run| run.shader_timeline.clone()),
        thermal: state_times(&input.run.thermal, names, window),
        performance: state_times(&input.run.performance, names, window),
        private: contents
            .filter(|_| input.options.show_private)
            .map_or_else(Vec::new, |run| run.private.clone()),
    }
}

fn state_times(rows: &[StateRow], names: &Names, window: Window) -> Vec<StateTime> {
    let mut times: BTreeMap<(&str, bool), u64> = BTreeMap::new();
    for row in rows {
        let (Some(start), Some(duration), Some(state)) = (row.start, row.duration, row.state) else {
            continue;
        };
        let from = Timestamp(start).max(window.from);
        let to = (Timestamp(start) + Nanos(duration)).min(window.to);
        if to > from {
            *times.entry((names.get(state), row.induced)).or_default() += to.since(from).0;
        }
    }
    let mut times: Vec<StateTime> = times
        .into_iter()
        .map(|((state, induced), ns)| StateTime {
            state: state.to_owned(),
            induced,
            time: Nanos(ns),
        })
        .collect();
    times.sort_by(|a, b| {
        b.time
            .cmp(&a.time)
            .then_with(|| (&a.state, a.induced).cmp(&(&b.state, b.induced)))
    });
    times
}
