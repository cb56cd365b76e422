//! What an update tells and counts.

#[cfg(doc)]
use super::state::object::UNCAPPED;
#[cfg(doc)]
use throng_core::kinds::ObjectCategory;

/// What one update changed. Events of one pair always alternate, an enter first. In one update a pair has at
/// most one event, unless an id was reused, a viewer ceased or began to be one, or one of the events is an
/// eviction (a look may find that somebody came nearer meanwhile).
///
/// Those of one viewer stand in the order in which they happened.
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
    /// A viewer sees a target no more.
    Leave {
        /// The id of the object that saw.
        viewer: u32,
        /// The id of the object that was seen.
        target: u32,
        /// Why the link ended.
        reason: ViewLeaveReason,
        /// The list of the viewer in which the target stood.
        list: u8,
    },
}

impl ViewEvent {
    /// Who sees or saw, and whom.
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
    /// One of the two moved out of range.
    Range,
    /// The viewer's list was full and somebody of a higher class came, or of the same class and nearer, or its
    /// cap was lowered.
    Evicted,
    /// One of the two was despawned, or ceased to be a viewer, or, of a pair that is mutual from now on,
    /// began to be one.
    Despawn,
    /// One of the two went to another scene.
    Scene,
    /// The target was hidden, from everybody or from this viewer, is in no layer that the viewer sees, or is one that the
    /// rules of the scene do not let it see.
    Hidden,
}

/// What was counted since the scene opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewCounters {
    /// Links made: as often as a viewer began to see a target.
    pub enters: u64,
    /// Links ended, evictions included.
    pub leaves: u64,
    /// Links ended for somebody of a higher class, or of the same class and nearer, or by a lowered cap.
    pub evictions: u64,
    /// Links made for a place that had become free, or by a viewer that came or moved.
    pub refills: u64,
    /// Attempts of somebody who goes before strangers to enter a list that had no place for it. Whom a list passes over without
    /// an attempt, because it takes none of that class, is not among them.
    pub full_list_attempts: u64,
    /// Looks of viewers that waited in the queue.
    pub scans: u64,
    /// The longest list that there ever was (one of the lists of one viewer).
    pub longest_list: usize,
}

impl ViewCounters {
    /// What two counted together.
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
            longest_list: if longer {
                self.longest_list
            } else {
                other.longest_list
            },
        }
    }
}
