//! Navigation in the tick: requests in, [`Path`]s and answers out.
//!
//! ```text
//! PathRequest ┬▶ queue ──▶ admitted by estimate ──▶ searched in parallel ─┬▶ Path, PathFound
//!     ▲       └▶ travels ▶ a few at once ─────────▶ searched in slices ───┴▶ PathFailed
//! MapEdited ─▶ what is prepared follows; live paths that the edit breaks are asked for anew
//! ```
//! Invariants: every [`PathRequest`] is removed with its answer, a [`PathFound`] or a [`PathFailed`], and counted once in
//! [`NavStats`]; an object waits in the queue at most once; what is answered in which tick follows from the requests alone,
//! never from time or threads, unless a budget in milliseconds is set.
//!
//! Deliberately absent: a path is not asked for anew because an edit opened a shorter way.
//!
//! Cost: a search a request, spread over [`Workers`]; equal requests of a tick share one. An edit looks once at every
//! object that has a path.

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use self::answer::{SearchJob, answer_requests};
use self::edits::notice_edits;
use self::groups::{GoalGroups, GroupScratch};
use self::maps::{Edit, NavMaps};
use self::queue::{RequestQueue, take_requests};
use self::travel::{Travels, answer_travels};
use super::{Algorithm, Search};
use crate::map::{MapEdited, MapPlugin, SceneMap, TileMap};
use crate::sim::{self, HashAppExt, SimSystems, SimTick};
use crate::world::{ObjectHashAppExt, SceneChanged, Scenes, Teleported};

mod answer;
mod background;
mod edits;
mod erosion;
mod groups;
mod maps;
mod queue;
mod request;
mod stats;
mod travel;

pub use request::{Path, PathClass, PathFailed, PathFailure, PathFound, PathRequest};
pub use stats::{NavStats, SearchTimes};

/// Answers path requests. Adds [`MapPlugin`] when it is missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NavPlugin;

impl Plugin for NavPlugin {
    /// Plugins that need this one add it, so it may come more than once.
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<Self>() {
            return;
        }
        sim::install(app);
        app.add_plugins(MapPlugin);
        app.init_resource::<NavSettings>()
            .init_resource::<NavStats>()
            .init_resource::<Navigator>()
            .add_message::<PathFound>()
            .add_message::<PathFailed>()
            .configure_sets(FixedUpdate, NavSystems::ClearStale.in_set(SimSystems::Move))
            .add_systems(
                FixedUpdate,
                (
                    (
                        clear_stale_paths,
                        prepare_maps,
                        notice_edits,
                        take_requests,
                        answer_requests,
                        answer_travels,
                    )
                        .chain()
                        .in_set(SimSystems::Navigate),
                    clear_stale_paths.in_set(NavSystems::ClearStale),
                ),
            )
            .hash_component::<Path>("path")
            .hash_part("path_queue", |world, hasher| {
                let Navigator { queue, travels, .. } = world.resource();
                queue.values().for_each(|waiting| waiting.hash(hasher));
                travels.hash(hasher);
            });
    }
}

/// Order among the systems of `nav` and those that follow paths.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NavSystems {
    /// Within [`SimSystems::Move`]: objects that were put elsewhere since Navigate lose their paths. Whoever walks along
    /// paths runs behind it.
    ClearStale,
}

/// What may be tuned.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NavSettings {
    /// How paths are searched, by its name. Until what it reads is built, `jps-bit-prune` answers.
    #[serde(with = "algorithm_by_name")]
    pub algorithm: Algorithm,
    /// Ticks from a build's beginning to its adoption, and without an edit before one is begun.
    pub build_ticks: u32,
    /// Whether a tick waits for a build that is due then, so that runs are deterministic: for some 15 ns a tile of a map
    /// just opened. A server in real time switches it off: a build that is late is adopted when it is done.
    pub wait_for_builds: bool,
    /// Bytes a tile that the graph of jump points may take; a map that needs more is searched with sign planes.
    pub graph_bytes_per_tile_max: f32,
    /// Nodes that a search of [`PathClass::Npc`] may generate before it gives up as `capped`.
    pub npc_nodes_max: u32,
    /// The same for [`PathClass::Travel`].
    pub travel_nodes_max: u32,
    /// Searches of [`PathClass::Travel`] under way at once, each with scratch of its own; further ones wait. 0 counts as 1.
    pub travels_at_once_max: u32,
    /// Expansions a tick of all of them together; the rest of their way they go in the next.
    pub travel_expansions_per_tick: u64,
    /// Expansions that one makes before the others have their turn, twice as many after each edit of its map. 0 counts as 1.
    pub travel_slice_expansions: u32,
    /// The widest bodies provided for, by [`PathRequest::clearance`]; requests for wider ones fail as `blocked`. Every
    /// clearance in use takes an eroded map a scene.
    pub clearance_max: u8,
    /// Tiles that an end of a path may be moved at most, whatever the request says.
    pub snap_tiles_max: u32,
    /// Searches a tick; further requests wait. 0 counts as 1.
    pub searches_per_tick_max: u32,
    /// Expansions a tick, by the estimate made before the search: requests are admitted, oldest first, until theirs come to
    /// this. At least one is.
    pub expansions_per_tick_max: u64,
    /// Milliseconds a tick, after which no further search is begun, though one always is; `None` in deterministic runs.
    pub budget_ms: Option<f32>,
    /// Requests that may wait; a further one is `cancelled` at once.
    pub queue_max: u32,
    /// Whether each search is timed for [`NavStats::times`].
    pub time_searches: bool,
}

impl Default for NavSettings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            build_ticks: 10,
            wait_for_builds: true,
            graph_bytes_per_tile_max: 4.0,
            npc_nodes_max: 800,
            travel_nodes_max: 1_000_000,
            travels_at_once_max: 8,
            travel_expansions_per_tick: 40_000,
            travel_slice_expansions: 2_000,
            clearance_max: 4,
            snap_tiles_max: 64,
            searches_per_tick_max: 1_000,
            expansions_per_tick_max: 40_000,
            budget_ms: None,
            queue_max: 16_384,
            time_searches: false,
        }
    }
}

impl NavSettings {
    const fn nodes_max(&self, class: PathClass) -> u32 {
        match class {
            PathClass::Npc => self.npc_nodes_max,
            PathClass::Travel => self.travel_nodes_max,
        }
    }
}

mod algorithm_by_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::nav::Algorithm;

    pub fn serialize<S: Serializer>(
        algorithm: &Algorithm,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(algorithm.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Algorithm, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// The requests that wait, what is prepared of the scenes' maps, and the scratch of the searches: one [`Search`] a worker.
#[derive(Resource, Debug, Default)]
pub struct Navigator {
    /// Who was given a request since the queue was last looked at, in that order.
    asked: Vec<Entity>,
    /// The short ones.
    queue: RequestQueue,
    travels: Travels,
    maps: NavMaps,
    jobs: Vec<SearchJob>,
    searches: Vec<Search>,
    groups: GoalGroups,
    group_searches: Vec<GroupScratch>,
    teleported: MessageCursor<Teleported>,
    changed_scene: MessageCursor<SceneChanged>,
}

impl Navigator {
    /// Bytes of everything prepared of all scenes' maps for an algorithm; scenes that share it count it each.
    pub fn prepared_bytes(&self, algorithm: Algorithm) -> usize {
        self.maps.bytes(algorithm)
    }

    /// Bytes that the scratch of all workers holds.
    pub fn scratch_bytes(&self) -> usize {
        let searches = self.searches.iter().map(Search::memory_bytes);
        let of_groups = self.group_searches.iter().map(GroupScratch::memory_bytes);
        searches.chain(of_groups).sum::<usize>() + self.travels.scratch_bytes()
    }

    /// The tiles of a scene with this map for bodies that need so many tiles free around theirs: the map's own for 0, else
    /// those [eroded](TileMap::eroded), from the tick after a [`PathRequest`] has first asked for them.
    pub fn tiles<'a>(
        &'a self,
        map: &'a SceneMap,
        scene: Entity,
        clearance: u8,
    ) -> Option<&'a TileMap> {
        match clearance {
            0 => Some(map.tiles()),
            _ => self.maps.eroded(scene, clearance).map(|tiles| &**tiles),
        }
    }
}

/// Empties the paths of objects that were put elsewhere. It runs twice a tick with the same cursors: a jump before
/// Navigate must not end the path that is found behind it, and one after Navigate must not be walked on from.
fn clear_stale_paths(
    mut navigator: ResMut<Navigator>,
    teleported: Res<Messages<Teleported>>,
    changed_scene: Res<Messages<SceneChanged>>,
    mut paths: Query<&mut Path>,
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
        navigator.travels.begin_anew(entity);
        if let Ok(mut path) = paths.get_mut(entity)
            && !path.is_empty()
        {
            path.clear();
        }
    }
}

/// Keeps what is prepared in step with the maps.
fn prepare_maps(
    tick: Res<SimTick>,
    settings: Res<NavSettings>,
    mut navigator: ResMut<Navigator>,
    mut edited: MessageReader<MapEdited>,
    scenes: Res<Scenes>,
    maps: Query<&SceneMap>,
    mut edits: Local<Vec<Edit>>,
) {
    edits.clear();
    edits.extend(edited.read().map(Edit::from));
    let maps: Vec<_> = scenes
        .iter()
        .filter_map(|(_, scene)| Some((scene, maps.get(scene).ok()?)))
        .collect();
    navigator.maps.update(tick.0, &settings, &mut edits, &maps);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_by_name_and_refuse_unknown_ones() {
        let settings: NavSettings =
            ron::from_str("(algorithm: \"astar\", npc_nodes_max: 9)").unwrap();
        assert_eq!(
            (settings.algorithm, settings.npc_nodes_max),
            (Algorithm::AStar, 9)
        );
        let written = ron::to_string(&settings).unwrap();
        assert_eq!(ron::from_str::<NavSettings>(&written).unwrap(), settings);
        assert!(ron::from_str::<NavSettings>("(algorithm: \"dijkstra\")").is_err());
        assert!(ron::from_str::<NavSettings>("(npc_node_max: 9)").is_err());
    }
}
