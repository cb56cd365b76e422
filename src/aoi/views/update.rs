//! The View step: brings the links up to date with all that was noted since the last one.
//!
//! ```text
//! settle   grid arrays follow the reported cells; changed targets are noted as arrivals
//! part     links of changed objects that cannot be any more end; if the traits of either changed, the rest is re-ranked
//! trim     lists above a lowered cap lose their lowest
//! meet     viewers that moved sweep the cells that differ; changed targets offer themselves to the others
//!          (enter.rs)
//! rerank   a share of the viewers with a full list measures distances anew (rerank.rs)
//! look     the first of the queue sweep their surroundings for whom they refused (refill.rs)
//! ```
//! With mutual sight, all that meet are served together (mutual.rs).
//!
//! All leave before anybody enters, so that two who walk together over a border never lose each other for a
//! tick.
//!
//! Each pair is met once: a viewer that sweeps for itself finds every changed target in its range, either in
//! a cell that is new to it or among the arrivals of the others; so changed targets offer themselves only to
//! viewers that do not sweep. All entrants that a sweep finds are served together, the higher rank first, then
//! the lower id.
//!
//! Settling and the queue are worked in turn; the rest, and looks, shard by shard.
//!
//! Invariant: who can gain is queued. No allocation once warm, but to sort the leaves of many who were removed.

use super::events::{LeaveReason, ViewEvent};
use super::object::{PendingChanges, UNKNOWN};
use super::scene_views::SceneViews;
use super::scratch::ObjectChange;
use super::shard::{Shared, ViewShard};
use crate::aoi::links::{LISTS, UNCAPPED, WatchedBy};
use crate::aoi::share::Share;
use crate::sim::{Inline, Spread};

impl SceneViews {
    /// The View step. Appends to `events` all that changed, shard by shard, of each viewer in the order in which
    /// it happened; the order follows from the ids and the number of shards; serves at most `looks_max` viewers of the queue. (Those in it that turn out to
    /// have nothing to gain are let go for free.) Of those that moved, at most so many sweep at once as
    /// [`set_sweeps_max`](Self::set_sweeps_max) said; the others leave whom they left and wait for a look.
    pub fn update(&mut self, looks_max: u32, events: &mut Vec<ViewEvent>) {
        self.update_with(Inline, looks_max, events);
    }

    /// The same with shards updated side by side. How many workers there are changes nothing but the time.
    pub fn update_with(
        &mut self,
        spread: impl Spread,
        looks_max: u32,
        events: &mut Vec<ViewEvent>,
    ) {
        self.tell_parted(events);
        self.settle();
        self.turn = self.turn.wrapping_add(1);
        let (shared, turn, rerank_ticks) = (&self.shared, self.turn, self.rerank_ticks);
        spread.for_each_in_turn(&mut self.shards, |shard| {
            for change in &shared.changes {
                shard.part(shared, change);
            }
            for change in &shared.changes {
                shard.trim(shared, change.id);
            }
            shard.enter(shared);
            shard.rerank(shared, turn, rerank_ticks);
            shard.collect_freed();
        });
        self.refill(spread, looks_max);
        for shard in &mut self.shards {
            events.append(&mut shard.events);
        }
        self.clear_pending();
    }

    /// Tells the leaves of removed objects, viewer by viewer in the order in which they happened.
    fn tell_parted(&mut self, events: &mut Vec<ViewEvent>) {
        self.parted.sort_by_key(|event| event.pair().0);
        self.counters.leaves += self.parted.len() as u64;
        events.append(&mut self.parted);
    }

    /// Whoever has pending changes stands where it should from here on.
    fn settle(&mut self) {
        self.changed.sort_unstable();
        self.changed.dedup();
        let mut changed = std::mem::take(&mut self.changed);
        let mut sweeps = 0;
        for id in changed.drain(..) {
            let object = &self.shared.objects[id as usize];
            if object.alive && object.pending.listed {
                let waits = sweeps >= self.sweeps_max;
                self.settle_object(id, waits);
                let is_sweep = self.shared.objects[id as usize].pending.sweeps && !waits;
                sweeps += u32::from(is_sweep);
            }
        }
        self.changed = changed;
    }

    fn settle_object(&mut self, id: u32, waits: bool) {
        let Self { shared, shards, .. } = self;
        let count = shards.len();
        let Shared { grid, objects, .. } = shared;
        let object = &mut objects[id as usize];
        let shard = &mut shards[Share::index_of(id, count)];
        let (layer, list) = (usize::from(object.layer), object.list());
        let (from, to) = (grid.home(id), grid.cell(id));
        let (pending, traits, moved) = (object.pending, object.traits, from != to);
        grid.settle(id, &traits);
        shard.viewer_index.settle(id, (from, to), &traits);
        if pending.traits {
            grid.write_ties(id, &traits);
            shard.viewer_index.write_ties(id, to, &traits);
        }
        if pending.target {
            grid.add_target(id, layer, list, &traits);
        }
        if pending.viewer {
            shard.viewer_index.add(id, to, &traits);
        }
        if object.viewable {
            grid.set_sightless(id, !object.viewer);
            if pending.target || pending.traits || moved {
                grid.note_arrival(id, layer);
            }
        }
        object.pending.sweeps = object.viewer && (pending.viewer || moved);
        let class = Shared::class_to_strangers(object);
        shared.changes.push(ObjectChange {
            id,
            from,
            moved,
            waits,
        });
        if pending.target || pending.traits {
            self.raise_stranger_class(list, class);
        }
        if pending.viewer {
            (0..UNCAPPED).for_each(|list| self.refresh_open(id, list));
        }
    }

    fn clear_pending(&mut self) {
        let Shared {
            grid,
            objects,
            changes,
            ..
        } = &mut self.shared;
        for ObjectChange { id, .. } in changes.drain(..) {
            let object = &mut objects[id as usize];
            object.pending = PendingChanges::default();
            if object.viewable {
                grid.forget_arrival(id, usize::from(object.layer));
            }
        }
    }
}

impl ViewShard {
    /// Ends or re-ranks the links of an object that moved or whose traits changed, at both ends.
    fn part(&mut self, shared: &Shared, change: &ObjectChange) {
        let ObjectChange { id, moved, .. } = *change;
        let object = &shared.objects[id as usize];
        let pending = object.pending;
        if !moved && !pending.traits {
            return;
        }
        let cell = shared.grid.cell(id);
        let mut ending = std::mem::take(&mut self.scratch.ending);
        if object.viewer && !pending.viewer && self.share.owns(id) {
            for list in 0..LISTS {
                // Targets of a capped list are all in the finest layer.
                let is_revised = pending.traits || list == UNCAPPED;
                let cells = shared.grid.cells();
                let count = self.links.choose_seen(id, list, &mut ending, |key| {
                    is_revised || !cell.is_near(cells[key.target() as usize])
                });
                if count == 0 {
                    continue;
                }
                self.links.fetch_seen(id, list, &ending[..count]);
                for &place in ending[..count].iter().rev() {
                    let place = place as usize;
                    if is_revised {
                        self.revise(shared, id, list, place, pending.traits);
                    } else {
                        self.unlink(shared, id, list, place, LeaveReason::Range);
                    }
                }
                self.refresh_gate(shared, id, list);
            }
            if pending.traits {
                self.viewer_state_mut(id).bound = [UNKNOWN; LISTS];
            }
            self.set_freed(id, true);
        }
        if object.viewable && !pending.target {
            let layer = usize::from(object.layer);
            let cells = shared.grid.cells();
            let count = if layer == 0 && !pending.traits {
                self.links.choose_watchers(id, &mut ending, |viewer| {
                    !cell.is_near(cells[viewer as usize])
                })
            } else {
                self.links.choose_watchers(id, &mut ending, |viewer| {
                    pending.traits || !shared.grid.in_range(layer, cells[viewer as usize], cell)
                })
            };
            self.links.fetch_watchers(id, &ending[..count]);
            for &place in ending[..count].iter().rev() {
                let place = place as usize;
                let (viewer, list) = if pending.traits {
                    let Some(WatchedBy {
                        viewer,
                        list,
                        place,
                    }) = self.links.watcher_at(id, place)
                    else {
                        continue;
                    };
                    if !self.revise(shared, viewer, list, place, true) {
                        continue;
                    }
                    (viewer, list)
                } else {
                    let Some(link) = self.links.remove_watcher(id, place) else {
                        continue;
                    };
                    self.tell_left(link, id, LeaveReason::Range);
                    (link.viewer, link.list)
                };
                self.refresh_gate(shared, viewer, list);
                self.set_freed(viewer, true);
            }
        }
        self.scratch.ending = ending;
    }

    /// Ends a link that cannot be any more, or ranks it anew if the traits of either changed; true if anything changed.
    fn revise(
        &mut self,
        shared: &Shared,
        viewer: u32,
        list: usize,
        place: usize,
        traits: bool,
    ) -> bool {
        let Some(key) = self.links.key_at(viewer, list, place) else {
            return false;
        };
        let target = key.target();
        let (a, b) = (
            &shared.objects[viewer as usize],
            &shared.objects[target as usize],
        );
        let reason = if !shared.grid.in_range(
            usize::from(b.layer),
            shared.grid.cell(viewer),
            shared.grid.cell(target),
        ) {
            LeaveReason::Range
        } else if traits && !shared.allows(a, b) {
            LeaveReason::Hidden
        } else {
            let rank = if traits {
                shared.ranking.rank_in_band(key.rank(), a, b)
            } else {
                key.rank()
            };
            return self.set_rank(shared, viewer, list, place, rank);
        };
        self.unlink(shared, viewer, list, place, reason);
        true
    }

    /// Ranks a link anew; true if that changes it. The viewer's gate is the caller's to refresh.
    pub(super) fn set_rank(
        &mut self,
        shared: &Shared,
        viewer: u32,
        list: usize,
        place: usize,
        rank: u8,
    ) -> bool {
        match self.links.key_at(viewer, list, place) {
            Some(key) if key.rank() != rank => {
                self.links.set_rank(viewer, list, place, rank);
                if let Some((theirs, _)) = self.links.partner_at(viewer, list, place) {
                    self.refresh_gate(shared, key.target(), theirs);
                    self.set_freed(key.target(), true);
                }
                true
            }
            _ => false,
        }
    }

    /// Evicts the lowest of a viewer's lists until no list is over its cap, if the caps changed.
    fn trim(&mut self, shared: &Shared, viewer: u32) {
        let object = &shared.objects[viewer as usize];
        if !object.viewer || !object.pending.caps || !self.share.owns(viewer) {
            return;
        }
        for list in 0..UNCAPPED {
            let len = self.links.list_len(viewer, list);
            let excess = len.saturating_sub(self.viewer_state(viewer).cap(list));
            if excess > 0 {
                let lowest = &mut self.scratch.entrants[list];
                lowest.clear();
                lowest.extend(self.links.keys(viewer, list));
                let (_, &mut last, _) = lowest.select_nth_unstable(excess - 1);
                lowest.clear();
                for place in (0..len).rev() {
                    if let Some(key) = self
                        .links
                        .key_at(viewer, list, place)
                        .filter(|&key| key <= last)
                    {
                        self.evict(shared, viewer, list, place, key);
                    }
                }
            }
            self.refresh_gate(shared, viewer, list);
        }
        self.set_freed(viewer, true);
    }
}
