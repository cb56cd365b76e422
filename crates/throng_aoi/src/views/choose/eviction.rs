//! Selects the member that leaves a full list for a target of a higher class: one of the lowest class, farthest cell first.
//!
//! That is usually an unrelated target, so a search from the farthest cell inwards ends at the first unrelated target. When
//! one list admits several targets, the next search resumes where the last one ended: the members before that position are
//! not unrelated, and neither is a target that was admitted by eviction.

use crate::priority::{CLASS_MAX, rank_of};
use crate::views::events::{ViewEvent, ViewLeaveReason};
use crate::views::state::bits::{bit, ones};
use crate::views::state::cells::{NEAREST_CELLS, quadrant};
use crate::views::state::object::UNCAPPED;
use crate::views::state::rows::NEIGHBOURHOOD_CELLS;
use crate::views::update::cell_pass::{CellPass, EvictionCursor};

/// A member of a list: its word and bit in the row, its id, and its class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedTarget {
    pub(crate) word: usize,
    pub(crate) place: usize,
    pub(crate) target: u32,
    pub(crate) class: u8,
}

impl CellPass<'_> {
    /// Resets the search state, since rows may have changed.
    pub(crate) fn begin_evictions(&mut self) {
        self.scratch.search_ends = [None; UNCAPPED];
    }

    /// The same as [`find_lowest`](Self::find_lowest), but skips the members that were examined since evictions began.
    pub(crate) fn next_victim(&mut self, row: usize, list: usize) -> Option<ListedTarget> {
        let end = self.scratch.search_ends[list].filter(|end| end.row == row as u32);
        let stranger = end.and_then(|end| self.search_from_cursor(row, list, Some(end)));
        match stranger.filter(|stranger| stranger.class <= self.class_floor(list)) {
            Some(stranger) => Some(stranger),
            None => self.find_lowest(row, list),
        }
    }

    /// The member to evict first: of the lowest class, in the farthest cell. Remembers the lowest class that it found.
    pub(crate) fn find_lowest(&mut self, row: usize, list: usize) -> Option<ListedTarget> {
        let lowest = self.search_from_cursor(row, list, None);
        let class = lowest.map_or(CLASS_MAX, |lowest| lowest.class);
        self.viewers.states[row].lowest_class[list] = class;
        lowest
    }

    /// A lower bound of the classes in a list.
    fn class_floor(&self, list: usize) -> u8 {
        if self.shared.is_ranked(list) {
            0
        } else {
            self.shared.unrelated_class(list)
        }
    }

    /// The first member of the lowest class from where the last search ended, or from the farthest cell.
    fn search_from_cursor(
        &mut self,
        row: usize,
        list: usize,
        from: Option<EvictionCursor>,
    ) -> Option<ListedTarget> {
        let (shared, floor) = (self.shared, self.class_floor(list));
        let viewer = self.viewers.id(row);
        let mut lowest: Option<ListedTarget> = None;
        let quadrant = quadrant(&shared.grid, self.cell.grid_cell, shared.position(viewer));
        let skipped = from.map_or(0, |end| usize::from(end.cells));
        for cells in skipped..NEIGHBOURHOOD_CELLS {
            let direction = NEAREST_CELLS[quadrant][NEIGHBOURHOOD_CELLS - 1 - cells];
            let Some(near) = shared.cells.get(self.cell.neighbours[direction] as usize) else {
                continue;
            };
            let first = self.cell.layout[direction] as usize;
            let resumed = from.filter(|_| cells == skipped);
            let words = resumed.map_or(near.words, |end| end.word as usize + 1);
            let seen = self.viewers.rows.range(row, first..first + words).rev();
            let population = near.population(list).enumerate().take(words).rev();
            for ((nth, population), seen) in population.zip(seen) {
                let mut members = seen & population;
                if let Some(end) = resumed.filter(|end| end.word as usize == nth) {
                    members &= end.places;
                }
                while members != 0 {
                    let place = 63 - members.leading_zeros() as usize;
                    members &= !(1 << place);
                    let target = near.id(nth * 64 + place);
                    let class = shared.class(viewer, target);
                    if lowest.is_none_or(|lowest| class < lowest.class) {
                        lowest = Some(ListedTarget {
                            word: first + nth,
                            place,
                            target,
                            class,
                        });
                    }
                    if class <= floor {
                        self.scratch.search_ends[list] = Some(EvictionCursor {
                            row: row as u32,
                            cells: cells as u8,
                            word: nth as u32,
                            places: members,
                        });
                        return lowest;
                    }
                }
            }
        }
        lowest
    }

    /// A member of the lowest rank, bands included, with its rank. The search ends at the first member whose rank equals the
    /// known lower bound, since several are usually in the farthest band.
    pub(crate) fn find_lowest_rank(&self, row: usize, list: usize) -> Option<(u8, ListedTarget)> {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        let here = shared.position(viewer);
        // No class is lower, so a member that is no farther than the lowest one so far needs no class lookup.
        let state = &self.viewers.states[row];
        let low = state.lowest_class[list];
        let enough = rank_of(low, 0).max(state.lowest_rank[list]);
        let mut lowest: Option<(u8, ListedTarget)> = None;
        let quadrant = quadrant(&shared.grid, self.cell.grid_cell, here);
        'cells: for &direction in NEAREST_CELLS[quadrant].iter().rev() {
            let Some(near) = shared.cells.get(self.cell.neighbours[direction] as usize) else {
                continue;
            };
            let first = self.cell.layout[direction] as usize;
            let seen = self.viewers.rows.range(row, self.cell.words_in(direction));
            for (nth, (population, seen)) in near.population(list).zip(seen).enumerate() {
                for place in ones(seen & population) {
                    let target = near.id(nth * 64 + place);
                    let there = shared.position(target);
                    let nearness = shared.ranking.bands.nearness_of_member(here, there);
                    let is_lower = |rank| lowest.is_none_or(|lowest| rank < lowest.0);
                    if !is_lower(rank_of(low, nearness)) {
                        continue;
                    }
                    let class = shared.class(viewer, target);
                    let rank = rank_of(class, nearness);
                    if is_lower(rank) {
                        let word = first + nth;
                        let member = ListedTarget {
                            word,
                            place,
                            target,
                            class,
                        };
                        lowest = Some((rank, member));
                        if rank <= enough {
                            break 'cells;
                        }
                    }
                }
            }
        }
        lowest
    }

    pub(crate) fn evict(&mut self, row: usize, list: usize, victim: ListedTarget) {
        self.viewers
            .rows
            .remove(row, victim.word, bit(victim.place));
        let state = &mut self.viewers.states[row];
        state.count[list] -= 1;
        state.refused_lists |= u8::from(self.shared.outranks_unrelated(list, victim.class)) << list;
        self.scratch.counters.leaves += 1;
        self.scratch.counters.evictions += 1;
        self.scratch.events.push(ViewEvent::Leave {
            viewer: self.viewers.id(row),
            target: victim.target,
            reason: ViewLeaveReason::Evicted,
            list: list as u8,
        });
    }
}
