//! Short tables for tests of single faults: nine of the eighteen columns of `metal-gpu-intervals`, every value inline,
//! every cell replaceable by NULL or by any XML. A reader must bind columns by mnemonic to get on with them.

use std::fmt::Write;

/// Mnemonic and engineering type.
pub const COLUMNS: [(&str, &str); 9] = [
    ("start", "start-time"),
    ("duration", "duration"),
    ("channel-name", "gpu-channel-name"),
    ("start-latency", "duration"),
    ("event-depth", "metal-nesting-level"),
    ("event-label", "formatted-label"),
    ("process", "process"),
    ("cmdbuffer-id", "metal-command-buffer-id"),
    ("encoder-id", "metal-command-buffer-id"),
];

/// A schema element.
pub fn schema(name: &str, columns: &[(&str, &str)]) -> String {
    let mut xml = format!("<schema name=\"{name}\">");
    for (mnemonic, kind) in columns {
        let _ = write!(
            xml,
            "<col><mnemonic>{mnemonic}</mnemonic><name>{mnemonic}</name><engineering-type>{kind}</engineering-type></col>"
        );
    }
    xml + "</schema>"
}

/// The schema of [`r`]'s rows.
pub fn intervals() -> String {
    schema("metal-gpu-intervals", &COLUMNS)
}

/// A value as it stands in the document: escapes are the caller's; what begins with `<` is a whole cell.
#[derive(Clone, Debug)]
pub struct Value(Option<String>);

/// `<sentinel/>`.
pub const NULL: () = ();

impl From<()> for Value {
    fn from((): ()) -> Self {
        Value(None)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value(Some(text.to_owned()))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value(Some(number.to_string()))
    }
}

/// One cell.
pub fn cell(tag: &str, value: impl Into<Value>) -> String {
    match value.into().0 {
        None => "<sentinel/>".to_owned(),
        Some(xml) if xml.starts_with('<') => xml,
        Some(text) => format!("<{tag} fmt=\"{text}\">{text}</{tag}>"),
    }
}

/// A process cell with its pid.
pub fn process(name: &str, pid: u64) -> String {
    format!("<process fmt=\"{name} ({pid})\"><pid fmt=\"{pid}\">{pid}</pid></process>")
}

/// A row of the short table: compute work `k` of `bench (77)`, unless something else is said.
#[derive(Clone, Debug)]
pub struct ShortRow {
    cells: [Value; 9],
}

pub fn r(start: impl Into<Value>, duration: impl Into<Value>) -> ShortRow {
    ShortRow {
        cells: [
            start.into(),
            duration.into(),
            "Compute".into(),
            0.into(),
            0.into(),
            "k".into(),
            process("bench", 77).as_str().into(),
            1.into(),
            1.into(),
        ],
    }
}

impl ShortRow {
    /// Replaces a column by its mnemonic.
    #[must_use]
    pub fn with(mut self, mnemonic: &str, value: impl Into<Value>) -> Self {
        let at = COLUMNS.iter().position(|(name, _)| *name == mnemonic);
        self.cells[at.expect("a column of the short table")] = value.into();
        self
    }

    #[must_use]
    pub fn channel(self, value: impl Into<Value>) -> Self {
        self.with("channel-name", value)
    }

    #[must_use]
    pub fn latency(self, value: impl Into<Value>) -> Self {
        self.with("start-latency", value)
    }

    #[must_use]
    pub fn depth(self, value: impl Into<Value>) -> Self {
        self.with("event-depth", value)
    }

    #[must_use]
    pub fn label(self, value: impl Into<Value>) -> Self {
        self.with("event-label", value)
    }

    #[must_use]
    pub fn process(self, name: &str, pid: u64) -> Self {
        self.with("process", process(name, pid).as_str())
    }

    #[must_use]
    pub fn buffer(self, value: impl Into<Value>) -> Self {
        self.with("cmdbuffer-id", value)
    }

    #[must_use]
    pub fn encoder(self, value: impl Into<Value>) -> Self {
        self.with("encoder-id", value)
    }

    pub fn xml(&self) -> String {
        let cells = COLUMNS.iter().zip(&self.cells);
        let cells: String = cells.map(|((_, kind), value)| cell(kind, value.clone())).collect();
        format!("<row>{cells}</row>")
    }
}

/// A node of the short table.
pub fn node(rows: &[ShortRow]) -> String {
    let rows: String = rows.iter().map(ShortRow::xml).collect();
    format!("<node xpath=\"x\">{}{rows}</node>", intervals())
}

/// A document around nodes.
pub fn document(nodes: &str) -> String {
    format!("<?xml version=\"1.0\"?><trace-query-result>{nodes}</trace-query-result>")
}

/// A document of one short table.
pub fn doc(rows: &[ShortRow]) -> String {
    document(&node(rows))
}

/// A table of contents with one run of `bench (77)`, and whatever else stands in its target.
pub fn toc(target: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n\n<trace-toc><run number=\"1\"><info><target>{target}</target></info><data><table schema=\"metal-gpu-intervals\"/></data></run></trace-toc>"
    )
}
