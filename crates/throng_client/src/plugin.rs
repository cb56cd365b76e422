//! For games made with Bevy: one entity per object in view.
//!
//! ```text
//! First: [update_client] Client::update ─▶ Entered: spawn │ Left, another scene or none: despawn │ ClientEvents as messages
//!        ─▶ [update_render_positions] RenderPosition of all
//! ```
//!
//! Invariant: after `First` there is one entity per object in the client's view, and no other entity with a [`VisibleObject`] that this
//! plugin spawned. Components that a game adds to these entities are despawned with them.

use std::collections::HashMap;
use std::time::Instant;

use bevy_app::{App, First, Plugin};
use bevy_ecs::message::MessageUpdateSystems;
use bevy_ecs::prelude::*;
use glam::Vec2;

use crate::client::{Client, ClientError};
use crate::event::ClientEvent;

/// Mirrors the objects in view of a [`GameClient`], while there is one.
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

/// The game's client. Insert it to connect, and remove it to leave ([`Client::leave`]). When the connection ends, it becomes a
/// [`DisconnectedClient`].
#[derive(Resource, Debug)]
pub struct GameClient(pub Client);

/// A client whose connection has ended. Call [`Client::reconnect`] with another token, and insert it as [`GameClient`] to continue.
#[derive(Resource, Debug)]
pub struct DisconnectedClient(pub Client);

/// An event of the client: see [`ClientEvent`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_client::{ClientEvent, ClientEventReceived};
///
/// fn show_queue(mut received: MessageReader<ClientEventReceived>) {
///     for ClientEventReceived(event) in received.read() {
///         if let ClientEvent::Queued { position } = event {
///             println!("{position} in the queue");
///         }
///     }
/// }
/// ```
#[derive(Message, Clone, Debug)]
pub struct ClientEventReceived(pub ClientEvent);

/// The connection has ended, and no object is in view.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_client::ClientDisconnected;
///
/// fn show_menu(mut ended: MessageReader<ClientDisconnected>) {
///     for ClientDisconnected(error) in ended.read() {
///         println!("disconnected: {error}");
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug)]
pub struct ClientDisconnected(pub ClientError);

/// An object in view.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_client::VisibleObject;
///
/// const WOLF: u16 = 7;
///
/// #[derive(Component)]
/// struct Sprite(&'static str);
///
/// /// Whatever comes into view gets a picture, which is despawned with it.
/// fn draw_wolves(entered: Query<(Entity, &VisibleObject), Added<VisibleObject>>, mut commands: Commands) {
///     for (entity, object) in &entered {
///         if object.kind == WOLF {
///             commands.entity(entity).insert(Sprite("wolf.png"));
///         }
///     }
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[require(RenderPosition)]
pub struct VisibleObject {
    /// Object id in the scene.
    pub id: u32,
    /// Generation: how often that id was assigned before.
    pub generation: u32,
    /// Number of its kind.
    pub kind: u16,
}

/// Shown position of an object in this frame, in metres.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_client::RenderPosition;
///
/// #[derive(Component)]
/// struct OnScreen { x: f32, y: f32 }
///
/// const PIXELS_PER_M: f32 = 16.0;
///
/// fn place(mut shown: Query<(&RenderPosition, &mut OnScreen), Changed<RenderPosition>>) {
///     for (RenderPosition(at), mut screen) in &mut shown {
///         (screen.x, screen.y) = (at.x * PIXELS_PER_M, at.y * PIXELS_PER_M);
///     }
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
pub struct RenderPosition(pub Vec2);

/// The object that the player controls.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_client::{ControlledObject, RenderPosition};
///
/// fn follow_player(own: Query<&RenderPosition, With<ControlledObject>>) {
///     if let Ok(RenderPosition(at)) = own.single() {
///         println!("the camera looks at {at}");
///     }
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlledObject;

/// The entities of objects in view, by object id.
#[derive(Resource, Debug, Default)]
struct MirroredEntities(HashMap<u32, Entity>);

/// Handles everything since the last frame: spawns and despawns objects, and sends all events to the game.
///
/// The client stays in the world, so that hooks and observers can use it.
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

/// Updates the shown position of every object.
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
        // A game may have despawned it.
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
        // Objects that entered before the connection ended are not reported again.
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
