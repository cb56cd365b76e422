//! Memory of each client's state.

use std::slice;

use prefetch_index::prefetch_index;

use super::{ClientState, FillScratch};
use crate::memory::MemoryUse;

impl ClientState {
    /// Asks for the memory of what [`fill`](Self::fill) looks at here: there is more of it than caches hold.
    pub fn prefetch(&self) {
        prefetch_index(slice::from_ref(&self.links), 0);
        prefetch_index(slice::from_ref(&self.entering), 0);
        prefetch_index(slice::from_ref(&self.remotes), 0);
        prefetch_index(slice::from_ref(&self.held), 0);
        prefetch_index(slice::from_ref(&self.kept), 0);
        prefetch_index(slice::from_ref(&self.begins), 0);
    }

    /// The same of its links, which lie elsewhere.
    pub fn prefetch_links(&self) {
        self.links.prefetch();
    }
}

impl MemoryUse for ClientState {
    fn heap_bytes(&self) -> usize {
        let held = self.held.iter().map(|held| held.bytes.heap_bytes());
        let missed = self.missed.as_deref();
        held.sum::<usize>()
            + missed.map_or(0, |missed| size_of_val(missed) + missed.heap_bytes())
            + self.links.heap_bytes()
            + self.waiting.heap_bytes()
            + self.entering.heap_bytes()
            + self.despawns.heap_bytes()
            + self.remotes.heap_bytes()
            + self.announced.heap_bytes()
            + self.held.heap_bytes()
            + self.notices.heap_bytes()
            + self.kept.heap_bytes()
    }
}

impl MemoryUse for FillScratch {
    fn heap_bytes(&self) -> usize {
        self.order.heap_bytes() + self.due.heap_bytes() + self.receivers.heap_bytes()
    }
}
