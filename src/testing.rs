//! The test rig: a whole server without sockets or a wall clock, stepped by hand.
//!
//! Tests, benches and the program all build their app here, so that what is tested is what runs.
//!
//! ```
//! use throng::testing::TestServer;
//!
//! let mut server = TestServer::builder().seed(7).crowd(20).build();
//! server.step(40);
//! assert_eq!(server.tick(), 40);
//! ```

use std::sync::Arc;

use bevy_app::{
    App, FixedPostUpdate, FixedPreUpdate, FixedUpdate, TaskPoolOptions, TaskPoolPlugin,
};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{LogLevel, ScheduleBuildSettings, ScheduleLabel, SingleThreadedExecutor};
use bevy_time::{Fixed, Time, TimePlugin};
use glam::Vec2;

use crate::ThrongPlugins;
use crate::crowd::{Behaviour, CrowdArea, CrowdPlugin, CrowdSpec, add_crowd};
use crate::map::{SceneMap, TileMap};
use crate::outbox::{MemorySink, Outbox};
use crate::sim::{Heartbeat, RandomStreams, SimTick, TimingPlugin, Workers, clock, state_hash};
use crate::wire::ClientId;
use crate::world::{ObjectKinds, SceneSpec, open_scene};

/// A server that does one tick when it is told to.
pub struct TestServer {
    app: App,
    /// What was sent in the last [`step`](Self::step).
    sent: MemorySink,
    scene: Option<Entity>,
}

/// What a [`TestServer`] is built with.
pub struct TestServerBuilder {
    seed: u64,
    tick_hz: f64,
    workers: usize,
    timing: bool,
    map: Option<(TileMap, f32)>,
    crowd: u32,
    configure: Vec<Box<dyn FnOnce(&mut App)>>,
}

impl Default for TestServerBuilder {
    fn default() -> Self {
        Self {
            seed: 1,
            tick_hz: 20.0,
            workers: 1,
            timing: false,
            map: None,
            crowd: 0,
            configure: Vec::new(),
        }
    }
}

impl TestServerBuilder {
    /// The seed of all randomness; 1 by default.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Ticks a second of simulated time; 20 by default.
    #[must_use]
    pub const fn tick_hz(mut self, tick_hz: f64) -> Self {
        self.tick_hz = tick_hz;
        self
    }

    /// On how many threads a tick's work is spread; 1 by default. Never changes a result.
    #[must_use]
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Times every set of the tick.
    #[must_use]
    pub const fn timing(mut self) -> Self {
        self.timing = true;
        self
    }

    /// Opens a scene with this map and tiles of so many metres.
    #[must_use]
    pub fn map(mut self, map: TileMap, tile_m: f32) -> Self {
        self.map = Some((map, tile_m));
        self
    }

    /// Adds so many wandering synthetic players that receive packets, in a scene of its own when there is no map.
    #[must_use]
    pub const fn crowd(mut self, players: u32) -> Self {
        self.crowd = players;
        self
    }

    /// Changes the app after all plugins were added and before it starts: adds systems, shuffles schedules.
    #[must_use]
    pub fn configure(mut self, configure: impl FnOnce(&mut App) + 'static) -> Self {
        self.configure.push(Box::new(configure));
        self
    }

    /// Builds and starts the server.
    ///
    /// # Panics
    /// When the map or the crowd does not fit into a scene: a mistake of the test.
    #[must_use]
    pub fn build(self) -> TestServer {
        let mut app = App::new();
        app.add_plugins((
            TaskPoolPlugin {
                task_pool_options: pools(self.workers),
            },
            TimePlugin,
            ThrongPlugins,
            CrowdPlugin,
        ));
        if self.timing {
            app.add_plugins(TimingPlugin);
        }
        app.insert_resource(Time::<Fixed>::from_hz(self.tick_hz))
            .insert_resource(RandomStreams::new(self.seed))
            .insert_resource(Workers::new(self.workers));
        strict(&mut app, FixedPreUpdate);
        strict(&mut app, FixedUpdate);
        strict(&mut app, Heartbeat);
        strict(&mut app, FixedPostUpdate);
        self.configure
            .into_iter()
            .for_each(|configure| configure(&mut app));
        app.finish();
        app.cleanup();
        clock::one_tick_an_update(&mut app);

        let mut server = TestServer {
            app,
            sent: MemorySink::default(),
            scene: None,
        };
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

/// Makes the order of a schedule's systems an error where it could show, and runs them on the calling thread.
fn strict(app: &mut App, label: impl ScheduleLabel) {
    app.edit_schedule(label, |schedule| {
        let settings = schedule.get_build_settings();
        schedule.set_build_settings(ScheduleBuildSettings {
            ambiguity_detection: LogLevel::Error,
            ..settings
        });
        // The sets of a tick are a chain: what can run at once is inside the systems, which spread it over the workers
        // themselves. So systems are not handed to other threads, which costs more than it gains.
        schedule.set_executor(SingleThreadedExecutor::new());
    });
}

/// Task pools with so many threads for the tick, the calling one included, and one each for the rest. The first app of a
/// process makes them.
pub(crate) fn pools(workers: usize) -> TaskPoolOptions {
    let mut options = TaskPoolOptions::default();
    let helpers = workers.saturating_sub(1).max(1);
    for (pool, threads) in [
        (&mut options.io, 1),
        (&mut options.async_compute, 1),
        (&mut options.compute, helpers),
    ] {
        (pool.min_threads, pool.max_threads) = (threads, threads);
    }
    options
}

impl TestServer {
    /// A server with defaults, to be changed.
    #[must_use]
    pub fn builder() -> TestServerBuilder {
        TestServerBuilder::default()
    }

    /// Does exactly `ticks` ticks.
    pub fn step(&mut self, ticks: u64) {
        self.sent.kept().clear();
        (0..ticks).for_each(|_| self.app.update());
    }

    /// Keeps what is sent, for [`sent_to`](Self::sent_to); the mirrors of synthetic clients get nothing from then on.
    pub fn keep_sent(&mut self) {
        let sink = Box::new(self.sent.clone());
        self.world_mut().resource_mut::<Outbox>().set_sink(sink);
    }

    /// The frames that a client was sent in the last [`step`](Self::step), after [`keep_sent`](Self::keep_sent).
    #[must_use]
    pub fn sent_to(&self, client: ClientId) -> Vec<Vec<u8>> {
        let kept = self.sent.kept();
        kept.frames
            .iter()
            .filter(|&(to, _)| to == client)
            .map(|(_, frame)| frame.to_vec())
            .collect()
    }

    /// A resource, such as a plugin's statistics.
    ///
    /// # Panics
    /// When the server has none of this type: a mistake of the test.
    #[must_use]
    pub fn stats<R: Resource>(&self) -> &R {
        self.app.world().resource::<R>()
    }

    /// The state hash as it is now, folded to the 64 bits that are shown.
    pub fn state_hash(&mut self) -> u64 {
        state_hash(self.app.world_mut()).fold()
    }

    /// The number of ticks done.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.app.world().resource::<SimTick>().0
    }

    /// The scene that the builder opened, if it did.
    #[must_use]
    pub const fn scene(&self) -> Option<Entity> {
        self.scene
    }

    /// The world.
    #[must_use]
    pub fn world(&self) -> &World {
        self.app.world()
    }

    /// The world, to change between ticks.
    pub fn world_mut(&mut self) -> &mut World {
        self.app.world_mut()
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
            behaviour: Behaviour::Wander { radius_m: 50.0 },
            clients: 1.0,
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
        let sink = self.stats::<crate::crowd::SyntheticClients>().sink();
        self.world_mut().resource_mut::<Outbox>().set_sink(sink);
    }
}
