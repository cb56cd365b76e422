//! Snapshots of objects that a client starts to know.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use super::attributes::Attributes;
use super::messages::{write_remote, write_snapshot};
use super::replicator::{Replicator, Wanted};
use super::sent_values::SentValues;
use crate::outbox::Outbox;
use crate::sim::Workers;
use crate::sync::records::SceneMessages;
use crate::world::{Object, ObjectId, SceneId, SceneObjects, Scenes, SimScene};

/// An object or a scene, and what clients hold of it.
type Bearer = (
    Option<&'static Object>,
    Option<&'static SimScene>,
    &'static SentValues,
);

/// Fewer are not worth another thread.
const WANTED_MIN: usize = if cfg!(test) { 2 } else { 64 };

/// All that is told of those whom somebody comes to know, once for all clients that learn the same of them.
pub(super) fn record_snapshots(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    attributes: Res<Attributes>,
    scenes: Res<Scenes>,
    ids: Query<&'static SceneObjects>,
    bearers: Query<Bearer>,
    pool: Res<Workers>,
) {
    let Replicator {
        scenes: records,
        wanted,
        workers,
        ..
    } = &mut *replicator;
    let news = SnapshotNews {
        records,
        attributes: &attributes,
        scenes: &scenes,
        ids: &ids,
        bearers: &bearers,
    };
    pool.for_each_chunk(wanted, WANTED_MIN, workers, |worker, _, wanted| {
        for wanted in wanted {
            worker.in_full.push(|bytes| news.write(wanted, bytes));
        }
    });
    // Chunks are consecutive, and so are the messages of their workers.
    let messages = workers.iter().flat_map(|worker| worker.in_full.iter());
    for (message, wanted) in messages.zip(&*wanted) {
        let of_scene = records.get_mut(&wanted.scene);
        let Some(of_scene) = of_scene.filter(|_| !message.is_empty()) else {
            continue;
        };
        let batch = outbox.batch_mut();
        let span = batch.push_shared(|bytes| bytes.extend_from_slice(message));
        of_scene.tell_in_full(wanted.id, (wanted.variant, wanted.remote), span);
    }
    for worker in workers {
        worker.in_full.clear();
    }
}

/// What all that is told in full is written from.
struct SnapshotNews<'a, 'w, 's> {
    records: &'a BTreeMap<SceneId, SceneMessages>,
    attributes: &'a Attributes,
    scenes: &'a Scenes,
    ids: &'a Query<'w, 's, &'static SceneObjects>,
    bearers: &'a Query<'w, 's, Bearer>,
}

impl SnapshotNews<'_, '_, '_> {
    /// Appends what is told of one, if it is still there.
    fn write(&self, wanted: &Wanted, bytes: &mut Vec<u8>) {
        let scene = self.scenes.entity(wanted.scene);
        let entity = scene.and_then(|scene| match wanted.id {
            0 => Some(scene),
            id => self.ids.get(scene).ok()?.entity(ObjectId(id)),
        });
        let bearer = entity.and_then(|entity| self.bearers.get(entity).ok());
        let (Some((object, scene, sent)), Some(records)) =
            (bearer, self.records.get(&wanted.scene))
        else {
            return;
        };
        let values = (sent, &self.attributes.told()[usize::from(wanted.variant.0)]);
        match (object, scene) {
            (Some(object), _) if !wanted.remote => {
                let base = records.bases.get(wanted.id as usize);
                let motion = base.map(|base| base.motion).unwrap_or_default();
                write_snapshot(bytes, object, motion, self.attributes, values);
            }
            (Some(object), _) => {
                let (of, kind) = (object.reference(), object.kind().0);
                write_remote(bytes, of, kind, self.attributes, values);
            }
            (None, Some(scene)) if wanted.remote => {
                write_remote(bytes, scene.reference(), 0, self.attributes, values);
            }
            (None, _) => {}
        }
    }
}
