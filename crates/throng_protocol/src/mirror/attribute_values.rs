//! The attributes that a client knows of an object, in one buffer.
//!
//! ```text
//! number (2 bytes, little endian) │ length (1 byte) │ value ‖ number │ length │ value ‖ …
//! ```
//!
//! Objects have a few attributes of a few bytes each, and every message concerns another object. A list of lists would need three memory
//! accesses per lookup, and an allocation per value.

use std::fmt;

use smallvec::SmallVec;
use throng_core::memory::MemoryUse;

use crate::wire::{ATTRIBUTE_BYTES_MAX, Attribute};

/// Bytes without allocation: about six values of two bytes. 23 and 39 take the same time.
const INLINE_BYTES: usize = 31;

const HEADER_BYTES: usize = 3;

const _: () = assert!(ATTRIBUTE_BYTES_MAX <= u8::MAX as u32);

/// Encoded values of attributes by ascending number.
#[derive(Clone, Default, PartialEq, Eq, MemoryUse)]
pub struct AttributeValues {
    entries: SmallVec<[u8; INLINE_BYTES]>,
}

impl AttributeValues {
    /// The encoded value of an attribute. O(attributes).
    #[must_use]
    pub fn get(&self, id: u16) -> Option<&[u8]> {
        let mut from_there = self.iter().skip_while(|&(held, _)| held < id);
        let (held, value) = from_there.next()?;
        (held == id).then_some(value)
    }

    /// Numbers and values of all attributes, by ascending number.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> {
        entries(&self.entries)
    }

    /// Number of attributes. O(attributes).
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are no attributes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Applies received attributes, including removals. O(attributes) if they have ascending numbers, as servers send them.
    pub(super) fn set(&mut self, attributes: &[Attribute]) {
        let (mut from, mut last) = (0, None);
        for &Attribute { id, value } in attributes {
            if last.is_some_and(|last| id <= last) {
                from = 0;
            }
            last = Some(id);
            let mut replaced = 0;
            for (held, held_value) in entries(&self.entries[from..]) {
                let length = HEADER_BYTES + held_value.len();
                if held >= id {
                    replaced = if held == id { length } else { 0 };
                    break;
                }
                from += length;
            }
            let to = from + replaced;
            match value {
                Some(value) if to - from == HEADER_BYTES + value.len() => {
                    self.entries[from + HEADER_BYTES..to].copy_from_slice(value);
                }
                _ => self.splice(id, value, from, to),
            }
        }
    }

    /// Replaces these bytes by an attribute, or by nothing.
    fn splice(&mut self, id: u16, value: Option<&[u8]>, from: usize, to: usize) {
        let after: SmallVec<[u8; INLINE_BYTES]> = SmallVec::from_slice(&self.entries[to..]);
        self.entries.truncate(from);
        if let Some(value) = value {
            debug_assert!(value.len() <= ATTRIBUTE_BYTES_MAX as usize);
            self.entries.extend_from_slice(&id.to_le_bytes());
            self.entries.push(value.len() as u8);
            self.entries.extend_from_slice(value);
        }
        self.entries.extend_from_slice(&after);
    }
}

/// The attributes in these bytes.
fn entries(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&[low, high, length], after) = rest.split_first_chunk()?;
        let (value, after) = after.split_at_checked(usize::from(length))?;
        rest = after;
        Some((u16::from_le_bytes([low, high]), value))
    })
}

impl fmt::Debug for AttributeValues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(draws!())]

        /// The model is a map of lists. Numbers often repeat, and values have the shortest and longest lengths.
        #[test]
        fn values_are_the_last_ones_received(
            told in prop::collection::vec(
                prop::collection::vec((prop_oneof![0u16..6, Just(u16::MAX)], prop::option::weighted(
                    0.7,
                    (prop_oneof![6 => 0usize..5, 1 => 253usize..=255], any::<u8>()),
                )), 0..4),
                0..30,
            ),
        ) {
            let mut values = AttributeValues::default();
            let mut model = BTreeMap::new();
            for told in told {
                let told: Vec<(u16, Option<Vec<u8>>)> = told
                    .into_iter()
                    .map(|(id, value)| (id, value.map(|(length, byte)| vec![byte; length])))
                    .collect();
                let attributes: Vec<Attribute> = told
                    .iter()
                    .map(|(id, value)| Attribute { id: *id, value: value.as_deref() })
                    .collect();
                values.set(&attributes);
                for (id, value) in told {
                    match value {
                        Some(value) => drop(model.insert(id, value)),
                        None => drop(model.remove(&id)),
                    }
                }
                let expected = model.iter().map(|(&id, value)| (id, &value[..]));
                prop_assert!(values.iter().eq(expected), "{values:?}, not {model:?}");
                prop_assert_eq!(values.len(), model.len());
                prop_assert_eq!(values.is_empty(), model.is_empty());
                for id in (0..7).chain([u16::MAX - 1, u16::MAX]) {
                    prop_assert_eq!(values.get(id), model.get(&id).map(|value| &value[..]));
                }
            }
        }
    }
}
