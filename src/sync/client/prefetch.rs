//! Prefetching of a client's state.

use std::slice;

use prefetch_index::prefetch_index;

use super::ClientState;

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
