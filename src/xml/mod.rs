//! Tokens: an export's bytes become schemas and rows of cells, with ids resolved and the layout checked.
//!
//! Nothing outside this folder names the XML library. What the format looks like (`docs/export-format.md`):
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

mod bounded;
mod cells;
mod cutter;
mod element;
mod ids;
mod names;
mod pool;
mod repeats;
mod row;
mod scan;
mod schema;
mod segments;
mod split;
mod taking;
mod value;

pub use element::Element;
pub use row::{Cell, CellKind, ProcessCell, Row};
pub use schema::{Column, ColumnIndex, Schema};
pub use split::{BlockRows, Blocks, NotSplit};

use std::io::{self, BufRead, Read};

use quick_xml::Reader;
use quick_xml::escape;
use quick_xml::events::Event;

use crate::error::{Error, ErrorKind, Position, Result};

use bounded::{Bounded, MAX_EVENT_BYTES};
use cells::{Attributes, Cells, Fault};
use scan::Stop;

/// No row, schema or table of contents is longer, in however many pieces.
const MAX_PART_BYTES: u64 = 16 << 20;
/// Cells nest four deep in real exports.
const MAX_DEPTH: usize = 128;
/// After rows that were not the scanner's, as many and twice as many are left to the tokenizer, but not more.
const MAX_WAIT_SHIFT: u32 = 10;
/// Elements and attributes of a table of contents (a real one has about 1,000).
const MAX_TOC_ELEMENTS: usize = 200_000;

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
    scanner: Scanner,
}

/// Whether rows are tried with the row scanner.
#[derive(Debug, Clone, Copy)]
enum Scanner {
    Off,
    On {
        /// Rows that are left to the tokenizer first.
        wait: u32,
        /// Rows in a row that were not the scanner's.
        missed: u32,
    },
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

impl ExportReader<io::Empty> {
    /// A reader of nothing but rows, of which it has none yet.
    fn of_rows(cells: Cells, schema: Schema) -> Self {
        ExportReader {
            schema: Some(schema),
            ..ExportReader::of(Bounded::whole(Vec::new(), 0), cells)
        }
    }

    /// Goes on with the first `end` bytes of `buffer`, which are whole rows.
    fn begin_rows(&mut self, buffer: Vec<u8>, end: usize) {
        *self.reader.get_mut() = Bounded::whole(buffer, end);
        self.place = Place::InNode;
    }

    /// The memory of the last rows, to be used again.
    fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::replace(self.reader.get_mut(), Bounded::whole(Vec::new(), 0)).into_buffer()
    }
}

impl<R: Read> ExportReader<R> {
    /// Reads UTF-8 XML without a byte order mark (see [`crate::source`]).
    pub fn new(input: R, keep: Keep<'_>) -> Self {
        ExportReader::of(Bounded::new(input), Cells::new(keep))
    }

    fn of(input: Bounded<R>, cells: Cells) -> Self {
        let mut reader = Reader::from_reader(input);
        reader.config_mut().trim_text(false);
        ExportReader {
            reader,
            buffer: Vec::new(),
            cells,
            schema: None,
            place: Place::BeforeRoot,
            run: RunReference::Unknown,
            row: 0,
            row_byte: 0,
            scanner: Scanner::On { wait: 0, missed: 0 },
        }
    }

    /// The same, but every row is read by the tokenizer: what the row scanner is measured and checked against.
    #[doc(hidden)]
    pub fn without_scanner(input: R, keep: Keep<'_>) -> Self {
        ExportReader {
            scanner: Scanner::Off,
            ..ExportReader::new(input, keep)
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
                    self.cells.repeats.forget();
                    self.row = 0;
                    self.place = Place::InNode;
                    if let Scanner::On { wait, missed } = &mut self.scanner {
                        (*wait, *missed) = (0, 0);
                    }
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
                    self.cells.begin_document();
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
        schema.plain = true;
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
            schema.plain &= scan::is_plain(&kind);
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
            if self.scan_row() {
                return Ok(true);
            }
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

    /// Reads the next row into `self.cells` when it is one for the scanner; nothing has happened when it is not.
    fn scan_row(&mut self) -> bool {
        let (Scanner::On { wait, missed }, Some(schema)) = (&mut self.scanner, &self.schema) else {
            return false;
        };
        if *wait > 0 {
            *wait -= 1;
            return false;
        }
        loop {
            let input = self.reader.get_mut();
            match self.cells.scan_row(input.window(), schema) {
                Ok(scanned) => {
                    *missed = 0;
                    self.row += 1;
                    self.row_byte = self.reader.buffer_position() + scanned.begin as u64;
                    self.reader.stream().consume(scanned.end);
                    return true;
                }
                Err(Stop::Short) if input.widen() => {}
                Err(_) => {
                    // A file in another form is not tried row by row.
                    *missed += 1;
                    *wait = 1 << (*missed).min(MAX_WAIT_SHIFT) >> 1;
                    return false;
                }
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
        // The input, not the XML, is at fault: it is so where reading stopped.
        let here = self.at(self.reader.buffer_position());
        let input = self.reader.get_mut();
        match error {
            quick_xml::Error::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                Error::new(ErrorKind::Truncated { at: here })
                    .with_help("the compressed file is cut: copy it again, or make it again")
            }
            quick_xml::Error::Io(source) => {
                let source = io::Error::new(source.kind(), source.to_string());
                Error::io(format!("read on after byte {}", here.byte), source)
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

#[cfg(test)]
mod tests;
