//! Snapshots of objects that a client starts to know.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use super::attributes::Attributes;
use super::foreign_members::{FOREIGN_SCENE, ForeignMembers};
use super::messages::{write_snapshot, write_unseen};
use super::replicator::{Replicator, SnapshotRequest};
use super::sent_values::SentValues;
use crate::outbox::Outbox;
use crate::sim::Workers;
use crate::sync::scene_messages::SceneMessages;
use crate::world::{Object, ObjectId, SceneId, SceneIds, Scenes, SimScene};

/// An object or a scene, and the values that clients have of it.
type SnapshotRow = (
    Option<&'static Object>,
    Option<&'static SimScene>,
    &'static SentValues,
);

/// Fewer are not worth another thread.
const CHUNK_MIN: usize = if cfg!(test) { 2 } else { 64 };

/// Encodes all objects that a client starts to know, once for all clients that receive the same attributes.
pub(super) fn encode_snapshots(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    attributes: Res<Attributes>,
    (scenes, foreign): (Res<Scenes>, Res<ForeignMembers>),
    ids: Query<&'static SceneIds>,
    bearers: Query<SnapshotRow>,
    pool: Res<Workers>,
) {
    let Replicator {
        scenes: records,
        snapshot_requests: wanted,
        workers,
        ..
    } = &mut *replicator;
    let news = SnapshotContext {
        records,
        attributes: &attributes,
        scenes: &scenes,
        foreign: &foreign,
        ids: &ids,
        rows: &bearers,
    };
    pool.for_each_chunk(wanted, CHUNK_MIN, workers, |worker, _, wanted| {
        for wanted in wanted {
            worker.snapshots.push(|bytes| news.write(wanted, bytes));
        }
    });
    // Chunks are consecutive, and so are the messages of their workers.
    let messages = workers.iter().flat_map(|worker| worker.snapshots.iter());
    for (message, wanted) in messages.zip(&*wanted) {
        let of_scene = records.get_mut(&wanted.scene);
        let Some(of_scene) = of_scene.filter(|_| !message.is_empty()) else {
            continue;
        };
        let batch = outbox.batch_mut();
        let span = batch.push_shared(|bytes| bytes.extend_from_slice(message));
        of_scene.set_full_message(wanted.id, (wanted.variant, wanted.is_unseen), span);
    }
    for worker in workers {
        worker.snapshots.clear();
    }
}

/// The inputs of all snapshots.
struct SnapshotContext<'a, 'w, 's> {
    records: &'a BTreeMap<SceneId, SceneMessages>,
    attributes: &'a Attributes,
    scenes: &'a Scenes,
    foreign: &'a ForeignMembers,
    ids: &'a Query<'w, 's, &'static SceneIds>,
    rows: &'a Query<'w, 's, SnapshotRow>,
}

impl SnapshotContext<'_, '_, '_> {
    /// Appends the messages of one object, if it still exists.
    fn write(&self, wanted: &SnapshotRequest, bytes: &mut Vec<u8>) {
        if wanted.scene == FOREIGN_SCENE {
            let set = &self.attributes.variant_sets()[usize::from(wanted.variant.0)];
            return self.foreign.write(wanted.id, set, self.attributes, bytes);
        }
        let scene = self.scenes.entity(wanted.scene);
        let entity = scene.and_then(|scene| match wanted.id {
            0 => Some(scene),
            id => self.ids.get(scene).ok()?.entity(ObjectId(id)),
        });
        let bearer = entity.and_then(|entity| self.rows.get(entity).ok());
        let (Some((object, scene, sent)), Some(records)) =
            (bearer, self.records.get(&wanted.scene))
        else {
            return;
        };
        let values = (
            sent,
            &self.attributes.variant_sets()[usize::from(wanted.variant.0)],
        );
        match (object, scene) {
            (Some(object), _) if !wanted.is_unseen => {
                let base = records.bases.get(wanted.id as usize);
                let motion = base.map(|base| base.motion).unwrap_or_default();
                write_snapshot(bytes, object, motion, self.attributes, values);
            }
            (Some(object), _) => {
                let (of, kind) = (object.reference(), object.kind().0);
                write_unseen(bytes, of, kind, self.attributes, values);
            }
            (None, Some(scene)) if wanted.is_unseen => {
                write_unseen(bytes, scene.reference(), 0, self.attributes, values);
            }
            (None, _) => {}
        }
    }
}
