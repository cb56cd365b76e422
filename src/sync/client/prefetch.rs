//! Prefetching of a client's state.

use std::slice;

use prefetch_index::prefetch_index;

use super::ClientState;

impl ClientState {
    /// Asks for the memory of what [`fill`](Self::fill) looks at here: there is more of it than caches hold.
    pub fn prefetch(&self) {
        prefetch_index(slice::from_ref(&self.objects), 0);
        prefetch_index(slice::from_ref(&self.entering), 0);
        prefetch_index(slice::from_ref(&self.unseen), 0);
        prefetch_index(slice::from_ref(&self.pending_announcements), 0);
        prefetch_index(slice::from_ref(&self.resume_buffer), 0);
        prefetch_index(slice::from_ref(&self.starts_scene), 0);
    }

    /// The same of its links, which lie elsewhere.
    pub fn prefetch_objects(&self) {
        self.objects.prefetch();
    }
}
