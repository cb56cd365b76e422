//! Bands of distance follow those who walk: each update, a fixed share of the viewers looks at them anew.
//!
//! Between its turns a viewer prefers the nearer only as it fills free places, cell by cell. In its turn it takes whoever is
//! in a nearer band instead of a member of its lowest class, with hysteresis. Only a full list has to choose: who has a free
//! place sees everybody anyway.
//!
//! Those who compete are words of bits by band; distances are compared 32 at once, in columns of positions that the update
//! gathers for the cells around those in which it is somebody's turn (slot_positions.rs).
//!
//! Cost: viewers ÷ `rerank_ticks` an update, each the distances of its members, and of those in the cells that are near
//! enough to have somebody in a nearer band than the farthest member.

use glam::Vec2;

use super::bits::{bit, ones, ones_down};
use super::cells::{ORDERS, RowState, TargetCell, quadrant};
use super::events::{LeaveReason, ViewEvent};
use super::object::{NONE, UNCAPPED};
use super::pass::CellPass;
use super::shared::Shared;
use super::ties::TieQuery;
use crate::aoi::grid::GridCell;
use crate::aoi::priority::BANDS;

/// The nearest band.
pub(super) const NEAREST: usize = BANDS as usize - 1;

/// Who competes for the places of a list that are to be given anew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    pub(super) row: usize,
    pub(super) list: usize,
    pub(super) class: u8,
    /// Strangers compete, and nobody need be asked for its class.
    of_strangers: bool,
}

impl Contest {
    const fn new(row: usize, list: usize, class: u8, of_strangers: bool) -> Self {
        Self {
            row,
            list,
            class,
            of_strangers,
        }
    }
}

impl CellPass<'_> {
    /// Re-ranks the viewers whose turn it is.
    pub(super) fn rerank(&mut self) {
        for nth in 0..self.viewers.turns.len() {
            let row = self.viewers.turns[nth] as usize;
            let state = self.viewers.states[row];
            if self.viewers.id(row) == NONE || state.is(RowState::WAITS) {
                continue;
            }
            for list in 0..UNCAPPED {
                if state.count[list] > 0 && !state.has_place(list) {
                    self.rerank_list(row, list);
                }
            }
        }
    }

    fn rerank_list(&mut self, row: usize, list: usize) {
        if let Some((contest, lowest)) = self.begin_contest(row, list)
            && lowest < NEAREST
        {
            self.find_nearer(&contest, lowest);
            self.replace(&contest);
        }
    }

    /// The lowest class of a list, whose members have to compete, with how near the farthest of them counts.
    pub(super) fn begin_contest(&mut self, row: usize, list: usize) -> Option<(Contest, usize)> {
        let shared = self.shared;
        if !shared.is_ranked(list) {
            self.mark_tied(row, list);
            let class = shared.stranger_class(list);
            let contest = Contest::new(row, list, class, true);
            if let Some(lowest) = self.sort_members(&contest) {
                return Some((contest, lowest));
            }
        }
        let contest = Contest::new(row, list, self.lowest_class(row, list)?, false);
        self.sort_members(&contest).map(|lowest| (contest, lowest))
    }

    /// The lowest class of the members of a list.
    fn lowest_class(&self, row: usize, list: usize) -> Option<u8> {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        let mut lowest: Option<u8> = None;
        for (direction, near) in shared.around(self.viewers.cell as usize) {
            let first = self.cell.first[direction] as usize;
            for (nth, population) in near.population(list).enumerate() {
                for place in ones(self.viewers.row(row)[first + nth] & population) {
                    let class = shared.class(viewer, near.id(nth * 64 + place));
                    lowest = Some(lowest.map_or(class, |lowest| lowest.min(class)));
                }
            }
        }
        lowest
    }

    /// Marks those around whom a viewer prefers to strangers.
    fn mark_tied(&mut self, row: usize, list: usize) {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        let query = TieQuery::of(&shared.object(viewer).traits, 0);
        let tied = &mut self.scratch.tied;
        tied.clear();
        tied.resize(self.viewers.stride, 0);
        for (direction, near) in shared.around(self.viewers.cell as usize) {
            let words = &mut tied[self.cell.first[direction] as usize..];
            let population = near.population(list).enumerate();
            for ((nth, population), tied) in population.zip(words) {
                for place in ones(near.ties.mask(nth, &query) & population) {
                    let class = shared.class(viewer, near.id(nth * 64 + place));
                    *tied |= u64::from(shared.goes_first(list, class)) << place;
                }
            }
        }
    }

    /// Those of a word who compete.
    #[inline]
    fn competing(
        &self,
        contest: &Contest,
        near: &TargetCell,
        nth: usize,
        at: usize,
        word: u64,
    ) -> u64 {
        if contest.of_strangers {
            return word & !self.scratch.tied[at];
        }
        let viewer = self.viewers.id(contest.row);
        let is_equal =
            |&place: &usize| self.shared.class(viewer, near.id(nth * 64 + place)) == contest.class;
        ones(word)
            .filter(is_equal)
            .fold(0, |word, place| word | 1 << place)
    }

    /// Sorts the members that compete by how near they count; gives how near the farthest is, if there is any.
    fn sort_members(&mut self, contest: &Contest) -> Option<usize> {
        let (shared, row) = (self.shared, contest.row);
        let here = shared.position(self.viewers.id(row));
        let ends_m2 = shared.ranking.bands.member_ends_m2();
        let mut members = std::mem::take(&mut self.scratch.members);
        members.clear();
        members.resize(self.viewers.stride, [0; BANDS as usize]);
        let mut all = [0; BANDS as usize];
        for (direction, near) in shared.around(self.viewers.cell as usize) {
            let first = self.cell.first[direction] as usize;
            for (nth, population) in near.population(contest.list).enumerate() {
                let at = first + nth;
                let listed = self.viewers.row(row)[at] & population;
                let listed = self.competing(contest, near, nth, at, listed);
                if listed != 0 {
                    let index = self.cell.near[direction];
                    let nearer = shared.slot_positions.nearer(index, nth, here, ends_m2);
                    members[at] = by_band(listed, nearer);
                    all.iter_mut()
                        .zip(&members[at])
                        .for_each(|(all, bits)| *all |= bits);
                }
            }
        }
        self.scratch.members = members;
        all.iter().position(|&any| any != 0)
    }

    /// Collects those of the same class who are in a nearer band than the farthest member.
    pub(super) fn find_nearer(&mut self, contest: &Contest, lowest: usize) {
        let (shared, row, list) = (self.shared, contest.row, contest.list);
        let looker = self.view().looker(row);
        let here = shared.position(looker.id);
        let ends_m2 = shared.ranking.bands.ends_m2();
        let count = |bits: u64| bits.count_ones();
        let members = self.scratch.members.iter();
        let replaceable: u32 = members
            .map(|bands| count(bands[0] | bands[1] | bands[2]))
            .sum();
        let mut found = std::mem::take(&mut self.scratch.outsiders);
        found.resize(self.viewers.stride, [0; BANDS as usize]);
        self.scratch.searched.clear();
        let mut nearest = 0;
        for direction in ORDERS[quadrant(&shared.grid, self.cell.at, here)] {
            let index = self.cell.near[direction];
            let Some(near) = shared.cells.get(index as usize) else {
                continue;
            };
            if usize::from(shared.nearness_of_cell(here, near.at)) <= lowest {
                continue;
            }
            self.scratch.searched.push(direction as u8);
            let first = self.cell.first[direction] as usize;
            for nth in 0..near.words {
                let at = first + nth;
                found[at] = [0; BANDS as usize];
                let unseen = self.view().unseen(row, list, direction, nth, &looker);
                if unseen == 0 {
                    continue;
                }
                let nearer = shared.slot_positions.nearer(index, nth, here, ends_m2);
                let bands = by_band(unseen, nearer);
                for (nearness, &band) in bands.iter().enumerate().skip(lowest + 1) {
                    found[at][nearness] = self.competing(contest, near, nth, at, band);
                }
                nearest += count(found[at][NEAREST]);
            }
            // Where somebody else has to agree, not all of them will.
            if nearest >= replaceable && !shared.ranking.mutual {
                break;
            }
        }
        self.scratch.outsiders = found;
    }

    /// Lets in the nearest, each instead of a member that counts as farther, the farthest first.
    fn replace(&mut self, contest: &Contest) {
        let &Contest {
            row, list, class, ..
        } = contest;
        let viewer = self.viewers.id(row);
        let list = list as u8;
        let mut leavers = FarthestFirst::default();
        let mut count = 0;
        'enters: for nearness in (1..BANDS as usize).rev() {
            for nth in (0..self.scratch.searched.len()).rev() {
                let direction = usize::from(self.scratch.searched[nth]);
                let near = &self.shared.cells[self.cell.near[direction] as usize];
                let words = self.cell.words_in(direction);
                for (nth, word) in words.enumerate().rev() {
                    for place in ones_down(self.scratch.outsiders[word][nearness]) {
                        let next = leavers.next(&self.scratch.members, nearness);
                        let Some((leaves, _)) = next else {
                            break 'enters;
                        };
                        let bits = self.viewers.row_mut(row);
                        bits[leaves.0] &= !bit(leaves.1);
                        bits[word] |= bit(place);
                        let leave = ViewEvent::Leave {
                            viewer,
                            target: self.target_at(leaves.0, leaves.1),
                            reason: LeaveReason::Evicted,
                            list,
                        };
                        let enter = ViewEvent::Enter {
                            viewer,
                            target: near.id(nth * 64 + place),
                            priority: class,
                            list,
                        };
                        self.scratch.events.extend([leave, enter]);
                        count += 1;
                    }
                }
            }
        }
        let goes_first = count > 0 && self.shared.goes_first(list.into(), class);
        self.viewers.states[row].refused |= u8::from(goes_first) << list;
        let counters = &mut self.scratch.counters;
        counters.leaves += count;
        counters.evictions += count;
        counters.enters += count;
    }
}

/// Goes through members that were sorted, from the farthest band to the nearest, in each from the last word down.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FarthestFirst {
    nearness: usize,
    /// So many words of the band were not looked at; `None` before the first of all.
    words: Option<usize>,
    /// Those of the word in hand who are left.
    bits: u64,
}

impl FarthestFirst {
    /// The word and the place of the next that is farther than a band, and its own band.
    #[inline]
    pub(super) fn next(
        &mut self,
        members: &[[u64; BANDS as usize]],
        nearness: usize,
    ) -> Option<((usize, usize), usize)> {
        let mut words = self.words.unwrap_or(members.len());
        while self.bits == 0 && self.nearness < nearness {
            if words == 0 {
                (self.nearness, words) = (self.nearness + 1, members.len());
            } else {
                words -= 1;
                self.bits = members[words][self.nearness];
            }
        }
        self.words = Some(words);
        if self.nearness >= nearness {
            return None;
        }
        let place = self.bits.checked_ilog2()? as usize;
        self.bits &= !bit(place);
        Some(((words, place), self.nearness))
    }
}

/// The bits of a word by nearness, from those that are nearer than each end of a band.
#[inline]
const fn by_band(word: u64, [first, second, third]: [u64; 3]) -> [u64; BANDS as usize] {
    [
        word & !third,
        word & third & !second,
        word & second & !first,
        word & first,
    ]
}

impl Shared {
    /// The nearest band in which somebody in a cell could be.
    fn nearness_of_cell(&self, here: Vec2, cell: GridCell) -> u8 {
        let nearest = self.nearest_in_cell(here, cell);
        self.ranking.bands.nearness(here, nearest)
    }

    /// The nearest place at which somebody in a cell could be.
    pub(super) fn nearest_in_cell(&self, here: Vec2, cell: GridCell) -> Vec2 {
        // Members may stray from their cell by the margin, and beyond the borders of the scene.
        let (columns, rows) = self.grid.size();
        let axis = |p: f32, cell: u16, count: u16| {
            let (size, margin) = (self.grid.cell_m(), self.grid.margin_m());
            let low = f32::from(cell) * size - margin;
            let high = f32::from(cell) * size + size + margin;
            let low = if cell == 0 { f32::NEG_INFINITY } else { low };
            let high = if cell + 1 == count {
                f32::INFINITY
            } else {
                high
            };
            p.clamp(low, high)
        };
        Vec2::new(axis(here.x, cell.x, columns), axis(here.y, cell.y, rows))
    }
}
