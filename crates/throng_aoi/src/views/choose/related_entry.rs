//! Directed mode: related targets enter class by class, from the highest, until no list has anything to gain.
//!
//! ```text
//! viewer lost a member and may have refused a target   all cells
//! viewer came                                          cells new to it; of the others, those with arrivals
//! ```
//! If a class has more targets around than there are slots, those of the viewer's own cell go first, then those in the
//! direction of its quarter, as for unrelated targets (fill.rs). So a list that is full of team members examines no more of
//! them than it admits. The rest of the work is on columns (relations.rs), which are compared eight at once or, in a crowd,
//! indexed.
//!
//! Lists in which all targets have to be compared are left to scans (priority_entry.rs).

use super::eviction::ListedTarget;
use crate::priority::{OWN_OR_TARGET, TEAM};
use crate::views::state::bits::{bit, ones};
use crate::views::state::cells::{ALL_DIRECTIONS, NEAREST_CELLS, TargetCell, quadrant};
use crate::views::state::object::UNCAPPED;
use crate::views::state::relations::RelationQuery;
use crate::views::update::cell_pass::CellPass;

/// Up to this many arrivals in a cell that was known before are compared one by one.
const FEW_ARRIVALS: usize = 8;

impl CellPass<'_> {
    /// The directions in which a viewer that arrived may find new targets.
    pub(crate) fn new_directions(&self, row: usize) -> u16 {
        let Some(from) = self.previous_cell(row) else {
            return ALL_DIRECTIONS;
        };
        let around = self.shared.neighbours(self.viewers.cell as usize);
        let is_new = |near: &TargetCell| !from.is_near(near.grid_cell) || !near.arrivals.is_empty();
        around
            .filter(|(_, near)| is_new(near))
            .fold(0, |all, (direction, _)| all | 1 << direction)
    }

    /// Admits related targets in these directions that are not seen yet.
    pub(crate) fn admit_related(&mut self, row: usize, directions: u16) {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        let traits = &shared.object(viewer).traits;
        let lists = self.unranked_lists();
        if directions == ALL_DIRECTIONS {
            self.viewers.states[row].refused_lists &= !lists;
        }
        self.begin_evictions();
        let from = self.previous_cell(row);
        let quadrant = quadrant(&shared.grid, self.cell.grid_cell, shared.position(viewer));
        for class in (TEAM..=OWN_OR_TARGET).rev() {
            if !self.may_admit_any(row, lists, class) {
                // They are skipped, and so count as refused.
                self.viewers.states[row].refused_lists |= lists;
                return;
            }
            let query = RelationQuery::of_class(traits, class);
            if query.is_empty() {
                continue;
            }
            for direction in NEAREST_CELLS[quadrant] {
                let near = shared.cells.get(self.cell.neighbours[direction] as usize);
                let is_asked = |near: &&TargetCell| {
                    directions >> direction & 1 != 0 && near.relations.may_have(&query)
                };
                if let Some(near) = near.filter(is_asked) {
                    let was_known = from.is_some_and(|from| from.is_near(near.grid_cell));
                    let few = was_known
                        && near.arrivals.len() <= FEW_ARRIVALS
                        && directions != ALL_DIRECTIONS;
                    let takes_more = if few {
                        self.admit_related_arrivals(row, direction, near, (lists, class), &query)
                    } else {
                        self.admit_related_in_cell(row, direction, near, (lists, class), &query)
                    };
                    if !takes_more {
                        self.viewers.states[row].refused_lists |= lists;
                        break;
                    }
                }
            }
        }
    }

    /// Admits targets of a class among the few arrivals of a cell; false once no list takes any more of the class.
    fn admit_related_arrivals(
        &mut self,
        row: usize,
        direction: usize,
        near: &TargetCell,
        sought: (u8, u8),
        query: &RelationQuery,
    ) -> bool {
        near.arrivals.iter().all(|arrival| {
            let slot = arrival.slot as usize;
            let (word, place) = (self.cell.word(direction, slot), slot % 64);
            let is_unseen = !self.viewers.rows.has(row, word, place);
            let is_found = is_unseen && near.relations.matches(slot, query);
            !is_found || self.admit_related_in_word(row, word, near, slot / 64, sought, bit(slot))
        })
    }

    /// Admits targets of a class in a cell; false once no list takes any more of the class.
    fn admit_related_in_cell(
        &mut self,
        row: usize,
        direction: usize,
        near: &TargetCell,
        sought: (u8, u8),
        query: &RelationQuery,
    ) -> bool {
        let mut from = 0;
        while let Some((nth, unseen)) = self.next_unseen_related(row, direction, near, query, from)
        {
            let word = self.cell.word(direction, nth * 64);
            if !self.admit_related_in_word(row, word, near, nth, sought, unseen) {
                return false;
            }
            from = nth + 1;
        }
        true
    }

    /// The next word of a cell with related targets that are not seen yet, and their bits.
    #[inline]
    fn next_unseen_related(
        &self,
        row: usize,
        direction: usize,
        near: &TargetCell,
        query: &RelationQuery,
        from: usize,
    ) -> Option<(usize, u64)> {
        let words = self.cell.words_in(direction);
        // Usually there are no related targets here.
        let (mut seen, mut next) = (None, from);
        near.relations.words(query, from).find_map(|(nth, tied)| {
            let rows = &self.viewers.rows;
            let seen = seen.get_or_insert_with(|| rows.range(row, words.start + from..words.end));
            let unseen = tied & !seen.nth(nth - next).unwrap_or(0);
            next = nth + 1;
            (unseen != 0).then_some((nth, unseen))
        })
    }

    /// Admits unseen targets of a class in a word; false once no list takes any more of the class.
    fn admit_related_in_word(
        &mut self,
        row: usize,
        word: usize,
        near: &TargetCell,
        nth: usize,
        (lists, class): (u8, u8),
        unseen: u64,
    ) -> bool {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        for place in ones(unseen) {
            let slot = nth * 64 + place;
            let (target, list) = (near.id(slot), near.list(slot));
            if lists >> list & 1 == 0 || !near.has(list, slot) || target == viewer {
                continue;
            }
            if !self.may_admit_any(row, lists, class) {
                return false;
            }
            if !self.may_admit(row, list, class) {
                self.viewers.states[row].refused_lists |= 1 << list;
                continue;
            }
            let (a, b) = (shared.object(viewer), shared.object(target));
            if shared.allows(a, b) {
                let entrant = ListedTarget {
                    word,
                    place,
                    target,
                    class: shared.ranking.class(a, b),
                };
                self.admit(row, entrant);
            }
        }
        true
    }

    /// A bit for each list in which unrelated targets are equal and go after every related one.
    fn unranked_lists(&self) -> u8 {
        let shared = self.shared;
        let lists = (0..UNCAPPED).filter(|&list| shared.has_list(list) && !shared.is_ranked(list));
        lists.fold(0, |lists, list| lists | 1 << list)
    }

    /// Whether a list may admit a target of a class: it has a free slot, or perhaps a member of a lower class.
    pub(crate) fn may_admit(&self, row: usize, list: usize, class: u8) -> bool {
        let state = &self.viewers.states[row];
        state.has_room(list) || state.lowest_class[list] < class
    }

    fn may_admit_any(&self, row: usize, lists: u8, class: u8) -> bool {
        (0..UNCAPPED).any(|list| lists >> list & 1 != 0 && self.may_admit(row, list, class))
    }
}
