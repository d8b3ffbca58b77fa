//! A value of an export in eight bytes: a number, a text, or a list of children, with its element's name.
//!
//! Texts and lists stand in a [`super::pool::Pool`], each once, so equal values of one pool have equal bits.

/// A cell's value, packed: 2 bits kind, 12 bits element name, 50 bits payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Value(u64);

/// Index of an element name in a [`super::pool::Pool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Tag(pub(super) u16);

impl Tag {
    /// No element's.
    pub(super) const NONE: Tag = Tag(0);

    pub(super) fn number(self) -> u16 {
        self.0
    }
}

const PAYLOAD_BITS: u32 = 50;
const PAYLOAD_MASK: u64 = (1 << PAYLOAD_BITS) - 1;
const KIND_SHIFT: u32 = 62;

/// What a [`Value`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No id was defined here, or it was defined by an element that nobody needs.
    Undefined,
    /// `<sentinel/>`.
    Null,
    /// A decimal number below 2^50, written the usual way.
    Number(u64),
    /// Any other text.
    Text(TextId),
    /// An element with child elements.
    Composite(CompositeId),
}

/// Place of a text in its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TextId(pub(super) u64);

/// Place of a list of children in its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CompositeId(pub(super) u64);

impl Value {
    pub(super) const UNDEFINED: Value = Value(0);
    pub(super) const NULL: Value = Value(1);

    fn pack(kind: u64, tag: Tag, payload: u64) -> Value {
        Value(kind << KIND_SHIFT | u64::from(tag.0) << PAYLOAD_BITS | (payload & PAYLOAD_MASK))
    }

    /// The number, when it fits the payload.
    pub(super) fn number(tag: Tag, number: u64) -> Option<Value> {
        (number <= PAYLOAD_MASK).then(|| Value::pack(1, tag, number))
    }

    pub(super) fn text(tag: Tag, text: TextId) -> Value {
        Value::pack(2, tag, text.0)
    }

    pub(super) fn composite(tag: Tag, composite: CompositeId) -> Value {
        Value::pack(3, tag, composite.0)
    }

    /// A placeholder for what an earlier piece of the document defines, by its number among those; see
    /// [`super::segments`]. It has no kind.
    pub(super) fn import(tag: Tag, number: usize) -> Value {
        Value::pack(0, tag, number as u64)
    }

    /// The number of a placeholder.
    pub(super) fn import_number(self) -> Option<usize> {
        // No element name is tag 0, and the kind is above all else.
        if !(1 << PAYLOAD_BITS..1 << KIND_SHIFT).contains(&self.0) {
            return None;
        }
        usize::try_from(self.0 & PAYLOAD_MASK).ok()
    }

    pub(super) fn tag(self) -> Tag {
        Tag(u16::try_from(self.0 >> PAYLOAD_BITS & 0xfff).unwrap_or(0))
    }

    pub(super) fn kind(self) -> Kind {
        let payload = self.0 & PAYLOAD_MASK;
        match self.0 >> KIND_SHIFT {
            1 => Kind::Number(payload),
            2 => Kind::Text(TextId(payload)),
            3 => Kind::Composite(CompositeId(payload)),
            _ if self == Value::NULL => Kind::Null,
            _ => Kind::Undefined,
        }
    }

    /// Equal for equal values of one document.
    pub(super) fn bits(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::Pool;
    use super::*;

    #[test]
    fn values_round_trip() {
        let mut pool = Pool::default();
        let tag = pool.tag("duration").unwrap();
        let number = Value::number(tag, PAYLOAD_MASK).unwrap();
        assert_eq!((number.kind(), number.tag()), (Kind::Number(PAYLOAD_MASK), tag));
        assert_eq!(Value::number(tag, PAYLOAD_MASK + 1), None);
        assert_eq!(Value::NULL.kind(), Kind::Null);
        assert_eq!(Value::UNDEFINED.kind(), Kind::Undefined);
        let a = pool.text("a");
        let b = pool.text("b");
        assert_eq!(pool.text("a"), a);
        assert_eq!((pool.get_text(a), pool.get_text(b)), ("a", "b"));
        let (pair, new) = pool.composite(&[number, Value::text(tag, b)]);
        assert!(new);
        assert_eq!(pool.composite(&[number, Value::text(tag, b)]), (pair, false));
        assert_eq!(pool.children(pair), [number, Value::text(tag, b)]);
    }
}
