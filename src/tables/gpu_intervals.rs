//! `metal-gpu-intervals`: what the GPU ran and when, for every process of the machine.
//!
//! ```xml
//! <row><start-time …>782830041</start-time><duration …>505542</duration><gpu-channel-name …>Compute</…>…<metal-nesting-level …>0</…>
//! <formatted-label fmt="Command Buffer 0:Compute Command 0  (python (96601)) 0x3498a4b4"><string …>Command Buffer 0:Compute Command 0</string>…
//! ```
//! Traps: the window server's rows are in it even when one process was recorded; the process is a reference into
//! the label of an earlier row; an encoder can have several rows, so its id is no key.

use super::{ProcessId, Renumbered, Table, Texts, opt_u64};
use crate::error::Result;
use crate::model::{CommandBufferId, EncoderId, Label, LabelId, NameId, Names, Nanos, SubmissionId};
use crate::xml::{Cell, CellKind, ColumnIndex, Row, Schema};
use memchr::memmem;

/// One interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalRow {
    /// ns since the recording began; `None` when the trace has no usable value.
    pub start: Option<u64>,
    /// Length in ns; `None` when the trace has no usable value.
    pub duration: Option<u64>,
    /// `Compute`, `Vertex`, …
    pub channel: Option<NameId>,
    /// CPU to GPU latency.
    pub latency: Option<Nanos>,
    /// Lane; a nested row repeats a shallower one only when it lies inside it.
    pub depth: u32,
    /// What the row itself says about its labels.
    pub label: Option<LabelId>,
    /// Its process.
    pub process: Option<ProcessId>,
    /// GPU name.
    pub gpu: Option<NameId>,
    /// Its command buffer.
    pub command_buffer: Option<CommandBufferId>,
    /// Its encoder.
    pub encoder: Option<EncoderId>,
    /// Its submission.
    pub submission: Option<SubmissionId>,
}

/// Places of its columns.
pub struct Columns {
    start: ColumnIndex,
    duration: ColumnIndex,
    channel: Option<ColumnIndex>,
    latency: Option<ColumnIndex>,
    depth: Option<ColumnIndex>,
    label: Option<ColumnIndex>,
    process: Option<ColumnIndex>,
    gpu: Option<ColumnIndex>,
    command_buffer: Option<ColumnIndex>,
    encoder: Option<ColumnIndex>,
    submission: Option<ColumnIndex>,
}

impl Table for IntervalRow {
    const SCHEMA: &'static str = "metal-gpu-intervals";
    type Columns = Columns;

    fn bind(schema: &Schema) -> Result<Columns> {
        Ok(Columns {
            start: schema.column("start")?,
            duration: schema.column("duration")?,
            channel: schema.opt_column("channel-name"),
            latency: schema.opt_column("start-latency"),
            depth: schema.opt_column("event-depth"),
            label: schema.opt_column("event-label"),
            process: schema.opt_column("process"),
            gpu: schema.opt_column("gpu"),
            command_buffer: schema.opt_column("cmdbuffer-id"),
            encoder: schema.opt_column("encoder-id"),
            submission: schema.opt_column("gpu-submission-id"),
        })
    }

    fn read(row: &Row<'_>, columns: &Columns, texts: &mut Texts) -> Result<Self> {
        Ok(IntervalRow {
            start: row.time(columns.start)?,
            duration: row.time(columns.duration)?,
            channel: columns.channel.and_then(|at| texts.name(row, at)),
            latency: match columns.latency {
                Some(at) => row.time(at)?.map(Nanos),
                None => None,
            },
            depth: opt_u64(row, columns.depth)?.map_or(0, |depth| u32::try_from(depth).unwrap_or(u32::MAX)),
            label: columns
                .label
                .filter(|at| row.cell(*at).kind() != CellKind::Null)
                .map(|at| {
                    let cell = row.cell(at);
                    texts.label(row.key(at), |names| event_label(cell, names))
                }),
            process: match columns.process {
                Some(at) => texts.process(row, at)?,
                None => None,
            },
            gpu: columns.gpu.and_then(|at| texts.name(row, at)),
            command_buffer: opt_u64(row, columns.command_buffer)?.and_then(CommandBufferId::new),
            encoder: opt_u64(row, columns.encoder)?.and_then(EncoderId::new),
            submission: opt_u64(row, columns.submission)?.and_then(SubmissionId::new),
        })
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.name(&mut self.channel);
        ids.name(&mut self.gpu);
        ids.label(&mut self.label);
        ids.process(&mut self.process);
    }
}

/// `<command buffer label>:<encoder label>`, in whichever form this version of xctrace writes it.
fn event_label(cell: Cell<'_>, names: &mut Names) -> Label {
    let known = |own: &str, coalesced, names: &mut Names| {
        let (command_buffer, encoder) = split_label(own);
        Label::Known {
            command_buffer: names.intern(command_buffer),
            encoder: names.intern(encoder),
            coalesced,
        }
    };
    // Nearly always its own text is all that has to be looked at.
    if let Some(CellKind::Text(own)) = cell.child("string").map(|string| string.kind())
        && !cell.any_text(&|text| memmem::find(text.as_bytes(), COALESCED).is_some())
    {
        return known(own, false, names);
    }
    let whole = cell.text();
    let own = match cell.child("string") {
        Some(string) => string.text(),
        None => before_process(&whole).trim().to_owned(),
    };
    known(&own, is_coalesced(&whole), names)
}

/// The text before `( name (pid) )`, which some versions append; names may hold brackets themselves.
fn before_process(text: &str) -> &str {
    let bytes = text.as_bytes();
    // Brackets that are open here: a label of megabytes is still read in one go.
    let mut open = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' => {
                let digits = bytes
                    .iter()
                    .skip(at + 1)
                    .take_while(|byte| byte.is_ascii_digit())
                    .count();
                let mut after = bytes.iter().skip(at + 1 + digits);
                let closed =
                    digits > 0 && after.next() == Some(&b')') && after.find(|byte| **byte != b' ') == Some(&b')');
                // The bracket that this one stands in.
                if let (true, Some(outer)) = (closed, open.last()) {
                    return text.get(..*outer).unwrap_or(text);
                }
                open.push(at);
            }
            b')' => {
                open.pop();
            }
            _ => {}
        }
    }
    text
}

/// What both spellings end in, and hardly any label has.
const COALESCED: &[u8] = b"sced";

/// `Coelasced 4 Encoders` (Apple's spelling) somewhere in the text.
fn is_coalesced(text: &str) -> bool {
    ["Coelasced ", "Coalesced "].iter().any(|word| {
        text.match_indices(word).any(|(at, word)| {
            let rest = text.get(at + word.len()..).unwrap_or("");
            let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            after.len() < rest.len() && after.starts_with(" Encoder")
        })
    })
}

/// Names that Metal gives encoders, without their number.
const DEFAULT_ENCODERS: [&str; 4] = [
    "Compute Command",
    "Blit Command",
    "Render Command",
    "Acceleration Structure Command",
];

/// The two halves of a label; a label without a dividing `:` is an encoder's. Each rule goes once through the text.
fn split_label(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let single = |at: usize| {
        bytes.get(at) == Some(&b':')
            && bytes.get(at + 1) != Some(&b':')
            && (at == 0 || bytes.get(at - 1) != Some(&b':'))
    };
    let at = after_default_buffer(text)
        .filter(|at| single(*at))
        .or_else(|| before_default_encoder(text).filter(|at| single(*at)))
        .or_else(|| (0..text.len()).rev().find(|at| single(*at)));
    match at {
        Some(at) => (text.get(..at).unwrap_or(""), text.get(at + 1..).unwrap_or("")),
        None => ("", text),
    }
}

/// Where a leading `Command Buffer 0` ends.
fn after_default_buffer(text: &str) -> Option<usize> {
    let rest = text.trim_start().strip_prefix("Command Buffer")?;
    let rest = match rest.strip_prefix(' ') {
        Some(numbered) if numbered.starts_with(|c: char| c.is_ascii_digit()) => {
            numbered.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => rest,
    };
    Some(text.len() - rest.trim_start().len())
}

/// Where the `:` before a trailing `Compute Command 3` is.
fn before_default_encoder(text: &str) -> Option<usize> {
    let text = text.trim_end();
    let stem = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = if stem.len() < text.len() {
        stem.strip_suffix(' ')?
    } else {
        stem
    };
    let before = DEFAULT_ENCODERS.iter().find_map(|name| stem.strip_suffix(name))?;
    before.trim_end().len().checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b49_the_process_is_cut_off_a_label() {
        for (text, label) in [
            (
                "Command Buffer 0:attn.qkv      ( bench (77) )  0x154d189050",
                "Command Buffer 0:attn.qkv",
            ),
            ("tone      ( bench (77) )  Coelasced 4 Encoders", "tone"),
            ("a (b) c (Google Chrome Helper (Renderer) (123)) 0x1", "a (b) c"),
            ("f(x) (7)", "f(x) (7)"),
            ("(7))", "(7))"),
            ("a) ((7) )", "a)"),
            ("k", "k"),
        ] {
            assert_eq!(before_process(text).trim(), label);
        }
        // As long as a text may be, and never closed the right way: once through, not once for each bracket.
        let hostile = "(7)) ".repeat(3 << 20);
        assert_eq!(before_process(&hostile), hostile);
    }

    #[test]
    fn a_label_of_many_colons_is_split_in_one_go() {
        // Two hundred thousand digits and as many colons took minutes when each colon looked at all of them.
        let n = 200_000;
        let hostile = format!("Command Buffer {}a{}", "1".repeat(n), ":x".repeat(n));
        assert_eq!(split_label(&hostile).1, "x");
    }

    #[test]
    fn only_apples_words_make_a_label_coalesced() {
        assert!(is_coalesced("tone ( bench (77) )  Coelasced 4 Encoders"));
        assert!(!is_coalesced("Coalesced loads:enc"));
        assert!(!is_coalesced("Coalesced Encoders"));
    }

    #[test]
    fn labels_are_split_where_the_command_buffer_ends() {
        for (text, halves) in [
            ("Command Buffer 0:attn.qkv", ("Command Buffer 0", "attn.qkv")),
            ("Command Buffer 0:a:b", ("Command Buffer 0", "a:b")),
            (
                "decode: layer 1:Compute Command 3",
                ("decode: layer 1", "Compute Command 3"),
            ),
            ("phase:kernel<ns::f>", ("phase", "kernel<ns::f>")),
            ("ns::f", ("", "ns::f")),
            ("Compute Command 0", ("", "Compute Command 0")),
            ("a:b:c", ("a:b", "c")),
            (":x", ("", "x")),
            (
                "Command Buffer 0:Compute Command 0",
                ("Command Buffer 0", "Compute Command 0"),
            ),
            ("", ("", "")),
        ] {
            assert_eq!(split_label(text), halves, "{text}");
        }
    }
}
