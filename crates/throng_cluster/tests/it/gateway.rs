//! Clients over real UDP sockets at a gateway, whose node is behind a real NATS server, while server, node or gateway die.
//!
//! Without the program `nats-server` nothing is tested; `.ci/with_nats` installs it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use throng_cluster::{
    BusPeer, ClientGateway, ClusterKey, ClusterNodeId, ClusterStore, DriverSettings,
    DriverStartError, GatewayId, GatewayPort, GatewaySettings, GatewaySink, LinkSettings,
    MessageBus, NatsSettings, NodeDriver, SharedRows,
};
use throng_core::clock::{Stopwatch, unix_ms};
use throng_core::ids::PlayerId;
use throng_net::inbox::{ConnectionInfo, DisconnectReason};
use throng_net::outbox::PacketSink;
use throng_net::{
    ConnectToken, ConnectionHandler, EndpointSettings, PROTOCOL_ID, SecretKey, ServerHandshake,
    ServerHandshakeSettings, ServerSocket, TokenClaims, UdpClient, UdpServer, UdpSettings,
};
use throng_protocol::wire::{Channel, ClientId};

use crate::patience::{RowClock, connect_nats};
use crate::servers::NatsServer;

/// Rounds of 2 ms or more after which a condition counts as never met.
const ROUNDS_MAX: u32 = 30_000;

const GATEWAY: GatewayId = GatewayId(1);

/// The silence after which a link is lost, in a test in which one is lost.
const SHORT_SILENCE_MS: u64 = 2_000;

/// The same, so long that no link is lost because the machine is busy.
const LONG_SILENCE_MS: u64 = 60_000;

/// A server that records what happens.
#[derive(Default)]
struct Recorder {
    players: Mutex<Vec<Option<PlayerId>>>,
    inputs: Mutex<Vec<(ClientId, Vec<u8>)>>,
    ended: Mutex<Vec<(ClientId, DisconnectReason)>>,
}

impl ConnectionHandler for Recorder {
    fn connect(&self, connected: ConnectionInfo) -> Option<ClientId> {
        let mut players = self.players.lock().unwrap();
        assert!(connected.address.is_some());
        players.push(connected.claims.player);
        // Other numbers than those of the gateway.
        Some(ClientId(players.len() as u32 + 100))
    }

    fn receive(&self, client: ClientId, message: &[u8]) {
        self.inputs.lock().unwrap().push((client, message.to_vec()));
    }

    fn disconnect(&self, client: ClientId, reason: DisconnectReason) {
        self.ended.lock().unwrap().push((client, reason));
    }
}

fn links(silence_max_ms: u64) -> LinkSettings {
    LinkSettings {
        silence_max_ms,
        client_bytes_max: 100_000,
        ..LinkSettings::default()
    }
}

fn bus(nats: &NatsServer, own: BusPeer, run: u64) -> MessageBus {
    let transport = connect_nats(&NatsSettings::new(nats.address()), own);
    MessageBus::new(Box::new(transport), ClusterKey::new(&[7; 32]), own, run)
}

struct Node {
    driver: NodeDriver,
    recorder: Arc<Recorder>,
    port: GatewayPort,
    sink: GatewaySink,
}

impl Node {
    fn start(nats: &NatsServer, rows: &SharedRows, name: &str, silence_max_ms: u64) -> Self {
        let mut settings = DriverSettings::new(name);
        settings.gateways = vec![GATEWAY];
        let open = || Box::new(rows.clone()) as Box<dyn ClusterStore>;
        let driver = NodeDriver::start(&settings, open, |run| {
            Ok::<_, DriverStartError>(bus(nats, BusPeer::Node(run.node), run.run))
        });
        let driver = driver.unwrap();
        let recorder = Arc::new(Recorder::default());
        let run = driver.with_node(|node, _| node.run().run);
        let port = GatewayPort::new(run, links(silence_max_ms), recorder.clone());
        driver.set_relay(Box::new(port.clone()));
        let sink = port.sink(None);
        Self {
            driver,
            recorder,
            port,
            sink,
        }
    }

    /// Sends reliable packets with these numbers, and an unreliable one after each.
    fn send(&mut self, client: ClientId, numbers: std::ops::Range<u32>, padding: usize) {
        for number in numbers {
            let mut packet = vec![0; 8];
            packet.extend_from_slice(&number.to_le_bytes());
            packet.resize(packet.len() + padding, 0);
            self.sink.deliver(client, Channel::Reliable, &packet);
            self.sink.deliver(client, Channel::Unreliable, &[1; 9]);
        }
        self.sink.flush();
    }
}

struct Gateway {
    gateway: ClientGateway,
    udp: UdpServer,
}

impl Gateway {
    fn start(nats: &NatsServer, login_node: u32, silence_max_ms: u64) -> Self {
        let settings = GatewaySettings {
            login_nodes: BTreeSet::from([ClusterNodeId(login_node)]),
            links: links(silence_max_ms),
            node_wait_ms: 100,
            ..GatewaySettings::default()
        };
        Self::start_as(nats, GATEWAY, settings)
    }

    fn start_as(nats: &NatsServer, id: GatewayId, settings: GatewaySettings) -> Self {
        let run = unix_ms();
        let bus = bus(nats, BusPeer::Gateway(id), run);
        let mut gateway = ClientGateway::new(settings, bus, run);
        let socket = ServerSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let gate = ServerHandshakeSettings::new(PROTOCOL_ID, vec![socket.address()]);
        let gate = ServerHandshake::new(gate, SecretKey::INSECURE).unwrap();
        let handler = gateway.handler();
        let udp = UdpServer::start(socket, UdpSettings::default(), gate, &handler).unwrap();
        gateway.start(Box::new(udp.sink())).unwrap();
        Self { gateway, udp }
    }

    fn client(&self, player: u64) -> Client {
        let claims = TokenClaims::new(player, vec![self.udp.address()], unix_ms() / 1_000);
        let token = ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap();
        Client {
            udp: UdpClient::connect(token, EndpointSettings::default()).unwrap(),
            reliable: Vec::new(),
            unreliable: 0,
            is_over: false,
        }
    }
}

struct Client {
    udp: UdpClient,
    /// Numbers of the reliable packets.
    reliable: Vec<u32>,
    unreliable: usize,
    is_over: bool,
}

impl Client {
    fn update(&mut self) {
        let Self {
            udp,
            reliable,
            unreliable,
            ..
        } = self;
        let ended = udp.update(|packet| {
            if packet.len() == 9 {
                *unreliable += 1;
            } else {
                let number = packet[8..].first_chunk().unwrap();
                reliable.push(u32::from_le_bytes(*number));
            }
        });
        self.is_over |= ended.is_err();
    }

    fn is_open(&self) -> bool {
        matches!(self.udp.connection().is_open(), Ok(true))
    }
}

/// Updates the client until a condition holds. The clock of the rows goes on.
struct Timeline {
    clock: RowClock,
    rows: SharedRows,
}

impl Timeline {
    fn new() -> Self {
        Self {
            clock: RowClock::patient(),
            rows: SharedRows::default(),
        }
    }

    fn until(
        &self,
        what: &str,
        client: &mut Option<&mut Client>,
        mut condition: impl FnMut(&mut Option<&mut Client>) -> bool,
    ) {
        let mut rounds = 0;
        loop {
            self.clock.advance(&self.rows);
            if let Some(client) = client {
                client.update();
            }
            if condition(client) {
                return;
            }
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "{what}");
            thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// A client that is connected through the gateway, and its id at the node.
    fn connected(
        &self,
        gateway: &Gateway,
        node: &Node,
        nth: u32,
        player: u64,
    ) -> (Client, ClientId) {
        let node_id = ClusterNodeId(nth);
        self.until("link", &mut None, |_| gateway.gateway.is_linked(node_id));
        let mut client = gateway.client(player);
        self.until("connection", &mut Some(&mut client), |client| {
            client.as_ref().unwrap().is_open() && !node.recorder.players.lock().unwrap().is_empty()
        });
        let players = node.recorder.players.lock().unwrap().clone();
        assert_eq!(players, [Some(PlayerId(player))]);
        (client, ClientId(101))
    }
}

#[test]
fn client_at_a_gateway_misses_nothing_while_the_bus_restarts() {
    let Some(mut nats) = NatsServer::start(&[]) else {
        return;
    };
    let timeline = Timeline::new();
    let mut node = Node::start(&nats, &timeline.rows, "n0", LONG_SILENCE_MS);
    let gateway = Gateway::start(&nats, 0, LONG_SILENCE_MS);
    let (mut client, id) = timeline.connected(&gateway, &node, 0, 7);
    assert!(node.port.has_client(id));
    let mut sent = 0;
    for round in 0..3_u32 {
        node.send(id, sent..sent + 100, 50);
        sent += 100;
        for nth in 0..20_u8 {
            client.udp.send(&[round as u8, nth]).unwrap();
        }
        if round == 1 {
            nats.kill();
            // Both ends go on, and wait for nothing.
            node.send(id, sent..sent + 100, 50);
            sent += 100;
            nats.restart();
        }
        let inputs = 20 * (round as usize + 1);
        timeline.until("all messages", &mut Some(&mut client), |client| {
            let client = client.as_ref().unwrap();
            assert!(!client.is_over, "the client is disconnected");
            client.reliable.len() == sent as usize
                && node.recorder.inputs.lock().unwrap().len() == inputs
        });
    }
    assert_eq!(client.reliable, Vec::from_iter(0..sent));
    assert!(client.unreliable > 0);
    let expected = (0..3).flat_map(|round| (0..20).map(move |nth| (id, vec![round, nth])));
    assert_eq!(
        *node.recorder.inputs.lock().unwrap(),
        Vec::from_iter(expected)
    );
    assert_eq!(*node.recorder.ended.lock().unwrap(), []);
    // The client leaves, and the node learns it.
    drop(client);
    gateway.udp.stop();
    timeline.until("the end", &mut None, |_| {
        !node.recorder.ended.lock().unwrap().is_empty()
    });
}

#[test]
fn dead_node_closes_its_clients_and_dead_gateway_loses_them() {
    let Some(nats) = NatsServer::start(&[]) else {
        return;
    };
    let timeline = Timeline::new();
    let node = Node::start(&nats, &timeline.rows, "n0", SHORT_SILENCE_MS);
    let gateway = Gateway::start(&nats, 0, SHORT_SILENCE_MS);
    let (mut client, _) = timeline.connected(&gateway, &node, 0, 7);
    // The node dies; the gateway notices that inputs are not acknowledged.
    drop(node.driver);
    client.udp.send(&[1]).unwrap();
    timeline.until("the end of the client", &mut Some(&mut client), |client| {
        client.as_ref().unwrap().is_over
    });
    assert_eq!(gateway.gateway.stats().lost, 1);
    // A new process of the node; then the gateway dies.
    let node = Node::start(&nats, &timeline.rows, "n1", SHORT_SILENCE_MS);
    let gateway = Gateway::start(&nats, 1, SHORT_SILENCE_MS);
    let (_client, id) = timeline.connected(&gateway, &node, 1, 8);
    drop(gateway);
    timeline.until("the loss of the client", &mut None, |_| {
        !node.recorder.ended.lock().unwrap().is_empty()
    });
    assert_eq!(
        *node.recorder.ended.lock().unwrap(),
        [(id, DisconnectReason::Lost)]
    );
    assert_eq!(node.port.stats().lost, 1);
}

#[test]
fn client_that_is_behind_is_closed_and_the_node_goes_on() {
    let Some(mut nats) = NatsServer::start(&[]) else {
        return;
    };
    let timeline = Timeline::new();
    let mut node = Node::start(&nats, &timeline.rows, "n0", LONG_SILENCE_MS);
    let gateway = Gateway::start(&nats, 0, LONG_SILENCE_MS);
    let (mut client, id) = timeline.connected(&gateway, &node, 0, 7);
    nats.kill();
    // More than 100,000 bytes wait for its acknowledgement.
    node.send(id, 0..200, 1_000);
    assert_eq!(
        *node.recorder.ended.lock().unwrap(),
        [(id, DisconnectReason::Lost)]
    );
    assert_eq!(node.port.stats().behind, 1);
    assert!(!node.port.has_client(id));
    node.send(id, 200..300, 1_000);
    nats.restart();
    timeline.until("the end of the client", &mut Some(&mut client), |client| {
        client.as_ref().unwrap().is_over
    });
    assert_eq!(gateway.gateway.stats().lost, 0);
    // Another client is served as before.
    let mut other = gateway.client(8);
    timeline.until("another client", &mut Some(&mut other), |_| {
        node.recorder.players.lock().unwrap().len() == 2
    });
    node.send(ClientId(102), 0..10, 0);
    timeline.until("its packets", &mut Some(&mut other), |client| {
        client.as_ref().unwrap().reliable == Vec::from_iter(0..10)
    });
}

#[test]
fn client_goes_to_the_node_of_its_player() {
    let Some(nats) = NatsServer::start(&[]) else {
        return;
    };
    let timeline = Timeline::new();
    let first = Node::start(&nats, &timeline.rows, "n0", LONG_SILENCE_MS);
    let second = Node::start(&nats, &timeline.rows, "n1", LONG_SILENCE_MS);
    let gateway = Gateway::start(&nats, 0, LONG_SILENCE_MS);
    second.driver.with_node(|node, _| node.log_in(PlayerId(7)));
    timeline.until("the route", &mut None, |_| {
        let has_route = gateway.gateway.route(PlayerId(7)).is_some();
        has_route && gateway.gateway.is_linked(ClusterNodeId(1))
    });
    let (_seven, _) = timeline.connected(&gateway, &second, 1, 7);
    // Others go to the node for logins.
    let (_eight, _) = timeline.connected(&gateway, &first, 0, 8);
    // Without a node, no client is admitted. The nodes here are those of another game.
    let settings = GatewaySettings {
        protocol_id: 1,
        login_nodes: BTreeSet::from([ClusterNodeId(9)]),
        ..GatewaySettings::default()
    };
    let none = Gateway::start_as(&nats, GatewayId(2), settings);
    let mut client = none.client(9);
    timeline.until("a refusal", &mut Some(&mut client), |_| {
        none.gateway.stats().refused > 0
    });
    assert_eq!(none.gateway.stats().connected, 0);
}

/// `THRONG_FIGURES=1 … -- --nocapture` prints how long messages take.
#[test]
fn messages_go_to_the_node_and_back() {
    let Some(nats) = NatsServer::start(&[]) else {
        return;
    };
    let timeline = Timeline::new();
    let mut node = Node::start(&nats, &timeline.rows, "n0", LONG_SILENCE_MS);
    let gateway = Gateway::start(&nats, 0, LONG_SILENCE_MS);
    let (mut client, id) = timeline.connected(&gateway, &node, 0, 7);
    let wanted: u32 = if std::env::var("THRONG_FIGURES").is_ok() {
        500
    } else {
        20
    };
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for number in 0..wanted {
        let begun = Stopwatch::start();
        client.udp.send(&number.to_le_bytes()).unwrap();
        timeline.until("the input", &mut Some(&mut client), |_| {
            node.recorder.inputs.lock().unwrap().len() == number as usize + 1
        });
        there.push(begun.elapsed());
        let begun = Stopwatch::start();
        node.send(id, number..number + 1, 100);
        timeline.until("the packet", &mut Some(&mut client), |client| {
            client.as_ref().unwrap().reliable.len() == number as usize + 1
        });
        back.push(begun.elapsed());
    }
    for (name, mut times) in [("to the node", there), ("to the client", back)] {
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        println!(
            "{} messages {name}, polled every 2 ms: median {:?}, p99 {:?}, longest {:?}",
            times.len(),
            at(50),
            at(99),
            at(100)
        );
    }
}
