//! Promise: a client of a gateway keeps its UDP connection when its player is handed to another node, and when a node dies.
//!
//! With a real NATS server only if the program `nats-server` is there; `.ci/with_nats` installs it.
#![allow(clippy::unwrap_used, reason = "a failed test ends")]

mod servers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bevy_app::App;
use bevy_ecs::prelude::*;
use glam::Vec2;
use servers::NatsServer;
use throng::prelude::*;
use throng::session::SessionStats;
use throng::sim::StateHasher;
use throng::sync::{AttributeSpec, compare_mirror};
use throng::wire::Encoding;
use throng::world::ObjectHashAppExt;
use throng_client::{Client, ClientEvent, ClientSettings, ControlState};
use throng_cluster::{
    BusPeer, BusTransport, ClientGateway, ClientMessageChannels, ClusterAnnouncement, ClusterKey,
    ClusterNodeId, ClusterPlayers, ClusterPlugin, ClusterRecord, ClusterReply, ClusterRequest,
    ClusterSessionsPlugin, ClusterSessionsSettings, ClusterStore, ClusterStoreError,
    DriverSettings, FrozenPlayer, GatewayId, GatewaySettings, LinkSettings, LocalBus, MessageBus,
    NatsSettings, NatsTransport, NodeDriver, PlayerHooks, PlayerMessageRequest, PlayerMove,
    SharedRows, attach_node,
};
use throng_core::clock::{Stopwatch, unix_ms};
use throng_net::{
    ConnectToken, PROTOCOL_ID, SecretKey, ServerHandshake, ServerHandshakeSettings, ServerSocket,
    TokenClaims, UdpServer, UdpSettings,
};

/// Many more rounds than any test needs.
const ROUNDS_MAX: u32 = 20_000;

const GATEWAY: GatewayId = GatewayId(1);
const PLAYER: PlayerId = PlayerId(7);
const GOLD: u16 = 40;

#[derive(Component)]
struct Gold(u16);

impl StateHashed for Gold {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.0.into());
    }
}

/// The scene of a node.
#[derive(Resource)]
struct Hall(Entity);

struct Game;

impl PlayerHooks for Game {
    fn on_collect(&self, world: &World, player: Entity) -> Vec<u8> {
        let gold = world.get::<Gold>(player).map_or(0, |gold| gold.0);
        let at = world.get::<Position>(player).map_or(Vec2::ZERO, |at| at.0);
        let mut bytes = gold.to_le_bytes().to_vec();
        bytes.extend(at.to_array().iter().flat_map(|part| part.to_le_bytes()));
        bytes
    }

    fn on_receive(&self, world: &mut World, player: PlayerId, record: &ClusterRecord) -> Entity {
        let (mut gold, mut at) = (0, Vec2::splat(20.0));
        if let [g0, g1, x @ .., y0, y1, y2, y3] = &record.bytes[..]
            && let Some(x) = x.first_chunk()
        {
            gold = u16::from_le_bytes([*g0, *g1]);
            let y = f32::from_le_bytes([*y0, *y1, *y2, *y3]);
            at = Vec2::new(f32::from_le_bytes(*x), y);
        }
        let place = (InScene(world.resource::<Hall>().0), Position(at));
        let own = (Player, player, Gold(gold), MaxSpeed(3.0));
        world.spawn((own, place, Viewer::default())).id()
    }
}

struct Node {
    name: &'static str,
    server: Server,
}

impl Node {
    /// A node with this number of other objects in its scene, after some ticks.
    fn start(
        name: &'static str,
        engines: &Engines,
        (others, ticks): (u32, u64),
        gateways: &[GatewayId],
    ) -> Self {
        let mut settings = DriverSettings::new(name);
        settings.gateways = gateways.to_vec();
        settings.nodes_interval = Duration::from_millis(50);
        let open = || Box::new(engines.store.clone()) as Box<dyn ClusterStore>;
        let driver = NodeDriver::start(&settings, open, |run| {
            Ok(engines.bus(BusPeer::Node(run.node), run.run))
        });
        let plugins = |app: &mut App| {
            let mut players = ClusterPlugin::new(Game);
            // Only when they move or log out.
            players.collect_interval_ticks = 1_000_000;
            app.add_plugins((players, ClusterSessionsPlugin));
            let gold = AttributeSpec::new("gold", GOLD, Encoding::U16).to(Audience::VIEWERS);
            app.replicate_field(gold, |gold: &Gold| gold.0);
            app.hash_component::<Gold>("gold");
        };
        let mut server = Server::builder().tick_hz(100.0).plugins(plugins).build();
        let world = server.world_mut();
        let hall = open_scene(world, SceneSpec::new("hall", Vec2::splat(40.0)), ()).unwrap();
        world.insert_resource(Hall(hall));
        for nth in 0..others {
            let at = Vec2::new(nth as f32 % 40.0, 5.0);
            world.spawn((Npc, InScene(hall), Position(at), Gold(nth as u16)));
        }
        server.step(ticks);
        attach_node(
            server.world_mut(),
            driver.unwrap(),
            LinkSettings::default(),
            None,
        );
        Self { name, server }
    }

    fn player(&self) -> Option<Entity> {
        self.server
            .world()
            .resource::<ClusterPlayers>()
            .entity(PLAYER)
    }

    /// Whether the client plays here, and its mirror matches the world.
    fn is_mirrored(&self, client: &Client) -> bool {
        let world = self.server.world();
        let session = world.resource::<Sessions>().client_of(PLAYER);
        let is_here = self.player().is_some() && client.mirror().controlled_object().is_some();
        is_here && session.is_some_and(|of| compare_mirror(world, of, client.mirror()).is_ok())
    }

    fn gold(&self) -> Option<u16> {
        Some(self.server.world().get::<Gold>(self.player()?)?.0)
    }

    fn position(&self) -> Option<Vec2> {
        Some(self.server.world().get::<Position>(self.player()?)?.0)
    }
}

/// Between the nodes and the gateway.
enum Carrier {
    Memory(LocalBus),
    Nats(NatsSettings),
}

/// Rows in memory that can be away.
#[derive(Clone, Default)]
struct SwitchedStore {
    rows: SharedRows,
    is_away: Arc<AtomicBool>,
}

impl ClusterStore for SwitchedStore {
    fn execute(&mut self, request: &ClusterRequest) -> Result<ClusterReply, ClusterStoreError> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(ClusterStoreError::NotExecuted("away".to_owned()));
        }
        self.rows.execute(request)
    }
}

/// What the nodes share.
struct Engines {
    store: SwitchedStore,
    carrier: Carrier,
    clock: Stopwatch,
}

impl Engines {
    fn bus(&self, own: BusPeer, run: u64) -> MessageBus {
        let transport: Box<dyn BusTransport> = match &self.carrier {
            Carrier::Memory(bus) => Box::new(bus.join(own)),
            Carrier::Nats(settings) => Box::new(NatsTransport::connect(settings, own).unwrap()),
        };
        MessageBus::new(transport, ClusterKey::new(&[7; 32]), own, run)
    }
}

struct Cluster {
    engines: Engines,
    nodes: Vec<Node>,
    gateway: ClientGateway,
    udp: UdpServer,
    client: Option<Client>,
    events: Vec<ClientEvent>,
    now: Instant,
}

impl Cluster {
    /// Starts two nodes. The tick of the second one is lower. Only the first one takes logins.
    fn start(carrier: Carrier, gateways_of_second: &[GatewayId]) -> Self {
        let engines = Engines {
            store: SwitchedStore::default(),
            carrier,
            clock: Stopwatch::start(),
        };
        let nodes = vec![
            Node::start("a", &engines, (0, 3_000), &[GATEWAY]),
            Node::start("b", &engines, (60, 1), gateways_of_second),
        ];
        let settings = GatewaySettings {
            login_nodes: [ClusterNodeId(0)].into(),
            ..GatewaySettings::default()
        };
        let run = unix_ms();
        let bus = engines.bus(BusPeer::Gateway(GATEWAY), run);
        let mut gateway = ClientGateway::new(settings, bus, run);
        let socket = ServerSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let gate = ServerHandshakeSettings::new(PROTOCOL_ID, vec![socket.address()]);
        let gate = ServerHandshake::new(gate, SecretKey::INSECURE).unwrap();
        let udp = UdpServer::start(socket, UdpSettings::default(), gate, &gateway.handler());
        let udp = udp.unwrap();
        gateway.start(Box::new(udp.sink())).unwrap();
        let mut cluster = Self {
            engines,
            nodes,
            gateway,
            udp,
            client: None,
            events: Vec::new(),
            now: Instant::now(),
        };
        cluster.until("link", |cluster| {
            cluster.gateway.is_linked(ClusterNodeId(0))
        });
        cluster
    }

    fn connect(&mut self) {
        let claims = TokenClaims::new(PLAYER.0, vec![self.udp.address()], unix_ms() / 1_000);
        let token = ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap();
        let client = Client::connect(&token.to_bytes(), ClientSettings::default());
        self.client = Some(client.unwrap());
    }

    fn client(&mut self) -> &mut Client {
        self.client.as_mut().unwrap()
    }

    fn round(&mut self, what: &str) {
        let Engines { store, clock, .. } = &self.engines;
        store.rows.set_now_ms(clock.elapsed().as_millis() as u64);
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

    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        for _ in 0..ROUNDS_MAX {
            if holds(self) {
                return;
            }
            self.round(what);
        }
        panic!("{what}: not after {ROUNDS_MAX} rounds");
    }

    /// Waits until the client plays on a node with this gold, and its mirror matches the world.
    fn until_plays(&mut self, on: usize, gold: u16) {
        let name = self.nodes[on].name;
        self.client().set_controls(ControlState::stand(0));
        self.until(&format!("{gold} on node {name}"), |cluster| {
            let (node, client) = (&cluster.nodes[on], cluster.client.as_ref().unwrap());
            node.gold() == Some(gold) && node.is_mirrored(client)
        });
        let client = self.client();
        let (own, _) = client.mirror().controlled_object().unwrap();
        assert_eq!(client.attribute(own, GOLD), Some(&gold.to_le_bytes()[..]));
    }

    /// Lets the client walk half a metre.
    fn walk(&mut self, on: usize, direction: u8) {
        let from = self.nodes[on].position().unwrap();
        self.client().set_controls(ControlState::towards(direction));
        self.until("walk", |cluster| {
            let at = cluster.nodes[on].position().unwrap();
            at.distance(from) > 0.5
        });
    }

    fn move_player(&mut self, from: usize, to: usize) {
        let player = PLAYER;
        self.until("the list of nodes", |cluster| {
            let players = cluster.nodes[from].server.world();
            let driver = players.resource::<ClusterPlayers>().driver();
            driver.unwrap().node_named(cluster.nodes[to].name).is_some()
        });
        let to = self.nodes[to].name.to_owned();
        let world = self.nodes[from].server.world_mut();
        world.write_message(PlayerMove { player, to });
    }

    fn stats(&self, node: usize) -> SessionStats {
        *self.nodes[node].server.world().resource::<SessionStats>()
    }
}

/// Hands the player back and forth between the nodes `moves` times (an even number), and then crashes a node.
fn play(carrier: Carrier, moves: usize) {
    let mut cluster = Cluster::start(carrier, &[GATEWAY]);
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
    assert_eq!(cluster.gateway.stats().taken_over, moves as u64);
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
    let stats = cluster.gateway.stats();
    assert_eq!((stats.connected, stats.taken_over), (1, moves as u64 + 2));
    assert_eq!((stats.lost, stats.stuck, stats.unreadable), (0, 0, 0));
    let is_end = |event: &&ClientEvent| matches!(event, ClientEvent::Closed { .. });
    assert_eq!(cluster.events.iter().find(is_end), None);
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
    let stats = cluster.gateway.stats();
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
    let stats = cluster.gateway.stats();
    assert_eq!((stats.connected, stats.taken_over, stats.lost), (1, 0, 0));
    let is_end = |event: &&ClientEvent| matches!(event, ClientEvent::Closed { .. });
    assert_eq!(cluster.events.iter().find(is_end), None);
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
    assert_eq!(cluster.gateway.stats().unreadable, 0);
}
