//! A list of encoded messages.

use crate::memory::{MemoryUse, clear_and_shrink};

/// Messages one behind the other, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, MemoryUse)]
pub struct MessageList {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl MessageList {
    /// Adds what `write` appends; where it appends nothing, a message of no bytes.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// All of them, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes[start..end])
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of all of them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets all and keeps the buffers, but for those that a burst has widened.
    pub fn clear(&mut self) {
        clear_and_shrink(&mut self.bytes);
        clear_and_shrink(&mut self.ends);
    }
}
