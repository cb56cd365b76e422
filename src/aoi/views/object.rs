//! What the views store of each object, and how a pair of objects is ranked.

use glam::Vec2;
use serde::{Deserialize, Serialize};

use crate::aoi::links::{LISTS, UNCAPPED};
use crate::aoi::priority::{
    BANDS, Bands, CLASS_MAX, ViewFilter, ViewPriority, ViewTraits, by_relationship, class_of,
    rank_of,
};
use crate::world::KindClass;

/// Whose lists a link must find a place in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub enum Sight {
    /// Each viewer has its own top list, under its own cap; watchers of an object are not capped. So an
    /// eviction frees nobody else's place, and evictions do not cascade.
    #[default]
    Directed,
    /// Of two that are both viewers and viewable, of kinds that are seen near, A sees B when B sees A: a pair
    /// is linked only if both may see each other and both ends accept, and its class is the higher of the
    /// two. Links with all others are as in `Directed`.
    ///
    /// A side effect: in a crowd of full equals a newcomer sees nobody until somebody leaves (closed
    /// cliques), which is why this is not the default.
    Mutual,
}

/// `bound` of a list of which anything may have been refused: above every rank.
pub(super) const UNKNOWN: u16 = 256;

/// `gate` of a list that nobody can enter: above every class.
pub(super) const SHUT: u8 = CLASS_MAX + 2;

/// What is known of each object to all shards, a cache line.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackedObject {
    pub(super) traits: ViewTraits,
    pub(super) position: Vec2,
    /// The grid layer in which it is a target.
    pub(super) layer: u8,
    /// Whether it lies outside caps.
    pub(super) uncapped: bool,
    pub(super) alive: bool,
    pub(super) viewable: bool,
    pub(super) viewer: bool,
    /// Whether somebody is shown to it, or hidden from it, against the rules.
    pub(super) has_exceptions: bool,
    /// What changed since the last update.
    pub(super) pending: PendingChanges,
}

/// What changed about an object since the last update.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PendingChanges {
    /// It is in the list of changed objects.
    pub(super) listed: bool,
    /// It is not in the grid yet as a target.
    pub(super) target: bool,
    /// It is not in the grid yet as a viewer.
    pub(super) viewer: bool,
    pub(super) traits: bool,
    pub(super) caps: bool,
    /// Set while updating: it is a viewer that sweeps for itself, or will look, so others need not offer
    /// themselves to it.
    pub(super) sweeps: bool,
}

impl TrackedObject {
    pub(super) const ABSENT: Self = Self {
        traits: ViewTraits {
            id: 0,
            owner: 0,
            target: 0,
            tag: [0; 2],
            team: 0,
            party: 0,
            guild: 0,
            layers: 0,
            sees: 0,
            class: KindClass::Thing,
            hidden: true,
            scenery: false,
        },
        position: Vec2::ZERO,
        layer: 0,
        uncapped: false,
        alive: false,
        viewable: false,
        viewer: false,
        has_exceptions: false,
        pending: PendingChanges {
            listed: false,
            target: false,
            viewer: false,
            traits: false,
            caps: false,
            sweeps: false,
        },
    };

    /// The list of its viewers in which it stands.
    pub(super) const fn list(&self) -> usize {
        if self.uncapped {
            UNCAPPED
        } else {
            self.traits.class.index()
        }
    }

    /// Whether it takes part in mutual pairs, where there are any.
    pub(super) const fn is_peer(&self) -> bool {
        self.viewer && self.viewable && !self.uncapped
    }
}

const _: () = assert!(size_of::<TrackedObject>() <= 64);

/// What a viewer's lists hold and may have refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewerState {
    /// For each list, the lowest class that could enter now; 0 while it has a free place.
    pub(super) gate: [u8; LISTS],
    /// For each list, one above the highest rank that may have been refused; 0 for none. Its class is exact,
    /// its band what was known last.
    pub(super) bound: [u16; LISTS],
    pub(super) caps: [u16; UNCAPPED],
}

impl ViewerState {
    /// Of somebody who is no viewer.
    pub(super) const SHUT: Self = Self {
        gate: [SHUT; LISTS],
        bound: [0; LISTS],
        caps: [0; UNCAPPED],
    };

    /// How many a list may hold.
    pub(super) fn cap(&self, list: usize) -> usize {
        self.caps
            .get(list)
            .map_or(usize::MAX, |&cap| usize::from(cap))
    }

    /// Whether a list has a free place.
    #[inline]
    pub(super) const fn has_place(&self, list: usize) -> bool {
        self.gate[list] == 0
    }

    /// The lowest class that could enter a list now; bands decide only who is preferred.
    #[inline]
    pub(super) const fn gate_class(&self, list: usize) -> u16 {
        self.gate[list] as u16
    }

    /// Whether somebody who was refused by a list might be let in now.
    #[inline]
    pub(super) const fn gains(&self, list: usize) -> bool {
        self.bound[list] > 0 && self.bound_class(list) >= self.gate_class(list)
    }

    /// Whether somebody who was refused might be let in now.
    #[inline]
    pub(super) fn can_gain(&self) -> bool {
        (0..LISTS).any(|list| self.gains(list))
    }

    /// Whether anybody at all may have been refused, by a list that somebody could enter.
    pub(super) fn knows_nothing(&self) -> bool {
        (0..LISTS).any(|list| self.bound[list] == UNKNOWN && self.gains(list))
    }

    /// The highest class that a list may have refused, 0 also for none.
    #[inline]
    pub(super) const fn bound_class(&self, list: usize) -> u16 {
        self.bound[list].saturating_sub(1) / BANDS as u16
    }

    /// Whether this rank may enter a list now. While a viewer has something to gain, those of a class below
    /// that which it may have refused wait with it: they would only be evicted by the coming look.
    #[inline]
    pub(super) fn admits(&self, list: usize, rank: u8) -> bool {
        u16::from(class_of(rank)) >= self.gate_class(list).max(self.bound_class(list))
    }

    /// Whether this rank may enter a list now, or would once those above it did.
    #[inline]
    pub(super) const fn may_gain(&self, list: usize, rank: u8) -> bool {
        class_of(rank) as u16 >= self.gate_class(list)
    }

    /// Whether there is a place for somebody of this rank and nobody above it can have been refused.
    #[inline]
    pub(super) const fn is_best(&self, list: usize, rank: u8) -> bool {
        self.has_place(list) && rank as u16 + 1 >= self.bound[list]
    }

    /// Remembers that somebody of this rank was refused.
    pub(super) fn refuse(&mut self, list: usize, rank: u8) {
        self.bound[list] = self.bound[list].max(u16::from(rank) + 1);
    }

    /// Remembers that somebody of this class may have been refused.
    pub(super) fn refuse_class(&mut self, list: usize, class: u8) {
        self.refuse(list, rank_of(class, 1));
    }
}

/// What ranks a pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranking {
    /// An embedder's own; `None` for all whom layers let see each other.
    pub(super) filter: Option<ViewFilter>,
    /// An embedder's own; `None` for [`by_relationship`], of which is known whom it prefers.
    pub(super) priority: Option<ViewPriority>,
    pub(super) bands: Bands,
    pub(super) mutual: bool,
}

impl Ranking {
    /// Whether two can only see each other, or not at all.
    #[inline]
    pub(super) const fn is_pair(&self, a: &TrackedObject, b: &TrackedObject) -> bool {
        self.mutual && a.is_peer() && b.is_peer()
    }

    /// The class of a pair.
    #[inline]
    pub(super) fn class(&self, viewer: &TrackedObject, target: &TrackedObject) -> u8 {
        let of = |a: &TrackedObject, b: &TrackedObject| match self.priority {
            Some(priority) => priority(&a.traits, &b.traits),
            None => by_relationship(&a.traits, &b.traits),
        };
        let class = of(viewer, target);
        let class = if self.is_pair(viewer, target) {
            class.max(of(target, viewer))
        } else {
            class
        };
        class.min(CLASS_MAX)
    }

    /// The rank of a pair that is not linked. Outside caps distance does not count.
    #[inline]
    pub(super) fn rank(&self, viewer: &TrackedObject, target: &TrackedObject) -> u8 {
        let nearness = if target.uncapped {
            0
        } else {
            self.bands.nearness(viewer.position, target.position)
        };
        rank_of(self.class(viewer, target), nearness)
    }

    /// The rank of a linked pair whose rank was `before`, once traits changed; its band stays.
    pub(super) fn rank_in_band(
        &self,
        before: u8,
        viewer: &TrackedObject,
        target: &TrackedObject,
    ) -> u8 {
        rank_of(self.class(viewer, target), before % BANDS)
    }

    /// The rank of a linked pair whose rank was `before`, once somebody moved; its class stays.
    pub(super) fn rank_in_class(
        &self,
        before: u8,
        viewer: &TrackedObject,
        target: &TrackedObject,
    ) -> u8 {
        let (a, b) = (viewer.position, target.position);
        before / BANDS * BANDS + self.bands.nearness_of_member(before % BANDS, a, b)
    }
}
