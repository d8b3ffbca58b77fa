//! The references of rows before: most cells and their parts refer to what stood at their place there, in the same bytes,
//! and to compare those is quicker than to read a number and to look it up. Where several in a row do ([`Run`]), they are
//! compared at once.

use super::value::{Tag, Value};

/// The last reference at each place of a row, and the runs that begin there.
#[derive(Clone, Default)]
pub(super) struct Repeats {
    places: Vec<Repeat>,
    runs: Vec<Run>,
    /// How often all was forgotten.
    forgotten: u64,
}

/// References that stood one behind the other in two rows.
#[derive(Clone, Default)]
pub(super) struct Run {
    /// Their bytes, whole tags.
    text: Vec<u8>,
    /// How many they are; 0: no run is known.
    pub(super) elements: usize,
    /// What they stand for, as far as it goes into a row.
    pub(super) values: Vec<Value>,
    /// Another one was met since.
    stale: bool,
}

impl Run {
    /// Bytes between the brackets.
    pub(super) fn tag_bytes(&self) -> u64 {
        // Without `<` and `/>` of each.
        (self.text.len() - 3 * self.elements) as u64
    }
}

#[derive(Clone, Copy)]
struct Repeat {
    /// What followed `<name ref="`, to the end of the tag, as far as `mask` goes.
    text: u128,
    mask: u128,
    length: usize,
    tag: Tag,
    value: Value,
}

/// No text is it.
const NONE: Repeat = Repeat {
    text: 1,
    mask: 0,
    length: 0,
    tag: Tag::NONE,
    value: Value::UNDEFINED,
};

impl Repeats {
    /// What a reference stands for that goes on like the last one at its place, and what is behind it. The place only says
    /// where to look: the same bytes of the same type stand for the same anywhere.
    #[inline]
    pub(super) fn get<'a>(&self, place: usize, tag: Tag, rest: &'a [u8]) -> Option<(Value, &'a [u8])> {
        let repeat = self.places.get(place)?;
        let head = u128::from_le_bytes(*rest.first_chunk()?);
        if head & repeat.mask != repeat.text || repeat.tag != tag {
            return None;
        }
        Some((repeat.value, rest.get(repeat.length..)?))
    }

    /// Remembers that `rest` began with `length` bytes that stand for `value`.
    #[inline]
    pub(super) fn set(&mut self, place: usize, tag: Tag, rest: &[u8], length: usize, value: Value) {
        let Some(head) = rest.first_chunk().filter(|_| (1..=16).contains(&length)) else {
            return;
        };
        if self.places.len() <= place {
            self.places.resize(place + 1, NONE);
        }
        let mask = u128::MAX >> (128 - 8 * length);
        if let Some(repeat) = self.places.get_mut(place) {
            *repeat = Repeat {
                text: u128::from_le_bytes(*head) & mask,
                mask,
                length,
                tag,
                value,
            };
        }
    }

    /// The run at a place, if `rest` begins with it, and what is behind it.
    #[inline]
    pub(super) fn run<'a>(&mut self, place: usize, rest: &'a [u8]) -> Option<(&Run, &'a [u8])> {
        let run = self.runs.get_mut(place)?;
        if run.elements == 0 {
            return None;
        }
        let behind = rest.strip_prefix(run.text.as_slice())?;
        run.stale = false;
        Some((run, behind))
    }

    /// Remembers that `elements` references with these bytes and values stood from a place on, unless the run that is known
    /// there has been missed only once: rows of two kinds can take turns.
    pub(super) fn set_run(&mut self, place: usize, text: &[u8], elements: usize, values: &[Value]) {
        if self.runs.len() <= place {
            self.runs.resize_with(place + 1, Run::default);
        }
        let Some(run) = self.runs.get_mut(place) else { return };
        if run.elements > 0 && !run.stale {
            run.stale = true;
            return;
        }
        run.text.clear();
        run.text.extend_from_slice(text);
        run.values.clear();
        run.values.extend_from_slice(values);
        (run.elements, run.stale) = (elements, false);
    }

    /// An id, or a place, may stand for something else from now on.
    pub(super) fn forget(&mut self) {
        self.places.clear();
        // Their memory is for the next ones.
        self.runs.iter_mut().for_each(|run| run.elements = 0);
        self.forgotten += 1;
    }
}

/// References that are each the same as in the row before, one behind the other; two and more become a [`Run`].
#[derive(Default)]
pub(super) struct Streak<'a> {
    place: usize,
    elements: usize,
    /// The input from the first one on.
    from: &'a [u8],
    /// How many values there were before it.
    values: usize,
    /// [`Repeats::forgotten`] at the first one: an id of theirs may be defined anew before they are remembered.
    forgotten: u64,
}

impl<'a> Streak<'a> {
    /// One more, which is at `place` and `from`, when it is the first; with so many `values` before it.
    #[inline]
    pub(super) fn goes_on(&mut self, repeats: &Repeats, place: usize, from: &'a [u8], values: usize) {
        if self.elements == 0 {
            (self.place, self.from, self.values) = (place, from, values);
            self.forgotten = repeats.forgotten;
        }
        self.elements += 1;
    }

    /// Something else follows at `rest`; `values` are those of the list so far.
    #[inline]
    pub(super) fn end(&mut self, repeats: &mut Repeats, rest: &[u8], values: &[Value]) {
        if self.elements > 1 && self.forgotten == repeats.forgotten {
            let text = self.from.get(..self.from.len() - rest.len()).unwrap_or_default();
            repeats.set_run(
                self.place,
                text,
                self.elements,
                values.get(self.values..).unwrap_or_default(),
            );
        }
        self.elements = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::Pool;
    use super::*;

    #[test]
    fn only_the_same_bytes_at_the_same_place_are_the_same() {
        let mut pool = Pool::default();
        let (tag, other) = (pool.tag("x").unwrap(), pool.tag("y").unwrap());
        let value = Value::number(tag, 5).unwrap();
        let mut repeats = Repeats::default();
        let padded = |text: &str| format!("{text}{}", "-".repeat(16)).into_bytes();
        for text in ["1\"/>", "12345678\"/>", "1234567890123\"/>"] {
            let rest = padded(text);
            assert!(repeats.get(2, tag, &rest).is_none());
            repeats.set(2, tag, &rest, text.len(), value);
            let (found, behind) = repeats.get(2, tag, &rest).unwrap();
            assert_eq!((found, behind), (value, &rest[text.len()..]));
            assert!(repeats.get(1, tag, &rest).is_none());
            assert!(repeats.get(3, tag, &rest).is_none());
            assert!(repeats.get(2, other, &rest).is_none());
            assert!(repeats.get(2, tag, &rest[..15]).is_none());
            for at in 0..text.len() {
                let mut changed = rest.clone();
                changed[at] ^= 1;
                assert!(repeats.get(2, tag, &changed).is_none(), "{text} {at}");
            }
        }
        let long = padded("12345678901234\"/>");
        repeats.set(2, tag, &long, 17, value);
        assert!(repeats.get(2, tag, &long).is_none());
        let rest = padded("1\"/>");
        repeats.set(2, tag, &rest, 4, value);
        repeats.forget();
        assert!(repeats.get(2, tag, &rest).is_none());
    }

    #[test]
    fn a_run_is_known_until_another_was_met_twice_in_turn() {
        let mut pool = Pool::default();
        let tag = pool.tag("x").unwrap();
        let value = |number| Value::number(tag, number).unwrap();
        let text = |number: u64| format!("<x ref=\"{number}\"/><x ref=\"2\"/>").into_bytes();
        let values = |number: u64| [value(number), value(2)];
        let mut repeats = Repeats::default();
        assert!(repeats.run(3, &text(1)).is_none());
        repeats.set_run(3, &text(1), 2, &values(1));
        let followed = [text(1), b"<y>".to_vec()].concat();
        let (run, behind) = repeats.run(3, &followed).unwrap();
        assert_eq!(
            (run.elements, run.values.as_slice(), behind),
            (2, &values(1)[..], &b"<y>"[..])
        );
        assert_eq!(run.tag_bytes(), (r#"x ref="1""#.len() + r#"x ref="2""#.len()) as u64);
        assert!(repeats.run(2, &text(1)).is_none());
        assert!(repeats.run(3, &text(1)[..10]).is_none());

        // Rows of two kinds that take turns.
        for _ in 0..3 {
            assert!(repeats.run(3, &text(7)).is_none());
            repeats.set_run(3, &text(7), 2, &values(7));
            assert!(repeats.run(3, &text(1)).is_some());
        }
        // And one that stays.
        for met in [false, true] {
            assert!(repeats.run(3, &text(7)).is_none());
            repeats.set_run(3, &text(7), 2, &values(7));
            assert_eq!(repeats.run(3, &text(7)).is_some(), met);
        }
        repeats.forget();
        assert!(repeats.run(3, &text(7)).is_none());
        repeats.set_run(3, &text(1), 2, &values(1));
        assert!(repeats.run(3, &text(1)).is_some());
    }
}
