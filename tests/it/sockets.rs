//! Promise: clients over real sockets are admitted by their token, lose packets and walk; at rest their mirrors equal the server.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::net::bot_client::BotClient;
use throng::net::conditioner::{LossModel, NetworkConditioner};
use throng::net::{
    ClientHandshake, ConnectToken, ConnectionError, ConnectionStats, EndpointSettings,
    ListenSettings, SecretKey, TokenClaims, UdpClient, UdpListener, UdpStats, listen,
    stop_listening,
};
use throng::outbox::OutboxSettings;
use throng::prelude::*;

use throng::sim::clock::unix_ms;
use throng::sync::compare_mirror;
use throng::wire::ClientId;

use crate::harness::be_patient;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Time between ticks; a tick of the simulation is 50 ms.
const TICK: Duration = Duration::from_millis(10);

/// Steps in which anything that a test waits for has happened, on a busy machine, too.
const STEPS_MAX: u32 = 6_000;

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
                be_patient(app);
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

    /// Steps, without a lost client, until a condition holds; `what` describes it in the error message.
    fn step_until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..STEPS_MAX {
            if is_so(self) {
                return;
            }
            assert_eq!(self.step(), []);
        }
        let differences = self.differences();
        panic!("{what}: {:?} {differences:?}", self.stats());
    }

    /// Steps until these numbers of clients were admitted and changed their address. A client that waits too long for a late reply is
    /// admitted twice.
    fn step_until_admitted(&mut self, admitted: u64, moved: u64) {
        self.step_until(&format!("{admitted} admitted, {moved} moved"), |rig| {
            let stats = rig.stats();
            stats.clients_accepted >= admitted && stats.moved == moved
        });
    }

    /// Stops all clients, and steps until every player has a session and all mirrors equal the server.
    fn stop_until_equal(&mut self) {
        for (_, bot) in &mut self.clients {
            bot.stop();
        }
        self.step_until("all mirrors equal the server", |rig| {
            let is_handled = |bot: &BotClient| bot.unhandled_inputs() == 0;
            rig.clients.iter().all(|(_, bot)| is_handled(bot)) && rig.differences().is_empty()
        });
    }

    fn stats(&self) -> UdpStats {
        self.server.world().resource::<UdpListener>().stats()
    }

    /// The statistics of all connections that have been measured.
    fn connection_stats(&self) -> Vec<ConnectionStats> {
        let world = self.server.world();
        let socket = world.resource::<UdpListener>();
        let sessions = world.resource::<Sessions>().iter();
        let stats = sessions.filter_map(|(client, _)| socket.connection_stats(client));
        stats.filter(|stats| stats.round_trip_us > 0).collect()
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
        for step in 0..STEPS_MAX {
            assert_eq!(rig.step(), []);
            if step >= 60 && rig.clients.iter().all(|(_, bot)| is_away(bot)) {
                break;
            }
        }
        for (_, bot) in &rig.clients {
            assert!(is_away(bot));
            assert_eq!(bot.corrections(), 0);
        }
        rig.stop_until_equal();
        let stats = rig.stats();
        assert!(stats.clients_accepted >= 16);
        assert_eq!((stats.clients, stats.lost), (16, 0));
        assert_eq!(rig.server.world().resource::<Sessions>().len(), 16);
        rig.step_until("all connections are measured", |rig| {
            let stats = rig.connection_stats();
            // A single client may not have lost a packet lately.
            stats.len() == 16 && stats.iter().any(|stats| stats.loss > 0.0)
        });
        for found in rig.connection_stats() {
            // 8 ms in each direction plus up to a tick.
            assert!(found.round_trip_us >= 16_000, "{found:?}");
            assert!(found.bytes_sent > 500, "{found:?}");
        }
        let socket = rig.server.world().resource::<UdpListener>();
        assert_eq!(socket.connection_stats(ClientId(9_999)), None);
        // One client leaves, and the server closes the others.
        rig.clients[0].0.leave();
        for _ in 0..STEPS_MAX {
            if rig.stats().left == 1 {
                break;
            }
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
    rig.step_until_admitted(8, 0);
    for round in 0..6 {
        for _ in 0..20 {
            assert_eq!(rig.step(), []);
        }
        for (client, _) in rig.clients.iter_mut().skip(round % 2).step_by(2) {
            client.rebind().unwrap();
        }
        rig.step_until_admitted(8, 4 * (round as u64 + 1));
    }
    for _ in 0..20 {
        assert_eq!(rig.step(), []);
    }
    let stats = rig.stats();
    assert_eq!((stats.moved, stats.clients, stats.lost), (24, 8, 0));
    let admitted = stats.clients_accepted;
    assert!(rig.clients.iter().all(|(_, bot)| bot.corrections() == 0));
    // The first client crashes and reconnects before the server detects it.
    drop(rig.clients.remove(0));
    rig.connect(1, lossy_network(0.1));
    rig.step_until_admitted(admitted + 1, 24);
    rig.stop_until_equal();
    assert_eq!(rig.server.world().resource::<Sessions>().len(), 8);
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
    rig.step_until_admitted(4, 0);
    let before = rig.stats();
    let packets = unauthenticated_packets(&rig);
    let stranger = UdpSocket::bind(LOOPBACK).unwrap();
    stranger.set_nonblocking(true).unwrap();
    let refused = |stats: UdpStats| stats.unauthenticated - before.unauthenticated;
    let replies = |stats: UdpStats| stats.versions_refused + stats.resets;
    for round in 1..=20 {
        for (_, packet) in &packets {
            stranger.send_to(packet, rig.address).unwrap();
        }
        // A busy router has time for them, so that its socket's buffer does not overflow.
        rig.step_until("all packets are refused", |rig| {
            let stats = rig.stats();
            refused(stats) == round * packets.len() as u64
                && stats.answers_out == before.answers_out + replies(stats)
        });
    }
    let mut buffer = [0; 2_000];
    let answers = std::iter::from_fn(|| stranger.recv_from(&mut buffer).ok());
    let answers: Vec<usize> = answers.map(|(length, _)| length).collect();
    let stats = rig.stats();
    // Only a request of another version, and a packet of an unknown connection, get a reply.
    let replies = replies(stats);
    assert!((1..=40).contains(&replies) && answers.len() as u64 <= replies);
    assert!(answers.iter().all(|&length| length < 60));
    assert_eq!((stats.clients, stats.moved, stats.lost), (4, 0, 0));
    // A valid token that is sent from many addresses at once: few of them get a reply, and replies are smaller than the requests.
    let request = request(token(7, rig.address));
    let senders: Vec<UdpSocket> = (0..20)
        .map(|_| UdpSocket::bind(LOOPBACK).unwrap())
        .collect();
    let started = Instant::now();
    for round in 1..=3 {
        for sender in &senders {
            sender.send_to(&request, rig.address).unwrap();
        }
        let sent = round * (senders.len() * request.len()) as u64;
        rig.step_until("all requests are handled", |rig| {
            let received = rig.stats().unauthenticated_bytes_in;
            received == stats.unauthenticated_bytes_in + sent
        });
    }
    let answered = senders.iter().filter(|sender| {
        sender.set_nonblocking(true).unwrap();
        sender.recv_from(&mut buffer).is_ok()
    });
    // One reply, and one more per second if this takes longer.
    let answers_max = 3 + started.elapsed().as_secs() as usize;
    assert!((1..=answers_max).contains(&answered.count()));
    let after = rig.stats();
    let (bytes_in, bytes_out) = (
        after.unauthenticated_bytes_in - stats.unauthenticated_bytes_in,
        after.answer_bytes_out - stats.answer_bytes_out,
    );
    assert!(
        bytes_out * 3 <= bytes_in,
        "{bytes_out} bytes for {bytes_in}"
    );
    rig.stop_until_equal();
}

#[test]
fn client_of_a_restarted_server_learns_it_and_returns() {
    let mut rig = UdpTestServer::new(0);
    rig.connect(1, lossy_network(0.0));
    rig.step_until_admitted(1, 0);
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
    for _ in 0..STEPS_MAX {
        ends = rig.step();
        if !ends.is_empty() {
            break;
        }
    }
    assert_eq!(ends, [(1, ConnectionError::Restarted)]);
    assert!(rig.stats().resets > 0);
    rig.clients.clear();
    rig.connect(1, lossy_network(0.0));
    rig.step_until_admitted(1, 0);
}
