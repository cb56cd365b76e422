//! Viewers that have something to gain look around, the first in the queue first.
//!
//! A look sweeps the surroundings of a viewer, from its own cell outwards, until it has nothing to gain. A
//! candidate of the highest rank that may have been refused takes a free place as soon as it is found: nobody
//! better can follow. So in a crowd of equals a look ends after a few steps.

use super::{
    links::{LISTS, LinkKey, UNCAPPED},
    meet::partition,
    priority::BANDS,
    views::{SceneViews, ViewEvent},
};

impl SceneViews {
    /// Queues the viewers that began to have something to gain, by id.
    fn enqueue_freed(&mut self) {
        for viewer in self.freed.ones() {
            if self.objects[viewer].can_gain() {
                self.queue.push(viewer as u32);
            }
        }
        self.freed.clear();
    }

    /// Queues who can gain, and serves the queue from its head. Looks may free others only where sight is
    /// mutual.
    pub(super) fn look(&mut self, looks_max: u32, events: &mut Vec<ViewEvent>) {
        let mut looks = 0;
        loop {
            self.enqueue_freed();
            while let Some(viewer) = self.queue.first() {
                if self.objects[viewer as usize].can_gain() {
                    if looks == looks_max {
                        break;
                    }
                    looks += 1;
                    self.look_around(viewer, events);
                }
                self.queue.pop();
            }
            if self.freed.is_clear() {
                break;
            }
        }
        self.counters.looks += u64::from(looks);
    }

    fn look_around(&mut self, viewer: u32, events: &mut Vec<ViewEvent>) {
        self.mark_seen(viewer);
        if self.ranking.mutual {
            let enters = self.counters.enters;
            let cell = self.grid.cell(viewer);
            self.propose_to_all(viewer, Some(cell));
            self.commit_proposals(events);
            self.counters.refills += self.counters.enters - enters;
            return;
        }
        for list in 0..LISTS {
            self.fill(viewer, list, events);
        }
    }

    /// Sweeps for those that may enter a list, unless it has nothing to gain. Whom the viewer sees is marked.
    pub(super) fn fill(&mut self, viewer: u32, list: usize, events: &mut Vec<ViewEvent>) {
        if !self.objects[viewer as usize].gains(list) {
            return;
        }
        let cell = self.grid.cell(viewer);
        let mut refused = 0;
        // Only targets outside caps live in the coarser layers.
        let layers = if list == UNCAPPED {
            self.grid.layer_count()
        } else {
            1
        };
        for layer in 0..layers {
            let around = self.grid.around(layer, self.grid.coarse(layer, cell));
            for (nth, cell) in around.enumerate() {
                // Of its own cell it takes the nearest first, then of the next ones.
                let nearness = if nth == 0 { BANDS - 1 } else { BANDS - 2 };
                let targets = self.grid.targets(layer, list, cell).ids();
                let count = self.scratch.choose_unmarked(targets);
                for place in 0..count {
                    let target = self.scratch.candidates[place];
                    let other = &self.objects[target as usize];
                    let me = &self.objects[viewer as usize];
                    if !self.ranking.allows(me, other) {
                        continue;
                    }
                    let rank = self.ranking.rank(me, other);
                    if !me.may_gain(list, rank) {
                        refused = refused.max(u16::from(rank) + 1);
                        continue;
                    }
                    let key = LinkKey::new(rank, target);
                    if rank % BANDS < nearness || !me.is_best(list, rank) {
                        self.scratch.entrants[list].push(key);
                        continue;
                    }
                    self.link(viewer, list, key, events);
                    self.counters.refills += 1;
                    if !self.objects[viewer as usize].gains(list) {
                        self.scratch.entrants[list].clear();
                        return;
                    }
                }
                if self.take_best(viewer, list, events) {
                    return;
                }
            }
        }
        // Everybody in range was seen, so what was refused is known exactly.
        self.objects[viewer as usize].bound[list] = refused;
        self.counters.refills += self.serve(viewer, list, events) as u64;
        self.refresh_open(viewer, list);
    }

    /// Lets in those that were found so far and are as good as any, the nearest first; true if then the list
    /// has nothing to gain.
    fn take_best(&mut self, viewer: u32, list: usize, events: &mut Vec<ViewEvent>) -> bool {
        let mut entrants = std::mem::take(&mut self.scratch.entrants[list]);
        let me = &self.objects[viewer as usize];
        let best = partition(&mut entrants, |key| me.is_best(list, key.rank()));
        entrants[..best].sort_unstable_by(|a, b| b.cmp(a));
        let mut taken = 0;
        while taken < best {
            let me = &self.objects[viewer as usize];
            // A list that is full by now may still gain, but only by evicting somebody: that is for later.
            if !me.gains(list) || !me.has_place(list) {
                break;
            }
            self.link(viewer, list, entrants[taken], events);
            taken += 1;
        }
        self.counters.refills += taken as u64;
        let is_done = !self.objects[viewer as usize].gains(list);
        if is_done {
            entrants.clear();
        } else {
            entrants.drain(..taken);
        }
        self.scratch.entrants[list] = entrants;
        is_done
    }
}
