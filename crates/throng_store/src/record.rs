//! The stored record of a player.

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;
use throng_core::memory::MemoryUse;
use throng_protocol::wire::{AttributeValue, Encoding};

/// A stored attribute. The store saves its name and encoding, so that operators can read the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAttribute {
    /// Its number in packets and records.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// Encoding of its values.
    pub encoding: Encoding,
}

/// A player as stored.
#[derive(Clone, Debug, PartialEq, Eq, MemoryUse)]
pub struct PlayerRecord {
    /// Player id.
    pub player: PlayerId,
    /// Number of saves; 0 for a new player. Of two records the one with the higher revision is newer.
    pub revision: u64,
    /// Tick of the last save, on the server that wrote it.
    pub tick: u64,
    /// The encoded value of each attribute, by number.
    #[memory(each_value)]
    pub values: BTreeMap<u16, Vec<u8>>,
}

impl PlayerRecord {
    /// A player without stored values.
    #[must_use]
    pub const fn new(player: PlayerId) -> Self {
        Self {
            player,
            revision: 0,
            tick: 0,
            values: BTreeMap::new(),
        }
    }

    /// Whether the player was never saved.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.revision == 0
    }

    /// The value of an attribute; `None` if it is missing or not valid in this encoding.
    #[must_use]
    pub fn value(&self, id: u16, encoding: Encoding) -> Option<AttributeValue> {
        encoding.read(self.values.get(&id)?).ok()
    }

    /// The value of a count attribute: like [`value`](Self::value), and `None` if it is negative or no integer.
    #[must_use]
    pub fn count(&self, id: u16, encoding: Encoding) -> Option<u64> {
        match self.value(id, encoding)? {
            AttributeValue::Unsigned(count) => Some(count),
            AttributeValue::Signed(count) => u64::try_from(count).ok(),
            AttributeValue::Float(_) | AttributeValue::Bytes(_) => None,
        }
    }

    /// Applies changes; `None` removes an attribute.
    pub fn apply<'a>(&mut self, changes: impl Iterator<Item = (u16, Option<&'a [u8]>)>) {
        for (id, value) in changes {
            match value {
                Some(value) => self.values.insert(id, value.to_vec()),
                None => self.values.remove(&id),
            };
        }
    }
}
