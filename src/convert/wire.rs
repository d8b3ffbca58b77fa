//! The wire format of protocol buffers, as much of it as is written here: fields in the order in which they are put.

/// A message that is being put together.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// The bytes so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn raw(&mut self, mut value: u64) {
        loop {
            let low = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            if value == 0 {
                self.0.push(low);
                return;
            }
            self.0.push(low | 0x80);
        }
    }

    fn tag(&mut self, field: u32, wire_type: u64) {
        self.raw(u64::from(field) << 3 | wire_type);
    }

    /// An integer or an enum.
    pub(super) fn varint(&mut self, field: u32, value: u64) {
        self.tag(field, 0);
        self.raw(value);
    }

    /// Eight bytes: a `fixed64`.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    /// A `double`.
    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    fn delimited(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        self.raw(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// A `string`.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.delimited(field, text.as_bytes());
    }

    /// A message inside.
    pub(super) fn message(&mut self, field: u32, message: &Message) {
        self.delimited(field, &message.0);
    }

    /// Integers of one repeated field.
    #[cfg(feature = "traces")]
    pub(super) fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut inside = Message::default();
        for value in values {
            inside.raw(value);
        }
        self.message(field, &inside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_the_encoding_guide_shows_them() {
        let mut message = Message::default();
        message.varint(1, 150);
        message.text(2, "testing");
        assert_eq!(message.bytes(), b"\x08\x96\x01\x12\x07testing");
        let mut message = Message::default();
        message.fixed64(47, 1);
        message.varint(1, u64::MAX);
        assert_eq!(
            message.bytes(),
            b"\xf9\x02\x01\0\0\0\0\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
        );
    }
}
