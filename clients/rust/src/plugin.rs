//! For games that are made with Bevy: an entity for each object in sight.
//!
//! ```text
//! First:  Client::update ─▶ Entered: spawned │ Left, another scene or none: despawned ─▶ ShownAt of all ─▶ ClientEvents as messages
//! ```
//! Invariant: after `First` there is one entity for each object that the client has in sight, and no other with [`InSight`] that this
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
        app.init_resource::<Mirrored>()
            .add_message::<ClientMessageIn>()
            .add_message::<ClientEnded>()
            .add_systems(First, mirror.after(MessageUpdateSystems));
    }
}

/// The game's client. To be inserted when it connects, and removed when it leaves ([`Client::leave`]); where the connection ends by
/// itself it becomes an [`EndedClient`].
#[derive(Resource, Debug)]
pub struct GameClient(pub Client);

/// The client whose connection ended: with another token for [`Client::reconnect`] it goes on as [`GameClient`].
#[derive(Resource, Debug)]
pub struct EndedClient(pub Client);

/// What the server said: see [`ClientEvent`].
#[derive(Message, Clone, Debug)]
pub struct ClientMessageIn(pub ClientEvent);

/// There is no connection any more, and nothing is in sight.
#[derive(Message, Clone, Copy, Debug)]
pub struct ClientEnded(pub ClientError);

/// An object that is in sight.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[require(ShownAt)]
pub struct InSight {
    /// Its number in the scene.
    pub id: u32,
    /// How often that number was given out before.
    pub generation: u32,
    /// The number of its kind.
    pub kind: u16,
}

/// Where an object is shown in this frame, in metres.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
pub struct ShownAt(pub Vec2);

/// The object that the player controls.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnObject;

/// The entities of objects in sight, by their number.
#[derive(Resource, Debug, Default)]
struct Mirrored(HashMap<u32, Entity>);

fn mirror(world: &mut World) {
    let Some(mut client) = world.remove_resource::<GameClient>() else {
        world.resource_scope(|world, mut mirrored: Mut<Mirrored>| clear(world, &mut mirrored.0));
        return;
    };
    let now = Instant::now();
    let went = client.0.update(now);
    world.resource_scope(|world, mut mirrored: Mut<Mirrored>| {
        while let Some(event) = client.0.next_event() {
            follow(world, &mut mirrored.0, &client.0, &event);
            world.write_message(ClientMessageIn(event));
        }
        match went {
            Ok(()) => show(world, &mirrored.0, &client.0, now),
            Err(_) => clear(world, &mut mirrored.0),
        }
    });
    match went {
        Ok(()) => world.insert_resource(client),
        Err(error) => {
            world.insert_resource(EndedClient(client.0));
            world.write_message(ClientEnded(error));
        }
    }
}

fn follow(
    world: &mut World,
    mirrored: &mut HashMap<u32, Entity>,
    client: &Client,
    event: &ClientEvent,
) {
    match *event {
        ClientEvent::InScene { .. }
        | ClientEvent::OutOfScene
        | ClientEvent::Resumed { keeps: false } => clear(world, mirrored),
        ClientEvent::Entered {
            id,
            generation,
            kind,
        } => {
            let seen = InSight {
                id,
                generation,
                kind,
            };
            if let Some(before) = mirrored.insert(id, world.spawn(seen).id()) {
                world.despawn(before);
            }
        }
        // Who came into sight before the connection ended is not told of once more.
        ClientEvent::Resumed { keeps: true } => {
            for id in client.ids() {
                if let Some(object) = client.mirror().object(id) {
                    let (generation, kind) = (object.generation, object.kind);
                    mirrored.entry(id).or_insert_with(|| {
                        let seen = InSight {
                            id,
                            generation,
                            kind,
                        };
                        world.spawn(seen).id()
                    });
                }
            }
        }
        ClientEvent::Left { id, .. } => {
            if let Some(entity) = mirrored.remove(&id) {
                world.despawn(entity);
            }
        }
        _ => {}
    }
}

fn clear(world: &mut World, mirrored: &mut HashMap<u32, Entity>) {
    for (_, entity) in mirrored.drain() {
        world.despawn(entity);
    }
}

fn show(world: &mut World, mirrored: &HashMap<u32, Entity>, client: &Client, now: Instant) {
    let own = client.mirror().own().map(|(id, _)| id);
    for (&id, &entity) in mirrored {
        // A game may have despawned one.
        let Ok(mut entity) = world.get_entity_mut(entity) else {
            continue;
        };
        if let Some(at) = client.position(id, now)
            && let Some(mut shown) = entity.get_mut::<ShownAt>()
        {
            shown.set_if_neq(ShownAt(at));
        }
        let is_own = own == Some(id);
        match (is_own, entity.contains::<OwnObject>()) {
            (true, false) => drop(entity.insert(OwnObject)),
            (false, true) => drop(entity.remove::<OwnObject>()),
            _ => {}
        }
    }
}
