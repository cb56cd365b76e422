//! The prepared data of the maps of all scenes: updated with edits, built in the background.
//!
//! ```text
//! scene opens ──▶ build ──(build_ticks)──▶ adopted ──▶ edit ──▶ planes repaired, all else dropped ───┐
//!                   ▲                                                        build_ticks without edit ┘
//! ```
//! The ticks in which a build starts and is adopted depend on openings and edits alone, so the algorithm of a
//! tick never depends on the speed of a thread; builds that the next tick adopts are waited for before it begins. In real time
//! nothing is waited for, and a late build is adopted when it is finished. Scenes with the same tiles share a build and its
//! result. Edits during a build are applied when it is adopted. Data from a map's file is loaded instead of a build,
//! and adopted at the same tick, so that both runs are equal. Maps [eroded](super::clearance) for wide walkers are
//! treated like those of separate scenes.
//!
//! Cost: each scene is checked once per tick. A build holds the tiles, so that an edit during one copies the map.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use tracing::warn;

use super::background::Background;
use super::build_late::NavBuildLate;
use super::clearance::ClearanceMaps;
use super::ground::{GroundError, MapEdit, MapGround, MapKey, edits_between};
use super::request_queue::QueuedRequest;
use super::settings::NavSettings;
use super::stats::MapBuildStats;
use crate::map::{SceneMap, TileMap, TileRect};
use crate::memory::MemoryUse;
use crate::nav::{Algorithm, NavMap};
use crate::sim::{BackgroundWorkers, SimSystems};

/// The algorithm that is used while a faster one is not ready.
const FALLBACK_ALGORITHM: Algorithm = Algorithm::JpsBitPrune;

/// The prepared data, by scene.
#[derive(Debug, Default)]
pub(super) struct NavMaps {
    /// In the order of opening; looked up by entity, never sorted by it.
    prepared: IndexMap<MapKey, PreparedMap, foldhash::fast::FixedState>,
    clearance_maps: ClearanceMaps,
    builds: Vec<PendingBuild>,
    unprepared: NavMap,
    changed: Vec<TileRect>,
    pub(super) stats: MapBuildStats,
    /// The late builds adopted in this tick.
    pub(super) late_builds: Vec<NavBuildLate>,
}

#[derive(Debug)]
struct PreparedMap {
    nav_map: NavMap,
    fingerprint: u64,
    /// The tick from which a build may start, and its planned duration in ticks.
    build_from_tick: u64,
    build_ticks: u64,
}

/// A running build of one map.
#[derive(Debug)]
struct PendingBuild {
    /// The fingerprint of its current tiles: those at the start plus later edits.
    fingerprint: u64,
    changed: Vec<TileRect>,
    adopt_tick: u64,
    work: Background<NavMap>,
}

/// The plan of a build.
#[derive(Debug)]
struct BuildPlan {
    tiles: Arc<TileMap>,
    nav_map: NavMap,
    algorithm: Algorithm,
    graph_bytes_max: usize,
}

impl BuildPlan {
    fn build(mut self) -> NavMap {
        if !self.nav_map.matches_tiles(&self.tiles) && !self.tiles.parts().is_empty() {
            let (loaded, refused) = NavMap::from_sections(self.nav_map.diagonal(), &self.tiles);
            for error in refused {
                let (width, height) = (self.tiles.width(), self.tiles.height());
                warn!(width, height, %error, "prepared map section ignored: search data is rebuilt");
            }
            self.nav_map = loaded;
        }
        // Its planes are used until the rest is finished, and again when an edit has dropped the rest.
        self.nav_map.prepare(&self.tiles, FALLBACK_ALGORITHM);
        self.nav_map.prepare_with(
            &self.tiles,
            self.algorithm,
            self.graph_bytes_max,
            BackgroundWorkers::tagged(SimSystems::Navigate.allocation_tag()),
        );
        self.nav_map
    }
}

impl NavMaps {
    /// The data for the search of a request.
    pub(super) fn ground<'a>(
        &'a self,
        waiting: &QueuedRequest,
        maps: &'a Query<&SceneMap>,
    ) -> Result<MapGround<'a>, GroundError> {
        let key = MapKey {
            scene: waiting.object.scene_entity(),
            clearance: waiting.request.clearance,
        };
        let map = maps.get(key.scene).map_err(|_| GroundError::NoMap)?;
        let tiles = match key.clearance {
            0 => map.tiles(),
            _ => self.clearance_maps.tiles(key)?,
        };
        let prepared = self.prepared.get(&key);
        Ok(MapGround {
            tiles,
            nav_map: prepared.map_or(&self.unprepared, |prepared| &prepared.nav_map),
            version: map.version(),
        })
    }

    /// The eroded map of a scene, if it is finished.
    pub(super) fn clearance_tiles(&self, scene: Entity, clearance: u8) -> Option<&Arc<TileMap>> {
        self.clearance_maps.tiles(MapKey { scene, clearance }).ok()
    }

    /// Requests an eroded map of a scene for later ticks.
    pub(super) fn request_clearance(&mut self, scene: Entity, clearance: u8) {
        self.clearance_maps.request(MapKey { scene, clearance });
    }

    /// The bytes of all prepared data, eroded maps included; scenes that share a structure count it each.
    pub(super) fn bytes(&self, algorithm: Algorithm) -> usize {
        let maps = self.prepared.values();
        let prepared = maps.map(|prepared| prepared.nav_map.prepared_bytes(algorithm));
        prepared.sum::<usize>() + self.clearance_maps.bytes()
    }

    /// The same for all algorithms, with shared structures counted once.
    pub(super) fn structure_bytes(&self) -> usize {
        let structures = self.prepared.values();
        let structures = structures.flat_map(|prepared| prepared.nav_map.structures());
        let structures = BTreeMap::from_iter(structures).into_values();
        structures.sum::<usize>() + self.clearance_maps.bytes()
    }

    /// Finishes the builds that the next tick adopts, if `wait` is true.
    pub(super) fn finish_before_tick(&mut self, next_tick: u64, wait: bool) {
        let Self {
            prepared,
            clearance_maps: erosions,
            stats,
            ..
        } = self;
        erosions.finish_before_tick(wait, stats);
        let builds = std::mem::take(&mut self.builds).into_iter();
        let finished = builds.map(|build| {
            let mut scenes = prepared.values();
            let is_wanted = scenes.any(|scene| scene.fingerprint == build.fingerprint);
            if build.adopt_tick > next_tick || !is_wanted {
                return build;
            }
            let work = build.work.finish_before_tick(wait, stats);
            PendingBuild { work, ..build }
        });
        self.builds = finished.collect();
    }

    /// Handles opened and closed scenes and edits, adopts builds that are due, and starts missing ones. A build that is
    /// due and not finished is adopted later, unless `wait` is true.
    ///
    /// `scenes` are all scenes with a map, by their ids, so that storage order has no effect.
    pub(super) fn update(
        &mut self,
        tick: u64,
        wait: bool,
        settings: &NavSettings,
        edits: &mut Vec<MapEdit>,
        scenes: &[(Entity, &SceneMap)],
    ) {
        let mut maps: Vec<(MapKey, Arc<TileMap>)> = scenes
            .iter()
            .map(|&(scene, map)| {
                (
                    MapKey {
                        scene,
                        clearance: 0,
                    },
                    map.tiles().clone(),
                )
            })
            .collect();
        self.late_builds.clear();
        let Self {
            stats,
            late_builds: late,
            ..
        } = self;
        self.clearance_maps
            .update(tick, wait, edits, &mut maps, stats, late);
        self.prepared
            .retain(|key, _| maps.iter().any(|(open, _)| open == key));
        for (key, tiles) in &maps {
            self.apply_edits(tick, settings, edits, *key, tiles);
        }
        for (key, tiles) in &maps {
            if !self.prepared.contains_key(key) {
                let prepared = self.prepare_new(tiles, settings.algorithm, tick);
                self.prepared.insert(*key, prepared);
            }
        }
        self.adopt(tick, wait, &maps);
        for (key, tiles) in &maps {
            self.start_missing_build(tick, settings, *key, tiles);
        }
    }

    /// Applies the edits of a scene's map, or starts again with a replaced map.
    fn apply_edits(
        &mut self,
        tick: u64,
        settings: &NavSettings,
        edits: &[MapEdit],
        map: MapKey,
        tiles: &TileMap,
    ) {
        let fingerprint = tiles.fingerprint();
        let Some(prepared) = self.prepared.get_mut(&map) else {
            return;
        };
        if prepared.fingerprint == fingerprint {
            return;
        }
        if edits_between(
            edits,
            map,
            prepared.fingerprint,
            fingerprint,
            &mut self.changed,
        ) {
            prepared.nav_map.apply_edit(tiles, &self.changed);
            let building = self.builds.iter_mut();
            for build in building.filter(|build| build.fingerprint == prepared.fingerprint) {
                build.fingerprint = fingerprint;
                build.changed.extend_from_slice(&self.changed);
            }
        } else {
            prepared.nav_map = NavMap::default();
        }
        prepared.fingerprint = fingerprint;
        prepared.build_ticks = u64::from(settings.build_ticks);
        prepared.build_from_tick = tick + prepared.build_ticks;
    }

    /// Prepares a scene whose tiles another scene may have, too.
    fn prepare_new(&self, tiles: &TileMap, algorithm: Algorithm, tick: u64) -> PreparedMap {
        let twin = self
            .prepared
            .values()
            .find(|prepared| prepared.nav_map.is_prepared(tiles, algorithm));
        PreparedMap {
            nav_map: twin.map(|twin| twin.nav_map.clone()).unwrap_or_default(),
            fingerprint: tiles.fingerprint(),
            build_from_tick: tick,
            build_ticks: 1,
        }
    }

    /// Assigns finished builds to the scenes with those tiles.
    fn adopt(&mut self, tick: u64, wait: bool, maps: &[(MapKey, Arc<TileMap>)]) {
        for mut build in std::mem::take(&mut self.builds) {
            if build.adopt_tick > tick {
                self.builds.push(build);
                continue;
            }
            let mut waiting = self.prepared.values();
            if !waiting.any(|prepared| prepared.fingerprint == build.fingerprint) {
                continue;
            }
            let mut built = match build.work.finish(wait) {
                Ok(built) => built,
                Err(work) => {
                    self.builds.push(PendingBuild { work, ..build });
                    continue;
                }
            };
            let due_tick = build.adopt_tick;
            self.stats.count_adopted(tick, due_tick);
            self.stats.loaded += u64::from(built.is_loaded());
            for (key, tiles) in maps {
                let Some(prepared) = self.prepared.get_mut(key) else {
                    continue;
                };
                if prepared.fingerprint != build.fingerprint {
                    continue;
                }
                if !build.changed.is_empty() {
                    built.apply_edit(tiles, &build.changed);
                    build.changed.clear();
                }
                prepared.nav_map = built.clone();
                self.late_builds
                    .extend(NavBuildLate::of(*key, tick, due_tick));
            }
        }
    }

    fn start_missing_build(
        &mut self,
        tick: u64,
        settings: &NavSettings,
        map: MapKey,
        tiles: &Arc<TileMap>,
    ) {
        let Some(prepared) = self.prepared.get(&map) else {
            return;
        };
        let is_complete = [FALLBACK_ALGORITHM, settings.algorithm]
            .iter()
            .all(|&algorithm| prepared.nav_map.is_prepared(tiles, algorithm));
        let is_building = || {
            let mut builds = self.builds.iter();
            builds.any(|build| build.fingerprint == prepared.fingerprint)
        };
        if is_complete || prepared.build_from_tick > tick || is_building() {
            return;
        }
        let tile_count = tiles.rect().tile_count() as f32;
        let plan = BuildPlan {
            tiles: tiles.clone(),
            nav_map: prepared.nav_map.clone(),
            algorithm: settings.algorithm,
            graph_bytes_max: (settings.graph_bytes_per_tile_max * tile_count) as usize,
        };
        self.builds.push(PendingBuild {
            fingerprint: prepared.fingerprint,
            changed: Vec::new(),
            adopt_tick: tick + prepared.build_ticks,
            work: Background::start(move || plan.build()),
        });
    }
}

impl MemoryUse for NavMaps {
    fn heap_bytes(&self) -> usize {
        self.structure_bytes() + self.prepared.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, mpsc};
    use std::time::Duration;

    use bevy_app::{App, FixedUpdate};
    use bevy_tasks::{AsyncComputeTaskPool, TaskPool};

    use super::*;
    use crate::memory::memory_by_module;
    use crate::nav::{NavPlugin, Navigator};
    use crate::sim::{LoadMeter, SimSystems, SimTick, clock};
    use crate::world::{SceneSpec, open_scene};

    fn app_with_scene() -> App {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, NavPlugin));
        clock::one_tick_per_update(&mut app);
        let tiles = TileMap::from_fn(80, 80, |x, y| (x * 7 + y * 13) % 11 == 0).unwrap();
        let map = SceneMap::new(Arc::new(tiles), 1.0);
        open_scene(app.world_mut(), SceneSpec::default(), map).unwrap();
        app
    }

    #[test]
    fn shared_map_memory_is_reported_apart_and_counted_once() {
        let mut app = app_with_scene();
        let mut maps = app.world_mut().query::<&SceneMap>();
        let map = maps.single(app.world()).unwrap().clone();
        (0..4).for_each(|_| app.update());
        let memory_of = |app: &App| {
            let modules = memory_by_module(app.world());
            (modules["nav"], modules["nav_maps"])
        };
        let known = |app: &App| {
            let navigator = app.world().resource::<Navigator>();
            navigator.prepared_bytes(Algorithm::JpsGraph)
        };
        let (of_module, of_maps) = memory_of(&app);
        assert!(of_maps == known(&app) && of_maps > 10 * of_module);
        open_scene(app.world_mut(), SceneSpec::default(), map).unwrap();
        (0..4).for_each(|_| app.update());
        assert_eq!((memory_of(&app).1, known(&app)), (of_maps, 2 * of_maps));
    }

    /// Builds that are due in a tick are finished when the tick begins, so that nothing in it waits.
    #[test]
    fn deterministic_run_waits_for_builds_between_ticks() {
        #[derive(Resource, Default)]
        struct DueBuilds(usize);
        fn record_builds(
            navigator: Res<Navigator>,
            tick: Res<SimTick>,
            mut seen: ResMut<DueBuilds>,
        ) {
            let builds = navigator.maps.builds.iter();
            for build in builds.filter(|build| build.adopt_tick <= tick.0) {
                assert!(matches!(build.work, Background::Done(_)), "{build:?}");
                seen.0 += 1;
            }
        }
        let mut app = app_with_scene();
        app.init_resource::<DueBuilds>()
            .add_systems(FixedUpdate, record_builds.in_set(SimSystems::First));
        (0..4).for_each(|_| app.update());
        assert_eq!(app.world().resource::<DueBuilds>().0, 1);
        let builds = app.world().resource::<Navigator>().build_stats();
        assert_eq!((builds.adopted, builds.late, builds.loaded), (1, 0, 0));
        assert!(builds.waited <= 1 && (builds.waited > 0 || builds.wait_time.is_zero()));
    }

    /// With all background threads blocked, a tick that waited for a build would wait until the test ends.
    #[test]
    fn real_time_server_does_not_wait_for_builds() {
        // In a process of its own: the threads of other tests that wait for a build would help with these.
        const ALONE: &str = "THRONG_TEST_ALONE";
        if std::env::var_os(ALONE).is_some() {
            return check_that_no_tick_waits_for_builds();
        }
        let test = "nav::plugin::maps::tests::real_time_server_does_not_wait_for_builds";
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let alone = alone.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
        let alone = alone.output().unwrap();
        let printed = String::from_utf8_lossy(&alone.stdout);
        assert!(
            alone.status.success() && printed.contains("1 passed"),
            "{printed}"
        );
    }

    fn check_that_no_tick_waits_for_builds() {
        let pool = AsyncComputeTaskPool::get_or_init(TaskPool::new);
        let held = Arc::new(AtomicUsize::new(0));
        let (open, shut) = mpsc::channel::<()>();
        let shut = Arc::new(Mutex::new(shut));
        for _ in 0..pool.thread_num() {
            let (held, shut) = (held.clone(), shut.clone());
            let hold = async move {
                held.fetch_add(1, Ordering::Relaxed);
                // Until it is opened, or a tick has waited for too long.
                let _ = shut.lock().unwrap().recv_timeout(Duration::from_secs(60));
            };
            pool.spawn(hold).detach();
        }
        while held.load(Ordering::Relaxed) < pool.thread_num() {
            std::thread::yield_now();
        }
        let mut app = app_with_scene();
        let mut meter = app.world_mut().resource_mut::<LoadMeter>();
        meter.keeps_real_time = true;
        let mut scenes = app.world_mut().query_filtered::<Entity, With<SceneMap>>();
        let scene = scenes.single(app.world()).unwrap();
        let wide = 2;
        let mut navigator = app.world_mut().resource_mut::<Navigator>();
        navigator.maps.request_clearance(scene, wide);
        let builds = |app: &App| app.world().resource::<Navigator>().build_stats();
        (0..5).for_each(|_| app.update());
        assert_eq!(builds(&app), MapBuildStats::default());
        drop(open);
        let mut late = BTreeMap::new();
        let is_adopted = (0..10_000_000).any(|_| {
            app.update();
            std::thread::yield_now();
            let messages = app.world().resource::<Messages<NavBuildLate>>();
            for message in messages.iter_current_update_messages() {
                assert_eq!(message.scene, scene);
                late.entry(message.clearance).or_insert(message.late_ticks);
            }
            late.len() == 2
        });
        let builds = builds(&app);
        assert!(is_adopted && builds.late_ticks >= 8, "{builds:?}");
        assert!(builds.late >= 2 && builds.waited == 0, "{builds:?}");
        assert!(late[&0] >= 4 && late[&wide] >= 4, "{late:?}");
    }
}
