//! A cell as CSV text and as JSON.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde_json::{Map, Value};

use crate::label::guarded;
use crate::xml::{Cell, CellKind, ColumnIndex, Row};

/// CSV fields of composite cells that were met: threads, processes and stacks repeat from row to row, and to put one
/// together takes longer than to read the row.
#[derive(Default)]
pub(super) struct Fields {
    known: HashMap<(u64, bool), String>,
    bytes: usize,
}

/// Fields of more bytes are forgotten.
const MAX_KNOWN: usize = 8 << 20;

impl Fields {
    /// A cell of the document that all rows are of, as CSV text; `text`: it is that even where it looks like a number.
    pub(super) fn csv(&mut self, row: &Row<'_>, at: ColumnIndex, text: bool) -> Cow<'_, str> {
        let cell = row.cell(at);
        if cell.kind() != CellKind::Composite {
            return Cow::Owned(csv_field(cell, text));
        }
        let key = (row.key(at), text);
        if !self.known.contains_key(&key) {
            let field = csv_field(cell, text);
            if self.bytes > MAX_KNOWN {
                self.known.clear();
                self.bytes = 0;
            }
            self.bytes += field.len() + size_of::<String>();
            self.known.insert(key, field);
        }
        Cow::Borrowed(self.known.get(&key).map_or("", String::as_str))
    }
}

/// Whether a column holds text even where a value looks like a number.
pub(super) fn is_text(kind: &str) -> bool {
    ["string", "label", "name", "text", "path", "subsystem", "category"]
        .iter()
        .any(|end| kind.ends_with(end))
}

/// The largest integer that every JSON reader keeps.
const MAX_SAFE: u64 = 1 << 53;

pub(super) fn json_value(cell: Cell<'_>, text: bool) -> Value {
    match cell.kind() {
        CellKind::Null => Value::Null,
        CellKind::Number(number) if !text && number <= MAX_SAFE => Value::from(number),
        CellKind::Number(number) => Value::from(number.to_string()),
        CellKind::Text(value) => match decimal(value).filter(|_| !text) {
            Some(number) => number,
            None => Value::from(value),
        },
        CellKind::Composite => composite(cell),
    }
}

/// A decimal or negative number that a JSON reader gives back with the same digits.
fn decimal(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !numeric(whole) || !numeric(part) || digits.len() > 15 || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    serde_json::from_str(text).ok()
}

fn composite(cell: Cell<'_>) -> Value {
    let frames: Vec<Cell<'_>> = cell.children().filter(|child| child.name() == "frame").collect();
    if !frames.is_empty() {
        return frames.into_iter().map(composite).collect();
    }
    // `tagged-backtrace` may wrap the stack once more.
    if cell.name().ends_with("backtrace")
        && let Some(inner) = cell.children().find(|child| child.name().ends_with("backtrace"))
    {
        return composite(inner);
    }
    let mut object = Map::new();
    if cell.children().any(|child| child.name() == "narrative-text") {
        object.insert("text".to_owned(), Value::from(cell.text()));
    }
    for child in cell.children().filter(|child| child.name() != "narrative-text") {
        let name = child.name().trim_start_matches('@');
        let value = json_value(child, child.name().starts_with('@') || is_text(child.name()));
        match object.get_mut(name) {
            None => {
                object.insert(name.to_owned(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => {
                let before = first.take();
                *first = Value::from(vec![before, value]);
            }
        }
    }
    Value::Object(object)
}

/// A cell as CSV text: stacks leaf first with `;`, labels as they read, other composites as JSON.
fn csv_field(cell: Cell<'_>, text: bool) -> String {
    let field = match cell.kind() {
        CellKind::Null => return String::new(),
        CellKind::Number(number) => return number.to_string(),
        CellKind::Text(value) => {
            if !text && value.parse::<f64>().is_ok_and(f64::is_finite) {
                return value.to_owned();
            }
            value.to_owned()
        }
        CellKind::Composite if cell.name().ends_with("backtrace") || cell.name().ends_with("-bt") => {
            match stack(cell) {
                Some(stack) => stack,
                None => return composite(cell).to_string(),
            }
        }
        CellKind::Composite
            if cell.name() == "process"
                || is_text(cell.name())
                || cell.children().any(|child| child.name() == "narrative-text") =>
        {
            cell.text()
        }
        CellKind::Composite => composite(cell).to_string(),
    };
    guarded(field)
}

/// The names of a stack's frames, leaf first; `None` when there is no frame.
fn stack(cell: Cell<'_>) -> Option<String> {
    let mut stack: Option<String> = None;
    for frame in cell.children().filter(|child| child.name() == "frame") {
        let stack = match &mut stack {
            None => stack.insert(String::new()),
            Some(stack) => {
                stack.push(';');
                stack
            }
        };
        // Several names are no name, and neither is one with parts.
        let mut names = frame
            .children()
            .filter(|child| matches!(child.name(), "@name" | "name"));
        match (names.next().map(|name| name.kind()), names.next()) {
            (Some(CellKind::Text(name)), None) => stack.push_str(name),
            (Some(CellKind::Number(number)), None) => stack.push_str(&number.to_string()),
            _ => stack.push('?'),
        }
    }
    if stack.is_none() {
        // `tagged-backtrace` may wrap the stack once more.
        let mut children = cell.children();
        let inner = children.find(|child| cell.name().ends_with("backtrace") && child.name().ends_with("backtrace"));
        return self::stack(inner?);
    }
    stack
}
