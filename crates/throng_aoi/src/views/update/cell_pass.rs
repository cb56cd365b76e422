//! The pass over one cell: updates its viewers' rows from the slots of the nine cells around.
//!
//! ```text
//! departures  a target left a slot: its bit moves along, or the viewer loses it
//! copy        a viewer that arrived here brings its row along
//! recheck     links of objects with changed traits end if they are no longer allowed
//! far         lists outside caps (far.rs)
//! trim        lists above a lowered cap lose their lowest members
//! priority    targets that go before unrelated ones enter, by eviction if a list is full (priority_entry.rs)
//! arrivals    unrelated arrivals enter free slots
//! refill      viewers that came, or whose slot became free, take targets from their own cell outwards (fill.rs)
//! rerank      viewers whose turn it is replace farther members by nearer ones of the same class (rerank.rs)
//! ```
//! All leaves come before all enters, so two objects that cross a border together never lose each other for a tick. In
//! mutual mode, trimming and all later steps are done for all cells together (pairs/mod.rs).
//!
//! A cell writes its own rows only, so the passes of all cells can run in parallel with the same result in any order.

use throng_core::memory::MemoryUse;

use super::departures::{Departure, Departures};
use crate::grid::GridCell;
use crate::priority::BAND_COUNT;
use crate::views::choose::band_words::BandWord;
use crate::views::events::{ViewCounters, ViewEvent, ViewLeaveReason};
use crate::views::state::bits::{bit, ones};
use crate::views::state::cells::{OWN_CELL, RowState, TargetArrival, TargetCell, ViewerCell};
use crate::views::state::object::{NONE, UNCAPPED};
use crate::views::state::scene_state::SceneState;

/// Where a search for a member to evict ended: beyond it, towards the farthest cell, the list has no unrelated target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EvictionCursor {
    pub(crate) row: u32,
    /// The number of cells that were searched, the farthest first.
    pub(crate) cells: u8,
    /// The word in its cell, and its bits that were not examined.
    pub(crate) word: u32,
    pub(crate) places: u64,
}

/// Buffers of a pass, kept between updates.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct CellScratch {
    pub(crate) departures: Departures,
    /// Rows or slots that were found.
    pub(crate) hits: Vec<u32>,
    /// Rows with a slot to fill.
    pub(crate) rows_to_refill: Vec<u32>,
    /// For each 64 rows, a bit for each that has a free slot and lost no member, and for each that sees all of the ordinary layer.
    pub(crate) open: Vec<[u64; 2]>,
    pub(crate) candidates: Vec<u64>,
    /// Members of a list in the order of their words, and unseen targets, the nearest cells first.
    pub(crate) members: Vec<BandWord>,
    pub(crate) outsiders: Vec<BandWord>,
    /// By nearness, bits of a row, counted from its first.
    pub(crate) choices: [Vec<u32>; BAND_COUNT as usize],
    /// By list, where the last search for a member to evict ended.
    pub(crate) search_ends: [Option<EvictionCursor>; UNCAPPED],
    /// Distance and id.
    pub(crate) unrelated: Vec<(u8, u32)>,
    pub(crate) counters: ViewCounters,
    /// The changes of this update.
    pub(crate) events: Vec<ViewEvent>,
}

/// The cell being updated.
pub(crate) struct CellPass<'a> {
    pub(crate) shared: &'a SceneState,
    pub(crate) cell: &'a TargetCell,
    pub(crate) viewers: &'a mut ViewerCell,
    pub(crate) scratch: &'a mut CellScratch,
}

impl<'a> CellPass<'a> {
    pub(crate) fn new(
        shared: &'a SceneState,
        viewers: &'a mut ViewerCell,
        scratch: &'a mut CellScratch,
    ) -> Self {
        Self {
            shared,
            cell: &shared.cells[viewers.cell as usize],
            viewers,
            scratch,
        }
    }

    /// Updates the rows of the cell.
    pub(crate) fn run(&mut self) {
        let is_mutual = self.shared.ranking.mutual;
        if self.viewers.used == 0 {
            return;
        }
        self.scratch.rows_to_refill.clear();
        self.viewers.movers.sort_unstable();
        self.apply_departures();
        self.copy_rows();
        self.recheck_links();
        self.update_far();
        if is_mutual {
            self.collect_freed();
            return;
        }
        self.trim();
        self.mark_refills();
        self.enter_by_priority();
        self.admit_arrivals();
        self.refill();
        self.rerank();
        for &row in &self.scratch.rows_to_refill {
            let state = &mut self.viewers.states[row as usize];
            let (owes_look, id) = (
                state.needs_scan(),
                self.viewers.relations.ids()[row as usize],
            );
            state.refill_lists = 0;
            if owes_look && id != NONE {
                self.viewers.freed.push(id);
            }
        }
    }

    /// The previous cell of a viewer that arrived in this update.
    pub(crate) fn previous_cell(&self, row: usize) -> Option<GridCell> {
        let movers = &self.viewers.movers;
        let found = movers.binary_search_by_key(&(row as u32), |mover| mover.0);
        found
            .ok()
            .map(|nth| self.shared.moved_rows[movers[nth].1 as usize].from)
    }

    /// The cells around whose slots changed in this update, with their directions.
    #[inline]
    pub(crate) fn touched_around(&self) -> impl Iterator<Item = (usize, &'a TargetCell)> + use<'a> {
        let (shared, near) = (self.shared, self.cell.neighbours);
        let touched = ones(self.viewers.touched.into());
        touched.map(move |direction| (direction, &shared.cells[near[direction] as usize]))
    }

    /// Moves the bits of targets that left a slot, or ends their links.
    fn apply_departures(&mut self) {
        if self.viewers.rows.are_long() {
            self.apply_departures_to_long_rows();
            return;
        }
        for (direction, near) in self.touched_around() {
            for departure in Departure::of(self.cell, direction, near) {
                for first in (0..self.viewers.len()).step_by(64) {
                    // Rows are tested 64 at once, since most of them do not see it.
                    let Departure { word, place, .. } = departure;
                    let rows = &self.viewers.rows;
                    let watching = rows.rows_with_bit(first, word as usize, place.into());
                    for row in ones(watching).map(|nth| first + nth) {
                        self.apply_departure(row, &departure);
                    }
                }
            }
        }
    }

    /// Reads each long row once for all targets that left a slot.
    fn apply_departures_to_long_rows(&mut self) {
        let (mut departures, cell) = (std::mem::take(&mut self.scratch.departures), self.cell);
        let around = self.touched_around();
        let all = around.flat_map(|(direction, near)| Departure::of(cell, direction, near));
        if departures.replace(all, self.viewers.rows.words()) == 0 {
            self.scratch.departures = departures;
            return;
        }
        let mut seen = Vec::new();
        for row in 0..self.viewers.len() {
            departures.list_seen(self.viewers.rows.set_words(row), &mut seen);
            for departure in seen.drain(..) {
                self.apply_departure(row, &departure);
            }
        }
        self.scratch.departures = departures;
    }

    /// Moves a viewer's bit of a target that left its slot, or ends the link.
    #[inline(always)]
    fn apply_departure(&mut self, row: usize, departure: &Departure) {
        let rows = &mut self.viewers.rows;
        rows.remove(row, departure.word as usize, bit(departure.place.into()));
        match departure.to {
            Some((word, place)) => rows.insert(row, word as usize, bit(place.into())),
            None => {
                let list = departure.list.into();
                self.remove_link(row, departure.target, list, ViewLeaveReason::Range);
            }
        }
    }

    /// Copies the rows of viewers that arrived here, for targets that are still in range.
    fn copy_rows(&mut self) {
        let shared = self.shared;
        for nth in 0..self.viewers.movers.len() {
            let (row, mover) = self.viewers.movers[nth];
            let (row, mover) = (row as usize, shared.moved_rows[mover as usize]);
            let old = &shared.cells[mover.cell as usize];
            let bits = &shared.moved_bits[mover.start..mover.end];
            self.viewers.rows.reserve(row, bits.len());
            let words = &shared.moved_words[mover.start..mover.end];
            let mut direction = 0;
            for (&place, &word) in words.iter().zip(bits) {
                while old.layout[direction + 1] <= place {
                    direction += 1;
                }
                let near = &shared.cells[old.neighbours[direction] as usize];
                let nth = (place - old.layout[direction]) as usize;
                self.copy_word(row, near, nth, word);
            }
        }
    }

    /// Copies a word of an arrived viewer's old row, for targets that are still in range.
    #[inline]
    fn copy_word(&mut self, row: usize, near: &TargetCell, nth: usize, word: u64) {
        let shared = self.shared;
        // A target that stayed in a cell is in range of it.
        let stayed = word & !near.slots[nth].vacated;
        if let Some(to) = self.cell.grid_cell.direction_of(near.grid_cell) {
            let first = self.cell.layout[to] as usize;
            self.viewers.rows.insert(row, first + nth, stayed);
        } else {
            for slot in ones(stayed) {
                let slot = nth * 64 + slot;
                let (target, list) = (near.id(slot), near.list(slot));
                self.remove_link(row, target, list, ViewLeaveReason::Range);
            }
        }
        for slot in ones(word & near.slots[nth].vacated) {
            let slot = nth * 64 + slot;
            let (target, list) = (near.id(slot), near.list(slot));
            match shared.bit_of(self.cell, target) {
                Some((word, place)) => self.viewers.rows.insert(row, word, bit(place)),
                None => self.remove_link(row, target, list, ViewLeaveReason::Range),
            }
        }
    }

    /// Ends links of objects with changed traits that are no longer allowed.
    fn recheck_links(&mut self) {
        let shared = self.shared;
        for (direction, near) in self.touched_around().filter(|_| shared.has_revised) {
            for arrival in near.arrivals.iter().filter(|arrival| arrival.is_revised) {
                let word = self.cell.word(direction, arrival.slot as usize);
                for first in (0..self.viewers.len()).step_by(64) {
                    let slot = arrival.slot as usize;
                    let watching = self.viewers.rows.rows_with_bit(first, word, slot);
                    for row in ones(watching).map(|nth| first + nth) {
                        self.recheck_link(row, word, arrival);
                    }
                }
            }
        }
        for nth in 0..self.viewers.scheduled_rows.len() {
            let row = self.viewers.scheduled_rows[nth] as usize;
            if !self.viewers.states[row].has_task(RowState::REVISED) {
                continue;
            }
            let viewer = self.viewers.id(row);
            self.viewers.states[row].lowest_class = Default::default();
            self.viewers.states[row].lowest_rank = Default::default();
            for (direction, near) in shared.neighbours(self.viewers.cell as usize) {
                let first = self.cell.layout[direction] as usize;
                for nth in 0..near.words {
                    for slot in ones(self.viewers.rows.get(row, first + nth)) {
                        let target = near.id(nth * 64 + slot);
                        let other = shared.object(target);
                        if !shared.allows(shared.object(viewer), other) {
                            self.viewers.rows.remove(row, first + nth, bit(slot));
                            self.remove_link(row, target, other.list(), ViewLeaveReason::Hidden);
                        }
                    }
                }
            }
        }
    }

    fn recheck_link(&mut self, row: usize, word: usize, arrival: &TargetArrival) {
        let viewer = self.viewers.id(row);
        let shared = self.shared;
        let place = arrival.slot as usize % 64;
        let target = self.target_at(word, place);
        let (a, b) = (shared.object(viewer), shared.object(target));
        if !shared.allows(a, b) {
            self.viewers.rows.remove(row, word, bit(place));
            self.remove_link(row, target, b.list(), ViewLeaveReason::Hidden);
            return;
        }
        let (list, class) = (b.list(), shared.ranking.class(a, b));
        let state = &mut self.viewers.states[row];
        state.lowest_class[list] = state.lowest_class[list].min(class);
        state.lowest_rank[list] = 0;
        // A target that was refused may go before it now.
        if state.refused_lists >> list & 1 != 0 {
            if state.refill_lists == 0 {
                self.scratch.rows_to_refill.push(row as u32);
            }
            state.request_refill(list, shared.is_ranked(list));
        }
    }

    /// The target at a bit of the rows of this cell.
    pub(crate) fn target_at(&self, word: usize, place: usize) -> u32 {
        let first = &self.cell.layout;
        let direction = (0..first.len() - 1).rfind(|&nth| first[nth] as usize <= word);
        let direction = direction.unwrap_or(OWN_CELL);
        let near = &self.shared.cells[self.cell.neighbours[direction] as usize];
        near.id((word - first[direction] as usize) * 64 + place)
    }

    /// Handles the loss of a target whose bit is clear. A list that was full has a free slot then.
    #[inline]
    fn remove_link(&mut self, row: usize, target: u32, list: usize, reason: ViewLeaveReason) {
        let state = &mut self.viewers.states[row];
        if !state.has_room(list) {
            if state.refill_lists == 0 {
                self.scratch.rows_to_refill.push(row as u32);
            }
            state.request_refill(list, self.shared.is_ranked(list));
        }
        state.count[list] -= 1;
        self.scratch.counters.leaves += 1;
        self.scratch.events.push(ViewEvent::Leave {
            viewer: self.viewers.id(row),
            target,
            reason,
            list: list as u8,
        });
    }

    /// Evicts members from lists above their cap.
    fn trim(&mut self) {
        for nth in 0..self.viewers.scheduled_rows.len() {
            let row = self.viewers.scheduled_rows[nth] as usize;
            for list in 0..UNCAPPED {
                while {
                    let state = &self.viewers.states[row];
                    state.has_task(RowState::CAPS_CHANGED) && state.count[list] > state.caps[list]
                } {
                    let Some(victim) = self.find_lowest(row, list) else {
                        break;
                    };
                    self.evict(row, list, victim);
                }
            }
        }
    }

    /// Marks lists to refill: of viewers that arrived, scan or have another cap.
    pub(crate) fn mark_refills(&mut self) {
        const TASKS: u8 = RowState::ARRIVED | RowState::SCANS | RowState::CAPS_CHANGED;
        for nth in 0..self.viewers.scheduled_rows.len() {
            let row = self.viewers.scheduled_rows[nth];
            let state = &mut self.viewers.states[row as usize];
            if state.has_task(TASKS) {
                let is_raised = state.has_task(RowState::CAPS_CHANGED);
                for list in (0..UNCAPPED).filter(|&list| self.shared.has_list(list)) {
                    if state.has_room(list) {
                        // A viewer that arrived finds the others in compared lists by itself.
                        state.request_refill(list, is_raised && self.shared.is_ranked(list));
                    }
                }
            }
            if state.refill_lists != 0 {
                self.scratch.rows_to_refill.push(row);
            }
        }
        let hungry = &mut self.scratch.rows_to_refill;
        hungry.sort_unstable();
        hungry.dedup();
    }

    /// Collects viewers that had a full list and have a free slot now, for links that need the other end's consent.
    fn collect_freed(&mut self) {
        for nth in 0..self.viewers.scheduled_rows.len() {
            let row = self.viewers.scheduled_rows[nth];
            let state = &self.viewers.states[row as usize];
            let any_ranked = (0..UNCAPPED).any(|list| self.shared.is_ranked(list));
            if state.has_task(RowState::FREED)
                || state.has_task(RowState::CAPS_CHANGED) && any_ranked
            {
                self.scratch.rows_to_refill.push(row);
            }
        }
        for row in self.scratch.rows_to_refill.drain(..) {
            let state = &mut self.viewers.states[row as usize];
            state.refill_lists = 0;
            let id = self.viewers.relations.ids()[row as usize];
            if id != NONE {
                self.viewers.freed.push(id);
            }
        }
    }
}
