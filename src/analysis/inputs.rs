//! Inputs are read: several at once, in their order, each as what it is.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Request, SideRequest};
use crate::error::{Error, Result};
use crate::live::Profile;
use crate::model::WindowSpan;
use crate::parallel::{Jobs, in_order};
use crate::recording::{Progress, ReadOptions, Recording, read_recording};
use crate::source::{self, Source};

/// Every input of both sides, as it is shown and as it was read: several at once, in their order. Behind the first that
/// cannot be read some may be missing, unless they are wanted all the same.
pub(super) fn read_all(
    request: &Request,
    names: Vec<String>,
    progress: &dyn Progress,
) -> Vec<(String, Result<Content>)> {
    let needs_signposts = |side: &SideRequest| {
        let needed = matches!(side.join.window.span, WindowSpan::Signpost(_));
        std::iter::repeat_n(needed, side.inputs.len())
    };
    let signposts = std::iter::once(&request.a).chain(&request.b).flat_map(needs_signposts);
    let sources = paths(request).map(Source::from_argument);
    let inputs: Vec<_> = sources.zip(signposts).zip(names).collect();
    let is_file = |source: &Source| matches!(source, Source::File(_) | Source::Folder(_));
    let files = inputs
        .iter()
        .all(|((source, _), _)| source.as_ref().map_or(true, is_file));
    // One xctrace at a time: each takes what the machine has.
    let jobs = if files { request.read.jobs } else { Jobs::ONE };
    let each = request.read.jobs.each_of(if files { inputs.len() } else { 1 });
    let together = Together(progress);
    let progress: &dyn Progress = if jobs.count() > 1 && inputs.len() > 1 {
        progress.begin(&format!("{} inputs", inputs.len()), None);
        &together
    } else {
        progress
    };
    let read = |((source, signposts), shown): ((Result<Source>, bool), String)| {
        let options = ReadOptions {
            jobs: each,
            signposts,
            ..request.read.clone()
        };
        let content = source.and_then(|source| read_one(&source, &options, progress));
        (shown, content)
    };
    in_order(jobs, inputs, read, |(_, content)| {
        content.is_err() && !request.keep_going
    })
}

/// One input, as what it is.
pub(super) fn read_one(source: &Source, options: &ReadOptions, progress: &dyn Progress) -> Result<Content> {
    match live_profile(source) {
        Some(profile) => profile.map(|profile| Content::Live(Arc::new(profile))),
        None => read_recording(source, options, progress).map(|recording| Content::Recording(Box::new(recording))),
    }
}

/// The live profile that a file is; `None` when it is something else, or cannot be looked at.
fn live_profile(source: &Source) -> Option<Result<Profile>> {
    let Source::File(path) = source else { return None };
    if !source::is_json(path) {
        return None;
    }
    let text = std::fs::read_to_string(path).map_err(|error| Error::io("read it", error));
    let profile = text.and_then(|text| Profile::from_json(&text));
    Some(profile.map_err(|error| error.with_origin(source.origin())))
}

/// Progress of inputs that are read at once: one display for all of them.
struct Together<'a>(&'a dyn Progress);

impl Progress for Together<'_> {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn table(&self, schema: &str) {
        self.0.table(schema);
    }
    fn advance(&self, bytes: u64) {
        self.0.advance(bytes);
    }
    fn warning(&self, text: &str) {
        self.0.warning(text);
    }
}

/// Inputs of both sides, in order.
pub(super) fn paths(request: &Request) -> impl Iterator<Item = &Path> {
    let b = request.b.iter().flat_map(|side| &side.inputs);
    request.a.inputs.iter().chain(b).map(PathBuf::as_path)
}

/// What an input turned out to be.
pub(super) enum Content {
    /// Runs of a recording.
    Recording(Box<Recording>),
    /// A live profile: one trial.
    Live(Arc<Profile>),
}

/// An input that was read, as it is shown.
pub(super) struct ReadInput {
    pub(super) content: Content,
    pub(super) shown: String,
    pub(super) units: Option<u64>,
}

impl ReadInput {
    /// How many trials it is.
    pub(super) fn trials(&self) -> usize {
        match &self.content {
            Content::Recording(recording) => recording.runs.len(),
            Content::Live(_) => 1,
        }
    }

    /// The recording; `None` for a live profile.
    pub(super) fn recording(&self) -> Option<&Recording> {
        match &self.content {
            Content::Recording(recording) => Some(recording),
            Content::Live(_) => None,
        }
    }
}

/// Inputs as they are shown: the last path component, and as many parents as tell them apart; never a whole path
/// of somebody's machine when less will do.
pub(super) fn shown_inputs<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let parts: Vec<Vec<String>> = paths
        .map(|path| {
            let normal = path.components().filter_map(|part| match part {
                std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                std::path::Component::ParentDir => Some("..".to_owned()),
                _ => None,
            });
            let parts: Vec<String> = normal.collect();
            match parts.as_slice() {
                [only] if only == "-" => vec!["stdin".to_owned()],
                [] => vec![".".to_owned()],
                _ => parts,
            }
        })
        .collect();
    let tail = |parts: &[String], depth: usize| {
        parts
            .get(parts.len().saturating_sub(depth)..)
            .unwrap_or(parts)
            .join("/")
    };
    let mut depths: Vec<usize> = vec![1; parts.len()];
    let deepest = parts.iter().map(Vec::len).max().unwrap_or(0);
    for depth in 1..deepest {
        // Tails of this depth that different paths share: those paths need one parent more.
        let mut first: HashMap<String, &Vec<String>> = HashMap::new();
        let mut shared: HashSet<String> = HashSet::new();
        for own in &parts {
            let tail = tail(own, depth);
            if first.get(&tail).is_some_and(|other| *other != own) {
                shared.insert(tail.clone());
            }
            first.entry(tail).or_insert(own);
        }
        for (own, needed) in parts.iter().zip(&mut depths) {
            if *needed == depth && depth < own.len() && shared.contains(&tail(own, depth)) {
                *needed = depth + 1;
            }
        }
    }
    parts.iter().zip(depths).map(|(own, depth)| tail(own, depth)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_shown_by_as_little_of_their_path_as_tells_them_apart() {
        let shown = |paths: &[&str]| shown_inputs(paths.iter().map(Path::new));
        assert_eq!(shown(&["/home/u/a/run-1", "/home/u/a/run-2"]), ["run-1", "run-2"]);
        assert_eq!(shown(&["/x/old/1", "/x/new/1", "/x/new/2"]), ["old/1", "new/1", "2"]);
        assert_eq!(shown(&["a", "a"]), ["a", "a"]);
        assert_eq!(shown(&["-", "."]), ["stdin", "."]);
        assert_eq!(shown(&["x/1", "1"]), ["x/1", "1"]);
    }
}
