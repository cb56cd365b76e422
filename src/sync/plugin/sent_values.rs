//! The values of an object that clients have.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::memory::MemoryUse;
use crate::sync::attribute_set::AttributeSet;
use crate::sync::masks::bits;

/// The encoded values that clients have, by bit.
#[derive(Component, Clone, Debug, Default, MemoryUse)]
pub(in crate::sync) struct SentValues(#[memory(each)] Vec<SentValue>);

/// What clients have of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, MemoryUse)]
enum SentValue {
    /// The object never had it.
    #[default]
    Never,
    /// The object had it: clients that receive this remove it.
    Removed,
    Value(SmallVec<[u8; 8]>),
}

impl SentValues {
    /// Sets a value.
    pub fn set(&mut self, bit: usize, value: &[u8]) {
        if self.0.len() <= bit {
            self.0.resize(bit + 1, SentValue::Never);
        }
        self.0[bit] = SentValue::Value(SmallVec::from_slice(value));
    }

    /// Notes that an attribute was removed, if the object had it.
    pub fn remove(&mut self, bit: usize) {
        debug_assert!(self.get(bit).is_some(), "attribute {bit} never was");
        if let Some(value) = self.0.get_mut(bit) {
            *value = SentValue::Removed;
        }
    }

    /// The value of an attribute, if it has one.
    pub fn get(&self, bit: usize) -> Option<&[u8]> {
        match self.0.get(bit)? {
            SentValue::Value(value) => Some(value),
            SentValue::Never | SentValue::Removed => None,
        }
    }

    /// Whether the object has an attribute, or had it.
    pub fn was_set(&self, bit: usize) -> bool {
        self.0
            .get(bit)
            .is_some_and(|value| *value != SentValue::Never)
    }

    /// The values in a set, with their bits, ascending.
    pub fn in_set<'a>(&'a self, set: &'a AttributeSet) -> impl Iterator<Item = (usize, &'a [u8])> {
        self.changes(set)
            .filter_map(|(bit, value)| Some((bit, value?)))
    }

    /// The same with removed attributes, as `None`.
    pub fn changes<'a>(
        &'a self,
        set: &'a AttributeSet,
    ) -> impl Iterator<Item = (usize, Option<&'a [u8]>)> {
        bits(set)
            .take_while(|&bit| bit < self.0.len())
            .filter(|&bit| self.was_set(bit))
            .map(|bit| (bit, self.get(bit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::attribute_set::ATTRIBUTE_WORDS;

    #[test]
    fn removed_value_is_reported_as_removed() {
        let (mut sent, all) = (SentValues::default(), [!0; ATTRIBUTE_WORDS]);
        sent.set(3, b"abc");
        sent.set(1, b"x");
        sent.set(3, b"abd");
        assert_eq!(
            sent.in_set(&all).collect::<Vec<_>>(),
            [(1, b"x".as_slice()), (3, b"abd")]
        );
        sent.remove(3);
        assert_eq!(
            sent.in_set(&all).collect::<Vec<_>>(),
            [(1, b"x".as_slice())]
        );
        assert_eq!(
            sent.changes(&all).collect::<Vec<_>>(),
            [(1, Some(b"x".as_slice())), (3, None)]
        );
        assert!(!sent.was_set(2) && sent.was_set(3), "it never was, and was");
    }
}
