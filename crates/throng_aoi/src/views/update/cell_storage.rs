//! The memory of cells: allocated, grown before objects arrive, and freed.
//!
//! Slots are allocated in words of 64, at least a quarter more than before. The rows around all growing cells are rebuilt
//! once. So a crowd that arrives costs a few copies of the rows around it.
//!
//! An empty cell with more than one word of slots frees its slots and rows at once. Apart from that, each cell is checked
//! every [`SHRINK_CHECK_TICKS`] updates, and shrunk to half or less if that is enough with a quarter to spare; objects
//! in the last slots and rows move to lower ones. So memory follows the current number of objects, not the past maximum.
//!
//! Large buffers of the update live for as many updates, and those of a mass move for that update only. Small ones
//! stay while the cell has objects, so a crowd at rest allocates nothing.

use throng_core::memory::MemoryUse;

use super::cell_pass::CellScratch;
use crate::grid::GridCell;
use crate::views::scene_views::SceneViews;
use crate::views::state::bits::bit;
use crate::views::state::cells::{TargetCell, ViewerCell, drop_if_large};
use crate::views::state::object::NONE;
use crate::views::state::rows::NEIGHBOURHOOD_CELLS;
use crate::views::state::scene_state::SceneState;
use crate::views::state::slot_positions::SlotPositions;

/// The interval, in updates, at which a cell is checked for unused memory.
pub(crate) const SHRINK_CHECK_TICKS: u32 = 64;

/// A buffer of the scene's update is freed when it is larger than this.
const BUFFER_BYTES: usize = 1 << 20;

/// The scratch memory of a cell pass is freed when it is larger than this: there may be dozens.
const SCRATCH_BYTES: usize = 1 << 16;

/// The buffers of moved rows are freed after the update when they are larger than this, which is more than a walking crowd
/// of 50,000 needs.
const MOVED_ROWS_BYTES_MAX: usize = 16 << 20;

/// The capacity for a number of items, with a quarter to spare.
const fn with_spare(count: usize) -> usize {
    count + count / 4
}

impl SceneViews {
    /// Allocates the cells that are needed, with slots for all arrivals.
    pub(crate) fn allocate_cells(&mut self, changed: &[u32]) {
        let mut crowded = Vec::new();
        for &id in changed {
            let object = self.shared.objects[id as usize];
            let place = self.shared.location(id);
            let (from, to) = (
                self.shared.grid.committed_cell(id),
                self.shared.grid.cell(id),
            );
            if place.cell != NONE && from == to {
                continue;
            }
            let cell = self.ensure_cell(to);
            if object.viewable && !object.uncapped {
                let target = &mut self.shared.cells[cell as usize];
                target.expected_arrivals += 1;
                let slots = target.words as u32 * 64;
                if target.taken_slots() + target.expected_arrivals == slots + 1 {
                    crowded.push(cell);
                }
            }
        }
        for &cell in &crowded {
            let target = &mut self.shared.cells[cell as usize];
            let needed = (target.taken_slots() + target.expected_arrivals).div_ceil(64) as usize;
            target.resize(needed.max(with_spare(target.words)));
        }
        self.rebuild_rows_around(&crowded);
        for &id in changed {
            if let Some(cell) = self.shared.index_of(self.shared.grid.cell(id)) {
                self.shared.cells[cell].expected_arrivals = 0;
            }
        }
    }

    /// The index of a cell, which is in use from now on.
    pub(crate) fn ensure_cell(&mut self, at: GridCell) -> u32 {
        let SceneState {
            grid,
            cells,
            cell_index: in_use,
            ..
        } = &mut self.shared;
        if in_use.is_empty() {
            let (columns, rows) = grid.size();
            in_use.resize(usize::from(columns) * usize::from(rows), NONE);
        }
        let number = grid.cell_index(at);
        if in_use[number] != NONE {
            return in_use[number];
        }
        let index = cells.len() as u32;
        in_use[number] = index;
        let mut cell = TargetCell::new(at);
        let mut words = 0;
        for direction in 0..NEIGHBOURHOOD_CELLS {
            cell.layout[direction] = words;
            let Some(near) = at.neighbour(direction, grid.size()) else {
                continue;
            };
            let near = in_use[grid.cell_index(near)];
            cell.neighbours[direction] = near;
            if let Some(near) = cells.get_mut(near as usize) {
                // It has no words yet, so the rows around it stay as they are.
                near.neighbours[NEIGHBOURHOOD_CELLS - 1 - direction] = index;
                words += near.words as u32;
            }
        }
        cell.layout[NEIGHBOURHOOD_CELLS] = words;
        let viewers = ViewerCell::new(index, words as usize);
        cells.push(cell);
        self.viewers.push(viewers);
        index
    }

    /// Rebuilds the rows around cells whose number of words changed.
    fn rebuild_rows_around(&mut self, cells: &[u32]) {
        let around = cells
            .iter()
            .flat_map(|&cell| self.shared.cells[cell as usize].neighbours);
        let mut around: Vec<u32> = around.filter(|&near| near != NONE).collect();
        around.sort_unstable();
        around.dedup();
        for cell in around {
            let cells = &self.shared.cells;
            let target = &cells[cell as usize];
            let old = target.layout;
            let mut new = [0; NEIGHBOURHOOD_CELLS + 1];
            for direction in 0..NEIGHBOURHOOD_CELLS {
                let words = cells.get(target.neighbours[direction] as usize);
                let words = words.map_or(0, |near| near.words as u32);
                new[direction + 1] = new[direction] + words;
            }
            self.shared.cells[cell as usize].layout = new;
            self.viewers[cell as usize].rows.rebuild_rows(&old, &new);
        }
    }

    /// Frees the unused memory of a cell, between updates.
    pub(crate) fn shrink_cell(&mut self, cell: usize) {
        let is_due = cell as u32 % SHRINK_CHECK_TICKS == self.update_count % SHRINK_CHECK_TICKS;
        let (target, viewers) = (&mut self.shared.cells[cell], &mut self.viewers[cell]);
        if is_due {
            target.drop_buffers();
            viewers.drop_buffers();
        }
        let rows = viewers.len();
        let is_empty = viewers.used == 0 && rows > if is_due { 0 } else { 64 };
        if is_empty || is_due && rows >= 8 && with_spare(viewers.used) * 2 <= rows {
            let places = &mut self.shared.locations;
            viewers.compact(|id, row| places[id as usize].row = row);
        }
        let words = target.words;
        if words < 2 && !is_due {
            return;
        }
        let taken = target.taken_slots() as usize;
        let wanted = with_spare(taken).div_ceil(64);
        if taken == 0 && words > 0 || is_due && wanted * 2 <= words && words > 0 {
            self.compact_slots(cell, wanted);
        }
    }

    /// Shrinks a cell to this many words of slots; objects in other slots move, in all rows around too.
    fn compact_slots(&mut self, cell: usize, words: usize) {
        let mut moves = Vec::new();
        self.shared.cells[cell].compact(words, &mut moves);
        for &(_, to) in &moves {
            let id = self.shared.cells[cell].id(to as usize);
            let place = &mut self.shared.locations[id as usize];
            place.slot = to;
            if let Some(viewers) = self.viewers.get_mut(place.cell as usize)
                && let Some(state) = viewers.states.get_mut(place.row as usize)
            {
                state.slot = to;
            }
        }
        let near = self.shared.cells[cell].neighbours;
        for (direction, &index) in near.iter().enumerate() {
            let Some(target) = self.shared.cells.get(index as usize) else {
                continue;
            };
            // The direction of the cell as seen from there.
            let first = target.layout[NEIGHBOURHOOD_CELLS - 1 - direction] as usize;
            let viewers = &mut self.viewers[index as usize];
            for row in 0..viewers.len() {
                for &(from, to) in &moves {
                    let (from, to) = (from as usize, to as usize);
                    if viewers.rows.has(row, first + from / 64, from) {
                        viewers.rows.remove(row, first + from / 64, bit(from));
                        viewers.rows.insert(row, first + to / 64, bit(to));
                    }
                }
            }
        }
        self.rebuild_rows_around(&[cell as u32]);
    }

    /// Clears the moved rows. After a mass move their memory is freed at once.
    pub(crate) fn clear_moved_rows(&mut self) {
        self.shared.moved_rows.clear();
        self.shared.moved_words.clear();
        self.shared.moved_bits.clear();
        drop_if_large(&mut self.shared.moved_rows, MOVED_ROWS_BYTES_MAX);
        drop_if_large(&mut self.shared.moved_words, MOVED_ROWS_BYTES_MAX);
        drop_if_large(&mut self.shared.moved_bits, MOVED_ROWS_BYTES_MAX);
    }

    /// Frees large update buffers, which are empty between updates.
    pub(crate) fn shrink_buffers(&mut self) {
        drop_if_large(&mut self.shared.moved_rows, BUFFER_BYTES);
        drop_if_large(&mut self.shared.moved_words, BUFFER_BYTES);
        drop_if_large(&mut self.shared.moved_bits, BUFFER_BYTES);
        drop_if_large(&mut self.shared.far_changes, BUFFER_BYTES);
        if self.shared.slot_positions.heap_bytes() > BUFFER_BYTES {
            self.shared.slot_positions = SlotPositions::default();
        }
        drop_if_large(&mut self.applying, BUFFER_BYTES);
        drop_if_large(&mut self.pending_leaves, BUFFER_BYTES);
        drop_if_large(&mut self.proposals, BUFFER_BYTES);
        drop_if_large(&mut self.lists_with_more_candidates, BUFFER_BYTES);
        drop_if_large(&mut self.freed, BUFFER_BYTES);
        drop_if_large(&mut self.touched_cells, BUFFER_BYTES);
        drop_if_large(&mut self.active_cells, BUFFER_BYTES);
        drop_if_large(&mut self.full_objects, BUFFER_BYTES);
        for scratch in &mut self.scratch {
            if scratch.heap_bytes() > SCRATCH_BYTES {
                *scratch = CellScratch::default();
            }
        }
    }
}
