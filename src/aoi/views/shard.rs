//! A share of a scene's viewers, with all that only they change: their lists, and who of them watches whom.
//!
//! ```text
//! Shared   grid, objects, ranking                    read by all while they update
//! Shard 0  lists of viewers 0 2 4 …, who of them sees a target, where they stand, events
//! Shard 1  lists of viewers 1 3 5 …, …
//! ```
//! Where sight is directed a viewer's lists depend on no other viewer's. So the viewers of a large scene are
//! divided, and their shards are updated side by side: links and looks come out the same however many shards
//! there are, and only the order of events differs, in which those of one shard follow each other. A mutual
//! pair changes two viewers at once, so such a scene has one shard.
//!
//! Also on one thread this pays in a large scene: of what a shard touches more stays in the caches.
//!
//! Invariant: while shards update, nobody writes to `Shared`.

use fixedbitset::FixedBitSet;

use super::events::{LeaveReason, ViewCounters, ViewEvent};
use super::exceptions::{ExceptionIndex, ViewException};
use super::object::{Ranking, SHUT, TrackedObject, UNKNOWN, ViewerState};
use super::scratch::{ObjectChange, UpdateScratch};
use crate::aoi::grid::{SceneGrid, ViewerIndex};
use crate::aoi::links::{LISTS, LinkKey, UNCAPPED, ViewLinks, WatchedBy};
use crate::aoi::priority::{OTHER, SCENERY, class_of};
use crate::aoi::share::Share;

/// What all shards of a scene read.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) grid: SceneGrid,
    pub(super) objects: Vec<TrackedObject>,
    pub(super) ranking: Ranking,
    pub(super) exceptions: ExceptionIndex,
    /// For each capped list, the highest class that somebody without a tie to the viewer may have.
    pub(super) stranger_class: [u8; UNCAPPED],
    /// Who has pending changes in this update.
    pub(super) changes: Vec<ObjectChange>,
}

impl Shared {
    /// Whether hiding, exceptions, layers and rules allow a link, range apart.
    #[inline]
    pub(super) fn allows(&self, viewer: &TrackedObject, target: &TrackedObject) -> bool {
        self.may_see(viewer, target)
            && (!self.ranking.is_pair(viewer, target) || self.may_see(target, viewer))
    }

    #[inline]
    fn may_see(&self, viewer: &TrackedObject, target: &TrackedObject) -> bool {
        if viewer.has_exceptions || self.ranking.filter.is_some() {
            self.may_see_by_rules(viewer, target)
        } else {
            viewer.traits.can_see(&target.traits)
        }
    }

    fn may_see_by_rules(&self, viewer: &TrackedObject, target: &TrackedObject) -> bool {
        let (a, b) = (&viewer.traits, &target.traits);
        if b.hidden {
            return false;
        }
        let exception = viewer
            .has_exceptions
            .then(|| self.exceptions.get(a.id, b.id));
        match exception.flatten() {
            Some(ViewException::Show) => true,
            Some(ViewException::Hide) => false,
            None => a.can_see(b) && self.ranking.filter.is_none_or(|allows| allows(a, b)),
        }
    }

    /// The class of an object to those without a tie to it, under the default ranking.
    pub(super) fn class_to_strangers(object: &TrackedObject) -> u8 {
        if object.traits.scenery {
            SCENERY
        } else {
            OTHER
        }
    }

    /// Whether somebody of this rank may have no tie to the viewer in whose list it would stand.
    #[inline]
    pub(super) fn is_strangers(&self, list: usize, rank: u8) -> bool {
        let class = self.stranger_class.get(list);
        class.is_some_and(|&class| class_of(rank) <= class)
    }

    /// Whether a list of a viewer takes strangers.
    #[inline]
    pub(super) fn takes_strangers(&self, state: &ViewerState, list: usize) -> bool {
        self.stranger_class
            .get(list)
            .is_none_or(|&class| state.gate_class(list) <= u16::from(class))
    }
}

/// Some of a scene's viewers.
#[derive(Clone, Debug)]
pub(super) struct ViewShard {
    pub(super) share: Share,
    pub(super) links: ViewLinks,
    pub(super) viewer_index: ViewerIndex,
    pub(super) viewer_states: Vec<ViewerState>,
    /// Places of viewers that may have begun to have something to gain.
    freed: FixedBitSet,
    /// Those that have, once the others met and were re-ranked; then those whose look it is.
    pub(super) refilling: Vec<u32>,
    /// What changed in this update.
    pub(super) events: Vec<ViewEvent>,
    pub(super) counters: ViewCounters,
    pub(super) scratch: UpdateScratch,
}

impl ViewShard {
    pub(super) fn new(share: Share, grid: &SceneGrid) -> Self {
        Self {
            share,
            links: ViewLinks::of(share),
            viewer_index: ViewerIndex::new(share, grid),
            viewer_states: Vec::new(),
            freed: FixedBitSet::new(),
            refilling: Vec::new(),
            events: Vec::new(),
            counters: ViewCounters::default(),
            scratch: UpdateScratch::default(),
        }
    }

    /// Makes room for the ids below `ids`.
    pub(super) fn grow(&mut self, ids: usize) {
        self.links.grow(ids);
        self.viewer_index.grow(ids);
        self.scratch.grow(ids);
        let len = self.share.len_of(ids);
        self.viewer_states
            .resize(len.max(self.viewer_states.len()), ViewerState::SHUT);
        self.freed.grow(len);
    }

    #[inline]
    pub(super) fn viewer_state(&self, viewer: u32) -> &ViewerState {
        &self.viewer_states[self.share.place(viewer)]
    }

    #[inline]
    pub(super) fn viewer_state_mut(&mut self, viewer: u32) -> &mut ViewerState {
        &mut self.viewer_states[self.share.place(viewer)]
    }

    /// A viewer may have begun to have something to gain, or to be one no more.
    #[inline]
    pub(super) fn set_freed(&mut self, viewer: u32, is_freed: bool) {
        self.freed.set(self.share.place(viewer), is_freed);
    }

    pub(super) fn is_any_freed(&self) -> bool {
        !self.freed.is_clear()
    }

    /// Collects the freed that have something to gain, by id.
    pub(super) fn collect_freed(&mut self) {
        let Self {
            share,
            viewer_states,
            freed,
            refilling,
            ..
        } = self;
        let gaining = freed
            .ones()
            .filter(|&place| viewer_states[place].can_gain());
        refilling.extend(gaining.map(|place| share.id(place)));
        freed.clear();
    }

    /// Recomputes the lowest class that could enter a list.
    pub(super) fn refresh_gate(&mut self, shared: &Shared, viewer: u32, list: usize) {
        let state = &mut self.viewer_states[self.share.place(viewer)];
        let has_place = self.links.list_len(viewer, list) < state.cap(list);
        if has_place && state.has_place(list) {
            return;
        }
        state.gate[list] = if has_place {
            0
        } else {
            let lowest = self.links.lowest_class(viewer, list);
            lowest.map_or(SHUT, |lowest| lowest + 1)
        };
        self.refresh_open(shared, viewer, list);
    }

    /// A list that would take a stranger is open. Strangers do not offer themselves to any other, so those
    /// count as refused. Most strangers come over a border at least a cell away, which is the second band
    /// from the end.
    pub(super) fn refresh_open(&mut self, shared: &Shared, viewer: u32, list: usize) {
        let Some(&stranger) = shared.stranger_class.get(list) else {
            return;
        };
        let state = self.viewer_state_mut(viewer);
        let takes_strangers = state.gate_class(list) <= u16::from(stranger);
        // Who waits for its first look refuses everybody until then.
        let is_open = takes_strangers && state.bound[list] != UNKNOWN;
        if !takes_strangers {
            state.refuse_class(list, stranger);
        }
        let home = shared.grid.home(viewer);
        self.viewer_index.set_open(viewer, list, home, is_open);
    }

    /// Marks a viewer and all that it sees.
    pub(super) fn mark_seen(&mut self, viewer: u32) {
        let Self { links, scratch, .. } = self;
        scratch.begin();
        scratch.mark(viewer);
        for list in 0..LISTS {
            for key in links.keys(viewer, list) {
                scratch.mark(key.target());
            }
        }
    }

    pub(super) fn link(&mut self, shared: &Shared, viewer: u32, list: usize, key: LinkKey) {
        let len = self.links.add(viewer, list, key);
        if len >= self.viewer_state(viewer).cap(list) {
            self.refresh_gate(shared, viewer, list);
        }
        self.counters.enters += 1;
        self.counters.max_list = self.counters.max_list.max(len);
        self.events.push(ViewEvent::Enter {
            viewer,
            target: key.target(),
            priority: class_of(key.rank()),
            list: list as u8,
        });
    }

    pub(super) fn evict(
        &mut self,
        shared: &Shared,
        viewer: u32,
        list: usize,
        place: usize,
        key: LinkKey,
    ) {
        self.unlink(shared, viewer, list, place, LeaveReason::Evicted);
        self.viewer_state_mut(viewer).refuse(list, key.rank());
        self.counters.evictions += 1;
    }

    pub(super) fn unlink(
        &mut self,
        shared: &Shared,
        viewer: u32,
        list: usize,
        place: usize,
        reason: LeaveReason,
    ) {
        let Some((key, twin)) = self.links.remove(viewer, list, place) else {
            return;
        };
        let target = key.target();
        let link = WatchedBy {
            viewer,
            list,
            place,
        };
        self.tell_left(link, target, reason);
        if let Some((list, place)) = twin {
            let link = WatchedBy {
                viewer: target,
                list,
                place,
            };
            self.tell_left(link, viewer, reason);
            self.refresh_gate(shared, target, list);
            self.set_freed(target, true);
        }
    }

    pub(super) fn tell_left(&mut self, link: WatchedBy, target: u32, reason: LeaveReason) {
        self.counters.leaves += 1;
        self.events.push(ViewEvent::leave(link, target, reason));
    }

    /// The bytes held, slack included, the buffers of the update apart.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.links.allocated_bytes()
            + self.viewer_index.allocated_bytes()
            + self.scratch.allocated_bytes()
            + self.viewer_states.capacity() * size_of::<ViewerState>()
            + self.freed.len() / 8
    }
}
