//! A client plays a small game on two servers, behind gateways.

pub mod client;
pub mod gateway;
pub mod nodes;

use std::thread;
use std::time::{Duration, Instant};

use throng::session::SessionStats;
use throng_client::{ClientEvent, ControlState};
use throng_cluster::{ClusterNodeId, ClusterPlayers, GatewayId, PlayerMove};

use client::TestClient;
use gateway::Gateway;
use nodes::{Carrier, Engines, GOLD, Node, PLAYER, SwitchedStore};

use crate::patience::RowClock;

/// Many more rounds than any test needs.
const ROUNDS_MAX: u32 = 30_000;

pub const GATEWAY: GatewayId = GatewayId(1);

pub struct Cluster {
    pub engines: Engines,
    pub nodes: Vec<Node>,
    pub gateways: Vec<Gateway>,
    pub client: Option<TestClient>,
    pub events: Vec<ClientEvent>,
    pub now: Instant,
    /// The nodes between which the player moves.
    moving: Option<(usize, usize)>,
}

impl Cluster {
    /// Starts two nodes and a gateway. The tick of the second node is lower. Only the first one takes logins.
    pub fn start(carrier: Carrier, gateways_of_second: &[GatewayId]) -> Self {
        let engines = Engines {
            store: SwitchedStore::default(),
            carrier,
            clock: RowClock::patient(),
        };
        let nodes = vec![
            Node::start("a", &engines, (0, 3_000), &[GATEWAY]),
            Node::start("b", &engines, (60, 1), gateways_of_second),
        ];
        let mut cluster = Self {
            engines,
            nodes,
            gateways: Vec::new(),
            client: None,
            events: Vec::new(),
            now: Instant::now(),
            moving: None,
        };
        cluster.add_gateway(GATEWAY);
        cluster
    }

    /// Starts another gateway, and waits until it is linked to the node for logins.
    pub fn add_gateway(&mut self, id: GatewayId) {
        self.gateways.push(Gateway::start(&self.engines, id));
        self.until("link", |cluster| {
            let gateways = cluster.gateways.iter();
            { gateways }.all(|one| one.gateway.is_linked(ClusterNodeId(0)))
        });
    }

    /// Connects a client over UDP with a token that names all gateways.
    pub fn connect(&mut self) {
        let servers = self.gateways.iter().map(|one| one.udp.address());
        self.client = Some(TestClient::over_udp(servers.collect()));
    }

    /// Connects a client to the first gateway over a WebSocket, with a token that names all gateways.
    pub fn connect_web(&mut self) {
        let servers = self.gateways.iter().map(|one| one.web.address());
        self.client = Some(TestClient::over_web_socket(servers.collect()));
    }

    pub fn client(&mut self) -> &mut TestClient {
        self.client.as_mut().unwrap()
    }

    pub fn round(&mut self, what: &str) {
        let Engines { store, clock, .. } = &self.engines;
        clock.advance(&store.rows);
        self.request_move();
        self.nodes.iter_mut().for_each(|node| node.server.step(1));
        self.now += Duration::from_millis(10);
        if let Some(client) = &mut self.client {
            let updated = client.update(self.now);
            assert!(updated.is_ok(), "{what}: {updated:?}");
            self.events
                .extend(std::iter::from_fn(|| client.next_event()));
        }
        // Gives the threads of the transport time.
        thread::park_timeout(Duration::from_millis(2));
    }

    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        for _ in 0..ROUNDS_MAX {
            if holds(self) {
                return;
            }
            self.round(what);
        }
        panic!("{what}: not after {ROUNDS_MAX} rounds");
    }

    /// Waits until the client plays on a node with this gold, and its mirror matches the world.
    pub fn until_plays(&mut self, on: usize, gold: u16) {
        let name = self.nodes[on].name;
        self.client().set_controls(ControlState::stand(0));
        self.until(&format!("{gold} on node {name}"), |cluster| {
            let (node, client) = (&cluster.nodes[on], cluster.client.as_ref().unwrap());
            node.gold() == Some(gold) && node.is_mirrored(client.session())
        });
        let mirror = self.client().session().mirror();
        let (own, _) = mirror.controlled_object().unwrap();
        let shown = mirror.object(own).unwrap().attributes.bytes(GOLD);
        assert_eq!(shown, Some(&gold.to_le_bytes()[..]));
    }

    /// Lets the client walk half a metre.
    pub fn walk(&mut self, on: usize, direction: u8) {
        let from = self.nodes[on].position().unwrap();
        self.client().set_controls(ControlState::towards(direction));
        self.until("walk", |cluster| {
            let at = cluster.nodes[on].position().unwrap();
            at.distance(from) > 0.5
        });
    }

    pub fn move_player(&mut self, from: usize, to: usize) {
        self.until("the list of nodes", |cluster| {
            let players = cluster.nodes[from].server.world();
            let driver = players.resource::<ClusterPlayers>().driver();
            driver.unwrap().node_named(cluster.nodes[to].name).is_some()
        });
        self.moving = Some((from, to));
        self.request_move();
    }

    /// Asks for the move until the player has left: a node that pauses on a busy machine drops the request.
    fn request_move(&mut self) {
        let Some((from, to)) = self.moving else {
            return;
        };
        if self.nodes[from].player().is_none() {
            self.moving = None;
            return;
        }
        let (player, to) = (PLAYER, self.nodes[to].name.to_owned());
        let world = self.nodes[from].server.world_mut();
        world.write_message(PlayerMove { player, to });
    }

    pub fn stats(&self, node: usize) -> SessionStats {
        *self.nodes[node].server.world().resource::<SessionStats>()
    }

    /// The end of the client's session, if it has one.
    pub fn end(&self) -> Option<&ClientEvent> {
        let is_end = |event: &&ClientEvent| matches!(event, ClientEvent::Closed { .. });
        self.events.iter().find(is_end)
    }
}
