//! Strangers take the places that are free: arrivals those of who had a place before, and all others whoever came, looks or
//! lost somebody.
//!
//! Who had a place and lost nobody sees everybody that it may; so only arrivals are new to it. Whoever fills places takes
//! from its own cell first, then from those towards which it stands, so that whom it takes is near and stays for long. A
//! viewer that looks chooses by distance.

use super::cells::{ORDERS, OWN_CELL, RowState, TargetCell, ViewerCell, bit, ones, quadrant};
use super::events::ViewEvent;
use super::object::{NONE, UNCAPPED};
use super::pass::CellPass;
use super::shared::Shared;
use super::victims::ListedTarget;

/// A viewer that looks around.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looker {
    pub(super) id: u32,
    /// Where its own slot stands.
    own_word: usize,
    own_bit: u64,
    /// It sees everybody of the ordinary layer.
    sees_ordinary: bool,
}

/// A cell as it is, for whoever only reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellView<'a> {
    pub(super) shared: &'a Shared,
    pub(super) viewers: &'a ViewerCell,
}

impl CellView<'_> {
    fn cell(&self) -> &TargetCell {
        &self.shared.cells[self.viewers.cell as usize]
    }

    /// What decides over whom a viewer may see.
    #[inline]
    pub(super) fn looker(&self, row: usize) -> Looker {
        let state = &self.viewers.states[row];
        let slot = state.slot as usize;
        Looker {
            id: self.viewers.id(row),
            own_word: slot / 64,
            own_bit: bit(slot),
            sees_ordinary: self.shared.is_plain() && state.is(RowState::IS_PLAIN),
        }
    }

    /// Those of a word of the cell in a direction whom a viewer may see and does not.
    #[inline(always)]
    pub(super) fn unseen(
        &self,
        row: usize,
        list: usize,
        direction: usize,
        nth: usize,
        looker: &Looker,
    ) -> u64 {
        let near = &self.shared.cells[self.cell().near[direction] as usize];
        let seen = self.viewers.row(row)[self.cell().first[direction] as usize + nth];
        let mut unseen = near.population[list][nth] & !seen;
        if direction == OWN_CELL && looker.own_word == nth {
            unseen &= !looker.own_bit;
        }
        let doubtful = if looker.sees_ordinary {
            unseen & near.odd[nth]
        } else {
            unseen
        };
        if doubtful == 0 {
            return unseen;
        }
        let me = self.shared.object(looker.id);
        for place in ones(doubtful) {
            let other = self.shared.object(near.id(nth * 64 + place));
            if !self.shared.allows(me, other) {
                unseen &= !(1 << place);
            }
        }
        unseen
    }

    /// Lists the directions and slots of strangers around who are not seen yet and may have a place too, the nearest cells
    /// first. It ends with the cell in which there are enough.
    pub(super) fn list_open(
        &self,
        row: usize,
        list: usize,
        enough: usize,
        mut takes: impl FnMut(u32) -> bool,
        found: &mut Vec<(u8, u32)>,
    ) {
        let shared = self.shared;
        let looker = self.looker(row);
        let me = shared.object(looker.id);
        let (own_list, needs_consent) = (me.list(), me.is_peer());
        let quadrant = quadrant(&shared.grid, self.cell().at, shared.position(looker.id));
        for direction in ORDERS[quadrant] {
            let Some(near) = shared.cells.get(self.cell().near[direction] as usize) else {
                continue;
            };
            for nth in 0..near.population[list].len() {
                let unseen = self.unseen(row, list, direction, nth, &looker);
                let open = near.open.get(own_list).filter(|_| needs_consent);
                let open = open.map_or(u64::MAX, |open| open[nth]);
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

impl CellPass<'_> {
    pub(super) fn view(&self) -> CellView<'_> {
        CellView {
            shared: self.shared,
            viewers: self.viewers,
        }
    }

    /// Arrivals take places of those who had one before and lost nobody.
    pub(super) fn offer(&mut self) {
        const NOT_OFFERED: u8 = RowState::ARRIVED | RowState::LOOKS | RowState::CAPS;
        let shared = self.shared;
        let is_mutual = shared.ranking.mutual;
        let mut arrivals = self.touched_around().flat_map(|(_, near)| &near.arrivals);
        let all_peers = arrivals.all(|arrival| is_mutual && arrival.sees);
        let has_spectators = || self.viewers.states.iter().any(|state| state.slot == NONE);
        if all_peers && !(is_mutual && has_spectators()) {
            return;
        }
        // Those with a place in any list.
        let mut open = std::mem::take(&mut self.scratch.hits);
        open.clear();
        let mut has_spectator = !shared.ranking.mutual;
        for (row, state) in (0..).zip(&self.viewers.states) {
            let has_place = (0..UNCAPPED).any(|list| {
                shared.has_list(list) && state.has_place(list) && state.hungry >> list & 1 == 0
            });
            if has_place && !state.is(NOT_OFFERED | RowState::WAITS) {
                open.push(row);
                has_spectator |= state.slot == NONE;
            }
        }
        if !open.is_empty() {
            for (direction, near) in self.touched_around() {
                for arrival in &near.arrivals {
                    // Peers agree with each other elsewhere (mutual.rs).
                    let is_peer = shared.ranking.mutual && arrival.sees;
                    if Shared::is_new_to(arrival, self.cell.at) && (has_spectator || !is_peer) {
                        self.offer_one(&open, direction, near, arrival.slot as usize);
                    }
                }
            }
        }
        self.scratch.hits = open;
    }

    fn offer_one(&mut self, open: &[u32], direction: usize, near: &TargetCell, slot: usize) {
        let shared = self.shared;
        let target = near.id(slot);
        let object = shared.object(target);
        let (list, word) = (object.list(), self.cell.word(direction, slot));
        if !near.has(list, slot) || shared.is_ranked(list) {
            return;
        }
        // Whoever sees all of the ordinary layer need not be looked up.
        let is_ordinary = !shared.ranking.mutual && shared.is_plain() && !near.is_odd(slot);
        for &row in open {
            let row = row as usize;
            let (viewer, state) = (self.viewers.id(row), &self.viewers.states[row]);
            let takes = state.has_place(list) && state.hungry >> list & 1 == 0;
            let is_new = self.viewers.row(row)[word] & bit(slot) == 0;
            let may_see = || {
                let me = shared.object(viewer);
                shared.allows(me, object) && !shared.ranking.is_pair(me, object)
            };
            if takes
                && is_new
                && viewer != target
                && viewer != NONE
                && (is_ordinary && state.is(RowState::IS_PLAIN) || may_see())
            {
                let entrant = ListedTarget {
                    word,
                    place: slot % 64,
                    target,
                    class: shared.stranger_class(list),
                };
                self.link(row, list, entrant);
            }
        }
    }

    /// Fills the places of who came, looks or lost somebody.
    pub(super) fn fill(&mut self) {
        for nth in 0..self.scratch.hungry.len() {
            let row = self.scratch.hungry[nth] as usize;
            let state = self.viewers.states[row];
            if state.is(RowState::WAITS) || self.viewers.id(row) == NONE {
                continue;
            }
            let enters = self.scratch.counters.enters;
            for list in 0..UNCAPPED {
                let is_open = state.hungry >> list & 1 != 0 && state.has_place(list);
                if !is_open || !self.shared.has_list(list) || self.shared.is_ranked(list) {
                    continue;
                }
                if state.is(RowState::CHOOSES) {
                    self.choose_nearest(row, list);
                } else {
                    self.fill_list(row, list);
                }
            }
            let counters = &mut self.scratch.counters;
            counters.refills += counters.enters - enters;
        }
    }

    /// Takes whoever is not seen yet, cell by cell.
    fn fill_list(&mut self, row: usize, list: usize) {
        let shared = self.shared;
        let looker = self.view().looker(row);
        let class = shared.stranger_class(list);
        let state = self.viewers.states[row];
        let places = state.caps[list] - state.count[list];
        let mut missing = u32::from(places);
        let quadrant = quadrant(&shared.grid, self.cell.at, shared.position(looker.id));
        'cells: for direction in ORDERS[quadrant] {
            let Some(near) = shared.cells.get(self.cell.near[direction] as usize) else {
                continue;
            };
            let first = self.cell.first[direction] as usize;
            for nth in 0..near.population[list].len() {
                let mut unseen = self.view().unseen(row, list, direction, nth, &looker);
                while unseen.count_ones() > missing {
                    unseen &= !(1 << (63 - unseen.leading_zeros()));
                }
                missing -= unseen.count_ones();
                self.viewers.row_mut(row)[first + nth] |= unseen;
                let events = &mut self.scratch.events;
                events.reserve(unseen.count_ones() as usize);
                for place in ones(unseen) {
                    events.push(ViewEvent::Enter {
                        viewer: looker.id,
                        target: near.id(nth * 64 + place),
                        priority: class,
                        list: list as u8,
                    });
                }
                if missing == 0 {
                    break 'cells;
                }
            }
        }
        let taken = places - missing as u16;
        let state = &mut self.viewers.states[row];
        state.count[list] += taken;
        if taken > 0 {
            state.low[list] = state.low[list].min(class);
        }
        let counters = &mut self.scratch.counters;
        counters.enters += u64::from(taken);
        counters.max_list = counters.max_list.max(usize::from(state.count[list]));
    }

    /// Takes the nearest of all around who are not seen yet.
    fn choose_nearest(&mut self, row: usize, list: usize) {
        let shared = self.shared;
        let looker = self.view().looker(row);
        let viewer = looker.id;
        let mut found = std::mem::take(&mut self.scratch.outsiders);
        found.iter_mut().for_each(Vec::clear);
        let quadrant = quadrant(&shared.grid, self.cell.at, shared.position(viewer));
        for direction in ORDERS[quadrant] {
            let Some(near) = shared.cells.get(self.cell.near[direction] as usize) else {
                continue;
            };
            let first = self.cell.first[direction] as usize;
            for nth in 0..near.population[list].len() {
                for place in ones(self.view().unseen(row, list, direction, nth, &looker)) {
                    let nearness = shared.nearness(viewer, near.id(nth * 64 + place));
                    found[usize::from(nearness)].push(((first + nth) * 64 + place) as u32);
                }
            }
        }
        for &at in found.iter().rev().flatten() {
            if !self.viewers.states[row].has_place(list) {
                break;
            }
            let (word, place) = (at as usize / 64, at as usize % 64);
            let entrant = ListedTarget {
                word,
                place,
                target: self.target_at(word, place),
                class: shared.stranger_class(list),
            };
            self.link(row, list, entrant);
        }
        self.scratch.outsiders = found;
    }
}
