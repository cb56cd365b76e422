//! Those who can see each other from now on find each other.
//!
//! ```text
//! sweep   a viewer that moved: cells new to it, and the arrivals of the others ──▶ entrants of its lists;
//!         beyond so many an update it waits for a look instead, and refuses everybody until then
//! offer   a changed target, to the viewers to which it is new and that do not sweep:
//!         first to those it may have a tie with, all together, then to those that are open to strangers
//! ```
//! A list that is full of those who go before strangers is *closed*: only ties can enter it, and those are
//! found by columns (members.rs). So who crosses a border in a crowd of full lists costs its own links, not
//! the population of the cells.

use super::object::{TrackedObject, UNKNOWN};
use super::scratch::{MutualProposal, ObjectChange, ViewOffer};
use super::shard::{Shared, ViewShard};
use crate::aoi::grid::TieQuery;
use crate::aoi::links::{LISTS, LinkKey, UNCAPPED};

/// Whom a target offers itself to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offering {
    /// Those to whom it is no stranger, or that lie outside caps.
    TieQuery,
    /// Those who take strangers.
    Open,
}

impl ViewShard {
    /// Links those who can see each other from now on.
    pub(super) fn enter(&mut self, shared: &Shared) {
        let changes = &shared.changes;
        for change in changes {
            if !self.share.owns(change.id) || !shared.objects[change.id as usize].pending.sweeps {
                continue;
            }
            if change.waits {
                self.viewer_state_mut(change.id).bound = [UNKNOWN; LISTS];
                (0..UNCAPPED).for_each(|list| self.refresh_open(shared, change.id, list));
                self.set_freed(change.id, true);
            } else {
                self.sweep(shared, change);
            }
        }
        for change in changes {
            self.offer(shared, change, Offering::TieQuery);
        }
        let mut offers = std::mem::take(&mut self.scratch.offers);
        // Within a viewer the order does not matter: its entrants are sorted when served.
        offers.sort_unstable();
        for of_viewer in offers.chunk_by(|a, b| a.viewer() == b.viewer()) {
            for offer in of_viewer {
                let list = shared.objects[offer.key().target() as usize].list();
                self.scratch.entrants[list].push(offer.key());
            }
            for list in 0..LISTS {
                self.serve(shared, of_viewer[0].viewer(), list);
            }
        }
        offers.clear();
        self.scratch.offers = offers;
        for change in changes {
            self.offer(shared, change, Offering::Open);
        }
        if shared.ranking.mutual {
            self.commit_proposals(shared);
        }
    }

    /// A viewer that moved looks into the cells that are new to it, and among the arrivals of the others. One
    /// that is new, or whose traits changed, looks everywhere; so does one that has something to gain.
    fn sweep(&mut self, shared: &Shared, change: &ObjectChange) {
        let viewer = change.id;
        let me = shared.objects[viewer as usize];
        let state = self.viewer_state_mut(viewer);
        let everywhere = me.pending.viewer || state.knows_nothing();
        if everywhere {
            state.bound = [0; LISTS];
        }
        let state = *state;
        let from = (!everywhere).then_some(change.from);
        self.mark_seen(viewer);
        if shared.ranking.mutual {
            if state.can_gain() {
                self.propose_to_all(shared, viewer, from);
            } else {
                self.propose(shared, viewer, from, false);
                (0..UNCAPPED).for_each(|list| self.refresh_open(shared, viewer, list));
            }
            return;
        }
        // What gains is filled from all around after the ties were served.
        let gains: [bool; LISTS] = std::array::from_fn(|list| state.gains(list));
        let takes_all: [bool; LISTS] =
            std::array::from_fn(|list| !gains[list] && shared.takes_strangers(&state, list));
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        let (cell, ties) = (shared.grid.cell(viewer), TieQuery::of(&me.traits));
        for layer in 0..shared.grid.layer_count() {
            let to = shared.grid.coarse(layer, cell);
            let from = from.map(|from| shared.grid.coarse(layer, from));
            if from == Some(to) && !shared.grid.has_arrivals(layer) {
                continue;
            }
            for cell in shared.grid.around(layer, to) {
                candidates.clear();
                if from.is_some_and(|from| from.is_near(cell)) {
                    candidates.extend(shared.grid.arrivals(layer, cell));
                } else {
                    for list in shared.grid.lists(layer) {
                        let targets = shared.grid.targets(layer, list, cell);
                        if takes_all[list] {
                            candidates.extend_from_slice(targets.ids());
                        } else {
                            targets.tied_to(&ties, &mut candidates);
                        }
                    }
                }
                self.consider(shared, viewer, &candidates);
            }
        }
        self.scratch.candidates = candidates;
        for list in 0..LISTS {
            self.serve(shared, viewer, list);
        }
        if gains != [false; LISTS] {
            self.mark_seen(viewer);
            for list in (0..LISTS).filter(|&list| gains[list]) {
                if let Some(&class) = shared.stranger_class.get(list) {
                    // Strangers in the cells that are new were passed over.
                    self.viewer_state_mut(viewer).refuse_class(list, class);
                }
                self.fill(shared, viewer, list);
            }
        }
        (0..UNCAPPED).for_each(|list| self.refresh_open(shared, viewer, list));
    }

    /// Collects those of the candidates that may enter the lists of a viewer; remembers the others.
    fn consider(&mut self, shared: &Shared, viewer: u32, candidates: &[u32]) {
        let (me, mut state) = (&shared.objects[viewer as usize], *self.viewer_state(viewer));
        let Self {
            scratch, counters, ..
        } = self;
        for &target in candidates {
            let other = &shared.objects[target as usize];
            if scratch.is_marked(target) || !shared.allows(me, other) {
                continue;
            }
            let (list, rank) = (other.list(), shared.ranking.rank(me, other));
            if state.admits(list, rank) {
                scratch.entrants[list].push(LinkKey::new(rank, target));
            } else {
                state.refuse(list, rank);
                counters.refused += 1;
            }
        }
        self.viewer_state_mut(viewer).bound = state.bound;
    }

    /// A target that changed offers itself to the viewers to which it is new and that do not sweep for
    /// themselves.
    fn offer(&mut self, shared: &Shared, change: &ObjectChange, offering: Offering) {
        let target = change.id;
        let object = &shared.objects[target as usize];
        let everywhere = object.pending.target || object.pending.traits;
        if !object.viewable
            || object.traits.hidden
            || !(everywhere || change.moved)
            || object.uncapped && offering == Offering::Open
        {
            return;
        }
        let layer = usize::from(object.layer);
        let to = shared.grid.coarse(layer, shared.grid.cell(target));
        let from = (!everywhere).then(|| shared.grid.coarse(layer, change.from));
        if from == Some(to) {
            return;
        }
        self.scratch.begin();
        self.scratch.mark(target);
        if everywhere {
            let Self { links, scratch, .. } = self;
            links
                .watching(target)
                .for_each(|viewer| scratch.mark(viewer));
        }
        let (list, ties) = (object.list(), TieQuery::of(&object.traits));
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        for cell in shared.grid.around_fine(layer, to) {
            if from.is_some_and(|from| from.is_near(shared.grid.coarse(layer, cell))) {
                continue;
            }
            candidates.clear();
            match offering {
                Offering::Open => candidates.extend_from_slice(self.viewer_index.open(list, cell)),
                Offering::TieQuery if object.uncapped => {
                    candidates.extend_from_slice(self.viewer_index.viewers(cell).ids());
                }
                Offering::TieQuery => {
                    let viewers = self.viewer_index.viewers(cell);
                    viewers.tied_to(&ties, &mut candidates);
                }
            }
            for &viewer in &candidates {
                self.offer_to(shared, viewer, object, target, offering);
            }
        }
        self.scratch.candidates = candidates;
    }

    fn offer_to(
        &mut self,
        shared: &Shared,
        viewer: u32,
        object: &TrackedObject,
        target: u32,
        offering: Offering,
    ) {
        let me = &shared.objects[viewer as usize];
        // A peer that changed sweeps or looks for itself.
        if me.pending.sweeps
            || self.scratch.is_marked(viewer)
            || shared.ranking.is_pair(me, object)
            || !shared.allows(me, object)
        {
            return;
        }
        let (list, rank) = (object.list(), shared.ranking.rank(me, object));
        let is_stranger = shared.is_strangers(list, rank);
        if is_stranger != (offering == Offering::Open) {
            return;
        }
        let state = self.viewer_state_mut(viewer);
        if !state.admits(list, rank) {
            state.refuse(list, rank);
            self.counters.refused += 1;
        } else if shared.ranking.mutual {
            let proposal = MutualProposal::one_way(rank, viewer, target);
            self.scratch.proposals.push(proposal);
        } else if is_stranger {
            self.admit(shared, viewer, list, LinkKey::new(rank, target));
        } else {
            let key = LinkKey::new(rank, target);
            self.scratch.offers.push(ViewOffer::new(viewer, key));
        }
    }

    /// Lets the collected entrants into a list, from the top, and refuses the rest.
    pub(super) fn serve(&mut self, shared: &Shared, viewer: u32, list: usize) -> usize {
        if self.scratch.entrants[list].is_empty() {
            return 0;
        }
        let mut entrants = std::mem::take(&mut self.scratch.entrants[list]);
        let free = self
            .viewer_state(viewer)
            .cap(list)
            .saturating_sub(self.links.list_len(viewer, list));
        // The best take the free places; of a crowd that is often all that need sorting.
        let split = free.min(entrants.len());
        if split > 0 && split < entrants.len() {
            entrants.select_nth_unstable_by(split - 1, |a, b| b.cmp(a));
        }
        let mut entered = 0;
        let mut start = 0;
        for end in [split, entrants.len()] {
            // What cannot enter even before the sorted ones did needs no sorting either.
            let part = &mut entrants[start..end];
            let state = self.viewer_state(viewer);
            let open = partition(part, |key| state.admits(list, key.rank()));
            part[..open].sort_unstable_by(|a, b| b.cmp(a));
            let mut served = 0;
            while served < open && self.admit(shared, viewer, list, part[served]) {
                served += 1;
            }
            let refused = &part[served..];
            if let Some(highest) = refused.iter().map(|key| key.rank()).max() {
                self.viewer_state_mut(viewer).refuse(list, highest);
                self.counters.refused += refused.len() as u64;
            }
            entered += served;
            start = end;
        }
        entrants.clear();
        self.scratch.entrants[list] = entrants;
        entered
    }

    /// Links an entrant if there is a place for it, or one of a lower class to evict; false if not.
    pub(super) fn admit(
        &mut self,
        shared: &Shared,
        viewer: u32,
        list: usize,
        key: LinkKey,
    ) -> bool {
        if !self.viewer_state(viewer).admits(list, key.rank()) {
            return false;
        }
        self.make_place(shared, viewer, list);
        self.link(shared, viewer, list, key);
        true
    }

    /// Evicts the lowest of a full list.
    pub(super) fn make_place(&mut self, shared: &Shared, viewer: u32, list: usize) {
        if !self.viewer_state(viewer).has_place(list)
            && let Some((place, lowest)) = self.links.lowest(viewer, list)
        {
            self.evict(shared, viewer, list, place, lowest);
        }
    }
}

/// Moves the keys that hold to the front and returns how many they are.
pub(super) fn partition(keys: &mut [LinkKey], holds: impl Fn(LinkKey) -> bool) -> usize {
    let mut count = 0;
    for place in 0..keys.len() {
        if holds(keys[place]) {
            keys.swap(place, count);
            count += 1;
        }
    }
    count
}
