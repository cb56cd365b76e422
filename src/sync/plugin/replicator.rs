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

/// The records of each scene, and what each client knows.
#[derive(Resource, Debug, Default, MemoryUse)]
pub(in crate::sync) struct Replicator {
    #[memory(each_value)]
    pub scenes: BTreeMap<SceneId, SceneMessages>,
    /// By ascending client.
    #[memory(each)]
    pub clients: Vec<ClientState>,
    /// What their sessions say of them, in the same order.
    pub sessions: Vec<SessionView>,
    /// Where seats come from.
    #[memory(each)]
    pub session_ranges: Vec<SessionRange>,
    /// What somebody needs to be told in full this tick, ascending and once each.
    pub snapshot_requests: Vec<SnapshotRequest>,
    /// Their numbers, in whatever scene: of most objects nobody needs that.
    pub requested_ids: FixedBitSet,
    /// Who is in which party.
    pub parties: PartyObjects,
    /// The announcements of this tick.
    pub announcements: Vec<AnnouncementSent>,
    /// Clients whose sessions ended since the last tick's lines.
    #[memory(each)]
    pub closed_clients: Vec<ClientState>,
    /// Sessions that ended, and why, of which the clients are not closed yet.
    pub closing: Vec<SessionClosed>,
    /// What changed in the view lists of clients, by scene.
    #[memory(each_value)]
    pub view_changes: BTreeMap<SceneId, ViewChanges>,
    #[memory(each)]
    pub workers: Vec<UpdateWorker>,
    /// What all clients were told of late.
    pub sent_log: SentLog,
}

impl Replicator {
    /// Whether somebody needs to be told all of this object.
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

    /// All of what clients know that reaches later ticks.
    pub fn hash(&self, hasher: &mut StateHasher) {
        for state in &self.clients {
            let scene = state.controlled.map(|(scene, ..)| SceneId(scene));
            let records = scene.and_then(|scene| self.scenes.get(&scene));
            let known = |id| records.map_or(0, |records| records.known_generation(id));
            state.hash_state(known, &mut |word| hasher.write_u64(word));
        }
    }
}

/// An object of which somebody needs to be told all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sync) struct SnapshotRequest {
    pub scene: SceneId,
    pub id: u32,
    pub generation: u32,
    pub variant: AudienceVariant,
    /// Whether it is for somebody who need not see it.
    pub is_unseen: bool,
}

/// What changed in the view lists of a scene's clients.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(in crate::sync) struct ViewChanges {
    /// Each pair once, ascending.
    changes: Vec<ViewChange>,
    /// Whose lists changed: mostly few, so that all others are not searched for.
    viewers: FixedBitSet,
}

impl ViewChanges {
    /// Forgets all.
    pub fn clear(&mut self) {
        clear_and_shrink(&mut self.changes);
        self.viewers.clear();
    }

    /// Takes over what changed, in any order; of a pair the last.
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

    /// What changed in a viewer's list.
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
    /// Ascending as they are; one number is compared in fewer steps than five.
    pub fn sort_key(&self) -> u128 {
        let id = u128::from(self.scene.0) << 32 | u128::from(self.id);
        let object = id << 32 | u128::from(self.generation);
        object << 16 | u128::from(self.variant.0) << 8 | u128::from(self.is_unseen)
    }
}

impl ViewChange {
    /// One number is compared in fewer steps than three.
    fn sort_key(&self) -> u128 {
        let pair = u128::from(self.viewer) << 32 | u128::from(self.target);
        pair << 32 | u128::from(self.nth)
    }
}

/// What became of a pair in this tick's View.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sync) struct ViewChange {
    /// Who sees, or saw.
    pub viewer: u32,
    /// Who is seen, or was.
    pub target: u32,
    /// The place of the event among those of its scene.
    pub nth: u32,
    /// The class of the pair; none when it ended.
    pub class: Option<u8>,
}

/// What one worker needs and makes.
#[derive(Debug, Default, MemoryUse)]
pub(in crate::sync) struct UpdateWorker {
    pub scratch: UpdateScratch,
    pub part: BatchPart,
    /// What of it is kept.
    pub sent_part: SentPart,
    pub sent: SentCounters,
    /// For whom more was to be kept than may.
    pub slow_consumers: Vec<ClientId>,
    /// Objects that clients know, and that wait until they are told of them.
    pub counts: [u64; 2],
    pub requests: Vec<SnapshotRequest>,
    /// What is told in full of some of those of whom anybody needs to be told.
    pub snapshots: MessageList,
    /// A client's remotes as they should be.
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
