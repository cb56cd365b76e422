//! Inspection of a store for its operator, the same for every kind of store.

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;
#[cfg(feature = "postgres")]
use throng_protocol::wire::{AttributeValue, Encoding};

/// Maximum number of listed problems.
pub(super) const PROBLEMS_MAX: usize = 100;

/// The contents of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreInspection {
    /// Schema version.
    pub version: i64,
    /// Names of the attributes, by number.
    pub attributes: BTreeMap<u16, String>,
    /// Number of saved players.
    pub players: u64,
    /// Number of values.
    pub values: u64,
    /// Held leases by server: their number, and the latest expiry in Unix milliseconds.
    pub leases: BTreeMap<String, (u64, u64)>,
    /// Problems, one sentence each.
    pub problems: Vec<String>,
}

/// A player and its lease, as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRow {
    /// Player id.
    pub player: PlayerId,
    /// Number of saves.
    pub revision: u64,
    /// Tick of the last save, on its server.
    pub tick: u64,
    /// Unix time of the last save, on its server, in milliseconds.
    pub saved_ms: u64,
    /// Epoch of the last lease.
    pub epoch: u64,
    /// Lease holder: server name, process of that name, and expiry in Unix milliseconds.
    pub lease: Option<(String, u64, u64)>,
    /// Values by attribute name: numbers and text as such, other bytes in hexadecimal.
    pub values: BTreeMap<String, DisplayValue>,
}

/// A value in readable form.
#[derive(Clone, Debug, PartialEq)]
pub enum DisplayValue {
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Text, or bytes in hexadecimal.
    Text(String),
}

impl DisplayValue {
    /// The value of these bytes; hexadecimal if a number or text would not convert back to the same bytes.
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

    /// Formats bytes that are neither a number nor text.
    pub(super) fn hexadecimal(bytes: &[u8]) -> Self {
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::Text(format!("0x{}", digits.concat()))
    }
}
