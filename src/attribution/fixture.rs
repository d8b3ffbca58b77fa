//! Small traces for unit tests, built call by call.

use crate::model::{
    CommandBufferId, Encoder, EncoderId, Label, LabelId, LeftOut, Names, Nanos, Process, RecordingState, Submission,
    Timestamp, Timing, Trace, Window, WindowFound,
};

pub(crate) fn window(from: u64, to: u64) -> Window {
    Window {
        from: Timestamp(from),
        to: Timestamp(to),
    }
}

/// A trace in the making.
pub(crate) struct Builder {
    trace: Trace,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder {
            trace: Trace {
                run: 1,
                process: Process {
                    name: "bench".into(),
                    pid: Some(77),
                },
                timing: Timing::Intervals,
                gpu: Some("M5 Max".into()),
                names: Names::default(),
                labels: Vec::new(),
                submissions: Vec::new(),
                encoders: None,
                window: window(0, 0),
                window_found: WindowFound::Given,
                submissions_in_process: 0,
                rows_read: 0,
                left_out: LeftOut::default(),
                cross_check: None,
                kernels: None,
                shader_timeline_rows: None,
                shader_samples: Vec::new(),
                shader_sampled_span: None,
                state: RecordingState::default(),
                notes: Vec::new(),
                fingerprint: 0,
            },
        }
    }

    fn label(&mut self, label: Label) -> LabelId {
        let at = self
            .trace
            .labels
            .iter()
            .position(|known| *known == label)
            .unwrap_or_else(|| {
                self.trace.labels.push(label);
                self.trace.labels.len() - 1
            });
        LabelId(u32::try_from(at).unwrap())
    }

    fn known(&mut self, buffer: &str, encoder: &str) -> Label {
        let names = &mut self.trace.names;
        Label::Known {
            command_buffer: names.intern(buffer),
            encoder: names.intern(encoder),
            coalesced: false,
        }
    }

    fn push(&mut self, start: u64, duration: u64, channel: &str, label: Label) -> &mut Self {
        let label = self.label(label);
        let channel = self.trace.names.intern(channel);
        self.trace.submissions.push(Submission {
            start: Timestamp(start),
            duration: Nanos(duration),
            id: None,
            encoder: None,
            command_buffer: None,
            latency: None,
            channel,
            label,
        });
        self
    }

    pub(crate) fn submission(&mut self, start: u64, ns: u64, channel: &str, buffer: &str, encoder: &str) -> &mut Self {
        let label = self.known(buffer, encoder);
        self.push(start, ns, channel, label)
    }

    pub(crate) fn unknown(&mut self, start: u64, ns: u64) -> &mut Self {
        self.push(start, ns, "Compute", Label::NoEncoder)
    }

    pub(crate) fn ambiguous(&mut self, start: u64, ns: u64) -> &mut Self {
        self.push(start, ns, "Compute", Label::Ambiguous)
    }

    pub(crate) fn ids(&mut self, encoder: Option<u64>, buffer: Option<u64>) -> &mut Self {
        let last = self.trace.submissions.last_mut().unwrap();
        last.encoder = encoder.and_then(EncoderId::new);
        last.command_buffer = buffer.and_then(CommandBufferId::new);
        self
    }

    pub(crate) fn latency(&mut self, ns: u64) -> &mut Self {
        self.trace.submissions.last_mut().unwrap().latency = Some(Nanos(ns));
        self
    }

    pub(crate) fn coalesced(&mut self) -> &mut Self {
        let id = self.trace.submissions.last().unwrap().label;
        let mut label = self.trace.label(id).clone();
        if let Label::Known { coalesced, .. } = &mut label {
            *coalesced = true;
        }
        let id = self.label(label);
        self.trace.submissions.last_mut().unwrap().label = id;
        self
    }

    pub(crate) fn encoder(
        &mut self,
        id: u64,
        buffer: &str,
        encoder: &str,
        encode: Option<u64>,
        has_gpu_rows: bool,
    ) -> &mut Self {
        let label = self.known(buffer, encoder);
        let label = self.label(label);
        self.trace.encoders.get_or_insert_with(Vec::new).push(Encoder {
            id: EncoderId::new(id).unwrap(),
            label,
            cpu_encode: encode.map(Nanos),
            has_gpu_rows,
        });
        self
    }

    /// Sorted, with the window from the first start to the last end.
    pub(crate) fn build(&self) -> Trace {
        let mut trace = self.trace.clone();
        trace.submissions.sort_by_key(|s| (s.start, s.end()));
        trace.submissions_in_process = trace.submissions.len() as u64;
        trace.rows_read = trace.submissions_in_process;
        trace.window = Window {
            from: trace.submissions.first().map_or(Timestamp(0), |s| s.start),
            to: trace
                .submissions
                .iter()
                .map(Submission::end)
                .max()
                .unwrap_or(Timestamp(0)),
        };
        trace
    }
}
