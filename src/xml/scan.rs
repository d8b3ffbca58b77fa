//! The row scanner: rows in the one form that xctrace writes, read without the tokenizer.
//!
//! ```xml
//! <row><start-time id="1" fmt="00:00.782">782830041</start-time><process ref="12"/><sentinel/>…</row>
//! ```
//! What goes in is the buffer behind the last row; what comes out is one more row of [`Cells`], or nothing: whatever
//! is not exactly this grammar, and whatever is wrong with a row, leaves everything as it was, and the tokenizer reads
//! the row from its beginning. So there is one place that judges XML and words errors, and this file may only say yes
//! where the tokenizer says the same.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::bounded::BUFFER;
use super::cells::{Cells, GUESSES, MAX_NAMES_BYTES};
use super::names;
use super::repeats::Streak;
use super::value::{Tag, Value};
use super::{Schema, unescaped};

/// Real cells nest four deep.
const MAX_SCANNED_DEPTH: usize = 16;

/// Why a row was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The buffer ends before the row does.
    Short,
    /// It is for the tokenizer.
    Odd,
}

/// A row that was read: where it begins and ends in the bytes that were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scanned {
    pub(super) begin: usize,
    pub(super) end: usize,
}

impl Cells {
    /// Reads the row that `bytes` begin with; they are UTF-8 and follow a closing tag.
    pub(super) fn scan_row(&mut self, bytes: &[u8], schema: &Schema) -> Result<Scanned, Stop> {
        // Near this bound it matters at which text it is reached.
        let many_names = !self.keep_all && self.text_bytes() + BUFFER > MAX_NAMES_BYTES;
        if many_names || !schema.plain {
            return Err(Stop::Odd);
        }
        let mut input = Cursor { rest: bytes };
        if input.rest.first() == Some(&b'\n') {
            input.skip(1)?;
        }
        let begin = bytes.len() - input.rest.len();
        if !input.eat(ROW) {
            // At the end of a table nothing is waited for.
            return Err(if ROW.starts_with(input.rest) {
                Stop::Short
            } else {
                Stop::Odd
            });
        }
        self.begin_row();
        self.ids.mark();
        let pool = self.pool.mark();
        let counted = (self.tag_bytes, self.full_bytes);
        let scanned = self.scan_cells(&mut input, schema);
        if scanned.is_err() {
            self.begin_row();
            self.ids.rewind();
            self.pool.rewind(pool);
            self.references.forget();
            // Texts are taken back, and the tokenizer may define ids anew until the next row is scanned.
            self.repeats.forget();
            (self.tag_bytes, self.full_bytes) = counted;
        }
        scanned.map(|()| Scanned {
            begin,
            end: bytes.len() - input.rest.len(),
        })
    }

    fn scan_cells(&mut self, input: &mut Cursor<'_>, schema: &Schema) -> Result<(), Stop> {
        let mut streak = Streak::default();
        while let Some(column) = schema.columns.get(self.row.len()) {
            let (place, begin) = (GUESSES + self.row.len(), input.rest);
            if let Some((run, behind)) = self.repeats.run(place, begin) {
                self.tag_bytes += run.tag_bytes();
                let known = self.row.len();
                self.row.extend_from_slice(&run.values);
                input.rest = behind;
                streak.end(&mut self.repeats, begin, self.row.get(..known).unwrap_or_default());
                continue;
            }
            let (value, repeated) = if let Some(found) = self.scan_repeated(input, place, column.tag, 1)? {
                found
            } else if input.eat(b"<sentinel/>") {
                self.tag_bytes += SENTINEL_BYTES;
                (Value::NULL, false)
            } else if column.kind == "any" {
                let tag = self.scan_name(input)?;
                (self.scan_element(input, tag, 1)?.ok_or(Stop::Odd)?, false)
            } else {
                return Err(input.stop());
            };
            if repeated {
                streak.goes_on(&self.repeats, place, begin, self.row.len());
            } else {
                streak.end(&mut self.repeats, begin, &self.row);
            }
            self.row.push(value);
        }
        streak.end(&mut self.repeats, input.rest, &self.row);
        input.expect(b"</row>")
    }

    /// As [`Cells::scan_element`], quicker when the last element at this place was a reference to the same; the second part
    /// says whether it was.
    #[inline(always)]
    fn scan_repeated(
        &mut self,
        input: &mut Cursor<'_>,
        place: usize,
        tag: Tag,
        depth: usize,
    ) -> Result<Option<(Value, bool)>, Stop> {
        let name = self.names.get(names::index(tag)).ok_or(Stop::Odd)?;
        let begin = input.rest.len();
        let Some(rest) = name.reference.strip(input.rest) else {
            let value = self.scan_definition(input, tag, depth)?;
            return Ok(value.map(|value| (value, false)));
        };
        if let Some((value, behind)) = self.repeats.get(place, tag, rest) {
            input.rest = behind;
            // Without `<` and `/>`.
            self.tag_bytes += (begin - behind.len() - 3) as u64;
            return Ok(Some((value, true)));
        }
        let value = self.scan_reference(input, tag, rest)?;
        self.repeats.set(place, tag, rest, rest.len() - input.rest.len(), value);
        Ok(Some((value, false)))
    }

    /// An element of this name, to the end of its closing tag; `None`, and nothing was read, when something else is next.
    fn scan_element(&mut self, input: &mut Cursor<'_>, tag: Tag, depth: usize) -> Result<Option<Value>, Stop> {
        let name = self.names.get(names::index(tag)).ok_or(Stop::Odd)?;
        match name.reference.strip(input.rest) {
            Some(rest) => self.scan_reference(input, tag, rest).map(Some),
            None => self.scan_definition(input, tag, depth),
        }
    }

    /// A reference, of which `rest` is behind `<name ref="`.
    fn scan_reference<'a>(&mut self, input: &mut Cursor<'a>, tag: Tag, rest: &'a [u8]) -> Result<Value, Stop> {
        let begin = input.rest.len();
        input.rest = rest;
        let id = input.id()?;
        // What is between the brackets.
        self.tag_bytes += (begin - input.rest.len() - 1) as u64;
        input.expect(b"/>")?;
        if !self.keeps(tag) {
            return Ok(Value::UNDEFINED);
        }
        let value = self.value_of(tag, id);
        let fits = value.tag() == tag && value != Value::UNDEFINED || value == Value::NULL;
        if fits { Ok(value) } else { Err(Stop::Odd) }
    }

    /// As [`Cells::scan_element`], of an element that is no reference.
    fn scan_definition(&mut self, input: &mut Cursor<'_>, tag: Tag, depth: usize) -> Result<Option<Value>, Stop> {
        let name = self.names.get(names::index(tag)).ok_or(Stop::Odd)?;
        let keep = name.keep;
        let (rest, begin) = (input.rest, input.rest.len());
        let id = if let Some(rest) = name.identified.strip(rest) {
            input.rest = rest;
            Some(input.id()?)
        } else {
            match name.opening.strip(rest) {
                Some(rest @ [b' ' | b'>', ..]) => input.rest = rest,
                // Nothing that begins with the name is another, or less.
                Some([]) => return Err(Stop::Short),
                _ => return Ok(None),
            }
            None
        };
        let shown = if input.eat(b" fmt=\"") {
            Some(input.attribute()?)
        } else {
            None
        };
        self.tag_bytes += (begin - input.rest.len() - 1) as u64;
        self.scan_content(input, tag, (keep, id, shown), depth).map(Some)
    }

    /// What follows the name and the attributes of an element that is no reference.
    fn scan_content(
        &mut self,
        input: &mut Cursor<'_>,
        tag: Tag,
        (keep, id, shown): (bool, Option<u64>, Option<&[u8]>),
        depth: usize,
    ) -> Result<Value, Stop> {
        input.expect(b">")?;
        let value = if input.begins_element()? {
            self.scan_children(input, tag, keep, shown, depth)?
        } else {
            self.scan_text(input, tag, keep, shown)?
        };
        let name = self.names.get(names::index(tag)).ok_or(Stop::Odd)?;
        input.rest = name.closing.strip(input.rest).ok_or_else(|| input.stop())?;
        if let Some(id) = id {
            // Hardly ever: no id is there twice.
            if self.ids.try_define(id, value) != Value::UNDEFINED || self.references.may_know(id) {
                self.repeats.forget();
            }
        }
        Ok(value)
    }

    fn scan_children(
        &mut self,
        input: &mut Cursor<'_>,
        tag: Tag,
        keep: bool,
        shown: Option<&[u8]>,
        depth: usize,
    ) -> Result<Value, Stop> {
        if depth >= MAX_SCANNED_DEPTH {
            return Err(Stop::Odd);
        }
        let children_from = self.scratch.len();
        let mut number = 8 * names::index(tag);
        let mut streak = Streak::default();
        loop {
            let (place, begin) = (number % GUESSES, input.rest);
            if keep && let Some((run, behind)) = self.repeats.run(place, begin) {
                self.tag_bytes += run.tag_bytes();
                let known = self.scratch.len();
                self.scratch.extend_from_slice(&run.values);
                number += run.elements;
                input.rest = behind;
                streak.end(&mut self.repeats, begin, self.scratch.get(..known).unwrap_or_default());
                continue;
            }
            if !input.begins_element()? {
                break;
            }
            let (value, kept, repeated) = if input.eat(b"<sentinel/>") {
                self.tag_bytes += SENTINEL_BYTES;
                (Value::NULL, true, false)
            } else {
                let (tag, value, repeated) = self.scan_child(input, place, depth + 1)?;
                (value, self.keeps(tag), repeated)
            };
            number += 1;
            if repeated && keep {
                streak.goes_on(&self.repeats, place, begin, self.scratch.len());
            } else {
                streak.end(&mut self.repeats, begin, &self.scratch);
            }
            if keep && (kept || value == Value::NULL) {
                self.scratch.push(value);
            }
        }
        streak.end(&mut self.repeats, input.rest, &self.scratch);
        let value = if keep {
            let shown = self.wanted(tag, shown)?;
            self.composite(tag, children_from, shown.as_deref(), "")
                .map_err(|_| Stop::Odd)?
        } else {
            Value::UNDEFINED
        };
        self.scratch.truncate(children_from);
        Ok(value)
    }

    /// The text of an element without children.
    fn scan_text(&mut self, input: &mut Cursor<'_>, tag: Tag, keep: bool, shown: Option<&[u8]>) -> Result<Value, Stop> {
        let is_process = tag == self.process;
        if keep
            && !is_process
            && let Some((number, after)) = input.number()
            && let Some(value) = Value::number(tag, number)
        {
            input.rest = after;
            return Ok(value);
        }
        let text = input.text()?;
        if !keep {
            return Ok(Value::UNDEFINED);
        }
        if is_process {
            let children_from = self.scratch.len();
            let shown = self.wanted(tag, shown)?;
            let value = self.composite(tag, children_from, shown.as_deref(), &text);
            self.scratch.truncate(children_from);
            return value.map_err(|_| Stop::Odd);
        }
        self.leaf(tag, &text).map_err(|_| Stop::Odd)
    }

    /// What an element shows, if that is kept for its type.
    fn wanted<'a>(&self, tag: Tag, shown: Option<&'a [u8]>) -> Result<Option<Cow<'a, str>>, Stop> {
        let Some(shown) = shown.filter(|_| self.keep_all || tag == self.process) else {
            return Ok(None);
        };
        let shown = std::str::from_utf8(shown).map_err(|_| Stop::Odd)?;
        Ok(Some(if memchr(b'&', shown.as_bytes()).is_some() {
            Cow::Owned(unescaped(shown).trim().to_owned())
        } else {
            Cow::Borrowed(shown.trim())
        }))
    }

    /// A child: mostly of the name that the child at the same place of the last such element had.
    #[inline]
    fn scan_child(&mut self, input: &mut Cursor<'_>, place: usize, depth: usize) -> Result<(Tag, Value, bool), Stop> {
        if let Some(Some(tag)) = self.guesses.get(place).copied()
            && let Some((value, repeated)) = self.scan_repeated(input, place, tag, depth)?
        {
            return Ok((tag, value, repeated));
        }
        let tag = self.scan_name(input)?;
        if let Some(guess) = self.guesses.get_mut(place) {
            *guess = Some(tag);
        }
        let value = self.scan_element(input, tag, depth)?.ok_or(Stop::Odd)?;
        Ok((tag, value, false))
    }

    /// The name of the element that is next, if the document had it before.
    fn scan_name(&self, input: &Cursor<'_>) -> Result<Tag, Stop> {
        let Some(name) = input.rest.strip_prefix(b"<") else {
            return Err(input.stop());
        };
        let length = name.iter().position(|byte| !is_name_byte(*byte)).ok_or(Stop::Short)?;
        let name = std::str::from_utf8(name.get(..length).unwrap_or_default()).map_err(|_| Stop::Odd)?;
        // What is a sentinel whatever its attributes are.
        let tag = self.pool.known_tag(name).filter(|tag| *tag != self.sentinel);
        tag.ok_or_else(|| input.stop())
    }
}

/// Whether cells of this type begin as the scanner expects it.
pub(super) fn is_plain(kind: &str) -> bool {
    kind.bytes().all(is_name_byte) && kind != "sentinel"
}

/// The characters of Apple's names, so that what is no name to the tokenizer is none here.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

const ROW: &[u8] = b"<row>";
/// What is between the brackets of a sentinel.
const SENTINEL_BYTES: u64 = "sentinel".len() as u64;

/// What is left of the buffer.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Something else than what may stand here, or the end.
    fn stop(&self) -> Stop {
        // Longer than any fixed part of the grammar and any element name of a schema.
        if self.rest.len() < 128 { Stop::Short } else { Stop::Odd }
    }

    #[inline]
    fn eat(&mut self, expected: &[u8]) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    #[inline]
    fn expect(&mut self, expected: &[u8]) -> Result<(), Stop> {
        if self.eat(expected) { Ok(()) } else { Err(self.stop()) }
    }

    #[inline]
    fn skip(&mut self, amount: usize) -> Result<(), Stop> {
        self.rest = self.rest.get(amount..).ok_or(Stop::Short)?;
        Ok(())
    }

    #[inline]
    fn take(&mut self, amount: usize) -> Result<&'a [u8], Stop> {
        let (taken, rest) = self.rest.split_at_checked(amount).ok_or(Stop::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Whether an opening tag is next; false for a closing tag and for text.
    #[inline]
    fn begins_element(&self) -> Result<bool, Stop> {
        match self.rest {
            [b'<', second, ..] => Ok(*second != b'/'),
            [] | [b'<'] => Err(Stop::Short),
            _ => Ok(false),
        }
    }

    /// An attribute's value, raw, and the quote behind it.
    #[inline]
    fn attribute(&mut self) -> Result<&'a [u8], Stop> {
        let value = self.take(find(b'"', self.rest).ok_or(Stop::Short)?)?;
        self.skip(1)?;
        Ok(value)
    }

    /// The digits of an id and the quote behind them.
    #[inline(always)]
    fn id(&mut self) -> Result<u64, Stop> {
        let (id, length) = digits(self.rest).ok_or_else(|| self.stop())?;
        match self.rest.get(length..) {
            Some([b'"', rest @ ..]) => {
                self.rest = rest;
                Ok(id)
            }
            _ => Err(self.stop()),
        }
    }

    /// A text that is a decimal number and nothing else, written the usual way; and what is behind it.
    #[inline]
    fn number(&self) -> Option<(u64, &'a [u8])> {
        let (number, length) = digits(self.rest)?;
        let zero = length > 1 && self.rest.first() == Some(&b'0');
        let after = self.rest.get(length..)?;
        (!zero && after.first() == Some(&b'<')).then_some((number, after))
    }

    /// The text before the next tag.
    #[inline]
    fn text(&mut self) -> Result<Cow<'a, str>, Stop> {
        let length = memchr2(b'<', b'&', self.rest).ok_or(Stop::Short)?;
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| Stop::Odd)?;
        if self.rest.first() == Some(&b'<') {
            return Ok(Cow::Borrowed(text));
        }
        let mut text = text.to_owned();
        loop {
            let character = ENTITIES
                .iter()
                .find_map(|(name, character)| self.eat(name).then_some(*character))
                .ok_or_else(|| self.stop())?;
            text.push(character);
            let length = memchr2(b'<', b'&', self.rest).ok_or(Stop::Short)?;
            text.push_str(std::str::from_utf8(self.take(length)?).map_err(|_| Stop::Odd)?);
            if self.rest.first() == Some(&b'<') {
                return Ok(Cow::Owned(text));
            }
        }
    }
}

const ENTITIES: [(&[u8], char); 5] = [
    (b"&lt;", '<'),
    (b"&gt;", '>'),
    (b"&amp;", '&'),
    (b"&quot;", '"'),
    (b"&apos;", '\''),
];

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Where `byte` is first: most texts of an export are shorter than what a call to a vector search is worth.
#[inline]
fn find(byte: u8, text: &[u8]) -> Option<usize> {
    let pattern = u64::from(byte) * ONES;
    let mut at = 0;
    let mut rest = text;
    while let Some((word, more)) = rest.split_first_chunk::<8>() {
        let same = u64::from_le_bytes(*word) ^ pattern;
        let zero = same.wrapping_sub(ONES) & !same & HIGHS;
        if zero != 0 {
            return Some(at + (zero.trailing_zeros() / 8) as usize);
        }
        at += 8;
        rest = more;
        if at == 32 {
            break;
        }
    }
    memchr(byte, rest).map(|more| at + more)
}

/// A number of up to 16 digits and how many there are; `None` when there are none or more, and near the end.
#[inline]
fn digits(text: &[u8]) -> Option<(u64, usize)> {
    let word = text.first_chunk::<8>()?;
    match leading_digits(*word) {
        (_, 0) => None,
        (high, 8) => more_digits(high, text.get(8..)?),
        some => Some(some),
    }
}

/// The number that eight digits begin.
fn more_digits(high: u64, rest: &[u8]) -> Option<(u64, usize)> {
    let (word, rest) = rest.split_first_chunk::<8>()?;
    let (low, more) = leading_digits(*word);
    if more == 8 && rest.first().is_none_or(u8::is_ascii_digit) {
        return None;
    }
    Some((high * TENS.get(more)? + low, 8 + more))
}

const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The digits that eight bytes begin with, as a number, and how many they are.
#[inline]
fn leading_digits(word: [u8; 8]) -> (u64, usize) {
    let values = u64::from_le_bytes(word) ^ (ONES * u64::from(b'0'));
    // The high bit of each byte that is above 9; a carry spoils only bytes behind such a one.
    let others = (values.wrapping_add(ONES * (0x80 - 10)) | values) & HIGHS;
    let count = (others.trailing_zeros() / 8).min(8);
    if count == 0 {
        return (0, 0);
    }
    // The last digit into the last byte, zeros before the first.
    let pairs = (values << (64 - 8 * count)).wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul(10_000 << 32 | 1) >> 32;
    (eight, count as usize)
}

#[cfg(test)]
mod tests;
