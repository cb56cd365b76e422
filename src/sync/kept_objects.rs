//! Objects that a client keeps after they left its view.
//!
//! They stay among the [objects that it knows](super::client_objects), so their changes are found and sent as for any other. This list has
//! the ones that are out of view, in the order in which they left it.

use crate::memory::MemoryUse;

/// The objects that a client keeps out of view. Most clients have none.
#[derive(Clone, Debug, Default, PartialEq, MemoryUse)]
pub struct KeptObjects {
    /// Their ids, each once; the one that is out of view for the longest time first.
    ids: Vec<u32>,
    /// Objects in view that the client had before a resume with fresh snapshots: kept even if they leave the view before they are sent again.
    had: Vec<u32>,
    /// The objects to be sent again after a resume with fresh snapshots, until the scene starts.
    resent: Option<ResentObjects>,
}

/// Objects that a client kept before its state was discarded.
#[derive(Clone, Debug, PartialEq, MemoryUse)]
struct ResentObjects {
    /// The object that the client controlled: scene, id, generation. With another one it starts anew.
    controlled: (u32, u32, u32),
    /// Ids and generations.
    objects: Vec<(u32, u32)>,
}

impl KeptObjects {
    /// The objects that a client receives again if it still controls this object when its scene starts.
    pub fn to_resend(controlled: (u32, u32, u32), objects: Vec<(u32, u32)>) -> Self {
        Self {
            resent: Some(ResentObjects {
                controlled,
                objects,
            }),
            ..Self::default()
        }
    }

    /// The objects to be sent again to a client that controls this object.
    pub fn into_resent(self, controlled: (u32, u32, u32)) -> Vec<(u32, u32)> {
        let resent = self.resent.filter(|of| of.controlled == controlled);
        resent.map_or(Vec::new(), |of| of.objects)
    }

    /// Their ids, the one that is out of view for the longest time first.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Whether an object is kept out of view. O(kept objects).
    pub fn contains(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// An object left the view; one that was kept before keeps its age.
    pub fn push(&mut self, id: u32) {
        if !self.contains(id) {
            self.ids.push(id);
        }
    }

    /// An object is in view again; whether it was kept. O(kept objects).
    pub fn remove(&mut self, id: u32) -> bool {
        let place = self.ids.iter().position(|&other| other == id);
        if let Some(place) = place {
            self.ids.remove(place);
        }
        place.is_some()
    }

    /// The client had an object in view before a resume with fresh snapshots.
    pub fn note_had(&mut self, id: u32) {
        self.had.push(id);
    }

    /// An object leaves the view; whether the client had it before a resume with fresh snapshots.
    pub fn take_had(&mut self, id: u32) -> bool {
        let before = self.had.len();
        self.had.retain(|&other| other != id);
        self.had.len() < before
    }

    /// Removes the objects for which `stays` is false, then the oldest beyond `max`. Calls `dropped` with each of them. Returns the
    /// number of objects that were removed because of `max`.
    pub fn retain(
        &mut self,
        max: usize,
        mut stays: impl FnMut(u32) -> bool,
        mut dropped: impl FnMut(u32),
    ) -> usize {
        self.ids.retain(|&id| {
            let stays = stays(id);
            if !stays {
                dropped(id);
            }
            stays
        });
        let excess = self.ids.len().saturating_sub(max);
        self.ids.drain(..excess).for_each(dropped);
        excess
    }

    /// Adds it to a hash, as words; nothing if it is empty.
    pub fn hash_state(&self, word: &mut impl FnMut(u64)) {
        if !self.ids.is_empty() || !self.had.is_empty() {
            word((self.ids.len() as u64) << 32 | self.had.len() as u64);
        }
        let all = self.ids.iter().chain(&self.had);
        all.for_each(|&id| word(u64::from(id)));
        if let Some(ResentObjects {
            controlled: (scene, id, generation),
            objects,
        }) = &self.resent
        {
            word(u64::from(*scene));
            word(u64::from(*id) << 32 | u64::from(*generation));
            for &(id, generation) in objects {
                word(u64::from(id) << 32 | u64::from(generation));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(ids: &[u32]) -> KeptObjects {
        let mut kept = KeptObjects::default();
        ids.iter().for_each(|&id| kept.push(id));
        kept
    }

    #[test]
    fn oldest_kept_objects_are_dropped_at_the_limit() {
        let mut kept = kept(&[5, 3, 9, 3, 7]);
        assert_eq!(kept.ids(), [5, 3, 9, 7]);
        let mut dropped = Vec::new();
        let excess = kept.retain(2, |id| id != 9, |id| dropped.push(id));
        assert_eq!((excess, kept.ids()), (1, &[3, 7][..]));
        assert_eq!(dropped, [9, 5]);
        assert!(kept.remove(3) && !kept.remove(3));
    }

    #[test]
    fn resent_objects_are_of_the_same_controlled_object() {
        let resent = || KeptObjects::to_resend((1, 2, 3), vec![(4, 0)]);
        assert_eq!(resent().into_resent((1, 2, 3)), [(4, 0)]);
        assert_eq!(resent().into_resent((1, 2, 4)), []);
    }
}
