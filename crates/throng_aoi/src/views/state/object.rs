//! The stored data of each object, and the ranking of a pair of objects.

use serde::{Deserialize, Serialize};
use throng_core::kinds::ObjectCategory;

use crate::priority::{
    CLASS_MAX, DistanceBands, ViewFilter, ViewPriority, ViewTraits, by_relationship,
};

/// Whether a link needs a slot in the lists of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub enum ViewLinkMode {
    /// Each viewer has its own top list, under its own cap; the number of viewers of an object is not capped. So an
    /// eviction frees no other viewer's slot, and evictions do not cascade.
    #[default]
    Directed,
    /// Between two objects that are both viewers and viewable, of kinds that are seen near, A sees B when B sees A: a pair
    /// is linked only if both may see each other and both ends accept, and its class is the higher of the
    /// two. Links with all other objects are as in `Directed`. So are the links from and to a viewer whose links depend on
    /// exact distances: one with a radius of its own, and every viewer of a scene with rules by distance.
    ///
    /// Side effect: in a crowd of full equals an arrival sees nothing until another object leaves (closed
    /// cliques), which is why this is not the default.
    Mutual,
}

/// The limit of ids: they must be lower, so that two of them and a rank fit in eight bytes.
pub const IDS_MAX: u32 = 1 << 23;

/// The number of lists of a viewer: one for each [`ObjectCategory`], and [`UNCAPPED`].
pub const LIST_COUNT: usize = 4;

/// The list of targets outside caps (`ViewRange::Far`, `ViewRange::Scene`).
pub const UNCAPPED: usize = 3;

const _: () = assert!(ObjectCategory::ALL.len() == UNCAPPED && UNCAPPED < LIST_COUNT);

/// No cell, no slot, no row.
pub(crate) const NONE: u32 = u32::MAX;

/// The cell of an object, its slot as a target and its row as a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellLocation {
    pub(crate) cell: u32,
    pub(crate) slot: u32,
    pub(crate) row: u32,
}

impl CellLocation {
    pub(crate) const NONE: Self = Self {
        cell: NONE,
        slot: NONE,
        row: NONE,
    };
}

/// The stored data of each object, one cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrackedObject {
    pub(crate) traits: ViewTraits,
    pub(crate) caps: [u16; UNCAPPED],
    /// The grid layer in which it is a target.
    pub(crate) layer: u8,
    /// Whether it is outside caps.
    pub(crate) uncapped: bool,
    pub(crate) alive: bool,
    pub(crate) viewable: bool,
    pub(crate) viewer: bool,
    /// Whether any target is shown to it or hidden from it against the rules.
    pub(crate) has_exceptions: bool,
    /// Whether it is a viewer with a row in its cell: unless its links depend on exact distances.
    pub(crate) has_row: bool,
    /// The changes since the last update.
    pub(crate) pending: PendingChanges,
}

/// The changes of an object since the last update.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PendingChanges {
    /// It has no slot yet.
    pub(crate) target: bool,
    /// It has no row yet.
    pub(crate) viewer: bool,
    pub(crate) traits: bool,
    pub(crate) caps: bool,
}

impl TrackedObject {
    pub(crate) const ABSENT: Self = Self {
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
            class: ObjectCategory::Thing,
            hidden: true,
            scenery: false,
        },
        caps: [0; UNCAPPED],
        layer: 0,
        uncapped: false,
        alive: false,
        viewable: false,
        viewer: false,
        has_exceptions: false,
        has_row: false,
        pending: PendingChanges {
            target: false,
            viewer: false,
            traits: false,
            caps: false,
        },
    };

    /// The list of its viewers that it belongs to.
    pub(crate) const fn list(&self) -> usize {
        if self.uncapped {
            UNCAPPED
        } else {
            self.traits.class.index()
        }
    }

    /// Whether it sees the ordinary layer and has no exceptions.
    pub(crate) const fn has_default_vision(&self) -> bool {
        self.traits.sees & ViewTraits::ORDINARY_LAYER != 0 && !self.has_exceptions
    }

    /// Whether it takes part in mutual pairs, in mutual mode.
    pub(crate) const fn is_peer(&self) -> bool {
        self.has_row && self.viewable && !self.uncapped
    }

    /// Whether it is a viewer whose links depend on exact distances.
    pub(crate) const fn is_exact(&self) -> bool {
        self.viewer && !self.has_row
    }
}

const _: () = assert!(size_of::<TrackedObject>() <= 64);

/// The ranking of pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranking {
    /// The embedder's filter; `None` allows every pair that layers allow.
    pub(crate) filter: Option<ViewFilter>,
    /// The embedder's priority; `None` for [`by_relationship`], for which queries by relation exist.
    pub(crate) priority: Option<ViewPriority>,
    pub(crate) bands: DistanceBands,
    pub(crate) mutual: bool,
}

impl Ranking {
    /// Whether two objects see either each other or not at all.
    #[inline]
    pub(crate) const fn is_pair(&self, a: &TrackedObject, b: &TrackedObject) -> bool {
        self.mutual && a.is_peer() && b.is_peer()
    }

    /// The class of a pair.
    #[inline]
    pub(crate) fn class(&self, viewer: &TrackedObject, target: &TrackedObject) -> u8 {
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
}
