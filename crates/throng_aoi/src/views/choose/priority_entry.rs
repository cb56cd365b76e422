//! Targets that go before unrelated ones enter full lists by eviction, the highest rank first.
//!
//! ```text
//! viewer came            cells new to it, by relation columns; in the others, those that arrived at the same time
//!                        (directed: related_entry.rs)
//! viewer stayed          arrivals, by relation columns
//! viewer lost a member and may have refused a target
//!                        all cells (directed: related_entry.rs; mutual: in its scan)
//! viewer scans           all cells, every target that may enter
//! ```
//! In a scene with a custom ranking any target may go before any other, so all are compared.
//!
//! A viewer that arrived finds every arrival in cells that it knew, so arrivals test only viewers that stayed, and each
//! pair is examined once. A refusal is noted as one bit per list; a viewer with a free slot again scans for all of them.

use super::eviction::ListedTarget;
use crate::priority::{TEAM, class_of, rank_of};
use crate::views::events::ViewEvent;
use crate::views::state::bits::{bit, ones};
use crate::views::state::cells::{ALL_DIRECTIONS, RowState, TargetArrival, TargetCell};
use crate::views::state::object::{NONE, UNCAPPED};
use crate::views::state::relations::RelationQuery;
use crate::views::state::rows::NEIGHBOURHOOD_CELLS;
use crate::views::state::scene_state::SceneState;
use crate::views::update::cell_pass::CellPass;

/// The maximum number of pairs that arrivals collect at once.
pub(crate) const CANDIDATES_MAX: usize = 1 << 16;

/// A target that may enter: the row, the rank (highest first), the direction of its cell and its slot.
#[derive(Clone, Copy)]
struct Candidate(u64);

impl Candidate {
    const fn new(row: usize, rank: u8, direction: usize, slot: usize) -> Self {
        Self((row as u64) << 36 | (!rank as u64) << 28 | (direction as u64) << 24 | slot as u64)
    }

    const fn row(self) -> usize {
        (self.0 >> 36) as usize
    }

    const fn rank(self) -> u8 {
        !((self.0 >> 28) as u8)
    }

    const fn direction(self) -> usize {
        (self.0 >> 24 & 15) as usize
    }

    const fn slot(self) -> usize {
        (self.0 & ((1 << 24) - 1)) as usize
    }
}

impl CellPass<'_> {
    /// Admits all targets that may enter, for each viewer from the highest rank.
    pub(crate) fn enter_by_priority(&mut self) {
        for nth in 0..self.viewers.scheduled_rows.len() {
            self.scan_around(self.viewers.scheduled_rows[nth] as usize);
            self.admit_all();
        }
        for nth in 0..self.scratch.rows_to_refill.len() {
            let row = self.scratch.rows_to_refill[nth] as usize;
            let state = self.viewers.states[row];
            // Rows with tasks were handled above.
            if state.tasks & !RowState::HAS_DEFAULT_VISION == 0 && self.may_admit_refused(row) {
                self.admit_related(row, ALL_DIRECTIONS);
            }
        }
        let mut welcomed = (0, 0);
        while self.collect_for_arrivals(&mut welcomed) {
            self.admit_all();
        }
        self.admit_all();
    }

    /// Finds the targets that a viewer with a task may admit.
    pub(crate) fn scan_around(&mut self, row: usize) {
        let state = self.viewers.states[row];
        if state.has_task(RowState::WAITS_FOR_SCAN) || self.viewers.id(row) == NONE {
            return;
        }
        let is_mutual = self.shared.ranking.mutual;
        if state.has_task(RowState::SCANS) {
            if is_mutual {
                self.collect_candidates(row, 0b111);
                return;
            }
            self.admit_related(row, ALL_DIRECTIONS);
            if self.ranked_lists() != 0 {
                self.collect_candidates(row, self.ranked_lists());
            }
            return;
        }
        let (may_gain, came) = (
            self.may_admit_refused(row),
            state.has_task(RowState::ARRIVED),
        );
        if is_mutual {
            if may_gain {
                self.collect_candidates(row, !self.ranked_lists());
            }
            if came && (!may_gain || self.ranked_lists() != 0) {
                self.collect_for_moved_viewer(row, 0b111);
            }
            return;
        }
        if may_gain || came {
            let directions = if may_gain {
                ALL_DIRECTIONS
            } else {
                self.new_directions(row)
            };
            self.admit_related(row, directions);
        }
        if came && self.ranked_lists() != 0 {
            self.collect_for_moved_viewer(row, self.ranked_lists());
        }
    }

    /// Collects pairs of arrivals from a direction and an arrival on; true if the limit was reached and the rest is left for
    /// later.
    pub(crate) fn collect_for_arrivals(
        &mut self,
        (direction, arrival): &mut (usize, usize),
    ) -> bool {
        let shared = self.shared;
        while *direction < NEIGHBOURHOOD_CELLS {
            let is_touched = self.viewers.touched >> *direction & 1 != 0;
            let near = is_touched.then(|| &shared.cells[self.cell.neighbours[*direction] as usize]);
            let arrivals = near.map_or(&[][..], |near| &near.arrivals);
            if let (Some(near), Some(next)) = (near, arrivals.get(*arrival)) {
                self.collect_for_arrival(*direction, near, next);
                *arrival += 1;
            } else {
                (*direction, *arrival) = (*direction + 1, 0);
            }
            if self.scratch.candidates.len() > CANDIDATES_MAX {
                return true;
            }
        }
        false
    }

    /// A bit for each list in which all members have to be compared.
    fn ranked_lists(&self) -> u8 {
        let lists = (0..UNCAPPED).filter(|&list| self.shared.is_ranked(list));
        lists.fold(0, |lists, list| lists | 1 << list)
    }

    /// Returns the candidates: the row, the rank, and the id.
    pub(crate) fn drain_candidates(&mut self) -> Vec<(usize, u8, u32)> {
        let found = self.scratch.candidates.drain(..).map(|candidate| {
            let candidate = Candidate(candidate);
            let near = &self.shared.cells[self.cell.neighbours[candidate.direction()] as usize];
            (candidate.row(), candidate.rank(), near.id(candidate.slot()))
        });
        found.collect()
    }

    /// Whether a target that a list refused might enter now.
    fn may_admit_refused(&self, row: usize) -> bool {
        let state = &self.viewers.states[row];
        (0..UNCAPPED).any(|list| {
            let is_hungry = state.refill_lists >> list & 1 != 0;
            let is_refused = state.refused_lists >> list & 1 != 0 && !self.shared.is_ranked(list);
            is_hungry && is_refused && self.shared.has_list(list)
        })
    }

    /// Collects all targets around that may go before unrelated ones in these lists.
    pub(crate) fn collect_candidates(&mut self, row: usize, lists: u8) {
        let shared = self.shared;
        self.viewers.states[row].refused_lists &= !lists;
        let query = self.relation_query(row, lists, 0);
        for (direction, near) in shared.neighbours(self.viewers.cell as usize) {
            self.collect(row, direction, near, &query, lists);
        }
    }

    /// The same for a viewer that arrived: in the cells that are new to it, and among the arrivals of the others.
    fn collect_for_moved_viewer(&mut self, row: usize, lists: u8) {
        let (shared, from) = (self.shared, self.previous_cell(row));
        let above = self.entry_threshold(row);
        if above >= TEAM {
            // Relations of the same or a lower class are skipped, and so count as refused.
            self.viewers.states[row].refused_lists = 0b111;
        }
        let query = self.relation_query(row, lists, above);
        let are_compared = lists & self.ranked_lists() != 0;
        for (direction, near) in shared.neighbours(self.viewers.cell as usize) {
            if from.is_none_or(|from| !from.is_near(near.grid_cell)) {
                self.collect(row, direction, near, &query, lists);
                continue;
            }
            for arrival in &near.arrivals {
                let slot = arrival.slot as usize;
                let is_sought = lists >> near.list(slot) & 1 != 0;
                if is_sought && (are_compared || near.relations.matches(slot, &query)) {
                    self.consider(row, direction, near, slot);
                }
            }
        }
    }

    /// The query for targets related to a viewer above this class; empty if all targets in the lists are compared anyway.
    fn relation_query(&self, row: usize, lists: u8, above: u8) -> RelationQuery {
        if lists & !self.ranked_lists() == 0 {
            return RelationQuery::default();
        }
        RelationQuery::of(&self.shared.object(self.viewers.id(row)).traits, above)
    }

    /// The highest class that every list of the viewer refuses.
    fn entry_threshold(&self, row: usize) -> u8 {
        let state = &self.viewers.states[row];
        let lists = (0..UNCAPPED).filter(|&list| self.shared.has_list(list));
        let gates = lists.map(|list| {
            if state.has_room(list) || self.shared.is_ranked(list) {
                0
            } else {
                state.lowest_class[list]
            }
        });
        gates.min().unwrap_or(0)
    }

    fn collect(
        &mut self,
        row: usize,
        direction: usize,
        near: &TargetCell,
        query: &RelationQuery,
        lists: u8,
    ) {
        let mut hits = std::mem::take(&mut self.scratch.hits);
        hits.clear();
        let ranked = lists & self.ranked_lists();
        for list in (0..UNCAPPED).filter(|&list| ranked >> list & 1 != 0) {
            let seen = self.viewers.rows.range(row, self.cell.words_in(direction));
            for (nth, (population, seen)) in near.population(list).zip(seen).enumerate() {
                hits.extend(ones(population & !seen).map(|slot| (nth * 64 + slot) as u32));
            }
        }
        near.relations.find(query, |slot| hits.push(slot as u32));
        for &slot in &hits {
            self.consider(row, direction, near, slot as usize);
        }
        self.scratch.hits = hits;
    }

    /// Pairs an arrival with the viewers that were here before.
    fn collect_for_arrival(
        &mut self,
        direction: usize,
        near: &TargetCell,
        arrival: &TargetArrival,
    ) {
        const SCANS_ITSELF: u8 = RowState::ARRIVED | RowState::SCANS | RowState::WAITS_FOR_SCAN;
        if !SceneState::is_new_to(arrival, self.cell.grid_cell) {
            return;
        }
        let slot = arrival.slot as usize;
        let object = self.shared.object(near.id(slot));
        let list = object.list();
        let is_ranked = self.shared.is_ranked(list);
        let mut hits = std::mem::take(&mut self.scratch.hits);
        hits.clear();
        if is_ranked {
            hits.extend(0..self.viewers.len() as u32);
        } else {
            let query = RelationQuery::of(&object.traits, 0);
            self.viewers
                .relations
                .find(&query, |row| hits.push(row as u32));
        }
        for &row in &hits {
            let row = row as usize;
            if self.viewers.id(row) == NONE || self.viewers.states[row].has_task(SCANS_ITSELF) {
                continue;
            }
            // In a crowd of team members most lists are full of others of that class; the columns show this.
            let is_refused = !is_ranked && !self.shared.ranking.mutual && {
                let class = self.viewers.relations.class_at(row, &object.traits);
                !self.may_admit(row, list, class)
            };
            if is_refused {
                self.viewers.states[row].refused_lists |= 1 << list;
            } else {
                self.consider(row, direction, near, slot);
            }
        }
        self.scratch.hits = hits;
    }

    /// Collects a target that is not seen yet, may be seen, and goes before unrelated ones.
    fn consider(&mut self, row: usize, direction: usize, near: &TargetCell, slot: usize) {
        let shared = self.shared;
        let (viewer, target) = (self.viewers.id(row), near.id(slot));
        if target == NONE || viewer == target {
            return;
        }
        let (list, word) = (near.list(slot), self.cell.word(direction, slot));
        if self.viewers.rows.has(row, word, slot) || !near.has(list, slot) {
            return;
        }
        let (a, b) = (shared.object(viewer), shared.object(target));
        if !shared.allows(a, b) {
            return;
        }
        let class = shared.ranking.class(a, b);
        if shared.outranks_unrelated(list, class) {
            let rank = rank_of(class, shared.nearness(viewer, target));
            let candidate = Candidate::new(row, rank, direction, slot);
            self.scratch.candidates.push(candidate.0);
        }
    }

    fn admit_all(&mut self) {
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        candidates.sort_unstable();
        candidates.dedup();
        self.begin_evictions();
        for &candidate in &candidates {
            let candidate = Candidate(candidate);
            let (row, direction, slot) = (candidate.row(), candidate.direction(), candidate.slot());
            let near = &self.shared.cells[self.cell.neighbours[direction] as usize];
            let entrant = ListedTarget {
                word: self.cell.word(direction, slot),
                place: slot % 64,
                target: near.id(slot),
                class: class_of(candidate.rank()),
            };
            self.admit(row, entrant);
        }
        candidates.clear();
        self.scratch.candidates = candidates;
    }

    /// Links a target if there is a free slot or a member of a lower class to evict. For one row, targets of higher classes come
    /// first, from one [`begin_evictions`](Self::begin_evictions) to the next.
    pub(crate) fn admit(&mut self, row: usize, entrant: ListedTarget) {
        let list = self.shared.object(entrant.target).list();
        let state = &self.viewers.states[row];
        if !state.has_room(list) {
            let is_beyond = entrant.class <= state.lowest_class[list];
            let victim = if is_beyond {
                None
            } else {
                self.next_victim(row, list)
            };
            match victim {
                Some(victim) if victim.class < entrant.class => self.evict(row, list, victim),
                _ => {
                    self.viewers.states[row].refused_lists |= 1 << list;
                    self.scratch.counters.full_list_attempts += 1;
                    return;
                }
            }
        }
        self.link(row, list, entrant);
    }

    pub(crate) fn link(&mut self, row: usize, list: usize, entrant: ListedTarget) {
        let rows = &mut self.viewers.rows;
        rows.insert(row, entrant.word, bit(entrant.place));
        let state = &mut self.viewers.states[row];
        state.count[list] += 1;
        state.lowest_class[list] = state.lowest_class[list].min(entrant.class);
        let longest = &mut self.scratch.counters.longest_list;
        *longest = (*longest).max(usize::from(state.count[list]));
        self.scratch.counters.enters += 1;
        self.scratch.events.push(ViewEvent::Enter {
            viewer: self.viewers.id(row),
            target: entrant.target,
            priority: entrant.class,
            list: list as u8,
        });
    }
}
