//! The references of the row before: most cells and their parts refer to what stood at their place there, in the same
//! bytes, and to compare those is quicker than to read a number and to look it up.

use super::ids::{Tag, Value};

/// The last reference at each place of a row.
#[derive(Clone, Default)]
pub(super) struct Repeats {
    places: Vec<Repeat>,
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

    /// An id may stand for something else from now on.
    pub(super) fn forget(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::Pool;
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
}
