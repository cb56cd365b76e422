//! Prefetching of a client's state.

use std::slice;

use prefetch_index::prefetch_index;

use super::ClientState;

impl ClientState {
    /// Prefetches the memory that [`write_update`](Self::write_update) reads here: all of it is larger than the caches.
    pub fn prefetch(&self) {
        prefetch_index(slice::from_ref(&self.objects), 0);
        prefetch_index(slice::from_ref(&self.entering), 0);
        prefetch_index(slice::from_ref(&self.unseen), 0);
        prefetch_index(slice::from_ref(&self.pending_announcements), 0);
        prefetch_index(slice::from_ref(&self.resume_buffer), 0);
        prefetch_index(slice::from_ref(&self.starts_scene), 0);
    }

    /// The same for its objects, which are stored elsewhere.
    pub fn prefetch_objects(&self) {
        self.objects.prefetch();
    }
}
