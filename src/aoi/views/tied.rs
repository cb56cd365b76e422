//! Directed sight: those with a tie are let in class by class, from the highest, until no list has anything to gain.
//!
//! ```text
//! who lost somebody and may have refused somebody   all cells
//! who came                                          cells new to it; of the others those where somebody came, too
//! ```
//! Of a class that has more members around than there are places, those of the viewer's own cell go first, then those
//! towards which it stands, as among strangers (fill.rs). So a list that is full of mates looks at no more of them than it
//! takes, however many there are: what is left is columns (ties.rs), which are compared eight at once.
//!
//! Lists of which all have to be compared are left to looks (meet.rs).

use super::bits::bit;
use super::cells::{ALL_AROUND, ORDERS, TargetCell, quadrant};
use super::object::UNCAPPED;
use super::pass::CellPass;
use super::ties::TieQuery;
use super::victims::ListedTarget;
use crate::aoi::priority::{OWN, TEAM};

/// So few arrivals in a cell that was known before are compared one by one.
const FEW_ARRIVALS: usize = 8;

impl CellPass<'_> {
    /// The directions in which one that came may find somebody new.
    pub(super) fn new_around(&self, row: usize) -> u16 {
        let Some(from) = self.came_from(row) else {
            return ALL_AROUND;
        };
        let around = self.shared.around(self.viewers.cell as usize);
        let is_new = |near: &TargetCell| !from.is_near(near.at) || !near.arrivals.is_empty();
        around
            .filter(|(_, near)| is_new(near))
            .fold(0, |all, (direction, _)| all | 1 << direction)
    }

    /// Lets in those with a tie to a viewer who stand in these directions and are not seen yet.
    pub(super) fn let_in_tied(&mut self, row: usize, directions: u16) {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        let traits = &shared.object(viewer).traits;
        let lists = self.unranked_lists();
        if directions == ALL_AROUND {
            self.viewers.states[row].refused &= !lists;
        }
        self.begin_evictions();
        let from = self.came_from(row);
        let quadrant = quadrant(&shared.grid, self.cell.at, shared.position(viewer));
        for class in (TEAM..=OWN).rev() {
            if !self.takes_any(row, lists, class) {
                // They are passed over, and so count as refused.
                self.viewers.states[row].refused |= lists;
                return;
            }
            let query = TieQuery::of_class(traits, class);
            if query.is_empty() {
                continue;
            }
            for direction in ORDERS[quadrant] {
                let near = shared.cells.get(self.cell.near[direction] as usize);
                if let Some(near) = near.filter(|_| directions >> direction & 1 != 0) {
                    let was_known = from.is_some_and(|from| from.is_near(near.at));
                    let mut hits = std::mem::take(&mut self.scratch.hits);
                    hits.clear();
                    if was_known && near.arrivals.len() <= FEW_ARRIVALS && directions != ALL_AROUND
                    {
                        let arrived = near.arrivals.iter().map(|arrival| arrival.slot);
                        hits.extend(
                            arrived.filter(|&slot| near.ties.is_any(slot as usize, &query)),
                        );
                    } else {
                        near.ties.find(&query, |slot| hits.push(slot as u32));
                    }
                    self.let_in_found(row, direction, near, (lists, class), &hits);
                    self.scratch.hits = hits;
                }
            }
        }
    }

    /// Lets in those of a class who were found in a cell, while a list takes any.
    fn let_in_found(
        &mut self,
        row: usize,
        direction: usize,
        near: &TargetCell,
        (lists, class): (u8, u8),
        hits: &[u32],
    ) {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        for &slot in hits {
            let slot = slot as usize;
            let (target, list) = (near.id(slot), near.list(slot));
            let word = self.cell.word(direction, slot);
            let is_sought = lists >> list & 1 != 0 && near.has(list, slot) && target != viewer;
            if !is_sought || self.viewers.row(row)[word] & bit(slot) != 0 {
                continue;
            }
            if !self.takes_any(row, lists, class) {
                self.viewers.states[row].refused |= lists;
                return;
            }
            if !self.takes(row, list, class) {
                self.viewers.states[row].refused |= 1 << list;
                continue;
            }
            let (a, b) = (shared.object(viewer), shared.object(target));
            if shared.allows(a, b) {
                let entrant = ListedTarget {
                    word,
                    place: slot % 64,
                    target,
                    class: shared.ranking.class(a, b),
                };
                self.admit(row, entrant);
            }
        }
    }

    /// A bit for each list in which strangers are equal, and go after whoever has a tie.
    fn unranked_lists(&self) -> u8 {
        let shared = self.shared;
        let lists = (0..UNCAPPED).filter(|&list| shared.has_list(list) && !shared.is_ranked(list));
        lists.fold(0, |lists, list| lists | 1 << list)
    }

    /// Whether a list may take somebody of a class: it has a place, or perhaps a member of a lower class.
    pub(super) fn takes(&self, row: usize, list: usize, class: u8) -> bool {
        let state = &self.viewers.states[row];
        state.has_place(list) || state.low[list] < class
    }

    fn takes_any(&self, row: usize, lists: u8, class: u8) -> bool {
        (0..UNCAPPED).any(|list| lists >> list & 1 != 0 && self.takes(row, list, class))
    }
}
