//! Values as people read them, beside the bytes that count.

use throng_protocol::wire::{AttributeValue, Encoding};

/// A value for people: a number or text, where it is one.
pub(super) fn to_text(encoding: Encoding, bytes: &[u8]) -> Option<String> {
    Some(match encoding.read(bytes).ok()? {
        AttributeValue::Unsigned(value) => value.to_string(),
        AttributeValue::Signed(value) => value.to_string(),
        AttributeValue::Float(value) => value.to_string(),
        AttributeValue::Bytes(_) => {
            let text = std::str::from_utf8(bytes).ok()?;
            // The server takes no text with a zero in it.
            return (!text.contains('\0')).then(|| text.to_owned());
        }
    })
}
