//! Readable values, stored next to the bytes that count.

use throng_protocol::wire::{AttributeValue, Encoding};

/// A value as text, if it is a number or text.
pub(super) fn to_text(encoding: Encoding, bytes: &[u8]) -> Option<String> {
    Some(match encoding.read(bytes).ok()? {
        AttributeValue::Unsigned(value) => value.to_string(),
        AttributeValue::Signed(value) => value.to_string(),
        AttributeValue::Float(value) => value.to_string(),
        AttributeValue::Bytes(_) => {
            let text = std::str::from_utf8(bytes).ok()?;
            // Postgres does not store text that contains a zero character.
            return (!text.contains('\0')).then(|| text.to_owned());
        }
    })
}
