//! Navigation in the tick: requests in, [`Path`]s and answers out.
//!
//! ```text
//! PathRequest ─▶ queue (first in, first out; one an object) ─▶ batches of searches, in parallel ─▶ Path + PathAnswered
//! MapEdited ───▶ live paths that it breaks ─▶ queue
//! ```
//! Invariants: every request of an object is answered once, as [`PathAnswered`], and counted once in [`NavStats`]; an
//! object waits in the queue at most once; what is answered in which tick follows from counts of searches and nodes
//! alone, never from time or threads.
//!
//! Deliberately absent: a path is not asked for anew because an edit opened a shorter way.
//!
//! Cost: a search a request, spread over [`Workers`]; an edit looks once at every object that has a path.

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use glam::{IVec2, Vec2};
use indexmap::IndexMap;
use indexmap::map::Entry;
use serde::{Deserialize, Serialize};
use tracing::debug;

use super::{Algorithm, FoundPath, Outcome, Query as SearchQuery, Search, path_crosses};
use crate::map::{MapEdited, MapPlugin, SceneMap, TileRect};
use crate::sim::clock::Stopwatch;
use crate::sim::{self, HashAppExt, SimSystems, StateHasher, Workers};
use crate::world::{
    Despawned, Object, ObjectHashAppExt, Position, SceneChanged, StateHashed, Teleported,
};

/// A batch is what is searched between two looks at the node budget: requests until their weights come to this. It follows
/// from the queue alone, so that the budget ends a tick at the same request whatever the number of workers.
const BATCH_WEIGHT: u32 = 64;

/// Times of searches that are kept for percentiles.
const TIMES_KEPT: usize = 1 << 14;

/// A chunk for another thread has at least this many searches.
const CHUNK_SEARCHES_MIN: usize = 2;

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
            .add_message::<PathRequest>()
            .add_message::<PathAnswered>()
            .configure_sets(FixedUpdate, NavSystems::ClearStale.in_set(SimSystems::Move))
            .add_systems(
                FixedUpdate,
                (
                    (
                        clear_stale_paths,
                        take_requests,
                        notice_edits,
                        answer_requests,
                    )
                        .chain()
                        .in_set(SimSystems::Navigate),
                    clear_stale_paths.in_set(NavSystems::ClearStale),
                ),
            )
            .hash_component::<Path>("path")
            .hash_part("path_queue", |world, hasher| {
                for waiting in world.resource::<Navigator>().queue.values() {
                    hasher.write_u64(waiting.object.key());
                    hasher.write_u64(
                        u64::from(waiting.object.generation().0) << 1
                            | waiting.request.class as u64,
                    );
                    hasher.write_f32(waiting.request.goal.x);
                    hasher.write_f32(waiting.request.goal.y);
                }
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
    /// How paths are searched, by its name.
    #[serde(with = "algorithm_by_name")]
    pub algorithm: Algorithm,
    /// Nodes that a search of [`PathClass::Npc`] may generate before it gives up as `capped`.
    pub npc_nodes_max: u32,
    /// Searches a tick; further requests wait. 0 counts as 1.
    pub searches_per_tick_max: u32,
    /// Nodes generated a tick, after which no further batch is begun: a tick goes beyond it by less than a batch, which is
    /// 64 searches for NPCs or 8 for travel, and always answers at least one.
    pub nodes_per_tick_max: u64,
    /// Requests that may wait; a further one is answered `cancelled` at once.
    pub queue_max: u32,
    /// Whether each search is timed for [`NavStats::times`].
    pub time_searches: bool,
}

impl Default for NavSettings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            npc_nodes_max: 800,
            searches_per_tick_max: 1_000,
            nodes_per_tick_max: 40_000,
            queue_max: 16_384,
            time_searches: false,
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

/// What happened so far. `requested` is the sum of the six results and of what waits.
#[derive(Resource, Clone, Debug, Default, PartialEq)]
pub struct NavStats {
    /// Requests, those for broken paths included.
    pub requested: u64,
    /// Answered with a path.
    pub found: u64,
    /// No walk joins start and goal.
    pub unreachable: u64,
    /// Start or goal is blocked.
    pub blocked: u64,
    /// Start or goal lies outside the map.
    pub out_of_bounds: u64,
    /// Given up at the node limit.
    pub capped: u64,
    /// Replaced by a newer one, refused by a full queue, or its object went away.
    pub cancelled: u64,
    /// Paths that an edit broke and that were asked for anew.
    pub renewed: u64,
    /// Requests that wait now.
    pub waiting: u64,
    /// Nodes expanded by all searches.
    pub expanded: u64,
    /// Nodes generated by all searches.
    pub generated: u64,
    /// Times of single searches, where [`NavSettings::time_searches`] is on.
    pub times: SearchTimes,
}

impl NavStats {
    fn count(&mut self, result: PathResult) {
        *match result {
            PathResult::Found => &mut self.found,
            PathResult::Unreachable => &mut self.unreachable,
            PathResult::Capped => &mut self.capped,
            PathResult::Blocked => &mut self.blocked,
            PathResult::OutOfBounds => &mut self.out_of_bounds,
            PathResult::Cancelled => &mut self.cancelled,
        } += 1;
    }
}

/// How long searches took. Wall-clock figures: never part of the game state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchTimes {
    count: u64,
    total_ns: u64,
    /// The last [`TIMES_KEPT`], in a ring.
    recent_ns: Vec<u64>,
}

impl SearchTimes {
    /// Searches that were timed.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean time of a search, in microseconds; 0 without any.
    pub fn mean_us(&self) -> f64 {
        self.total_ns as f64 / self.count.max(1) as f64 / 1e3
    }

    /// What 99 of 100 searches stay within, in microseconds, over the last 16,384; 0 without any. Sorts a copy of them.
    pub fn p99_us(&self) -> f64 {
        let mut sorted = self.recent_ns.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * 99).div_ceil(100);
        rank.checked_sub(1)
            .map_or(0.0, |last| sorted[last] as f64 / 1e3)
    }

    fn add(&mut self, ns: u64) {
        match self.recent_ns.get_mut(self.count as usize % TIMES_KEPT) {
            Some(oldest) => *oldest = ns,
            None => self.recent_ns.push(ns),
        }
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
    }
}

/// Who asks: decides how much may be spent on the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathClass {
    /// A short way, given up after [`NavSettings::npc_nodes_max`] nodes.
    #[default]
    Npc,
    /// A way of any length.
    Travel,
}

impl PathClass {
    /// How much of a batch a search takes up.
    const fn weight(self) -> u32 {
        match self {
            Self::Npc => 1,
            Self::Travel => 8,
        }
    }
}

/// Asks for a path from where an object stands, when its turn comes, to a goal.
///
/// An object waits at most once: a newer request takes the place of the older, which is answered `cancelled`. Until the
/// answer comes, the object keeps the path it has.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct PathRequest {
    /// The object.
    pub entity: Entity,
    /// Where it wants to be, in metres; the path ends in the middle of that tile.
    pub goal: Vec2,
    /// How much may be spent.
    pub class: PathClass,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathResult {
    /// The object's [`Path`] holds a shortest path.
    Found,
    /// Start and goal are free, and no walk joins them.
    Unreachable,
    /// The search gave up at its node limit.
    Capped,
    /// Start or goal is blocked.
    Blocked,
    /// Start or goal lies outside the map, or there is no map.
    OutOfBounds,
    /// A newer request replaced it, the queue was full, or its object went away.
    Cancelled,
}

impl PathResult {
    /// The name in reports and event files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Unreachable => "unreachable",
            Self::Capped => "capped",
            Self::Blocked => "blocked",
            Self::OutOfBounds => "out_of_bounds",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A request was answered: cancelled ones first, then the others of a tick in the order of the queue.
///
/// `Found` has put the way into the object's [`Path`]; `Cancelled` has left that alone; the others have emptied it.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct PathAnswered {
    /// The entity that was named.
    pub entity: Entity,
    /// The object it was.
    pub object: Object,
    /// The tile from which was searched; for a cancelled request, where the object stood when it was taken in.
    pub from: IVec2,
    /// The goal's tile; [`IVec2::MIN`] for a goal that is no point, or a scene without a map.
    pub to: IVec2,
    /// How it ended.
    pub result: PathResult,
    /// Length of the path in tiles; 0 unless it was found.
    pub length_tiles: f64,
    /// As it was asked.
    pub class: PathClass,
}

/// The way an object is on. Given to an object with its first answer, and emptied when it ends.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    waypoints: Vec<IVec2>,
    next: usize,
    class: PathClass,
    map_version: u64,
}

impl Path {
    /// Whether there is no way to go.
    pub const fn is_empty(&self) -> bool {
        self.waypoints.is_empty()
    }

    /// The turning points as they were found, both ends included; between two the way is straight or diagonal.
    pub fn waypoints(&self) -> &[IVec2] {
        &self.waypoints
    }

    /// Which waypoint the object is heading for; 0 right after the answer.
    pub const fn next(&self) -> usize {
        self.next
    }

    /// The waypoints still to come, the one it is heading for first.
    pub fn remaining(&self) -> &[IVec2] {
        self.waypoints.get(self.next..).unwrap_or_default()
    }

    /// The tile where the way ends.
    pub fn goal(&self) -> Option<IVec2> {
        self.waypoints.last().copied()
    }

    /// What it was asked as.
    pub const fn class(&self) -> PathClass {
        self.class
    }

    /// The [`SceneMap::version`] it was found on.
    pub const fn map_version(&self) -> u64 {
        self.map_version
    }

    /// Heads for a later waypoint. Whether the way there is free is the caller's to know.
    pub const fn advance_to(&mut self, next: usize) {
        self.next = next;
    }

    /// Ends the way; its buffer is kept.
    pub fn clear(&mut self) {
        self.waypoints.clear();
        self.next = 0;
    }
}

impl StateHashed for Path {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.waypoints.len() as u64);
        for tile in &self.waypoints {
            hasher.write_u64(u64::from(tile.x as u32) << 32 | u64::from(tile.y as u32));
        }
        hasher.write_u64(self.next as u64);
        hasher.write_u64(self.map_version << 1 | self.class as u64);
    }
}

/// The requests that wait, and the scratch of the searches: one [`Search`] a worker.
#[derive(Resource, Debug, Default)]
pub struct Navigator {
    /// In the order of asking. Looked up by entity, never sorted by it.
    queue: IndexMap<Entity, Waiting, foldhash::fast::FixedState>,
    jobs: Vec<Job>,
    searches: Vec<Search>,
    teleported: MessageCursor<Teleported>,
    changed_scene: MessageCursor<SceneChanged>,
}

impl Navigator {
    /// Whether a request of this object waits for its turn. O(1).
    pub fn is_waiting(&self, entity: Entity) -> bool {
        self.queue.contains_key(&entity)
    }

    /// Bytes that the scratch of all workers holds.
    pub fn scratch_bytes(&self) -> usize {
        self.searches.iter().map(Search::memory_bytes).sum()
    }
}

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: PathRequest,
    object: Object,
    from: IVec2,
    to: IVec2,
    is_cancelled: bool,
}

impl Waiting {
    fn new(request: PathRequest, object: Object, position: Vec2, maps: &Query<&SceneMap>) -> Self {
        let map = maps.get(object.scene_entity()).ok();
        let (from, to) = (tile_of(map, position), tile_of(map, request.goal));
        Self {
            request,
            object,
            from,
            to,
            is_cancelled: false,
        }
    }

    /// The request from where its object stands now; cancelled when that is not the object that asked.
    fn as_it_stands(self, objects: &Query<(&Object, &Position)>, maps: &Query<&SceneMap>) -> Self {
        match objects.get(self.request.entity) {
            Ok((object, position)) if object.reference() == self.object.reference() => {
                Self::new(self.request, *object, position.0, maps)
            }
            _ => Self {
                is_cancelled: true,
                ..self
            },
        }
    }

    const fn answer(&self, result: PathResult, length_tiles: f64) -> PathAnswered {
        let PathRequest { entity, class, .. } = self.request;
        let Self {
            object, from, to, ..
        } = *self;
        PathAnswered {
            entity,
            object,
            from,
            to,
            result,
            length_tiles,
            class,
        }
    }
}

/// The tile of a point; one that no map has for a point that is none, which would else be rounded to tile (0, 0).
fn tile_of(map: Option<&SceneMap>, point: Vec2) -> IVec2 {
    map.filter(|_| point.is_finite())
        .map_or(IVec2::MIN, |map| map.tile_at(point))
}

/// A search of the batch: a slot that its worker alone writes to.
#[derive(Debug)]
struct Job {
    waiting: Waiting,
    outcome: Option<Outcome>,
    waypoints: Vec<IVec2>,
    map_version: u64,
    expanded: u32,
    generated: u32,
    ns: u64,
}

impl Job {
    /// A search to be run, with a buffer for its waypoints.
    const fn new(waiting: Waiting, waypoints: Vec<IVec2>) -> Self {
        let (map_version, expanded, generated, ns) = (0, 0, 0, 0);
        Self {
            waiting,
            outcome: None,
            waypoints,
            map_version,
            expanded,
            generated,
            ns,
        }
    }

    fn run(&mut self, search: &mut Search, map: Option<&SceneMap>, settings: &NavSettings) {
        if self.waiting.is_cancelled {
            return;
        }
        let Some(map) = map else {
            self.outcome = Some(Outcome::OutOfBounds);
            return;
        };
        let node_limit = match self.waiting.request.class {
            PathClass::Npc => Some(settings.npc_nodes_max),
            PathClass::Travel => None,
        };
        let Waiting { from, to, .. } = self.waiting;
        let query = SearchQuery {
            from,
            to,
            node_limit,
        };
        let stopwatch = settings.time_searches.then(Stopwatch::start);
        self.outcome =
            Some(search.find(map.tiles(), settings.algorithm, query, &mut self.waypoints));
        self.ns = stopwatch.map_or(0, |mut stopwatch| stopwatch.lap_ns());
        (self.expanded, self.generated) = (search.expanded(), search.generated());
        self.map_version = map.version();
    }

    fn result(&self) -> (PathResult, f64) {
        match self.outcome {
            None => (PathResult::Cancelled, 0.0),
            Some(Outcome::Found(path)) => (PathResult::Found, FoundPath::length_tiles(&path)),
            Some(Outcome::Unreachable) => (PathResult::Unreachable, 0.0),
            Some(Outcome::Blocked) => (PathResult::Blocked, 0.0),
            Some(Outcome::OutOfBounds) => (PathResult::OutOfBounds, 0.0),
            Some(Outcome::Capped) => (PathResult::Capped, 0.0),
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
        if let Ok(mut path) = paths.get_mut(entity)
            && !path.is_empty()
        {
            path.clear();
        }
    }
}

/// Cancels what lost its object, and queues what was asked.
///
/// A request of the tick in which its object changed scene is one for the new scene.
fn take_requests(
    mut gone: MessageReader<Despawned>,
    mut requests: MessageReader<PathRequest>,
    settings: Res<NavSettings>,
    mut navigator: ResMut<Navigator>,
    mut stats: ResMut<NavStats>,
    objects: Query<(&Object, &Position)>,
    maps: Query<&SceneMap>,
    mut answers: MessageWriter<PathAnswered>,
) {
    let queue = &mut navigator.queue;
    let mut is_any_cancelled = false;
    for Despawned { entity, object } in gone.read() {
        if let Some(waiting) = queue.get_mut(entity)
            && waiting.object.reference() == object.reference()
        {
            waiting.is_cancelled = true;
            is_any_cancelled = true;
        }
    }
    let mut cancel = |stats: &mut NavStats, waiting: Waiting| {
        stats.count(PathResult::Cancelled);
        answers.write(waiting.answer(PathResult::Cancelled, 0.0));
    };
    if is_any_cancelled {
        queue.retain(|_, waiting| {
            if waiting.is_cancelled {
                cancel(&mut stats, *waiting);
            }
            !waiting.is_cancelled
        });
    }
    for &request in requests.read() {
        stats.requested += 1;
        let Ok((object, position)) = objects.get(request.entity) else {
            debug!(entity = ?request.entity, "path request of no object");
            stats.count(PathResult::Cancelled);
            continue;
        };
        let waiting = Waiting::new(request, *object, position.0, &maps);
        let is_full = queue.len() >= settings.queue_max as usize;
        match queue.entry(request.entity) {
            Entry::Occupied(mut entry) => {
                cancel(&mut stats, entry.insert(waiting));
            }
            Entry::Vacant(_) if is_full => cancel(&mut stats, waiting),
            Entry::Vacant(entry) => {
                entry.insert(waiting);
            }
        }
    }
    stats.waiting = queue.len() as u64;
}

/// Asks anew for the paths that an edit broke, unless their objects have asked for another way already.
///
/// An object that stands on a blocked tile keeps its path as it is: a search would only say so, and whoever puts the
/// object elsewhere knows from the path where it was going.
fn notice_edits(
    mut edited: MessageReader<MapEdited>,
    settings: Res<NavSettings>,
    mut navigator: ResMut<Navigator>,
    mut stats: ResMut<NavStats>,
    walkers: Query<(Entity, &Object, &Position, &Path)>,
    maps: Query<&SceneMap>,
    mut edits: Local<Vec<(Entity, TileRect)>>,
    mut broken: Local<Vec<Waiting>>,
    mut way: Local<Vec<IVec2>>,
) {
    edits.clear();
    edits.extend(edited.read().map(|edit| (edit.scene_entity, edit.rect)));
    if edits.is_empty() {
        return;
    }
    broken.clear();
    for (entity, object, position, path) in &walkers {
        let scene = object.scene_entity();
        let Some(goal) = path.goal() else { continue };
        if navigator.is_waiting(entity) || !edits.iter().any(|edit| edit.0 == scene) {
            continue;
        }
        let Ok(map) = maps.get(scene) else { continue };
        way.clear();
        way.push(map.tile_at(position.0));
        way.extend_from_slice(path.remaining());
        let is_crossed = edits
            .iter()
            .any(|&(edited, rect)| edited == scene && path_crosses(&way, rect));
        let mut lines = way.windows(2);
        let mut is_free = || lines.all(|ends| map.tiles().line_is_free(ends[0], ends[1]));
        if is_crossed && map.tiles().is_free(way[0]) && !is_free() {
            let (goal, class) = (map.centre_of(goal), path.class());
            let request = PathRequest {
                entity,
                goal,
                class,
            };
            broken.push(Waiting::new(request, *object, position.0, &maps));
        }
    }
    broken.sort_unstable_by_key(|waiting| waiting.object.key());
    let room = (settings.queue_max as usize).saturating_sub(navigator.queue.len());
    // Those for whom there is no room find out when they come to the edit, and ask then.
    for &waiting in broken.iter().take(room) {
        navigator.queue.insert(waiting.request.entity, waiting);
        stats.requested += 1;
        stats.renewed += 1;
    }
}

/// Takes requests off the queue, searches in parallel, and applies the answers in the order of the queue.
fn answer_requests(
    settings: Res<NavSettings>,
    workers: Res<Workers>,
    mut navigator: ResMut<Navigator>,
    mut stats: ResMut<NavStats>,
    objects: Query<(&Object, &Position)>,
    maps: Query<&SceneMap>,
    mut paths: Query<&mut Path>,
    mut commands: Commands,
    mut answers: MessageWriter<PathAnswered>,
) {
    let navigator = &mut *navigator;
    let (queue, jobs) = (&mut navigator.queue, &mut navigator.jobs);
    let searches_max = settings.searches_per_tick_max.max(1) as usize;
    let due = queue.len().min(searches_max);
    let (mut done, mut generated) = (0, 0);
    while done < due && (done == 0 || generated < settings.nodes_per_tick_max) {
        let next = queue.values().skip(done).take(due - done);
        let batch = fill_batch(jobs, next, &objects, &maps);
        let batch = &mut jobs[..batch];
        let scratch = &mut navigator.searches;
        workers.for_each_chunk(batch, CHUNK_SEARCHES_MIN, scratch, |search, _, chunk| {
            for job in chunk {
                let map = maps.get(job.waiting.object.scene_entity()).ok();
                job.run(search, map, &settings);
            }
        });
        for job in &mut *batch {
            let (result, length_tiles) = job.result();
            stats.count(result);
            stats.expanded += u64::from(job.expanded);
            stats.generated += u64::from(job.generated);
            generated += u64::from(job.generated);
            if settings.time_searches && job.outcome.is_some() {
                stats.times.add(job.ns);
            }
            apply(job, result, &mut paths, &mut commands);
            answers.write(job.waiting.answer(result, length_tiles));
        }
        done += batch.len();
    }
    queue.drain(..done);
    stats.waiting = queue.len() as u64;
}

/// Puts the next requests into the first jobs, until they weigh as much as a batch may; gives how many.
fn fill_batch<'a>(
    jobs: &mut Vec<Job>,
    waiting: impl Iterator<Item = &'a Waiting>,
    objects: &Query<(&Object, &Position)>,
    maps: &Query<&SceneMap>,
) -> usize {
    let (mut filled, mut weight) = (0, 0);
    for waiting in waiting {
        let waiting = waiting.as_it_stands(objects, maps);
        match jobs.get_mut(filled) {
            Some(job) => *job = Job::new(waiting, std::mem::take(&mut job.waypoints)),
            None => jobs.push(Job::new(waiting, Vec::new())),
        }
        filled += 1;
        weight += waiting.request.class.weight();
        if weight >= BATCH_WEIGHT {
            break;
        }
    }
    filled
}

/// Puts an answer into the object's path; the path's old buffer goes to the job.
fn apply(job: &mut Job, result: PathResult, paths: &mut Query<&mut Path>, commands: &mut Commands) {
    let PathRequest { entity, class, .. } = job.waiting.request;
    match (result, paths.get_mut(entity)) {
        (PathResult::Cancelled, _) => {}
        (PathResult::Found, Ok(mut path)) => {
            std::mem::swap(&mut path.waypoints, &mut job.waypoints);
            (path.next, path.class, path.map_version) = (0, class, job.map_version);
        }
        (PathResult::Found, Err(_)) => {
            let (waypoints, map_version) = (std::mem::take(&mut job.waypoints), job.map_version);
            let path = Path {
                waypoints,
                next: 0,
                class,
                map_version,
            };
            commands.entity(entity).try_insert(path);
        }
        (_, Ok(mut path)) if !path.is_empty() => path.clear(),
        _ => {}
    }
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

    #[test]
    fn search_times_cover_the_latest_in_a_ring() {
        let mut times = SearchTimes::default();
        assert_eq!((times.mean_us(), times.p99_us()), (0.0, 0.0));
        (1..=100).for_each(|us| times.add(us * 1_000));
        assert_eq!(
            (times.count(), times.mean_us(), times.p99_us()),
            (100, 50.5, 99.0)
        );
        (0..TIMES_KEPT).for_each(|_| times.add(7_000));
        assert_eq!(times.p99_us(), 7.0);
    }
}
