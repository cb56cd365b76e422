//! The peer's side: a `bevy_replicon` server that follows a script, without a network.
//!
//! Clients are entities without an app. This file reads their messages, compares positions with the script's, and acknowledges each
//! mutation message by its number before the next tick, as the real client does on receipt.

use std::collections::HashSet;
use std::time::Duration;

use bevy_app::{App, PluginGroup, PostUpdate};
use bevy_ecs::entity::EntityHashMap;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::SingleThreadedExecutor;
use bevy_replicon::bytes::{Buf, Bytes};
use bevy_replicon::postcard_utils::{entity_from_buf, from_buf};
use bevy_replicon::prelude::*;
use bevy_replicon::server::visibility::client_visibility::ClientVisibility;
use bevy_replicon::server::visibility::filters_mask::FilterBit;
use bevy_replicon::server::visibility::registry::FilterRegistry;
use bevy_replicon::shared::backend::channels::{ClientChannel, ServerChannel};
use bevy_replicon::shared::replication::registry::ReplicationRegistry;
use bevy_state::app::StatesPlugin;
use bevy_state::prelude::NextState;
use bevy_time::TimePlugin;
use glam::Vec2;
use serde::{Deserialize, Serialize};

use super::spent::{Spent, start, stop};
use super::{Pair, Played, Script};
use crate::heap::allocated_bytes;

/// Longest message of positions, in bytes: throng's longest packet.
const MESSAGE_BYTES_MAX: usize = 1_200;

/// Warm-up ticks until its buffers have grown.
const WARM_UP_TICKS: usize = 2;

/// The replicated component.
#[derive(Component, Clone, Copy, Serialize, Deserialize)]
struct Place {
    x: f32,
    y: f32,
}

impl From<Vec2> for Place {
    fn from(at: Vec2) -> Self {
        Self { x: at.x, y: at.y }
    }
}

pub fn play(script: &Script) -> Played {
    let before = allocated_bytes();
    let mut server = Server::new(script);
    let mut known: HashSet<Pair> = script.known.iter().copied().collect();
    let mut played = Played::default();
    server.step();
    let received = server.receive(&script.positions, &mut Played::default());
    assert!(received == known, "at first, clients receive what they see");
    for _ in 0..WARM_UP_TICKS {
        server.place(&script.positions);
        server.step();
        server.receive(&script.positions, &mut Played::default());
    }
    for tick in &script.ticks {
        server.place(&tick.positions);
        for &(client, object) in &tick.left {
            server.show((client, object), false);
            known.remove(&(client, object));
        }
        for &(client, object) in &tick.entered {
            server.show((client, object), true);
            known.insert((client, object));
        }
        played.took.push(server.step());
        let received = server.receive(&tick.positions, &mut played);
        assert!(received == known, "every client receives all that it sees");
        played.links += known.len() as u64;
    }
    drop(known);
    played.heap_bytes = allocated_bytes() - before;
    server.step();
    let resting = server.app.world().resource::<ServerMessages>();
    assert_eq!(resting.iter_sent().len(), 0, "all is acknowledged");
    played
}

struct Server {
    app: App,
    objects: Vec<Entity>,
    clients: Vec<Entity>,
    /// Indices of objects in the script.
    nth: EntityHashMap<u32>,
    clients_nth: EntityHashMap<u32>,
    /// Hides whole objects.
    bit: FilterBit,
}

impl Server {
    fn new(script: &Script) -> Self {
        let mut app = App::new();
        let shared = RepliconSharedPlugin {
            auth_method: AuthMethod::None,
        };
        let replicon = RepliconPlugins
            .set(shared)
            .set(ServerPlugin::new(PostUpdate));
        app.add_plugins((TimePlugin, StatesPlugin, replicon))
            .replicate::<Place>()
            .init_resource::<Spent>()
            .add_systems(
                PostUpdate,
                (
                    start
                        .after(ServerSystems::IncrementTick)
                        .before(ServerSystems::Send),
                    stop.after(ServerSystems::Send)
                        .before(ServerSystems::SendPackets),
                ),
            )
            .edit_schedule(PostUpdate, |schedule| {
                schedule.set_executor(SingleThreadedExecutor::new());
            });
        app.finish();
        app.cleanup();
        let world = app.world_mut();
        let bit = world.resource_scope(|world, mut filters: Mut<FilterRegistry>| {
            world.resource_scope(|world, mut registry: Mut<ReplicationRegistry>| {
                let lifetime = ScopeLifetime::WhileVisible;
                filters.register_scope::<Entity>(world, &mut registry, lifetime)
            })
        });
        world
            .resource_mut::<NextState<ServerState>>()
            .set(ServerState::Running);
        app.update();

        let world = app.world_mut();
        let places = script.positions.iter().map(|&at| Place::from(at));
        let objects: Vec<Entity> = places
            .map(|place| world.spawn((Replicated, place)).id())
            .collect();
        let connected = || ConnectedClient {
            max_size: MESSAGE_BYTES_MAX,
        };
        let clients: Vec<Entity> = (0..script.clients)
            .map(|_| world.spawn(connected()).id())
            .collect();
        let nth_of = |entities: &[Entity]| entities.iter().copied().zip(0..).collect();
        let mut server = Self {
            nth: nth_of(&objects),
            clients_nth: nth_of(&clients),
            app,
            objects,
            clients,
            bit,
        };
        let mut known = script.known.iter().peekable();
        for client in 0..server.clients.len() as u32 {
            for object in 0..server.objects.len() as u32 {
                let pair = (client, object);
                if known.next_if_eq(&&pair).is_none() {
                    server.show(pair, false);
                }
            }
        }
        server
    }

    /// Lets a client see an object or not.
    fn show(&mut self, (client, object): Pair, visible: bool) {
        let world = self.app.world_mut();
        let client = self.clients[client as usize];
        let mut visibility = world
            .get_mut::<ClientVisibility>(client)
            .expect("a client that is authorized");
        visibility.set(self.objects[object as usize], self.bit, visible);
    }

    /// Moves all objects.
    fn place(&mut self, positions: &[Vec2]) {
        let world = self.app.world_mut();
        for (&entity, &at) in self.objects.iter().zip(positions) {
            *world.get_mut(entity).expect("no object is despawned") = Place::from(at);
        }
    }

    /// Runs one tick; returns the time of sending.
    fn step(&mut self) -> Duration {
        self.app.update();
        self.app.world().resource::<Spent>().took
    }

    /// Receives the messages as the clients do, and acknowledges them; returns which client got which position. Positions must be these.
    fn receive(&mut self, positions: &[Vec2], played: &mut Played) -> HashSet<Pair> {
        let mut messages = self.app.world_mut().resource_mut::<ServerMessages>();
        let sent: Vec<_> = messages.drain_sent().collect();
        let mut received = HashSet::new();
        let mut acknowledged = vec![Vec::new(); self.clients.len()];
        for (client, channel, message) in sent {
            let nth = self.clients_nth[&client];
            played.bytes += message.len() as u64;
            let (places, count) = if channel == usize::from(ServerChannel::Mutations) {
                assert!(message.len() <= MESSAGE_BYTES_MAX, "an unreliable message");
                acknowledged[nth as usize].extend_from_slice(&message[1..3]);
                (read_mutations(message), &mut played.moves)
            } else {
                (read_updates(message), &mut played.enters)
            };
            *count += places.len() as u64;
            for (object, at) in places {
                let object = self.nth[&object];
                assert_eq!(at, positions[object as usize], "the current position");
                assert!(
                    received.insert((nth, object)),
                    "a position is sent once a tick"
                );
            }
        }
        for (&client, indices) in self.clients.iter().zip(acknowledged) {
            if !indices.is_empty() {
                messages.insert_received(client, ClientChannel::MutationAcks, indices);
            }
        }
        received
    }
}

/// A flag byte, the message's number in two bytes, the ticks of the last update and of this message, then objects.
fn read_mutations(mut message: Bytes) -> Vec<(Entity, Vec2)> {
    message.advance(3);
    read::<RepliconTick>(&mut message);
    read::<RepliconTick>(&mut message);
    read_places(message)
}

/// Bits of the flags of an update message.
const DESPAWNS: u8 = 1 << 2;
const CHANGES: u8 = 1 << 4;

/// A flag byte, the tick, objects that are hidden from now on, and objects that are new. The last of the two is without its
/// length.
fn read_updates(mut message: Bytes) -> Vec<(Entity, Vec2)> {
    let flags = message.get_u8();
    assert_eq!(flags & !(DESPAWNS | CHANGES), 0, "nothing else happens");
    read::<RepliconTick>(&mut message);
    if flags & CHANGES == 0 {
        return Vec::new();
    }
    if flags & DESPAWNS != 0 {
        for _ in 0..read::<usize>(&mut message) {
            entity_from_buf(&mut message).expect("an object");
        }
    }
    read_places(message)
}

/// Objects with the length of their components and, at its end, their index.
fn read_places(mut message: Bytes) -> Vec<(Entity, Vec2)> {
    let mut places = Vec::new();
    while message.has_remaining() {
        let object = entity_from_buf(&mut message).expect("an object");
        let length: usize = read(&mut message);
        let mut components = message.split_to(length);
        components.advance(length - size_of::<Place>());
        let place: Place = read(&mut components);
        places.push((object, Vec2::new(place.x, place.y)));
    }
    places
}

fn read<T: for<'de> Deserialize<'de>>(message: &mut Bytes) -> T {
    from_buf(message).expect("a message as its client reads it")
}
