//! Bands of distance follow those who walk: each update, a fixed share of the viewers looks at them anew.
//!
//! Between its turns a viewer prefers the nearer only when it has several to choose from. In its turn it ranks
//! its members anew, with hysteresis, and takes whoever is in a nearer band instead of a member of the same
//! class. Only a full list has to choose: who has a free place sees everybody anyway.
//!
//! Cost: viewers ÷ `rerank_ticks` sweeps an update, each of the cells that are near enough to have somebody
//! in a nearer band than the farthest member.

use super::{
    grid::GridCell,
    links::{LinkKey, UNCAPPED},
    pairs::{Consent, Proposal},
    priority::{BANDS, class_of, rank_of},
    views::{SceneViews, ViewEvent},
};

impl SceneViews {
    /// Re-ranks the viewers whose turn it is.
    pub(super) fn rerank(&mut self, events: &mut Vec<ViewEvent>) {
        self.turn = self.turn.wrapping_add(1);
        if self.rerank_ticks == 0 {
            return;
        }
        let first = (self.turn % self.rerank_ticks) as usize;
        for viewer in (first..self.objects.len()).step_by(self.rerank_ticks as usize) {
            self.rerank_viewer(viewer as u32, events);
        }
    }

    fn rerank_viewer(&mut self, viewer: u32, events: &mut Vec<ViewEvent>) {
        if !self.objects[viewer as usize].viewer {
            return;
        }
        for list in 0..UNCAPPED {
            let object = &self.objects[viewer as usize];
            // Full, and somebody was refused: otherwise it sees all that it could.
            if object.has_place(list) || object.bound[list] == 0 {
                continue;
            }
            for place in 0..self.links.list_len(viewer, list) {
                if let Some(key) = self.links.key_at(viewer, list, place) {
                    let (me, other) = (
                        &self.objects[viewer as usize],
                        &self.objects[key.target() as usize],
                    );
                    let rank = self.ranking.rank_in_class(key.rank(), me, other);
                    self.set_rank(viewer, list, place, rank);
                }
            }
            self.refresh_gate(viewer, list);
            self.take_nearer(viewer, list, events);
        }
    }

    /// Replaces members by those who are in a nearer band.
    fn take_nearer(&mut self, viewer: u32, list: usize, events: &mut Vec<ViewEvent>) {
        let Some(lowest) = self.links.lowest_rank(viewer, list) else {
            return;
        };
        // Members that are not in the nearest band, and candidates of the same class that are.
        let nearest = rank_of(class_of(lowest), BANDS - 1);
        let keys = self.links.keys(viewer, list);
        let replaceable = keys.filter(|key| key.rank() < nearest).count();
        let mut found = 0;
        self.mark_seen(viewer);
        let cell = self.grid.cell(viewer);
        'sweep: for cell in self.grid.around(0, cell) {
            // Higher classes enter without waiting for this turn.
            if self.nearness_of_cell(viewer, cell) <= lowest % BANDS {
                continue;
            }
            let Self {
                grid,
                objects,
                scratch,
                ranking,
                links,
                ..
            } = self;
            let me = &objects[viewer as usize];
            for &target in grid.targets(0, list, cell).ids() {
                let other = &objects[target as usize];
                if scratch.is_marked(target) || !ranking.allows(me, other) {
                    continue;
                }
                let rank = ranking.rank(me, other);
                if rank <= lowest {
                    continue;
                }
                if found == replaceable {
                    break 'sweep;
                }
                if !ranking.mutual {
                    scratch.entrants[list].push(LinkKey::new(rank, target));
                } else if !ranking.is_pair(me, other) {
                    let proposal = Proposal::one_way(rank, viewer, target);
                    scratch.proposals.push(proposal);
                } else if other.has_place(me.list()) || links.has_lower(target, me.list(), rank) {
                    let proposal = Proposal::pair(rank, viewer, target);
                    scratch.proposals.push(proposal);
                } else {
                    continue;
                }
                found += usize::from(rank >= nearest);
            }
        }
        if self.ranking.mutual {
            self.commit(Consent::Rank, events);
        } else {
            self.replace_lowest(viewer, list, events);
        }
        // Whoever stayed outside is in no nearer band than the farthest member.
        let object = &mut self.objects[viewer as usize];
        if !object.gains(list)
            && !object.has_place(list)
            && let Some(lowest) = self.links.lowest_rank(viewer, list)
        {
            object.bound[list] = object.bound[list].min(u16::from(lowest) + 1);
            self.refresh_open(viewer, list);
        }
    }

    /// Lets in the best of the entrants, each instead of a member of a lower rank.
    fn replace_lowest(&mut self, viewer: u32, list: usize, events: &mut Vec<ViewEvent>) {
        let mut entrants = std::mem::take(&mut self.scratch.entrants[list]);
        let mut lowest = std::mem::take(&mut self.scratch.members);
        lowest.extend(self.links.keys(viewer, list).zip(0..));
        let count = entrants.len().min(lowest.len());
        if count > 0 {
            entrants.sort_unstable_by(|a, b| b.cmp(a));
            lowest.select_nth_unstable(count - 1);
            lowest[..count].sort_unstable();
            let pairs = entrants.iter().zip(&lowest);
            let is_better =
                |(entrant, member): &(&LinkKey, &(LinkKey, u32))| entrant.rank() > member.0.rank();
            let count = pairs.take_while(is_better).count();
            // From the last place on, so that those that move are not among them.
            lowest[..count].sort_unstable_by_key(|member| core::cmp::Reverse(member.1));
            for &(key, place) in &lowest[..count] {
                self.evict(viewer, list, place as usize, key, events);
            }
            self.refresh_gate(viewer, list);
            for &key in &entrants[..count] {
                self.link(viewer, list, key, events);
            }
        }
        entrants.clear();
        lowest.clear();
        self.scratch.entrants[list] = entrants;
        self.scratch.members = lowest;
    }

    /// The nearest band in which somebody in a cell could be.
    fn nearness_of_cell(&self, viewer: u32, cell: GridCell) -> u8 {
        let position = self.objects[viewer as usize].position;
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
        let nearest = glam::Vec2::new(
            axis(position.x, cell.x, columns),
            axis(position.y, cell.y, rows),
        );
        self.ranking.bands.nearness(position, nearest)
    }
}
