//! Session notices to clients within a tick.

use bevy_ecs::prelude::*;

use super::messages::SessionNoticeRequest;
use crate::session::Sessions;
use crate::session::sessions::SessionEffect;
use crate::wire::{ClientId, SessionNotice, quantise};
use crate::world::{Object, SceneId, SimScene};

/// Asks clients that load scenes to load the scene of the object that they control.
pub(super) fn request_loading(
    mut sessions: ResMut<Sessions>,
    objects: Query<&Object>,
    scenes: Query<&SimScene>,
    mut notices: MessageWriter<SessionNoticeRequest>,
    mut asked: Local<Vec<(ClientId, SceneId)>>,
    mut effects: Local<Vec<SessionEffect>>,
) {
    let scene_of = |entity| Some(objects.get(entity).ok()?.scene());
    sessions.clients_to_load(scene_of, &mut asked);
    for (client, scene) in asked.drain(..) {
        let controls = sessions
            .get(client)
            .and_then(|session| session.controlled_entity);
        let object = controls.and_then(|entity| objects.get(entity).ok());
        let around = object.and_then(|object| scenes.get(object.scene_entity()).ok());
        let size = quantise(around.map_or(glam::Vec2::ZERO, SimScene::size_m));
        let notice = SessionNotice::Loading {
            scene: scene.0,
            size,
        };
        sessions.start_loading(client, scene, notice);
    }
    sessions.drain_effects(&mut effects);
    for effect in effects.drain(..) {
        debug_assert!(matches!(effect, SessionEffect::Notice(..)));
        if let SessionEffect::Notice(client, notice) = effect {
            notices.write(SessionNoticeRequest { client, notice });
        }
    }
}
