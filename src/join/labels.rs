//! What a submission's encoder and command buffer are called, from the encoders list or from the GPU row itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::process::Selection;
use super::{RunInput, plural};
use crate::model::{CommandBufferId, Encoder, EncoderId, Label, LabelId, Names, Nanos, Note, Submission};
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

/// The encoders of the process, by id.
pub(super) struct EncoderList {
    listed: BTreeMap<EncoderId, ListedEncoder>,
    no_encoder: LabelId,
    ambiguous: LabelId,
    with_gpu_rows: BTreeSet<EncoderId>,
    differing_buffers: u64,
}

struct ListedEncoder {
    label: LabelId,
    command_buffer: Option<CommandBufferId>,
    cpu_encode: Option<Nanos>,
}

impl EncoderList {
    /// `None` when the trace has no encoder row of the process.
    pub(super) fn new(
        input: &RunInput<'_>,
        selection: &Selection,
        labels: &mut Labels<'_>,
        names: &mut Names,
    ) -> Option<EncoderList> {
        let rows = encoder_rows(input, selection)?;
        let empty = names.intern("");
        let (no_encoder, ambiguous) = (labels.id(Label::NoEncoder), labels.id(Label::Ambiguous));
        let mut listed: BTreeMap<EncoderId, ListedEncoder> = BTreeMap::new();
        for row in rows {
            let Some(id) = row.id else { continue };
            let label = labels.id(Label::Known {
                command_buffer: row.command_buffer_label.unwrap_or(empty),
                encoder: row.label.unwrap_or(empty),
                coalesced: false,
            });
            let new = ListedEncoder {
                label,
                command_buffer: row.command_buffer,
                cpu_encode: None,
            };
            let encoder = listed.entry(id).or_insert(new);
            // Another label, or the same in another command buffer: nobody can say which encoder is meant.
            if encoder.label != label || encoder.command_buffer != row.command_buffer {
                encoder.label = ambiguous;
                encoder.command_buffer = None;
            }
            encoder.cpu_encode = match (encoder.cpu_encode, row.cpu_encode) {
                (Some(a), Some(b)) => Some(Nanos(a.0.saturating_add(b.0))),
                (a, b) => a.or(b),
            };
        }
        Some(EncoderList {
            listed,
            no_encoder,
            ambiguous,
            with_gpu_rows: BTreeSet::new(),
            differing_buffers: 0,
        })
    }

    /// The label of a submission, which is taken note of as one of its encoder's.
    pub(super) fn label(&mut self, submission: &Submission) -> LabelId {
        self.with_gpu_rows.extend(submission.encoder);
        match submission.encoder.and_then(|id| self.listed.get(&id)) {
            None => self.no_encoder,
            Some(encoder) => {
                // The same encoder id with another command buffer: not the same encoder, and nobody can say which.
                let differs =
                    matches!((encoder.command_buffer, submission.command_buffer), (Some(a), Some(b)) if a != b);
                self.differing_buffers += u64::from(differs);
                if differs { self.ambiguous } else { encoder.label }
            }
        }
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
        let text = match self
            .listed
            .values()
            .filter(|encoder| encoder.label == self.ambiguous)
            .count()
        {
            0 => return notes,
            1 => "1 encoder id has several rows with different labels: they are not used".to_owned(),
            several => format!("{several} encoder ids have several rows with different labels: they are not used"),
        };
        notes.push(Note::warning("ambiguous", text));
        notes
    }

    /// The encoders, by id.
    pub(super) fn into_encoders(self) -> Vec<Encoder> {
        let with_gpu_rows = self.with_gpu_rows;
        let encoders = self.listed.into_iter().map(|(id, encoder)| Encoder {
            id,
            label: encoder.label,
            cpu_encode: encoder.cpu_encode,
            has_gpu_rows: with_gpu_rows.contains(&id),
        });
        encoders.collect()
    }
}

/// The rows of the encoders list that belong to the process; `None` when there are none.
fn encoder_rows<'a>(input: &RunInput<'a>, selection: &Selection) -> Option<Vec<&'a EncoderRow>> {
    let rows: Vec<_> = input
        .run
        .encoders
        .as_ref()?
        .iter()
        .filter(|row| selection.has(row.process))
        .collect();
    (!rows.is_empty()).then_some(rows)
}
