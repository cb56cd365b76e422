//! Bands of distance follow those who walk: each update, a fixed share of the viewers looks at them anew.
//!
//! Between its turns a viewer prefers the nearer only when it has several to choose from. In its turn it ranks
//! its members anew, with hysteresis, and takes whoever is in a nearer band instead of a member of the same
//! class. Only a full list has to choose: who has a free place sees everybody anyway.
//!
//! Cost: viewers ÷ `rerank_ticks` sweeps an update, each of the cells that are near enough to have somebody
//! in a nearer band than the farthest member.

use super::mutual::Consent;
use super::scratch::MutualProposal;
use super::shard::{Shared, ViewShard};
use crate::aoi::grid::GridCell;
use crate::aoi::links::{LinkKey, UNCAPPED};
use crate::aoi::priority::{BANDS, class_of, rank_of};

impl ViewShard {
    /// Re-ranks the viewers whose turn it is.
    pub(super) fn rerank(&mut self, shared: &Shared, turn: u32, rerank_ticks: u32) {
        if rerank_ticks == 0 {
            return;
        }
        let ids = shared.objects.len() as u32;
        for (row, start) in (0..ids).step_by(rerank_ticks as usize).enumerate() {
            // One step farther in each row, so that those of a turn are of all shards.
            let viewer = start + (turn % rerank_ticks + row as u32) % rerank_ticks;
            if viewer < ids && self.share.owns(viewer) {
                self.rerank_viewer(shared, viewer);
            }
        }
    }

    fn rerank_viewer(&mut self, shared: &Shared, viewer: u32) {
        if !shared.objects[viewer as usize].viewer {
            return;
        }
        for list in 0..UNCAPPED {
            let state = self.viewer_state(viewer);
            // Full, and somebody was refused: otherwise it sees all that it could.
            if state.has_place(list) || state.bound[list] == 0 {
                continue;
            }
            for place in 0..self.links.list_len(viewer, list) {
                if let Some(key) = self.links.key_at(viewer, list, place) {
                    let (me, other) = (
                        &shared.objects[viewer as usize],
                        &shared.objects[key.target() as usize],
                    );
                    let rank = shared.ranking.rank_in_class(key.rank(), me, other);
                    self.set_rank(shared, viewer, list, place, rank);
                }
            }
            self.refresh_gate(shared, viewer, list);
            self.take_nearer(shared, viewer, list);
        }
    }

    /// Replaces members by those who are in a nearer band.
    fn take_nearer(&mut self, shared: &Shared, viewer: u32, list: usize) {
        let Some(lowest) = self.links.lowest_rank(viewer, list) else {
            return;
        };
        // Members that are not in the nearest band, and candidates of the same class that are.
        let nearest = rank_of(class_of(lowest), BANDS - 1);
        let keys = self.links.keys(viewer, list);
        let replaceable = keys.filter(|key| key.rank() < nearest).count();
        let mut found = 0;
        self.mark_seen(viewer);
        let cell = shared.grid.cell(viewer);
        'sweep: for cell in shared.grid.around(0, cell) {
            // Higher classes enter without waiting for this turn.
            if Self::nearness_of_cell(shared, viewer, cell) <= lowest % BANDS {
                continue;
            }
            let Self {
                scratch,
                links,
                viewer_states,
                share,
                ..
            } = self;
            let Shared {
                grid,
                objects,
                ranking,
                ..
            } = shared;
            let me = &objects[viewer as usize];
            for &target in grid.targets(0, list, cell).ids() {
                let other = &objects[target as usize];
                if scratch.is_marked(target) || !shared.allows(me, other) {
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
                    let proposal = MutualProposal::one_way(rank, viewer, target);
                    scratch.proposals.push(proposal);
                } else if viewer_states[share.place(target)].has_place(me.list())
                    || links.has_lower(target, me.list(), rank)
                {
                    let proposal = MutualProposal::pair(rank, viewer, target);
                    scratch.proposals.push(proposal);
                } else {
                    continue;
                }
                found += usize::from(rank >= nearest);
            }
        }
        if shared.ranking.mutual {
            self.commit(shared, Consent::Rank);
        } else {
            self.replace_lowest(shared, viewer, list);
        }
        // Whoever stayed outside is in no nearer band than the farthest member.
        let state = *self.viewer_state(viewer);
        if !state.gains(list)
            && !state.has_place(list)
            && let Some(lowest) = self.links.lowest_rank(viewer, list)
        {
            self.viewer_state_mut(viewer).bound[list] =
                state.bound[list].min(u16::from(lowest) + 1);
            self.refresh_open(shared, viewer, list);
        }
    }

    /// Lets in the best of the entrants, each instead of a member of a lower rank.
    fn replace_lowest(&mut self, shared: &Shared, viewer: u32, list: usize) {
        let mut entrants = std::mem::take(&mut self.scratch.entrants[list]);
        let mut lowest = std::mem::take(&mut self.scratch.members);
        let best = entrants.iter().map(|key| key.rank()).max().unwrap_or(0);
        // Of those of one rank, who only counts as that far for hysteresis stays: it would come back next turn.
        let me = &shared.objects[viewer as usize];
        let members = self.links.keys(viewer, list).zip(0..);
        let lower = members.filter(|(key, _)| key.rank() < best);
        lowest.extend(lower.map(|(key, place)| {
            let other = &shared.objects[key.target() as usize];
            let now = shared.ranking.bands.nearness(me.position, other.position);
            (key.rank(), now, key, place)
        }));
        let count = entrants.len().min(lowest.len());
        if count > 0 {
            entrants.sort_unstable_by(|a, b| b.cmp(a));
            lowest.select_nth_unstable(count - 1);
            lowest[..count].sort_unstable();
            let pairs = entrants.iter().zip(&lowest);
            let better = pairs.take_while(|(entrant, member)| entrant.rank() > member.0);
            let count = better.count();
            // From the last place on, so that those that move are not among them.
            lowest[..count].sort_unstable_by_key(|member| core::cmp::Reverse(member.3));
            for &(_, _, key, place) in &lowest[..count] {
                self.evict(shared, viewer, list, place as usize, key);
            }
            self.refresh_gate(shared, viewer, list);
            for &key in &entrants[..count] {
                self.link(shared, viewer, list, key);
            }
        }
        entrants.clear();
        lowest.clear();
        self.scratch.entrants[list] = entrants;
        self.scratch.members = lowest;
    }

    /// The nearest band in which somebody in a cell could be.
    fn nearness_of_cell(shared: &Shared, viewer: u32, cell: GridCell) -> u8 {
        let position = shared.objects[viewer as usize].position;
        // Members may stray from their cell by the margin, and beyond the borders of the scene.
        let (columns, rows) = shared.grid.size();
        let axis = |p: f32, cell: u16, count: u16| {
            let (size, margin) = (shared.grid.cell_m(), shared.grid.margin_m());
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
        shared.ranking.bands.nearness(position, nearest)
    }
}
