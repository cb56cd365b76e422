//! Whether clients still have to be sent anything.
//!
//! Answered from the state of replication between two ticks, so that callers need not guess the number of ticks.

use std::collections::BTreeSet;
use std::fmt;

use bevy_ecs::prelude::*;

use super::attributes::Attributes;
use super::audience::Audience;
use super::dirty::DirtyMasks;
use super::replicator::Replicator;
use super::save_request::owner_ref;
use super::sent_values::SentValues;
use crate::sync::client::ClientState;
use crate::sync::masks::bits;
use crate::world::{ObjectRef, SceneId};

/// What clients have not received yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PendingReplication {
    /// A client sees an object that it was not sent.
    SeenObject,
    /// A client is to know an object without seeing it, and was not sent it.
    UnseenObject,
    /// An attribute changed and waits for its turn.
    Attribute,
    /// A motion changed, and it was not the turn of every tier since.
    Motion,
}

impl fmt::Display for PendingReplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SeenObject => "objects in view wait to be sent",
            Self::UnseenObject => "unseen objects wait to be sent",
            Self::Attribute => "changed attributes wait for their turn",
            Self::Motion => "changed motions wait for their turn",
        })
    }
}

/// What clients still have to be sent, as of the last tick; `None` if they have everything that they are to receive. Packets in
/// flight are not its subject: see [`Outbox::deferred_bytes`](crate::outbox::Outbox::deferred_bytes). Changes made since the
/// last tick are not seen. An object that moves forever is pending forever.
///
/// O(objects that clients know + objects with changed attributes).
#[must_use]
pub fn pending_replication(world: &World) -> Option<PendingReplication> {
    let replicator = world.get_resource::<Replicator>()?;
    let clients = &replicator.clients;
    let is_behind = |state: &ClientState| {
        let scene = state
            .controlled
            .and_then(|(scene, ..)| replicator.scenes.get(&SceneId(scene)));
        state.unseen.is_pending(scene.map(|of| of.public_version))
    };
    if clients.iter().any(|state| !state.pending.is_empty()) {
        Some(PendingReplication::SeenObject)
    } else if clients.iter().any(is_behind) {
        Some(PendingReplication::UnseenObject)
    } else if has_pending_attribute(world, replicator) {
        Some(PendingReplication::Attribute)
    } else if has_pending_motion(replicator) {
        Some(PendingReplication::Motion)
    } else {
        None
    }
}

fn has_pending_motion(replicator: &Replicator) -> bool {
    let clients = &replicator.clients;
    let scenes: BTreeSet<u32> = clients
        .iter()
        .filter_map(|state| Some(state.controlled?.0))
        .collect();
    let is_recent = |scene: &u32| {
        let scene = replicator.scenes.get(&SceneId(*scene));
        scene.is_some_and(|scene| scene.pending.has_recent_motions())
    };
    let has_missed = |state: &ClientState| {
        let objects = state.objects.as_slice();
        objects.iter().any(|object| object.turns_missed() > 0)
    };
    scenes.iter().any(is_recent) || clients.iter().any(has_missed)
}

/// Whether an attribute that a client may have differs from the value that clients were sent.
fn has_pending_attribute(world: &World, replicator: &Replicator) -> bool {
    let (masks, attributes) = (
        world.resource::<DirtyMasks>(),
        world.resource::<Attributes>(),
    );
    let mut value = Vec::new();
    let mut known: Option<BTreeSet<(SceneId, u32)>> = None;
    masks.unsent().any(|(entity, mask)| {
        let Ok(entity) = world.get_entity(entity) else {
            return false;
        };
        let (Some(object), Some(sent)) = (owner_ref(entity), entity.get::<SentValues>()) else {
            return false;
        };
        bits(mask).any(|bit| {
            let Some(attribute) = attributes.get(bit) else {
                return false;
            };
            value.clear();
            let now = attribute.encode(entity, &mut value).map(|_| &*value);
            let to = attribute.spec.audience;
            let is_unseen = to.contains(Audience::SCENE) || to.contains(Audience::PARTY);
            // What no client knows is sent in full to the first one that does.
            let mut is_known = |of: ObjectRef| {
                let known = known.get_or_insert_with(|| known_objects(replicator));
                known.contains(&(of.scene, of.id.0))
            };
            sent.get(bit) != now && (is_unseen || is_known(object))
        })
    })
}

/// The objects that any client knows by sight.
fn known_objects(replicator: &Replicator) -> BTreeSet<(SceneId, u32)> {
    let of_client = |state: &ClientState| {
        let scene = state.controlled.map(|(scene, ..)| SceneId(scene));
        let ids: Vec<u32> = state.objects.as_slice().iter().map(|of| of.id).collect();
        scene
            .into_iter()
            .flat_map(move |scene| ids.clone().into_iter().map(move |id| (scene, id)))
    };
    replicator.clients.iter().flat_map(of_client).collect()
}
