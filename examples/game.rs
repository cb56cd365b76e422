//! 6 of 9: a complete small game: a login rule, hunters, views, matches, saves, and a client. Start with `game`, then read the systems in
//! its order; `play` is the client's side.
#![allow(clippy::print_stdout, reason = "the output of the example")]

use std::collections::BTreeMap;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::instance::{InstancePlayerReturned, InstanceRules};
use throng::matchmaking::MatchModeSettings;
use throng::outbox::MemorySink;
use throng::prelude::*;
use throng::session::{ConnectionInfo, TransportHandle};
use throng::sync::{Mirror, SaveRequest};
use throng::wire::ClientMessage;
use throng::world::PartyId;

const GATE: Vec2 = Vec2::new(50.0, 30.0);
#[derive(Component, Replicate)]
#[replicate(audience = Audience::OWNER, persist)]
struct Gold(u16); // Stored, and only replicated to its owner.
#[derive(Component)]
struct Wolf(u64); // The first tick in which it may rob again.
#[derive(Resource)]
struct Town(Entity);
#[derive(Resource, Default)]
struct Store(BTreeMap<PlayerId, u16>); // A real game uses a database.

fn game(app: &mut App) {
    let arena = SceneSpec::new("arena", Vec2::splat(20.0));
    let (mode, rules) = (
        MatchModeSettings::groups("duel", 1),
        InstanceRules::with_duration_s(3.0),
    );
    app.add_match_mode(mode, rules, arena).replicate::<Gold>();
    app.init_resource::<Store>();
    let think = (spawn_characters, hunt, queue, reward).chain();
    app.add_systems(FixedUpdate, think.in_set(SimSystems::Think));
    app.add_systems(FixedUpdate, save.in_set(SimSystems::Last));
}

/// The login rule, and the kind of the player's object. A client without an object sees nothing and can do nothing.
fn spawn_characters(
    mut new: MessageReader<LoggedIn>,
    (town, store): (Res<Town>, Res<Store>),
    mut commands: Commands,
) {
    for login in new.read() {
        let player = login.player;
        if player.0 > 2 {
            println!("player {} may not play", player.0);
            continue;
        }
        let gold = store.0.get(&player).copied().unwrap_or(5);
        let at = Position(Vec2::new(10.0, 20.0 + 5.0 * player.0 as f32));
        let place = (InScene(town.0), at, ControlledBy(login.client_entity));
        commands.spawn((Player, player, place, MaxSpeed(6.0), Gold(gold)));
    }
}

/// Wolves chase the first object that they see, and rob it.
fn hunt(
    (tick, views): (Res<SimTick>, Views),
    mut wolves: Query<(Entity, &Position, &mut Wolf)>,
    mut prey: Query<(&Position, &PlayerId, &mut Gold)>,
    mut commands: Commands,
) {
    for (wolf, at, mut bites) in &mut wolves {
        for target in views.seen_by(wolf).take(1) {
            let Ok((to, player, mut gold)) = prey.get_mut(target) else {
                continue;
            };
            if to.0.distance(at.0) > 2.0 {
                commands.entity(wolf).insert(PathRequest::to(to.0));
            } else if tick.0 >= bites.0 {
                (gold.0, bites.0) = (gold.0.saturating_sub(1), tick.0 + 20);
                println!("a wolf robs player {}: {} gold left", player.0, gold.0);
            }
        }
    }
}

/// A player at the gate queues for a duel, as a party of one; the request of a player that already waits is refused.
fn queue(players: Query<(&PlayerId, &Position)>, mut requests: MessageWriter<QueueRequest>) {
    for (&player, _) in players.iter().filter(|(_, at)| at.0 == GATE) {
        let ticket = Ticket::new(PartyId(player.0 as u32), [player]);
        requests.write(QueueRequest { ticket });
    }
}

fn reward(mut home: MessageReader<InstancePlayerReturned>, mut purses: Query<&mut Gold>) {
    for &InstancePlayerReturned { player, entity, .. } in home.read() {
        if let Ok(mut purse) = purses.get_mut(entity) {
            purse.0 += 10;
            println!("player {} earned 10 gold in a duel", player.0);
        }
    }
}

fn save(mut requests: MessageReader<SaveRequest>, mut store: ResMut<Store>) {
    for request in requests.read() {
        if let (Some(player), Some(gold)) = (request.player, request.get::<Gold>()) {
            println!("saved: player {} has {gold} gold", player.0);
            store.0.insert(player, gold);
        }
    }
}

/// The client program of a player, given its mirror: it walks to the gate, and leaves when it is rich.
fn play(mirror: &Mirror) -> Option<ClientMessage<'static>> {
    let (own, _) = mirror.controlled_object()?;
    if mirror.get::<Gold>(own)? >= 10 {
        return Some(ClientMessage::Logout);
    }
    // This client steps from its last position at the server, which makes it slower. A real client predicts its own object, see
    // `predict.rs`.
    let at = mirror.position(own, mirror.tick())?;
    let step = (GATE - at).clamp_length_max(0.3);
    (at != GATE).then(|| ClientMessage::move_to(at + step, 0))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Server::builder().plugins(game).build();
    let sent = MemorySink::default();
    server.set_sink(sent.clone());
    let world = server.world_mut();
    let map = SceneMap::new(TileMap::new(120, 120, false)?.into(), 0.5);
    let town = world
        .spawn((SceneSpec::new("town", map.size_m()), map))
        .id();
    world.insert_resource(Town(town));
    let wolf = (Npc, Wolf(0), Viewer::default(), MaxSpeed(4.0));
    world.spawn((wolf, InScene(town), Position(GATE * 0.7)));
    let mut clients = BTreeMap::new();
    let transport = world.resource::<TransportHandle>().clone();
    for player in 1..=3 {
        let client = transport.connect(ConnectionInfo::player(player).without_loading())?;
        transport.receive(client, &ClientMessage::login(player).to_bytes())?;
        clients.insert(client, Mirror::default());
    }
    for _ in 0..400 {
        server.step(1);
        for (client, packet) in std::mem::take(&mut sent.delivered().packets).iter() {
            clients.entry(client).or_default().receive(packet)?;
        }
        for (&client, mirror) in &clients {
            if let Some(message) = play(mirror) {
                // The request of a client that has disconnected is refused, without effect.
                let _ = transport.receive(client, &message.to_bytes());
            }
        }
    }
    let left = server.world().resource::<Sessions>().len();
    println!("after 20 s, {left} of 3 clients are connected");
    Ok(())
}
