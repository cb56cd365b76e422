//! Unmodified clients play on a throng server that is behind gateways and a real NATS server, and come back by another gateway.
//!
//! Without the program `nats-server` nothing is tested; `.ci/with_nats` installs it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::prelude::*;
use throng::sync::compare_mirror;
use throng_client::{Client, ClientSettings};
use throng_cluster::{
    BusPeer, ClientGateway, ClusterKey, ClusterNodeId, ClusterStore, DriverSettings, GatewayId,
    GatewayPort, GatewaySettings, LinkSettings, MessageBus, NatsSettings, NodeDriver, SharedRows,
    attach_node,
};
use throng_core::clock::{Stopwatch, unix_ms};
use throng_net::{
    ConnectToken, PROTOCOL_ID, SecretKey, ServerHandshake, ServerHandshakeSettings, ServerSocket,
    TokenClaims, UdpServer, UdpSettings,
};

use crate::patience::{RowClock, connect_nats};
use crate::servers::NatsServer;

/// Many more ticks than any test needs.
const TICKS_MAX: u32 = 30_000;

const START: Vec2 = Vec2::splat(10.0);

/// No link is lost because the machine was busy.
fn links() -> LinkSettings {
    LinkSettings {
        silence_max_ms: 60_000,
        ..LinkSettings::default()
    }
}

fn bus(nats: &NatsServer, own: BusPeer, run: u64) -> MessageBus {
    let transport = connect_nats(&NatsSettings::new(nats.address()), own);
    MessageBus::new(Box::new(transport), ClusterKey::new(&[7; 32]), own, run)
}

/// A node with a throng server, in which every player who logs in starts at the same place.
struct Node {
    server: Server,
    scene: Entity,
    port: GatewayPort,
    rows: SharedRows,
    clock: RowClock,
    now: Instant,
}

impl Node {
    fn start(nats: &NatsServer) -> Self {
        let rows = SharedRows::default();
        let open = || Box::new(rows.clone()) as Box<dyn ClusterStore>;
        let driver = NodeDriver::start(&DriverSettings::new("n0"), open, |run| {
            Ok(bus(nats, BusPeer::Node(run.node), run.run))
        });
        let driver = driver.unwrap();
        let mut server = Server::builder().tick_hz(100.0).build();
        let world = server.world_mut();
        let scene = open_scene(world, SceneSpec::new("hall", Vec2::splat(40.0)), ()).unwrap();
        let port = attach_node(world, driver, links(), None);
        Self {
            server,
            scene,
            port,
            rows,
            clock: RowClock::patient(),
            now: Instant::now(),
        }
    }

    fn tick(&mut self) {
        self.clock.advance(&self.rows);
        self.server.step(1);
        self.now += Duration::from_millis(10);
        let world = self.server.world_mut();
        let new: Vec<LoggedIn> = world.resource_mut::<Messages<LoggedIn>>().drain().collect();
        for login in new {
            let own = (
                Player,
                login.player,
                ControlledBy(login.client_entity),
                MaxSpeed(3.0),
            );
            let place = (InScene(self.scene), Position(START), Viewer::default());
            world.spawn((own, place));
        }
        // Gives the threads of the transport time.
        thread::park_timeout(Duration::from_millis(2));
    }

    fn until(
        &mut self,
        what: &str,
        clients: &mut [Client],
        holds: impl Fn(&Self, &[Client]) -> bool,
    ) {
        for _ in 0..TICKS_MAX {
            if holds(self, clients) {
                return;
            }
            self.tick();
            for client in &mut *clients {
                let updated = client.update(self.now);
                assert!(updated.is_ok(), "{what}: {updated:?}");
            }
        }
        panic!("{what}: not after {TICKS_MAX} ticks");
    }

    /// Whether the mirrors of all clients equal the server.
    fn is_mirrored(&self, clients: &[Client]) -> bool {
        let world = self.server.world();
        let sessions = world.resource::<Sessions>();
        clients.iter().zip(1..).all(|(client, player)| {
            let of = sessions.client_of(PlayerId(player));
            of.is_some_and(|of| compare_mirror(world, of, client.mirror()).is_ok())
        })
    }
}

struct Gateway {
    gateway: ClientGateway,
    udp: UdpServer,
}

impl Gateway {
    fn start(nats: &NatsServer, id: u32, node: &mut Node) -> Self {
        let settings = GatewaySettings {
            login_nodes: BTreeSet::from([ClusterNodeId(0)]),
            links: links(),
            ..GatewaySettings::default()
        };
        let run = unix_ms();
        let bus = bus(nats, BusPeer::Gateway(GatewayId(id)), run);
        let mut gateway = ClientGateway::new(settings, bus, run);
        let socket = ServerSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let gate = ServerHandshakeSettings::new(PROTOCOL_ID, vec![socket.address()]);
        let gate = ServerHandshake::new(gate, SecretKey::INSECURE).unwrap();
        let udp = UdpServer::start(socket, UdpSettings::default(), gate, &gateway.handler());
        let udp = udp.unwrap();
        gateway.start(Box::new(udp.sink())).unwrap();
        node.until("link", &mut [], |_, _| gateway.is_linked(ClusterNodeId(0)));
        Self { gateway, udp }
    }
}

/// Two clients whose tokens name all gateways, in this order.
fn clients_of(gateways: &[Gateway]) -> Vec<Client> {
    let addresses: Vec<SocketAddr> = gateways.iter().map(|one| one.udp.address()).collect();
    let connect = |player| {
        let now_s = unix_ms() / 1_000;
        let claims = TokenClaims {
            timeout_s: 30,
            expires_s: now_s + 600,
            ..TokenClaims::new(player, addresses.clone(), now_s)
        };
        let token = ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap();
        Client::connect(&token.to_bytes(), ClientSettings::default()).unwrap()
    };
    (1..=2).map(connect).collect()
}

#[test]
fn clients_play_at_gateways_and_come_back_by_another_one() {
    let Some(mut nats) = NatsServer::start(&[]) else {
        return;
    };
    let mut node = Node::start(&nats);
    let mut gateways = vec![
        Gateway::start(&nats, 1, &mut node),
        Gateway::start(&nats, 2, &mut node),
    ];
    let mut clients = clients_of(&gateways);
    node.until("login", &mut clients, |node, clients| {
        let have_objects = |client: &Client| client.mirror().controlled_object().is_some();
        clients.iter().all(have_objects) && node.is_mirrored(clients)
    });
    // The NATS server is away for 4.5 s, and the gateways still send packets to the clients.
    nats.kill();
    let away = Stopwatch::start();
    node.until("while it is away", &mut clients, |_, clients| {
        let hears = |client: &Client| client.silence() < Duration::from_secs(4);
        away.elapsed() > Duration::from_millis(4_500) && clients.iter().all(hears)
    });
    nats.restart();
    let world = node.server.world_mut();
    let mut players = world.query_filtered::<&mut Position, With<Player>>();
    for mut position in players.iter_mut(world) {
        position.0 += Vec2::new(5.0, 0.0);
    }
    node.until("after the restart", &mut clients, |node, clients| {
        node.is_mirrored(clients)
    });
    assert_eq!(node.port.stats().connected, 2);
    // Their logins are among them.
    assert!(node.port.input_times().count() >= 2);
    // Their gateway goes. They come back by the other one, to the same objects.
    let objects = |clients: &[Client]| -> Vec<_> {
        let own = clients
            .iter()
            .map(|client| client.mirror().controlled_object());
        own.collect()
    };
    let before = objects(&clients);
    let lost = gateways.remove(0);
    assert_eq!(lost.gateway.stats().connected, 2);
    drop(lost);
    for client in &mut clients {
        for _ in 0..TICKS_MAX {
            node.tick();
            if client.update(node.now).is_err() {
                break;
            }
        }
        client.resume().unwrap();
    }
    node.until("resume", &mut clients, |node, clients| {
        gateways[0].gateway.stats().connected == 2 && node.is_mirrored(clients)
    });
    assert_eq!(objects(&clients), before);
    let world = node.server.world_mut();
    assert_eq!(
        world
            .query_filtered::<(), With<Player>>()
            .iter(world)
            .count(),
        2
    );
}
