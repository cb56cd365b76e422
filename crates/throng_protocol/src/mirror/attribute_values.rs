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

use crate::wire::{ATTRIBUTE_BYTES_MAX, Attribute, AttributeType, Encoding, ReplicatedAttribute};

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
    /// The value of an attribute of this object, decoded. `None` without a value, and where the bytes are no such value.
    /// O(attributes).
    #[must_use]
    pub fn value<A: ReplicatedAttribute>(&self) -> Option<A::Value> {
        self.get_as(A::ID, A::ENCODING)
    }

    /// The value of an attribute by its number, decoded in the default encoding of its type: `get::<u16>(7)`. `None` without a
    /// value, and where the bytes are no such value. O(attributes).
    #[must_use]
    pub fn get<T: AttributeType>(&self, id: u16) -> Option<T> {
        self.get_as(id, T::ENCODING)
    }

    /// As [`get`](Self::get), for an attribute with another encoding.
    #[must_use]
    pub fn get_as<T: AttributeType>(&self, id: u16, encoding: Encoding) -> Option<T> {
        T::decode(encoding, self.bytes(id)?)
    }

    /// The value of an attribute by its number, as encoded. O(attributes).
    #[must_use]
    pub fn bytes(&self, id: u16) -> Option<&[u8]> {
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
            updates in prop::collection::vec(
                prop::collection::vec((prop_oneof![0u16..6, Just(u16::MAX)], prop::option::weighted(
                    0.7,
                    (prop_oneof![6 => 0usize..5, 1 => 253usize..=255], any::<u8>()),
                )), 0..4),
                0..30,
            ),
        ) {
            let mut values = AttributeValues::default();
            let mut model = BTreeMap::new();
            for update in updates {
                let update: Vec<(u16, Option<Vec<u8>>)> = update
                    .into_iter()
                    .map(|(id, value)| (id, value.map(|(length, byte)| vec![byte; length])))
                    .collect();
                let attributes: Vec<Attribute> = update
                    .iter()
                    .map(|(id, value)| Attribute { id: *id, value: value.as_deref() })
                    .collect();
                values.set(&attributes);
                for (id, value) in update {
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
                    prop_assert_eq!(values.bytes(id), model.get(&id).map(|value| &value[..]));
                }
            }
        }
    }

    #[derive(ReplicatedAttribute)]
    struct Stamina {
        _points: u8,
    }

    #[derive(ReplicatedAttribute)]
    #[replicate(id = 3, encoding = Encoding::U32)]
    struct Purse {
        #[replicate]
        _gold: u32,
        _owner: f32,
    }

    #[test]
    fn values_are_read_by_attribute_and_by_number() {
        let mut values = AttributeValues::default();
        assert_eq!(values.value::<Purse>(), None);
        let attribute = |id, value| Attribute {
            id,
            value: Some(value),
        };
        values.set(&[
            attribute(2, &[7, 1]),
            attribute(3, &[1, 0, 1, 0]),
            attribute(Stamina::ID, &[9]),
        ]);
        assert_eq!(values.value::<Purse>(), Some(65_537));
        assert_eq!(values.value::<Stamina>(), Some(9));
        assert_eq!(values.get::<u16>(2), Some(263));
        assert_eq!(values.get::<u8>(2), None, "two bytes");
        assert_eq!(values.get::<u32>(3), None, "no varint of four bytes");
        assert_eq!(values.get_as::<u32>(3, Encoding::U32), Some(65_537));
        assert_eq!(values.get::<bool>(Stamina::ID), None, "neither 0 nor 1");
        assert_eq!(values.get::<u8>(4), None);
        values.set(&[attribute(3, &[1, 0])]);
        assert_eq!(values.value::<Purse>(), None);
    }
}
