//! Two servers of a small game, with rows in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bevy_app::App;
use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::prelude::*;
use throng::sim::StateHasher;
use throng::sync::{AttributeSpec, compare_mirror};
use throng::wire::Encoding;
use throng::world::ObjectHashAppExt;
use throng_client::ClientSession;
use throng_cluster::{
    BusPeer, BusTransport, ClusterKey, ClusterPlayers, ClusterPlugin, ClusterRecord, ClusterReply,
    ClusterRequest, ClusterSessionsPlugin, ClusterStore, ClusterStoreError, DriverSettings,
    GatewayId, LinkSettings, LocalBus, MessageBus, NatsSettings, NodeDriver, PlayerHooks,
    SharedRows, attach_node,
};

use crate::patience::{RowClock, connect_nats, patient_messages};

pub const PLAYER: PlayerId = PlayerId(7);
pub const GOLD: u16 = 40;

#[derive(Component)]
pub struct Gold(pub u16);

impl StateHashed for Gold {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.0.into());
    }
}

/// The scene of a node.
#[derive(Resource)]
pub struct Hall(pub Entity);

pub struct Game;

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

pub struct Node {
    pub name: &'static str,
    pub server: Server,
}

impl Node {
    /// A node with this number of other objects in its scene, after some ticks.
    pub fn start(
        name: &'static str,
        engines: &Engines,
        (others, ticks): (u32, u64),
        gateways: &[GatewayId],
    ) -> Self {
        let mut settings = DriverSettings::new(name);
        settings.gateways = gateways.to_vec();
        settings.nodes_interval = Duration::from_millis(50);
        settings.messages = patient_messages();
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

    pub fn player(&self) -> Option<Entity> {
        self.server
            .world()
            .resource::<ClusterPlayers>()
            .entity(PLAYER)
    }

    /// Whether the client plays here, and its mirror matches the world.
    pub fn is_mirrored(&self, client: &ClientSession) -> bool {
        let world = self.server.world();
        let session = world.resource::<Sessions>().client_of(PLAYER);
        let is_here = self.player().is_some() && client.mirror().controlled_object().is_some();
        is_here && session.is_some_and(|of| compare_mirror(world, of, client.mirror()).is_ok())
    }

    pub fn gold(&self) -> Option<u16> {
        Some(self.server.world().get::<Gold>(self.player()?)?.0)
    }

    pub fn position(&self) -> Option<Vec2> {
        Some(self.server.world().get::<Position>(self.player()?)?.0)
    }
}

/// Between the nodes and the gateway.
pub enum Carrier {
    Memory(LocalBus),
    Nats(NatsSettings),
}

/// Rows in memory that can be away.
#[derive(Clone, Default)]
pub struct SwitchedStore {
    pub rows: SharedRows,
    pub is_away: Arc<AtomicBool>,
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
pub struct Engines {
    pub store: SwitchedStore,
    pub carrier: Carrier,
    pub clock: RowClock,
}

impl Engines {
    pub fn bus(&self, own: BusPeer, run: u64) -> MessageBus {
        let transport: Box<dyn BusTransport> = match &self.carrier {
            Carrier::Memory(bus) => Box::new(bus.join(own)),
            Carrier::Nats(settings) => Box::new(connect_nats(settings, own)),
        };
        MessageBus::new(transport, ClusterKey::new(&[7; 32]), own, run)
    }
}
