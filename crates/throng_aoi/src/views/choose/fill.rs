//! Unrelated targets take free slots. Arrivals take slots that were free before; a viewer that came, scans or lost a member
//! takes any target around it.
//!
//! A viewer that had a free slot and lost no member sees every target that it may see, so only arrivals are new to it. A
//! viewer fills slots from its own cell first, then from the cells in the direction of its quarter, so its members are near
//! and stay for long. A viewer that scans chooses by distance.

use super::eviction::ListedTarget;
use crate::views::events::ViewEvent;
use crate::views::state::bits::{bit, ones};
use crate::views::state::cells::{
    NEAREST_CELLS, OWN_CELL, RowState, TargetArrival, TargetCell, ViewerCell, quadrant,
};
use crate::views::state::object::{NONE, UNCAPPED};
use crate::views::state::scene_state::SceneState;
use crate::views::update::cell_pass::CellPass;

/// A viewer that scans the cells around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanningViewer {
    pub(crate) id: u32,
    /// The word of its own slot.
    own_word: usize,
    own_bit: u64,
    /// It sees every target of the ordinary layer.
    sees_ordinary: bool,
}

/// A read-only view of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellView<'a> {
    pub(crate) shared: &'a SceneState,
    pub(crate) viewers: &'a ViewerCell,
}

impl CellView<'_> {
    fn cell(&self) -> &TargetCell {
        &self.shared.cells[self.viewers.cell as usize]
    }

    /// The inputs for the visibility test of a viewer.
    #[inline]
    pub(crate) fn scanning_viewer(&self, row: usize) -> ScanningViewer {
        let state = &self.viewers.states[row];
        let slot = state.slot as usize;
        ScanningViewer {
            id: self.viewers.id(row),
            own_word: slot / 64,
            own_bit: bit(slot),
            sees_ordinary: self.shared.has_default_rules()
                && state.has_task(RowState::HAS_DEFAULT_VISION),
        }
    }

    /// The targets of a word of a neighbour cell that a viewer may see and does not see yet.
    #[inline(always)]
    pub(crate) fn unseen(
        &self,
        list: usize,
        direction: usize,
        nth: usize,
        seen: u64,
        looker: &ScanningViewer,
    ) -> u64 {
        let near = &self.shared.cells[self.cell().neighbours[direction] as usize];
        let mut unseen = near.slots[nth].population[list] & !seen;
        if direction == OWN_CELL && looker.own_word == nth {
            unseen &= !looker.own_bit;
        }
        self.shared.allowed(looker, near, nth, unseen)
    }

    /// Collects the directions and slots of unrelated targets that are not seen yet and may have a free slot too, nearest cells
    /// first. Stops after the cell in which there are enough.
    pub(crate) fn collect_open_targets(
        &self,
        row: usize,
        list: usize,
        enough: usize,
        mut takes: impl FnMut(u32) -> bool,
        found: &mut Vec<(u8, u32)>,
    ) {
        let shared = self.shared;
        let looker = self.scanning_viewer(row);
        let me = shared.object(looker.id);
        let (own_list, needs_consent) = (me.list(), me.is_peer());
        let quadrant = quadrant(
            &shared.grid,
            self.cell().grid_cell,
            shared.position(looker.id),
        );
        for direction in NEAREST_CELLS[quadrant] {
            let Some(near) = shared.cells.get(self.cell().neighbours[direction] as usize) else {
                continue;
            };
            let seen = self
                .viewers
                .rows
                .range(row, self.cell().words_in(direction));
            for (nth, seen) in seen.enumerate() {
                let unseen = self.unseen(list, direction, nth, seen, &looker);
                let open = near.slots[nth].open.get(own_list);
                let open = open
                    .filter(|_| needs_consent)
                    .map_or(u64::MAX, |open| *open);
                for place in ones(unseen & open) {
                    let slot = nth * 64 + place;
                    if takes(near.id(slot)) {
                        found.push((direction as u8, slot as u32));
                    }
                }
            }
            if found.len() >= enough {
                return;
            }
        }
    }
}

impl SceneState {
    /// The targets of a word of a cell that a viewer may see.
    #[inline(always)]
    fn allowed(&self, looker: &ScanningViewer, near: &TargetCell, nth: usize, unseen: u64) -> u64 {
        let doubtful = if looker.sees_ordinary {
            unseen & near.slots[nth].needs_check
        } else {
            unseen
        };
        if doubtful == 0 {
            return unseen;
        }
        let me = self.object(looker.id);
        let may_not_see = |&place: &usize| {
            let other = self.object(near.id(nth * 64 + place));
            !self.allows(me, other)
        };
        let hidden = ones(doubtful).filter(may_not_see);
        hidden.fold(unseen, |unseen, place| unseen & !(1 << place))
    }
}

impl CellPass<'_> {
    pub(crate) fn cell_view(&self) -> CellView<'_> {
        CellView {
            shared: self.shared,
            viewers: self.viewers,
        }
    }

    /// Arrivals take slots of viewers that had a free one before and lost no member.
    pub(crate) fn admit_arrivals(&mut self) {
        let is_mutual = self.shared.ranking.mutual;
        let has_spectators = is_mutual && {
            let mut states = self.viewers.states.iter();
            states.any(|state| state.slot == NONE)
        };
        // Mutual pairs are handled in pairs/mod.rs.
        let at = self.cell.grid_cell;
        let is_offered = |arrival: &&TargetArrival| {
            SceneState::is_new_to(arrival, at)
                && !(is_mutual && arrival.is_viewer && !has_spectators)
        };
        let mut is_first = true;
        for (direction, near) in self.touched_around() {
            for arrival in near.arrivals.iter().filter(is_offered) {
                if std::mem::take(&mut is_first) {
                    self.find_rows_with_room();
                    if self.scratch.open.iter().all(|rows| rows[0] == 0) {
                        return;
                    }
                }
                self.admit_arrival(direction, near, arrival.slot as usize);
            }
        }
    }

    /// Finds viewers with a free slot in any list that lost no member.
    fn find_rows_with_room(&mut self) {
        const NOT_OFFERED: u8 = RowState::ARRIVED | RowState::SCANS | RowState::CAPS_CHANGED;
        let shared = self.shared;
        let open = &mut self.scratch.open;
        open.clear();
        let lists = (0..UNCAPPED).filter(|&list| shared.has_list(list));
        let lists = lists.fold(0_u8, |lists, list| lists | 1 << list);
        for states in self.viewers.states.chunks(64) {
            let (mut rows, mut plain) = (0, 0);
            for (nth, state) in (0..).zip(states) {
                let has_place = state.open_lists() & !state.refill_lists & lists != 0;
                let is_open = has_place && !state.has_task(NOT_OFFERED | RowState::WAITS_FOR_SCAN);
                rows |= u64::from(is_open) << nth;
                plain |= u64::from(state.has_task(RowState::HAS_DEFAULT_VISION)) << nth;
            }
            open.push([rows, plain]);
        }
    }

    fn admit_arrival(&mut self, direction: usize, near: &TargetCell, slot: usize) {
        let shared = self.shared;
        let target = near.id(slot);
        let object = shared.object(target);
        let (list, word) = (object.list(), self.cell.word(direction, slot));
        if !near.has(list, slot) || shared.is_ranked(list) {
            return;
        }
        // A viewer that sees all of the ordinary layer needs no lookup.
        let is_ordinary =
            !shared.ranking.mutual && shared.has_default_rules() && !near.needs_check(slot);
        let entrant = ListedTarget {
            word,
            place: slot % 64,
            target,
            class: shared.unrelated_class(list),
        };
        for nth in 0..self.scratch.open.len() {
            let [open, plain] = self.scratch.open[nth];
            if open == 0 {
                continue;
            }
            let first = nth * 64;
            let unseen = open & !self.viewers.rows.rows_with_bit(first, word, slot);
            for row in ones(unseen).map(|nth| first + nth) {
                let (viewer, state) = (self.viewers.id(row), &self.viewers.states[row]);
                let takes = state.has_room(list) && state.refill_lists >> list & 1 == 0;
                let may_see = || {
                    let me = shared.object(viewer);
                    shared.allows(me, object) && !shared.ranking.is_pair(me, object)
                };
                let is_plain = is_ordinary && plain >> (row % 64) & 1 != 0;
                if takes && viewer != target && viewer != NONE && (is_plain || may_see()) {
                    self.link(row, list, entrant);
                }
            }
        }
    }

    /// Fills the free slots of viewers that came, scan or lost a member.
    pub(crate) fn refill(&mut self) {
        for nth in 0..self.scratch.rows_to_refill.len() {
            let row = self.scratch.rows_to_refill[nth] as usize;
            let state = self.viewers.states[row];
            if state.has_task(RowState::WAITS_FOR_SCAN) || self.viewers.id(row) == NONE {
                continue;
            }
            let enters = self.scratch.counters.enters;
            for list in 0..UNCAPPED {
                let is_open = state.refill_lists >> list & 1 != 0 && state.has_room(list);
                if !is_open || !self.shared.has_list(list) || self.shared.is_ranked(list) {
                    continue;
                }
                if state.has_task(RowState::CHOOSES) {
                    self.admit_nearest(row, list);
                } else {
                    self.refill_list(row, list);
                }
            }
            let counters = &mut self.scratch.counters;
            counters.refills += counters.enters - enters;
        }
    }

    /// Admits unseen targets, cell by cell.
    fn refill_list(&mut self, row: usize, list: usize) {
        let shared = self.shared;
        let looker = self.cell_view().scanning_viewer(row);
        let class = shared.unrelated_class(list);
        let state = self.viewers.states[row];
        let places = state.caps[list] - state.count[list];
        let mut missing = places;
        let quadrant = quadrant(
            &shared.grid,
            self.cell.grid_cell,
            shared.position(looker.id),
        );
        'cells: for direction in NEAREST_CELLS[quadrant] {
            let Some(near) = shared.cells.get(self.cell.neighbours[direction] as usize) else {
                continue;
            };
            let first = self.cell.layout[direction] as usize;
            let words = near.population(list).enumerate();
            for (nth, population) in words.filter(|word| word.1 != 0) {
                let mut unseen = population & !self.viewers.rows.get(row, first + nth);
                if direction == OWN_CELL && looker.own_word == nth {
                    unseen &= !looker.own_bit;
                }
                if unseen == 0 {
                    continue;
                }
                let unseen = shared.allowed(&looker, near, nth, unseen);
                let mut rest = unseen;
                while rest != 0 && missing > 0 {
                    let place = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    missing -= 1;
                    self.scratch.events.push(ViewEvent::Enter {
                        viewer: looker.id,
                        target: near.id(nth * 64 + place),
                        priority: class,
                        list: list as u8,
                    });
                }
                let taken = unseen & !rest;
                self.viewers.rows.insert(row, first + nth, taken);
                if missing == 0 {
                    break 'cells;
                }
            }
        }
        let taken = places - missing;
        let state = &mut self.viewers.states[row];
        state.count[list] += taken;
        if taken > 0 {
            state.lowest_class[list] = state.lowest_class[list].min(class);
        }
        let counters = &mut self.scratch.counters;
        counters.enters += u64::from(taken);
        counters.longest_list = counters.longest_list.max(usize::from(state.count[list]));
    }

    /// Admits the nearest unseen targets of all cells around.
    fn admit_nearest(&mut self, row: usize, list: usize) {
        let shared = self.shared;
        let looker = self.cell_view().scanning_viewer(row);
        let viewer = looker.id;
        let state = &self.viewers.states[row];
        let places = usize::from(state.caps[list].saturating_sub(state.count[list]));
        let mut found = std::mem::take(&mut self.scratch.choices);
        found.iter_mut().for_each(Vec::clear);
        let quadrant = quadrant(&shared.grid, self.cell.grid_cell, shared.position(viewer));
        'cells: for direction in NEAREST_CELLS[quadrant] {
            let Some(near) = shared.cells.get(self.cell.neighbours[direction] as usize) else {
                continue;
            };
            let first = self.cell.layout[direction] as usize;
            let seen = self.viewers.rows.range(row, self.cell.words_in(direction));
            for (nth, seen) in seen.enumerate() {
                for place in ones(self.cell_view().unseen(list, direction, nth, seen, &looker)) {
                    let nearness = shared.nearness(viewer, near.id(nth * 64 + place));
                    found[usize::from(nearness)].push(((first + nth) * 64 + place) as u32);
                }
                // No target is nearer, and among equally near ones the first are taken.
                if found[found.len() - 1].len() >= places {
                    break 'cells;
                }
            }
        }
        for &at in found.iter().rev().flatten() {
            if !self.viewers.states[row].has_room(list) {
                break;
            }
            let (word, place) = (at as usize / 64, at as usize % 64);
            let entrant = ListedTarget {
                word,
                place,
                target: self.target_at(word, place),
                class: shared.unrelated_class(list),
            };
            self.link(row, list, entrant);
        }
        self.scratch.choices = found;
    }
}
