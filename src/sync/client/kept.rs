//! Objects that a client keeps after they left its view.

use super::{ClientState, ViewEntry};
use crate::sync::kept_objects::KeptObjects;

/// The class of an object out of view: it is sent after all objects in view.
const KEPT_CLASS: u8 = 0;

impl ClientState {
    /// The objects that it keeps out of view, the one that is out of view for the longest time first.
    pub fn kept_ids(&self) -> &[u32] {
        self.kept.as_deref().map_or(&[], KeptObjects::ids)
    }

    /// Whether it keeps an object out of view. O(kept objects).
    pub(super) fn keeps(&self, id: u32) -> bool {
        self.kept.as_deref().is_some_and(|kept| kept.contains(id))
    }

    /// A known object, by its index, left the view and stays known.
    pub(super) fn keep(&mut self, place: usize) {
        let link = &mut self.objects.as_mut_slice()[place];
        link.class = KEPT_CLASS;
        self.kept.get_or_insert_default().push(link.id);
    }

    /// An object is in view; whether it was kept before.
    pub(super) fn end_keeping(&mut self, id: u32) -> bool {
        self.kept.as_deref_mut().is_some_and(|kept| kept.remove(id))
    }

    /// An object leaves the view; whether the client had it before a resume with fresh snapshots, so that it counts as known even if it was
    /// not sent again yet.
    pub(super) fn had_before_resume(&mut self, id: u32) -> bool {
        let kept = self.kept.as_deref_mut();
        kept.is_some_and(|kept| kept.take_had(id))
    }

    /// An object that waits to be sent, by its index, left the view; it is sent and kept.
    pub(super) fn keep_pending(&mut self, place: usize) {
        let waiting = &mut self.pending[place];
        waiting.class = KEPT_CLASS;
        self.kept.get_or_insert_default().push(waiting.id);
    }

    /// Removes kept objects here and at the client: of those that `is_due` selects, the ones whose id and generation `stays` rejects; then
    /// the oldest beyond `kept_max`. `known` is the generation of the object that clients know by an id. Returns the number of removed
    /// objects, and how many of them were beyond `kept_max`. O(kept objects), and O(objects that the client knows) for each removed one.
    pub fn update_kept(
        &mut self,
        kept_max: usize,
        known: impl Fn(u32) -> u32,
        is_due: impl Fn(u32) -> bool,
        stays: impl Fn((u32, u32)) -> bool,
    ) -> (usize, usize) {
        let Some(kept) = self.kept.as_deref_mut() else {
            return (0, 0);
        };
        let (before, pending) = (kept.ids().len(), &mut self.pending);
        let waits = |pending: &[ViewEntry], id| {
            let waiting = pending.iter().find(|waiting| waiting.id == id);
            waiting.map(|waiting| waiting.generation)
        };
        let mut dropped: Vec<u32> = Vec::new();
        let excess = kept.retain(
            kept_max,
            |id| {
                !is_due(id) || {
                    let generation = waits(pending, id).unwrap_or_else(|| known(id));
                    stays((id, generation))
                }
            },
            |id| dropped.push(id),
        );
        for id in dropped {
            if let Some(place) = self.objects.index_of(id) {
                self.despawns.push((id, known(id)));
                self.objects.swap_remove(place);
            } else {
                pending.retain(|waiting| waiting.id != id);
            }
        }
        (before - kept.ids().len(), excess)
    }

    /// The list of its kept objects when its state is discarded by a resume: the objects that it keeps or would keep, to be sent again.
    /// `marked` is whether an object is marked to be kept, `known` as above.
    pub(super) fn kept_to_resend(
        &mut self,
        marked: impl Fn(u32) -> bool,
        known: impl Fn(u32) -> u32,
    ) -> Option<Box<KeptObjects>> {
        let Some(controlled) = self.controlled else {
            // Discarded before, and no scene has started since.
            return self.kept.take();
        };
        let kept = self.kept_ids();
        let waits = |id: u32| self.pending.iter().find(|waiting| waiting.id == id);
        let out = kept.iter().map(|&id| match waits(id) {
            Some(waiting) => (id, waiting.generation),
            None => (id, known(id)),
        });
        let others = self.objects.as_slice().iter().skip(1).map(|link| link.id);
        let mut others: Vec<u32> = others
            .filter(|&id| marked(id) && !kept.contains(&id))
            .collect();
        others.sort_unstable();
        let objects: Vec<(u32, u32)> = out
            .chain(others.into_iter().map(|id| (id, known(id))))
            .collect();
        (!objects.is_empty()).then(|| Box::new(KeptObjects::to_resend(controlled, objects)))
    }

    /// The objects (id and generation) that it has to receive again in a scene that starts with this controlled object.
    pub fn take_resent(&mut self, controlled: (u32, u32, u32)) -> Vec<(u32, u32)> {
        let kept = self.kept.take();
        kept.map_or(Vec::new(), |kept| kept.into_resent(controlled))
    }

    /// Objects out of view wait for their snapshots, and are kept from then on; those in view wait already. O(objects × view).
    pub fn resend(&mut self, objects: impl Iterator<Item = (u32, u32)>) {
        let seen = self.pending.len();
        for (id, generation) in objects {
            if self.pending[..seen].iter().any(|waiting| waiting.id == id) {
                self.kept.get_or_insert_default().note_had(id);
                continue;
            }
            let class = KEPT_CLASS;
            self.pending.push(ViewEntry {
                id,
                generation,
                class,
            });
            self.kept.get_or_insert_default().push(id);
        }
    }
}
