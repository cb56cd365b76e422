//! State of replication between ticks.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use fixedbitset::FixedBitSet;

use super::announce::AnnouncementSent;
use super::clients::{SessionRange, SessionView};
use crate::memory::{MemoryUse, clear_and_shrink};
use crate::outbox::BatchPart;
use crate::session::SessionClosed;
use crate::sim::StateHasher;
use crate::sync::client::{ClientState, UpdateScratch};
use crate::sync::counters::SentCounters;
use crate::sync::message_list::MessageList;
use crate::sync::scene_messages::{AudienceVariant, SceneMessages};
use crate::sync::sent_log::{SentLog, SentPart};
use crate::sync::unseen::{PartyObjects, UnseenObject};
use crate::wire::ClientId;
use crate::world::{Generation, ObjectId, ObjectRef, SceneId};

/// The messages of each scene, and the state of each client.
#[derive(Resource, Debug, Default, MemoryUse)]
pub(in crate::sync) struct Replicator {
    #[memory(each_value)]
    pub scenes: BTreeMap<SceneId, SceneMessages>,
    /// By ascending client.
    #[memory(each)]
    pub clients: Vec<ClientState>,
    /// The views of their sessions, in the same order.
    pub sessions: Vec<SessionView>,
    /// The ranges in which sessions are read.
    #[memory(each)]
    pub session_ranges: Vec<SessionRange>,
    /// Objects that have to be sent in full this tick, ascending and once each.
    pub snapshot_requests: Vec<SnapshotRequest>,
    /// Their ids in any scene: most objects are not requested.
    pub requested_ids: FixedBitSet,
    /// The members of each party.
    pub parties: PartyObjects,
    /// The announcements of this tick.
    pub announcements: Vec<AnnouncementSent>,
    /// Clients whose sessions ended since the last tick's updates.
    #[memory(each)]
    pub closed_clients: Vec<ClientState>,
    /// Ended sessions whose clients are not closed yet, with the reason.
    pub closing: Vec<SessionClosed>,
    /// Changes in the view lists of clients, by scene.
    #[memory(each_value)]
    pub view_changes: BTreeMap<SceneId, ViewChanges>,
    #[memory(each)]
    pub workers: Vec<UpdateWorker>,
    /// Recent messages to all clients.
    pub sent_log: SentLog,
}

impl Replicator {
    /// Whether this object has to be sent in full.
    pub fn is_requested(&self, scene: SceneId, id: u32) -> bool {
        if !self.requested_ids.contains(id as usize) {
            return false;
        }
        let key = |wanted: &SnapshotRequest| (wanted.scene, wanted.id);
        let start = self
            .snapshot_requests
            .partition_point(|wanted| key(wanted) < (scene, id));
        let found = self.snapshot_requests.get(start);
        found.is_some_and(|wanted| key(wanted) == (scene, id))
    }

    /// Hashes the state of all clients that affects later ticks.
    pub fn hash(&self, hasher: &mut StateHasher) {
        for state in &self.clients {
            let scene = state.controlled.map(|(scene, ..)| SceneId(scene));
            let records = scene.and_then(|scene| self.scenes.get(&scene));
            let known = |id| records.map_or(0, |records| records.known_generation(id));
            state.hash_state(known, &mut |word| hasher.write_u64(word));
        }
    }
}

/// An object that has to be sent in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sync) struct SnapshotRequest {
    pub scene: SceneId,
    pub id: u32,
    pub generation: u32,
    pub variant: AudienceVariant,
    /// Whether it is for a client that need not see it.
    pub is_unseen: bool,
}

/// Changes in the view lists of a scene's clients.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(in crate::sync) struct ViewChanges {
    /// Each pair once, ascending.
    changes: Vec<ViewChange>,
    /// The viewers whose lists changed: usually few, so that others are not searched for.
    viewers: FixedBitSet,
}

impl ViewChanges {
    /// Removes all.
    pub fn clear(&mut self) {
        clear_and_shrink(&mut self.changes);
        self.viewers.clear();
    }

    /// Replaces the changes, in any order; for a pair the last one counts.
    pub fn set(&mut self, changes: impl Iterator<Item = ViewChange>) {
        let Self {
            changes: all,
            viewers,
        } = self;
        all.extend(changes);
        all.sort_unstable_by_key(ViewChange::sort_key);
        all.dedup_by(|later, kept| {
            let same = (later.viewer, later.target) == (kept.viewer, kept.target);
            if same {
                *kept = *later;
            }
            same
        });
        for change in all {
            viewers.grow_and_insert(change.viewer as usize);
        }
    }

    /// The changes of a viewer's list.
    pub fn of_viewer(&self, viewer: u32) -> &[ViewChange] {
        if !self.viewers.contains(viewer as usize) {
            return &[];
        }
        let start = self
            .changes
            .partition_point(|change| change.viewer < viewer);
        let changes = &self.changes[start..];
        let count = changes.iter().take_while(|change| change.viewer == viewer);
        &changes[..count.count()]
    }
}

impl SnapshotRequest {
    /// The sort order as one number, which takes fewer comparisons than five.
    pub fn sort_key(&self) -> u128 {
        let id = u128::from(self.scene.0) << 32 | u128::from(self.id);
        let object = id << 32 | u128::from(self.generation);
        object << 16 | u128::from(self.variant.0) << 8 | u128::from(self.is_unseen)
    }
}

impl ViewChange {
    /// One number takes fewer comparisons than three.
    fn sort_key(&self) -> u128 {
        let pair = u128::from(self.viewer) << 32 | u128::from(self.target);
        pair << 32 | u128::from(self.nth)
    }
}

/// The change of a pair in this tick's View.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sync) struct ViewChange {
    /// The viewer.
    pub viewer: u32,
    /// The target.
    pub target: u32,
    /// The index of the event among those of its scene.
    pub nth: u32,
    /// The class of the pair; none when it ended.
    pub class: Option<u8>,
}

/// The inputs and results of one worker.
#[derive(Debug, Default, MemoryUse)]
pub(in crate::sync) struct UpdateWorker {
    pub scratch: UpdateScratch,
    pub part: BatchPart,
    /// The part of it that is stored.
    pub sent_part: SentPart,
    pub sent: SentCounters,
    /// Clients whose resume buffer is full.
    pub slow_consumers: Vec<ClientId>,
    /// Objects that clients know, those of them that are kept out of view, and objects that wait to be sent.
    pub counts: [u64; 3],
    pub requests: Vec<SnapshotRequest>,
    /// The snapshots of a part of the requested objects.
    pub snapshots: MessageList,
    /// The unseen objects that a client should have.
    pub expected: Vec<UnseenObject>,
}

pub(super) const fn ids_of(reference: ObjectRef) -> (u32, u32, u32) {
    (reference.scene.0, reference.id.0, reference.generation.0)
}

/// The object that a client knows to control.
pub(super) fn controlled_ref(state: &ClientState) -> Option<ObjectRef> {
    state.controlled.map(|(scene, id, generation)| ObjectRef {
        scene: SceneId(scene),
        id: ObjectId(id),
        generation: Generation(generation),
    })
}
