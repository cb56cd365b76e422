//! Parties and guilds have members on all nodes: three servers with their own nodes. Rows and bus are in memory, or on a Postgres server and a NATS
//! server.
//!
//! The Postgres server is that of `THRONG_POSTGRES`; without it, or without a `nats-server`, these are not tested.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::prelude::*;
use throng::world::{GuildId, Parties, PartyId, SceneSpec, open_scene};
use throng_cluster::{
    BusPeer, BusTransport, ClusterGroups, ClusterKey, ClusterPlayers, ClusterPlugin, ClusterRecord,
    ClusterSessionsPlugin, ClusterSessionsSettings, ClusterStore, DriverSettings, GroupChange,
    GroupChangeFinished, GroupChangeRequest, GroupId, GroupKind, GroupMessageRequest,
    GroupNotChanged, GroupStats, LinkSettings, LocalBus, MessageBus, NatsSettings, NodeDriver,
    PlayerHooks, PlayerMessageReceived, PlayerMove, PostgresRows, RefusedGroup, SharedRows,
    attach_node,
};
use throng_store::testing::{TestSchema, postgres_url};

use crate::patience::{RowClock, connect_nats, patient_messages};
use crate::servers::NatsServer;

/// Rounds of 2 ms or more after which a condition counts as never met.
const ROUNDS_MAX: u32 = 30_000;

const LEADER: PlayerId = PlayerId(1);
const FRIEND: PlayerId = PlayerId(2);
const OTHER: PlayerId = PlayerId(3);

#[derive(Resource)]
struct Hall(Entity);

struct Game;

impl PlayerHooks for Game {
    fn on_collect(&self, _: &World, _: Entity) -> Vec<u8> {
        Vec::new()
    }

    fn on_receive(&self, world: &mut World, player: PlayerId, _: &ClusterRecord) -> Entity {
        let place = (InScene(world.resource::<Hall>().0), Position(Vec2::ONE));
        world.spawn((Player, player, place)).id()
    }
}

/// What arrived in a server.
#[derive(Resource, Default)]
struct Received {
    messages: BTreeMap<PlayerId, Vec<u8>>,
    finished: Vec<Result<Option<GroupId>, GroupNotChanged>>,
}

fn collect_messages(
    mut messages: MessageReader<PlayerMessageReceived>,
    mut finished: MessageReader<GroupChangeFinished>,
    mut received: ResMut<Received>,
) {
    for it in messages.read() {
        let messages = received.messages.entry(it.player).or_default();
        messages.extend_from_slice(&it.bytes);
    }
    received
        .finished
        .extend(finished.read().map(|it| it.result));
}

/// What the nodes share.
#[derive(Clone)]
enum Engines {
    Memory(SharedRows, LocalBus),
    Servers(Arc<TestSchema>, Arc<NatsServer>),
}

impl Engines {
    fn store(&self) -> Box<dyn ClusterStore> {
        match self {
            Self::Memory(rows, _) => Box::new(rows.clone()),
            Self::Servers(schema, _) => Box::new(PostgresRows::new(
                &schema.source(),
                Duration::from_millis(450),
            )),
        }
    }

    fn transport(&self, own: BusPeer) -> Box<dyn BusTransport> {
        match self {
            Self::Memory(_, bus) => Box::new(bus.join(own)),
            Self::Servers(_, nats) => {
                let settings = NatsSettings::new(nats.address());
                Box::new(connect_nats(&settings, own))
            }
        }
    }
}

struct Cluster {
    engines: Engines,
    nodes: Vec<Server>,
    clock: RowClock,
}

impl Cluster {
    /// Three nodes, with a player on each.
    fn start(engines: Engines, clock: RowClock) -> Self {
        let nodes = ["n1", "n2", "n3"].map(|name| {
            let mut settings = DriverSettings::new(name);
            settings.nodes_interval = Duration::from_millis(50);
            settings.start_timeout = Duration::from_secs(60);
            settings.messages = patient_messages();
            let driver = NodeDriver::start(
                &settings,
                || engines.store(),
                |run| {
                    let own = BusPeer::Node(run.node);
                    let key = ClusterKey::new(&[7; 32]);
                    Ok(MessageBus::new(engines.transport(own), key, own, run.run))
                },
            );
            let plugins = |app: &mut App| {
                app.add_plugins((ClusterPlugin::new(Game), ClusterSessionsPlugin))
                    .init_resource::<Received>()
                    .insert_resource(ClusterSessionsSettings {
                        // The players have no clients.
                        client_wait_s: 1e6,
                        ..ClusterSessionsSettings::default()
                    })
                    .add_systems(FixedUpdate, collect_messages);
            };
            let mut server = Server::builder().tick_hz(100.0).plugins(plugins).build();
            let world = server.world_mut();
            let hall = open_scene(world, SceneSpec::new("hall", Vec2::splat(40.0)), ());
            world.insert_resource(Hall(hall.unwrap()));
            attach_node(world, driver.unwrap(), LinkSettings::default(), None);
            server
        });
        let mut cluster = Self {
            engines,
            nodes: nodes.into(),
            clock,
        };
        for (node, player) in [LEADER, FRIEND, OTHER].into_iter().enumerate() {
            cluster.players(node).log_in(player);
            cluster.until("login", |it| it.entity(node, player).is_some());
        }
        cluster
    }

    fn players(&self, node: usize) -> &ClusterPlayers {
        self.nodes[node].world().resource::<ClusterPlayers>()
    }

    fn entity(&self, node: usize, player: PlayerId) -> Option<Entity> {
        self.players(node).entity(player)
    }

    fn component<C: Component + Copy>(&self, node: usize, player: PlayerId) -> Option<C> {
        let entity = self.entity(node, player)?;
        self.nodes[node].world().get::<C>(entity).copied()
    }

    fn received(&self, node: usize) -> &Received {
        self.nodes[node].world().resource::<Received>()
    }

    fn stats(&self, node: usize) -> GroupStats {
        let driver = self.players(node).driver().unwrap();
        driver.with_groups(|groups| groups.stats())
    }

    /// Messages that a node has dropped because their player is logged out, or was not found in time.
    fn dropped(&self, node: usize) -> u64 {
        let driver = self.players(node).driver().unwrap();
        let stats = driver.with_messages(|messenger, _, _| messenger.stats());
        stats.offline + stats.dead + stats.late
    }

    /// The members of a group by a node: by `ClusterGroups`, and for a party by `Parties`, too.
    fn members(&self, node: usize, group: GroupId) -> Vec<u64> {
        let world = self.nodes[node].world();
        let members = world.resource::<ClusterGroups>().members(group).iter();
        let members: Vec<PlayerId> = members.map(|member| member.player).collect();
        if group.kind == GroupKind::Party {
            let parties = world.resource::<Parties>();
            assert_eq!(parties.members(PartyId(group.id)), members);
        }
        members.iter().map(|player| player.0).collect()
    }

    fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        for _ in 0..ROUNDS_MAX {
            if let Engines::Memory(rows, _) = &self.engines {
                self.clock.advance(rows);
            }
            for node in &mut self.nodes {
                node.step(1);
            }
            if condition(self) {
                return;
            }
            thread::park_timeout(Duration::from_millis(2));
        }
        let stats: Vec<GroupStats> = (0..self.nodes.len()).map(|node| self.stats(node)).collect();
        panic!("{what}: {stats:?}");
    }

    /// Changes the group of a player on a node, and waits for the outcome.
    fn change(
        &mut self,
        node: usize,
        player: PlayerId,
        change: GroupChange,
    ) -> Result<Option<GroupId>, GroupNotChanged> {
        let before = self.received(node).finished.len();
        let world = self.nodes[node].world_mut();
        world.write_message(GroupChangeRequest { player, change });
        self.until("change", |it| it.received(node).finished.len() > before);
        self.received(node).finished[before]
    }

    fn say(&mut self, node: usize, group: GroupId, number: u8) {
        let world = self.nodes[node].world_mut();
        world.write_message(GroupMessageRequest {
            group,
            channel: 1,
            bytes: vec![number],
        });
    }

    fn heard(&self, player: PlayerId) -> Vec<u8> {
        let nodes = (0..self.nodes.len()).map(|node| self.received(node));
        let each = nodes.filter_map(|received| received.messages.get(&player));
        let mut numbers: Vec<u8> = each.flatten().copied().collect();
        numbers.sort_unstable();
        numbers
    }
}

fn party_has_members_on_all_nodes(engines: Engines) {
    let mut cluster = Cluster::start(engines, RowClock::patient());
    let created = cluster.change(0, LEADER, GroupChange::Create(GroupKind::Party));
    let party = created.unwrap().unwrap();
    let join = GroupChange::Join(party);
    assert_eq!(cluster.change(1, FRIEND, join), Ok(Some(party)));
    cluster.until("members", |it| {
        [0, 1].iter().all(|node| it.members(*node, party) == [1, 2])
    });
    let component = Some(PartyId(party.id));
    for (node, player) in [(0, LEADER), (1, FRIEND)] {
        assert_eq!(cluster.component::<PartyId>(node, player), component);
    }
    assert_eq!(cluster.members(2, party), [0; 0]);
    assert_eq!(cluster.component::<PartyId>(2, OTHER), None);
    cluster.say(0, party, 1);
    cluster.until("message", |it| {
        [LEADER, FRIEND]
            .iter()
            .all(|player| it.heard(*player) == [1])
    });

    // The friend comes to the node of the leader: both share its attributes, because both have the component.
    cluster.until("move", |it| {
        // A node that pauses on a busy machine drops the request.
        if it.entity(1, FRIEND).is_some() {
            let (player, to) = (FRIEND, "n1".to_owned());
            let world = it.nodes[1].world_mut();
            world.write_message(PlayerMove { player, to });
        }
        it.component(0, FRIEND) == component
    });
    cluster.until("departure", |it| it.members(1, party).is_empty());
    assert_eq!(cluster.members(0, party), [1, 2]);
    cluster.say(0, party, 2);
    cluster.until("message", |it| {
        [LEADER, FRIEND]
            .iter()
            .all(|player| it.heard(*player) == [1, 2])
    });

    // The third player joins, and the leader leaves.
    assert_eq!(cluster.change(2, OTHER, join), Ok(Some(party)));
    assert_eq!(
        cluster.change(0, LEADER, GroupChange::Leave(GroupKind::Party)),
        Ok(None)
    );
    cluster.until("members", |it| {
        [0, 2].iter().all(|node| it.members(*node, party) == [2, 3])
    });
    assert_eq!(cluster.component::<PartyId>(0, LEADER), None);
    assert_eq!(cluster.component::<PartyId>(0, FRIEND), component);
    cluster.say(2, party, 3);
    cluster.until("message", |it| {
        [FRIEND, OTHER]
            .iter()
            .all(|player| it.heard(*player).ends_with(&[3]))
    });
    assert_eq!(cluster.heard(LEADER), [1, 2]);
    assert_eq!(cluster.heard(OTHER), [3]);

    // The friend is removed by the node of the third player.
    let removed = cluster.change(2, FRIEND, GroupChange::Leave(GroupKind::Party));
    assert_eq!(removed, Ok(None));
    cluster.until("removal", |it| it.component::<PartyId>(0, FRIEND).is_none());
    cluster.until("members", |it| it.members(2, party) == [3]);
    assert_eq!(cluster.members(0, party), [0; 0]);
}

#[test]
fn party_in_memory_has_members_on_all_nodes() {
    let (rows, bus) = (SharedRows::default(), LocalBus::default());
    party_has_members_on_all_nodes(Engines::Memory(rows, bus));
}

#[test]
fn party_on_servers_has_members_on_all_nodes() {
    let Some(url) = postgres_url() else { return };
    let Some(nats) = NatsServer::start(&[]) else {
        return;
    };
    let schema = Arc::new(TestSchema::new(&url));
    party_has_members_on_all_nodes(Engines::Servers(schema, Arc::new(nats)));
}

#[test]
fn group_outlives_the_node_and_the_log_out_of_a_member() {
    let (rows, bus) = (SharedRows::default(), LocalBus::default());
    let mut cluster = Cluster::start(Engines::Memory(rows, bus), RowClock::start());
    let created = cluster.change(2, OTHER, GroupChange::Create(GroupKind::Guild));
    let guild = created.unwrap().unwrap();
    let join = GroupChange::Join(guild);
    cluster.change(0, LEADER, join).unwrap();
    let again = cluster.change(0, LEADER, GroupChange::Create(GroupKind::Guild));
    assert_eq!(again, Err(GroupNotChanged::Refused(RefusedGroup::InGroup)));
    let component = Some(GuildId(guild.id));
    cluster.until("guild", |it| {
        it.component(0, LEADER) == component && it.component(2, OTHER) == component
    });
    // The node of the founder dies, and another one claims the founder with its guild.
    cluster.nodes.truncate(2);
    cluster.until("claim", |it| {
        (0..2).any(|node| it.component(node, OTHER) == component)
    });
    cluster.until("members", |it| it.members(0, guild) == [3, 1]);
    // A member that is logged out gets no message and stays a member.
    let at = usize::from(cluster.entity(1, OTHER).is_some());
    let world = cluster.nodes[at].world_mut();
    world.write_message(throng_cluster::PlayerLogOut(OTHER));
    cluster.until("log-out", |it| it.entity(at, OTHER).is_none());
    let dropped = cluster.dropped(0);
    cluster.say(0, guild, 9);
    // If the node still takes the member to be on the dead node, its message is lost without a count.
    let mut rounds = 0;
    cluster.until("message", |it| {
        rounds += 1;
        it.heard(LEADER) == [9] && (it.dropped(0) > dropped || rounds > 1_000)
    });
    assert_eq!(cluster.members(0, guild), [3, 1]);
    cluster.players(1).log_in(OTHER);
    cluster.until("login", |it| it.component(1, OTHER) == component);
    assert_eq!(cluster.heard(OTHER), [0; 0]);
    // A group without a member here.
    let unknown = GroupId {
        kind: GroupKind::Party,
        id: 77,
    };
    cluster.say(0, unknown, 1);
    cluster.until("count", |it| {
        let world = it.nodes[0].world();
        world.resource::<ClusterGroups>().unknown_groups() == 1
    });
}
