//! Navigation in the tick: requests in, [`NavPath`]s and results out.
//!
//! ```text
//! PathRequest ┬▶ queue ─────────▶ admitted by estimate ──▶ searched in parallel ─┬▶ NavPath, PathFound
//!     ▲       └▶ long searches ─▶ a few at once ─────────▶ searched in slices ───┴▶ PathFailed
//! MapEdited ─▶ prepared data is updated; paths that the edit breaks are requested again
//! ```
//! | file | holds |
//! |---|---|
//! | `request` | requests and results: [`PathRequest`], [`NavPath`], the messages |
//! | `settings`, `stats` | [`NavSettings`]; [`NavStats`], [`MapBuildStats`] |
//! | `navigator` | [`Navigator`]: the state between ticks |
//! | `request_queue` | a request in the queue |
//! | `ground`, `maps`, `clearance` | the data that a path is searched on; its preparation; the same for wide walkers |
//! | `background`, `build_late` | work outside the ticks; the message for late builds |
//! | `job`, `groups`, `long_searches` | a search; searches of a tick with one goal; searches that take many ticks |
//! | `results` | writes results |
//! | `enqueue`, `search_system`, `long_search_system`, `replan` | the systems: queue requests, run short and long searches, replan broken paths |
//!
//! Invariants: every [`PathRequest`] is removed with its result, a [`PathFound`] or a [`PathFailed`], and counted once in
//! [`NavStats`]; an object is queued at most once; the tick of each result depends on the requests alone,
//! never on time or threads, unless a budget in milliseconds is set.
//!
//! Deliberately absent: a path is not requested again because an edit opened a shorter one.
//!
//! Cost: one search per request, distributed over [`Workers`]; equal requests of a tick share one. An edit tests once every
//! object that has a path.

use bevy_app::{App, FixedPreUpdate, FixedUpdate};
use bevy_ecs::prelude::*;

use self::enqueue::enqueue_requests;
use self::ground::MapEdit;
use self::long_search_system::run_long_searches;
use self::replan::replan_edited_paths;
use self::request::NewPathRequests;
use self::search_system::search_requests;
use crate::map::{MapEdited, MapPlugin, SceneMap};
use crate::memory::MemoryAppExt;
use crate::sim::{CounterDelta, HashAppExt, LoadMeter, SimSystems, SimTick, WorkAppExt};
use crate::world::{ObjectChangedScene, ObjectHashAppExt, ObjectTeleported, Scenes};

mod background;
mod build_late;
mod clearance;
mod enqueue;
mod ground;
mod groups;
mod job;
mod long_search_system;
mod long_searches;
mod maps;
mod navigator;
mod replan;
mod request;
mod request_queue;
mod results;
mod search_system;
mod settings;
mod stats;

pub use build_late::NavBuildLate;
pub use navigator::Navigator;
pub use replan::replan_path;
pub use request::{NavPath, PathFailed, PathFailure, PathFound, PathRequest, SearchBudgetClass};
pub use settings::NavSettings;
pub use stats::{MapBuildStats, NavStats, SearchTimes};

/// Finds paths for objects on the map of their scene.
///
/// Insert a [`PathRequest`] on an object. In [`SimSystems::Navigate`] of the same tick, or of a later one under load, it becomes a
/// [`NavPath`] and the message [`PathFound`], or the message [`PathFailed`] with the reason. Paths that a later edit of the map breaks
/// are requested again.
///
/// [`NavSettings`] has the algorithm and the work per tick, [`NavStats`] the counters. Searches are distributed over the worker threads;
/// what exceeds the work of a tick waits in a queue. Adds [`MapPlugin`] when it is missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NavPlugin;

crate::sim::sim_plugin!(NavPlugin, MapPlugin);

impl NavPlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<NavSettings>()
            .register_type::<PathRequest>();
        app.init_resource::<NavSettings>()
            .init_resource::<NavStats>()
            .init_resource::<NewPathRequests>()
            .init_resource::<Navigator>()
            .count_memory_by("nav", |world| {
                navigator_bytes(world, Navigator::bytes_without_maps)
            })
            .count_memory_by("nav_maps", |world| {
                navigator_bytes(world, Navigator::map_bytes)
            })
            .count_memory::<NavStats>("nav")
            .count_component_memory::<NavPath>("nav")
            .add_counted_message::<PathFound>("nav")
            .add_message::<PathFailed>()
            .add_message::<NavBuildLate>()
            .add_systems(FixedPreUpdate, finish_builds)
            .configure_sets(FixedUpdate, NavSystems::ClearStale.in_set(SimSystems::Move))
            .add_systems(
                FixedUpdate,
                (
                    (
                        clear_stale_paths,
                        prepare_maps,
                        replan_edited_paths,
                        enqueue_requests,
                        search_requests,
                        run_long_searches,
                    )
                        .chain()
                        .in_set(SimSystems::Navigate),
                    clear_stale_paths.in_set(NavSystems::ClearStale),
                ),
            )
            .add_cost_estimator({
                let mut expanded = CounterDelta::default();
                move |world, costs| {
                    let now = world.resource::<NavStats>().expanded;
                    expanded.update(now) * u64::from(costs.expansion_ns)
                }
            })
            .hash_component::<NavPath>("path")
            .hash_part("path_queue", |world, hasher| {
                let Navigator {
                    queue,
                    long_searches: travels,
                    ..
                } = world.resource();
                queue.values().for_each(|waiting| waiting.hash(hasher));
                travels.hash(hasher);
            });
    }
}

/// A size of the navigator, which an embedder may have removed.
fn navigator_bytes(world: &World, bytes: fn(&Navigator) -> usize) -> usize {
    world.get_resource::<Navigator>().map_or(0, bytes)
}

/// The order of the `nav` systems and those that follow paths.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NavSystems {
    /// Within [`SimSystems::Move`]: objects that were moved otherwise since Navigate lose their paths. Systems that move objects along
    /// paths run after it.
    ClearStale,
}

/// Clears the paths of objects that were moved otherwise. It runs twice per tick with the same cursors: a jump before
/// Navigate must not end the path that is found after it, and after a jump behind Navigate the object must not follow the old path.
fn clear_stale_paths(
    mut navigator: ResMut<Navigator>,
    teleported: Res<Messages<ObjectTeleported>>,
    changed_scene: Res<Messages<ObjectChangedScene>>,
    mut paths: Query<&mut NavPath>,
) {
    let navigator = &mut *navigator;
    let jumped = navigator
        .teleported
        .read(&teleported)
        .map(|jump| jump.entity);
    let left = navigator
        .changed_scene
        .read(&changed_scene)
        .map(|change| change.entity);
    for entity in jumped.chain(left) {
        navigator.long_searches.restart(entity);
        if let Ok(mut path) = paths.get_mut(entity)
            && !path.is_empty()
        {
            path.clear();
        }
    }
}

/// Whether to wait for builds: not if ticks have to keep real time.
fn waits_for_builds(settings: &NavSettings, meter: &LoadMeter) -> bool {
    settings.wait_for_builds && !meter.keeps_real_time
}

/// Waits between two ticks for the builds that the next one adopts, so that the tick does not.
fn finish_builds(
    tick: Res<SimTick>,
    settings: Res<NavSettings>,
    meter: Res<LoadMeter>,
    mut navigator: ResMut<Navigator>,
) {
    let wait = waits_for_builds(&settings, &meter);
    navigator.maps.finish_before_tick(tick.0 + 1, wait);
}

/// Updates the prepared data from the maps.
fn prepare_maps(
    tick: Res<SimTick>,
    settings: Res<NavSettings>,
    meter: Res<LoadMeter>,
    mut navigator: ResMut<Navigator>,
    mut edited: MessageReader<MapEdited>,
    scenes: Res<Scenes>,
    maps: Query<&SceneMap>,
    mut edits: Local<Vec<MapEdit>>,
    mut late: MessageWriter<NavBuildLate>,
) {
    edits.clear();
    edits.extend(edited.read().map(MapEdit::from));
    let maps: Vec<_> = scenes
        .iter()
        .filter_map(|(_, scene)| Some((scene, maps.get(scene).ok()?)))
        .collect();
    let wait = waits_for_builds(&settings, &meter);
    let maps_of = &mut navigator.maps;
    maps_of.update(tick.0, wait, &settings, &mut edits, &maps);
    late.write_batch(maps_of.late_builds.drain(..));
}
