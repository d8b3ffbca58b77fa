//! A made-up decode workload: two engines that answer with the same model, one labelled and fine-grained, one with
//! Metal's default labels and fewer, longer submissions.
//!
//! Everything follows from (engine, tokens, seed, scale) by integer arithmetic, so it is the same on every machine.
//! Tokens are made one at a time: an export of gigabytes needs no more memory than its table of ids.
//! Times lie on the GPU's 24 MHz grid: `ticks * 1000 / 24` ns, truncated, as in real traces.

use std::io::{self, Write};

use super::export::{
    CHANNEL_COMPUTE, CHANNEL_FRAGMENT, CHANNEL_VERTEX, EncoderRow, ExecutionPoint, ExportBuilder, GpuInfo, GpuInterval,
    Ids, Label, MapRow, PerformanceState, Process, Row, Shader, ShaderInterval, Style, TableSpec, ThermalState, Thread,
};
use super::toc::{Run, Toc, TocTable};

/// Small, seeded, and good enough for noise (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to `high`, both possible.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// `value` times something within ± `ppm` millionths.
    pub fn around(&mut self, value: u64, ppm: u64) -> u64 {
        let factor = 1_000_000 - ppm + self.between(0, 2 * ppm);
        value * factor / 1_000_000
    }
}

const TICKS_PER_US: u64 = 24;

/// Ticks to nanoseconds, truncated.
pub fn nanos(ticks: u64) -> u64 {
    ticks * 1000 / 24
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Labels its command buffers, many small submissions.
    Hf2q,
    /// Default labels only.
    Llama,
}

/// One piece of work per layer or per token.
struct Op {
    /// The phase, appended to the engine's prefix; empty: the command buffer keeps its default label.
    phase: &'static str,
    /// Empty: the encoder keeps its default label.
    encoder: &'static str,
    /// Durations of its submissions in tenths of a µs.
    parts: &'static [u64],
    /// How far it starts before its predecessor ends, in ticks.
    overlap: u64,
    /// How many encoders the driver merged into this one.
    merged: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Compute,
    /// Grows with the number of tokens so far.
    Attention,
    Blit,
}

const fn op(phase: &'static str, encoder: &'static str, parts: &'static [u64]) -> Op {
    Op {
        phase,
        encoder,
        parts,
        overlap: 0,
        merged: 0,
        kind: Kind::Compute,
    }
}

const HF2Q_HEAD: &[Op] = &[op("embed", "", &[13])];
const HF2Q_LAYER: &[Op] = &[
    op("attn.qkv", "", &[180, 50]),
    Op {
        kind: Kind::Attention,
        ..op("attn.core", "", &[450])
    },
    op("attn.out", "", &[120]),
    Op {
        overlap: 48,
        merged: 2,
        ..op("ffn.gate_up", "ffn.gate & ffn.up", &[260])
    },
    op("ffn.down", "", &[200, 14]),
];
const HF2Q_TAIL: &[Op] = &[op("lm_head", "", &[1820]), op("", "sampling.argmax", &[60])];
const HF2Q_BLIT: Op = Op {
    kind: Kind::Blit,
    ..op("", "", &[11])
};

const LLAMA_HEAD: &[Op] = &[op("", "", &[12])];
const LLAMA_LAYER: &[Op] = &[
    op("", "", &[310]),
    Op {
        kind: Kind::Attention,
        ..op("", "", &[360])
    },
    Op {
        overlap: 36,
        ..op("", "", &[230])
    },
    op("", "", &[240]),
];
const LLAMA_TAIL: &[Op] = &[op("", "", &[1660]), op("", "", &[55])];
const LLAMA_BLIT: Op = Op {
    kind: Kind::Blit,
    ..op("", "", &[28])
};

/// What to make. `scale` multiplies the layers of a token; three of them at 1.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub engine: Engine,
    pub tokens: u64,
    pub seed: u64,
    pub scale: u64,
    /// A phase of every layer, and by how many thousandths it takes longer.
    pub slower: Option<(&'static str, u64)>,
}

/// Everything that runs for one token, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Token {
    pub number: u64,
    pub buffers: Vec<CommandBuffer>,
    /// Vertex and fragment work of the window server: commit time, then its two submissions.
    pub desktop: Vec<Desktop>,
}

#[derive(Clone, Debug)]
pub struct CommandBuffer {
    pub id: u64,
    pub label: String,
    pub commit: u64,
    pub encoders: Vec<Encoder>,
}

#[derive(Clone, Debug)]
pub struct Encoder {
    pub id: u64,
    pub label: String,
    pub index: u64,
    pub merged: u64,
    pub encode_start: u64,
    pub encode_ns: u64,
    pub submissions: Vec<Submission>,
}

#[derive(Clone, Copy, Debug)]
pub struct Submission {
    pub id: u64,
    pub channel: Channel,
    pub start: u64,
    pub end: u64,
    pub latency: u64,
}

#[derive(Clone, Debug)]
pub struct Desktop {
    pub command_buffer: u64,
    pub encoder: u64,
    pub commit: u64,
    pub vertex: Submission,
    pub fragment: Submission,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    Compute,
    Vertex,
    Fragment,
}

impl Channel {
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "Compute",
            Self::Vertex => "Vertex",
            Self::Fragment => "Fragment",
        }
    }

    pub fn number(self) -> u64 {
        match self {
            Self::Compute => CHANNEL_COMPUTE,
            Self::Vertex => CHANNEL_VERTEX,
            Self::Fragment => CHANNEL_FRAGMENT,
        }
    }
}

/// Makes the tokens one after the other.
pub struct Tokens {
    workload: Workload,
    rng: Rng,
    next: u64,
    /// This trial's own speed, in millionths.
    speed: u64,
    cpu: u64,
    gpu: u64,
    next_object: u64,
    next_desktop_object: u64,
    next_submission: u64,
}

impl Iterator for Tokens {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        if self.next == self.workload.tokens {
            return None;
        }
        let number = self.next;
        self.next += 1;
        // The host waits for the last token, samples, and begins to encode.
        self.cpu = self.gpu + self.rng.between(60 * TICKS_PER_US, 120 * TICKS_PER_US);
        let mut token = Token {
            number,
            ..Token::default()
        };
        if number % 6 == 2 {
            token.desktop.push(self.desktop());
        }
        match self.workload.engine {
            Engine::Hf2q => self.hf2q(&mut token),
            Engine::Llama => self.llama(&mut token),
        }
        Some(token)
    }
}

impl Tokens {
    fn hf2q(&mut self, token: &mut Token) {
        let layers = 3 * self.workload.scale;
        self.buffers(token, "hf2q.decode", HF2Q_HEAD);
        for layer in 0..layers {
            self.buffers(token, &format!("hf2q.decode.layer.{layer}"), HF2Q_LAYER);
        }
        self.buffers(token, "hf2q.decode", HF2Q_TAIL);
        if token.number % 4 == 3 {
            self.buffers(token, "", &[HF2Q_BLIT]);
        }
    }

    /// One command buffer per piece of work.
    fn buffers(&mut self, token: &mut Token, prefix: &str, ops: &[Op]) {
        for op in ops {
            let label = if op.phase.is_empty() {
                String::new()
            } else {
                format!("{prefix}.{}", op.phase)
            };
            let buffer = self.buffer(&label, token.number, &[op]);
            token.buffers.push(buffer);
        }
    }

    /// Two command buffers per token with many encoders each.
    fn llama(&mut self, token: &mut Token) {
        let layers = 3 * self.workload.scale;
        let mut ops: Vec<&Op> = LLAMA_HEAD.iter().collect();
        for _ in 0..layers {
            ops.extend(LLAMA_LAYER);
        }
        ops.extend(LLAMA_TAIL);
        if token.number % 4 == 3 {
            ops.push(&LLAMA_BLIT);
        }
        let (first, second) = ops.split_at(ops.len() / 3);
        for part in [first, second] {
            let buffer = self.buffer("", token.number, part);
            token.buffers.push(buffer);
        }
    }

    fn buffer(&mut self, label: &str, token: u64, ops: &[&Op]) -> CommandBuffer {
        let id = self.object();
        let label = if label.is_empty() { "Command Buffer 0" } else { label }.to_owned();
        let mut encoders = Vec::with_capacity(ops.len());
        for (index, op) in ops.iter().enumerate() {
            let encode_start = self.cpu;
            self.cpu += self.rng.between(2 * TICKS_PER_US, 9 * TICKS_PER_US);
            let index = index as u64;
            let label = match (op.encoder, op.kind) {
                ("", Kind::Blit) => format!("Blit Command {index}"),
                ("", _) => format!("Compute Command {index}"),
                (own, _) => own.to_owned(),
            };
            let encode_ns = nanos(self.cpu) - nanos(encode_start);
            let encode_start = nanos(encode_start);
            let id = self.object();
            encoders.push(Encoder {
                id,
                label,
                index,
                merged: op.merged,
                encode_start,
                encode_ns,
                submissions: Vec::new(),
            });
        }
        self.cpu += self.rng.between(TICKS_PER_US / 2, TICKS_PER_US);
        let commit = self.cpu;
        for (encoder, op) in encoders.iter_mut().zip(ops) {
            for (part, tenths) in op.parts.iter().enumerate() {
                let mut ticks = tenths * TICKS_PER_US / 10;
                if op.kind == Kind::Attention {
                    ticks += token * 2;
                }
                let ticks = self.rng.around(self.in_this_trial(op, ticks), 15_000).max(1);
                let gap = self.rng.between(TICKS_PER_US / 2, 2 * TICKS_PER_US);
                let overlap = if part == 0 { op.overlap } else { 0 };
                let earliest = commit + self.rng.between(8 * TICKS_PER_US, 14 * TICKS_PER_US);
                let after = if overlap > 0 {
                    self.gpu - overlap
                } else {
                    self.gpu + gap
                };
                let submission = self.submission(Channel::Compute, after.max(earliest), ticks, commit);
                encoder.submissions.push(submission);
            }
        }
        CommandBuffer {
            id,
            label,
            commit: nanos(commit),
            encoders,
        }
    }

    /// Every trial has its own speed, and every kind of work a little of its own besides.
    fn in_this_trial(&self, op: &Op, ticks: u64) -> u64 {
        let own = Rng::new(self.workload.seed << 32 | op.parts[0]).around(1_000_000, 4_000);
        let build = match self.workload.slower {
            Some((phase, thousandths)) if phase == op.phase => 1_000 + thousandths,
            _ => 1_000,
        };
        ticks * self.speed / 1_000_000 * own / 1_000_000 * build / 1_000
    }

    fn submission(&mut self, channel: Channel, start: u64, ticks: u64, commit: u64) -> Submission {
        let id = self.next_submission;
        self.next_submission += 2;
        self.gpu = self.gpu.max(start + ticks);
        Submission {
            id,
            channel,
            start: nanos(start),
            end: nanos(start + ticks),
            latency: nanos(start) - nanos(commit),
        }
    }

    /// One render encoder: the vertex part has the submission id after the fragment part's.
    fn desktop(&mut self) -> Desktop {
        let commit = self.cpu;
        let command_buffer = self.next_desktop_object;
        self.next_desktop_object += 2;
        let start = commit + 40 * TICKS_PER_US;
        let (gpu, id) = (self.gpu, self.next_submission);
        let vertex_ticks = self.rng.between(8 * TICKS_PER_US, 10 * TICKS_PER_US);
        let fragment_ticks = self.rng.between(70 * TICKS_PER_US, 90 * TICKS_PER_US);
        let vertex = Submission {
            id: id + 1,
            ..self.submission(Channel::Vertex, start, vertex_ticks, commit)
        };
        let after = start + vertex_ticks + 5;
        let fragment = Submission {
            id,
            ..self.submission(Channel::Fragment, after, fragment_ticks, commit)
        };
        // The desktop runs beside the engine and does not hold it up.
        self.gpu = gpu;
        Desktop {
            command_buffer,
            encoder: command_buffer + 1,
            commit: nanos(commit),
            vertex,
            fragment,
        }
    }

    fn object(&mut self) -> u64 {
        self.next_object += 1;
        self.next_object
    }
}

impl Workload {
    pub fn new(engine: Engine, tokens: u64, seed: u64, scale: u64) -> Self {
        Self {
            engine,
            tokens,
            seed,
            scale,
            slower: None,
        }
    }

    /// The same with one phase slower by so many thousandths.
    pub fn with_slower(self, phase: &'static str, thousandths: u64) -> Self {
        Self {
            slower: Some((phase, thousandths)),
            ..self
        }
    }

    pub fn process(&self) -> Process {
        match self.engine {
            Engine::Hf2q => Process::new("hf2q", 4200 + self.seed),
            Engine::Llama => Process::new("llama-cli", 5200 + self.seed),
        }
    }

    pub fn window_server(&self) -> Process {
        Process::new("WindowServer", 188)
    }

    pub fn gpu(&self) -> &'static str {
        "M5 Max"
    }

    pub fn tokens(&self) -> Tokens {
        let engine = match self.engine {
            Engine::Hf2q => 0x6866_3272,
            Engine::Llama => 0x6c6c_616d,
        };
        let mut rng = Rng::new(engine ^ (self.seed << 32));
        let speed = rng.around(1_000_000, 12_000);
        let start = rng.between(20_000_000, 22_000_000);
        Tokens {
            workload: *self,
            speed,
            next: 0,
            cpu: start,
            gpu: start,
            next_object: 0x63_3980_0000 + self.seed * 0x10_0000,
            next_desktop_object: 0x089_9f00,
            next_submission: 0x3400_0000 + self.seed * 0x10_0000,
            rng,
        }
    }

    /// The end of the last submission.
    pub fn end_ns(&self) -> u64 {
        let ends = |token: Token| {
            token
                .submissions()
                .map(|(_, _, submission)| submission.end)
                .max()
                .unwrap_or(0)
        };
        self.tokens().map(ends).max().unwrap_or(0)
    }

    /// All schemas that [`Self::write`] knows.
    pub const SCHEMAS: &'static [&'static str] = &[
        GpuInterval::TABLE.schema,
        ExecutionPoint::TABLE.schema,
        MapRow::TABLE.schema,
        EncoderRow::TABLE.schema,
        Shader::TABLE.schema,
        ShaderInterval::TABLE.schema,
        GpuInfo::TABLE.schema,
        ThermalState::TABLE.schema,
        PerformanceState::TABLE.schema,
    ];

    /// One table as a whole document.
    pub fn write(&self, schema: &str, out: impl Write, style: Style) -> io::Result<()> {
        let mut export = ExportBuilder::with_style(out, style);
        self.write_table(schema, &mut export);
        export.finish()
    }

    /// One table as a node of a document.
    pub fn write_table(&self, schema: &str, export: &mut ExportBuilder<'_>) {
        fn put<R: Row>(export: &mut ExportBuilder<'_>, table: TableSpec, rows: impl Iterator<Item = R>) {
            export.table(table).rows(rows);
        }
        match schema {
            "metal-gpu-intervals" => put(export, GpuInterval::TABLE, self.intervals()),
            "metal-gpu-execution-points" => put(export, ExecutionPoint::TABLE, self.points()),
            "metal-gpu-submission-to-command-buffer-id" => put(export, MapRow::TABLE, self.map()),
            "metal-application-encoders-list" => put(export, EncoderRow::TABLE, self.encoders()),
            "metal-shader-profiler-shader-list" => put(export, Shader::TABLE, self.shaders().into_iter()),
            // Recorded without Shader Timeline, as every trace of the command line is.
            "metal-shader-profiler-intervals" => {
                put(export, ShaderInterval::TABLE, std::iter::empty::<ShaderInterval>());
            }
            "metal-gpu-info" => {
                let info = GpuInfo {
                    gpu: self.gpu().to_owned(),
                    accelerator: 1463,
                };
                put(export, GpuInfo::TABLE, std::iter::once(info));
            }
            "device-thermal-state-intervals" => put(export, ThermalState::TABLE, self.thermal().into_iter()),
            "gpu-performance-state-intervals" => {
                put(export, PerformanceState::TABLE, self.performance().into_iter());
            }
            other => panic!("no table {other} in the workload"),
        }
    }

    pub fn intervals(&self) -> impl Iterator<Item = GpuInterval> + use<> {
        let (workload, process, server) = (*self, self.process(), self.window_server());
        self.tokens().flat_map(move |token| {
            let mut rows: Vec<GpuInterval> = Vec::new();
            for (buffer, encoder, submission) in token.submissions() {
                let owner = if buffer.is_some() { &process } else { &server };
                let desktop = token.desktop.first();
                let (command_buffer, encoder_id, text) = match (buffer, encoder) {
                    (Some(buffer), Some(encoder)) => {
                        (buffer.id, encoder.id, format!("{}:{}", buffer.label, encoder.label))
                    }
                    _ => {
                        let written = submission.channel == Channel::Fragment;
                        let text = if written {
                            "Read Surface: 16 -> Write Surface: 15"
                        } else {
                            ""
                        };
                        let desktop = desktop.expect("a submission without buffer is the desktop's");
                        (desktop.command_buffer, desktop.encoder, text.to_owned())
                    }
                };
                let ids = Ids {
                    command_buffer,
                    encoder: encoder_id,
                    submission: submission.id,
                };
                let surfaces = match submission.channel {
                    Channel::Fragment => "Read Surface: 16(2560×1440:83b&) -> Write Surface: 15(2560×1440:83b&)",
                    _ => "",
                };
                rows.push(GpuInterval {
                    channel: Some(submission.channel.name().to_owned()),
                    frame: Some(token.number + 1),
                    latency: Some(submission.latency),
                    color: if buffer.is_some() { 0 } else { 3 },
                    gpu: workload.gpu().to_owned(),
                    surfaces: surfaces.to_owned(),
                    label: Some(Label::Parts {
                        text,
                        process: owner.clone(),
                        submission: submission.id,
                    }),
                    ..GpuInterval::new(submission.start, submission.end - submission.start, "", owner, ids)
                });
            }
            rows.sort_by_key(|row| row.start);
            rows
        })
    }

    pub fn points(&self) -> impl Iterator<Item = ExecutionPoint> + use<> {
        self.tokens().flat_map(|token| {
            let mut rows = Vec::new();
            for (_, _, submission) in token.submissions() {
                for (function, time) in [(1, submission.start), (2, submission.end)] {
                    let channel = submission.channel.number();
                    rows.push(ExecutionPoint {
                        time,
                        channel,
                        function,
                        submission: submission.id,
                    });
                }
            }
            // At the same time an end stands before a start.
            rows.sort_by_key(|row| (row.time, std::cmp::Reverse(row.function)));
            rows
        })
    }

    pub fn map(&self) -> impl Iterator<Item = MapRow> + use<> {
        let (process, server) = (self.process(), self.window_server());
        self.tokens().flat_map(move |token| {
            let mut rows = Vec::new();
            for desktop in &token.desktop {
                let Desktop {
                    command_buffer,
                    encoder,
                    commit,
                    fragment,
                    ..
                } = *desktop;
                rows.extend(MapRow::pair(
                    commit,
                    Ids {
                        command_buffer,
                        encoder,
                        submission: fragment.id,
                    },
                    &server,
                    0,
                ));
            }
            for buffer in &token.buffers {
                for encoder in &buffer.encoders {
                    for submission in &encoder.submissions {
                        let ids = Ids {
                            command_buffer: buffer.id,
                            encoder: encoder.id,
                            submission: submission.id,
                        };
                        rows.extend(MapRow::pair(buffer.commit, ids, &process, encoder.merged));
                    }
                }
            }
            rows
        })
    }

    pub fn encoders(&self) -> impl Iterator<Item = EncoderRow> + use<> {
        let (process, gpu) = (self.process(), self.gpu());
        let thread = Thread {
            name: "Main Thread".to_owned(),
            tid: 0x9_d000 + self.seed,
            process,
        };
        self.tokens().flat_map(move |token| {
            let mut rows = Vec::new();
            for buffer in &token.buffers {
                for encoder in &buffer.encoders {
                    rows.push(EncoderRow {
                        start: encoder.encode_start,
                        duration: encoder.encode_ns,
                        thread: thread.clone(),
                        gpu: gpu.to_owned(),
                        frame: token.number + 1,
                        buffer_label: buffer.label.clone(),
                        buffer_index: 0,
                        label: encoder.label.clone(),
                        index: encoder.index,
                        command_buffer: buffer.id,
                        encoder: encoder.id,
                    });
                }
            }
            rows
        })
    }

    pub fn shaders(&self) -> Vec<Shader> {
        let names: &[&str] = match self.engine {
            Engine::Hf2q => &[
                "kernel_rms_norm_f32",
                "kernel_mul_mv_q4_0_f32",
                "kernel_mul_mv_q6_K_f32",
                "kernel_rope_neox_f32",
                "kernel_kv_cache_copy_f16",
                "kernel_flash_attn_ext_vec_f16_dk128_dv128",
                "kernel_mul_mv_id_q4_0_f32",
                "kernel_mul_mv_id_q6_K_f32",
                "kernel_swiglu_f32",
                "kernel_residual_add_f32",
                "kernel_argmax_f32",
                "fused_gate_up|q4_0",
            ],
            Engine::Llama => &[
                "kernel_get_rows_q4_0",
                "kernel_rms_norm_mul_f32_4",
                "kernel_mul_mv_q4_0_f32",
                "kernel_mul_mv_q8_0_f32",
                "kernel_rope_neox_f32",
                "kernel_cpy_f32_f16",
                "kernel_flash_attn_ext_vec_f16_dk128_dv128",
                "kernel_mul_mv_id_q4_0_f32",
                "kernel_swiglu_f32",
                "kernel_argmax_f32",
            ],
        };
        let shader = |at: u64, name: &str, kind: &str, process: Process| {
            let pc_start = 0x0100_0100_0000 + at * 0x400;
            Shader {
                time: nanos(12_000_000 + at * 2_400),
                function: name.to_owned(),
                id: at + 2 + self.seed,
                pc_start,
                pc_end: pc_start + 0x200 + at * 8,
                kind: kind.to_owned(),
                process,
                gpu: self.gpu().to_owned(),
            }
        };
        let mut rows: Vec<Shader> = (0..)
            .zip(names)
            .map(|(at, name)| shader(at, name, "Compute", self.process()))
            .collect();
        rows.push(shader(
            names.len() as u64,
            "composite_fs",
            "Fragment",
            self.window_server(),
        ));
        rows
    }

    /// The recording ends a little after the last submission.
    pub fn recorded_ns(&self) -> u64 {
        (self.end_ns() + 50_000_000) / 1000 * 1000
    }

    pub fn thermal(&self) -> Vec<ThermalState> {
        vec![ThermalState {
            start: 0,
            end: self.recorded_ns(),
            state: "Nominal".to_owned(),
            induced: false,
        }]
    }

    /// Low before the work, high during it, with the short gaps that real tables have.
    pub fn performance(&self) -> Vec<PerformanceState> {
        let first = self.tokens().next().map_or(0, |token| token.buffers[0].commit);
        let (gpu, half) = (self.gpu().to_owned(), (self.end_ns() - first) / 2);
        let row = |start, duration, state: &str| PerformanceState {
            start,
            duration,
            state: state.to_owned(),
            gpu: gpu.clone(),
            induced: false,
        };
        vec![
            row(1_000_000, first - 1_500_000, "Minimum"),
            row(first - 250_000, half, "Maximum"),
            row(first + half, half + 1_000_000, "Maximum"),
        ]
    }

    /// When the trial was recorded: the engines take turns as A B B A A B, so that a drift is no change.
    fn minute(&self) -> u64 {
        let first = (self.seed % 2 == 1) == (self.engine == Engine::Hf2q);
        2 * self.seed - u64::from(first)
    }

    pub fn toc(&self, schemas: &[&str]) -> Toc {
        let mut run = Run::new(1, &self.process(), self.recorded_ns() / 1000);
        let minute = self.minute();
        run.start = format!("2026-09-01T10:{minute:02}:00.000+00:00");
        run.end = format!("2026-09-01T10:{minute:02}:02.000+00:00");
        run.tables = schemas.iter().map(|schema| TocTable::new(schema)).collect();
        for table in &mut run.tables {
            if matches!(
                table.schema.as_str(),
                "metal-gpu-intervals" | "metal-application-encoders-list"
            ) {
                *table = table.clone().with("target-pid", "SINGLE");
            }
        }
        Toc { runs: vec![run] }
    }
}

impl Token {
    /// The engine's submissions with buffer and encoder, then the desktop's without.
    pub fn submissions(&self) -> impl Iterator<Item = (Option<&CommandBuffer>, Option<&Encoder>, Submission)> + '_ {
        let own = self.buffers.iter().flat_map(|buffer| {
            buffer.encoders.iter().flat_map(move |encoder| {
                encoder
                    .submissions
                    .iter()
                    .map(move |submission| (Some(buffer), Some(encoder), *submission))
            })
        });
        let desktop = self
            .desktop
            .iter()
            .flat_map(|desktop| [desktop.vertex, desktop.fragment]);
        own.chain(desktop.map(|submission| (None, None, submission)))
    }
}
