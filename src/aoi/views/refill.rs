//! Viewers that have something to gain look around, the first in the queue first.
//!
//! A look sweeps the surroundings of a viewer, from its own cell outwards, until it has nothing to gain. A
//! candidate of the highest rank that may have been refused takes a free place as soon as it is found: nobody
//! better can follow. So in a crowd of equals a look ends after a few steps.

use super::enter::partition;
use super::scene_views::SceneViews;
use super::shard::{Shared, ViewShard};
use crate::aoi::links::{LISTS, LinkKey, UNCAPPED};
use crate::aoi::priority::BANDS;
use crate::aoi::share::Share;
use crate::sim::Spread;

impl SceneViews {
    /// Queues who can gain, and serves the queue from its head.
    pub(super) fn refill(&mut self, spread: impl Spread, looks_max: u32) {
        let mut looks = 0;
        loop {
            self.enqueue_freed();
            while let Some(viewer) = self.queue.first() {
                let Self { shared, shards, .. } = self;
                let count = shards.len();
                let shard = &mut shards[Share::index_of(viewer, count)];
                if shard.viewer_state(viewer).can_gain() {
                    if looks == looks_max {
                        break;
                    }
                    looks += 1;
                    if shared.ranking.mutual {
                        // It may end what another hopes for.
                        shard.refill(shared, viewer);
                    } else {
                        shard.refilling.push(viewer);
                    }
                }
                self.queue.pop();
            }
            // Only where sight is mutual a look may free others.
            if !self.shards.iter().any(ViewShard::is_any_freed) {
                break;
            }
        }
        self.counters.looks += u64::from(looks);
        let shared = &self.shared;
        spread.for_each_in_turn(&mut self.shards, |shard| {
            let mut refilling = std::mem::take(&mut shard.refilling);
            for viewer in refilling.drain(..) {
                shard.refill(shared, viewer);
            }
            shard.refilling = refilling;
        });
    }

    /// Queues the viewers that began to have something to gain, by id.
    fn enqueue_freed(&mut self) {
        self.shards.iter_mut().for_each(ViewShard::collect_freed);
        let mut gaining = std::mem::take(&mut self.shards[0].refilling);
        for shard in &mut self.shards[1..] {
            gaining.append(&mut shard.refilling);
        }
        gaining.sort_unstable();
        for viewer in gaining.drain(..) {
            self.queue.push(viewer);
        }
        self.shards[0].refilling = gaining;
    }
}

impl ViewShard {
    pub(super) fn refill(&mut self, shared: &Shared, viewer: u32) {
        self.mark_seen(viewer);
        if shared.ranking.mutual {
            let enters = self.counters.enters;
            let cell = shared.grid.cell(viewer);
            self.propose_to_all(shared, viewer, Some(cell));
            self.commit_proposals(shared);
            self.counters.refills += self.counters.enters - enters;
            return;
        }
        for list in 0..LISTS {
            self.fill(shared, viewer, list);
        }
    }

    /// Sweeps for those that may enter a list, unless it has nothing to gain. Whom the viewer sees is marked.
    pub(super) fn fill(&mut self, shared: &Shared, viewer: u32, list: usize) {
        if !self.viewer_state(viewer).gains(list) {
            return;
        }
        let me = &shared.objects[viewer as usize];
        let cell = shared.grid.cell(viewer);
        let mut refused = 0;
        // Only targets outside caps live in the coarser layers.
        let layers = if list == UNCAPPED {
            shared.grid.layer_count()
        } else {
            1
        };
        for layer in 0..layers {
            let around = shared.grid.around(layer, shared.grid.coarse(layer, cell));
            for (nth, cell) in around.enumerate() {
                // Of its own cell it takes the nearest first, then of the next ones.
                let nearness = if nth == 0 { BANDS - 1 } else { BANDS - 2 };
                let targets = shared.grid.targets(layer, list, cell).ids();
                let count = self.scratch.choose_unmarked(targets);
                for place in 0..count {
                    let target = self.scratch.candidates[place];
                    let other = &shared.objects[target as usize];
                    if !shared.allows(me, other) {
                        continue;
                    }
                    let rank = shared.ranking.rank(me, other);
                    let state = self.viewer_state(viewer);
                    if !state.may_gain(list, rank) {
                        refused = refused.max(u16::from(rank) + 1);
                        continue;
                    }
                    let key = LinkKey::new(rank, target);
                    if rank % BANDS < nearness || !state.is_best(list, rank) {
                        self.scratch.entrants[list].push(key);
                        continue;
                    }
                    self.link(shared, viewer, list, key);
                    self.counters.refills += 1;
                    if !self.viewer_state(viewer).gains(list) {
                        self.scratch.entrants[list].clear();
                        return;
                    }
                }
                if self.take_best(shared, viewer, list) {
                    return;
                }
            }
        }
        // Everybody in range was seen, so what was refused is known exactly.
        self.viewer_state_mut(viewer).bound[list] = refused;
        self.counters.refills += self.serve(shared, viewer, list) as u64;
        self.refresh_open(shared, viewer, list);
    }

    /// Lets in those that were found so far and are as good as any, the nearest first; true if then the list
    /// has nothing to gain.
    fn take_best(&mut self, shared: &Shared, viewer: u32, list: usize) -> bool {
        let mut entrants = std::mem::take(&mut self.scratch.entrants[list]);
        let state = self.viewer_state(viewer);
        let best = partition(&mut entrants, |key| state.is_best(list, key.rank()));
        entrants[..best].sort_unstable_by(|a, b| b.cmp(a));
        let mut taken = 0;
        while taken < best {
            let state = self.viewer_state(viewer);
            // A list that is full by now may still gain, but only by evicting somebody: that is for later.
            if !state.gains(list) || !state.has_place(list) {
                break;
            }
            self.link(shared, viewer, list, entrants[taken]);
            taken += 1;
        }
        self.counters.refills += taken as u64;
        let is_done = !self.viewer_state(viewer).gains(list);
        if is_done {
            entrants.clear();
        } else {
            entrants.drain(..taken);
        }
        self.scratch.entrants[list] = entrants;
        is_done
    }
}
