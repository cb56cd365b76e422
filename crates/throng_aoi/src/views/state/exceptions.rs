//! Exceptions from the rules: targets that are shown to or hidden from one viewer, whatever the rules say.
//!
//! Invariant: both ends of an exception exist; each exception is in both maps.
//! Cost: O(log exceptions) for a viewer that has any, nothing for all others; about 40 bytes per exception.

use std::collections::{BTreeMap, BTreeSet};

use throng_core::memory::MemoryUse;

/// What applies to a viewer and a target instead of the rules.
///
/// The first of these that applies decides: a target that is hidden from every viewer is seen by none; a target that is
/// hidden from this viewer is not seen; a target that is shown to it may be seen, whatever layers and the scene's rules say;
/// else layers and rules decide. Range, caps and the ranking apply to a shown target as to all others, and in mutual mode
/// the other end has to be able to see back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViewException {
    /// The viewer may see the target.
    Show,
    /// The viewer may not see the target.
    Hide,
}

/// The exceptions of all viewers of a scene.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct ExceptionIndex {
    /// By viewer, then target.
    by_viewer: BTreeMap<(u32, u32), ViewException>,
    /// Target, then viewer.
    by_target: BTreeSet<(u32, u32)>,
}

impl ExceptionIndex {
    pub(crate) fn get(&self, viewer: u32, target: u32) -> Option<ViewException> {
        self.by_viewer.get(&(viewer, target)).copied()
    }

    /// Sets or ends an exception; true if that changes anything.
    pub(crate) fn set(
        &mut self,
        viewer: u32,
        target: u32,
        exception: Option<ViewException>,
    ) -> bool {
        let pair = (viewer, target);
        match exception {
            Some(exception) => {
                self.by_target.insert((target, viewer));
                self.by_viewer.insert(pair, exception) != Some(exception)
            }
            None => {
                self.by_target.remove(&(target, viewer));
                self.by_viewer.remove(&pair).is_some()
            }
        }
    }

    /// The exceptions of a viewer, by target.
    pub(crate) fn of(&self, viewer: u32) -> impl Iterator<Item = (u32, ViewException)> + '_ {
        let of_viewer = self.by_viewer.range((viewer, 0)..=(viewer, u32::MAX));
        of_viewer.map(|(&(_, target), &exception)| (target, exception))
    }

    /// The viewers that have an exception for a target, ascending.
    pub(crate) fn viewers_of(&self, target: u32) -> impl Iterator<Item = u32> + '_ {
        let of_target = self.by_target.range((target, 0)..=(target, u32::MAX));
        of_target.map(|&(_, viewer)| viewer)
    }

    pub(crate) fn has_any(&self, viewer: u32) -> bool {
        self.of(viewer).next().is_some()
    }
}
