//! Promise: a client that loses its connection while its player is handed to other nodes resumes with the token of a former node, at any
//! gateway.

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_client::ClientEvent;
use throng_cluster::{ClusterNodeId, GatewayId, LocalBus};

use crate::play::client::TestClient;
use crate::play::nodes::{Carrier, Gold, PLAYER};
use crate::play::{Cluster, GATEWAY};

const GOLD: u16 = 300;

/// Three gateways, and a client at the first one. It is returned apart, so it receives nothing any more. Its player has some gold.
fn start() -> (Cluster, TestClient) {
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[GATEWAY]);
    cluster.add_gateway(GatewayId(2));
    cluster.add_gateway(GatewayId(3));
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

fn await_player(cluster: &mut Cluster, node: usize) {
    cluster.until("the other node", |cluster| {
        cluster.nodes[node].player().is_some() && cluster.nodes[1 - node].player().is_none()
    });
}

/// The client resumes at a gateway, on the node of its player. It does not log in, and its player is there once.
fn resume(cluster: &mut Cluster, mut client: TestClient, (gateway, node): (usize, usize)) {
    let other = 1 - node;
    await_player(cluster, node);
    cluster.until("the route", |cluster| {
        let route = cluster.gateways[gateway].gateway.route(PLAYER);
        route.is_some_and(|route| route.node == ClusterNodeId(node as u32))
    });
    client.resume_at(cluster.gateways[gateway].web.address());
    cluster.client = Some(client);
    cluster.until("the resume", |cluster| {
        let mut events = cluster.events.iter();
        events.any(|event| matches!(event, ClientEvent::Resumed { .. }))
    });
    cluster.until_plays(node, GOLD);
    let failed = |event: &ClientEvent| matches!(event, ClientEvent::ResumeFailed);
    assert!(!cluster.events.iter().any(failed), "{:?}", cluster.events);
    assert_eq!(cluster.end(), None);
    let world = cluster.nodes[node].server.world_mut();
    let mut players = world.query_filtered::<(), With<Player>>();
    assert_eq!(players.iter(world).count(), 1);
    assert!(cluster.nodes[other].player().is_none());
    // Its new session is like any other.
    cluster.walk(node, 200);
    cluster.move_player(node, other);
    await_player(cluster, other);
    cluster.until_plays(other, GOLD);
    assert_eq!(cluster.end(), None);
}

#[test]
fn client_resumes_if_its_gateway_dies_before_the_arrival() {
    let (mut cluster, client) = start();
    cluster.move_player(0, 1);
    drop(cluster.gateways.remove(0));
    await_player(&mut cluster, 1);
    assert!(!has_session(&cluster, 1));
    resume(&mut cluster, client, (0, 1));
}

#[test]
fn client_resumes_if_its_gateway_dies_after_the_arrival() {
    let (mut cluster, client) = start();
    cluster.move_player(0, 1);
    // The other node has sent it a token of its own, which never arrives.
    cluster.until("the session", |cluster| has_session(cluster, 1));
    drop(cluster.gateways.remove(0));
    resume(&mut cluster, client, (0, 1));
}

#[test]
fn client_resumes_at_its_gateway_after_a_loss_in_a_hand_off() {
    let (mut cluster, client) = start();
    client.lose_socket();
    cluster.until("the loss", |cluster| {
        cluster.gateways[0].web.stats().lost == 1
    });
    cluster.move_player(0, 1);
    await_player(&mut cluster, 1);
    // Its token is used, so the gateway lets it only resume.
    resume(&mut cluster, client, (0, 1));
}

#[test]
fn client_resumes_if_two_gateways_die_around_a_hand_off() {
    let (mut cluster, mut client) = start();
    let token = |cluster: &Cluster| {
        let world = cluster.nodes[0].server.world();
        world.resource::<Sessions>().resume_tokens(PLAYER).pop()
    };
    let first = token(&cluster);
    drop(cluster.gateways.remove(0));
    client.resume_at(cluster.gateways[0].web.address());
    // It only sends its request. It does not receive the new token.
    client.update(cluster.now).unwrap();
    cluster.until("the resume", |cluster| token(cluster) != first);
    cluster.move_player(0, 1);
    await_player(&mut cluster, 1);
    drop(cluster.gateways.remove(0));
    resume(&mut cluster, client, (0, 1));
}

#[test]
fn client_resumes_after_two_hand_offs_whose_tokens_were_lost() {
    let (mut cluster, client) = start();
    cluster.move_player(0, 1);
    cluster.until("the first session", |cluster| has_session(cluster, 1));
    await_player(&mut cluster, 1);
    cluster.move_player(1, 0);
    await_player(&mut cluster, 0);
    cluster.until("the second session", |cluster| has_session(cluster, 0));
    drop(cluster.gateways.remove(0));
    resume(&mut cluster, client, (0, 0));
}
