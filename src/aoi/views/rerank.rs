//! Bands of distance follow those who walk: each update, a fixed share of the viewers looks at them anew.
//!
//! Between its turns a viewer prefers the nearer only as it fills free places, cell by cell. In its turn it takes whoever is
//! in a nearer band instead of a member of its lowest class, with hysteresis. Only a full list has to choose: who has a free
//! place sees everybody anyway.
//!
//! Cost: viewers ÷ `rerank_ticks` an update, each the distances of its members, and of those in the cells that are near
//! enough to have somebody in a nearer band than the farthest member.

use glam::Vec2;

use super::cells::{ORDERS, RowState, ones, quadrant};
use super::object::{NONE, UNCAPPED};
use super::pass::CellPass;
use super::shared::Shared;
use super::ties::TieQuery;
use super::victims::ListedTarget;
use crate::aoi::grid::GridCell;
use crate::aoi::priority::{BANDS, rank_of};

const NEAREST: usize = BANDS as usize - 1;

/// Who competes for the places of a list that are to be given anew.
#[derive(Clone, Copy, Debug)]
struct Contest {
    row: usize,
    list: usize,
    class: u8,
    /// Strangers compete, and nobody need be asked for its class.
    of_strangers: bool,
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
        let Some(contest) = self.contest(row, list) else {
            return;
        };
        self.mark_tied(&contest);
        let lowest = self.sort_members(&contest);
        if lowest < NEAREST {
            self.find_nearer(&contest, lowest);
            self.replace(&contest);
        }
    }

    /// Lists those of the lowest class of a list who are in a nearer band than the farthest member, and how far they are:
    /// the complement of their nearness.
    pub(super) fn list_nearer(&mut self, row: usize, list: usize, found: &mut Vec<(u8, u32)>) {
        let Some(contest) = self.contest(row, list) else {
            return;
        };
        self.mark_tied(&contest);
        let lowest = self.sort_members(&contest);
        self.viewers.states[row].lowest[list] = rank_of(contest.class, lowest as u8);
        if lowest < NEAREST {
            self.find_nearer(&contest, lowest);
            for (nearness, outsiders) in (0_u8..).zip(&self.scratch.outsiders) {
                found.extend(outsiders.iter().map(|&at| {
                    let (word, place) = (at as usize / 64, at as usize % 64);
                    (!nearness, self.target_at(word, place))
                }));
            }
        }
    }

    /// The lowest class of a list, whose members have to compete. Where strangers are equal the first of them ends the search.
    fn contest(&self, row: usize, list: usize) -> Option<Contest> {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        let mut lowest: Option<u8> = None;
        'cells: for (direction, near) in shared.around(self.viewers.cell as usize) {
            let first = self.cell.first[direction] as usize;
            for (nth, &population) in near.population[list].iter().enumerate() {
                for place in ones(self.viewers.row(row)[first + nth] & population) {
                    let class = shared.class(viewer, near.id(nth * 64 + place));
                    lowest = Some(lowest.map_or(class, |lowest| lowest.min(class)));
                    if !shared.goes_first(list, class) {
                        break 'cells;
                    }
                }
            }
        }
        lowest.map(|class| Contest {
            row,
            list,
            class,
            of_strangers: !shared.goes_first(list, class),
        })
    }

    /// Marks those around whom a viewer prefers to strangers, where strangers compete.
    fn mark_tied(&mut self, contest: &Contest) {
        let &Contest { row, list, .. } = contest;
        if !contest.of_strangers {
            return;
        }
        let tied = &mut self.scratch.tied;
        tied.clear();
        tied.resize(self.viewers.stride, 0);
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        let query = TieQuery::of(&shared.object(viewer).traits, 0);
        for (direction, near) in shared.around(self.viewers.cell as usize) {
            let first = self.cell.first[direction] as usize;
            near.ties.find(&query, |slot| {
                // A free slot is found by who aims at an id that nobody has.
                let goes_first = near.has(list, slot)
                    && shared.goes_first(list, shared.class(viewer, near.id(slot)));
                // Columns may be longer than rows.
                if goes_first {
                    tied[first + slot / 64] |= 1 << (slot % 64);
                }
            });
        }
    }

    /// Sorts the members that compete by how near they count; gives the farthest.
    fn sort_members(&mut self, contest: &Contest) -> usize {
        let (shared, row) = (self.shared, contest.row);
        let viewer = self.viewers.id(row);
        let here = shared.position(viewer);
        let members = &mut self.scratch.members;
        members.iter_mut().for_each(Vec::clear);
        for (direction, near) in shared.around(self.viewers.cell as usize) {
            let first = self.cell.first[direction] as usize;
            for (nth, &population) in near.population[contest.list].iter().enumerate() {
                let mut listed = self.viewers.row(row)[first + nth] & population;
                if contest.of_strangers {
                    listed &= !self.scratch.tied[first + nth];
                }
                for place in ones(listed) {
                    let target = near.id(nth * 64 + place);
                    if !contest.of_strangers && shared.class(viewer, target) != contest.class {
                        continue;
                    }
                    let there = shared.position(target);
                    let nearness = shared.ranking.bands.nearness_of_member(here, there);
                    members[usize::from(nearness)].push(((first + nth) * 64 + place) as u32);
                }
            }
        }
        let farthest = members.iter().position(|members| !members.is_empty());
        farthest.unwrap_or(NEAREST)
    }

    /// Collects those of the same class who are in a nearer band than the farthest member.
    fn find_nearer(&mut self, contest: &Contest, lowest: usize) {
        let (shared, row, list) = (self.shared, contest.row, contest.list);
        let looker = self.view().looker(row);
        let viewer = looker.id;
        let here = shared.position(viewer);
        let replaceable: usize = self.scratch.members[..NEAREST].iter().map(Vec::len).sum();
        let mut found = std::mem::take(&mut self.scratch.outsiders);
        found.iter_mut().for_each(Vec::clear);
        for direction in ORDERS[quadrant(&shared.grid, self.cell.at, here)] {
            let Some(near) = shared.cells.get(self.cell.near[direction] as usize) else {
                continue;
            };
            if usize::from(shared.nearness_of_cell(here, near.at)) <= lowest {
                continue;
            }
            let first = self.cell.first[direction] as usize;
            for nth in 0..near.population[list].len() {
                let mut unseen = self.view().unseen(row, list, direction, nth, &looker);
                if contest.of_strangers {
                    unseen &= !self.scratch.tied[first + nth];
                }
                for place in ones(unseen) {
                    let target = near.id(nth * 64 + place);
                    let nearness = shared.nearness(viewer, target);
                    if usize::from(nearness) > lowest
                        && (contest.of_strangers || shared.class(viewer, target) == contest.class)
                    {
                        found[usize::from(nearness)].push(((first + nth) * 64 + place) as u32);
                    }
                }
            }
            // Where somebody else has to agree, not all of them will.
            if found[NEAREST].len() >= replaceable && !shared.ranking.mutual {
                break;
            }
        }
        self.scratch.outsiders = found;
    }

    /// Lets in the nearest, each instead of a member that counts as farther, the farthest first.
    fn replace(&mut self, contest: &Contest) {
        let mut lowest = 0;
        for nearness in (1..BANDS as usize).rev() {
            while !self.scratch.outsiders[nearness].is_empty() {
                while lowest < nearness && self.scratch.members[lowest].is_empty() {
                    lowest += 1;
                }
                if lowest >= nearness {
                    return;
                }
                let leaves = self.scratch.members[lowest].pop();
                let enters = self.scratch.outsiders[nearness].pop();
                if let (Some(leaves), Some(enters)) = (leaves, enters) {
                    let (leaves, enters) = (
                        self.listed(leaves, contest.class),
                        self.listed(enters, contest.class),
                    );
                    self.evict(contest.row, contest.list, leaves);
                    self.link(contest.row, contest.list, enters);
                }
            }
        }
    }

    fn listed(&self, at: u32, class: u8) -> ListedTarget {
        let (word, place) = (at as usize / 64, at as usize % 64);
        ListedTarget {
            word,
            place,
            target: self.target_at(word, place),
            class,
        }
    }
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
