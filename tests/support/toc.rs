//! Tables of contents as `xctrace export --toc` prints them: four spaces, a blank line after the declaration, no line
//! end after the last tag.

use super::export::{Process, escape};

#[derive(Clone, Debug, Default)]
pub struct Toc {
    pub runs: Vec<Run>,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub number: u64,
    pub device: Vec<(String, String)>,
    pub target: Target,
    pub start: String,
    pub end: String,
    /// In microseconds, printed as seconds.
    pub duration_us: u64,
    pub end_reason: String,
    pub version: String,
    pub template: Option<String>,
    pub time_limit: String,
    /// The old form of the settings: instrument, key, its values.
    pub settings: Vec<Setting>,
    pub processes: Vec<(Process, String)>,
    pub tables: Vec<TocTable>,
}

#[derive(Clone, Debug)]
pub enum Target {
    Process {
        process: Process,
        attributes: Vec<(String, String)>,
    },
    All,
}

#[derive(Clone, Debug)]
pub struct Setting {
    pub instrument: String,
    pub key: String,
    /// Several values become `value` elements, one text stands in the key itself.
    pub values: Values,
}

#[derive(Clone, Debug)]
pub enum Values {
    Text(String),
    List(Vec<String>),
}

#[derive(Clone, Debug)]
pub struct TocTable {
    pub schema: String,
    pub attributes: Vec<(String, String)>,
}

impl TocTable {
    pub fn new(schema: &str) -> Self {
        Self {
            schema: schema.to_owned(),
            attributes: Vec::new(),
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.attributes.push((name.to_owned(), value.to_owned()));
        self
    }
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

impl Run {
    /// A Metal System Trace of a launched process that ended by itself. Device and people are invented.
    pub fn new(number: u64, process: &Process, duration_us: u64) -> Self {
        let gpu = [
            "Counter Set: (null)",
            "Shader Timeline: Disabled",
            "Induced GPU Performance State: Default",
        ];
        Self {
            number,
            device: pairs(&[
                ("platform", "macOS"),
                ("model", "Mac Studio"),
                ("name", "Example’s Mac Studio"),
                ("os-version", "26.6.1 (25G76)"),
                ("uuid", "00000000-1111-2222-3333-444444444444"),
            ]),
            target: Target::Process {
                process: process.clone(),
                attributes: pairs(&[
                    ("arguments", "generate --tokens 64 --prompt \"words of the user\""),
                    ("type", "launched"),
                    ("return-exit-status", "0"),
                    ("termination-reason", "exit(0)"),
                ]),
            },
            start: "2026-09-01T10:00:00.000+00:00".to_owned(),
            end: "2026-09-01T10:00:10.000+00:00".to_owned(),
            duration_us,
            end_reason: "Target app exited".to_owned(),
            version: "16.0 (17F113)".to_owned(),
            template: Some("Metal System Trace".to_owned()),
            time_limit: "1 minute".to_owned(),
            settings: vec![
                Setting {
                    instrument: "Hangs".to_owned(),
                    key: "Reporting Threshold".to_owned(),
                    values: Values::Text("Include Brief Unresponsiveness (>100 ms)".to_owned()),
                },
                Setting {
                    instrument: "Metal Application".to_owned(),
                    key: "GPU".to_owned(),
                    values: Values::List(gpu.map(str::to_owned).to_vec()),
                },
            ],
            processes: vec![
                (process.clone(), format!("/Users/example/bin/{}", process.name)),
                (
                    Process::new("WindowServer", 188),
                    "/System/Library/WindowServer".to_owned(),
                ),
                (Process::new("kernel", 0), "/System/Library/Kernels/kernel".to_owned()),
            ],
            tables: Vec::new(),
        }
    }

    /// Replaces one of the GPU instrument's settings, `Shader Timeline` say.
    pub fn set_gpu_setting(&mut self, name: &str, value: &str) {
        for setting in &mut self.settings {
            if let Values::List(values) = &mut setting.values {
                for entry in values.iter_mut().filter(|entry| entry.starts_with(name)) {
                    *entry = format!("{name}: {value}");
                }
            }
        }
    }
}

impl Toc {
    pub fn to_xml(&self) -> String {
        let mut page = Page {
            text: "<?xml version=\"1.0\"?>\n".to_owned(),
            depth: 0,
        };
        page.open("trace-toc", &[]);
        for run in &self.runs {
            page.run(run);
        }
        page.close("trace-toc");
        page.text
    }
}

struct Page {
    text: String,
    depth: usize,
}

impl Page {
    fn run(&mut self, run: &Run) {
        self.open("run", &pairs(&[("number", &run.number.to_string())]));
        self.open("info", &[]);
        self.open("target", &[]);
        self.empty("device", &run.device);
        match &run.target {
            Target::Process { process, attributes } => {
                let mut all = attributes.clone();
                all.extend(pairs(&[("name", &process.name), ("pid", &process.pid.to_string())]));
                self.empty("process", &all);
            }
            Target::All => self.empty("all-processes", &[]),
        }
        self.close("target");
        self.open("summary", &[]);
        let seconds = format!("{}.{:06}", run.duration_us / 1_000_000, run.duration_us % 1_000_000);
        self.leaf("start-date", &[], &run.start);
        self.leaf("end-date", &[], &run.end);
        self.leaf("duration", &[], &seconds);
        self.leaf("end-reason", &[], &run.end_reason);
        self.leaf("instruments-version", &[], &run.version);
        if let Some(template) = &run.template {
            self.leaf("template-name", &[], template);
        }
        self.leaf("recording-mode", &[], "Deferred");
        self.leaf("time-limit", &[], &run.time_limit);
        // Apple's spelling.
        self.open("intruments-recording-settings", &[]);
        for setting in &run.settings {
            self.setting(setting);
        }
        self.close("intruments-recording-settings");
        self.close("summary");
        self.close("info");
        self.open("processes", &[]);
        for (process, path) in &run.processes {
            let pid = process.pid.to_string();
            self.empty(
                "process",
                &pairs(&[("name", &process.name), ("pid", &pid), ("path", path)]),
            );
        }
        self.close("processes");
        self.open("data", &[]);
        for table in &run.tables {
            let mut attributes = pairs(&[("schema", &table.schema)]);
            attributes.extend(table.attributes.iter().cloned());
            self.empty("table", &attributes);
        }
        self.close("data");
        self.empty("tracks", &[]);
        self.close("run");
    }

    fn setting(&mut self, setting: &Setting) {
        self.open("instrument", &pairs(&[("name", &setting.instrument)]));
        self.open("array", &[]);
        self.open("dictionary", &[]);
        let key = pairs(&[("name", &setting.key)]);
        match &setting.values {
            Values::Text(text) => self.leaf("key", &key, text),
            Values::List(values) => {
                self.open("key", &key);
                for value in values {
                    self.leaf("value", &[], value);
                }
                self.close("key");
            }
        }
        self.close("dictionary");
        self.close("array");
        self.close("instrument");
    }

    fn start(&mut self, tag: &str, attributes: &[(String, String)]) {
        self.text.push('\n');
        self.text.push_str(&"    ".repeat(self.depth));
        self.text.push('<');
        self.text.push_str(tag);
        for (name, value) in attributes {
            self.text.push(' ');
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(value, true, &mut self.text);
            self.text.push('"');
        }
    }

    fn open(&mut self, tag: &str, attributes: &[(String, String)]) {
        self.start(tag, attributes);
        self.text.push('>');
        self.depth += 1;
    }

    fn empty(&mut self, tag: &str, attributes: &[(String, String)]) {
        self.start(tag, attributes);
        self.text.push_str("/>");
    }

    fn leaf(&mut self, tag: &str, attributes: &[(String, String)], text: &str) {
        self.start(tag, attributes);
        self.text.push('>');
        escape(text, false, &mut self.text);
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
    }

    fn close(&mut self, tag: &str) {
        self.depth -= 1;
        self.text.push('\n');
        self.text.push_str(&"    ".repeat(self.depth));
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
    }
}
