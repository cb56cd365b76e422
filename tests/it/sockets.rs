//! Promise: clients over real sockets are admitted by their token, lose packets and walk; at rest their mirrors equal the server.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::net::bot_client::BotClient;
use throng::net::conditioner::{LossModel, NetworkConditioner};
use throng::net::{
    ClientHandshake, ConnectToken, ConnectionError, EndpointSettings, ListenSettings, SecretKey,
    TokenClaims, UdpClient, UdpListener, UdpStats, listen, stop_listening,
};
use throng::outbox::OutboxSettings;
use throng::prelude::*;

use throng::sim::clock::unix_ms;
use throng::sync::compare_mirror;
use throng::wire::ClientId;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Time between ticks; a tick of the simulation is 50 ms.
const TICK: Duration = Duration::from_millis(10);

const SPEED_M_S: f32 = 4.0;

/// The spawn position of all players.
const START: Vec2 = Vec2::splat(100.0);

/// A token for a server on this machine.
pub fn token(player: u64, server: SocketAddr) -> ConnectToken {
    let claims = TokenClaims::new(player, vec![server], unix_ms() / 1_000);
    ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap()
}

/// A server on whose scene every player that logs in gets an object; and its clients.
struct UdpTestServer {
    server: Server,
    scene: Entity,
    address: SocketAddr,
    clients: Vec<(UdpClient, BotClient)>,
}

impl UdpTestServer {
    fn new(shards: u32) -> Self {
        Self::listen_at(LOOPBACK, shards)
    }

    fn listen_at(address: SocketAddr, shards: u32) -> Self {
        let mut server = Server::builder()
            .configure(move |app| {
                app.insert_resource(OutboxSettings {
                    sender_threads: shards,
                    ..OutboxSettings::default()
                });
            })
            .build();
        let world = server.world_mut();
        let spec = SceneSpec::new("hall", Vec2::splat(200.0));
        let scene = open_scene(world, spec, ()).unwrap();
        let settings = ListenSettings::default();
        let address = listen(world, address, SecretKey::INSECURE, settings, None).unwrap();
        Self {
            server,
            scene,
            address,
            clients: Vec::new(),
        }
    }

    fn connect(&mut self, player: u64, link: NetworkConditioner) {
        let token = token(player, self.address);
        let client = UdpClient::connect(token, EndpointSettings::default()).unwrap();
        let client = client.with_conditioner(link, player);
        let bot = BotClient::new(player, 1);
        self.clients.push((client, bot));
    }

    /// Runs a tick of the server and of all clients. Returns the clients whose connection ended.
    fn step(&mut self) -> Vec<(u64, ConnectionError)> {
        self.server.step(1);
        let world = self.server.world_mut();
        let mut new = world.resource_mut::<Messages<LoggedIn>>();
        let new: Vec<LoggedIn> = new.drain().collect();
        for login in new {
            let place = (InScene(self.scene), Position(START));
            let own = (
                Player,
                login.player,
                ControlledBy(login.client_entity),
                MaxSpeed(SPEED_M_S),
            );
            world.spawn((own, Viewer::default(), place));
        }
        let mut over = Vec::new();
        for (client, bot) in &mut self.clients {
            if matches!(client.connection().is_open(), Ok(true)) {
                bot.update(|message| client.send(message).unwrap());
            }
            if let Err(end) = client.update(|packet| bot.receive(packet)) {
                over.push((bot.player(), end));
            }
        }
        for _ in 0..3 {
            std::thread::sleep(TICK / 3);
            for (client, bot) in &mut self.clients {
                let _ = client.receive(|packet| bot.receive(packet));
            }
        }
        over
    }

    /// Steps until these numbers of clients were admitted and changed their address, without a lost client; waits long enough for a busy
    /// machine.
    fn step_until(&mut self, admitted: u64, moved: u64) {
        for _ in 0..2_400 {
            let stats = self.stats();
            if (stats.clients_accepted, stats.moved) == (admitted, moved) {
                return;
            }
            assert_eq!(self.step(), []);
        }
        panic!(
            "expected {admitted} admitted and {moved} moved: {:?}",
            self.stats()
        );
    }

    fn stats(&self) -> UdpStats {
        self.server.world().resource::<UdpListener>().stats()
    }

    /// Differences between mirrors and the server, at rest.
    fn differences(&self) -> Vec<String> {
        let world = self.server.world();
        let sessions = world.resource::<Sessions>();
        let of = |player| sessions.client_of(PlayerId(player));
        let compared = self.clients.iter().filter_map(|(_, bot)| {
            let player = bot.player();
            let found = match of(player) {
                None => Err("the player has no session".to_owned()),
                Some(client) => compare_mirror(world, client, bot.mirror()),
            };
            let found = found.and(
                bot.mirror_error()
                    .map_or(Ok(()), |fault| Err(fault.to_owned())),
            );
            Some(format!("player {player}: {}", found.err()?))
        });
        compared.collect()
    }
}

fn lossy_network(share: f64) -> NetworkConditioner {
    NetworkConditioner {
        delay_us: 8_000,
        jitter_us: 3_000,
        duplicated: 0.02,
        delayed: 0.02,
        extra_delay_us_max: 20_000,
        ..NetworkConditioner::with_loss(LossModel::Independent(share))
    }
}

#[test]
fn udp_clients_on_bad_networks_mirror_the_server() {
    for shards in [0, 2] {
        let mut rig = UdpTestServer::new(shards);
        (1..=16).for_each(|player| rig.connect(player, lossy_network(0.1)));
        let is_away = |bot: &BotClient| bot.position().is_some_and(|at| at != START);
        for step in 0..2_400 {
            assert_eq!(rig.step(), []);
            if step >= 60 && rig.clients.iter().all(|(_, bot)| is_away(bot)) {
                break;
            }
        }
        for (_, bot) in &rig.clients {
            assert!(is_away(bot));
            assert_eq!(bot.corrections(), 0);
        }
        rig.clients.iter_mut().for_each(|(_, bot)| bot.stop());
        for _ in 0..40 {
            assert_eq!(rig.step(), []);
        }
        assert_eq!(rig.differences(), [""; 0]);
        let stats = rig.stats();
        assert_eq!(
            (stats.clients, stats.clients_accepted, stats.lost),
            (16, 16, 0)
        );
        // Session details contain the round trip time, 8 ms in each direction plus up to a tick, and the bytes sent.
        let world = rig.server.world();
        let socket = world.resource::<UdpListener>();
        let sessions = world.resource::<Sessions>();
        assert_eq!(sessions.len(), 16);
        let mut most_lost = 0.0_f32;
        for (client, _) in sessions.iter() {
            let found = socket.connection_stats(client).unwrap();
            assert!(found.round_trip_us >= 16_000, "{found:?}");
            assert!(found.bytes_sent > 500, "{found:?}");
            most_lost = most_lost.max(found.loss);
        }
        // A single client may not have lost a packet lately.
        assert!(most_lost > 0.0);
        assert_eq!(socket.connection_stats(ClientId(9_999)), None);
        // One client leaves, and the server closes the others.
        rig.clients[0].0.leave();
        for _ in 0..4 {
            rig.step();
        }
        assert_eq!((rig.stats().clients, rig.stats().left), (15, 1));
        let stats = stop_listening(rig.server.world_mut()).unwrap();
        assert_eq!((stats.clients, stats.closed), (0, 15));
        assert!(stats.packets_lost * 20 > stats.packets_sent, "{stats:?}");
    }
}

#[test]
fn address_change_continues_and_restart_replaces_the_session() {
    let mut rig = UdpTestServer::new(0);
    (1..=8).for_each(|player| rig.connect(player, lossy_network(0.1)));
    rig.step_until(8, 0);
    for round in 0..6 {
        for _ in 0..20 {
            assert_eq!(rig.step(), []);
        }
        for (client, _) in rig.clients.iter_mut().skip(round % 2).step_by(2) {
            client.rebind().unwrap();
        }
        rig.step_until(8, 4 * (round as u64 + 1));
    }
    for _ in 0..20 {
        assert_eq!(rig.step(), []);
    }
    let stats = rig.stats();
    assert_eq!(
        (stats.moved, stats.clients_accepted, stats.lost),
        (24, 8, 0)
    );
    assert!(rig.clients.iter().all(|(_, bot)| bot.corrections() == 0));
    // The first client crashes and reconnects before the server detects it.
    drop(rig.clients.remove(0));
    rig.connect(1, lossy_network(0.1));
    for (_, bot) in &mut rig.clients {
        bot.stop();
    }
    for _ in 0..50 {
        assert_eq!(rig.step(), []);
    }
    assert_eq!(rig.differences(), [""; 0]);
    let sessions = rig.server.world().resource::<Sessions>();
    assert_eq!((sessions.len(), rig.stats().clients_accepted), (8, 9));
}

/// The connect request of a token.
fn request(token: ConnectToken) -> Vec<u8> {
    let mut packet = Vec::new();
    ClientHandshake::new(token).update(0, &mut packet);
    packet
}

/// Packets of unauthenticated senders: forged, expired, for another server, and arbitrary bytes.
fn unauthenticated_packets(rig: &UdpTestServer) -> Vec<(&'static str, Vec<u8>)> {
    let elsewhere: SocketAddr = "203.0.113.5:7000".parse().unwrap();
    let mut forged = request(token(90, rig.address));
    forged[500] ^= 1;
    let mut old = request(token(91, rig.address));
    old[22..30].copy_from_slice(&1_u64.to_le_bytes());
    let mut numbered = vec![15, 1, 0, 0, 0];
    numbered.resize(60, 0xaa);
    let mut all = vec![
        ("forged", forged),
        ("expired", old),
        ("for elsewhere", request(token(92, elsewhere))),
        ("nothing", Vec::new()),
        ("numbered", numbered),
        ("long", vec![0; 4_000]),
    ];
    for kind in 0..16 {
        let mut packet = vec![kind | 0x10, 7];
        packet.resize(60 + usize::from(kind) * 80, kind);
        all.push(("arbitrary bytes", packet));
    }
    all
}

#[test]
fn unauthenticated_senders_get_fewer_bytes_than_they_send() {
    let mut rig = UdpTestServer::new(0);
    (1..=4).for_each(|player| rig.connect(player, lossy_network(0.0)));
    for _ in 0..20 {
        assert_eq!(rig.step(), []);
    }
    let before = rig.stats();
    let packets = unauthenticated_packets(&rig);
    let stranger = UdpSocket::bind(LOOPBACK).unwrap();
    stranger.set_nonblocking(true).unwrap();
    for _ in 0..20 {
        for (_, packet) in &packets {
            stranger.send_to(packet, rig.address).unwrap();
        }
        assert_eq!(rig.step(), []);
    }
    let mut buffer = [0; 2_000];
    let answers = std::iter::from_fn(|| stranger.recv_from(&mut buffer).ok());
    let answers: Vec<usize> = answers.map(|(length, _)| length).collect();
    let stats = rig.stats();
    // Only a request of another version, and a packet of an unknown connection, get a reply.
    let replies = stats.versions_refused + stats.resets;
    assert!((1..=40).contains(&replies) && answers.len() as u64 <= replies);
    assert_eq!(stats.answers_out, before.answers_out + replies);
    assert!(answers.iter().all(|&length| length < 60));
    assert_eq!((stats.clients, stats.moved, stats.lost), (4, 0, 0));
    let refused = stats.unauthenticated + stats.refused - before.unauthenticated - before.refused;
    assert!(refused >= 19 * packets.len() as u64, "{stats:?}");
    // A valid token that is sent from many addresses at once: few of them get a reply, and replies are smaller than the requests.
    let request = request(token(7, rig.address));
    let senders: Vec<UdpSocket> = (0..20)
        .map(|_| UdpSocket::bind(LOOPBACK).unwrap())
        .collect();
    for _ in 0..3 {
        for sender in &senders {
            sender.send_to(&request, rig.address).unwrap();
        }
        assert_eq!(rig.step(), []);
    }
    let answered = senders.iter().filter(|sender| {
        sender.set_nonblocking(true).unwrap();
        sender.recv_from(&mut buffer).is_ok()
    });
    // One reply, and one more per second if this takes longer.
    assert!((1..=3).contains(&answered.count()));
    let after = rig.stats();
    let (bytes_in, bytes_out) = (
        after.unauthenticated_bytes_in - stats.unauthenticated_bytes_in,
        after.answer_bytes_out - stats.answer_bytes_out,
    );
    assert!(
        bytes_out * 3 <= bytes_in,
        "{bytes_out} bytes for {bytes_in}"
    );
    for (_, bot) in &mut rig.clients {
        bot.stop();
    }
    for _ in 0..30 {
        assert_eq!(rig.step(), []);
    }
    assert_eq!(rig.differences(), [""; 0]);
}

#[test]
fn client_of_a_restarted_server_learns_it_and_returns() {
    let mut rig = UdpTestServer::new(0);
    rig.connect(1, lossy_network(0.0));
    rig.step_until(1, 0);
    for _ in 0..20 {
        assert_eq!(rig.step(), []);
    }
    // The server ends without notice: packets to the client's old port are lost.
    rig.clients[0].0.rebind().unwrap();
    let (address, clients) = (rig.address, std::mem::take(&mut rig.clients));
    drop(rig);
    let mut rig = UdpTestServer::listen_at(address, 0);
    rig.clients = clients;
    let mut ends = Vec::new();
    for _ in 0..2_400 {
        ends = rig.step();
        if !ends.is_empty() {
            break;
        }
    }
    assert_eq!(ends, [(1, ConnectionError::Restarted)]);
    assert!(rig.stats().resets > 0);
    rig.clients.clear();
    rig.connect(1, lossy_network(0.0));
    rig.step_until(1, 0);
}
