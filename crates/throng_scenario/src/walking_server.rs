//! The load for benchmarks of replication, shared by `cargo bench` and `throng bench sync`.
//!
//! All objects walk as in the [workload of views](throng_aoi::workload), in cells of 50 m, and see at most 100 others. The first of
//! them have clients. There is no map, path or input: only views and replication run.

use std::time::Duration;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, TimePlugin};
use glam::Vec2;
use throng::aoi::{AoiSettings, ViewCaps, Viewable, Viewer};
use throng::outbox::{Outbox, OutboxStats, PacketSink};
use throng::session::{ConnectionInfo, SessionSettings, connect, control};
use throng::sim::clock::{Stopwatch, one_tick_per_update};
use throng::sim::{SimSystems, SimTick, single_threaded};
use throng::sync::{SyncPlugin, SyncSettings, SyncStats};
use throng::wire::ClientId;
use throng::world::{
    Heading, KindId, Object, Position, SceneSpec, Velocity, WorldError, open_scene, spawn_object,
};
use throng_aoi::workload::{CAP, CELL_M, Walkers};

/// Ticks per second.
pub const TICK_HZ: f64 = 20.0;
/// The walking speed of all objects, in metres per second.
pub const SPEED_M_S: f32 = 3.0;

/// The positions of all objects.
#[derive(Resource)]
pub struct WorkloadWalk(pub Walkers);

/// The time of the replication sets in the current tick.
#[derive(Resource, Default)]
struct ReplicationTime {
    stopwatch: Option<Stopwatch>,
    total: Duration,
}

/// A server in which all objects walk.
pub struct WalkingServer {
    app: App,
    objects: Vec<Entity>,
    clients: Vec<ClientId>,
}

impl WalkingServer {
    /// Creates a number of objects in a square with this side in metres; the first ones have clients.
    ///
    /// # Errors
    /// When a scene cannot hold them.
    pub fn new(
        objects: u32,
        clients: u32,
        side_m: f32,
        settings: SyncSettings,
    ) -> Result<Self, WorldError> {
        let mut app = App::new();
        app.add_plugins((TimePlugin, SyncPlugin))
            .insert_resource(Time::<Fixed>::from_hz(TICK_HZ))
            .insert_resource(settings)
            .insert_resource(SessionSettings {
                sessions_max: clients,
                ..SessionSettings::default()
            })
            .insert_resource(AoiSettings {
                cell_m: CELL_M,
                margin_m: 0.0,
                ..AoiSettings::default()
            })
            .insert_resource(WorkloadWalk(Walkers::new(
                objects,
                side_m,
                SPEED_M_S / TICK_HZ as f32,
            )))
            .init_resource::<ReplicationTime>()
            .add_systems(
                FixedUpdate,
                (
                    walk.in_set(SimSystems::Move),
                    start_timer
                        .after(SimSystems::View)
                        .before(SimSystems::Heartbeat),
                    stop_timer
                        .after(SimSystems::Replicate)
                        .before(SimSystems::Send),
                ),
            );
        one_tick_per_update(&mut app);
        single_threaded(&mut app);
        let world = app.world_mut();
        let spec = SceneSpec {
            size_m: Vec2::splat(side_m),
            max_objects: objects,
            ..SceneSpec::default()
        };
        let scene = open_scene(world, spec, ())?;
        let mut server = Self {
            app,
            objects: Vec::new(),
            clients: Vec::new(),
        };
        for nth in 0..objects {
            let world = server.app.world_mut();
            let at = world.resource::<WorkloadWalk>().0.positions[nth as usize];
            let sight = (Viewer::new(ViewCaps::all(CAP)), Viewable::default());
            let object = spawn_object(world, scene, KindId(0), at, sight)?;
            server.objects.push(object);
            if nth < clients
                && let Ok(client) = connect(world, ConnectionInfo::unknown().without_loading())
            {
                control(world, client, object);
                server.clients.push(client);
            }
        }
        Ok(server)
    }

    /// Sets the sink of packets.
    pub fn set_sink(&mut self, sink: Box<dyn PacketSink>) {
        self.app.world_mut().resource_mut::<Outbox>().set_sink(sink);
    }

    /// Runs one tick; returns the time of replication, from the collection of changes to every client's list of messages.
    pub fn step(&mut self) -> Duration {
        self.app.update();
        self.app.world().resource::<ReplicationTime>().total
    }

    /// The statistics of replication and of packets so far.
    #[must_use]
    pub fn stats(&self) -> (SyncStats, OutboxStats) {
        let world = self.app.world();
        (
            *world.resource::<SyncStats>(),
            *world.resource::<OutboxStats>(),
        )
    }

    /// The number of the last tick.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.app.world().resource::<SimTick>().0
    }

    /// The clients, with the objects that they control.
    pub fn clients(&self) -> impl Iterator<Item = (ClientId, Object)> {
        let objects = self.objects.iter();
        let own = self.clients.iter().zip(objects);
        own.filter_map(|(&client, &object)| Some((client, *self.app.world().get(object)?)))
    }

    /// The ids and positions of all objects.
    pub fn positions(&self) -> impl Iterator<Item = (u32, Vec2)> {
        let world = self.app.world();
        self.objects.iter().filter_map(|&entity| {
            let id = world.get::<Object>(entity)?.id().0;
            Some((id, world.get::<Position>(entity)?.0))
        })
    }
}

/// Moves all objects by one tick.
pub fn walk(
    mut walk: ResMut<WorkloadWalk>,
    mut objects: Query<(&Object, &mut Position, &mut Velocity, &mut Heading)>,
) {
    let before = walk.0.positions.clone();
    walk.0.walk();
    for (object, mut position, mut velocity, mut heading) in &mut objects {
        let nth = object.id().0 as usize - 1;
        let at = walk.0.positions[nth];
        velocity.0 = (at - before[nth]) * TICK_HZ as f32;
        *heading = Heading::from_direction(velocity.0).unwrap_or(*heading);
        position.0 = at;
    }
}

fn start_timer(mut spent: ResMut<ReplicationTime>) {
    spent.stopwatch = Some(Stopwatch::start());
}

fn stop_timer(mut spent: ResMut<ReplicationTime>) {
    if let Some(watch) = spent.stopwatch.take() {
        spent.total = watch.elapsed();
    }
}
