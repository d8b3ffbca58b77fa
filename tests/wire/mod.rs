//! Reads protocol buffers field by field, as much of them as tests look at: a second reading of what the library writes.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

/// A field's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    Varint(u64),
    Fixed(u64),
    Bytes(Vec<u8>),
}

/// A message: its fields in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Message(pub Vec<(u32, Field)>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap();
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint has at most ten bytes");
}

impl Message {
    /// Fails at anything that is no message.
    #[track_caller]
    pub fn read(mut bytes: &[u8]) -> Message {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = u32::try_from(tag >> 3).unwrap();
            assert!(field > 0);
            let value = match tag & 7 {
                0 => Field::Varint(varint(&mut bytes)),
                1 => {
                    let (value, rest) = bytes.split_at(8);
                    bytes = rest;
                    Field::Fixed(u64::from_le_bytes(value.try_into().unwrap()))
                }
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(value.to_vec())
                }
                other => panic!("wire type {other}"),
            };
            fields.push((field, value));
        }
        Message(fields)
    }

    pub fn all(&self, field: u32) -> impl Iterator<Item = &Field> {
        self.0
            .iter()
            .filter(move |(number, _)| *number == field)
            .map(|(_, value)| value)
    }

    /// The number of a field that is there at most once.
    pub fn number(&self, field: u32) -> Option<u64> {
        let mut all = self.all(field);
        let one = all.next()?;
        assert_eq!(all.next(), None, "field {field} twice");
        match one {
            Field::Varint(value) | Field::Fixed(value) => Some(*value),
            Field::Bytes(_) => panic!("field {field} is no number"),
        }
    }

    fn bytes(&self, field: u32) -> impl Iterator<Item = &[u8]> {
        self.all(field).map(move |value| match value {
            Field::Bytes(bytes) => bytes.as_slice(),
            other => panic!("field {field} is {other:?}"),
        })
    }

    pub fn messages(&self, field: u32) -> Vec<Message> {
        self.bytes(field).map(Message::read).collect()
    }

    pub fn message(&self, field: u32) -> Option<Message> {
        let mut all = self.messages(field);
        assert!(all.len() < 2, "field {field} twice");
        all.pop()
    }

    pub fn texts(&self, field: u32) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        self.bytes(field).map(text).collect()
    }

    /// Numbers of a packed field.
    pub fn packed(&self, field: u32) -> Vec<u64> {
        let mut numbers = Vec::new();
        for mut bytes in self.bytes(field) {
            while !bytes.is_empty() {
                numbers.push(varint(&mut bytes));
            }
        }
        numbers
    }
}
