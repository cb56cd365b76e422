//! Events and counters of an update.

#[cfg(doc)]
use super::state::object::UNCAPPED;
#[cfg(doc)]
use throng_core::kinds::ObjectCategory;

/// One change of an update. Events of one pair always alternate, an enter first. In one update a pair has at
/// most one event, unless an id was reused, an object began or ceased to be a viewer, a viewer's radius or the rules by distance
/// ended, or one of the events is an eviction (a scan may find that the target came nearer meanwhile).
///
/// Events of one viewer are in the order in which they happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ViewEvent {
    /// A viewer sees a target from now on.
    Enter {
        /// The id of the object that sees.
        viewer: u32,
        /// The id of the object that is seen.
        target: u32,
        /// The class of the pair; a higher one wins.
        priority: u8,
        /// The list of the viewer in which the target is now, by [`ObjectCategory::index`], or [`UNCAPPED`].
        list: u8,
    },
    /// A viewer no longer sees a target.
    Leave {
        /// The id of the object that saw.
        viewer: u32,
        /// The id of the object that was seen.
        target: u32,
        /// Why the link ended.
        reason: ViewLeaveReason,
        /// The list of the viewer in which the target was.
        list: u8,
    },
}

impl ViewEvent {
    /// The viewer and the target.
    #[must_use]
    #[inline]
    pub const fn pair(&self) -> (u32, u32) {
        match *self {
            Self::Enter { viewer, target, .. } | Self::Leave { viewer, target, .. } => {
                (viewer, target)
            }
        }
    }
}

const _: () = assert!(size_of::<ViewEvent>() == 12);

/// Why a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ViewLeaveReason {
    /// One of the two moved out of range, or the viewer's radius shrank.
    Range,
    /// The viewer's list was full and a target of a higher class came, or of the same class and nearer, or its
    /// cap was lowered.
    Evicted,
    /// One of the two was despawned, or ceased to be a viewer, or, in a pair that is mutual from now on,
    /// became one.
    Despawn,
    /// One of the two went to another scene.
    Scene,
    /// The target was hidden, from every viewer or from this one, is in no layer that the viewer sees, or is excluded by the
    /// rules of the scene.
    Hidden,
}

/// Counters since the scene opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewCounters {
    /// Links that began.
    pub enters: u64,
    /// Links that ended, evictions included.
    pub leaves: u64,
    /// Links that ended for a target of a higher class, or of the same class and nearer, or by a lowered cap.
    pub evictions: u64,
    /// Links that began in a slot that had become free, or by a viewer that arrived or moved.
    pub refills: u64,
    /// Attempts of targets that go before unrelated ones to enter a list without a slot for them. Targets that a list skips
    /// because it takes none of their class are not counted.
    pub full_list_attempts: u64,
    /// Scans of viewers from the queue.
    pub scans: u64,
    /// Scans of viewers whose links depend on exact distances.
    pub exact_scans: u64,
    /// Updates in which such a viewer was due for a scan and was deferred by
    /// [`set_exact_scans_max`](super::SceneViews::set_exact_scans_max), summed over viewers.
    pub exact_scans_deferred: u64,
    /// The longest list so far (one of the lists of one viewer).
    pub longest_list: usize,
}

impl ViewCounters {
    /// The sum of two counters.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let longer = self.longest_list >= other.longest_list;
        Self {
            enters: self.enters + other.enters,
            leaves: self.leaves + other.leaves,
            evictions: self.evictions + other.evictions,
            refills: self.refills + other.refills,
            full_list_attempts: self.full_list_attempts + other.full_list_attempts,
            scans: self.scans + other.scans,
            exact_scans: self.exact_scans + other.exact_scans,
            exact_scans_deferred: self.exact_scans_deferred + other.exact_scans_deferred,
            longest_list: if longer {
                self.longest_list
            } else {
                other.longest_list
            },
        }
    }
}
