//! What a client's mirror holds.

use super::{AttributeValues, Mirror};
use crate::memory::{MemoryUse, each};

fn of_values(values: &AttributeValues) -> usize {
    values.heap_bytes() + each(values.iter().map(|(_, value)| value))
}

impl MemoryUse for Mirror {
    fn heap_bytes(&self) -> usize {
        let objects = self.objects.values();
        let remotes = self.remotes.values();
        let last = self.last_announce.as_ref();
        objects
            .map(|object| of_values(&object.attributes))
            .chain(remotes.map(|remote| of_values(&remote.attributes)))
            .sum::<usize>()
            + last.map_or(0, |(_, bytes)| bytes.heap_bytes())
            + self.objects.heap_bytes()
            + self.remotes.heap_bytes()
            + self.reassembler.heap_bytes()
            + self.notices.heap_bytes()
    }
}
