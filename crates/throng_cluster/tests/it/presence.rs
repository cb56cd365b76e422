//! Promise: nodes and gateways find each other by their presence, in memory and over a real NATS server.
//!
//! Without the program `nats-server` the second part is not tested; `.ci/with_nats` installs it.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use throng_cluster::{
    BusEvent, BusPeer, BusTransport, ClientGateway, ClusterKey, ClusterNodeId, ClusterStore,
    DriverSettings, GatewayId, GatewayPort, GatewaySettings, LinkSet, LinkSettings, LocalBus,
    MessageBus, NatsSettings, NodeDriver, PeerPresence, SharedRows,
};
use throng_core::ids::PlayerId;
use throng_net::ConnectionHandler;
use throng_net::inbox::{ConnectionInfo, DisconnectReason};
use throng_net::outbox::MemorySink;
use throng_protocol::wire::{ClientId, CloseReason};

use crate::patience::{RowClock, connect_nats};
use crate::servers::NatsServer;

/// Rounds of 2 ms or more after which a condition counts as never met.
const ROUNDS_MAX: u32 = 30_000;

/// What connects the peers of a test.
enum TestBus {
    Local(LocalBus),
    Nats(NatsServer),
}

impl TestBus {
    /// The buses that are available on this machine.
    fn all() -> Vec<Self> {
        let nats = NatsServer::start(&[]).map(Self::Nats);
        let local = Self::Local(LocalBus::default());
        [local].into_iter().chain(nats).collect()
    }

    fn end(&self, own: BusPeer, run: u64) -> MessageBus {
        let transport: Box<dyn BusTransport> = match self {
            Self::Local(bus) => Box::new(bus.join(own)),
            Self::Nats(server) => {
                let settings = NatsSettings::new(server.address());
                Box::new(connect_nats(&settings, own))
            }
        };
        MessageBus::new(transport, ClusterKey::new(&[7; 32]), own, run)
    }

    fn gateway(&self, name: &str, run: u64) -> ClientGateway {
        let own = BusPeer::Gateway(GatewayId::of_name(name));
        let settings = GatewaySettings {
            name: name.to_owned(),
            ..GatewaySettings::default()
        };
        let mut gateway = ClientGateway::new(settings, self.end(own, run), run);
        gateway.start(Box::new(MemorySink::default())).unwrap();
        gateway
    }

    fn node(&self, name: &str, rows: &TestRows) -> NodeDriver {
        let open = || Box::new(rows.0.clone()) as Box<dyn ClusterStore>;
        let driver = NodeDriver::start(&DriverSettings::new(name), open, |run| {
            Ok(self.end(BusPeer::Node(run.node), run.run))
        });
        let driver = driver.unwrap();
        let run = driver.with_node(|node, _| node.run().run);
        let server = Arc::new(AcceptAll);
        let port = GatewayPort::new(run, LinkSettings::default(), server);
        driver.set_relay(Box::new(port));
        driver
    }
}

/// A server that accepts all clients.
struct AcceptAll;

impl ConnectionHandler for AcceptAll {
    fn connect(&self, _: ConnectionInfo) -> Option<ClientId> {
        Some(ClientId(1))
    }

    fn receive(&self, _: ClientId, _: &[u8]) {}

    fn disconnect(&self, _: ClientId, _: DisconnectReason) {}
}

/// Rows, and the clock that moves their time.
struct TestRows(SharedRows, RowClock);

impl TestRows {
    fn new() -> Self {
        Self(SharedRows::default(), RowClock::patient())
    }

    /// Waits until this holds.
    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..ROUNDS_MAX {
            self.1.advance(&self.0);
            if holds() {
                return;
            }
            // Gives the threads of the peers time.
            thread::park_timeout(Duration::from_millis(2));
        }
        panic!("{what}: not after {ROUNDS_MAX} rounds");
    }
}

fn names(peers: &[(BusPeer, throng_cluster::KnownPeer)]) -> Vec<&str> {
    let names = peers.iter().map(|(_, known)| known.presence.name.as_str());
    names.collect()
}

fn connect(gateway: &ClientGateway, player: u64) -> Option<ClientId> {
    gateway.handler().connect(ConnectionInfo::player(player))
}

#[test]
fn gateway_learns_its_nodes_and_node_routes_its_players_there() {
    for bus in TestBus::all() {
        let rows = TestRows::new();
        // The gateway starts first, when no node can take a client.
        let gateway = bus.gateway("g1", 5);
        assert_eq!(connect(&gateway, 1), None);
        let node = bus.node("n1", &rows);
        let id = node.with_node(|node, _| node.run().node);
        rows.until("the node is linked", || gateway.is_linked(id));
        assert_eq!(names(&gateway.peers()), ["n1"]);
        assert!(connect(&gateway, 1).is_some());
        node.with_node(|node, _| node.log_in(PlayerId(7)));
        rows.until("the player is there", || {
            node.with_node(|node, now_ms| node.is_live(PlayerId(7), now_ms))
        });
        rows.until("the route is there", || {
            gateway.route(PlayerId(7)).is_some()
        });
        // A gateway that starts later, or again, gets the route, too.
        for (name, run) in [("g2", 5), ("g2", 6)] {
            let later = bus.gateway(name, run);
            rows.until("the route is at the other gateway", || {
                later
                    .route(PlayerId(7))
                    .is_some_and(|route| route.node == id)
            });
            rows.until("the other gateway is known", || {
                names(&node.peers()) == ["g1", "g2"] || names(&node.peers()) == ["g2", "g1"]
            });
        }
        // The later gateway was dropped without a message.
        rows.until("the other gateway is gone", || {
            names(&node.peers()) == ["g1"]
        });
        // The node stops, and notifies the gateway, which then has no node.
        node.stop();
        rows.until("the node is gone", || gateway.peers().is_empty());
    }
}

#[test]
fn closed_gateway_closes_its_clients_and_accepts_no_more() {
    for bus in TestBus::all() {
        let rows = TestRows::new();
        let node = bus.node("n1", &rows);
        let own = BusPeer::Gateway(GatewayId::of_name("g1"));
        let settings = GatewaySettings {
            name: "g1".to_owned(),
            ..GatewaySettings::default()
        };
        let mut gateway = ClientGateway::new(settings, bus.end(own, 5), 5);
        let sink = MemorySink::default();
        gateway.start(Box::new(sink.clone())).unwrap();
        let id = node.with_node(|node, _| node.run().node);
        rows.until("linked", || gateway.is_linked(id));
        rows.until("the gateway is known", || node.peers().len() == 1);
        let client = connect(&gateway, 1).unwrap();
        gateway.close(CloseReason::Stopping);
        rows.until("closed", || gateway.is_closed());
        let closes = sink.delivered().closed.clone();
        assert_eq!(closes, [(client, CloseReason::Stopping)]);
        assert_eq!(connect(&gateway, 2), None);
        rows.until("the gateway is gone", || node.peers().is_empty());
    }
}

#[test]
fn newer_gateway_of_a_name_wins_and_the_older_one_is_notified() {
    for bus in TestBus::all() {
        let rows = TestRows::new();
        let (older, newer) = (bus.gateway("g1", 5), bus.gateway("g1", 6));
        rows.until("clash", || older.clash().is_some());
        assert_eq!(older.clash().unwrap().name, "g1");
        let node = bus.node("n1", &rows);
        rows.until("both know the node", || {
            older.peers().len() == 1 && newer.peers().len() == 1
        });
        // Messages of the older gateway are refused once one of the newer gateway has arrived.
        rows.until("the node knows the newer one", || {
            node.peers()
                .first()
                .is_some_and(|(_, known)| known.run == 6)
        });
        assert_eq!((newer.clash(), node.peers().len()), (None, 1));
    }
}

#[test]
fn draining_node_is_linked_and_gets_no_logins() {
    for bus in TestBus::all() {
        let rows = TestRows::new();
        let gateway = bus.gateway("g1", 5);
        let mut node = bus.end(BusPeer::Node(ClusterNodeId(3)), 9);
        let mut links = LinkSet::new(9, LinkSettings::default());
        let mut announce = |is_draining: bool| {
            let presence = PeerPresence {
                name: "n3".to_owned(),
                is_draining,
                ..PeerPresence::default()
            };
            while let Some(event) = node.receive() {
                if let BusEvent::Message { from, bytes, .. } = event {
                    links.receive(0, from, &bytes);
                }
            }
            links.poll(0, |peer, piece| node.send(peer, &piece).unwrap());
            node.send(BusPeer::All, &presence.to_bytes()).unwrap();
        };
        rows.until("linked", || {
            announce(true);
            gateway.is_linked(ClusterNodeId(3))
        });
        assert_eq!(names(&gateway.peers()), ["n3"]);
        assert_eq!(connect(&gateway, 1), None);
        rows.until("a client is accepted", || {
            announce(false);
            connect(&gateway, 1).is_some()
        });
    }
}

#[test]
fn bus_returns_echoes_and_says_who_is_not_connected() {
    let [a, b, absent] = [1, 2, 3].map(|node| BusPeer::Node(ClusterNodeId(node)));
    for bus in TestBus::all() {
        let rows = TestRows::new();
        let next = |end: &mut MessageBus| {
            let mut next = None;
            rows.until("an event", || {
                let mut events = std::iter::from_fn(|| end.receive());
                next = events.find(|event| *event != BusEvent::Connected);
                next.is_some()
            });
            next.unwrap()
        };
        let unreachable = |peer, number| BusEvent::Unreachable { peer, number };
        let mut end = bus.end(a, 1);
        end.send_echo(u64::MAX - 7).unwrap();
        let number = u64::MAX - 7;
        assert_eq!(next(&mut end), BusEvent::Echo { number });
        let mut other = bus.end(b, 1);
        end.probe(b, 1);
        end.probe(absent, 2);
        assert_eq!(next(&mut end), unreachable(absent, 2), "nothing about b");
        // The probe is no message.
        end.send(b, b"x").unwrap();
        let event = next(&mut other);
        assert!(matches!(event, BusEvent::Message { .. }), "{event:?}");
        drop(other);
        // A connection ends soon after its transport.
        let is_gone = (3..).take(ROUNDS_MAX as usize).any(|number| {
            end.probe(b, number);
            end.probe(absent, number);
            let is_gone = next(&mut end) == unreachable(b, number);
            if is_gone {
                assert_eq!(next(&mut end), unreachable(absent, number));
            }
            is_gone
        });
        assert!(is_gone);
    }
}
