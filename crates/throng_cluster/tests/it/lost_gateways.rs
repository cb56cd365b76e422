//! Promise: a client that loses its connection while its player is handed to another node resumes with the token of the former node, at
//! any gateway.

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_client::ClientEvent;
use throng_cluster::{ClusterNodeId, GatewayId, LocalBus};

use crate::play::client::TestClient;
use crate::play::nodes::{Carrier, Gold, PLAYER};
use crate::play::{Cluster, GATEWAY};

const GOLD: u16 = 300;

/// Two gateways, and a client at the first one. It is returned apart, so it receives nothing any more. Its player has some gold.
fn start() -> (Cluster, TestClient) {
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[GATEWAY]);
    cluster.add_gateway(GatewayId(2));
    cluster.connect_web();
    cluster.until_plays(0, 0);
    cluster.walk(0, 50);
    let player = cluster.nodes[0].player().unwrap();
    let world = cluster.nodes[0].server.world_mut();
    world.get_mut::<Gold>(player).unwrap().0 = GOLD;
    let client = cluster.client.take().unwrap();
    cluster.events.clear();
    (cluster, client)
}

fn has_session(cluster: &Cluster, node: usize) -> bool {
    let world = cluster.nodes[node].server.world();
    world.resource::<Sessions>().client_of(PLAYER).is_some()
}

fn await_player_on_second(cluster: &mut Cluster) {
    cluster.until("the other node", |cluster| {
        cluster.nodes[1].player().is_some() && cluster.nodes[0].player().is_none()
    });
}

/// The client resumes at a gateway, on the second node. It does not log in, and its player is there once.
fn resume(cluster: &mut Cluster, mut client: TestClient, gateway: usize) {
    cluster.until("the route", |cluster| {
        let route = cluster.gateways[gateway].gateway.route(PLAYER);
        route.is_some_and(|route| route.node == ClusterNodeId(1))
    });
    client.resume_at(cluster.gateways[gateway].web.address());
    cluster.client = Some(client);
    cluster.until("the resume", |cluster| {
        let mut events = cluster.events.iter();
        events.any(|event| matches!(event, ClientEvent::Resumed { .. }))
    });
    cluster.until_plays(1, GOLD);
    let failed = |event: &ClientEvent| matches!(event, ClientEvent::ResumeFailed);
    assert!(!cluster.events.iter().any(failed), "{:?}", cluster.events);
    assert_eq!(cluster.end(), None);
    let world = cluster.nodes[1].server.world_mut();
    let mut players = world.query_filtered::<(), With<Player>>();
    assert_eq!(players.iter(world).count(), 1);
    assert!(cluster.nodes[0].player().is_none());
    // Its new session is like any other.
    cluster.walk(1, 200);
    cluster.move_player(1, 0);
    cluster.until("the way back", |cluster| {
        cluster.nodes[0].player().is_some()
    });
    cluster.until_plays(0, GOLD);
    assert_eq!(cluster.end(), None);
}

#[test]
fn client_resumes_if_its_gateway_dies_before_the_arrival() {
    let (mut cluster, client) = start();
    cluster.move_player(0, 1);
    drop(cluster.gateways.remove(0));
    await_player_on_second(&mut cluster);
    assert!(!has_session(&cluster, 1));
    resume(&mut cluster, client, 0);
}

#[test]
fn client_resumes_if_its_gateway_dies_after_the_arrival() {
    let (mut cluster, client) = start();
    cluster.move_player(0, 1);
    // The other node has sent it a token of its own, which never arrives.
    cluster.until("the session", |cluster| has_session(cluster, 1));
    drop(cluster.gateways.remove(0));
    await_player_on_second(&mut cluster);
    resume(&mut cluster, client, 0);
}

#[test]
fn client_resumes_at_its_gateway_after_a_loss_in_a_hand_off() {
    let (mut cluster, client) = start();
    client.lose_socket();
    cluster.until("the loss", |cluster| {
        cluster.gateways[0].web.stats().lost == 1
    });
    cluster.move_player(0, 1);
    await_player_on_second(&mut cluster);
    // Its token is used, so the gateway lets it only resume.
    resume(&mut cluster, client, 0);
}
