//! What clients hold of an object.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::sync::attribute_set::AttributeSet;
use crate::sync::masks::bits;

/// The values that clients hold, encoded, by bit; `None` for attributes that the object does not have.
#[derive(Component, Clone, Debug, Default)]
pub(in crate::sync) struct SentValues(Vec<Option<SmallVec<[u8; 8]>>>);

impl SentValues {
    /// Keeps a value; whether it differs from the one before.
    pub fn set(&mut self, bit: usize, value: &[u8]) -> bool {
        if self.0.len() <= bit {
            self.0.resize(bit + 1, None);
        }
        let changed = self.0[bit].as_deref() != Some(value);
        if changed {
            self.0[bit] = Some(SmallVec::from_slice(value));
        }
        changed
    }

    /// The value of an attribute, if it has one.
    pub fn get(&self, bit: usize) -> Option<&[u8]> {
        self.0.get(bit)?.as_deref()
    }

    /// Those of the values that are in a set, with their bits, ascending.
    pub fn of<'a>(&'a self, set: &'a AttributeSet) -> impl Iterator<Item = (usize, &'a [u8])> {
        bits(set)
            .map_while(|bit| Some((bit, self.0.get(bit)?)))
            .filter_map(|(bit, value)| Some((bit, value.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::attribute_set::ATTRIBUTE_WORDS;

    #[test]
    fn an_equal_value_is_no_change() {
        let mut sent = SentValues::default();
        assert!(sent.set(3, b"abc") && !sent.set(3, b"abc") && sent.set(3, b"abd"));
        let all = [!0; ATTRIBUTE_WORDS];
        assert_eq!(sent.of(&all).collect::<Vec<_>>(), [(3, b"abd".as_slice())]);
    }
}
