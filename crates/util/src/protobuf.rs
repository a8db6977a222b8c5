//! Minimal protocol buffers for the file formats of trackers: [`ProtobufMessage`] writes fields, [`fields`] reads them.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    /// Builds a message with the fields that `fill` adds, and returns its bytes.
    pub fn encode(fill: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut message = Self::default();
        fill(&mut message);
        message.0
    }

    /// Continues a message that already has the fields in `bytes`.
    pub fn with(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Adds an integer; negative ones and booleans are cast to `u64`.
    pub fn varint(&mut self, field: u64, value: u64) {
        self.raw_varint(field << 3);
        self.raw_varint(value);
    }

    /// Adds eight bytes, little endian: a `double` by its bits.
    pub fn fixed64(&mut self, field: u64, value: u64) {
        self.raw_varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    /// Adds a string, bytes or a message.
    pub fn bytes(&mut self, field: u64, value: &[u8]) {
        self.raw_varint(field << 3 | 2);
        self.raw_varint(value.len() as u64);
        self.0.extend(value);
    }

    /// Adds a message with the fields that `fill` adds.
    pub fn message(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        self.bytes(field, &Self::encode(fill));
    }

    /// Adds a string unless it is empty, which is the default.
    pub fn text(&mut self, field: u64, value: &str) {
        if !value.is_empty() {
            self.bytes(field, value.as_bytes());
        }
    }

    /// Adds four bytes, little endian: a `float` by its bits.
    pub fn fixed32(&mut self, field: u64, value: u32) {
        self.raw_varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// The wire value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WireValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// Returns the fields of a message in order, with their numbers; stops at invalid bytes.
pub fn fields(message: &[u8]) -> impl Iterator<Item = (u64, WireValue<'_>)> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let tag = read_varint(&mut rest)?;
        let value = match tag & 7 {
            0 => WireValue::Varint(read_varint(&mut rest)?),
            1 => WireValue::Fixed64(u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(read_varint(&mut rest)?).ok()?;
                WireValue::Bytes(take(&mut rest, length)?)
            }
            5 => WireValue::Fixed32(u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((tag >> 3, value))
    })
}

/// Returns the bytes of the first field with this number, if any.
pub fn bytes_of(message: &[u8], field: u64) -> Option<&[u8]> {
    fields(message).find_map(|(number, value)| match value {
        WireValue::Bytes(bytes) if number == field => Some(bytes),
        _ => None,
    })
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the example of the encoding's documentation, and every kind of field.
    #[test]
    fn fields_read_back_as_written() {
        assert_eq!(ProtobufMessage::encode(|message| message.varint(1, 150)), b"\x08\x96\x01");
        let bytes = ProtobufMessage::encode(|message| {
            message.varint(1, u64::MAX);
            message.fixed64(2, 1.5f64.to_bits());
            message.message(300, |inner| inner.text(1, "x"));
            message.text(4, "");
            message.fixed32(5, 7);
        });
        let inner: &[u8] = b"\x0a\x01x";
        let expected = [
            (1, WireValue::Varint(u64::MAX)),
            (2, WireValue::Fixed64(1.5f64.to_bits())),
            (300, WireValue::Bytes(inner)),
            (5, WireValue::Fixed32(7)),
        ];
        assert_eq!(fields(&bytes).collect::<Vec<_>>(), expected);
        assert_eq!(bytes_of(&bytes, 300), Some(inner));
        for cut in 0..bytes.len() {
            assert!(fields(&bytes[..cut]).count() < expected.len());
        }
    }
}
