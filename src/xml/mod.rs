//! Tokens: an export's bytes become schemas and rows of cells, with ids resolved and the layout checked.
//!
//! This is the only file that names the XML library. What the format looks like (`docs/export-format.md`):
//!
//! ```xml
//! <trace-query-result>
//! <node xpath='//trace-toc[1]/run[1]/data[1]/table[109]'><schema name="metal-gpu-intervals"><col><mnemonic>start</mnemonic>…
//! <row><start-time id="1" fmt="00:00.782.830">782830041</start-time><duration id="2" …>505542</duration>…<process ref="12"/></row>
//! ```
//!
//! Its traps: a value is written once and then referred to by id, also when it stood *inside* another cell
//! (`process` in a label), in a column or row that nobody reads; `<sentinel/>` is NULL and keeps its place;
//! `fmt` is for display and changes with locale and version, so only the text counts.

mod ids;

use std::io::{self, BufRead, Read};

use quick_xml::Reader;
use quick_xml::escape;
use quick_xml::events::Event;

use crate::error::{Error, ErrorKind, Position, Result};
use crate::model::NO_TIME;
use ids::{IdTable, Kind, Pool, Tag, Value};

/// No tag, text or attribute list of an export comes near this; more is refused.
const MAX_EVENT_BYTES: u64 = 16 << 20;
/// As large as the buffers of [`crate::source`], so that those are passed by.
const BUFFER: usize = 256 << 10;
/// No row, schema or table of contents is longer, in however many pieces.
const MAX_PART_BYTES: u64 = 16 << 20;
/// Cells nest four deep in real exports.
const MAX_DEPTH: usize = 128;
/// What a cell may hold when its references are followed: a stack of 512 frames with long names is a quarter of it.
const MAX_CELL_BYTES: u64 = 4 << 20;
/// All distinct cells together may hold this many times their tags (and one cell more): so much where they are names
/// and labels, which somebody keeps, and so much where they are anything.
const MAX_GROWTH_OF_TYPES: u64 = 64;
const MAX_GROWTH_OF_ALL: u64 = 1024;
/// Elements and attributes of a table of contents (a real one has about 1,000).
const MAX_TOC_ELEMENTS: usize = 200_000;

/// A table's columns.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    name: String,
    columns: Vec<Column>,
}

/// A column: what it is called in code, on screen, and by type.
#[derive(Debug, Clone)]
pub struct Column {
    /// Short name, stable over versions.
    pub mnemonic: String,
    /// Heading in Instruments.
    pub title: String,
    /// Engineering type: the element name of its cells.
    pub kind: String,
    tag: Tag,
}

/// A column's place in the rows of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnIndex(usize);

impl Schema {
    /// The schema's name (`metal-gpu-intervals`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns, in the order of a row's cells.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The place of a column.
    ///
    /// # Errors
    /// [`ErrorKind::MissingColumn`], which lists the columns that are there.
    pub fn column(&self, mnemonic: &str) -> Result<ColumnIndex> {
        self.opt_column(mnemonic).ok_or_else(|| {
            Error::new(ErrorKind::MissingColumn {
                table: self.name.clone(),
                column: mnemonic.to_owned(),
                columns: self.columns.iter().map(|column| column.mnemonic.clone()).collect(),
            })
        })
    }

    /// The place of a column, if there is one.
    pub fn opt_column(&self, mnemonic: &str) -> Option<ColumnIndex> {
        self.columns
            .iter()
            .position(|column| column.mnemonic == mnemonic)
            .map(ColumnIndex)
    }
}

/// Which cells are worth keeping.
#[derive(Debug, Clone, Copy)]
pub enum Keep<'a> {
    /// Everything.
    All,
    /// Cells of these engineering types and what makes up their labels; the rest is checked and passed over.
    Types(&'a [&'a str]),
}

/// A part of an export.
#[derive(Debug)]
pub enum Part<'a> {
    /// A table begins; its rows follow by [`ExportReader::read_row`].
    Table {
        /// Its columns.
        schema: &'a Schema,
        /// The run that its node's path names.
        run: RunReference,
    },
    /// A table of contents, whole.
    Contents(Element),
}

/// How a node's `xpath` names its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunReference {
    /// `run[@number="3"]`: the number itself.
    Number(u64),
    /// `run[2]`: the second run of the recording, whatever its number.
    Place(u64),
    /// The path does not say.
    Unknown,
}

/// An element of a table of contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Element name.
    pub name: String,
    /// Attributes in document order, entities resolved.
    pub attributes: Vec<(String, String)>,
    /// Text of the element itself, trimmed.
    pub text: String,
    /// Child elements.
    pub children: Vec<Element>,
}

impl Element {
    /// An attribute's value.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The first child of that name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The element as an XML document, indented as xctrace does.
    pub fn to_xml(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\"?>\n\n");
        self.push_xml(&mut out, 0);
        out
    }

    fn push_xml(&self, out: &mut String, depth: usize) {
        let indent = "    ".repeat(depth);
        out.push_str(&format!("{indent}<{}", self.name));
        for (key, value) in &self.attributes {
            out.push_str(&format!(" {key}=\"{}\"", escape::escape(value.as_str())));
        }
        if self.children.is_empty() && self.text.is_empty() {
            out.push_str("/>\n");
        } else if self.children.is_empty() {
            out.push_str(&format!(">{}</{}>\n", escape::escape(self.text.as_str()), self.name));
        } else {
            out.push_str(">\n");
            for child in &self.children {
                child.push_xml(out, depth + 1);
            }
            out.push_str(&format!("{indent}</{}>\n", self.name));
        }
    }

    /// The children of that name.
    pub fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// A cursor over an export: reuses one row, clears its buffer at every event.
pub struct ExportReader<R> {
    reader: Reader<Bounded<R>>,
    buffer: Vec<u8>,
    cells: Cells,
    schema: Option<Schema>,
    place: Place,
    run: RunReference,
    row: u64,
    row_byte: u64,
}

/// Where the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    BeforeRoot,
    InResult,
    InNode,
    /// The opening tag of a schema was read.
    AtSchema,
    /// The opening tag of a row was read; `true`: it is `<row/>`.
    AtRow(bool),
}

impl<R: Read> ExportReader<R> {
    /// Reads UTF-8 XML without a byte order mark (see [`crate::source`]).
    pub fn new(input: R, keep: Keep<'_>) -> Self {
        let mut reader = Reader::from_reader(Bounded::new(input));
        reader.config_mut().trim_text(false);
        ExportReader {
            reader,
            buffer: Vec::new(),
            cells: Cells::new(keep),
            schema: None,
            place: Place::BeforeRoot,
            run: RunReference::Unknown,
            row: 0,
            row_byte: 0,
        }
    }

    /// Goes on to the next table or table of contents, past any rows that were not read; `None` at the end.
    ///
    /// # Errors
    /// Anything that is not well-formed or not an export, with its position.
    pub fn next_part(&mut self) -> Result<Option<Part<'_>>> {
        while matches!(self.place, Place::AtRow(_)) || (self.place == Place::InNode && self.row > 0) {
            if !self.advance()? {
                break;
            }
        }
        loop {
            match self.place {
                Place::BeforeRoot => match self.open_root()? {
                    None => return Ok(None),
                    Some(Root::Result) => {}
                    Some(Root::Contents(element)) => return Ok(Some(Part::Contents(element))),
                },
                Place::InResult => self.open_node()?,
                Place::InNode => self.open_table()?,
                Place::AtSchema => {
                    let schema = self.read_schema()?;
                    self.schema = Some(schema);
                    self.row = 0;
                    self.place = Place::InNode;
                    return Ok(self.table());
                }
                Place::AtRow(_) => {
                    // A node without a schema has the columns of the node before it.
                    if self.schema.is_none() {
                        return Err(self
                            .fault(ErrorKind::NotAnExport(format!(
                                "byte {}: rows without a <schema> (a track's detail export?)",
                                self.row_byte
                            )))
                            .with_help("export tables, by an --xpath that ends in /data/table[@schema=\"…\"]"));
                    }
                    self.row = 0;
                    return Ok(self.table());
                }
            }
        }
    }

    fn table(&self) -> Option<Part<'_>> {
        self.schema.as_ref().map(|schema| Part::Table { schema, run: self.run })
    }

    /// The next row of the table; `None` after its last.
    ///
    /// # Errors
    /// A cell that is not its column's type, a row of another length, a dangling reference, a cut file.
    pub fn read_row(&mut self) -> Result<Option<Row<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        Ok(self.schema.as_ref().map(|schema| Row {
            values: &self.cells.row,
            pool: &self.cells.pool,
            schema,
            number: self.row,
            byte: self.row_byte,
        }))
    }

    /// Bytes of XML read so far.
    pub fn position(&self) -> u64 {
        self.reader.buffer_position()
    }

    fn at(&self, byte: u64) -> Position {
        Position {
            table: self.schema.as_ref().map(|schema| schema.name.clone()),
            row: self.row,
            byte,
        }
    }

    fn fault(&self, kind: ErrorKind) -> Error {
        Error::new(kind)
    }

    fn truncated(&self) -> Error {
        Error::new(ErrorKind::Truncated {
            at: self.at(self.reader.buffer_position()),
        })
    }

    fn open_root(&mut self) -> Result<Option<Root>> {
        loop {
            let byte = self.reader.buffer_position();
            let event = next_event(&mut self.reader, &mut self.buffer);
            let (name, empty) = match event {
                Ok(Event::Start(start)) => (start.name().into_inner().to_owned(), false),
                Ok(Event::Empty(start)) => (start.name().into_inner().to_owned(), true),
                Ok(Event::Eof) => return Ok(None),
                Ok(Event::Decl(declaration)) => {
                    if let Some(Ok(encoding)) = declaration.encoding() {
                        let known = ["utf-8", "utf8", "us-ascii", "ascii", "utf-16", "utf-16le", "utf-16be"];
                        if !known.contains(&encoding.to_ascii_lowercase().as_str()) {
                            return Err(Error::new(ErrorKind::NotAnExport(format!(
                                "the XML is declared as {encoding}, which is not read"
                            )))
                            .with_help("convert it to UTF-8 (`iconv -t UTF-8`) and correct its declaration"));
                        }
                    }
                    continue;
                }
                Ok(Event::Text(text)) if text.trim().is_empty() => continue,
                Ok(Event::Comment(_) | Event::PI(_) | Event::DocType(_)) => continue,
                Ok(_) => {
                    return Err(Error::new(ErrorKind::NotAnExport(format!(
                        "byte {byte}: text outside the XML root"
                    )))
                    .with_help("an export begins with `<?xml` and ends with its root's closing tag"));
                }
                Err(error) => return Err(self.tokenizer_error(error)),
            };
            match name.as_str() {
                "trace-query-result" => {
                    // Ids count anew in every document; several can follow each other on standard input.
                    self.cells.ids.clear();
                    self.schema = None;
                    self.row = 0;
                    if !empty {
                        self.place = Place::InResult;
                        return Ok(Some(Root::Result));
                    }
                }
                "trace-toc" => {
                    self.schema = None;
                    let mut root = Element {
                        name,
                        ..Element::default()
                    };
                    if !empty {
                        self.read_children(&mut root)?;
                    }
                    return Ok(Some(Root::Contents(root)));
                }
                _ => {
                    return Err(Error::new(ErrorKind::NotAnExport(format!(
                        "byte {byte}: the XML root is <{name}>, not <trace-query-result> or <trace-toc>"
                    )))
                    .with_help("this is not an output of `xctrace export`"));
                }
            }
        }
    }

    fn open_node(&mut self) -> Result<()> {
        loop {
            let byte = self.reader.buffer_position();
            match next_event(&mut self.reader, &mut self.buffer) {
                Ok(Event::Start(start)) if start.name().into_inner() == "node" => {
                    self.run = run_of_node(start.attributes());
                    self.row = 0;
                    self.place = Place::InNode;
                    return Ok(());
                }
                Ok(Event::Empty(start)) if start.name().into_inner() == "node" => {}
                Ok(Event::Start(start) | Event::Empty(start)) => {
                    return Err(Error::new(ErrorKind::NotAnExport(format!(
                        "byte {byte}: <{}> where a <node> is expected",
                        start.name().into_inner()
                    ))));
                }
                Ok(Event::End(_)) => {
                    self.place = Place::BeforeRoot;
                    return Ok(());
                }
                Ok(Event::Eof) => return Err(self.truncated()),
                Ok(_) => {}
                Err(error) => return Err(self.tokenizer_error(error)),
            }
        }
    }

    /// Inside a node: to its schema, its next row, or its end.
    fn open_table(&mut self) -> Result<()> {
        loop {
            let byte = self.reader.buffer_position();
            let (event, empty) = match next_event(&mut self.reader, &mut self.buffer) {
                Ok(Event::Start(start)) => (start, false),
                Ok(Event::Empty(start)) => (start, true),
                Ok(Event::End(_)) => {
                    self.place = Place::InResult;
                    return Ok(());
                }
                Ok(Event::Eof) => return Err(self.truncated()),
                Ok(_) => continue,
                Err(error) => return Err(self.tokenizer_error(error)),
            };
            match (event.name().into_inner(), empty) {
                ("row", empty) => {
                    // Nothing of them is read, but what is no XML is not read as if it were.
                    let attributes = event.get("row".len()..).unwrap_or("");
                    let malformed = Attributes(attributes).find_map(Result::err);
                    if let Some(message) = malformed {
                        let row = self.row + 1;
                        let at = Position { row, ..self.at(byte) };
                        return Err(self.fault(ErrorKind::Syntax { at, message }));
                    }
                    self.row_byte = byte;
                    self.place = Place::AtRow(empty);
                    return Ok(());
                }
                ("schema", false) => {
                    let mut schema = Schema::default();
                    for attribute in event.attributes().with_checks(false).flatten() {
                        if attribute.key.into_inner() == "name" {
                            schema.name = unescaped(&attribute.value);
                        }
                    }
                    self.schema = Some(schema);
                    self.row = 0;
                    self.place = Place::AtSchema;
                    return Ok(());
                }
                (name, _) => {
                    return Err(Error::new(ErrorKind::NotAnExport(format!(
                        "byte {byte}: <{name}> where a <schema> or a <row> is expected"
                    ))));
                }
            }
        }
    }

    fn read_schema(&mut self) -> Result<Schema> {
        let mut schema = self.schema.clone().unwrap_or_default();
        let mut root = Element::default();
        self.read_children(&mut root)?;
        for column in root.children("col") {
            let text = |name: &str| column.child(name).map_or("", |child| child.text.as_str()).to_owned();
            let (mnemonic, kind) = (text("mnemonic"), text("engineering-type"));
            if mnemonic.is_empty() || kind.is_empty() {
                return Err(Error::new(ErrorKind::NotAnExport(format!(
                    "table `{}`: column {} of its schema lacks a mnemonic or an engineering-type",
                    schema.name,
                    schema.columns.len() + 1
                ))));
            }
            let tag = self
                .cells
                .tag(&kind)
                .ok_or_else(|| self.limit("more than 4,096 element names"))?;
            schema.columns.push(Column {
                mnemonic,
                title: text("name"),
                kind,
                tag,
            });
        }
        Ok(schema)
    }

    fn limit(&self, what: &str) -> Error {
        Error::new(ErrorKind::Limit {
            at: self.at(self.reader.buffer_position()),
            what: what.to_owned(),
        })
    }

    /// Reads the children of an element whose opening tag was read. Text that follows a child is nobody's.
    fn read_children(&mut self, root: &mut Element) -> Result<()> {
        let mut open: Vec<Element> = Vec::new();
        let mut count = 0usize;
        let begin = self.reader.buffer_position();
        loop {
            if self.reader.buffer_position().saturating_sub(begin) > MAX_PART_BYTES {
                return Err(self.limit("a schema or table of contents is longer than 16 MiB"));
            }
            let mut closed = None;
            match next_event(&mut self.reader, &mut self.buffer) {
                Ok(Event::Start(start)) => {
                    open.push(element(&start, &mut count).map_err(|error| self.tokenizer_error(error))?);
                    if open.len() > MAX_DEPTH || count > MAX_TOC_ELEMENTS {
                        return Err(self.limit("nested too deeply, or more elements than any schema or contents has"));
                    }
                }
                Ok(Event::Empty(start)) => {
                    closed = Some(element(&start, &mut count).map_err(|error| self.tokenizer_error(error))?);
                }
                Ok(Event::End(_)) => match open.pop() {
                    None => return Ok(()),
                    Some(mut done) => {
                        done.text = done.text.trim().to_owned();
                        closed = Some(done);
                    }
                },
                Ok(Event::Text(text)) => {
                    if let Some(top) = open.last_mut().filter(|top| top.children.is_empty()) {
                        top.text.push_str(&text);
                    }
                }
                Ok(Event::CData(text)) => {
                    if let Some(top) = open.last_mut().filter(|top| top.children.is_empty()) {
                        top.text.push_str(&text);
                    }
                }
                Ok(Event::GeneralRef(reference)) => {
                    let resolved = entity(&reference);
                    match (resolved, open.last_mut()) {
                        (Some(character), Some(top)) if top.children.is_empty() => top.text.push_str(&character),
                        (Some(_), _) => {}
                        (None, _) => {
                            let message = format!("unknown entity `&{};`", &*reference);
                            return Err(Error::new(ErrorKind::Syntax {
                                at: self.at(self.reader.buffer_position()),
                                message,
                            }));
                        }
                    }
                }
                Ok(Event::Eof) => return Err(self.truncated()),
                Ok(_) => {}
                Err(error) => return Err(self.tokenizer_error(error)),
            }
            if let Some(child) = closed {
                if count > MAX_TOC_ELEMENTS {
                    return Err(self.limit("more elements than any schema or table of contents has"));
                }
                open.last_mut().unwrap_or(root).children.push(child);
            }
        }
    }

    /// Reads the next row into `self.cells`; `false` at the end of the table.
    fn advance(&mut self) -> Result<bool> {
        if self.place == Place::InNode {
            self.open_table()?;
        }
        let Place::AtRow(empty) = self.place else {
            return Ok(false);
        };
        let Some(schema) = &self.schema else { return Ok(false) };
        self.place = Place::InNode;
        self.row += 1;
        self.cells.begin_row();
        if empty {
            return self.end_row();
        }
        loop {
            let byte = self.reader.buffer_position();
            if byte.saturating_sub(self.row_byte) > MAX_PART_BYTES {
                return Err(self.limit("one row is longer than 16 MiB"));
            }
            let fault = match next_event(&mut self.reader, &mut self.buffer) {
                Ok(Event::Start(start)) => self.cells.start(&start, start.name().into_inner(), schema),
                Ok(Event::Empty(start)) => match self.cells.start(&start, start.name().into_inner(), schema) {
                    Ok(()) => self.cells.end(),
                    Err(fault) => Err(fault),
                },
                Ok(Event::End(_)) => {
                    if self.cells.open.is_empty() {
                        return self.end_row();
                    }
                    self.cells.end()
                }
                Ok(Event::Text(text)) => {
                    self.cells.text(&text);
                    Ok(())
                }
                Ok(Event::CData(text)) => {
                    self.cells.text(&text);
                    Ok(())
                }
                Ok(Event::GeneralRef(reference)) => match entity(&reference) {
                    Some(character) => {
                        self.cells.text(&character);
                        Ok(())
                    }
                    None => Err(Fault::Syntax(format!("unknown entity `&{};`", &*reference))),
                },
                Ok(Event::Eof) => return Err(self.truncated()),
                Ok(_) => Ok(()),
                Err(error) => return Err(self.tokenizer_error(error)),
            };
            if let Err(fault) = fault {
                return Err(self.row_fault(fault, byte));
            }
        }
    }

    fn end_row(&mut self) -> Result<bool> {
        let columns = self.schema.as_ref().map_or(0, |schema| schema.columns.len());
        if self.cells.row.len() != columns {
            let cells = self.cells.row.len();
            return Err(Error::new(ErrorKind::CellCount {
                at: self.at(self.row_byte),
                expected: columns,
                found: format!("{cells} cell{}", if cells == 1 { "" } else { "s" }),
            }));
        }
        Ok(true)
    }

    fn row_fault(&self, fault: Fault, byte: u64) -> Error {
        let at = self.at(byte);
        let columns = self.schema.as_ref().map_or(0, |schema| schema.columns.len());
        Error::new(match fault {
            Fault::Syntax(message) => ErrorKind::Syntax { at, message },
            Fault::TooManyCells => ErrorKind::CellCount {
                at,
                expected: columns,
                found: format!("more than {columns} cells"),
            },
            Fault::Layout { expected, found } => {
                let column = self
                    .schema
                    .as_ref()
                    .and_then(|schema| schema.columns.get(self.cells.row.len()));
                ErrorKind::Layout {
                    at,
                    column: column.map_or_else(String::new, |column| column.mnemonic.clone()),
                    expected,
                    found,
                }
            }
            Fault::Dangling { found, id } => ErrorKind::DanglingReference { at, found, id },
            Fault::TooDeep => ErrorKind::Limit {
                at,
                what: format!("cells nested more than {MAX_DEPTH} levels deep"),
            },
            Fault::TooLarge => ErrorKind::Limit {
                at,
                what: "the values that cells refer to are larger than any name, label or stack".to_owned(),
            },
            Fault::TooManyNames => ErrorKind::Limit {
                at,
                what: "more than 4,096 element names".to_owned(),
            },
        })
    }

    fn tokenizer_error(&mut self, error: quick_xml::Error) -> Error {
        let at = self.at(self.reader.error_position());
        if self.reader.get_mut().exceeded {
            return self.limit("one tag or text is longer than 16 MiB");
        }
        let input = self.reader.get_mut();
        match error {
            quick_xml::Error::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                Error::new(ErrorKind::Truncated { at })
                    .with_help("the compressed file is cut: copy it again, or make it again")
            }
            quick_xml::Error::Io(source) => {
                let source = io::Error::new(source.kind(), source.to_string());
                Error::io(format!("read on after byte {}", at.byte), source)
            }
            error => {
                // A tag that the end of the input cuts in two is a cut file, not bad XML.
                let ended = input.fill_buf().is_ok_and(<[u8]>::is_empty);
                let unclosed = matches!(&error, quick_xml::Error::Syntax(_))
                    || matches!(&error, quick_xml::Error::IllFormed(fault) if fault.to_string().contains("closed by `;`"));
                if ended && unclosed {
                    Error::new(ErrorKind::Truncated { at })
                } else {
                    Error::new(ErrorKind::Syntax {
                        at,
                        message: error.to_string(),
                    })
                }
            }
        }
    }
}

enum Root {
    Result,
    Contents(Element),
}

/// One event; the buffer is cleared first, and the event may not be longer than the bound.
fn next_event<'b, R: Read>(
    reader: &mut Reader<Bounded<R>>,
    buffer: &'b mut Vec<u8>,
) -> Result<Event<'b>, quick_xml::Error> {
    buffer.clear();
    reader.get_mut().left = MAX_EVENT_BYTES;
    reader.read_event_into(buffer)
}

/// A buffer that refuses to feed one event for ever. It is the only buffer that an event crosses, so that asking it
/// for bytes costs no call through a trait object.
struct Bounded<R> {
    input: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    left: u64,
    exceeded: bool,
}

impl<R> Bounded<R> {
    fn new(input: R) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Bounded {
            input,
            buffer,
            at: 0,
            end: 0,
            left: MAX_EVENT_BYTES,
            exceeded: false,
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let amount = self.fill_buf()?.read(out)?;
        self.consume(amount);
        Ok(amount)
    }
}

impl<R: Read> BufRead for Bounded<R> {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.end {
            self.at = 0;
            self.end = 0;
            self.end = self.input.read(&mut self.buffer)?;
        }
        if self.left == 0 && self.at < self.end {
            self.exceeded = true;
            return Err(io::Error::other("too long"));
        }
        let most = usize::try_from(self.left).map_or(self.end, |left| self.end.min(self.at.saturating_add(left)));
        Ok(self.buffer.get(self.at..most).unwrap_or_default())
    }

    #[inline]
    fn consume(&mut self, amount: usize) {
        self.left = self.left.saturating_sub(amount as u64);
        self.at = self.end.min(self.at + amount);
    }
}

fn entity(reference: &quick_xml::events::BytesRef<'_>) -> Option<String> {
    match reference.resolve_char_ref() {
        Ok(Some(character)) => Some(character.to_string()),
        Ok(None) => escape::resolve_predefined_entity(reference).map(str::to_owned),
        Err(_) => None,
    }
}

fn unescaped(raw: &str) -> String {
    // An entity that nothing defines stays as it stands: attributes are only shown, never computed with.
    escape::unescape(raw).map_or_else(|_| raw.to_owned(), |text| text.into_owned())
}

/// An element without children; `count` grows by it and its attributes, and it keeps none beyond the bound.
fn element(start: &quick_xml::events::BytesStart<'_>, count: &mut usize) -> Result<Element, quick_xml::Error> {
    *count += 1;
    let mut element = Element {
        name: start.name().into_inner().to_owned(),
        ..Element::default()
    };
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(quick_xml::Error::InvalidAttr)?;
        *count += 1;
        if *count > MAX_TOC_ELEMENTS {
            break;
        }
        element
            .attributes
            .push((attribute.key.into_inner().to_owned(), unescaped(&attribute.value)));
    }
    Ok(element)
}

/// `run[@number="2"]` or `run[2]` in a node's path.
fn run_of_node(mut attributes: quick_xml::events::attributes::Attributes<'_>) -> RunReference {
    for attribute in attributes.with_checks(false).flatten() {
        if attribute.key.into_inner() == "xpath" {
            let path = unescaped(&attribute.value);
            let Some((_, rest)) = path.split_once("/run[") else {
                continue;
            };
            let Some((inside, _)) = rest.split_once(']') else {
                continue;
            };
            if let Ok(place) = inside.trim().parse() {
                return RunReference::Place(place);
            }
            if let Some((_, number)) = inside.split_once('=')
                && let Ok(number) = number.trim().trim_matches(['"', '\'']).parse()
            {
                return RunReference::Number(number);
            }
        }
    }
    RunReference::Unknown
}

/// A fault inside a row, before it has a position.
enum Fault {
    Syntax(String),
    TooManyCells,
    Layout { expected: String, found: String },
    Dangling { found: String, id: u64 },
    TooDeep,
    TooLarge,
    TooManyNames,
}

/// Builds the cells of one row and remembers what ids stand for.
struct Cells {
    pool: Pool,
    ids: IdTable,
    keep_all: bool,
    /// By tag: whether its values are kept (not used with `keep_all`).
    kept: Vec<bool>,
    sentinel: Tag,
    /// Its name is only in `fmt`.
    process: Tag,
    /// Joins the parts of a label: its white space counts.
    narrative: Tag,
    fmt: Tag,
    own_text: Tag,
    row: Vec<Value>,
    open: Vec<Open>,
    scratch: Vec<Value>,
    text: String,
    /// Bytes of tags so far.
    tag_bytes: u64,
    /// Bytes that the composites so far would take if each were written in full.
    full_bytes: u64,
    /// What the open elements show (`fmt`), one after the other: a leaf's is never kept.
    shown: String,
}

/// An element that is not closed yet.
struct Open {
    tag: Tag,
    id: Option<u64>,
    keep: bool,
    /// What it stands for when it is a reference or a sentinel.
    known: Option<Value>,
    children_from: usize,
    /// Where its `fmt` begins, if it has one.
    shown_from: Option<usize>,
    has_children: bool,
}

/// What makes up a label or a process, so that ids inside them are kept when they are.
const PARTS: &[&str] = &["string", "metal-object-label", "narrative-text", "pid"];

impl Cells {
    fn new(keep: Keep<'_>) -> Self {
        let mut pool = Pool::default();
        let mut known = |name: &str| pool.tag(name).unwrap_or(Value::NULL.tag());
        let (sentinel, process, narrative) = (known("sentinel"), known("process"), known("narrative-text"));
        let (fmt, own_text) = (known("@fmt"), known("@text"));
        let mut cells = Cells {
            pool,
            ids: IdTable::default(),
            keep_all: matches!(keep, Keep::All),
            kept: Vec::new(),
            sentinel,
            process,
            narrative,
            fmt,
            own_text,
            row: Vec::new(),
            open: Vec::new(),
            scratch: Vec::new(),
            text: String::new(),
            tag_bytes: 0,
            full_bytes: 0,
            shown: String::new(),
        };
        if let Keep::Types(types) = keep {
            for name in types.iter().chain(PARTS) {
                if let Some(tag) = cells.tag(name)
                    && let Some(kept) = cells.kept.get_mut(tag_index(tag))
                {
                    *kept = true;
                }
            }
        }
        cells
    }

    fn tag(&mut self, name: &str) -> Option<Tag> {
        let tag = self.pool.tag(name)?;
        if self.kept.len() <= tag_index(tag) {
            self.kept.resize(tag_index(tag) + 1, false);
        }
        Some(tag)
    }

    fn keeps(&self, tag: Tag) -> bool {
        self.keep_all || self.kept.get(tag_index(tag)).copied().unwrap_or(false)
    }

    fn begin_row(&mut self) {
        self.row.clear();
        self.open.clear();
        self.scratch.clear();
        self.shown.clear();
    }

    fn start(&mut self, content: &str, name: &str, schema: &Schema) -> Result<(), Fault> {
        self.tag_bytes += content.len() as u64;
        let tag = match self.open.last_mut() {
            Some(parent) => {
                parent.has_children = true;
                if self.open.len() >= MAX_DEPTH {
                    return Err(Fault::TooDeep);
                }
                // `@fmt` is how an attribute is called here; no XML name begins like that.
                if name.starts_with('@') {
                    return Err(Fault::Syntax(format!("<{name}> is no element name")));
                }
                match self.pool.known_tag(name) {
                    Some(tag) => tag,
                    None => self.tag(name).ok_or(Fault::TooManyNames)?,
                }
            }
            None => {
                let column = schema.columns.get(self.row.len()).ok_or(Fault::TooManyCells)?;
                if name == column.kind {
                    column.tag
                } else if name == "sentinel" {
                    self.sentinel
                } else if column.kind == "any" {
                    self.tag(name).ok_or(Fault::TooManyNames)?
                } else {
                    return Err(Fault::Layout {
                        expected: format!("<{}>", column.kind),
                        found: format!("<{name}>"),
                    });
                }
            }
        };
        let keep = self.keeps(tag);
        let children_from = self.scratch.len();
        let mut shown_from = None;
        let wants_attributes = self.keep_all || tag == self.process;
        let attributes = content.get(name.len()..).unwrap_or("");
        let (mut id, mut reference) = (None, None);
        if let Some((key, number)) = id_or_ref(attributes, wants_attributes) {
            match key {
                Key::Id => id = Some(number),
                Key::Ref => reference = Some(number),
            }
        } else {
            for attribute in Attributes(attributes) {
                let (key, value) = attribute.map_err(Fault::Syntax)?;
                let number = || {
                    value
                        .trim()
                        .parse::<u64>()
                        .map_err(|_| Fault::Syntax(format!("{key}=\"{value}\" is not a number")))
                };
                match key {
                    "id" => id = Some(number()?),
                    "ref" => reference = Some(number()?),
                    "fmt" if keep && wants_attributes => {
                        shown_from = Some(self.shown.len());
                        self.shown.push_str(unescaped(value).trim());
                    }
                    "fmt" => {}
                    _ if keep && self.keep_all => {
                        let tag = self.tag(&format!("@{key}")).ok_or(Fault::TooManyNames)?;
                        let text = self.pool.text(&unescaped(value));
                        self.scratch.push(Value::text(tag, text));
                    }
                    _ => {}
                }
            }
        }
        let known = if tag == self.sentinel {
            Some(Value::NULL)
        } else if let Some(number) = reference.filter(|_| keep) {
            let value = self.ids.get(number);
            if value == Value::UNDEFINED {
                return Err(Fault::Dangling {
                    found: format!("<{name}>"),
                    id: number,
                });
            }
            if value.tag() != tag && value != Value::NULL {
                let found = format!(
                    "a reference to id {number}, which is a <{}>",
                    self.pool.tag_name(value.tag())
                );
                return Err(Fault::Layout {
                    expected: format!("<{name}>"),
                    found,
                });
            }
            Some(value)
        } else {
            None
        };
        self.text.clear();
        self.open.push(Open {
            tag,
            id,
            keep,
            known,
            children_from,
            shown_from,
            has_children: false,
        });
        Ok(())
    }

    /// Text counts only inside a leaf: what follows a closed child is nobody's.
    fn text(&mut self, text: &str) {
        if self
            .open
            .last()
            .is_some_and(|open| open.keep && !open.has_children && open.known.is_none())
        {
            self.text.push_str(text);
        }
    }

    fn end(&mut self) -> Result<(), Fault> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let value = match open.known {
            Some(value) => value,
            None if !open.keep => Value::UNDEFINED,
            None => self.value(&open)?,
        };
        self.scratch.truncate(open.children_from);
        if let Some(from) = open.shown_from {
            self.shown.truncate(from);
        }
        if let Some(id) = open.id {
            self.ids.define(id, value);
        }
        match self.open.last() {
            None => self.row.push(value),
            Some(parent) if parent.keep && (open.keep || value == Value::NULL) => {
                if self.scratch.len() as u64 > MAX_CELL_BYTES {
                    return Err(Fault::TooLarge);
                }
                self.scratch.push(value);
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn value(&mut self, open: &Open) -> Result<Value, Fault> {
        // `fmt` alone makes a composite only of a process, whose name stands nowhere else.
        let composite = open.has_children || open.tag == self.process || self.scratch.len() > open.children_from;
        if composite {
            if let Some(shown) = open.shown_from.and_then(|from| self.shown.get(from..)) {
                let text = self.pool.text(shown);
                self.scratch.push(Value::text(self.fmt, text));
            }
            if !open.has_children && !self.text.trim().is_empty() {
                let text = self.pool.text(self.text.trim());
                self.scratch.push(Value::text(self.own_text, text));
            }
            let children = self.scratch.get(open.children_from..).unwrap_or(&[]);
            let (composite, new) = self.pool.composite(children);
            // A value that refers to a value that refers to a value … is as deep as the file is long, and one that
            // refers to another twice can double its text at every step.
            let size = self.pool.size(composite);
            if size.levels > MAX_DEPTH {
                return Err(Fault::TooDeep);
            }
            if new {
                self.full_bytes = self.full_bytes.saturating_add(size.bytes);
            }
            let growth = if self.keep_all {
                MAX_GROWTH_OF_ALL
            } else {
                MAX_GROWTH_OF_TYPES
            };
            if size.bytes > MAX_CELL_BYTES || self.full_bytes > MAX_CELL_BYTES + growth * self.tag_bytes {
                return Err(Fault::TooLarge);
            }
            return Ok(Value::composite(open.tag, composite));
        }
        let text = if open.tag == self.narrative {
            self.text.as_str()
        } else {
            self.text.trim()
        };
        Ok(
            match plain_number(text).and_then(|number| Value::number(open.tag, number)) {
                Some(value) => value,
                None => Value::text(open.tag, self.pool.text(text)),
            },
        )
    }
}

fn tag_index(tag: Tag) -> usize {
    usize::from(tag.number())
}

/// A decimal number whose text can be written back from it.
fn plain_number(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let first = *bytes.first()?;
    if bytes.len() > 16 || (first == b'0' && bytes.len() > 1) {
        return None;
    }
    let mut number = 0u64;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

enum Key {
    Id,
    Ref,
}

/// The usual case, ` id="12" fmt="…"` or ` ref="12"` and nothing else, without a general attribute parser.
fn id_or_ref(attributes: &str, wants_all: bool) -> Option<(Key, u64)> {
    let (key, rest) = if let Some(rest) = attributes.strip_prefix(" ref=\"") {
        (Key::Ref, rest)
    } else {
        (Key::Id, attributes.strip_prefix(" id=\"")?)
    };
    let mut number = 0u64;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'0'..=b'9' if at < 19 => number = number * 10 + u64::from(byte - b'0'),
            b'"' if at > 0 => {
                let more = rest.get(at + 1..).unwrap_or("");
                let only_fmt = || {
                    more.strip_prefix(" fmt=\"")
                        .and_then(|fmt| fmt.split_once('"'))
                        .is_some_and(|(_, more)| more.is_empty())
                };
                return (more.is_empty() || (!wants_all && matches!(key, Key::Id) && only_fmt()))
                    .then_some((key, number));
            }
            _ => return None,
        }
    }
    None
}

/// Attributes of a tag, values raw.
struct Attributes<'a>(&'a str);

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(&'a str, &'a str), String>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0.trim_start();
        if rest.is_empty() {
            return None;
        }
        let parsed = attribute(rest);
        self.0 = match &parsed {
            Some((_, _, rest)) => rest,
            None => "",
        };
        Some(match parsed {
            Some((key, value, _)) => Ok((key, value)),
            None => Err(format!(
                "a malformed attribute near `{}`",
                rest.chars().take(24).collect::<String>()
            )),
        })
    }
}

fn attribute(text: &str) -> Option<(&str, &str, &str)> {
    let (key, rest) = text.split_once('=')?;
    let key = key.trim_end();
    let valid = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if key.is_empty() || !key.chars().all(valid) {
        return None;
    }
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (value, rest) = rest.get(1..)?.split_once(quote)?;
    Some((key, value, rest))
}

/// One row, borrowed from the reader until the next is read.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    values: &'a [Value],
    pool: &'a Pool,
    schema: &'a Schema,
    number: u64,
    byte: u64,
}

/// Name and pid of a process cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessCell<'a> {
    /// Name without the pid.
    pub name: &'a str,
    /// `None` when the cell has no number.
    pub pid: Option<u32>,
}

impl<'a> Row<'a> {
    /// The table's columns.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// Where the row begins.
    pub fn position(&self) -> Position {
        Position {
            table: Some(self.schema.name.clone()),
            row: self.number,
            byte: self.byte,
        }
    }

    /// A cell.
    pub fn cell(&self, at: ColumnIndex) -> Cell<'a> {
        Cell {
            value: self.values.get(at.0).copied().unwrap_or_default(),
            pool: self.pool,
        }
    }

    /// Equal for equal values within one document: a key for caches.
    pub fn key(&self, at: ColumnIndex) -> u64 {
        self.values.get(at.0).copied().unwrap_or_default().bits()
    }

    /// A number; `None` for NULL.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] for text that is no unsigned number.
    pub fn opt_u64(&self, at: ColumnIndex) -> Result<Option<u64>> {
        match self.cell(at).kind() {
            CellKind::Null => Ok(None),
            CellKind::Number(number) => Ok(Some(number)),
            CellKind::Text(text) => text.parse().map(Some).map_err(|_| self.not_a_number(at, text)),
            CellKind::Composite => Err(self.not_a_number(at, "child elements")),
        }
    }

    /// A time or a duration in ns; `None` for NULL, "no value" ([`NO_TIME`] and above) and negative numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] for text that is no integer.
    pub fn time(&self, at: ColumnIndex) -> Result<Option<u64>> {
        match self.cell(at).kind() {
            CellKind::Null => Ok(None),
            CellKind::Number(number) => Ok(Some(number).filter(|ns| *ns < NO_TIME)),
            CellKind::Text(text) if is_integer(text) => Ok(text.parse().ok().filter(|ns| *ns < NO_TIME)),
            CellKind::Text(text) => Err(self.not_a_number(at, text)),
            CellKind::Composite => Err(self.not_a_number(at, "child elements")),
        }
    }

    /// A cell's text, or the joined text of a composite; `None` for NULL.
    pub fn text(&self, at: ColumnIndex) -> Option<String> {
        let cell = self.cell(at);
        (!matches!(cell.kind(), CellKind::Null)).then(|| cell.text())
    }

    /// A process cell; `None` for NULL.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] for a pid that is no number.
    pub fn process(&self, at: ColumnIndex) -> Result<Option<ProcessCell<'a>>> {
        let cell = self.cell(at);
        if matches!(cell.kind(), CellKind::Null) {
            return Ok(None);
        }
        let shown = cell
            .child("@fmt")
            .or_else(|| cell.child("@text"))
            .map_or("", |child| child.leaf());
        let (mut name, mut pid) = (shown, None);
        if let Some((before, number)) = shown.strip_suffix(')').and_then(|shown| shown.rsplit_once('('))
            && let Ok(number) = number.parse::<u32>()
        {
            (name, pid) = (before.trim_end(), Some(number));
        }
        if let Some(child) = cell.child("pid") {
            match child.kind() {
                CellKind::Number(number) => {
                    pid = Some(u32::try_from(number).map_err(|_| self.not_a_number(at, "a pid above 2^32"))?);
                }
                CellKind::Text(text) => return Err(self.not_a_number(at, text)),
                CellKind::Null | CellKind::Composite => {}
            }
        }
        Ok(Some(ProcessCell { name, pid }))
    }

    fn not_a_number(&self, at: ColumnIndex, found: &str) -> Error {
        let shown: String = found.chars().take(40).collect();
        Error::new(ErrorKind::Layout {
            at: self.position(),
            column: self
                .schema
                .columns
                .get(at.0)
                .map_or_else(String::new, |column| column.mnemonic.clone()),
            expected: "a whole number".to_owned(),
            found: format!("`{shown}`"),
        })
        .with_help("xctrace writes times and ids as whole numbers; please report the Xcode version with this row")
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A cell or a part of one.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    value: Value,
    pool: &'a Pool,
}

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind<'a> {
    /// `<sentinel/>`.
    Null,
    /// A plain decimal number.
    Number(u64),
    /// Any other text, trimmed.
    Text(&'a str),
    /// Child elements.
    Composite,
}

impl<'a> Cell<'a> {
    /// What it holds.
    pub fn kind(&self) -> CellKind<'a> {
        match self.value.kind() {
            Kind::Undefined | Kind::Null => CellKind::Null,
            Kind::Number(number) => CellKind::Number(number),
            Kind::Text(text) => CellKind::Text(self.pool.get_text(text)),
            Kind::Composite(_) => CellKind::Composite,
        }
    }

    /// Element name; attributes are parts whose name begins with `@`.
    pub fn name(&self) -> &'a str {
        self.pool.tag_name(self.value.tag())
    }

    /// Its parts, in document order; none for a leaf.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = Cell<'a>> + use<'a> {
        let children = match self.value.kind() {
            Kind::Composite(id) => self.pool.children(id),
            _ => &[],
        };
        let pool = self.pool;
        children.iter().map(move |value| Cell { value: *value, pool })
    }

    /// The first part of that name.
    pub fn child(&self, name: &str) -> Option<Cell<'a>> {
        self.children().find(|child| child.name() == name)
    }

    /// A text leaf's text; empty for anything else.
    fn leaf(&self) -> &'a str {
        match self.kind() {
            CellKind::Text(text) => text,
            _ => "",
        }
    }

    /// The text: of a leaf as it is, of a composite its parts' texts joined, white space folded.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.push_text(&mut text);
        if matches!(self.kind(), CellKind::Composite) {
            text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        text
    }

    fn push_text(&self, out: &mut String) {
        match self.kind() {
            CellKind::Null => {}
            CellKind::Number(number) => out.push_str(&number.to_string()),
            CellKind::Text(text) => out.push_str(text),
            CellKind::Composite => {
                let shown = self.child("@fmt").filter(|_| self.value.tag().is_process(self.pool));
                match shown {
                    Some(fmt) => out.push_str(fmt.leaf()),
                    None => {
                        for child in self.children() {
                            if child.name() == "@text" || !child.name().starts_with('@') {
                                child.push_text(out);
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Tag {
    fn is_process(self, pool: &Pool) -> bool {
        pool.tag_name(self) == "process"
    }
}

#[cfg(test)]
mod tests;
