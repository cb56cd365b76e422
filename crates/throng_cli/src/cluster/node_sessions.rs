//! Clients at gateways, and the players of a node.
//!
//! A client that has logged in gets the object of its player as soon as the player is here. The session of a player that goes to another
//! node ends; the client comes back by the route of its gateway.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;
use throng::outbox::{Outbox, OutboxSettings};
use throng::prelude::*;
use throng::session::{LogoutReason, TransportHandle, disconnect};
use throng_cluster::{
    ClusterPlayer, ClusterPlayers, FrozenPlayer, GATEWAY_PACKET_BYTES_MAX, GatewayPort,
    LinkSettings, NodeDriver, PlayerLogOut, PlayerLoginRefused,
};

/// Makes the players of a running node those of the app, and its clients at gateways those of the server.
pub(super) fn attach(world: &mut World, driver: NodeDriver) -> GatewayPort {
    let handler = world.get_resource_or_init::<TransportHandle>().clone();
    let run = driver.with_node(|node, _| node.run().run);
    let port = GatewayPort::new(run, LinkSettings::default(), Arc::new(handler));
    driver.set_relay(Box::new(port.clone()));
    let mut outbox = world.get_resource_or_init::<OutboxSettings>();
    outbox.mtu_bytes = outbox.mtu_bytes.min(GATEWAY_PACKET_BYTES_MAX);
    world
        .get_resource_or_init::<Outbox>()
        .set_sink(port.sink(None));
    world.resource_mut::<ClusterPlayers>().open(driver);
    port
}

/// Connects sessions and players.
pub(super) struct NodeSessionsPlugin;

/// The sessions of players: their clients, with their entities.
#[derive(Resource, Default)]
struct PlayerClients(BTreeMap<PlayerId, PlayerClient>);

struct PlayerClient {
    client: ClientId,
    entity: Entity,
    is_attached: bool,
}

impl Plugin for NodeSessionsPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<PlayerClients>().add_systems(
            FixedUpdate,
            (follow_sessions, attach_clients)
                .chain()
                .in_set(SimSystems::Think),
        );
    }
}

/// Players log in and out with their sessions.
fn follow_sessions(
    mut logins: MessageReader<LoggedIn>,
    mut logouts: MessageReader<LoggedOut>,
    cluster: Res<ClusterPlayers>,
    mut clients: ResMut<PlayerClients>,
    mut log_outs: MessageWriter<PlayerLogOut>,
) {
    for logout in logouts.read() {
        let known = clients.0.get(&logout.player);
        if known.is_some_and(|known| known.entity == logout.client_entity) {
            clients.0.remove(&logout.player);
            log_outs.write(PlayerLogOut(logout.player));
        }
    }
    for login in logins.read() {
        let client = PlayerClient {
            client: login.client,
            entity: login.client_entity,
            is_attached: false,
        };
        clients.0.insert(login.player, client);
        if cluster.entity(login.player).is_none() {
            cluster.log_in(login.player);
        }
    }
}

/// Gives clients the objects of their players, and ends the sessions of players that are elsewhere.
fn attach_clients(world: &mut World) {
    let mut refused = world.resource_mut::<Messages<PlayerLoginRefused>>();
    let refused: Vec<PlayerId> = refused.drain().map(|refused| refused.player).collect();
    let mut clients = std::mem::take(&mut world.resource_mut::<PlayerClients>().0);
    let mut ended = Vec::new();
    for (&player, client) in &mut clients {
        let entity = world.resource::<ClusterPlayers>().entity(player);
        let entity = entity.filter(|entity| world.get_entity(*entity).is_ok());
        match entity {
            Some(entity) if !client.is_attached => {
                client.is_attached = true;
                world.entity_mut(entity).insert(ControlledBy(client.entity));
            }
            Some(_) => {}
            None if client.is_attached || refused.contains(&player) => ended.push(player),
            None => {}
        }
    }
    for player in ended {
        if let Some(client) = clients.remove(&player) {
            disconnect(world, client.client, LogoutReason::PlayerTaken);
        }
    }
    world.resource_mut::<PlayerClients>().0 = clients;
}

/// The players that are here, and not on their way to another node.
pub(super) fn resting_players(world: &mut World) -> Vec<PlayerId> {
    let mut players = world.query_filtered::<&ClusterPlayer, Without<FrozenPlayer>>();
    players.iter(world).map(|player| player.0).collect()
}
