//! The checked-in fixtures, as one list of paths and bytes: the generator writes it, a test compares with it.
//!
//! `demo/` is a comparison worth looking at, `good/` must be read, `refused/` must end in an error. Every small file is
//! named for the one trap that it holds; `good/plain.xml` is the same table without a trap.

use super::export::{
    CHANNEL_COMPUTE, Cell, DRIVER_INTERVALS, ENCODERS_LIST, EXECUTION_POINTS, Element, EncoderRow, ExecutionPoint,
    ExportBuilder, Form, GPU_INTERVALS, GpuInterval, IdStyle, Ids, Label, Locale, MapRow, Process, Row,
    SHADER_INTERVALS, SHADER_LIST, SIGNPOSTS, SUBMISSION_MAP, Shader, ShaderInterval, SignpostEvent, Style, Thread,
};
use super::pack;
use super::toc::{Run, Toc, TocTable};
use super::workload::{Engine, Workload};

/// Where a fixture goes below `fixtures/`, and its bytes.
pub type File = (String, Vec<u8>);

/// Every fixture, in a fixed order.
pub fn all() -> Vec<File> {
    let mut files = Vec::new();
    for seed in 1..=3 {
        demo("hf2q", Engine::Hf2q, seed, &mut files);
        demo("llama", Engine::Llama, seed, &mut files);
    }
    good(&mut files);
    refused(&mut files);
    files
}

// ---------------------------------------------------------------------------------------------- demo

pub const DEMO_TOKENS: u64 = 64;

fn demo(name: &str, engine: Engine, seed: u64, files: &mut Vec<File>) {
    let workload = Workload::new(engine, DEMO_TOKENS, seed, 1);
    let folder = format!("demo/{name}-{seed}");
    files.push((
        format!("{folder}/toc.xml"),
        workload.toc(Workload::SCHEMAS).to_xml().into_bytes(),
    ));
    for schema in Workload::SCHEMAS {
        let mut xml = Vec::new();
        workload
            .write(schema, &mut xml, Style::default())
            .expect("a Vec takes everything");
        let (bytes, ending) = match (xml.len(), seed) {
            (0..16_000, _) => (xml, "xml"),
            (_, 3) if schema.contains("encoders") => (pack::zstd(&xml), "xml.zst"),
            _ => (pack::gzip(&xml), "xml.gz"),
        };
        files.push((format!("{folder}/{schema}.{ending}"), bytes));
    }
}

// ---------------------------------------------------------------------------------------------- small tables

fn bench() -> Process {
    Process::new("bench", 77)
}

/// The ids of the n-th submission of a small table.
fn ids(n: u64) -> Ids {
    Ids {
        command_buffer: 0x6000 + 2 * n,
        encoder: 0x6001 + 2 * n,
        submission: 41_000 + 2 * n,
    }
}

fn interval(n: u64, start: u64, duration: u64, label: &str) -> GpuInterval {
    GpuInterval::new(start, duration, label, &bench(), ids(n))
}

/// The table behind most good fixtures: 5 submissions, 45,000 ns in all, 42,500 ns busy, two phases and one unlabelled
/// submission; the last two overlap by 2,500 ns.
fn plain_rows() -> Vec<GpuInterval> {
    vec![
        interval(0, 1_000_000, 10_000, "engine.layer.0.attn:attn"),
        interval(1, 1_020_000, 2_500, "engine.layer.0.ffn:ffn"),
        interval(2, 1_050_000, 10_000, "engine.layer.1.attn:attn"),
        interval(3, 1_070_000, 20_000, "engine.layer.1.ffn:ffn"),
        interval(4, 1_087_500, 2_500, "Command Buffer 0:Compute Command 0"),
    ]
}

fn plain(export: &mut ExportBuilder<'_>) {
    export.table(GPU_INTERVALS).rows(plain_rows());
}

fn table<R: Row>(rows: impl IntoIterator<Item = R>) -> String {
    ExportBuilder::document(Style::default(), |export| {
        export.table(R::TABLE).rows(rows);
    })
}

fn plain_xml() -> String {
    table(plain_rows())
}

fn cells(row: &GpuInterval) -> Vec<Cell> {
    row.cells(Style::default().locale)
}

/// One row among good ones, with its cells changed.
fn with_cells(change: impl FnOnce(&mut Vec<Cell>)) -> String {
    let rows = plain_rows();
    let mut changed = cells(&rows[2]);
    change(&mut changed);
    ExportBuilder::document(Style::default(), |export| {
        export
            .table(GPU_INTERVALS)
            .row(&rows[0])
            .row(&rows[1])
            .cells(&changed)
            .row(&rows[3])
            .row(&rows[4]);
    })
}

fn utf16le(text: &str) -> Vec<u8> {
    std::iter::once(0xFEFF)
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// Holes, numbers above 2^63, and falling order.
fn scattered(id: u64) -> u64 {
    if id.is_multiple_of(5) {
        (1 << 63) + id
    } else {
        1_000_000 - 7 * id
    }
}

// ---------------------------------------------------------------------------------------------- good

fn good(files: &mut Vec<File>) {
    let mut put = |name: &str, bytes: Vec<u8>| files.push((format!("good/{name}"), bytes));
    let text = plain_xml();

    put("plain.xml", text.clone().into_bytes());
    put("reserialised.xml", ExportBuilder::reserialised(plain).into_bytes());
    let style = |form, ids| Style {
        form,
        ids,
        ..Style::default()
    };
    let document = |style| ExportBuilder::document(style, plain).into_bytes();
    put("pretty_crlf.xml", document(style(Form::PrettyCrlf, IdStyle::All)));
    put("no_ids.xml", document(style(Form::Apple, IdStyle::Absent)));
    put(
        "ids_not_indices.xml",
        document(style(Form::Apple, IdStyle::Mapped(scattered))),
    );
    let spaced = Style {
        locale: Locale {
            spaced: true,
            thousands: '.',
        },
        documentation: Some("What the GPU did, and when.".to_owned()),
        ..Style::default()
    };
    put("other_locale.xml", document(spaced));

    put("utf8_bom.xml", [b"\xEF\xBB\xBF", text.as_bytes()].concat());
    let declared = text.replace("<?xml version=\"1.0\"?>", "<?xml version=\"1.0\" encoding=\"UTF-16\"?>");
    put("utf16le.xml", utf16le(&declared.replace('\n', "\r\n")));
    let stray = ["</mnemonic>", "</duration>", "</string>", "</process>", "</row>"];
    put(
        "stray_text.xml",
        stray
            .iter()
            .fold(text.clone(), |xml, tag| xml.replace(tag, &format!("{tag}stray")))
            .into(),
    );

    let middle = text.len() / 2;
    let (head, tail) = text.as_bytes().split_at(middle);
    put("two_members.xml.gz", [pack::gzip(head), pack::gzip(tail)].concat());
    put("two_frames.xml.zst", [pack::zstd(head), pack::zstd(tail)].concat());

    put("several_nodes_ids_restart.xml", several_nodes());
    put("schema_carried.xml", schema_carried());
    put("sentinel.xml", sentinel());
    put("entities.xml", entities());
    put("nested_rows.xml", nested_rows());
    put("default_labels.xml", default_labels(77, "0x154d189050"));
    put("default_labels_other_pid.xml", default_labels(91, "0x9b02"));
    put("other_processes.xml", other_processes());
    put("render_pair.xml", render_pair());
    put("tables_in_one_file.xml", tables_in_one_file());

    for (name, bytes) in points_folder(false) {
        put(&format!("points_only/{name}"), bytes);
    }
    for (name, bytes) in points_folder(true) {
        put(&format!("points_ref_time/{name}"), bytes);
    }
    for (name, bytes) in multi_run() {
        put(&format!("multi_run/{name}"), bytes);
    }
    for (name, bytes) in signposts() {
        put(&format!("signposts/{name}"), bytes);
    }
    for (name, bytes) in shader_timeline() {
        put(&format!("shader_timeline/{name}"), bytes);
    }
}

/// Two instances of one schema, the ids of the second start at 1 again (2 x 10,000 ns, then 2 x 300 ns).
fn several_nodes() -> Vec<u8> {
    let label = "engine.attn:attn";
    ExportBuilder::document(Style::default(), |export| {
        export
            .table(GPU_INTERVALS)
            .row(&interval(0, 0, 10_000, label))
            .row(&interval(1, 20_000, 10_000, label));
        export.restart_ids();
        export
            .node("//trace-toc[1]/run[1]/data[1]/table[110]")
            .schema(GPU_INTERVALS);
        export
            .row(&interval(2, 100_000, 300, label))
            .row(&interval(3, 200_000, 300, label));
    })
    .into_bytes()
}

/// The second node has no schema: the one before applies, and its rows refer to ids of the first.
fn schema_carried() -> Vec<u8> {
    let rows = plain_rows();
    ExportBuilder::document(Style::default(), |export| {
        export.table(GPU_INTERVALS).rows(rows[..3].to_vec());
        export
            .node("//trace-toc[1]/run[1]/data[1]/table[110]")
            .rows(rows[3..].to_vec());
    })
    .into_bytes()
}

/// NULL in columns whose neighbours have the same type: start, duration, latency; and a blit with NULL labels.
fn sentinel() -> Vec<u8> {
    let label = "engine.attn:attn";
    let rows = vec![
        GpuInterval {
            latency: None,
            ..interval(0, 1_000, 10_000, label)
        },
        GpuInterval {
            duration: None,
            latency: Some(5_000),
            ..interval(1, 50_000, 0, label)
        },
        GpuInterval {
            start: None,
            latency: Some(5),
            ..interval(2, 0, 700, label)
        },
        GpuInterval {
            channel: Some("Blit".to_owned()),
            frame: None,
            label: None,
            encoder: None,
            ..interval(3, 60_000, 500, label)
        },
    ];
    table(rows).into_bytes()
}

/// Entities and numeric references, in text and in attributes.
fn entities() -> Vec<u8> {
    let written = "vec&lt;f32, 4&gt; &amp;&amp; &#x3C0; &quot;x&quot;";
    with_cells(|cells| {
        cells[6] = Cell::Raw(format!(
            "<formatted-label id=\"9001\" fmt=\"{written}\">{written}</formatted-label>"
        ));
    })
    .into_bytes()
}

/// One encoder repeated as a nested row, one row of depth 1 that is work of its own, one row for four encoders.
fn nested_rows() -> Vec<u8> {
    let nested = GpuInterval {
        depth: Some(1),
        ..interval(0, 200, 800, "Command Buffer 0:blur")
    };
    let lane = GpuInterval {
        depth: Some(1),
        ..interval(2, 700, 600, "Command Buffer 0:sharpen")
    };
    let decorated = "Command Buffer 0:tone      ( bench (77) )  Coelasced 4 Encoders";
    let coalesced = GpuInterval {
        label: Some(Label::Plain(decorated.to_owned())),
        ..interval(4, 5_000, 900, "tone")
    };
    let outer = interval(0, 0, 1_000, "Command Buffer 0:blur");
    let mut inner = nested;
    inner.submission = Some(ids(1).submission);
    table([outer, inner, lane, coalesced]).into_bytes()
}

/// Labels as older versions decorate them: process, pid and an address that differ in every run.
fn default_labels(pid: u64, address: &str) -> Vec<u8> {
    let process = Process::new("bench", pid);
    let text = format!("Command Buffer 0:attn.qkv      ( bench ({pid}) )  {address}");
    let named = GpuInterval {
        label: Some(Label::Plain(text)),
        ..GpuInterval::new(0, 100, "", &process, ids(0))
    };
    let unnamed = GpuInterval {
        label: Some(Label::Plain("Compute Command 0".to_owned())),
        ..GpuInterval::new(500, 40, "", &process, ids(1))
    };
    table([named, unnamed]).into_bytes()
}

/// 4 rows of the target, 3 of the window server, 2 without a process.
fn other_processes() -> Vec<u8> {
    let server = Process::new("WindowServer", 150);
    let rows = (0..9).map(|n| {
        let start = n * 10_000;
        match n {
            0..4 => interval(n, start, 100, "engine.attn:attn"),
            4..7 => GpuInterval::new(start, 1_000, "", &server, ids(n)),
            _ => GpuInterval {
                process: None,
                label: None,
                ..interval(n, start, 50, "")
            },
        }
    });
    table(rows).into_bytes()
}

/// One render encoder: its vertex and its fragment row share the encoder id and overlap another encoder's.
fn render_pair() -> Vec<u8> {
    let part = |channel: &str, n: u64, step: u64, start, duration| GpuInterval {
        channel: Some(channel.to_owned()),
        submission: Some(ids(n).submission + step),
        ..interval(n, start, duration, "shadow:depth pass")
    };
    let rows = [
        part("Vertex", 0, 1, 10_000, 4_000),
        part("Fragment", 0, 0, 14_500, 30_000),
        part("Vertex", 1, 1, 20_000, 5_000),
        part("Fragment", 1, 0, 45_000, 10_000),
    ];
    table(rows).into_bytes()
}

/// Twelve labelled submissions of one process, as the three tables that the old script joined.
struct Points {
    points: Vec<ExecutionPoint>,
    map: Vec<MapRow>,
    encoders: Vec<EncoderRow>,
}

fn points(repeated_time: bool) -> Points {
    let (process, mut tables) = (
        bench(),
        Points {
            points: Vec::new(),
            map: Vec::new(),
            encoders: Vec::new(),
        },
    );
    let thread = Thread {
        name: "Main Thread".to_owned(),
        tid: 0x9d01,
        process: process.clone(),
    };
    let work = [
        ("attn", "attn", 18_041),
        ("ffn", "ffn.gate & ffn.up", 26_166),
        ("norm", "Compute Command 0", 1_291),
        ("rope", "Compute Command 0", 5_041),
        ("head", "Compute Command 0", 181_958),
        ("core", "attn", 45_083),
    ];
    for (n, (phase, label, duration)) in (0..).zip(work.iter().chain(&work)) {
        let at = 900_000_000 + n * 400_000;
        let (time, ids) = (at + 31 * n, ids(n));
        let duration = duration + 125 * n;
        // The one irregularity: this submission starts at the very nanosecond at which the one before ended.
        let last = tables.points.last().map_or(0, |point: &ExecutionPoint| point.time);
        let time = if repeated_time && n == 7 { last } else { time };
        for (function, time) in [(1, time), (2, time + duration)] {
            let (channel, submission) = (CHANNEL_COMPUTE, ids.submission);
            tables.points.push(ExecutionPoint {
                time,
                channel,
                function,
                submission,
            });
        }
        tables
            .map
            .extend(MapRow::pair(at - 41_000 - n, ids, &process, u64::from(n % 6 == 1) * 2));
        tables.encoders.push(EncoderRow {
            start: at - 80_000,
            duration: 6_000 + 41 * n,
            thread: thread.clone(),
            gpu: "M5 Max".to_owned(),
            frame: n + 1,
            buffer_label: format!("bench.layer.{}.{phase}", n / 6),
            buffer_index: 0,
            label: (*label).to_owned(),
            index: 0,
            command_buffer: ids.command_buffer,
            encoder: ids.encoder,
        });
    }
    tables
}

fn toc(process: &Process, schemas: &[&str]) -> Vec<u8> {
    let mut run = Run::new(1, process, 2_000_000);
    run.tables = schemas.iter().map(|schema| TocTable::new(schema)).collect();
    Toc { runs: vec![run] }.to_xml().into_bytes()
}

fn points_folder(repeated_time: bool) -> Vec<File> {
    let tables = points(repeated_time);
    let schemas = [EXECUTION_POINTS.schema, SUBMISSION_MAP.schema, ENCODERS_LIST.schema];
    vec![
        ("toc.xml".to_owned(), toc(&bench(), &schemas)),
        (
            format!("{}.xml", EXECUTION_POINTS.schema),
            table(tables.points).into_bytes(),
        ),
        (format!("{}.xml", SUBMISSION_MAP.schema), table(tables.map).into_bytes()),
        (
            format!("{}.xml", ENCODERS_LIST.schema),
            table(tables.encoders).into_bytes(),
        ),
    ]
}

/// The same three tables as one document with one numbering of ids, as a union of XPaths gives.
fn tables_in_one_file() -> Vec<u8> {
    let tables = points(false);
    ExportBuilder::document(Style::default(), |export| {
        export.table(EXECUTION_POINTS).rows(tables.points);
        export.table(ENCODERS_LIST).rows(tables.encoders);
        export.table(SUBMISSION_MAP).rows(tables.map);
    })
    .into_bytes()
}

/// Runs 2 and 3 of one document (run 1 was deleted); the path in a node counts positions, so they are run[1], run[2].
fn multi_run() -> Vec<File> {
    let again = Process::new("bench", 91);
    let mut runs = vec![Run::new(2, &bench(), 2_000_000), Run::new(3, &again, 2_100_000)];
    for run in &mut runs {
        run.tables = vec![TocTable::new(GPU_INTERVALS.schema)];
    }
    let second = plain_rows().into_iter().map(|row| GpuInterval {
        duration: row.duration.map(|duration| duration * 2),
        process: Some(again.clone()),
        label: Some(Label::Parts {
            text: "engine.layer.0.attn:attn".to_owned(),
            process: again.clone(),
            submission: row.submission.unwrap_or(0),
        }),
        ..row
    });
    let xml = ExportBuilder::document(Style::default(), |export| {
        plain(export);
        export.restart_ids();
        export
            .node("//trace-toc[1]/run[2]/data[1]/table[109]")
            .schema(GPU_INTERVALS)
            .rows(second);
    });
    vec![
        ("toc.xml".to_owned(), Toc { runs }.to_xml().into_bytes()),
        (format!("{}.xml", GPU_INTERVALS.schema), xml.into_bytes()),
    ]
}

/// A program that says with signposts what it does: it loads, then prefills, then decodes three tokens, one interval
/// each, with a pause of 6 ms before the last, and ends while `shutdown` is still open.
fn signposts() -> Vec<File> {
    let process = bench();
    let ms = 1_000_000;
    let work = [
        ("engine.load:copy", ms, 400_000),
        ("engine.prefill:mm", 20 * ms, 900_000),
        ("engine.prefill:mm", 21 * ms, 900_000),
        ("engine.decode:mv", 30 * ms, 200_000),
        ("engine.decode:mv", 31 * ms, 200_000),
        // Begins between two tokens.
        ("engine.sample:argmax", 31 * ms + 600_000, 10_000),
        ("engine.decode:mv", 38 * ms, 210_000),
        ("engine.save:copy", 60 * ms, 300_000),
    ];
    let rows: Vec<GpuInterval> = (0..)
        .zip(work)
        .map(|(n, (label, start, duration))| interval(n, start, duration, label))
        .collect();
    let mut events = Vec::new();
    events.extend(SignpostEvent::interval("prefill", 19 * ms, 29 * ms, &process));
    for (start, end) in [
        (29 * ms, 30 * ms + 500_000),
        (30 * ms + 500_000, 31 * ms + 500_000),
        (37 * ms, 39 * ms),
    ] {
        events.extend(SignpostEvent::interval("decode", start, end, &process));
    }
    events.push(SignpostEvent::new("Event", "loaded", 10 * ms, &process));
    events.push(SignpostEvent::new("Begin", "shutdown", 59 * ms, &process));
    // Apple's own signposts stand in the same table.
    let server = Process::new("WindowServer", 150);
    events.extend(SignpostEvent::interval("FrameLifetime", 2 * ms, 40 * ms, &server));
    events.sort_by_key(|event| event.time);
    vec![
        (
            "toc.xml".to_owned(),
            toc(&process, &[GPU_INTERVALS.schema, SIGNPOSTS.schema]),
        ),
        (format!("{}.xml", GPU_INTERVALS.schema), table(rows).into_bytes()),
        (format!("{}.xml", SIGNPOSTS.schema), table(events).into_bytes()),
    ]
}

/// A recording with Shader Timeline on: samples overlap, so they are shares of sampled time and never GPU time.
fn shader_timeline() -> Vec<File> {
    let process = bench();
    let mut run = Run::new(1, &process, 2_000_000);
    run.set_gpu_setting("Shader Timeline", "Enabled");
    run.tables = [GPU_INTERVALS, SHADER_LIST, SHADER_INTERVALS]
        .map(|spec| TocTable::new(spec.schema))
        .to_vec();
    let functions = ["kernel_mul_mv_id_q4_0_f32", "kernel_rms_norm_f32", "gather|f16"];
    let shaders = (0..).zip(functions).map(|(at, function)| Shader {
        time: 500_000 + 100 * at,
        function: function.to_owned(),
        id: 12 + at,
        pc_start: 0x100_0100_0000 + 0x400 * at,
        pc_end: 0x100_0100_0200 + 0x400 * at,
        kind: "Compute".to_owned(),
        process: process.clone(),
        gpu: "M5 Max".to_owned(),
    });
    let samples = (0..6).map(|at: u64| {
        let function = functions[at as usize % 3];
        let name = format!("{function} ({})", 12 + at % 3);
        ShaderInterval {
            start: 1_000_000 + 9_000 * at,
            duration: 10_000 - 2_000 * (at % 3),
            name: name.clone(),
            pipeline: name,
            kind: "Compute".to_owned(),
            percent_nanos: 3_186_165_690 * (at + 1),
            process: process.clone(),
            gpu: "M5 Max".to_owned(),
            channel: "Compute".to_owned(),
            depth: at % 2,
        }
    });
    vec![
        ("toc.xml".to_owned(), Toc { runs: vec![run] }.to_xml().into_bytes()),
        (format!("{}.xml", GPU_INTERVALS.schema), plain_xml().into_bytes()),
        (format!("{}.xml", SHADER_LIST.schema), table(shaders).into_bytes()),
        (format!("{}.xml", SHADER_INTERVALS.schema), table(samples).into_bytes()),
    ]
}

// ---------------------------------------------------------------------------------------------- refused

fn refused(files: &mut Vec<File>) {
    let mut put = |name: &str, bytes: Vec<u8>| files.push((format!("refused/{name}"), bytes));
    let text = plain_xml();
    let up_to =
        |pattern: &str, extra: usize| text.as_bytes()[..text.find(pattern).expect("in the table") + extra].to_vec();

    put("empty.xml", Vec::new());
    put(
        "not_xml.txt",
        b"Export failed: Document Missing Template Error\n".to_vec(),
    );
    put(
        "zip_header.xml",
        [b"PK\x03\x04\x14\x00\x08\x00\x08\x00".as_slice(), &[0xA5; 54]].concat(),
    );
    put("truncated_in_row.xml", up_to("1050000</start-time>", 7));
    put("truncated_after_row.xml", up_to("</row>\n</node>", 7));
    put("truncated_after_schema.xml", up_to("</schema>", 9));
    let gz = pack::gzip_stored(text.as_bytes());
    put("cut.xml.gz", gz[..gz.len() * 2 / 3].to_vec());
    let zst = pack::zstd_stored(text.as_bytes());
    put("cut.xml.zst", zst[..zst.len() * 2 / 3].to_vec());

    put(
        "no_match.xml",
        b"<?xml version=\"1.0\"?>\n<trace-query-result>\n</trace-query-result>\n".to_vec(),
    );
    put("no_rows.xml", table(Vec::<GpuInterval>::new()).into_bytes());
    put("other_table.xml", other_table());
    put("no_schema.xml", no_schema());
    put("two_processes_of_one_name.xml", two_processes_of_one_name());

    put(
        "cell_missing.xml",
        with_cells(|cells| drop(cells.remove(4))).into_bytes(),
    );
    put(
        "cell_extra.xml",
        with_cells(|cells| cells.push(Cell::Null)).into_bytes(),
    );
    // As many cells as columns, but the latency is gone and all after it stand one place to the left.
    let shifted = with_cells(|cells| {
        cells.remove(4);
        cells.push(Element::uint64(1, ',').into());
    });
    put("wrong_type.xml", shifted.into_bytes());
    let dangling = with_cells(|cells| cells[1] = Cell::Raw("<duration ref=\"4711\"/>".to_owned()));
    put("dangling_ref.xml", dangling.into_bytes());
    put(
        "bad_attribute.xml",
        text.replacen("<row>", "<row resident-%=\"1\">", 1).into_bytes(),
    );
    put("doctype_bomb.xml", doctype_bomb(&text));
}

fn other_table() -> Vec<u8> {
    let (process, leaf) = (bench(), Element::leaf);
    let thread = Thread {
        name: "Main Thread".to_owned(),
        tid: 0x9d01,
        process: process.clone(),
    };
    let label = |text: &str| Element::composite("formatted-label", text, vec![Element::same("string", text)]);
    let cells: Vec<Cell> = vec![
        Element::start_time(1_000).into(),
        Element::duration(100).into(),
        Element::same("gpu-driver-name", "AGX").into(),
        Element::same("metal-object-label", "Command Buffer").into(),
        Element::same("metal-nesting-level", "0").into(),
        label("Command Buffer 0").into(),
        leaf("metal-workload-priority", "0x1", "1").into(),
        Element::connection(1).into(),
        Element::same("render-buffer-depth", "0").into(),
        process.element().into(),
        thread.element().into(),
        Element::same("metal-device-name", "M5 Max").into(),
        Element::metal_id(u64::MAX).into(),
        label("Driver").into(),
    ];
    ExportBuilder::document(Style::default(), |export| {
        export.table(DRIVER_INTERVALS).cells(&cells);
    })
    .into_bytes()
}

fn no_schema() -> Vec<u8> {
    ExportBuilder::document(Style::default(), |export| {
        export
            .node("//trace-toc[1]/run[1]/data[1]/table[109]")
            .rows(plain_rows());
    })
    .into_bytes()
}

fn two_processes_of_one_name() -> Vec<u8> {
    let row = |n, start, duration, name: &str, pid| {
        GpuInterval::new(start, duration, "engine.attn:attn", &Process::new(name, pid), ids(n))
    };
    let rows = [
        row(0, 0, 1_000, "bench", 77),
        row(1, 2_000, 5_000, "bench-helper", 78),
        row(2, 9_000, 3_000, "bench", 79),
    ];
    table(rows).into_bytes()
}

/// Ten levels of ten entities: ten thousand million letters, were they expanded.
fn doctype_bomb(text: &str) -> Vec<u8> {
    let mut doctype = "<!DOCTYPE trace-query-result [\n<!ENTITY e0 \"boom\">\n".to_owned();
    for level in 1..=10 {
        let inner = format!("&e{};", level - 1).repeat(10);
        doctype.push_str(&format!("<!ENTITY e{level} \"{inner}\">\n"));
    }
    doctype.push_str("]>\n");
    let bombed = text.replacen("<trace-query-result>", &format!("{doctype}<trace-query-result>"), 1);
    bombed
        .replace(">engine.layer.0.attn:attn</string>", ">&e10;</string>")
        .into_bytes()
}
