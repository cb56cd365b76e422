//! Throng's side: views and replication in an app of their own, as in `throng_scenario::walking_server`, but timed until the packets are in
//! the sink, because the peer also produces packets.

use std::time::Duration;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, TimePlugin};
use glam::Vec2;
use throng::aoi::{AoiSettings, ViewCaps, Viewable, Viewer};
use throng::outbox::{MemorySink, Outbox};
use throng::session::{ConnectionInfo, connect, control};
use throng::sim::clock::one_tick_per_update;
use throng::sim::{SimSystems, SimTick, single_threaded};
use throng::sync::{Mirror, SyncPlugin, SyncSettings, SyncStats};
use throng::wire::ClientId;
use throng::world::{KindId, Object, SceneSpec, open_scene, spawn_object};
use throng_aoi::workload::{CAP, CELL_M, Walkers};
use throng_scenario::walking_server::{SPEED_M_S, TICK_HZ, WorkloadWalk, walk};

use super::spent::{Spent, start, stop};
use super::{Pair, Played, Script, Tick};

/// Position errors of the mirrors.
pub struct Off {
    pub max_m: f32,
    /// Number of known objects without an update in their tick, summed over all ticks.
    pub missed: u64,
    /// p99 error of objects within the full-rate distance.
    pub near_p99_m: f32,
}

/// A server in which all objects walk.
pub struct Server {
    app: App,
    sent: MemorySink,
    full_rate_distance_m: f32,
    /// Sorted; client `n` controls object `n`.
    clients: Vec<ClientId>,
}

impl Server {
    pub fn new(objects: u32, clients: u32, side_m: f32, settings: SyncSettings) -> Self {
        let mut app = App::new();
        let full_rate_distance_m = settings.full_rate_distance_m;
        let walkers = Walkers::new(objects, side_m, SPEED_M_S / TICK_HZ as f32);
        let positions = walkers.positions.clone();
        app.add_plugins((TimePlugin, SyncPlugin))
            .insert_resource(Time::<Fixed>::from_hz(TICK_HZ))
            .insert_resource(settings)
            .insert_resource(AoiSettings {
                cell_m: CELL_M,
                margin_m: 0.0,
                ..AoiSettings::default()
            })
            .insert_resource(WorkloadWalk(walkers))
            .init_resource::<Spent>()
            .add_systems(
                FixedUpdate,
                (
                    walk.in_set(SimSystems::Move),
                    start.after(SimSystems::View).before(SimSystems::Heartbeat),
                    stop.after(SimSystems::Send).before(SimSystems::Last),
                ),
            );
        single_threaded(&mut app);
        one_tick_per_update(&mut app);
        let sent = MemorySink::default();
        let world = app.world_mut();
        world.resource_mut::<Outbox>().set_sink(sent.clone());
        let spec = SceneSpec {
            size_m: Vec2::splat(side_m),
            max_objects: objects,
            ..SceneSpec::default()
        };
        let scene = open_scene(world, spec, ()).expect("the scene's size is valid");
        let mut ids = Vec::new();
        for (nth, at) in (0..).zip(positions) {
            let sight = (Viewer::new(ViewCaps::all(CAP)), Viewable::default());
            let object = spawn_object(world, scene, KindId(0), at, sight)
                .expect("the scene has room for all objects");
            let id = world.get::<Object>(object).map(|object| object.id().0);
            assert_eq!(id, Some(nth + 1), "ids follow the order of spawning");
            if nth < clients {
                let client = connect(world, ConnectionInfo::unknown().without_loading())
                    .expect("there is room for all clients");
                assert!(control(world, client, object), "both exist");
                ids.push(client);
            }
        }
        Self {
            app,
            sent,
            full_rate_distance_m,
            clients: ids,
        }
    }

    /// Runs one tick; returns the time of replication.
    pub fn step(&mut self) -> Duration {
        self.app.update();
        self.app.world().resource::<Spent>().took
    }

    /// Discards the packets sent so far.
    pub fn discard(&mut self) {
        self.sent.delivered().clear();
    }

    /// The replication counters so far.
    fn stats(&self) -> SyncStats {
        *self.app.world().resource::<SyncStats>()
    }

    /// Runs this many ticks after a warm-up. Returns the script that another server needs to send the same, and the result.
    pub fn play(&mut self, warm_up_ticks: u32, ticks: u32) -> (Script, Played, Off) {
        let mut mirrors = vec![Mirror::default(); self.clients.len()];
        for _ in 0..warm_up_ticks {
            self.step();
            self.receive(&mut mirrors);
        }
        let mut known: Vec<Pair> = pairs(&mirrors).collect();
        let mut script = Script {
            clients: self.clients.len() as u32,
            positions: self.positions().to_vec(),
            known: known.clone(),
            ticks: Vec::new(),
        };
        let mut played = Played::default();
        let (mut max_m, mut missed, mut near_off_m) = (0.0_f32, 0, Vec::new());
        let before = self.stats().sent;
        for _ in 0..ticks {
            played.took.push(self.step());
            played.bytes += self.receive(&mut mirrors);
            played.links += self.stats().links;
            let now: Vec<Pair> = pairs(&mirrors).collect();
            script.ticks.push(Tick {
                positions: self.positions().to_vec(),
                entered: missing(&now, &known),
                left: missing(&known, &now),
            });
            known = now;
            assert_eq!(
                self.stats().links,
                known.len() as u64,
                "the mirrors hold as many objects as the server counts"
            );
            let (tick, positions) = (self.app.world().resource::<SimTick>().0, self.positions());
            for &(client, object) in &known {
                let at = positions[object as usize];
                let mirror = &mirrors[client as usize];
                let update_tick = mirror.object(object + 1).map(|held| held.motion_tick);
                missed += u64::from(update_tick != Some(tick));
                let believed = mirror.position(object + 1, tick);
                let off_m = believed.map_or(f32::MAX, |believed| at.distance(believed));
                max_m = off_m.max(max_m);
                if at.distance(positions[client as usize]) <= self.full_rate_distance_m {
                    near_off_m.push(off_m);
                }
            }
        }
        let after = self.stats().sent;
        played.moves = after.motions.messages - before.motions.messages;
        played.enters = after.snapshots.messages - before.snapshots.messages;
        near_off_m.sort_unstable_by(f32::total_cmp);
        let off = Off {
            max_m,
            missed,
            near_p99_m: near_off_m[near_off_m.len() * 99 / 100],
        };
        (script, played, off)
    }

    fn positions(&self) -> &[Vec2] {
        &self.app.world().resource::<WorkloadWalk>().0.positions
    }

    /// Delivers the packets to the mirrors; returns the number of bytes.
    fn receive(&self, mirrors: &mut [Mirror]) -> u64 {
        let mut delivered = self.sent.delivered();
        let mut bytes = 0;
        for (client, packet) in delivered.packets.iter() {
            let nth = self.clients.binary_search(&client).expect("a client");
            mirrors[nth]
                .receive(packet)
                .expect("a valid packet, in order");
            bytes += packet.len() as u64;
        }
        delivered.clear();
        bytes
    }
}

/// All pairs of a client and an object that it knows, ascending.
fn pairs(mirrors: &[Mirror]) -> impl Iterator<Item = Pair> {
    (0..).zip(mirrors).flat_map(|(client, mirror)| {
        let ids = mirror.ids().into_iter();
        ids.map(move |id| (client, id - 1))
    })
}

/// Elements of the first of two ascending lists that are not in the second.
fn missing(of: &[Pair], from: &[Pair]) -> Vec<Pair> {
    let absent = |pair: &&Pair| from.binary_search(pair).is_err();
    of.iter().filter(absent).copied().collect()
}
