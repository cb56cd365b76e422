//! What is kept of a player.

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;
use throng_core::memory::MemoryUse;
use throng_protocol::wire::{AttributeValue, Encoding};

/// An attribute that is kept: what a store writes down of it, so that people can read its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAttribute {
    /// Its number in packets and records.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// How its values are written.
    pub encoding: Encoding,
}

/// A player as the store has it.
#[derive(Clone, Debug, PartialEq, Eq, MemoryUse)]
pub struct PlayerRecord {
    /// Whose.
    pub player: PlayerId,
    /// How often it was saved; 0 for a player that is new. Of two records the one with the higher revision is newer.
    pub revision: u64,
    /// The tick of the last save, by the clock of the server that wrote it.
    pub tick: u64,
    /// The encoded value of each attribute, by its number.
    #[memory(each_value)]
    pub values: BTreeMap<u16, Vec<u8>>,
}

impl PlayerRecord {
    /// A player of whom nothing is kept.
    #[must_use]
    pub const fn new(player: PlayerId) -> Self {
        Self {
            player,
            revision: 0,
            tick: 0,
            values: BTreeMap::new(),
        }
    }

    /// Whether it was never saved.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.revision == 0
    }

    /// The value of an attribute; `None` where there is none, or none that this encoding wrote.
    #[must_use]
    pub fn value(&self, id: u16, encoding: Encoding) -> Option<AttributeValue> {
        encoding.read(self.values.get(&id)?).ok()
    }

    /// The value of an attribute that is a count: as [`value`](Self::value), and `None` where it is none from 0 on.
    #[must_use]
    pub fn count(&self, id: u16, encoding: Encoding) -> Option<u64> {
        match self.value(id, encoding)? {
            AttributeValue::Unsigned(count) => Some(count),
            AttributeValue::Signed(count) => u64::try_from(count).ok(),
            AttributeValue::Float(_) | AttributeValue::Bytes(_) => None,
        }
    }

    /// Takes over what changed; `None` where the attribute is no more.
    pub fn apply<'a>(&mut self, changes: impl Iterator<Item = (u16, Option<&'a [u8]>)>) {
        for (id, value) in changes {
            match value {
                Some(value) => self.values.insert(id, value.to_vec()),
                None => self.values.remove(&id),
            };
        }
    }
}
