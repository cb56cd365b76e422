//! Clients receive the attributes of their party wherever its members are: three servers with their own nodes, over a bus in memory that may lose
//! messages.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use bevy_app::App;
use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::outbox::PacketSink;
use throng::prelude::*;
use throng::session::{ConnectionInfo, connect, control};
use throng::sim::StateHasher;
use throng::sync::{
    AttributeSpec, AttributeValues, FOREIGN_SCENE, ForeignMembers, SendRate, compare_mirror,
};
use throng::wire::{Channel, ClientId, CloseReason, Encoding};
use throng::world::{ObjectHashAppExt, PartyId, SceneSpec, open_scene};
use throng_cluster::{
    BusFull, BusPeer, BusSignal, BusTransport, ClusterGroups, ClusterKey, ClusterPlayers,
    ClusterPlugin, ClusterRecord, ClusterSessionsPlugin, ClusterSessionsSettings, ClusterStore,
    DriverSettings, GroupChange, GroupChangeRequest, GroupId, GroupKind, LinkSettings, LocalBus,
    LocalTransport, MessageBus, NodeDriver, PartyValueStats, PlayerHooks, PlayerLogOut, PlayerMove,
    SharedRows, attach_node,
};
use throng_protocol::mirror::Mirror;

use crate::patience::{RowClock, patient_messages};

/// Rounds of 2 ms or more after which a condition counts as never met.
const ROUNDS_MAX: u32 = 30_000;

const LEADER: PlayerId = PlayerId(1);
const FRIEND: PlayerId = PlayerId(2);
const OTHER: PlayerId = PlayerId(3);

const NUMBER: u16 = 60;
const VIGOUR: u16 = 61;

/// The player, for its party.
#[derive(Component, Clone, Copy)]
struct Number(u32);

#[derive(Component, Clone, Copy)]
struct Vigour(u32);

macro_rules! hashed {
    ($($component:ident),*) => {$(
        impl StateHashed for $component {
            fn hash(&self, hasher: &mut StateHasher) {
                hasher.write_u64(self.0.into());
            }
        }
    )*};
}
hashed!(Number, Vigour);

#[derive(Resource)]
struct Hall(Entity);

struct Game;

impl PlayerHooks for Game {
    fn on_collect(&self, world: &World, player: Entity) -> Vec<u8> {
        let vigour = world.get::<Vigour>(player).map_or(0, |vigour| vigour.0);
        vigour.to_le_bytes().to_vec()
    }

    fn on_receive(&self, world: &mut World, player: PlayerId, record: &ClusterRecord) -> Entity {
        let vigour = record.bytes.first_chunk().copied();
        let vigour = vigour.map_or(10 * player.0 as u32, u32::from_le_bytes);
        let place = (InScene(world.resource::<Hall>().0), Position(Vec2::ONE));
        let own = (Number(player.0 as u32), Vigour(vigour));
        world.spawn((Player, player, place, own)).id()
    }
}

/// Loses some of the messages that are sent.
struct LossyTransport {
    inner: LocalTransport,
    percent: Arc<AtomicU32>,
    random: u64,
}

impl BusTransport for LossyTransport {
    fn publish(&mut self, to: BusPeer, bytes: Vec<u8>) -> Result<(), BusFull> {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if ((self.random >> 33) % 100) < self.percent.load(Ordering::Relaxed).into() {
            return Ok(());
        }
        self.inner.publish(to, bytes)
    }

    fn probe(&mut self, to: BusPeer, number: u64) {
        self.inner.probe(to, number);
    }

    fn receive(&mut self) -> Option<BusSignal> {
        self.inner.receive()
    }

    fn set_waker(&mut self, waker: Waker) {
        self.inner.set_waker(waker);
    }
}

/// The clients of a node. The first error of each is kept.
#[derive(Clone, Default)]
struct Mirrors(Arc<Mutex<BTreeMap<ClientId, (Mirror, Result<(), String>)>>>);

impl PacketSink for Mirrors {
    fn close(&mut self, _: ClientId, _: CloseReason) {}

    fn deliver(&mut self, client: ClientId, _: Channel, packet: &[u8]) {
        let mut mirrors = self.0.lock().unwrap();
        let (mirror, result) = mirrors
            .entry(client)
            .or_insert_with(|| (Mirror::default(), Ok(())));
        if result.is_ok() {
            *result = mirror.receive(packet).map_err(|error| error.to_string());
        }
    }
}

struct Node {
    server: Server,
    mirrors: Mirrors,
    /// The client of each player that is or was here.
    clients: BTreeMap<PlayerId, (Entity, ClientId)>,
}

impl Node {
    fn start(name: &str, rows: &SharedRows, bus: &LocalBus, percent: &Arc<AtomicU32>) -> Self {
        let mut settings = DriverSettings::new(name);
        settings.nodes_interval = Duration::from_millis(50);
        settings.start_timeout = Duration::from_secs(60);
        settings.messages = patient_messages();
        // Only what the tests are about is repaired slowly.
        settings.groups.read_interval_ms = 50;
        // No member is forgotten because the machine was busy.
        settings.party_values.expire_ms = 60_000;
        let open = || Box::new(rows.clone()) as Box<dyn ClusterStore>;
        let driver = NodeDriver::start(&settings, open, |run| {
            let own = BusPeer::Node(run.node);
            let transport = LossyTransport {
                inner: bus.join(own),
                percent: percent.clone(),
                random: run.node.0.into(),
            };
            let key = ClusterKey::new(&[7; 32]);
            Ok(MessageBus::new(Box::new(transport), key, own, run.run))
        });
        let plugins = |app: &mut App| {
            app.add_plugins((ClusterPlugin::new(Game), ClusterSessionsPlugin))
                .insert_resource(ClusterSessionsSettings {
                    // The clients of the players have not logged in.
                    client_wait_s: 1e6,
                    ..ClusterSessionsSettings::default()
                });
            let of_party = |name, id| AttributeSpec::new(name, id, Encoding::Varint);
            let of_party = |name, id| of_party(name, id).to(Audience::PARTY);
            app.replicate_field(of_party("number", NUMBER), |number: &Number| number.0);
            let vigour = of_party("vigour", VIGOUR).at(SendRate::EveryTick);
            app.replicate_field(vigour, |vigour: &Vigour| vigour.0);
            app.hash_component::<Number>("number");
            app.hash_component::<Vigour>("vigour");
        };
        let mut server = Server::builder().tick_hz(100.0).plugins(plugins).build();
        let world = server.world_mut();
        let hall = open_scene(world, SceneSpec::new("hall", Vec2::splat(40.0)), ());
        world.insert_resource(Hall(hall.unwrap()));
        let mirrors = Mirrors::default();
        let others = Some(Box::new(mirrors.clone()) as Box<dyn PacketSink>);
        attach_node(world, driver.unwrap(), LinkSettings::default(), others);
        Self {
            server,
            mirrors,
            clients: BTreeMap::new(),
        }
    }

    fn players(&self) -> &ClusterPlayers {
        self.server.world().resource::<ClusterPlayers>()
    }

    fn step(&mut self) {
        self.server.step(1);
        for player in self.players().players().collect::<Vec<_>>() {
            let entity = self.players().entity(player).unwrap();
            if self.clients.get(&player).is_some_and(|it| it.0 == entity) {
                continue;
            }
            let world = self.server.world_mut();
            let info = ConnectionInfo::unknown().without_loading();
            let client = connect(world, info).unwrap();
            assert!(control(world, client, entity));
            self.clients.insert(player, (entity, client));
        }
    }

    fn stats(&self) -> PartyValueStats {
        let driver = self.players().driver().unwrap();
        driver.with_party_values(|exchange, _, _| exchange.stats())
    }

    /// The party members that the client of a player knows: whether each is elsewhere, and its vigour.
    fn known(&self, by: PlayerId) -> Option<BTreeMap<u32, (bool, u32)>> {
        let entity = self.players().entity(by)?;
        let &(of, client) = self.clients.get(&by)?;
        let mirrors = self.mirrors.0.lock().unwrap();
        let (mirror, result) = mirrors.get(&client)?;
        assert_eq!(*result, Ok(()));
        let compared = compare_mirror(self.server.world(), client, mirror);
        if of != entity || compared.is_err() {
            return None;
        }
        let member = |is_elsewhere, attributes: &AttributeValues| {
            let value = |id| attributes.bytes(id).map_or(0, |it| it[0].into());
            (value(NUMBER), (is_elsewhere, value(VIGOUR)))
        };
        let unseen = mirror.unseen_objects();
        let unseen = unseen.map(|(of, it)| member(of.scene == FOREIGN_SCENE.0, &it.attributes));
        // Members on the same node are in view.
        let seen = mirror
            .objects()
            .map(|(_, it)| member(false, &it.attributes));
        let members = unseen.chain(seen);
        let others = members.filter(|&(player, _)| player != 0 && player != by.0 as u32);
        let others: Vec<_> = others.collect();
        let members: BTreeMap<_, _> = others.iter().copied().collect();
        // It knows each member once.
        (members.len() == others.len()).then_some(members)
    }
}

struct Cluster {
    rows: SharedRows,
    nodes: Vec<Node>,
    clock: RowClock,
    /// The percentage of lost messages.
    loss: Arc<AtomicU32>,
}

impl Cluster {
    /// Three nodes, with a player on each.
    fn start(clock: RowClock) -> Self {
        let (rows, bus) = (SharedRows::default(), LocalBus::default());
        let loss = Arc::new(AtomicU32::new(0));
        let nodes = ["n1", "n2", "n3"].map(|name| Node::start(name, &rows, &bus, &loss));
        let mut cluster = Self {
            rows,
            nodes: nodes.into(),
            clock,
            loss,
        };
        for (node, player) in [LEADER, FRIEND, OTHER].into_iter().enumerate() {
            cluster.nodes[node].players().log_in(player);
            cluster.until("login", |it| it.node_of(player) == Some(node));
        }
        cluster
    }

    fn set_loss(&self, percent: u32) {
        self.loss.store(percent, Ordering::Relaxed);
    }

    /// The node that has a player.
    fn node_of(&self, player: PlayerId) -> Option<usize> {
        let mut nodes = self.nodes.iter();
        nodes.position(|node| node.players().entity(player).is_some())
    }

    fn round(&mut self) {
        self.clock.advance(&self.rows);
        self.nodes.iter_mut().for_each(Node::step);
        thread::park_timeout(Duration::from_millis(2));
    }

    fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        for _ in 0..ROUNDS_MAX {
            self.round();
            if condition(self) {
                return;
            }
        }
        let stats: Vec<PartyValueStats> = self.nodes.iter().map(Node::stats).collect();
        panic!("{what}: {:?} {stats:?}", self.all_known());
    }

    fn known(&self, by: PlayerId) -> Option<BTreeMap<u32, (bool, u32)>> {
        self.nodes[self.node_of(by)?].known(by)
    }

    fn all_known(&self) -> Vec<Option<BTreeMap<u32, (bool, u32)>>> {
        let players = [LEADER, FRIEND, OTHER];
        players.map(|player| self.known(player)).to_vec()
    }

    /// Waits until the client of a player knows exactly these members: player, whether it is elsewhere, vigour.
    fn until_known(&mut self, what: &str, by: PlayerId, members: &[(PlayerId, bool, u32)]) {
        let members = members.iter();
        let expected = members.map(|&(of, elsewhere, vigour)| (of.0 as u32, (elsewhere, vigour)));
        let expected = Some(expected.collect::<BTreeMap<_, _>>());
        self.until(what, |it| it.known(by) == expected);
    }

    fn set_vigour(&mut self, player: PlayerId, value: u32) {
        let node = self.node_of(player).unwrap();
        let entity = self.nodes[node].players().entity(player).unwrap();
        let world = self.nodes[node].server.world_mut();
        world.get_mut::<Vigour>(entity).unwrap().0 = value;
    }

    /// Changes the party of a player, and waits until its node knows.
    fn change(&mut self, player: PlayerId, change: GroupChange) -> Option<PartyId> {
        let node = self.node_of(player).unwrap();
        let party = |it: &Self| {
            let groups = it.nodes[node].server.world().resource::<ClusterGroups>();
            groups.party_of(player)
        };
        let before = party(self);
        let world = self.nodes[node].server.world_mut();
        world.write_message(GroupChangeRequest { player, change });
        self.until("change", |it| party(it) != before);
        party(self)
    }

    fn move_player(&mut self, player: PlayerId, to: usize) {
        let name = ["n1", "n2", "n3"][to].to_owned();
        self.until("move", |it| {
            // A node that pauses on a busy machine drops the request.
            let node = it.node_of(player);
            if let Some(node) = node.filter(|node| *node != to) {
                let to = name.clone();
                let world = it.nodes[node].server.world_mut();
                world.write_message(PlayerMove { player, to });
            }
            node == Some(to)
        });
    }

    /// A party of the leader and the friend, on two nodes.
    fn found_party(&mut self) -> GroupId {
        let party = self.change(LEADER, GroupChange::Create(GroupKind::Party));
        let party = GroupId::from(party.unwrap());
        self.change(FRIEND, GroupChange::Join(party));
        self.until_known("leader", LEADER, &[(FRIEND, true, 20)]);
        self.until_known("friend", FRIEND, &[(LEADER, true, 10)]);
        party
    }
}

#[test]
fn clients_have_the_attributes_of_members_on_other_nodes() {
    let mut cluster = Cluster::start(RowClock::patient());
    let party = cluster.found_party();
    cluster.set_vigour(FRIEND, 21);
    cluster.until_known("change", LEADER, &[(FRIEND, true, 21)]);
    assert_eq!(cluster.known(OTHER), Some(BTreeMap::new()));
    // A node without members of the party gets nothing.
    assert_eq!(cluster.nodes[2].stats(), PartyValueStats::default());

    // The third player joins, and the second one leaves.
    cluster.change(OTHER, GroupChange::Join(party));
    let all = [(FRIEND, true, 21), (OTHER, true, 30)];
    cluster.until_known("three", LEADER, &all);
    let of_other = [(LEADER, true, 10), (FRIEND, true, 21)];
    cluster.until_known("three", OTHER, &of_other);
    cluster.change(FRIEND, GroupChange::Leave(GroupKind::Party));
    cluster.until_known("left", LEADER, &[(OTHER, true, 30)]);
    cluster.until_known("left", FRIEND, &[]);
    cluster.until_known("left", OTHER, &[(LEADER, true, 10)]);

    // The leader logs out.
    let world = cluster.nodes[0].server.world_mut();
    world.write_message(PlayerLogOut(LEADER));
    cluster.until_known("log-out", OTHER, &[]);
}

#[test]
fn lost_messages_are_repaired() {
    let mut cluster = Cluster::start(RowClock::patient());
    cluster.found_party();
    cluster.set_loss(40);
    for value in 40..60 {
        cluster.set_vigour(FRIEND, value);
        (0..10).for_each(|_| cluster.round());
    }
    cluster.until_known("changes", LEADER, &[(FRIEND, true, 59)]);
    // All messages about the last change are lost.
    cluster.set_loss(100);
    cluster.set_vigour(FRIEND, 70);
    (0..20).for_each(|_| cluster.round());
    assert_eq!(cluster.known(LEADER).unwrap()[&2], (true, 59));
    cluster.set_loss(0);
    cluster.until_known("last change", LEADER, &[(FRIEND, true, 70)]);
    assert!(cluster.nodes[0].stats().gaps > 0);
}

#[test]
fn member_is_followed_from_node_to_node() {
    let mut cluster = Cluster::start(RowClock::patient());
    cluster.found_party();
    cluster.set_vigour(FRIEND, 25);
    cluster.until_known("change", LEADER, &[(FRIEND, true, 25)]);
    // To the node of the leader: clients meet the local object, and forget the other one.
    cluster.move_player(FRIEND, 0);
    let world = cluster.nodes[0].server.world();
    let foreign = world.resource::<ForeignMembers>();
    assert_eq!(foreign.players().count(), 0, "since it has arrived");
    cluster.until_known("here", LEADER, &[(FRIEND, false, 25)]);
    cluster.until_known("here", FRIEND, &[(LEADER, false, 10)]);
    cluster.set_vigour(FRIEND, 26);
    cluster.until_known("change here", LEADER, &[(FRIEND, false, 26)]);
    // And away again, twice: the second time, the new node notifies that of the leader.
    cluster.move_player(FRIEND, 2);
    cluster.until_known("away", LEADER, &[(FRIEND, true, 26)]);
    cluster.until_known("away", FRIEND, &[(LEADER, true, 10)]);
    cluster.move_player(FRIEND, 1);
    cluster.set_vigour(FRIEND, 27);
    cluster.until_known("further", LEADER, &[(FRIEND, true, 27)]);
    cluster.set_vigour(LEADER, 11);
    cluster.until_known("further", FRIEND, &[(LEADER, true, 11)]);
}

#[test]
fn members_move_at_the_same_time_while_messages_are_lost() {
    let mut cluster = Cluster::start(RowClock::patient());
    cluster.found_party();
    for turn in 0..4 {
        cluster.set_loss(30);
        let (leader, friend) = ([2, 1, 0, 1][turn], [0, 2, 1, 2][turn]);
        let to = |player, node: usize| PlayerMove {
            player,
            to: ["n1", "n2", "n3"][node].to_owned(),
        };
        let at = cluster.node_of(LEADER).unwrap();
        let world = cluster.nodes[at].server.world_mut();
        world.write_message(to(LEADER, leader));
        cluster.move_player(FRIEND, friend);
        cluster.move_player(LEADER, leader);
        let value = 100 + turn as u32;
        cluster.set_vigour(FRIEND, value);
        cluster.set_vigour(LEADER, value);
        cluster.set_loss(10);
        cluster.until_known("leader", LEADER, &[(FRIEND, true, value)]);
        cluster.until_known("friend", FRIEND, &[(LEADER, true, value)]);
    }
}

#[test]
fn member_of_a_dead_node_is_followed_to_the_node_that_claims_it() {
    let mut cluster = Cluster::start(RowClock::start());
    let party = cluster.found_party();
    cluster.change(OTHER, GroupChange::Join(party));
    let all = [(FRIEND, true, 20), (OTHER, true, 30)];
    cluster.until_known("three", LEADER, &all);
    cluster.nodes.truncate(2);
    cluster.until("claim", |it| it.node_of(OTHER).is_some());
    let at = cluster.node_of(OTHER).unwrap();
    // On the node of one member it is a local object, and for the other one it is elsewhere.
    let leader = [(FRIEND, true, 20), (OTHER, at != 0, 31)];
    let friend = [(LEADER, true, 10), (OTHER, at != 1, 31)];
    cluster.set_vigour(OTHER, 31);
    cluster.until_known("leader", LEADER, &leader);
    cluster.until_known("friend", FRIEND, &friend);
}
