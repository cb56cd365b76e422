//! Those who can see each other from now on find each other.
//!
//! ```text
//! sweep   a viewer that moved: cells new to it, and the arrivals of the others ──▶ entrants of its lists
//! offer   a changed target, to the viewers to which it is new and that do not sweep:
//!         first to those it may have a tie with, all together, then to those that are open to strangers
//! ```
//! A list that is full of those who go before strangers is *closed*: only ties can enter it, and those are
//! found by columns (members.rs). So who crosses a border in a crowd of full lists costs its own links, not
//! the population of the cells.

use super::{
    links::{LISTS, LinkKey, UNCAPPED},
    object::Object,
    pairs::Proposal,
    priority::class_of,
    update::Change,
    views::{SceneViews, ViewEvent},
};

/// A target that a viewer might let in: the viewer and the key in one number, which sorts twice as fast. Sorted,
/// they are grouped by viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Offer(u64);

impl Offer {
    fn new(viewer: u32, key: LinkKey) -> Self {
        Self(u64::from(viewer) << 32 | u64::from(key.bits()))
    }

    const fn viewer(self) -> u32 {
        (self.0 >> 32) as u32
    }

    const fn key(self) -> LinkKey {
        LinkKey::from_bits(self.0 as u32)
    }
}

/// Whom a target offers itself to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offering {
    /// Those to whom it is no stranger, or that lie outside caps.
    Ties,
    /// Those who take strangers.
    Open,
}

impl SceneViews {
    /// Links those who can see each other from now on.
    pub(super) fn meet(&mut self, changes: &[Change], events: &mut Vec<ViewEvent>) {
        for change in changes {
            if self.objects[change.id as usize].news.sweeps {
                self.sweep(change, events);
            }
        }
        for change in changes {
            self.offer(change, Offering::Ties, events);
        }
        let mut offers = std::mem::take(&mut self.scratch.offers);
        // Within a viewer the order does not matter: its entrants are sorted when served.
        offers.sort_unstable();
        for of_viewer in offers.chunk_by(|a, b| a.viewer() == b.viewer()) {
            for offer in of_viewer {
                let list = self.objects[offer.key().target() as usize].list();
                self.scratch.entrants[list].push(offer.key());
            }
            for list in 0..LISTS {
                self.serve(of_viewer[0].viewer(), list, events);
            }
        }
        offers.clear();
        self.scratch.offers = offers;
        for change in changes {
            self.offer(change, Offering::Open, events);
        }
        if self.ranking.mutual {
            self.commit_proposals(events);
        }
    }

    /// Whether a list of a viewer takes strangers.
    #[inline]
    pub(super) fn takes_strangers(&self, me: &Object, list: usize) -> bool {
        self.stranger_class
            .get(list)
            .is_none_or(|&class| me.gate_class(list) <= u16::from(class))
    }

    /// A viewer that moved looks into the cells that are new to it, and among the arrivals of the others. One
    /// that is new, or whose standing changed, looks everywhere; so does one that has something to gain.
    fn sweep(&mut self, change: &Change, events: &mut Vec<ViewEvent>) {
        let viewer = change.id;
        let me = &mut self.objects[viewer as usize];
        let everywhere = me.news.viewer || me.bound.contains(&super::object::UNKNOWN);
        if everywhere {
            me.bound = [0; LISTS];
        }
        let from = (!everywhere).then_some(change.from);
        let me = *me;
        self.mark_seen(viewer);
        if self.ranking.mutual {
            if me.can_gain() {
                self.propose_to_all(viewer, from);
            } else {
                self.propose(viewer, from, false);
                (0..UNCAPPED).for_each(|list| self.refresh_open(viewer, list));
            }
            return;
        }
        // What gains is filled from all around after the ties were served.
        let gains: [bool; LISTS] = std::array::from_fn(|list| me.gains(list));
        let takes_all: [bool; LISTS] =
            std::array::from_fn(|list| !gains[list] && self.takes_strangers(&me, list));
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        let cell = self.grid.cell(viewer);
        for layer in 0..self.grid.layer_count() {
            let to = self.grid.coarse(layer, cell);
            let from = from.map(|from| self.grid.coarse(layer, from));
            if from == Some(to) && !self.grid.has_arrivals(layer) {
                continue;
            }
            for cell in self.grid.around(layer, to) {
                candidates.clear();
                if from.is_some_and(|from| from.is_near(cell)) {
                    candidates.extend(self.grid.arrivals(layer, cell));
                } else {
                    for list in self.grid.lists(layer) {
                        let targets = self.grid.targets(layer, list, cell);
                        if takes_all[list] {
                            candidates.extend_from_slice(targets.ids());
                        } else {
                            targets.tied_to(&me.standing, &mut candidates);
                        }
                    }
                }
                self.consider(viewer, &candidates);
            }
        }
        self.scratch.candidates = candidates;
        for list in 0..LISTS {
            self.serve(viewer, list, events);
        }
        if gains != [false; LISTS] {
            self.mark_seen(viewer);
            for list in (0..LISTS).filter(|&list| gains[list]) {
                if let Some(&class) = self.stranger_class.get(list) {
                    // Strangers in the cells that are new were passed over.
                    self.objects[viewer as usize].refuse_class(list, class);
                }
                self.fill(viewer, list, events);
            }
        }
        (0..UNCAPPED).for_each(|list| self.refresh_open(viewer, list));
    }

    /// Collects those of the candidates that may enter the lists of a viewer; remembers the others.
    fn consider(&mut self, viewer: u32, candidates: &[u32]) {
        let Self {
            objects,
            scratch,
            counters,
            ranking,
            ..
        } = self;
        let mut me = objects[viewer as usize];
        for &target in candidates {
            let other = &objects[target as usize];
            if scratch.is_marked(target) || !ranking.allows(&me, other) {
                continue;
            }
            let (list, rank) = (other.list(), ranking.rank(&me, other));
            if me.admits(list, rank) {
                scratch.entrants[list].push(LinkKey::new(rank, target));
            } else {
                me.refuse(list, rank);
                counters.refused += 1;
            }
        }
        objects[viewer as usize].bound = me.bound;
    }

    /// A target that changed offers itself to the viewers to which it is new and that do not sweep for
    /// themselves.
    fn offer(&mut self, change: &Change, offering: Offering, events: &mut Vec<ViewEvent>) {
        let target = change.id;
        let object = self.objects[target as usize];
        let everywhere = object.news.target || object.news.standing;
        if !object.viewable
            || object.standing.hidden
            || !(everywhere || change.moved)
            || object.uncapped && offering == Offering::Open
        {
            return;
        }
        let layer = usize::from(object.layer);
        let to = self.grid.coarse(layer, self.grid.cell(target));
        let from = (!everywhere).then(|| self.grid.coarse(layer, change.from));
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
        let list = object.list();
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        for cell in self.grid.around_fine(layer, to) {
            if from.is_some_and(|from| from.is_near(self.grid.coarse(layer, cell))) {
                continue;
            }
            candidates.clear();
            match offering {
                Offering::Open => candidates.extend_from_slice(self.grid.open(list, cell)),
                Offering::Ties if object.uncapped => {
                    candidates.extend_from_slice(self.grid.viewers(cell).ids());
                }
                Offering::Ties => {
                    let viewers = self.grid.viewers(cell);
                    viewers.tied_to(&object.standing, &mut candidates);
                }
            }
            for &viewer in &candidates {
                self.offer_to(viewer, &object, target, offering, events);
            }
        }
        self.scratch.candidates = candidates;
    }

    fn offer_to(
        &mut self,
        viewer: u32,
        object: &Object,
        target: u32,
        offering: Offering,
        events: &mut Vec<ViewEvent>,
    ) {
        let me = &self.objects[viewer as usize];
        // A peer that changed sweeps or looks for itself.
        if me.news.sweeps
            || self.scratch.is_marked(viewer)
            || self.ranking.is_pair(me, object)
            || !self.ranking.allows(me, object)
        {
            return;
        }
        let (list, rank) = (object.list(), self.ranking.rank(me, object));
        let is_stranger = self
            .stranger_class
            .get(list)
            .is_some_and(|&class| class_of(rank) <= class);
        if is_stranger != (offering == Offering::Open) {
            return;
        }
        if !me.admits(list, rank) {
            self.objects[viewer as usize].refuse(list, rank);
            self.counters.refused += 1;
        } else if self.ranking.mutual {
            let proposal = Proposal::one_way(rank, viewer, target);
            self.scratch.proposals.push(proposal);
        } else if is_stranger {
            self.admit(viewer, list, LinkKey::new(rank, target), events);
        } else {
            let key = LinkKey::new(rank, target);
            self.scratch.offers.push(Offer::new(viewer, key));
        }
    }

    /// Lets the collected entrants into a list, from the top, and refuses the rest.
    pub(super) fn serve(&mut self, viewer: u32, list: usize, events: &mut Vec<ViewEvent>) -> usize {
        if self.scratch.entrants[list].is_empty() {
            return 0;
        }
        let mut entrants = std::mem::take(&mut self.scratch.entrants[list]);
        let free = self.objects[viewer as usize]
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
            let me = &self.objects[viewer as usize];
            let open = partition(part, |key| me.admits(list, key.rank()));
            part[..open].sort_unstable_by(|a, b| b.cmp(a));
            let mut served = 0;
            while served < open && self.admit(viewer, list, part[served], events) {
                served += 1;
            }
            let refused = &part[served..];
            if let Some(highest) = refused.iter().map(|key| key.rank()).max() {
                self.objects[viewer as usize].refuse(list, highest);
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
        viewer: u32,
        list: usize,
        key: LinkKey,
        events: &mut Vec<ViewEvent>,
    ) -> bool {
        if !self.objects[viewer as usize].admits(list, key.rank()) {
            return false;
        }
        self.make_place(viewer, list, events);
        self.link(viewer, list, key, events);
        true
    }

    /// Evicts the lowest of a full list.
    pub(super) fn make_place(&mut self, viewer: u32, list: usize, events: &mut Vec<ViewEvent>) {
        if !self.objects[viewer as usize].has_place(list)
            && let Some((place, lowest)) = self.links.lowest(viewer, list)
        {
            self.evict(viewer, list, place, lowest, events);
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
