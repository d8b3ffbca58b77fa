//! Files that other tools read: one file per format, one match.
//!
//! What goes in is one of two shapes, [`Timeline`] or [`CallTree`], whatever it was made from; what comes out is written
//! as it is made. Names and texts are made visible in every format, because most of these tools print them as they are.
//! Databases want neither shape: for them `submissions` has the rows, `trials` the table beside them, and `parquet` and
//! `submissions_csv` write both. In Parquet a label is data, and stays as it is.

mod chrome;
mod folded;
mod hatchet;
mod json;
mod lanes;
#[cfg(feature = "parquet")]
pub mod parquet;
mod perfetto;
#[cfg(feature = "traces")]
mod pprof;
mod speedscope;
#[cfg(feature = "traces")]
mod submissions;
#[cfg(feature = "traces")]
pub mod submissions_csv;
#[cfg(feature = "traces")]
pub mod trials;
mod wire;

use std::io;
use std::path::Path;

use crate::calltree::CallTree;
use crate::timeline::Timeline;

/// A format of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Conversion {
    /// Timeline as trace events in JSON: chrome://tracing, Perfetto, speedscope
    Chrome,
    /// Timeline as Perfetto's protobuf: ui.perfetto.dev, trace_processor
    Perfetto,
    /// Timeline and call tree: speedscope
    Speedscope,
    /// Call tree as folded stacks: inferno, flamegraph.pl, speedscope
    Folded,
    /// Call trees of both sides in two columns, B and A: differential flame graphs
    FoldedDiff,
    /// Call tree: go tool pprof
    #[cfg(feature = "traces")]
    Pprof,
    /// Call tree as a literal: Hatchet, Thicket
    Hatchet,
}

impl Conversion {
    /// Its name on the command line: `chrome`, `folded-diff`, …
    pub fn name(self) -> &'static str {
        match self {
            Conversion::Chrome => "chrome",
            Conversion::Perfetto => "perfetto",
            Conversion::Speedscope => "speedscope",
            Conversion::Folded => "folded",
            Conversion::FoldedDiff => "folded-diff",
            #[cfg(feature = "traces")]
            Conversion::Pprof => "pprof",
            Conversion::Hatchet => "hatchet",
        }
    }

    /// The format of a file by the end of its name, where that end is one format's own: `.pftrace`,
    /// `.perfetto-trace`, `.speedscope.json`, `.folded`, `.pb.gz`, `.pprof`.
    pub fn of_path(path: &Path) -> Option<Conversion> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = [
            (".pftrace", Conversion::Perfetto),
            (".perfetto-trace", Conversion::Perfetto),
            (".speedscope.json", Conversion::Speedscope),
            (".folded", Conversion::Folded),
            #[cfg(feature = "traces")]
            (".pb.gz", Conversion::Pprof),
            #[cfg(feature = "traces")]
            (".pprof", Conversion::Pprof),
        ];
        let found = ends.into_iter().find(|(end, _)| name.ends_with(end));
        found.map(|(_, conversion)| conversion)
    }

    /// Whether the file is no text.
    pub fn is_binary(self) -> bool {
        match self {
            Conversion::Perfetto => true,
            #[cfg(feature = "traces")]
            Conversion::Pprof => true,
            _ => false,
        }
    }
}

/// Something that has both shapes.
pub trait Shapes {
    /// As tracks with slices.
    fn timeline(&self) -> Timeline<'_>;
    /// As a tree of frames.
    fn call_tree(&self) -> CallTree;
}

/// Writes a file for another tool.
///
/// # Errors
/// Whatever `out` refuses; `InvalidInput` for [`Conversion::FoldedDiff`] of anything but two sides.
pub fn write(shapes: &impl Shapes, conversion: Conversion, out: &mut dyn io::Write) -> io::Result<()> {
    match conversion {
        Conversion::Chrome => chrome::write(&shapes.timeline(), out),
        Conversion::Perfetto => perfetto::write(&shapes.timeline(), out),
        Conversion::Speedscope => speedscope::write(&shapes.timeline(), &shapes.call_tree(), out),
        Conversion::Folded => folded::write(&shapes.call_tree(), out),
        Conversion::FoldedDiff => folded::write_differential(&shapes.call_tree(), out),
        #[cfg(feature = "traces")]
        Conversion::Pprof => pprof::write(&shapes.call_tree(), out),
        Conversion::Hatchet => hatchet::write(&shapes.call_tree(), out),
    }
}

/// The place of the metric that frames are drawn by: GPU time.
fn gpu_time(tree: &CallTree) -> usize {
    tree.whole().iter().position(|name| &**name == "gpu_ns").unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_a_format_only_where_it_is_its_own() {
        let of = |name: &str| Conversion::of_path(Path::new(name)).map(Conversion::name);
        assert_eq!(of("out/Run.SPEEDSCOPE.json"), Some("speedscope"));
        assert_eq!(of("run.pftrace"), Some("perfetto"));
        assert_eq!(of("run.folded"), Some("folded"));
        assert_eq!(of("run.json"), None, "Chrome, speedscope and Hatchet all are JSON");
        assert_eq!(of("run.gz"), None);
        #[cfg(feature = "traces")]
        assert_eq!((of("run.pb.gz"), of("run.pprof")), (Some("pprof"), Some("pprof")));
    }
}
