//! Distance bands follow moving objects: each update re-ranks a fixed share of the viewers.
//!
//! Between its turns a viewer prefers nearer targets only when it fills free slots, cell by cell. In its turn it replaces
//! members of its lowest class by targets of that class in a nearer band, with hysteresis. Only full lists have to choose: a
//! viewer with a free slot sees every target anyway.
//!
//! Competitors are words of bits by band. Distances are compared 32 at once, in columns of positions that the update
//! gathers for the cells around those that re-rank a viewer (slot_positions.rs).
//!
//! Cost: viewers ÷ `rerank_ticks` per update; for each, the distances of its members, and of the targets in the cells that
//! are near enough for a nearer band than the farthest member's.

use glam::Vec2;

use super::band_words::{BandWord, FarthestFirst, NEAREST, by_band};
use crate::grid::GridCell;
use crate::priority::{BAND_COUNT, TEAM};
use crate::views::events::{ViewEvent, ViewLeaveReason};
use crate::views::state::bits::{bit, ones, ones_down};
use crate::views::state::cells::{NEAREST_CELLS, RowState, TargetCell, quadrant};
use crate::views::state::object::{NONE, UNCAPPED};
use crate::views::state::relations::RelationQuery;
use crate::views::state::scene_state::SceneState;
use crate::views::update::cell_pass::CellPass;

/// The competitors for the slots of a list that is re-ranked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListRerank {
    pub(crate) row: usize,
    pub(crate) list: usize,
    pub(crate) class: u8,
    rivals: CompetitorFilter,
}

/// How competitors are selected.
#[derive(Clone, Copy, Debug)]
enum CompetitorFilter {
    /// All but targets that go before unrelated ones; the query finds a superset of these.
    Unrelated(RelationQuery),
    /// Targets of the class; the query finds a superset of them.
    Related(RelationQuery),
    /// Targets of the class, without a query to preselect them.
    SameClass,
}

impl CellPass<'_> {
    /// Re-ranks the viewers whose turn it is.
    pub(crate) fn rerank(&mut self) {
        for nth in 0..self.viewers.rows_to_rerank.len() {
            let row = self.viewers.rows_to_rerank[nth] as usize;
            let state = self.viewers.states[row];
            if self.viewers.id(row) == NONE || state.has_task(RowState::WAITS_FOR_SCAN) {
                continue;
            }
            for list in 0..UNCAPPED {
                if state.count[list] > 0 && !state.has_room(list) {
                    self.rerank_list(row, list);
                }
            }
        }
    }

    fn rerank_list(&mut self, row: usize, list: usize) {
        if let Some((contest, lowest)) = self.begin_rerank(row, list)
            && lowest < NEAREST
        {
            self.find_nearer(&contest, lowest);
            self.replace(&contest);
        }
    }

    /// The lowest class of a list, whose members compete, and the nearness of the farthest of them.
    pub(crate) fn begin_rerank(&mut self, row: usize, list: usize) -> Option<(ListRerank, usize)> {
        let shared = self.shared;
        let traits = &shared.object(self.viewers.id(row)).traits;
        if !shared.is_ranked(list) {
            let contest = ListRerank {
                row,
                list,
                class: shared.unrelated_class(list),
                rivals: CompetitorFilter::Unrelated(RelationQuery::of(traits, 0)),
            };
            if let Some(lowest) = self.sort_members(&contest) {
                return Some((contest, lowest));
            }
        }
        let class = self.lowest_class(row, list)?;
        let is_tied = shared.ranking.priority.is_none() && class >= TEAM;
        let contest = ListRerank {
            row,
            list,
            class,
            rivals: if is_tied {
                CompetitorFilter::Related(RelationQuery::of(traits, class - 1))
            } else {
                CompetitorFilter::SameClass
            },
        };
        self.sort_members(&contest).map(|lowest| (contest, lowest))
    }

    /// The lowest class of the members of a list.
    fn lowest_class(&self, row: usize, list: usize) -> Option<u8> {
        let shared = self.shared;
        let viewer = self.viewers.id(row);
        let mut lowest: Option<u8> = None;
        for (direction, near) in shared.neighbours(self.viewers.cell as usize) {
            let seen = self.viewers.rows.range(row, self.cell.words_in(direction));
            for (nth, (population, seen)) in near.population(list).zip(seen).enumerate() {
                for place in ones(seen & population) {
                    let class = shared.class(viewer, near.id(nth * 64 + place));
                    lowest = Some(lowest.map_or(class, |lowest| lowest.min(class)));
                }
            }
        }
        lowest
    }

    /// The competitors of a word.
    #[inline]
    fn competing(&self, contest: &ListRerank, near: &TargetCell, nth: usize, word: u64) -> u64 {
        let shared = self.shared;
        let viewer = self.viewers.id(contest.row);
        let among = |all: u64, counts: &dyn Fn(u8) -> bool| {
            let class = |place: usize| shared.class(viewer, near.id(nth * 64 + place));
            let counted = ones(all).filter(|&place| counts(class(place)));
            counted.fold(0, |word, place| word | bit(place))
        };
        match &contest.rivals {
            CompetitorFilter::Unrelated(ties) => {
                let tied = word & near.relations.mask(nth, ties);
                word & !among(tied, &|class| {
                    shared.outranks_unrelated(contest.list, class)
                })
            }
            CompetitorFilter::Related(ties) => {
                let tied = word & near.relations.mask(nth, ties);
                among(tied, &|class| class == contest.class)
            }
            CompetitorFilter::SameClass => among(word, &|class| class == contest.class),
        }
    }

    /// Sorts the competing members by nearness; returns the nearness of the farthest, if there is any.
    fn sort_members(&mut self, contest: &ListRerank) -> Option<usize> {
        let (shared, row) = (self.shared, contest.row);
        let here = shared.position(self.viewers.id(row));
        let ends_m2 = shared.ranking.bands.member_ends_m2();
        let mut members = std::mem::take(&mut self.scratch.members);
        members.clear();
        let mut all = [0; BAND_COUNT as usize];
        for (direction, near) in shared.neighbours(self.viewers.cell as usize) {
            let seen = self.viewers.rows.range(row, self.cell.words_in(direction));
            let population = near.population(contest.list);
            for (nth, (population, seen)) in population.zip(seen).enumerate() {
                let listed = seen & population;
                if listed == 0 {
                    continue;
                }
                let listed = self.competing(contest, near, nth, listed);
                if listed != 0 {
                    let index = self.cell.neighbours[direction];
                    let nearer = shared.slot_positions.nearer(index, nth, here, ends_m2);
                    let bands = by_band(listed, nearer);
                    all.iter_mut()
                        .zip(&bands)
                        .for_each(|(all, bits)| *all |= bits);
                    members.push(BandWord::new(self.cell, direction, nth, bands));
                }
            }
        }
        self.scratch.members = members;
        all.iter().position(|&any| any != 0)
    }

    /// Collects targets of the same class in a nearer band than the farthest member.
    pub(crate) fn find_nearer(&mut self, contest: &ListRerank, lowest: usize) {
        let (shared, row, list) = (self.shared, contest.row, contest.list);
        let looker = self.cell_view().scanning_viewer(row);
        let here = shared.position(looker.id);
        let ends_m2 = shared.ranking.bands.ends_m2();
        let count = |bits: u64| bits.count_ones();
        let members = self.scratch.members.iter();
        let replaceable: u32 = members
            .map(|word| count(word.bands[0] | word.bands[1] | word.bands[2]))
            .sum();
        let mut found = std::mem::take(&mut self.scratch.outsiders);
        found.clear();
        let mut nearest = 0;
        for direction in NEAREST_CELLS[quadrant(&shared.grid, self.cell.grid_cell, here)] {
            let index = self.cell.neighbours[direction];
            let Some(near) = shared.cells.get(index as usize) else {
                continue;
            };
            if usize::from(shared.nearness_of_cell(here, near.grid_cell)) <= lowest {
                continue;
            }
            let seen = self.viewers.rows.range(row, self.cell.words_in(direction));
            for (nth, seen) in seen.enumerate() {
                let unseen = self.cell_view().unseen(list, direction, nth, seen, &looker);
                if unseen == 0 {
                    continue;
                }
                let nearer = shared.slot_positions.nearer(index, nth, here, ends_m2);
                // Targets that are nearer than the farthest member.
                let unseen = unseen & nearer[NEAREST - 1 - lowest];
                if unseen == 0 {
                    continue;
                }
                let unseen = self.competing(contest, near, nth, unseen);
                if unseen != 0 {
                    let bands = by_band(unseen, nearer);
                    nearest += count(bands[NEAREST]);
                    found.push(BandWord::new(self.cell, direction, nth, bands));
                }
            }
            // In mutual mode some of them may refuse.
            if nearest >= replaceable && !shared.ranking.mutual {
                break;
            }
        }
        self.scratch.outsiders = found;
    }

    /// Admits the nearest targets, each in place of a member that counts as farther, the farthest first.
    fn replace(&mut self, contest: &ListRerank) {
        let &ListRerank {
            row, list, class, ..
        } = contest;
        let viewer = self.viewers.id(row);
        let list = list as u8;
        let mut leavers = FarthestFirst::default();
        let mut count = 0;
        'enters: for nearness in (1..BAND_COUNT as usize).rev() {
            for outsiders in self.scratch.outsiders.iter().rev() {
                for place in ones_down(outsiders.bands[nearness]) {
                    let next = leavers.next(&self.scratch.members, nearness);
                    let Some((member, leaves, _)) = next else {
                        break 'enters;
                    };
                    let rows = &mut self.viewers.rows;
                    rows.remove(row, member.word as usize, bit(leaves));
                    rows.insert(row, outsiders.word as usize, bit(place));
                    let leave = ViewEvent::Leave {
                        viewer,
                        target: member.target(self.shared, self.cell, leaves),
                        reason: ViewLeaveReason::Evicted,
                        list,
                    };
                    let enter = ViewEvent::Enter {
                        viewer,
                        target: outsiders.target(self.shared, self.cell, place),
                        priority: class,
                        list,
                    };
                    self.scratch.events.extend([leave, enter]);
                    count += 1;
                }
            }
        }
        let goes_first = count > 0 && self.shared.outranks_unrelated(list.into(), class);
        self.viewers.states[row].refused_lists |= u8::from(goes_first) << list;
        let counters = &mut self.scratch.counters;
        counters.leaves += count;
        counters.evictions += count;
        counters.enters += count;
    }
}

impl SceneState {
    /// The nearest band that a target in a cell could be in.
    fn nearness_of_cell(&self, here: Vec2, cell: GridCell) -> u8 {
        let nearest = self.nearest_in_cell(here, cell);
        self.ranking.bands.nearness(here, nearest)
    }

    /// The nearest position that a target in a cell could have.
    pub(crate) fn nearest_in_cell(&self, here: Vec2, cell: GridCell) -> Vec2 {
        // Objects may be outside their cell by the margin, and outside the scene.
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
