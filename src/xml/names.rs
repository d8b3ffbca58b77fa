//! Element names as the row scanner looks for them: how an element begins and ends, compared in two steps of 16 bytes.
//!
//! A call that compares slices costs more than the names of an export are long, and every element has its name twice.

use super::value::Tag;

/// An element name.
#[derive(Clone)]
pub(super) struct Name {
    /// `<name ref="`, as most cells begin.
    pub(super) reference: Pattern,
    /// `<name id="`, as nearly all others do.
    pub(super) identified: Pattern,
    /// `<name`.
    pub(super) opening: Pattern,
    /// `</name>`.
    pub(super) closing: Pattern,
    /// Whether its values are kept.
    pub(super) keep: bool,
}

impl Name {
    pub(super) fn new(name: &str) -> Self {
        Name {
            reference: Pattern::new(format!("<{name} ref=\"")),
            identified: Pattern::new(format!("<{name} id=\"")),
            opening: Pattern::new(format!("<{name}")),
            closing: Pattern::new(format!("</{name}>")),
            keep: false,
        }
    }
}

/// Where a tag's name is in the list of names.
pub(super) fn index(tag: Tag) -> usize {
    usize::from(tag.number())
}

/// Bytes to look for.
#[derive(Clone)]
pub(super) struct Pattern {
    text: String,
    /// Bytes and masks of the first and the second 16.
    low: (u128, u128),
    high: (u128, u128),
}

impl Pattern {
    fn new(text: String) -> Self {
        let part = |from: usize| {
            let (mut bytes, mut mask) = ([0; 16], [0; 16]);
            for ((byte, mask), text) in bytes.iter_mut().zip(&mut mask).zip(text.bytes().skip(from)) {
                (*byte, *mask) = (text, 0xff);
            }
            (u128::from_le_bytes(bytes), u128::from_le_bytes(mask))
        };
        Pattern {
            low: part(0),
            high: part(16),
            text,
        }
    }

    /// What is behind the pattern, if `input` begins with it.
    #[inline]
    pub(super) fn strip<'a>(&self, input: &'a [u8]) -> Option<&'a [u8]> {
        let length = self.text.len();
        if let Some(head) = input.first_chunk::<32>()
            && let Some((low, high)) = head.split_first_chunk::<16>()
            && let Some(high) = high.first_chunk::<16>()
            && length <= 32
        {
            let low = (u128::from_le_bytes(*low) ^ self.low.0) & self.low.1;
            let high = (u128::from_le_bytes(*high) ^ self.high.0) & self.high.1;
            return if low | high == 0 { input.get(length..) } else { None };
        }
        input.strip_prefix(self.text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_prefix_of_any_length_anywhere() {
        let text = format!("{}<", "abcdefghijklmnopqrstuvwxyz0123456789".repeat(2));
        for length in 0..60 {
            let pattern = Pattern::new(text[..length].to_owned());
            for end in 0..text.len() {
                let input = &text.as_bytes()[..end];
                assert_eq!(pattern.strip(input), input.strip_prefix(&text.as_bytes()[..length]));
            }
            for other in 0..length {
                let mut input = text.clone().into_bytes();
                input[other] ^= 1;
                assert_eq!(pattern.strip(&input), None, "{length} {other}");
            }
        }
    }
}
