//! The test rig: a whole server without sockets or a wall clock, stepped manually.
//!
//! It wraps the [`Server`] that the program and embedders run, and adds what only tests need: a scene and a crowd in one call,
//! recorded packets, and an error for systems with ambiguous order.
//!
//! ```
//! use throng_scenario::testing::TestServer;
//!
//! let mut server = TestServer::builder().seed(7).build();
//! server.step(40);
//! assert_eq!(server.tick(), 40);
//! ```

use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use glam::Vec2;

use crate::crowd::{CrowdArea, CrowdPlugin, CrowdSpec, SyntheticClients, Wander, add_crowd};
use throng::map::{SceneMap, TileMap};
use throng::outbox::{MemorySink, Outbox};
use throng::server::{Server, ServerBuilder};
use throng::session::SessionKey;
use throng::sim::RandomStreams;
use throng::wire::ClientId;
use throng::world::ObjectKinds;
use throng::world::{SceneSpec, open_scene};

/// A [`Server`] with synthetic crowds and strict system order, which can record its packets.
pub struct TestServer {
    server: Server,
    /// The packets of the last [`step`](Self::step).
    sent: MemorySink,
    scene: Option<Entity>,
}

/// The builder of a [`TestServer`].
pub struct TestServerBuilder {
    server: ServerBuilder,
    map: Option<(TileMap, f32)>,
    crowd: u32,
}

impl Default for TestServerBuilder {
    fn default() -> Self {
        Self {
            server: server(),
            map: None,
            crowd: 0,
        }
    }
}

fn server() -> ServerBuilder {
    Server::builder().strict_order().plugins(CrowdPlugin)
}

impl TestServerBuilder {
    /// The seed of all randomness; 1 by default.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.with(|server| server.seed(seed))
    }

    /// Ticks per second of simulated time; 20 by default.
    #[must_use]
    pub fn tick_hz(self, tick_hz: f64) -> Self {
        self.with(|server| server.tick_hz(tick_hz))
    }

    /// The number of threads for a tick's work; 1 by default. It never changes a result.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        self.with(|server| server.workers(workers))
    }

    /// Measures the time of every set of the tick.
    #[must_use]
    pub fn timing(self) -> Self {
        self.with(ServerBuilder::timing)
    }

    fn with(self, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        Self {
            server: change(self.server),
            ..self
        }
    }

    /// Opens a scene with this map and this tile size in metres.
    #[must_use]
    pub fn map(mut self, map: TileMap, tile_m: f32) -> Self {
        self.map = Some((map, tile_m));
        self
    }

    /// Adds this number of wandering synthetic players that receive packets, in a scene of its own when there is no map.
    #[must_use]
    pub const fn crowd(mut self, players: u32) -> Self {
        self.crowd = players;
        self
    }

    /// Changes the app after all plugins were added and before it starts: adds systems, shuffles schedules.
    #[must_use]
    pub fn configure(self, configure: impl FnOnce(&mut App) + 'static) -> Self {
        self.with(|server| server.configure(configure))
    }

    /// Builds and starts the server.
    ///
    /// # Panics
    /// When the map or the crowd does not fit into a scene: a mistake of the test.
    #[must_use]
    pub fn build(self) -> TestServer {
        let mut server = TestServer {
            server: self.server.build(),
            sent: MemorySink::default(),
            scene: None,
        };
        let seed = server.stats::<RandomStreams>().seed();
        server.world_mut().insert_resource(SessionKey::seeded(seed));
        if let Some((map, tile_m)) = self.map {
            let map = SceneMap::new(Arc::new(map), tile_m);
            let spec = SceneSpec {
                name: "test".into(),
                size_m: map.size_m(),
                ..SceneSpec::default()
            };
            server.scene =
                Some(open_scene(server.world_mut(), spec, map).expect("a map fits into a scene"));
        }
        if self.crowd > 0 {
            server.add_wanderers(self.crowd);
        }
        server
    }
}

impl TestServer {
    /// The builder of a server with defaults.
    #[must_use]
    pub fn builder() -> TestServerBuilder {
        TestServerBuilder::default()
    }

    /// Runs exactly `ticks` ticks.
    pub fn step(&mut self, ticks: u64) {
        self.sent.delivered().clear();
        self.server.step(ticks);
    }

    /// Records sent packets, for [`sent_to`](Self::sent_to); the mirrors of synthetic clients get nothing from then on.
    pub fn record_sent(&mut self) {
        self.server.set_sink(self.sent.clone());
    }

    /// The frames sent to a client in the last [`step`](Self::step), after [`record_sent`](Self::record_sent).
    #[must_use]
    pub fn sent_to(&self, client: ClientId) -> Vec<Vec<u8>> {
        let sent = self.sent.delivered();
        sent.packets
            .iter()
            .filter(|&(to, _)| to == client)
            .map(|(_, frame)| frame.to_vec())
            .collect()
    }

    /// A resource, such as a plugin's statistics.
    ///
    /// # Panics
    /// If the server has no resource of this type, which is a bug in the test.
    #[must_use]
    pub fn stats<R: Resource>(&self) -> &R {
        self.world().resource::<R>()
    }

    /// The current state hash, folded to 64 bits.
    pub fn state_hash(&mut self) -> u64 {
        self.server.state_hash()
    }

    /// Number of ticks that have run.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.server.tick()
    }

    /// The scene that the builder opened, if it did.
    #[must_use]
    pub const fn scene(&self) -> Option<Entity> {
        self.scene
    }

    /// Read access to the world between ticks.
    #[must_use]
    pub fn world(&self) -> &World {
        self.server.world()
    }

    /// Write access to the world between ticks.
    pub fn world_mut(&mut self) -> &mut World {
        self.server.world_mut()
    }

    fn add_wanderers(&mut self, players: u32) {
        let scene = self.scene.unwrap_or_else(|| {
            let map = TileMap::new(400, 400, false).expect("the size is within limits");
            let map = SceneMap::new(Arc::new(map), 0.5);
            let spec = SceneSpec {
                name: "test".into(),
                size_m: map.size_m(),
                ..SceneSpec::default()
            };
            open_scene(self.world_mut(), spec, map).expect("the scene is within limits")
        });
        self.scene = Some(scene);
        let size_m = self
            .world()
            .get::<SceneMap>(scene)
            .map_or(Vec2::ZERO, SceneMap::size_m);
        let kind = self
            .stats::<ObjectKinds>()
            .find("player")
            .expect("a default kind");
        let spec = CrowdSpec {
            behaviour: Wander { radius_m: 50.0 }.into(),
            client_share: 1.0,
            attributes_per_s: 1.0,
            ..CrowdSpec::new(
                "crowd",
                kind,
                players,
                scene,
                CrowdArea::Rect {
                    min: Vec2::ZERO,
                    max: size_m,
                },
            )
        };
        add_crowd(self.world_mut(), spec).expect("players are not spawned here, but log in");
        let sink = self.stats::<SyntheticClients>().sink();
        self.world_mut().resource_mut::<Outbox>().set_sink(sink);
    }
}
