//! How a submission gets its key: bucket, encoder family, phase or channel.
//!
//! Keys are made once per distinct label of a trace, then looked up per submission. The rules for
//! labels are pure functions of text ([`encoder_family`], [`phase`]); what they mean is told in the glossary. A label map
//! can give phases other names ([`PhaseNames`]).

use super::Group;
use super::groupings::Groupings;
use super::label_map::PhaseNames;
use crate::error::{Error, Result};
use crate::model::{Label, Trace};
use crate::parallel::Jobs;

/// Key of submissions whose encoder is not known, and the family of an empty label.
pub const UNKNOWN: &str = "(unknown)";
/// Key of submissions whose labels say nothing (empty, or Metal's default names).
pub const UNLABELLED: &str = "(unlabelled)";
/// Key of submissions that several encoder rows claim with different labels.
pub const AMBIGUOUS: &str = "(ambiguous)";

/// Default edges in ns.
const DEFAULT_EDGES: [u64; 4] = [2_000, 8_000, 32_000, 80_000];
/// Default names: those of the script that users know.
const DEFAULT_NAMES: [&str; 5] = ["xs_<2us", "sm_2_8us", "md_8_32us", "lg_32_80us", "xl_>=80us"];

/// Duration bands: sorted edges in ns and the names they give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// Lower edges of all but the first bucket, ascending, inclusive.
    pub edges: Vec<u64>,
    /// One more than edges.
    pub names: Vec<String>,
}

impl Default for Buckets {
    fn default() -> Self {
        Buckets {
            edges: DEFAULT_EDGES.to_vec(),
            names: DEFAULT_NAMES.map(str::to_owned).to_vec(),
        }
    }
}

impl std::str::FromStr for Buckets {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Buckets::parse(text)
    }
}

impl Buckets {
    /// Edges as a user writes them, in any order: `2us,8us,500ns,1.5ms`.
    pub fn parse(text: &str) -> Result<Self> {
        let edges = text
            .split(',')
            .map(|edge| parse_edge(edge.trim()))
            .collect::<Result<Vec<u64>>>()?;
        Buckets::from_edges(edges)
    }

    /// Edges in ns, in any order; zero, duplicates and an empty list are refused.
    pub fn from_edges(mut edges: Vec<u64>) -> Result<Self> {
        edges.sort_unstable();
        if edges.is_empty() {
            return Err(Error::usage("no bucket edge is given").with_help(EDGES_HELP));
        }
        if edges.first() == Some(&0) {
            return Err(Error::usage("bucket edge 0: no duration lies below it").with_help(EDGES_HELP));
        }
        if let Some(twice) = edges.iter().zip(edges.iter().skip(1)).find(|(a, b)| a == b) {
            let message = format!(
                "bucket edge {} is given twice",
                in_unit(*twice.0, largest_unit(*twice.0))
            );
            return Err(Error::usage(message).with_help(EDGES_HELP));
        }
        if edges == DEFAULT_EDGES {
            return Ok(Buckets::default());
        }
        let names = band_names(&edges);
        Ok(Buckets { edges, names })
    }

    /// Index of the bucket of a duration in ns: its lower edge is inclusive.
    pub fn index(&self, ns: u64) -> usize {
        self.edges.partition_point(|edge| *edge <= ns)
    }
}

/// The remedy for edges that cannot be used.
const EDGES_HELP: &str = "write edges such as 2us,8us,32us,80us (units: ns, us, ms, s)";

/// Units and their length in ns, largest first.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// One edge in ns: a number with a unit, whole ns after conversion.
fn parse_edge(text: &str) -> Result<u64> {
    let refuse = |why: &str| Error::usage(format!("bucket edge `{text}`: {why}")).with_help(EDGES_HELP);
    let at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    if number.is_empty() {
        return Err(refuse("not a duration"));
    }
    let scale = match unit.trim() {
        "ns" => 1_u64,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "" => {
            return Err(refuse(&format!(
                "the unit is missing; write `{text}us` for microseconds"
            )));
        }
        _ => return Err(refuse("unknown unit")),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Integer arithmetic: 0.1us must be 100 ns, not 99.
    let digits = fraction.trim_end_matches('0');
    let parsed = (|| {
        let whole: u64 = if whole.is_empty() && !fraction.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        let mut ns = whole.checked_mul(scale)?;
        if !digits.is_empty() {
            let divisor = 10_u64.checked_pow(u32::try_from(digits.len()).ok()?)?;
            let scaled = digits.parse::<u64>().ok()?.checked_mul(scale)?;
            if scaled % divisor != 0 {
                return None;
            }
            ns = ns.checked_add(scaled / divisor)?;
        }
        Some(ns)
    })();
    parsed.ok_or_else(|| refuse("not a whole number of ns below 500 years"))
}

/// The largest unit in which the value is a whole number.
fn largest_unit(ns: u64) -> (&'static str, u64) {
    UNITS
        .into_iter()
        .find(|(_, scale)| ns.is_multiple_of(*scale))
        .unwrap_or(("ns", 1))
}

fn in_unit(ns: u64, (unit, scale): (&str, u64)) -> String {
    format!("{}{unit}", ns / scale)
}

/// Names of the bands that ascending edges (ns) give: `lt_5us`, `5_50us`, `500us_1ms`, `ge_1ms`.
pub(crate) fn band_names(edges: &[u64]) -> Vec<String> {
    let mut names = Vec::with_capacity(edges.len() + 1);
    let mut before: Option<u64> = None;
    for &edge in edges {
        let unit = largest_unit(edge);
        names.push(match before {
            None => format!("lt_{}", in_unit(edge, unit)),
            Some(low) if largest_unit(low) == unit => format!("{}_{}", low / unit.1, in_unit(edge, unit)),
            Some(low) => format!("{}_{}", in_unit(low, largest_unit(low)), in_unit(edge, unit)),
        });
        before = Some(edge);
    }
    if let Some(last) = before {
        names.push(format!("ge_{}", in_unit(last, largest_unit(last))));
    }
    names
}

/// A key and whether it stands for several encoders.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Text of the key.
    pub text: String,
    /// The label that it comes from names several encoders; their time is not split.
    pub coalesced: bool,
}

impl Key {
    fn plain(text: impl Into<String>) -> Self {
        Key {
            text: text.into(),
            coalesced: false,
        }
    }
}

/// Family of an encoder label: Metal's default names by kind, a label of several encoders as it is, else the
/// first word in lower case.
pub fn encoder_family(label: &str) -> Key {
    let label = label.trim();
    if label.is_empty() {
        return Key::plain(UNKNOWN);
    }
    if is_coalesced(label) {
        // Default names number their encoders: `Compute Command 3 & Compute Command 4` is no family of its own.
        let mut kinds = label.split(" & ").map(default_family);
        let first = kinds.next().flatten();
        let text = match first {
            Some(kind) if kinds.all(|other| other == first) => kind,
            _ => label,
        };
        return Key {
            text: text.to_owned(),
            coalesced: true,
        };
    }
    let family = default_family(label).map(str::to_owned);
    Key::plain(family.unwrap_or_else(|| label.split_whitespace().next().unwrap_or(UNKNOWN).to_lowercase()))
}

/// Family of Metal's default encoder names.
fn default_family(label: &str) -> Option<&'static str> {
    let families = [
        ("Compute Command", "compute"),
        ("Blit Command", "blit"),
        ("Render Command", "render"),
        ("Acceleration", "accel"),
    ];
    families
        .into_iter()
        .find(|(prefix, _)| label.trim_start().starts_with(prefix))
        .map(|(_, family)| family)
}

/// Phase of a submission: the command buffer's label made comparable, else the encoder's, else
/// `(unlabelled)`.
pub fn phase(command_buffer_label: &str, encoder_label: &str) -> Key {
    for label in [command_buffer_label, encoder_label] {
        if let Some(text) = normalize(label) {
            return Key {
                text,
                coalesced: is_coalesced(label),
            };
        }
    }
    Key {
        text: UNLABELLED.to_owned(),
        coalesced: is_coalesced(encoder_label),
    }
}

/// Whether a phase key is a real label.
pub fn is_real_label(phase: &str) -> bool {
    !matches!(phase, UNKNOWN | UNLABELLED | AMBIGUOUS)
}

/// A label without the numbers that differ from one token, layer or run to the next; `None` when it says
/// nothing. Each part of `A & B` is treated alone.
fn normalize(label: &str) -> Option<String> {
    let parts: Vec<String> = label
        .split(" & ")
        .map(without_index)
        .map(without_number_segments)
        .collect();
    if parts.iter().all(|part| part.is_empty() || is_default_name(part)) {
        return None;
    }
    Some(parts.join(" & "))
}

/// Removes a leading `[N] `, as in `[3] attn.qkv`.
fn without_index(label: &str) -> &str {
    let label = label.trim_start();
    let rest = label.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    match rest {
        Some((index, rest)) if is_number(index) => rest.trim(),
        _ => label.trim_end(),
    }
}

/// Drops the all-digit segments of `layers.12.attn`; of digits only, nothing stays: a number is no phase.
fn without_number_segments(label: &str) -> String {
    let kept: Vec<&str> = label.split('.').filter(|segment| !is_number(segment)).collect();
    kept.join(".")
}

/// Names that Metal gives when the program sets none, with or without their number.
fn is_default_name(label: &str) -> bool {
    let stem = match label.rsplit_once(' ') {
        Some((stem, number)) if is_number(number) => stem.trim_end(),
        _ => label,
    };
    if stem == "Command Buffer" {
        return true;
    }
    let Some(kind) = stem.strip_suffix(" Command") else {
        return false;
    };
    matches!(
        kind,
        "Compute" | "Blit" | "Render" | "Parallel Render" | "Resource State"
    ) || kind.starts_with("Acceleration")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `A & B`, or Apple's `Coelasced N Encoders` (in its spelling or the right one).
fn is_coalesced(label: &str) -> bool {
    if label.contains(" & ") {
        return true;
    }
    let mut words = label.split_whitespace().rev();
    words.next() == Some("Encoders")
        && words.next().is_some_and(is_number)
        && matches!(words.next(), Some("Coelasced" | "Coalesced"))
}

/// A grouping.
#[derive(Debug, Clone)]
pub enum GroupBy {
    /// By duration.
    Bucket(Buckets),
    /// By encoder family.
    Encoder,
    /// By phase, under the names that a label map gives.
    Phase(PhaseNames),
    /// By channel.
    Channel,
}

/// The groups of one grouping.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// Buckets in edge order; the others by total, descending, then key.
    pub groups: Vec<Group>,
}

/// Groups the counted submissions of a trace.
pub fn attribute(trace: &Trace, by: &GroupBy) -> Attribution {
    let own;
    let buckets = match by {
        GroupBy::Bucket(buckets) => buckets,
        _ => {
            own = Buckets::default();
            &own
        }
    };
    let unmapped = PhaseNames::default();
    let names = match by {
        GroupBy::Phase(names) => names,
        _ => &unmapped,
    };
    let (phases, families) = (phase_keys(trace, names), family_keys(trace));
    let groupings = Groupings::new(trace, buckets, &phases, &families, Jobs::ONE);
    Attribution {
        groups: match by {
            GroupBy::Bucket(_) => groupings.buckets,
            GroupBy::Encoder => groupings.encoders,
            GroupBy::Phase(_) => groupings.phases,
            GroupBy::Channel => groupings.channels,
        },
    }
}

/// Phase keys of the trace's labels, in their order, under the names that a label map gives.
pub(crate) fn phase_keys(trace: &Trace, names: &PhaseNames) -> Vec<Key> {
    phase_labels(trace).into_iter().map(|key| names.named(key)).collect()
}

/// Phase keys of the trace's labels, in their order, as the labels say them.
pub(super) fn phase_labels(trace: &Trace) -> Vec<Key> {
    label_keys(trace, phase)
}

/// Encoder families of the trace's labels, in their order.
pub(crate) fn family_keys(trace: &Trace) -> Vec<Key> {
    label_keys(trace, |_, encoder| encoder_family(encoder))
}

/// The key of a label, given the keys of all of them; a label that the trace does not have is unknown.
pub(crate) fn key_of(keys: &[Key], label: crate::model::LabelId) -> &str {
    usize::try_from(label.0)
        .ok()
        .and_then(|at| keys.get(at))
        .map_or(UNKNOWN, |key| &key.text)
}

fn label_keys(trace: &Trace, rule: impl Fn(&str, &str) -> Key) -> Vec<Key> {
    let key = |label: &Label| match label {
        Label::Known {
            command_buffer,
            encoder,
            coalesced,
        } => {
            let key = rule(trace.names.get(*command_buffer), trace.names.get(*encoder));
            Key {
                coalesced: key.coalesced || *coalesced,
                ..key
            }
        }
        Label::NoEncoder => Key::plain(UNKNOWN),
        Label::Ambiguous => Key::plain(AMBIGUOUS),
    };
    trace.labels.iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::fixture::Builder;
    use crate::model::Nanos;

    fn names(text: &str) -> Vec<String> {
        Buckets::parse(text).unwrap().names
    }

    #[test]
    fn bucket_names() {
        assert_eq!(names("2us,8us,32us,80us"), DEFAULT_NAMES);
        assert_eq!(names("80us,2000ns,0.008ms,32µs"), DEFAULT_NAMES);
        assert_eq!(names("5us,50us"), ["lt_5us", "5_50us", "ge_50us"]);
        assert_eq!(names("500ns,2us"), ["lt_500ns", "500ns_2us", "ge_2us"]);
        assert_eq!(names("1s,100us,1000us"), ["lt_100us", "100us_1ms", "1ms_1s", "ge_1s"]);
        assert_eq!(names("1.5us"), ["lt_1500ns", "ge_1500ns"]);
        assert_eq!(names("0.5s , .25s"), ["lt_250ms", "250_500ms", "ge_500ms"]);
    }

    #[test]
    fn bad_bucket_edges_are_refused() {
        for (text, part) in [
            ("", "not a duration"),
            ("2us,", "not a duration"),
            ("5", "the unit is missing; write `5us`"),
            ("0us", "0"),
            ("2us,2000ns", "twice"),
            ("2min", "unknown unit"),
            ("-2us", "not a duration"),
            ("1.2.3us", "whole number"),
            (".us", "whole number"),
            ("0.5ns", "whole number"),
            ("99999999999999999999s", "whole number"),
            ("99999999999s", "whole number"),
            ("0.00000000000000000000000001s", "whole number"),
            ("nan", "not a duration"),
        ] {
            let error = Buckets::parse(text).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
            assert!(error.help().is_some());
        }
        assert!(Buckets::from_edges(Vec::new()).is_err());
    }

    #[test]
    fn lower_edges_are_inclusive() {
        let buckets = Buckets::default();
        let indices =
            [0, 1_999, 2_000, 7_999, 8_000, 31_999, 32_000, 79_999, 80_000, u64::MAX].map(|ns| buckets.index(ns));
        assert_eq!(indices, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn families_by_the_rules() {
        for (label, family, coalesced) in [
            ("Compute Command 12", "compute", false),
            ("Compute Command", "compute", false),
            ("Blit Command 0", "blit", false),
            ("Render Command 0", "render", false),
            ("Acceleration Structure Command 0", "accel", false),
            ("Attn QKV", "attn", false),
            ("attn.qkv", "attn.qkv", false),
            ("", UNKNOWN, false),
            ("  ", UNKNOWN, false),
            ("rgb & Stem x", "rgb & Stem x", true),
            ("Coelasced 4 Encoders", "Coelasced 4 Encoders", true),
            ("tone Coalesced 4 Encoders", "tone Coalesced 4 Encoders", true),
            ("Coalesced Encoders", "coalesced", false),
            ("Compute Command 3 & Compute Command 4", "compute", true),
            (
                "Compute Command 3 & Blit Command 4",
                "Compute Command 3 & Blit Command 4",
                true,
            ),
        ] {
            assert_eq!(
                encoder_family(label),
                Key {
                    text: family.into(),
                    coalesced
                },
                "{label}"
            );
        }
    }

    #[test]
    fn phases_by_the_rules() {
        for (buffer, encoder, key, coalesced) in [
            ("attn.qkv", "e", "attn.qkv", false),
            ("[3] layers.12.attn", "", "layers.attn", false),
            ("layers.12.attn.3", "", "layers.attn", false),
            ("12", "", UNLABELLED, false),
            ("3.4", "", UNLABELLED, false),
            ("12", "attn", "attn", false),
            ("[3] 1.2", "ffn", "ffn", false),
            ("layer12", "", "layer12", false),
            ("[x] attn", "", "[x] attn", false),
            ("[3]", "", "[3]", false),
            ("[3] ", "mlp", "mlp", false),
            ("", "", UNLABELLED, false),
            ("Command Buffer 0", "Compute Command 3", UNLABELLED, false),
            ("Command Buffer", "Blit Command", UNLABELLED, false),
            ("[0] Command Buffer 7", "[0] Compute Command 0", UNLABELLED, false),
            ("Command Buffer 0", "layers.0.mlp", "layers.mlp", false),
            ("Command Buffer zero", "", "Command Buffer zero", false),
            ("", "Acceleration Structure Command 2", UNLABELLED, false),
            ("", "Render Command 2", UNLABELLED, false),
            ("", "Render Commander", "Render Commander", false),
            ("Command Buffer 0", "l.0.rgb & l.1.stem", "l.rgb & l.stem", true),
            (
                "Command Buffer 0",
                "Compute Command 0 & Compute Command 1",
                UNLABELLED,
                true,
            ),
            ("Command Buffer 0", "Coelasced 4 Encoders", "Coelasced 4 Encoders", true),
            ("decode", "rgb & stem", "decode", false),
        ] {
            assert_eq!(
                phase(buffer, encoder),
                Key {
                    text: key.into(),
                    coalesced
                },
                "{buffer} / {encoder}"
            );
        }
    }

    #[test]
    fn b49_labels_with_indices_give_equal_keys() {
        let trace = |index: u64| {
            let mut builder = Builder::new();
            builder.submission(0, 100, "Compute", &format!("[{index}] layers.{index}.attn.qkv"), "x");
            builder.submission(
                500,
                40,
                "Compute",
                "Command Buffer 0",
                &format!("Compute Command {index}"),
            );
            builder.build()
        };
        let keys = |index| {
            attribute(&trace(index), &GroupBy::Phase(PhaseNames::default()))
                .groups
                .into_iter()
                .map(|g| g.key)
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(0), ["layers.attn.qkv", UNLABELLED]);
        assert_eq!(keys(0), keys(91));
    }

    #[test]
    fn b02_coalesced_labels_stay_whole() {
        let mut builder = Builder::new();
        builder
            .submission(0, 1000, "Compute", "", "blur")
            .submission(5000, 900, "Compute", "", "tone")
            .coalesced();
        let trace = builder.build();
        let groups = attribute(&trace, &GroupBy::Phase(PhaseNames::default())).groups;
        let rows: Vec<_> = groups
            .iter()
            .map(|g| (g.key.as_str(), g.stats.total.0, g.coalesced))
            .collect();
        assert_eq!(rows, [("blur", 1000, false), ("tone", 900, true)]);
    }

    #[test]
    fn b13_encoders_without_submissions_are_told() {
        let mut builder = Builder::new();
        builder.submission(0, 1000, "Compute", "p", "").ids(Some(1), Some(10));
        builder.ambiguous(2000, 700).ids(Some(3), Some(11));
        builder.unknown(5000, 50).ids(Some(9), Some(99));
        builder
            .encoder(1, "p", "", Some(5), true)
            .encoder(2, "p", "", Some(5), false);
        let trace = builder.build();
        let groups = attribute(&trace, &GroupBy::Phase(PhaseNames::default())).groups;
        let rows: Vec<_> = groups
            .iter()
            .map(|g| (g.key.as_str(), g.stats.total.0, g.encoders_without_submission))
            .collect();
        assert_eq!(
            rows,
            [
                ("p", 1000, Some((1, 2))),
                (AMBIGUOUS, 700, Some((0, 0))),
                (UNKNOWN, 50, Some((0, 0)))
            ]
        );
        assert_eq!(groups[0].stats.cpu_encode, Some(Nanos(5)));
        assert_eq!(groups[2].stats.cpu_encode, None);
    }

    #[test]
    fn every_bucket_is_there_in_edge_order() {
        let mut builder = Builder::new();
        builder.submission(0, 9_000, "Compute", "p", "e");
        let groups = attribute(&builder.build(), &GroupBy::Bucket(Buckets::default())).groups;
        assert_eq!(groups.iter().map(|g| g.key.as_str()).collect::<Vec<_>>(), DEFAULT_NAMES);
        assert_eq!(
            groups.iter().map(|g| g.stats.submissions).collect::<Vec<_>>(),
            [0, 0, 1, 0, 0]
        );
        assert_eq!(groups[0].stats.durations, None);
    }

    #[test]
    fn channels_by_total_then_key() {
        let mut builder = Builder::new();
        builder
            .submission(0, 10, "Vertex", "", "")
            .submission(20, 10, "Fragment", "", "");
        builder.submission(40, 50, "Compute", "", "");
        let groups = attribute(&builder.build(), &GroupBy::Channel).groups;
        assert_eq!(
            groups.iter().map(|g| g.key.as_str()).collect::<Vec<_>>(),
            ["Compute", "Fragment", "Vertex"]
        );
    }
}
