//! Promise: a client of a gateway keeps its UDP connection when its player is handed to another node, and when a node dies.
//!
//! With a real NATS server only if the program `nats-server` is there; `.ci/with_nats` installs it.

use std::sync::atomic::Ordering;

use throng::prelude::*;
use throng_client::ClientEvent;
use throng_cluster::{
    ClientMessageChannels, ClusterAnnouncement, ClusterPlayers, ClusterSessionsSettings,
    FrozenPlayer, LocalBus, NatsSettings, PlayerMessageRequest,
};

use crate::patience::RowClock;
use crate::play::nodes::{Carrier, Gold, PLAYER};
use crate::play::{Cluster, GATEWAY};
use crate::servers::NatsServer;

/// Hands the player back and forth between the nodes `moves` times (an even number), and then crashes a node.
fn play(carrier: Carrier, moves: usize) {
    let mut cluster = Cluster::start(carrier, &[GATEWAY]);
    // A node dies, and the other one has to notice it soon.
    cluster.engines.clock = RowClock::start();
    cluster.connect();
    cluster.until_plays(0, 0);
    let mut gold = 0;
    for nth in 0..moves {
        let (from, to) = (nth % 2, (nth + 1) % 2);
        cluster.walk(from, (nth * 37) as u8);
        gold += 1;
        let player = cluster.nodes[from].player().unwrap();
        let world = cluster.nodes[from].server.world_mut();
        world.get_mut::<Gold>(player).unwrap().0 = gold;
        cluster.move_player(from, to);
        // The player keeps walking during the hand-off.
        cluster.until("the other node", |cluster| {
            cluster.nodes[to].player().is_some()
        });
        cluster.until_plays(to, gold);
        cluster.until("the end of the former session", |cluster| {
            let world = cluster.nodes[from].server.world();
            world.resource::<Sessions>().is_empty() && cluster.nodes[from].player().is_none()
        });
    }
    assert_eq!(cluster.gateways[0].gateway.stats().taken_over, moves as u64);
    for node in 0..2 {
        let stats = cluster.stats(node);
        let ends = (stats.ends.moved, stats.connections_lost);
        assert_eq!(ends, (moves as u64 / 2, 0));
    }
    // The node of the player crashes.
    cluster.move_player(0, 1);
    cluster.until_plays(1, gold);
    let world = cluster.nodes[1].server.world_mut();
    drop(world.resource_mut::<ClusterPlayers>().close());
    cluster.until_plays(0, gold);
    cluster.walk(0, 100);
    cluster.until_plays(0, gold);
    let stats = cluster.gateways[0].gateway.stats();
    assert_eq!((stats.connected, stats.taken_over), (1, moves as u64 + 2));
    assert_eq!((stats.lost, stats.stuck, stats.unreadable), (0, 0, 0));
    assert_eq!(cluster.end(), None);
    // The player logs out, and is saved as it is then.
    let player = cluster.nodes[0].player().unwrap();
    let world = cluster.nodes[0].server.world_mut();
    world.get_mut::<Gold>(player).unwrap().0 = gold + 5;
    cluster.client.take().unwrap().leave();
    cluster.until("the end", |cluster| cluster.nodes[0].player().is_none());
    cluster.connect();
    cluster.until_plays(0, gold + 5);
}

#[test]
fn client_keeps_its_connection_between_nodes_and_in_a_crash() {
    play(Carrier::Memory(LocalBus::default()), 20);
}

#[test]
fn client_keeps_its_connection_with_a_nats_server() {
    if let Some(nats) = NatsServer::start(&[]) {
        play(Carrier::Nats(NatsSettings::new(nats.address())), 4);
    }
}

#[test]
fn client_whose_player_is_on_a_node_logs_in_there() {
    // The second node learns from the presence of the gateway that it must send routes to it.
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[]);
    let world = cluster.nodes[1].server.world();
    world.resource::<ClusterPlayers>().log_in(PLAYER);
    cluster.until("the player", |cluster| cluster.nodes[1].player().is_some());
    cluster.connect();
    cluster.until_plays(1, 0);
    let stats = cluster.gateways[0].gateway.stats();
    assert_eq!((stats.connected, stats.taken_over), (1, 0));
}

#[test]
fn player_stands_still_and_stays_connected_during_a_pause() {
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[GATEWAY]);
    cluster.connect();
    cluster.until_plays(0, 0);
    cluster.walk(0, 0);
    let is_frozen = |cluster: &Cluster| {
        let player = cluster.nodes[0].player().unwrap();
        let world = cluster.nodes[0].server.world();
        world.get::<FrozenPlayer>(player).is_some()
    };
    let is_away = cluster.engines.store.is_away.clone();
    is_away.store(true, Ordering::Relaxed);
    cluster.until("the pause", |cluster| is_frozen(cluster));
    // What the client had sent before it knew of the pause is refused.
    let at = cluster.nodes[0].position();
    for _ in 0..100 {
        cluster.round("the pause");
        assert_eq!(cluster.nodes[0].position(), at);
    }
    is_away.store(false, Ordering::Relaxed);
    cluster.until("the end of the pause", |cluster| !is_frozen(cluster));
    cluster.walk(0, 128);
    cluster.until_plays(0, 0);
    let stats = cluster.gateways[0].gateway.stats();
    assert_eq!((stats.connected, stats.taken_over, stats.lost), (1, 0, 0));
    assert_eq!(cluster.end(), None);
}

#[test]
fn login_during_the_log_out_of_its_player_is_not_lost() {
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[GATEWAY]);
    cluster.connect();
    cluster.until_plays(0, 0);
    // The log-out waits for the store.
    let is_away = cluster.engines.store.is_away.clone();
    is_away.store(true, Ordering::Relaxed);
    cluster.client.take().unwrap().leave();
    let has_session = |cluster: &Cluster| {
        let sessions = cluster.nodes[0].server.world().resource::<Sessions>();
        sessions.client_of(PLAYER).is_some()
    };
    cluster.until("the end of the session", |cluster| !has_session(cluster));
    cluster.connect();
    cluster.until("the login", |cluster| has_session(cluster));
    assert!(cluster.nodes[0].player().is_some());
    is_away.store(false, Ordering::Relaxed);
    cluster.until("the log-out", |cluster| {
        let world = cluster.nodes[0].server.world();
        let stats = world.resource::<ClusterPlayers>().stats();
        // A node that pauses on a busy machine may not log it out.
        stats.released == 1 || stats.pauses > 0
    });
    cluster.until_plays(0, 0);
    assert_eq!(cluster.end(), None);
}

#[test]
fn player_without_a_client_is_logged_out() {
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[GATEWAY]);
    let world = cluster.nodes[0].server.world_mut();
    world.insert_resource(ClusterSessionsSettings {
        client_wait_s: 0.5,
        ..ClusterSessionsSettings::default()
    });
    world.resource::<ClusterPlayers>().log_in(PLAYER);
    cluster.until("the player", |cluster| cluster.nodes[0].player().is_some());
    let arrived = cluster.nodes[0].server.tick();
    cluster.until("the end", |cluster| cluster.nodes[0].player().is_none());
    // Half a second at 100 Hz.
    assert!(cluster.nodes[0].server.tick() - arrived >= 50);
}

/// Sends a message to the player of the client and an announcement to all, each on two channels. Clients get only those of channel 1.
fn chat(cluster: &mut Cluster, from: usize, number: u8) {
    for node in &mut cluster.nodes {
        let mut channels = node
            .server
            .world_mut()
            .resource_mut::<ClientMessageChannels>();
        channels.0.insert(1);
    }
    let world = cluster.nodes[from].server.world_mut();
    for (channel, mark) in [(2, 100), (1, 0)] {
        world.write_message(PlayerMessageRequest {
            to: vec![PLAYER, PlayerId(99)],
            channel,
            bytes: vec![b'p', number + mark],
        });
        world.write_message(ClusterAnnouncement {
            channel,
            bytes: vec![b'a', number + mark],
        });
    }
    cluster.events.clear();
    let expected = [vec![b'a', number], vec![b'p', number]];
    cluster.until("chat", |cluster| {
        let announced = cluster.events.iter().filter_map(|event| match event {
            ClientEvent::Announced { bytes, .. } => Some(bytes.clone()),
            _ => None,
        });
        let mut announced: Vec<_> = announced.collect();
        announced.sort();
        assert!(
            announced.iter().all(|bytes| expected.contains(bytes)),
            "{announced:?}"
        );
        announced == expected
    });
}

#[test]
fn client_receives_messages_of_all_nodes() {
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[GATEWAY]);
    cluster.connect();
    cluster.until_plays(0, 0);
    for (number, from) in [(1, 1), (2, 0), (3, 1)] {
        chat(&mut cluster, from, number);
    }
    cluster.move_player(0, 1);
    cluster.until_plays(1, 0);
    for (number, from) in [(4, 0), (5, 1), (6, 0)] {
        chat(&mut cluster, from, number);
    }
    assert_eq!(cluster.gateways[0].gateway.stats().unreadable, 0);
}
