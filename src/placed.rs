//! TOML values with their lines: what a key may hold, and messages that say where it holds something else.

use std::fmt::Display;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};

/// A value, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Its line, from 1.
    pub line: usize,
}

/// A text with its name in messages.
#[derive(Clone, Copy)]
struct File<'a> {
    text: &'a str,
    name: &'a str,
}

impl File<'_> {
    fn line(self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn error(self, at: usize, error: Error) -> Error {
        error.with_origin(format!("{}:{}", self.name, self.line(at)))
    }
}

/// Keys with values, in the order of the file.
pub(crate) struct Table<'a> {
    file: File<'a>,
    entries: Vec<(usize, String, Value<'a>)>,
}

/// A value, its key and its place.
pub(crate) struct Value<'a> {
    file: File<'a>,
    key: String,
    at: usize,
    value: DeValue<'a>,
}

/// The table that a text is.
pub(crate) fn table<'a>(text: &'a str, name: &'a str) -> Result<Table<'a>> {
    let file = File { text, name };
    let parsed = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        file.error(
            at,
            Error::usage(format!("no TOML: {}", error.message().replace('\n', ", "))),
        )
    })?;
    Ok(Table::new(file, "", parsed.into_inner()))
}

impl<'a> Table<'a> {
    fn new(file: File<'a>, parent: &str, table: DeTable<'a>) -> Self {
        let mut entries: Vec<(usize, String, Value<'a>)> = table
            .into_iter()
            .map(|(key, value)| {
                let (at, name) = (key.span().start, key.into_inner().into_owned());
                let full = if parent.is_empty() {
                    name.clone()
                } else {
                    format!("{parent}.{name}")
                };
                let value = Value {
                    file,
                    key: full,
                    at: value.span().start,
                    value: value.into_inner(),
                };
                (at, name, value)
            })
            .collect();
        entries.sort_by_key(|(at, ..)| *at);
        Table { file, entries }
    }

    /// The entries under the keys that there are.
    ///
    /// # Errors
    /// Another key, with the nearest of them.
    pub(crate) fn known(self, keys: &'static [&'static str]) -> Result<Vec<(&'static str, Value<'a>)>> {
        let file = self.file;
        let known = |(at, name, value): (usize, String, Value<'a>)| match keys.iter().find(|key| **key == name) {
            Some(key) => Ok((*key, value)),
            None => {
                let help = match nearest(&name, keys) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the keys here are: {}", keys.join(", ")),
                };
                let error = Error::usage(format!("unknown key `{}`", value.key)).with_help(help);
                Err(file.error(at, error))
            }
        };
        self.entries.into_iter().map(known).collect()
    }

    /// All entries, whatever their keys.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.entries.iter().map(|(_, key, value)| (key.as_str(), value))
    }
}

impl<'a> Value<'a> {
    /// The line that it stands in, with what it holds.
    pub(crate) fn placed<T>(&self, read: impl FnOnce(&Self) -> Result<T>) -> Result<Option<Placed<T>>> {
        Ok(Some(Placed {
            value: read(self)?,
            line: self.file.line(self.at),
        }))
    }

    /// An error of this value.
    pub(crate) fn refuse(&self, why: impl Display) -> Error {
        self.file.error(self.at, Error::usage(format!("{}: {why}", self.key)))
    }

    /// An error that something else found in this value.
    pub(crate) fn misfit(&self, error: Error) -> Error {
        let refused = self.refuse(error.kind());
        match error.help() {
            Some(help) => refused.with_help(help),
            None => refused,
        }
    }

    fn expected(&self, what: &str) -> Error {
        self.refuse(format!("expects {what}, found {}", self.value.type_str()))
    }

    pub(crate) fn string(&self) -> Result<&str> {
        match &self.value {
            DeValue::String(text) if text.is_empty() => Err(self.refuse("the text is empty")),
            DeValue::String(text) => Ok(text),
            _ => Err(self.expected("a text in quotes")),
        }
    }

    /// A text that is read as `T` reads it.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self) -> Result<T> {
        self.by(|text| text.parse::<T>().map_err(|error| last_line(&error)))
    }

    /// A text that is read by a function.
    pub(crate) fn by<T>(&self, read: impl FnOnce(&str) -> std::result::Result<T, String>) -> Result<T> {
        read(self.string()?).map_err(|why| self.refuse(why))
    }

    /// A number, or a text that holds one.
    pub(crate) fn number<T: FromStr<Err: Display>>(&self) -> Result<T> {
        let text = match &self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::String(text) => text.to_string(),
            _ => return Err(self.expected("a number")),
        };
        text.parse().map_err(|error| self.refuse(error))
    }

    /// A whole number from 0.
    pub(crate) fn whole(&self, most: u64) -> Result<u64> {
        let number = match &self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse::<u64>().ok(),
            _ => return Err(self.expected("a whole number")),
        };
        number
            .filter(|number| *number <= most)
            .ok_or_else(|| self.refuse(format!("expects a whole number from 0 to {most}")))
    }

    /// `true` or `false`.
    pub(crate) fn truth(&self) -> Result<bool> {
        match &self.value {
            DeValue::Boolean(truth) => Ok(*truth),
            _ => Err(self.expected("true or false")),
        }
    }

    /// What kind of value it is, in TOML's words.
    pub(crate) fn kind(&self) -> &'static str {
        self.value.type_str()
    }

    /// One of a few words.
    pub(crate) fn one_of<T: Copy>(&self, choices: &[(&'static str, T)]) -> Result<T> {
        let text = self.string()?;
        let found = choices.iter().find(|(word, _)| *word == text);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            self.refuse(format!("`{text}` is none of {}", words.join(", ")))
        })
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Every value of a list.
    pub(crate) fn each<T>(&self, read: impl Fn(&Value<'a>) -> Result<T>) -> Result<Vec<T>> {
        let DeValue::Array(list) = &self.value else {
            return Err(self.expected("a list"));
        };
        let each = list.iter().map(|value| Value {
            file: self.file,
            key: self.key.clone(),
            at: value.span().start,
            value: value.get_ref().clone(),
        });
        each.map(|value| read(&value)).collect()
    }

    pub(crate) fn table(&self) -> Result<Table<'a>> {
        match &self.value {
            DeValue::Table(table) => Ok(Table::new(self.file, &self.key, table.clone())),
            _ => Err(self.expected("a table")),
        }
    }
}

/// What an error says, without the drawing of the place that some have.
fn last_line(error: &impl Display) -> String {
    let text = error.to_string();
    text.lines()
        .last()
        .unwrap_or_default()
        .trim()
        .trim_start_matches("error: ")
        .to_owned()
}

/// The key that somebody may have meant: at most a third of its letters wrong.
pub(crate) fn nearest<'k>(name: &str, keys: &'k [&'k str]) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let name = plain(name);
    let near = keys.iter().map(|key| (distance(&name, key), *key)).min()?;
    (near.0 * 3 <= near.1.len().max(3)).then_some(near.1)
}

/// Letters to insert, delete, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX - 1);
            let mut best = (at(&last, j) + usize::from(x != y))
                .min(at(&last, j + 1) + 1)
                .min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before_last, j - 1) + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_one_that_somebody_can_have_meant() {
        let keys = &["process", "process_a", "buckets", "margin", "gate"];
        let near = |name| nearest(name, keys);
        assert_eq!(near("bukets"), Some("buckets"));
        assert_eq!(near("proccess"), Some("process"));
        assert_eq!(near("process-a"), Some("process_a"));
        assert_eq!(near("Margin"), Some("margin"));
        assert_eq!(near("maring"), Some("margin"));
        assert_eq!(near("colour"), None);
        assert_eq!(near(""), None);
    }
}
