//! What is told in full of objects that somebody comes to know.

use bevy_ecs::prelude::*;

use super::attributes::Attributes;
use super::messages::{write_remote, write_snapshot};
use super::replicator::Replicator;
use super::sent_values::SentValues;
use crate::outbox::Outbox;
use crate::world::{Object, ObjectId, Scene, SceneObjects, Scenes};

/// All that is told of those whom somebody comes to know, once for all clients that learn the same of them.
pub(super) fn record_snapshots(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    attributes: Res<Attributes>,
    scenes: Res<Scenes>,
    ids: Query<&SceneObjects>,
    bearers: Query<(Option<&Object>, Option<&Scene>, &SentValues)>,
) {
    let Replicator {
        scenes: records,
        wanted,
        ..
    } = &mut *replicator;
    for wanted in &*wanted {
        let scene = scenes.entity(wanted.scene);
        let entity = scene.and_then(|scene| match wanted.id {
            0 => Some(scene),
            id => ids.get(scene).ok()?.entity(ObjectId(id)),
        });
        let bearer = entity.and_then(|entity| bearers.get(entity).ok());
        let (Some((object, scene, sent)), Some(records)) = (bearer, records.get_mut(&wanted.scene))
        else {
            continue;
        };
        let variant = usize::from(wanted.variant.0);
        let values = (sent, &attributes.told()[variant]);
        let motion = records.base_mut(wanted.id).motion;
        let batch = outbox.batch_mut();
        match (object, scene) {
            (Some(object), _) if !wanted.remote => {
                let write = |bytes: &mut Vec<u8>| {
                    write_snapshot(bytes, object, motion, &attributes, values);
                };
                records.snapshots[variant].set(wanted.id, batch.share(write));
            }
            (object, scene) => {
                let kind = object.map_or(0, |object| object.kind().0);
                let of = object.map(Object::reference);
                let Some(of) = of.or(scene.map(Scene::reference)) else {
                    continue;
                };
                let write = |bytes: &mut Vec<u8>| {
                    write_remote(bytes, of, kind, &attributes, values);
                };
                records.remotes[variant].set(wanted.id, batch.share(write));
            }
        }
    }
}
