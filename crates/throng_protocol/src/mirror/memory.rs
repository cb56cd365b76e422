//! What a client's mirror holds.

use throng_core::memory::{MemoryUse, each};

use super::Mirror;

impl MemoryUse for Mirror {
    fn heap_bytes(&self) -> usize {
        let objects = self.objects.values();
        let remotes = self.remotes.values();
        let last = self.last_announce.as_ref();
        each(objects.map(|object| &object.attributes))
            + each(remotes.map(|remote| &remote.attributes))
            + last.map_or(0, |(_, bytes)| bytes.heap_bytes())
            + self.objects.heap_bytes()
            + self.remotes.heap_bytes()
            + self.reassembler.heap_bytes()
            + self.notices.heap_bytes()
    }
}
