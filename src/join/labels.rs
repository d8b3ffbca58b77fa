//! What a submission's encoder and command buffer are called, from the encoders list or from the GPU row itself.

use std::collections::HashMap;

use super::plural;
use super::process::Selection;
use crate::model::{CommandBufferId, Encoder, EncoderId, Label, LabelId, NameId, Names, Nanos, Note, Submission};
use crate::tables::Texts;
use crate::tables::encoders::EncoderRow;

/// The labels of a trace: those of the timing table's own rows, then what the encoders list adds. There can be as many
/// as encoders, when a program numbers its labels.
pub(super) struct Labels<'a> {
    texts: &'a Texts,
    pub(super) all: Vec<Label>,
    added: HashMap<Label, LabelId>,
}

impl<'a> Labels<'a> {
    pub(super) fn new(texts: &'a Texts) -> Self {
        Labels {
            texts,
            all: texts.labels().to_vec(),
            added: HashMap::new(),
        }
    }

    pub(super) fn id(&mut self, label: Label) -> LabelId {
        if let Some(id) = self.texts.label_id(&label) {
            return id;
        }
        let next = LabelId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let id = *self.added.entry(label.clone()).or_insert(next);
        if id == next {
            self.all.push(label);
        }
        id
    }

    /// What a label says, to order by.
    pub(super) fn texts_of<'n>(&self, id: LabelId, names: &'n Names) -> Option<(&'n str, &'n str, bool)> {
        match self.all.get(usize::try_from(id.0).ok()?)? {
            Label::Known {
                command_buffer,
                encoder,
                coalesced,
            } => Some((names.get(*command_buffer), names.get(*encoder), *coalesced)),
            Label::NoEncoder | Label::Ambiguous => None,
        }
    }
}

/// The encoders of the process.
pub(super) struct EncoderList {
    /// By id, each once.
    listed: Vec<ListedEncoder>,
    /// Where the last one was found: submissions come in nearly the order of their encoders.
    last: usize,
    no_encoder: LabelId,
    ambiguous: LabelId,
    /// Encoders with several rows that differ.
    ambiguous_ids: u64,
    differing_buffers: u64,
}

struct ListedEncoder {
    encoder: Encoder,
    command_buffer: Option<CommandBufferId>,
}

impl EncoderList {
    /// `None` when the trace has no encoder row of the process.
    pub(super) fn new(
        rows: Vec<EncoderRow>,
        selection: &Selection,
        labels: &mut Labels<'_>,
        names: &mut Names,
    ) -> Option<EncoderList> {
        let empty = names.intern("");
        let (no_encoder, ambiguous) = (labels.id(Label::NoEncoder), labels.id(Label::Ambiguous));
        // Labels are numbered in the order of the rows, and each is looked up once.
        let mut known: hashbrown::HashMap<(NameId, NameId), LabelId> = hashbrown::HashMap::new();
        let mut label = |row: &EncoderRow| {
            let texts = (row.command_buffer_label.unwrap_or(empty), row.label.unwrap_or(empty));
            *known.entry(texts).or_insert_with(|| {
                labels.id(Label::Known {
                    command_buffer: texts.0,
                    encoder: texts.1,
                    coalesced: false,
                })
            })
        };
        let new = |row: &EncoderRow, id: EncoderId, label: LabelId| ListedEncoder {
            encoder: Encoder {
                id,
                label,
                cpu_encode: row.cpu_encode,
                has_gpu_rows: false,
            },
            command_buffer: row.command_buffer,
        };
        let mut any = false;
        let of_row = |row: EncoderRow| {
            if !selection.has(row.process) {
                return None;
            }
            any = true;
            Some(new(&row, row.id?, label(&row)))
        };
        // In the same memory: there can be as many encoders as submissions.
        let mut listed: Vec<ListedEncoder> = rows.into_iter().filter_map(of_row).collect();
        if !any {
            return None;
        }
        // Stable: of the rows of one id, the first one's place counts.
        listed.sort_by_key(|listed| listed.encoder.id);
        let mut ambiguous_ids = 0u64;
        listed.dedup_by(|later, first| {
            if later.encoder.id != first.encoder.id {
                return false;
            }
            // Another label, or the same in another command buffer: nobody can say which encoder is meant.
            if first.encoder.label != later.encoder.label || first.command_buffer != later.command_buffer {
                ambiguous_ids += u64::from(first.encoder.label != ambiguous);
                first.encoder.label = ambiguous;
                first.command_buffer = None;
            }
            first.encoder.cpu_encode = match (first.encoder.cpu_encode, later.encoder.cpu_encode) {
                (Some(a), Some(b)) => Some(Nanos(a.0.saturating_add(b.0))),
                (a, b) => a.or(b),
            };
            true
        });
        Some(EncoderList {
            listed,
            last: 0,
            no_encoder,
            ambiguous,
            ambiguous_ids,
            differing_buffers: 0,
        })
    }

    /// The label of a submission, which is taken note of as one of its encoder's.
    pub(super) fn label(&mut self, submission: &Submission) -> LabelId {
        let Some(listed) = submission.encoder.and_then(|id| self.find(id)) else {
            return self.no_encoder;
        };
        listed.encoder.has_gpu_rows = true;
        let (label, command_buffer) = (listed.encoder.label, listed.command_buffer);
        // The same encoder id with another command buffer: not the same encoder, and nobody can say which.
        let differs = matches!((command_buffer, submission.command_buffer), (Some(a), Some(b)) if a != b);
        self.differing_buffers += u64::from(differs);
        if differs { self.ambiguous } else { label }
    }

    fn find(&mut self, id: EncoderId) -> Option<&mut ListedEncoder> {
        let is = |at: &usize| self.listed.get(*at).is_some_and(|listed| listed.encoder.id == id);
        let near = [self.last, self.last.wrapping_sub(1), self.last.wrapping_add(1)];
        self.last = match near.into_iter().find(is) {
            Some(at) => at,
            None => self.listed.binary_search_by_key(&id, |listed| listed.encoder.id).ok()?,
        };
        self.listed.get_mut(self.last)
    }

    /// Labels that could not be used.
    pub(super) fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        if self.differing_buffers > 0 {
            let text = format!(
                "{} with another command buffer than in the encoder's row: no label is used for them",
                plural(self.differing_buffers, "submission")
            );
            notes.push(Note::warning("command_buffer_differs", text));
        }
        let text = match self.ambiguous_ids {
            0 => return notes,
            1 => "1 encoder id has several rows with different labels: they are not used".to_owned(),
            several => format!("{several} encoder ids have several rows with different labels: they are not used"),
        };
        notes.push(Note::warning("ambiguous", text));
        notes
    }

    /// The encoders, by id.
    pub(super) fn into_encoders(self) -> Vec<Encoder> {
        self.listed.into_iter().map(|listed| listed.encoder).collect()
    }
}
