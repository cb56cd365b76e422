//! What a store holds, for its operator: the same of every kind of store.

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;
#[cfg(feature = "postgres")]
use throng_protocol::wire::{AttributeValue, Encoding};

/// What is wrong in a store is listed up to so many lines.
pub(super) const PROBLEMS_MAX: usize = 100;

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreInspection {
    /// The version of its tables.
    pub version: i64,
    /// Names of the attributes, by their numbers.
    pub attributes: BTreeMap<u16, String>,
    /// Players who were saved.
    pub players: u64,
    /// Values in all.
    pub values: u64,
    /// Leases that are held, by server: how many, and when the last of them expires, in Unix milliseconds.
    pub leases: BTreeMap<String, (u64, u64)>,
    /// What is wrong, a sentence each.
    pub problems: Vec<String>,
}

/// A player with its lease, as the store has it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRow {
    /// Whose.
    pub player: PlayerId,
    /// How often it was saved.
    pub revision: u64,
    /// The server's tick of the last save.
    pub tick: u64,
    /// The server's Unix time of the last save, in milliseconds.
    pub saved_ms: u64,
    /// The number of the last lease.
    pub epoch: u64,
    /// Who holds it, which process of that name, and until when in Unix milliseconds.
    pub lease: Option<(String, u64, u64)>,
    /// Values by the names of attributes: numbers and text as they are, other bytes in hexadecimal.
    pub values: BTreeMap<String, DisplayValue>,
}

/// A value as people read it.
#[derive(Clone, Debug, PartialEq)]
pub enum DisplayValue {
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// Text, or bytes in hexadecimal.
    Text(String),
}

impl DisplayValue {
    /// The value of these bytes. What a number or a text would not give back byte for byte is shown in hexadecimal.
    #[cfg(feature = "postgres")]
    pub(super) fn from_bytes(encoding: Option<Encoding>, bytes: &[u8]) -> Self {
        let read = encoding.and_then(|encoding| {
            let value = encoding.read(bytes).ok()?;
            let mut again = Vec::new();
            encoding.write(&value, &mut again);
            (again == bytes).then_some(value)
        });
        let shown = match read {
            Some(AttributeValue::Unsigned(value)) => i64::try_from(value).ok().map(Self::Integer),
            Some(AttributeValue::Signed(value)) => Some(Self::Integer(value)),
            Some(AttributeValue::Float(value)) => {
                let is_plain = value.is_finite() && !(value == 0.0 && value.is_sign_negative());
                is_plain.then(|| Self::Real(f64::from(value)))
            }
            Some(AttributeValue::Bytes(_)) => {
                let text = std::str::from_utf8(bytes).ok();
                let text = text.filter(|text| !text.contains('\0'));
                text.map(|text| Self::Text(text.to_owned()))
            }
            None => None,
        };
        shown.unwrap_or_else(|| Self::hexadecimal(bytes))
    }

    /// Bytes that are no number and no text.
    pub(super) fn hexadecimal(bytes: &[u8]) -> Self {
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::Text(format!("0x{}", digits.concat()))
    }
}
