//! Strangers take the places that are free: arrivals those of who had a place before, and all others whoever came, looks or
//! lost somebody.
//!
//! Who had a place and lost nobody sees everybody that it may; so only arrivals are new to it. Whoever fills places takes
//! from its own cell first, then from those towards which it stands, so that whom it takes is near and stays for long. A
//! viewer that looks chooses by distance.

use glam::Vec2;

use super::cells::{AROUND, OWN_CELL, RowState, TargetCell, bit, ones};
use super::meet::ListedTarget;
use super::object::{NONE, UNCAPPED};
use super::pass::CellPass;
use super::shared::Shared;
use crate::aoi::grid::{GridCell, SceneGrid};

/// The cells around one by the quarter of it in which a viewer stands, the nearest first: its own, the two beside the
/// quarter, the one at its corner, the others.
pub(super) const ORDERS: [[usize; AROUND]; 4] = orders();

const fn orders() -> [[usize; AROUND]; 4] {
    let mut orders = [[0; AROUND]; 4];
    let mut quarter = 0;
    while quarter < 4 {
        // Towards the quarter, and away from it.
        let x: i32 = if quarter & 1 == 0 { -1 } else { 1 };
        let y: i32 = if quarter & 2 == 0 { -1 } else { 1 };
        let steps = [
            (0, 0),
            (x, 0),
            (0, y),
            (x, y),
            (-x, 0),
            (0, -y),
            (-x, y),
            (x, -y),
            (-x, -y),
        ];
        let mut nth = 0;
        while nth < AROUND {
            let (dx, dy) = steps[nth];
            orders[quarter][nth] = ((dy + 1) * 3 + dx + 1) as usize;
            nth += 1;
        }
        quarter += 1;
    }
    orders
}

/// In which quarter of a cell a position lies.
#[inline]
pub(super) fn quadrant(grid: &SceneGrid, cell: GridCell, position: Vec2) -> usize {
    let half = |p: f32, cell: u16| usize::from(p >= (f32::from(cell) + 0.5) * grid.cell_m());
    half(position.x, cell.x) | half(position.y, cell.y) << 1
}

impl CellPass<'_> {
    /// Arrivals take places of those who had one before and lost nobody.
    pub(super) fn offer(&mut self) {
        const NOT_OFFERED: u8 = RowState::ARRIVED | RowState::LOOKS | RowState::CAPS;
        let shared = self.shared;
        let around = || shared.around(self.viewers.cell as usize);
        if around().all(|(_, near)| near.arrivals.is_empty()) {
            return;
        }
        // Those with a place in any list.
        let mut open = std::mem::take(&mut self.scratch.hits);
        open.clear();
        for (row, state) in (0..).zip(&self.viewers.states) {
            let has_place = (0..UNCAPPED).any(|list| {
                shared.has_list(list) && state.has_place(list) && state.hungry >> list & 1 == 0
            });
            if has_place && !state.is(NOT_OFFERED | RowState::WAITS) {
                open.push(row);
            }
        }
        if !open.is_empty() {
            for (direction, near) in shared.around(self.viewers.cell as usize) {
                for arrival in &near.arrivals {
                    if Shared::is_new_to(arrival, self.cell.at) {
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
        for &row in open {
            let row = row as usize;
            let (viewer, state) = (self.viewers.id(row), self.viewers.states[row]);
            let takes = state.has_place(list) && state.hungry >> list & 1 == 0;
            let is_new = self.viewers.row(row)[word] & bit(slot) == 0;
            if takes
                && is_new
                && viewer != target
                && viewer != NONE
                && shared.allows(shared.object(viewer), object)
                && !shared.ranking.is_pair(shared.object(viewer), object)
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
        let viewer = self.viewers.id(row);
        let quadrant = quadrant(&shared.grid, self.cell.at, shared.position(viewer));
        for direction in ORDERS[quadrant] {
            let Some(near) = shared.cells.get(self.cell.near[direction] as usize) else {
                continue;
            };
            for nth in 0..near.population[list].len() {
                let mut unseen = self.unseen(row, list, direction, nth);
                while unseen != 0 {
                    let place = unseen.trailing_zeros() as usize;
                    unseen &= unseen - 1;
                    let entrant = ListedTarget {
                        word: self.cell.first[direction] as usize + nth,
                        place,
                        target: near.id(nth * 64 + place),
                        class: shared.stranger_class(list),
                    };
                    self.link(row, list, entrant);
                    if !self.viewers.states[row].has_place(list) {
                        return;
                    }
                }
            }
        }
    }

    /// Those of a word of the cell in a direction whom a viewer may see and does not.
    #[inline]
    pub(super) fn unseen(&self, row: usize, list: usize, direction: usize, nth: usize) -> u64 {
        let shared = self.shared;
        let near = &shared.cells[self.cell.near[direction] as usize];
        let seen = self.viewers.row(row)[self.cell.first[direction] as usize + nth];
        let mut unseen = near.population[list][nth] & !seen;
        let viewer = self.viewers.id(row);
        if direction == OWN_CELL {
            let own = shared.place(viewer).slot as usize;
            if own / 64 == nth {
                unseen &= !bit(own);
            }
        }
        let me = shared.object(viewer);
        let doubtful = if shared.sees_ordinary(me) {
            unseen & near.odd[nth]
        } else {
            unseen
        };
        for place in ones(doubtful) {
            if !shared.allows(me, shared.object(near.id(nth * 64 + place))) {
                unseen &= !(1 << place);
            }
        }
        unseen
    }

    /// Lists all around who are not seen yet, and how far they are: the complement of their nearness.
    pub(super) fn list_unseen(&self, row: usize, list: usize, found: &mut Vec<(u8, u32)>) {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        for (direction, near) in shared.around(self.viewers.cell as usize) {
            for nth in 0..near.population[list].len() {
                for place in ones(self.unseen(row, list, direction, nth)) {
                    let target = near.id(nth * 64 + place);
                    found.push((!shared.nearness(viewer, target), target));
                }
            }
        }
    }

    /// Takes the nearest of all around who are not seen yet.
    fn choose_nearest(&mut self, row: usize, list: usize) {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        let mut found = std::mem::take(&mut self.scratch.outsiders);
        found.iter_mut().for_each(Vec::clear);
        let quadrant = quadrant(&shared.grid, self.cell.at, shared.position(viewer));
        for direction in ORDERS[quadrant] {
            let Some(near) = shared.cells.get(self.cell.near[direction] as usize) else {
                continue;
            };
            let first = self.cell.first[direction] as usize;
            for nth in 0..near.population[list].len() {
                for place in ones(self.unseen(row, list, direction, nth)) {
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
