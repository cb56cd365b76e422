//! The View step: updates the links from all changes noted since the last update.
//!
//! ```text
//! apply    by id: cells grow, slots and rows are taken and freed, rows of viewers that moved are stored
//! serve    the first viewers of the queue are scheduled to scan
//! cells    in parallel: cell_pass.rs
//! pairs    in mutual mode: pairs/mod.rs
//! finish   vacated slots are freed, events are emitted cell by cell, unused memory is freed: cell_storage.rs
//! exact    viewers whose links depend on exact distances: exact/
//! ```
//! Changes are applied sequentially in the order of ids; cells write only to themselves. So links and events are the same for
//! any number of threads. Cells grow before any row is stored, since a row is read by the layout of its cell.
//!
//! Of the viewers that arrived, moved or had their traits changed, at most
//! [`set_full_scans_max`](SceneViews::set_full_scans_max) scan in the same update. The others lose the targets that they
//! left, see no new ones, and wait in a first-in-first-out queue for their scan.
//!
//! | file | holds |
//! |---|---|
//! | here | the step itself, and the application of changes |
//! | `cell_pass`, `departures` | the pass over one cell: leaves; it continues in `choose/` |
//! | `far` | far targets, outside caps |
//! | `cell_storage` | cells are created, grow, and free unused memory |

pub mod cell_pass;
pub mod cell_storage;
pub mod departures;
mod far;

use throng_core::parallel::{InlineExecutor, ParallelExecutor};

use crate::grid::GridCell;
use crate::priority::ViewTraits;
use crate::views::events::ViewEvent;
use crate::views::scene_views::SceneViews;
use crate::views::state::cells::{RowState, TargetArrival, TargetLeave, ViewerCell};
use crate::views::state::far_index::FarChange;
use crate::views::state::object::{CellLocation, NONE, PendingChanges, TrackedObject, UNCAPPED};
use crate::views::state::rows::NEIGHBOURHOOD_CELLS;
use crate::views::state::scene_state::{MovedRow, SceneState};
use cell_pass::{CellPass, CellScratch};
use cell_storage::SHRINK_CHECK_TICKS;

/// The maximum number of chunks of about the same work that the cells are divided into, so that a hot spot is not one chunk.
const CHUNKS_MAX: usize = 16;

/// The minimum work of a chunk: a cell counts one, and so does a viewer; one with a task counts more.
const CHUNK_WORK_MIN: usize = if cfg!(test) { 8 } else { 512 };
const TASK_WORK: usize = 16;

/// Cells that one worker updates in sequence.
struct CellChunk<'a, 'b> {
    cells: &'a mut [&'b mut ViewerCell],
    scratch: &'a mut CellScratch,
}

impl SceneViews {
    /// The View step. Appends all changes to `events`, cell by cell and then, in mutual mode, in the order in which pairs
    /// agreed; events of one viewer are in the order in which they happened. Serves at most `sight_tests_max` viewers of the
    /// queue. Of the viewers that moved, at most [`set_full_scans_max`](Self::set_full_scans_max) scan at once; the others lose
    /// the targets that they left and wait for a scan.
    pub fn update(&mut self, sight_tests_max: u32, events: &mut Vec<ViewEvent>) {
        self.update_with(InlineExecutor, sight_tests_max, events);
    }

    /// The same with cells in parallel. The number of workers changes nothing but the time.
    pub fn update_with(
        &mut self,
        spread: impl ParallelExecutor,
        sight_tests_max: u32,
        events: &mut Vec<ViewEvent>,
    ) {
        self.apply_radii();
        self.emit_pending_leaves(events);
        // Write to the caller's buffer, so that no events stay here between updates.
        std::mem::swap(events, &mut self.scratch[0].events);
        self.update_count = self.update_count.wrapping_add(1);
        self.apply_changes();
        let is_mutual = self.shared.ranking.mutual;
        if !is_mutual {
            self.serve_queue(sight_tests_max);
        }
        self.schedule_reranks();
        self.collect_active();
        self.update_cells(spread);
        self.join_events();
        if is_mutual {
            self.update_pairs(sight_tests_max);
        }
        std::mem::swap(events, &mut self.scratch[0].events);
        self.end_update();
        self.update_exact_viewers(spread, events);
    }

    /// Updates the rows of all cells in parallel.
    fn update_cells(&mut self, spread: impl ParallelExecutor) {
        let shared = &self.shared;
        if spread.worker_count() == 1 {
            for &cell in &self.active_cells {
                let viewers = &mut self.viewers[cell as usize];
                CellPass::new(shared, viewers, &mut self.scratch[0]).run();
            }
            return;
        }
        let work = |viewers: &ViewerCell| {
            1 + viewers.used
                + (viewers.scheduled_rows.len() + viewers.rows_to_rerank.len()) * TASK_WORK
        };
        let mut in_order = self.active_cells.clone();
        in_order.sort_unstable();
        let (mut active, mut rest, mut first) = (Vec::new(), &mut self.viewers[..], 0);
        for &cell in &in_order {
            let (_, from) = std::mem::take(&mut rest).split_at_mut(cell as usize - first);
            let Some((viewers, beyond)) = from.split_first_mut() else {
                break;
            };
            active.push(viewers);
            (rest, first) = (beyond, cell as usize + 1);
        }
        let number = |viewers: &ViewerCell| {
            shared
                .grid
                .cell_index(shared.cells[viewers.cell as usize].grid_cell)
        };
        active.sort_by_cached_key(|viewers| number(viewers));
        let total: usize = active.iter().map(|viewers| work(viewers)).sum();
        let count = (total / CHUNK_WORK_MIN).clamp(1, CHUNKS_MAX);
        if self.scratch.len() < count {
            self.scratch.resize_with(count, CellScratch::default);
        }
        let mut rest = &mut active[..];
        let mut pieces = Vec::with_capacity(count);
        for (nth, scratch) in self.scratch.iter_mut().take(count).enumerate() {
            let (share, mut cut, mut found) = (total / count, 0, 0);
            while cut < rest.len() && (found < share || nth + 1 == count) {
                found += work(rest[cut]);
                cut += 1;
            }
            let (cells, others) = std::mem::take(&mut rest).split_at_mut(cut);
            rest = others;
            pieces.push(CellChunk { cells, scratch });
        }
        spread.for_each_item(&mut pieces, |CellChunk { cells, scratch }| {
            // The scratch memories of chunks are adjacent and written all the time, so work on a local one.
            let mut own = std::mem::take(*scratch);
            for viewers in cells.iter_mut() {
                CellPass::new(shared, viewers, &mut own).run();
            }
            **scratch = own;
        });
    }

    /// Notes that a cell has work in this update.
    #[inline]
    pub(super) fn mark_active(&mut self, cell: u32) {
        let viewers = &mut self.viewers[cell as usize];
        if !viewers.is_active {
            viewers.is_active = true;
            self.active_cells.push(cell);
        }
    }

    /// Lists the cells with work, row by row of the grid, so that all cells around one read it within a short
    /// time.
    fn collect_active(&mut self) {
        for nth in 0..self.touched_cells.len() {
            let around = self.shared.cells[self.touched_cells[nth] as usize].neighbours;
            for (direction, near) in around.into_iter().enumerate() {
                if near != NONE {
                    self.mark_active(near);
                    self.viewers[near as usize].touched |=
                        1 << (NEIGHBOURHOOD_CELLS - 1 - direction);
                }
            }
        }
        if !self.shared.far_changes.is_empty() {
            (0..self.viewers.len() as u32).for_each(|cell| self.mark_active(cell));
        }
        let SceneState {
            grid,
            cells,
            cell_index: in_use,
            ..
        } = &self.shared;
        for cell in &mut self.active_cells {
            *cell = grid.cell_index(cells[*cell as usize].grid_cell) as u32;
        }
        self.active_cells.sort_unstable();
        for cell in &mut self.active_cells {
            *cell = in_use[*cell as usize];
        }
    }

    /// Emits the leaves of removed objects, viewer by viewer in the order in which they happened.
    fn emit_pending_leaves(&mut self, events: &mut Vec<ViewEvent>) {
        self.pending_leaves.sort_by_key(|event| event.pair().0);
        self.counters.leaves += self.pending_leaves.len() as u64;
        events.append(&mut self.pending_leaves);
    }

    /// Applies pending changes: after this, every object has the right slot and row.
    fn apply_changes(&mut self) {
        let mut changed = std::mem::take(&mut self.applying);
        let ids = self.changed.ones().map(|id| id as u32);
        changed.extend(ids.filter(|&id| self.shared.objects[id as usize].alive));
        self.changed.clear();
        self.allocate_cells(&changed);
        let mut looks_left = self.full_scans_max;
        for &id in &changed {
            self.apply_object_changes(id, &mut looks_left);
        }
        for &cell in &self.touched_cells {
            let target = &mut self.shared.cells[cell as usize];
            target.departures.sort_unstable_by_key(|leave| leave.slot);
            target.relations.refresh_index();
        }
        self.exact.note_changed(&changed);
        changed.clear();
        self.applying = changed;
    }

    fn apply_object_changes(&mut self, id: u32, looks_left: &mut u32) {
        let object = self.shared.objects[id as usize];
        let (from, to) = (
            self.shared.grid.committed_cell(id),
            self.shared.grid.cell(id),
        );
        let is_new = self.shared.location(id).cell == NONE;
        let moved = !is_new && from != to;
        let cell = self.ensure_cell(to);
        self.shared.grid.commit_cell(id);
        if object.viewable && object.uncapped {
            self.update_far_target(&object, moved.then_some(from));
        } else if object.viewable {
            self.update_slot(&object, cell, moved.then_some(from));
        }
        if object.has_row {
            self.update_row(&object, cell, moved.then_some(from), looks_left);
        }
        self.shared.locations[id as usize].cell = cell;
        self.shared.objects[id as usize].pending = PendingChanges::default();
    }

    fn update_slot(&mut self, object: &TrackedObject, cell: u32, from: Option<GridCell>) {
        let (id, pending, list) = (object.traits.id, object.pending, object.list());
        let everywhere = pending.target || pending.traits;
        // In mutual mode it also matters whether the object is a viewer.
        let is_role = pending.viewer && self.shared.ranking.mutual;
        if !everywhere && from.is_none() && !is_role {
            return;
        }
        let is_mutual = self.shared.ranking.mutual;
        let has_layer = object.traits.layers & ViewTraits::ORDINARY_LAYER != 0;
        let is_odd = !has_layer || is_mutual && object.viewer && !object.has_default_vision();
        let place = &mut self.shared.locations[id as usize];
        let cells = &mut self.shared.cells;
        let target = &mut cells[cell as usize];
        let to = target.grid_cell;
        if !target.is_touched() {
            self.touched_cells.push(cell);
        }
        let left = (from.is_some() && place.slot != NONE).then_some(place.slot);
        if place.slot == NONE || left.is_some() {
            place.slot = target.allocate(list, &object.traits, is_odd);
        } else {
            target.write(place.slot as usize, list, &object.traits, is_odd);
        }
        target.arrivals.push(TargetArrival {
            slot: place.slot,
            from: from.unwrap_or(to),
            is_new_everywhere: everywhere,
            is_revised: pending.traits && !pending.target,
            is_viewer: object.has_row,
        });
        if let Some(slot) = left {
            let left = &mut cells[place.cell as usize];
            if !left.is_touched() {
                self.touched_cells.push(place.cell);
            }
            let to_slot = place.slot;
            left.vacate(TargetLeave { slot, to, to_slot }, list);
        }
        self.shared.has_revised |= pending.traits && !pending.target;
    }

    fn update_far_target(&mut self, object: &TrackedObject, from: Option<GridCell>) {
        let (id, layer, pending) = (object.traits.id, object.layer, object.pending);
        let SceneState {
            grid,
            far,
            far_changes,
            ..
        } = &mut self.shared;
        let to = grid.coarse_cell(usize::from(layer), grid.committed_cell(id));
        let from = from.map(|from| grid.coarse_cell(usize::from(layer), from));
        let crossed = from.filter(|&from| from != to);
        if let Some(from) = crossed {
            far.remove(layer, from, id);
        }
        if pending.target || crossed.is_some() {
            far.insert(layer, to, id);
        }
        if pending.target || crossed.is_some() || pending.traits {
            let traits = pending.traits;
            far_changes.push(FarChange { id, traits });
        }
    }

    fn update_row(
        &mut self,
        object: &TrackedObject,
        cell: u32,
        from: Option<GridCell>,
        looks_left: &mut u32,
    ) {
        let (id, pending) = (object.traits.id, object.pending);
        let old = self.shared.location(id);
        let mut tasks = 0;
        if old.row == NONE {
            let state = RowState {
                caps: object.caps,
                ..RowState::default()
            };
            let viewers = &mut self.viewers[cell as usize];
            self.shared.locations[id as usize].row =
                viewers.allocate(&object.traits, state, Vec::new());
            tasks |= RowState::SCANS | RowState::CHOOSES;
        } else if let Some(from) = from {
            self.move_row(object, cell, from);
            tasks |= RowState::ARRIVED;
            if !from.is_near(self.shared.grid.committed_cell(id)) {
                tasks |= RowState::SCANS | RowState::CHOOSES;
            }
        }
        let CellLocation { row, slot, .. } = self.shared.location(id);
        let viewers = &mut self.viewers[cell as usize];
        let state = &mut viewers.states[row as usize];
        state.slot = slot;
        if pending.viewer || pending.traits {
            // In mutual mode others must be able to see it in the same way.
            let has_layer = object.traits.layers & ViewTraits::ORDINARY_LAYER != 0;
            let is_seen = has_layer && !object.traits.hidden || !self.shared.ranking.mutual;
            let is_plain = object.has_default_vision() && is_seen;
            state.tasks &= !RowState::HAS_DEFAULT_VISION;
            if is_plain {
                state.tasks |= RowState::HAS_DEFAULT_VISION;
            }
        }
        if pending.traits {
            viewers.relations.write(row as usize, &object.traits);
            tasks |= RowState::REVISED | RowState::SCANS;
        }
        if pending.caps {
            viewers.states[row as usize].caps = object.caps;
            tasks |= RowState::CAPS_CHANGED;
        }
        if tasks & !RowState::CAPS_CHANGED != 0 {
            let state = &mut viewers.states[row as usize];
            if *looks_left == 0 {
                state.tasks |= RowState::WAITS_FOR_SCAN;
                self.queue.push(id);
            } else {
                *looks_left -= 1;
                if state.has_task(RowState::WAITS_FOR_SCAN) {
                    state.tasks &= !RowState::WAITS_FOR_SCAN;
                    self.queue.remove(id);
                    tasks |= RowState::SCANS | RowState::CHOOSES;
                }
            }
        }
        if tasks != 0 {
            viewers.schedule(row, tasks);
            self.mark_active(cell);
        }
    }

    /// Stores the row of a viewer and gives it one in its current cell.
    fn move_row(&mut self, object: &TrackedObject, cell: u32, from: GridCell) {
        let id = object.traits.id;
        let old = self.shared.location(id);
        let viewers = &mut self.viewers[old.cell as usize];
        let start = self.shared.moved_bits.len();
        for (place, word) in viewers.rows.set_words(old.row as usize) {
            self.shared.moved_words.push(place as u32);
            self.shared.moved_bits.push(word);
        }
        let end = self.shared.moved_bits.len();
        let (state, far) = viewers.free(old.row);
        self.mark_active(old.cell);
        let viewers = &mut self.viewers[cell as usize];
        let row = viewers.allocate(&object.traits, state, far);
        if state.refill_lists != 0 {
            viewers.schedule(row, RowState::FREED);
        }
        viewers
            .movers
            .push((row, self.shared.moved_rows.len() as u32));
        self.shared.moved_rows.push(MovedRow {
            from,
            cell: old.cell,
            start,
            end,
        });
        self.shared.locations[id as usize].row = row;
    }

    /// Schedules scans for the first viewers of the queue.
    fn serve_queue(&mut self, sight_tests_max: u32) {
        for _ in 0..sight_tests_max {
            let Some(id) = self.queue.pop() else {
                break;
            };
            self.counters.scans += 1;
            let place = self.shared.location(id);
            let viewers = &mut self.viewers[place.cell as usize];
            viewers.states[place.row as usize].tasks &= !RowState::WAITS_FOR_SCAN;
            viewers.schedule(place.row, RowState::SCANS | RowState::CHOOSES);
            self.mark_active(place.cell);
        }
    }

    /// Schedules the viewers that are re-ranked in this update.
    fn schedule_reranks(&mut self) {
        if self.rerank_ticks == 0 {
            return;
        }
        let ids = self.shared.objects.len() as u32;
        let first = self.update_count % self.rerank_ticks;
        for id in (first..ids).step_by(self.rerank_ticks as usize) {
            let place = self.shared.location(id);
            if place.row == NONE {
                continue;
            }
            let viewers = &mut self.viewers[place.cell as usize];
            // A viewer with a free slot sees every target anyway; one without may still lose a member in this update.
            let state = &viewers.states[place.row as usize];
            if (0..UNCAPPED).any(|list| state.count[list] > 0 && !state.has_room(list)) {
                viewers.rows_to_rerank.push(place.row);
                if viewers.rows_to_rerank.len() == 1 {
                    self.gather_positions(place.cell);
                }
                self.mark_active(place.cell);
            }
        }
    }

    /// Gathers the positions around a cell.
    fn gather_positions(&mut self, cell: u32) {
        let SceneState {
            cells,
            positions,
            slot_positions,
            ..
        } = &mut self.shared;
        for near in cells[cell as usize].neighbours {
            if let Some(target) = cells.get(near as usize) {
                slot_positions.gather(near, target.relations.ids(), positions);
            }
        }
    }

    /// Joins the changes, chunk by chunk.
    fn join_events(&mut self) {
        if let Some((first, others)) = self.scratch.split_first_mut() {
            for scratch in others {
                first.events.append(&mut scratch.events);
            }
        }
    }

    fn end_update(&mut self) {
        for scratch in &mut self.scratch {
            self.counters = self.counters.plus(std::mem::take(&mut scratch.counters));
        }
        let mut active = std::mem::take(&mut self.active_cells);
        // Pairs may have activated others.
        active.sort_unstable();
        for &cell in &active {
            let viewers = &mut self.viewers[cell as usize];
            self.freed.append(&mut viewers.freed);
            viewers.end_update();
        }
        for cell in self.touched_cells.drain(..) {
            self.shared.cells[cell as usize].end_update();
        }
        for cell in active.drain(..) {
            self.shrink_cell(cell as usize);
        }
        self.active_cells = active;
        let first = (self.update_count % SHRINK_CHECK_TICKS) as usize;
        for cell in (first..self.viewers.len()).step_by(SHRINK_CHECK_TICKS as usize) {
            self.shrink_cell(cell);
        }
        self.shared.has_revised = false;
        self.enqueue_freed();
        self.clear_moved_rows();
        self.shared.far_changes.clear();
        self.shared.slot_positions.clear();
        if self.update_count.is_multiple_of(SHRINK_CHECK_TICKS) {
            self.shrink_buffers();
        }
    }

    /// Queues viewers that may gain a target that only a scan finds.
    pub(super) fn enqueue_freed(&mut self) {
        self.freed.sort_unstable();
        for viewer in self.freed.drain(..) {
            self.queue.push(viewer);
        }
    }
}
