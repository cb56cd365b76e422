//! For games that are made with Bevy: an entity for each object in sight.
//!
//! ```text
//! First:  [follow] Client::update ─▶ ViewEntered: spawned │ ViewLeft, another scene or none: despawned, ClientEvents as messages ─▶ [show] RenderPosition of all
//! ```
//! Invariant: after `First` there is one entity for each object that the client has in sight, and no other with [`VisibleObject`] that this
//! plugin spawned. What a game hangs on these entities goes with them.

use std::collections::HashMap;
use std::time::Instant;

use bevy_app::{App, First, Plugin};
use bevy_ecs::message::MessageUpdateSystems;
use bevy_ecs::prelude::*;
use glam::Vec2;

use crate::client::{Client, ClientError};
use crate::event::ClientEvent;

/// Mirrors what a [`GameClient`] has in sight, as long as there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientPlugin;

impl Plugin for ClientPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<MirroredEntities>()
            .add_message::<ClientEventReceived>()
            .add_message::<ClientDisconnected>()
            .add_systems(
                First,
                (update_client, update_render_positions)
                    .chain()
                    .after(MessageUpdateSystems),
            );
    }
}

/// The game's client. To be inserted when it connects, and removed when it leaves ([`Client::leave`]); where the connection ends by
/// itself it becomes a [`DisconnectedClient`].
#[derive(Resource, Debug)]
pub struct GameClient(pub Client);

/// The client whose connection ended: with another token for [`Client::reconnect`] it goes on as [`GameClient`].
#[derive(Resource, Debug)]
pub struct DisconnectedClient(pub Client);

/// What the server said: see [`ClientEvent`].
#[derive(Message, Clone, Debug)]
pub struct ClientEventReceived(pub ClientEvent);

/// There is no connection any more, and nothing is in sight.
#[derive(Message, Clone, Copy, Debug)]
pub struct ClientDisconnected(pub ClientError);

/// An object that is in sight.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[require(RenderPosition)]
pub struct VisibleObject {
    /// Its number in the scene.
    pub id: u32,
    /// How often that number was given out before.
    pub generation: u32,
    /// The number of its kind.
    pub kind: u16,
}

/// Where an object is shown in this frame, in metres.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
pub struct RenderPosition(pub Vec2);

/// The object that the player controls.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlledObject;

/// The entities of objects in sight, by their number.
#[derive(Resource, Debug, Default)]
struct MirroredEntities(HashMap<u32, Entity>);

/// Takes what came since the last frame: objects come into sight and leave it, and the game gets all events.
///
/// The client stays in the world, for the hooks and observers that entities run into.
fn update_client(
    client: Option<ResMut<GameClient>>,
    mut mirrored: ResMut<MirroredEntities>,
    mut events: MessageWriter<ClientEventReceived>,
    mut ended: MessageWriter<ClientDisconnected>,
    mut commands: Commands,
) {
    let mirrored = &mut mirrored.0;
    let Some(mut client) = client else {
        return despawn_mirrored(&mut commands, mirrored);
    };
    let went = client.0.update(Instant::now());
    while let Some(event) = client.0.next_event() {
        apply_event(&mut commands, mirrored, &client.0, &event);
        events.write(ClientEventReceived(event));
    }
    if let Err(error) = went {
        despawn_mirrored(&mut commands, mirrored);
        commands.queue(disconnect_client);
        ended.write(ClientDisconnected(error));
    }
}

/// Objects that came into sight and those that were there are shown where they are now.
fn update_render_positions(
    client: Option<Res<GameClient>>,
    mirrored: Res<MirroredEntities>,
    mut shown: Query<(&mut RenderPosition, Has<ControlledObject>)>,
    mut commands: Commands,
) {
    let Some(GameClient(client)) = client.as_deref() else {
        return;
    };
    let now = Instant::now();
    let own = client.mirror().controlled_object().map(|(id, _)| id);
    for (&id, &entity) in &mirrored.0 {
        // A game may have despawned one.
        let Ok((mut shown, was_own)) = shown.get_mut(entity) else {
            continue;
        };
        if let Some(at) = client.position(id, now) {
            shown.set_if_neq(RenderPosition(at));
        }
        match (own == Some(id), was_own) {
            (true, false) => drop(commands.entity(entity).insert(ControlledObject)),
            (false, true) => drop(commands.entity(entity).remove::<ControlledObject>()),
            _ => {}
        }
    }
}

fn apply_event(
    commands: &mut Commands,
    mirrored: &mut HashMap<u32, Entity>,
    client: &Client,
    event: &ClientEvent,
) {
    match *event {
        ClientEvent::SceneEntered { .. }
        | ClientEvent::SceneLeft
        | ClientEvent::Resumed { keeps_state: false } => despawn_mirrored(commands, mirrored),
        ClientEvent::Entered {
            id,
            generation,
            kind,
        } => {
            let seen = VisibleObject {
                id,
                generation,
                kind,
            };
            if let Some(before) = mirrored.insert(id, commands.spawn(seen).id()) {
                commands.entity(before).try_despawn();
            }
        }
        // Who came into sight before the connection ended is not told of once more.
        ClientEvent::Resumed { keeps_state: true } => {
            for id in client.ids() {
                if let Some(object) = client.mirror().object(id) {
                    let (generation, kind) = (object.generation, object.kind);
                    mirrored.entry(id).or_insert_with(|| {
                        let seen = VisibleObject {
                            id,
                            generation,
                            kind,
                        };
                        commands.spawn(seen).id()
                    });
                }
            }
        }
        ClientEvent::Left { id, .. } => {
            if let Some(entity) = mirrored.remove(&id) {
                commands.entity(entity).try_despawn();
            }
        }
        _ => {}
    }
}

fn despawn_mirrored(commands: &mut Commands, mirrored: &mut HashMap<u32, Entity>) {
    for (_, entity) in mirrored.drain() {
        commands.entity(entity).try_despawn();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the client that ended goes for good"
)]
fn disconnect_client(world: &mut World) {
    if let Some(GameClient(client)) = world.remove_resource() {
        world.insert_resource(DisconnectedClient(client));
    }
}
