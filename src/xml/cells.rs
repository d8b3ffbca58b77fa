//! The cells of one row: what an opening and a closing tag, a text and an id mean, and what is worth keeping.
//!
//! Faults found here have no position yet; the reader adds it.

use super::bounded::BUFFER;
use super::ids::IdTable;
use super::names::{self, Name};
use super::pool::{Pool, Size};
use super::repeats::Repeats;
use super::segments::{Piece, References};
use super::value::{Tag, Value};
use super::{Keep, MAX_DEPTH, Schema, unescaped};

/// What a cell may hold when its references are followed: a stack of 512 frames with long names is a quarter of it.
const MAX_CELL_BYTES: u64 = 4 << 20;
/// A name or label of an analysis: ten times what anybody writes.
const MAX_NAME_BYTES: usize = 64 << 10;
/// All distinct names and labels of an analysis, which are kept several times over.
pub(super) const MAX_NAMES_BYTES: usize = 32 << 20;
/// All distinct cells together may hold this many times their tags (and one cell more): so much where they are names
/// and labels, which somebody keeps, and so much where they are anything.
const MAX_GROWTH_OF_TYPES: u64 = 64;
const MAX_GROWTH_OF_ALL: u64 = 1024;

/// Types with children times their children, where the scanner remembers names.
pub(super) const GUESSES: usize = 128;

/// A fault inside a row, before it has a position.
pub(super) enum Fault {
    Syntax(String),
    TooManyCells,
    Layout { expected: String, found: String },
    Dangling { found: String, id: u64 },
    TooDeep,
    TooLarge,
    TooManyNames,
}

/// Builds the cells of one row and remembers what ids stand for.
#[derive(Clone)]
pub(super) struct Cells {
    pub(super) pool: Pool,
    pub(super) ids: IdTable,
    /// How ids are found that are not in `ids`.
    pub(super) references: References,
    pub(super) keep_all: bool,
    /// By tag.
    pub(super) names: Vec<Name>,
    pub(super) repeats: Repeats,
    /// By type and place among its children: the child that stood there last.
    pub(super) guesses: [Option<Tag>; GUESSES],
    pub(super) sentinel: Tag,
    /// Its name is only in `fmt`.
    pub(super) process: Tag,
    /// Joins the parts of a label: its white space counts.
    narrative: Tag,
    fmt: Tag,
    own_text: Tag,
    pub(super) row: Vec<Value>,
    pub(super) open: Vec<Open>,
    pub(super) scratch: Vec<Value>,
    text: String,
    /// Bytes of the texts of earlier pieces of the document.
    earlier_text_bytes: usize,
    /// Bytes of tags so far.
    pub(super) tag_bytes: u64,
    /// Bytes that the composites so far would take if each were written in full.
    pub(super) full_bytes: u64,
    /// What the open elements show (`fmt`), one after the other: a leaf's is never kept.
    shown: String,
}

/// An element that is not closed yet.
#[derive(Clone)]
pub(super) struct Open {
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
    pub(super) fn new(keep: Keep<'_>) -> Self {
        let mut pool = Pool::default();
        let mut known = |name: &str| pool.tag(name).unwrap_or(Value::NULL.tag());
        let (sentinel, process, narrative) = (known("sentinel"), known("process"), known("narrative-text"));
        let (fmt, own_text) = (known("@fmt"), known("@text"));
        let mut cells = Cells {
            pool,
            ids: IdTable::default(),
            references: References::default(),
            keep_all: matches!(keep, Keep::All),
            names: Vec::new(),
            repeats: Repeats::default(),
            guesses: [None; GUESSES],
            sentinel,
            process,
            narrative,
            fmt,
            own_text,
            row: Vec::new(),
            open: Vec::new(),
            scratch: Vec::new(),
            text: String::new(),
            earlier_text_bytes: 0,
            tag_bytes: 0,
            full_bytes: 0,
            shown: String::new(),
        };
        // The names that the pool has from the beginning.
        cells.extend_names();
        if let Keep::Types(types) = keep {
            for name in types.iter().chain(PARTS) {
                if let Some(tag) = cells.tag(name)
                    && let Some(name) = cells.names.get_mut(names::index(tag))
                {
                    name.keep = true;
                }
            }
        }
        cells
    }

    /// What was defined since the last piece and is still to be resolved, and what it takes. Afterwards no id is known but
    /// those of earlier pieces, and nothing is counted.
    pub(super) fn take_piece(&mut self) -> (Piece, Counted) {
        let counted = Counted {
            tag_bytes: std::mem::take(&mut self.tag_bytes),
            full_bytes: std::mem::take(&mut self.full_bytes),
            text_bytes: self.text_bytes(),
        };
        self.earlier_text_bytes = 0;
        self.repeats.forget();
        let pool = Pool::with_names_of(&self.pool);
        let piece = Piece {
            ids: self.ids.take(),
            pool: std::mem::replace(&mut self.pool, pool),
            imports: self.references.take_imports(),
        };
        (piece, counted)
    }

    /// Ids count anew.
    pub(super) fn begin_document(&mut self) {
        self.ids.clear();
        self.references = References::default();
        self.repeats.forget();
    }

    /// Counts what came before.
    pub(super) fn add(&mut self, before: Counted) {
        self.tag_bytes += before.tag_bytes;
        self.full_bytes = self.full_bytes.saturating_add(before.full_bytes);
        self.earlier_text_bytes += before.text_bytes;
    }

    /// Bytes of all distinct texts.
    pub(super) fn text_bytes(&self) -> usize {
        self.earlier_text_bytes.saturating_add(self.pool.text_bytes())
    }

    pub(super) fn tag(&mut self, name: &str) -> Option<Tag> {
        let tag = self.pool.tag(name)?;
        self.extend_names();
        Some(tag)
    }

    fn extend_names(&mut self) {
        for name in self.pool.tags_from(self.names.len()) {
            let mut name = Name::new(name);
            name.keep = self.keep_all;
            self.names.push(name);
        }
    }

    pub(super) fn keeps(&self, tag: Tag) -> bool {
        self.names.get(names::index(tag)).is_some_and(|name| name.keep)
    }

    pub(super) fn begin_row(&mut self) {
        self.row.clear();
        self.open.clear();
        self.scratch.clear();
        self.shown.clear();
    }

    pub(super) fn start(&mut self, content: &str, name: &str, schema: &Schema) -> Result<(), Fault> {
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
            Some(self.referred(tag, number)?)
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
    pub(super) fn text(&mut self, text: &str) {
        if self
            .open
            .last()
            .is_some_and(|open| open.keep && !open.has_children && open.known.is_none())
        {
            self.text.push_str(text);
        }
    }

    pub(super) fn end(&mut self) -> Result<(), Fault> {
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
            if self.ids.get(id) != Value::UNDEFINED || self.references.may_know(id) {
                self.repeats.forget();
            }
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
        let own_text = std::mem::take(&mut self.text);
        let shown = std::mem::take(&mut self.shown);
        let value = if composite {
            let shown = open.shown_from.and_then(|from| shown.get(from..));
            let own_text = if open.has_children { "" } else { own_text.as_str() };
            self.composite(open.tag, open.children_from, shown, own_text)
        } else {
            self.leaf(open.tag, &own_text)
        };
        self.text = own_text;
        self.shown = shown;
        value
    }

    /// The value of an element whose children are the scratch from `children_from` on; what it shows and its own text
    /// become children too.
    pub(super) fn composite(
        &mut self,
        tag: Tag,
        children_from: usize,
        shown: Option<&str>,
        own_text: &str,
    ) -> Result<Value, Fault> {
        if let Some(shown) = shown {
            let text = self.pool.text(shown);
            self.scratch.push(Value::text(self.fmt, text));
        }
        if !own_text.trim().is_empty() {
            let text = self.pool.text(own_text.trim());
            self.scratch.push(Value::text(self.own_text, text));
        }
        let children = self.scratch.get(children_from..).unwrap_or(&[]);
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
        if size.bytes > MAX_CELL_BYTES || self.full_bytes > full_bytes_bound(self.tag_bytes, self.keep_all) {
            return Err(Fault::TooLarge);
        }
        Ok(Value::composite(tag, composite))
    }

    /// The value of an element without children.
    pub(super) fn leaf(&mut self, tag: Tag, text: &str) -> Result<Value, Fault> {
        let text = if tag == self.narrative { text } else { text.trim() };
        if !self.keep_all && (text.len() > MAX_NAME_BYTES || self.text_bytes() > MAX_NAMES_BYTES) {
            return Err(Fault::TooLarge);
        }
        Ok(match plain_number(text).and_then(|number| Value::number(tag, number)) {
            Some(value) => value,
            None => Value::text(tag, self.pool.text(text)),
        })
    }

    /// What a reference of this type stands for.
    pub(super) fn referred(&mut self, tag: Tag, id: u64) -> Result<Value, Fault> {
        let value = self.value_of(tag, id);
        let name = || format!("<{}>", self.pool.tag_name(tag));
        if value == Value::UNDEFINED {
            return Err(Fault::Dangling { found: name(), id });
        }
        if value.tag() != tag && value != Value::NULL {
            let found = format!(
                "a reference to id {id}, which is a <{}>",
                self.pool.tag_name(value.tag())
            );
            return Err(Fault::Layout {
                expected: name(),
                found,
            });
        }
        Ok(value)
    }
}

impl Cells {
    /// The value of an id, wherever in the document it was defined.
    #[inline]
    pub(super) fn value_of(&mut self, tag: Tag, id: u64) -> Value {
        match self.ids.get(id) {
            Value::UNDEFINED => match self.references.recent(tag, id) {
                Some(value) => value,
                None => self.earlier_value(tag, id),
            },
            value => value,
        }
    }

    fn earlier_value(&mut self, tag: Tag, id: u64) -> Value {
        let value = self.references.get(tag, id, &mut self.pool);
        // It may have parts of types that this piece has not met.
        if self.names.len() < self.pool.tag_count() {
            self.extend_names();
        }
        value
    }
}

/// What a document has taken so far, as far as it is bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) tag_bytes: u64,
    pub(super) full_bytes: u64,
    pub(super) text_bytes: usize,
}

impl Counted {
    /// With one more piece, whose largest composite is of that size; `None` when one reader for all of it might have met
    /// a bound on the way, which is told more readily here: what pieces have in common counts once in each.
    pub(super) fn with(self, piece: Counted, largest: Size, keep_all: bool) -> Option<Counted> {
        let all = Counted {
            tag_bytes: self.tag_bytes + piece.tag_bytes,
            full_bytes: self.full_bytes.checked_add(piece.full_bytes)?,
            text_bytes: self.text_bytes.checked_add(piece.text_bytes)?,
        };
        let within = largest.levels <= MAX_DEPTH
            && largest.bytes <= MAX_CELL_BYTES
            && all.full_bytes <= full_bytes_bound(self.tag_bytes, keep_all)
            && (keep_all || all.text_bytes + BUFFER <= MAX_NAMES_BYTES);
        within.then_some(all)
    }
}

/// How much the composites of a document may hold with so many bytes of tags.
fn full_bytes_bound(tag_bytes: u64, keep_all: bool) -> u64 {
    let growth = if keep_all {
        MAX_GROWTH_OF_ALL
    } else {
        MAX_GROWTH_OF_TYPES
    };
    MAX_CELL_BYTES + growth * tag_bytes
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
pub(super) struct Attributes<'a>(pub(super) &'a str);

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
