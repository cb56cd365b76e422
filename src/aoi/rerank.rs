//! Bands of distance follow those who walk: each update, a fixed share of the viewers looks at them anew.
//!
//! Only a full list has to choose, so only those count: who has a free place sees everybody anyway. A viewer
//! ranks its members anew, with hysteresis, and as it knows nothing of the others then, it waits for a look (or
//! sweeps, if it moved).
//!
//! Cost: viewers ÷ `rerank_ticks` looks an update.

use super::{links::UNCAPPED, object::UNKNOWN, views::SceneViews};

impl SceneViews {
    /// Re-ranks the viewers whose turn it is.
    pub(super) fn rerank(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        if self.rerank_ticks == 0 {
            return;
        }
        let first = (self.turn % self.rerank_ticks) as usize;
        for viewer in (first..self.objects.len()).step_by(self.rerank_ticks as usize) {
            self.rerank_viewer(viewer as u32);
        }
    }

    fn rerank_viewer(&mut self, viewer: u32) {
        let object = &self.objects[viewer as usize];
        if !object.viewer {
            return;
        }
        let (gate, bound) = (object.gate, object.bound);
        for list in 0..UNCAPPED {
            // Full, and somebody was refused: otherwise it sees all that it could.
            if gate[list] == 0 || bound[list] == 0 {
                continue;
            }
            for place in 0..self.links.list_len(viewer, list) {
                if let Some(key) = self.links.key_at(viewer, list, place) {
                    let (me, other) = (
                        &self.objects[viewer as usize],
                        &self.objects[key.target() as usize],
                    );
                    let rank = self.ranking.rank_in_class(key.rank(), me, other);
                    self.set_rank(viewer, list, place, rank);
                }
            }
            self.refresh_gate(viewer, list);
            self.objects[viewer as usize].bound[list] = UNKNOWN;
            self.freed.insert(viewer as usize);
        }
    }
}
