//! The pass over one cell: its viewers' rows are brought up to date with the slots of the nine cells around.
//!
//! ```text
//! follow   who left a slot: the bit moves along, or the viewer loses it
//! bring    who came here brings its row along
//! revise   links of those whose traits changed that cannot be any more end
//! far      lists outside caps (far.rs)
//! trim     lists above a lowered cap lose their lowest
//! meet     those who go before strangers are let in, by eviction where a list is full (meet.rs)
//! offer    arrivals, to who has a place
//! fill     who has a place that was taken before, or came: from its own cell outwards (fill.rs)
//! rerank   whose turn it is: the nearer for the farther of its class (rerank.rs)
//! ```
//! All leave before anybody enters, so that two who walk together over a border never lose each other for a tick. Where
//! sight is mutual, trimming and what follows is done for all cells together (mutual.rs).
//!
//! A cell writes its own rows only, so the passes of all cells can run side by side and come out the same in any order.

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

/// Where a search for a victim ended: beyond it, towards the farthest cell, the list has no stranger.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EvictionCursor {
    pub(crate) row: u32,
    /// So many cells are behind it, the farthest first.
    pub(crate) cells: u8,
    /// The word in its cell, and the places in it that were not looked at.
    pub(crate) word: u32,
    pub(crate) places: u64,
}

/// Buffers of a pass, kept between updates.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct CellScratch {
    pub(crate) departures: Departures,
    /// Rows, or slots, that were found.
    pub(crate) hits: Vec<u32>,
    /// Rows with a place to fill.
    pub(crate) rows_to_refill: Vec<u32>,
    /// For each 64 rows a bit for each that has a place and lost nobody, and for each that sees all of the ordinary layer.
    pub(crate) open: Vec<[u64; 2]>,
    pub(crate) candidates: Vec<u64>,
    /// Members of a list in the order of their words, and who is seen not, the nearest cells first.
    pub(crate) members: Vec<BandWord>,
    pub(crate) outsiders: Vec<BandWord>,
    /// By nearness, bits of a row, counted from its first.
    pub(crate) choices: [Vec<u32>; BAND_COUNT as usize],
    /// By list, where the last search for a victim ended.
    pub(crate) search_ends: [Option<EvictionCursor>; UNCAPPED],
    /// How far, and who.
    pub(crate) unrelated: Vec<(u8, u32)>,
    pub(crate) counters: ViewCounters,
    /// What changed in this update.
    pub(crate) events: Vec<ViewEvent>,
}

/// One cell in work.
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

    /// Brings the rows of the cell up to date.
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

    /// Where a viewer that arrived in this update was.
    pub(crate) fn previous_cell(&self, row: usize) -> Option<GridCell> {
        let movers = &self.viewers.movers;
        let found = movers.binary_search_by_key(&(row as u32), |mover| mover.0);
        found
            .ok()
            .map(|nth| self.shared.moved_rows[movers[nth].1 as usize].from)
    }

    /// The cells around in which somebody took or left a slot in this update, with their directions.
    #[inline]
    pub(crate) fn touched_around(&self) -> impl Iterator<Item = (usize, &'a TargetCell)> + use<'a> {
        let (shared, near) = (self.shared, self.cell.neighbours);
        let touched = ones(self.viewers.touched.into());
        touched.map(move |direction| (direction, &shared.cells[near[direction] as usize]))
    }

    /// Whoever left a slot is seen where it is now, or no more.
    fn apply_departures(&mut self) {
        if self.viewers.rows.are_long() {
            self.apply_departures_to_long_rows();
            return;
        }
        for (direction, near) in self.touched_around() {
            for departure in Departure::of(self.cell, direction, near) {
                for first in (0..self.viewers.len()).step_by(64) {
                    // Rows are looked at 64 together, since most of them do not see it.
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

    /// Each long row is gone through once for all who left a slot.
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

    /// Whoever left its slot is seen by a viewer where it is now, or no more.
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

    /// Whoever came here sees those whom it saw where it was, if they are still in range.
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

    /// Whoever came sees those of a word of a cell near where it was, if they are still in range.
    #[inline]
    fn copy_word(&mut self, row: usize, near: &TargetCell, nth: usize, word: u64) {
        let shared = self.shared;
        // Whoever stayed in a cell is in range with it.
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

    /// Ends links of those whose traits changed that cannot be any more.
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
        // Somebody who was refused may go before it now.
        if state.refused_lists >> list & 1 != 0 {
            if state.refill_lists == 0 {
                self.scratch.rows_to_refill.push(row as u32);
            }
            state.request_refill(list, shared.is_ranked(list));
        }
    }

    /// Who stands at a bit of the rows of this cell.
    pub(crate) fn target_at(&self, word: usize, place: usize) -> u32 {
        let first = &self.cell.layout;
        let direction = (0..first.len() - 1).rfind(|&nth| first[nth] as usize <= word);
        let direction = direction.unwrap_or(OWN_CELL);
        let near = &self.shared.cells[self.cell.neighbours[direction] as usize];
        near.id((word - first[direction] as usize) * 64 + place)
    }

    /// A viewer lost a target, whose bit is clear. If its list was full it has a place for another.
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

    /// Evicts from lists that are above their cap.
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

    /// Whoever came, looks or has another cap may have places to fill.
    pub(crate) fn mark_refills(&mut self) {
        const TASKS: u8 = RowState::ARRIVED | RowState::SCANS | RowState::CAPS_CHANGED;
        for nth in 0..self.viewers.scheduled_rows.len() {
            let row = self.viewers.scheduled_rows[nth];
            let state = &mut self.viewers.states[row as usize];
            if state.has_task(TASKS) {
                let is_raised = state.has_task(RowState::CAPS_CHANGED);
                for list in (0..UNCAPPED).filter(|&list| self.shared.has_list(list)) {
                    if state.has_room(list) {
                        // Who came finds the others of whom all have to be compared by itself.
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

    /// Who had a full list and has a place now is to be told of, where somebody else has to agree.
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
