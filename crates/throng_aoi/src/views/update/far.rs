//! Far targets, outside caps: plain lists, ascending by id, separate from the bit rows.
//!
//! There is no cap, so a list holds exactly the targets that are allowed and in range. A viewer that crosses into another
//! cell of a layer compares lists of cells. A far target that arrives, leaves, changes or crosses a border checks every
//! viewer in range.
//!
//! Cost: 4 bytes per link; a change of a far target visits every viewer of the scene. There should be few far targets.

use super::cell_pass::CellPass;
use crate::views::events::{ViewEvent, ViewLeaveReason};
use crate::views::state::cells::RowState;
use crate::views::state::far_index::FarChange;
use crate::views::state::object::{NONE, UNCAPPED};

impl CellPass<'_> {
    /// Updates far lists for viewers that moved or changed, and for targets that changed.
    pub(crate) fn update_far(&mut self) {
        if self.shared.far.is_empty() && self.shared.far_changes.is_empty() {
            return;
        }
        for nth in 0..self.viewers.scheduled_rows.len() {
            let row = self.viewers.scheduled_rows[nth] as usize;
            if self.viewers.states[row]
                .has_task(RowState::ARRIVED | RowState::REVISED | RowState::SCANS)
            {
                self.leave_far(row);
                self.enter_far(row);
            }
        }
        for change in &self.shared.far_changes {
            for row in 0..self.viewers.len() {
                self.apply_far_change(row, *change);
            }
        }
    }

    fn leave_far(&mut self, row: usize) {
        let viewer = self.viewers.id(row);
        if self.viewers.far(row).is_empty() {
            return;
        }
        let mut seen = std::mem::take(self.viewers.far_mut(row));
        let is_revised = self.viewers.states[row].has_task(RowState::REVISED);
        seen.retain(
            |&target| match self.far_leave_reason(viewer, target, is_revised) {
                Some(reason) => {
                    self.emit_far_leave(viewer, target, reason);
                    false
                }
                None => true,
            },
        );
        *self.viewers.far_mut(row) = seen;
    }

    pub(crate) fn enter_far(&mut self, row: usize) {
        let state = self.viewers.states[row];
        if state.has_task(RowState::WAITS_FOR_SCAN) {
            return;
        }
        let viewer = self.viewers.id(row);
        let shared = self.shared;
        let is_look = state.has_task(RowState::SCANS | RowState::REVISED);
        let from = if is_look {
            None
        } else {
            self.previous_cell(row)
        };
        for layer in 0..shared.grid.layer_count() {
            let to = shared.grid.coarse_cell(layer, self.cell.grid_cell);
            let from = from.map(|from| shared.grid.coarse_cell(layer, from));
            if from == Some(to) {
                continue;
            }
            for coarse in shared.grid.cells_around(layer, to) {
                if from.is_some_and(|from| from.is_near(coarse)) {
                    continue;
                }
                for &target in shared.far.at(layer as u8, coarse) {
                    self.enter_far_target(row, viewer, target);
                }
            }
        }
    }

    fn apply_far_change(&mut self, row: usize, change: FarChange) {
        let viewer = self.viewers.id(row);
        if viewer == NONE || viewer == change.id {
            return;
        }
        match self.viewers.far(row).binary_search(&change.id) {
            Ok(place) => {
                if let Some(reason) = self.far_leave_reason(viewer, change.id, change.traits) {
                    self.viewers.far_mut(row).remove(place);
                    self.emit_far_leave(viewer, change.id, reason);
                }
            }
            Err(_) if self.viewers.states[row].has_task(RowState::WAITS_FOR_SCAN) => {}
            Err(_) => {
                let layer = usize::from(self.shared.object(change.id).layer);
                let home = self.shared.grid.committed_cell(change.id);
                if self.shared.grid.in_range(layer, self.cell.grid_cell, home) {
                    self.enter_far_target(row, viewer, change.id);
                }
            }
        }
    }

    /// Why a far target can no longer be seen.
    fn far_leave_reason(
        &self,
        viewer: u32,
        target: u32,
        is_revised: bool,
    ) -> Option<ViewLeaveReason> {
        let shared = self.shared;
        let (a, b) = (shared.object(viewer), shared.object(target));
        let home = shared.grid.committed_cell(target);
        if !shared
            .grid
            .in_range(usize::from(b.layer), self.cell.grid_cell, home)
        {
            Some(ViewLeaveReason::Range)
        } else if is_revised && !shared.allows(a, b) {
            Some(ViewLeaveReason::Hidden)
        } else {
            None
        }
    }

    /// Links a viewer with a far target in range, if that is allowed and not done yet.
    fn enter_far_target(&mut self, row: usize, viewer: u32, target: u32) {
        let shared = self.shared;
        let Err(place) = self.viewers.far(row).binary_search(&target) else {
            return;
        };
        if viewer != target && shared.allows(shared.object(viewer), shared.object(target)) {
            self.viewers.far_mut(row).insert(place, target);
            self.scratch.counters.enters += 1;
            let count = self.viewers.far(row).len();
            let longest = &mut self.scratch.counters.longest_list;
            *longest = count.max(*longest);
            self.scratch.events.push(ViewEvent::Enter {
                viewer,
                target,
                priority: shared.class(viewer, target),
                list: UNCAPPED as u8,
            });
        }
    }

    fn emit_far_leave(&mut self, viewer: u32, target: u32, reason: ViewLeaveReason) {
        self.scratch.counters.leaves += 1;
        self.scratch.events.push(ViewEvent::Leave {
            viewer,
            target,
            reason,
            list: UNCAPPED as u8,
        });
    }
}
