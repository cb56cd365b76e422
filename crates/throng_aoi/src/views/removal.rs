//! Links that end at once, outside an update: of removed objects, and of objects that cease or begin to be viewers. The next
//! update emits their events.

use super::events::{ViewEvent, ViewLeaveReason};
use super::scene_views::SceneViews;
use super::state::bits::bit;
use super::state::cells::RowState;
use super::state::object::{CellLocation, NONE, UNCAPPED};

impl SceneViews {
    /// Ends all links of a viewer and frees its row.
    pub(super) fn remove_viewer(&mut self, id: u32, reason: ViewLeaveReason) {
        if !self.shared.objects[id as usize].viewer {
            return;
        }
        self.remove_exact_viewer(id, reason);
        let seen: Vec<u32> = self.seen_near(id).collect();
        for target in seen {
            self.unlink(id, target, reason);
            let (me, other) = (self.shared.object(id), self.shared.object(target));
            if self.shared.ranking.is_pair(me, other) {
                self.unlink(target, id, reason);
            }
        }
        let CellLocation { cell, row, .. } = self.shared.location(id);
        if row != NONE {
            let (_, far) = self.viewers[cell as usize].free(row);
            for target in far {
                self.record_removed_link(id, target, reason, UNCAPPED);
            }
        }
        self.shared.locations[id as usize].row = NONE;
        self.queue.remove(id);
        let is_mutual = self.shared.ranking.mutual;
        let object = &mut self.shared.objects[id as usize];
        object.viewer = false;
        object.has_row = false;
        object.pending.viewer = false;
        object.pending.caps = false;
        // Its partners may see it one-way from now on.
        object.pending.traits |= is_mutual;
    }

    /// In mutual mode: ends the links of viewers that saw an object one-way, since both ends must agree from now on.
    pub(super) fn unlink_one_way_viewers(&mut self, id: u32) {
        if !self.shared.ranking.mutual || !self.shared.objects[id as usize].is_peer() {
            return;
        }
        let watchers: Vec<u32> = self.watchers(id).collect();
        for watcher in watchers {
            if self.shared.object(watcher).is_peer() {
                self.unlink(watcher, id, ViewLeaveReason::Despawn);
            }
        }
    }

    /// Ends all links to an object and frees its slot.
    pub(super) fn remove_target(&mut self, id: u32, reason: ViewLeaveReason) {
        let object = self.shared.objects[id as usize];
        let watchers: Vec<u32> = self.watchers(id).collect();
        for watcher in watchers {
            if self.shared.objects[watcher as usize].is_exact() {
                self.exact.forget(watcher, object.list(), id);
                self.record_removed_link(watcher, id, reason, object.list());
            } else if object.uncapped {
                let CellLocation { cell, row, .. } = self.shared.location(watcher);
                let far = self.viewers[cell as usize].far_mut(row as usize);
                far.retain(|&target| target != id);
                self.record_removed_link(watcher, id, reason, UNCAPPED);
            } else {
                self.unlink(watcher, id, reason);
            }
        }
        let place = self.shared.location(id);
        if object.uncapped {
            let grid = &self.shared.grid;
            let coarse = grid.coarse_cell(usize::from(object.layer), grid.committed_cell(id));
            self.shared.far.remove(object.layer, coarse, id);
        } else if place.slot != NONE {
            let cell = &mut self.shared.cells[place.cell as usize];
            cell.clear(place.slot as usize, object.list());
        }
    }

    /// Ends a link with a near target.
    fn unlink(&mut self, viewer: u32, target: u32, reason: ViewLeaveReason) {
        let CellLocation { cell, row, .. } = self.shared.location(viewer);
        let Some(index) = self.shared.cells.get(cell as usize) else {
            return;
        };
        let Some((word, place)) = self.shared.bit_of(index, target) else {
            return;
        };
        let viewers = &mut self.viewers[cell as usize];
        if !viewers.rows.has(row as usize, word, place) {
            return;
        }
        viewers.rows.remove(row as usize, word, bit(place));
        let list = self.shared.objects[target as usize].list();
        let state = &mut viewers.states[row as usize];
        let was_full = !state.has_room(list);
        state.count[list] -= 1;
        if was_full {
            state.request_refill(list, self.shared.is_ranked(list));
            viewers.schedule(row, RowState::FREED);
            self.mark_active(cell);
        }
        self.record_removed_link(viewer, target, reason, list);
    }

    pub(super) fn record_removed_link(
        &mut self,
        viewer: u32,
        target: u32,
        reason: ViewLeaveReason,
        list: usize,
    ) {
        self.pending_leaves.push(ViewEvent::Leave {
            viewer,
            target,
            reason,
            list: list as u8,
        });
    }
}
