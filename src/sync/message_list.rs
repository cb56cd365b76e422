//! A list of encoded messages.

use crate::memory::{MemoryUse, clear_and_shrink};

/// Concatenated messages, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, MemoryUse)]
pub struct MessageList {
    bytes: Vec<u8>,
    /// The end of each message.
    ends: Vec<usize>,
}

impl MessageList {
    /// Adds the bytes that `write` appends as a message; it may be empty.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// All messages, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes[start..end])
    }

    /// Whether there are no messages.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of all messages.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all and keeps the buffers, except after a burst.
    pub fn clear(&mut self) {
        clear_and_shrink(&mut self.bytes);
        clear_and_shrink(&mut self.ends);
    }
}
