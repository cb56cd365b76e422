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
    WorldPlugin,
};

/// Searches between two looks at the node budget. Fixed, so that the budget ends a tick at the same request whatever the
/// number of workers.
const BATCH_SEARCHES: usize = 64;

/// A chunk for another thread has at least this many searches.
const CHUNK_SEARCHES_MIN: usize = 8;

/// Answers path requests. Adds [`WorldPlugin`] and [`MapPlugin`] when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NavPlugin;

impl Plugin for NavPlugin {
    fn build(&self, app: &mut App) {
        sim::install(app);
        if !app.is_plugin_added::<WorldPlugin>() {
            app.add_plugins(WorldPlugin);
        }
        if !app.is_plugin_added::<MapPlugin>() {
            app.add_plugins(MapPlugin);
        }
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
                        u64::from(waiting.object.generation().0) << 1 | waiting.class as u64,
                    );
                    hasher.write_f32(waiting.goal.x);
                    hasher.write_f32(waiting.goal.y);
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
    /// Nodes generated a tick, after which no further batch of 64 searches is begun: a tick goes beyond it by less than a
    /// batch, and always answers at least one.
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
            nodes_per_tick_max: 100_000,
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

/// A histogram of search times, sixteen steps an octave. Wall-clock figures: never part of the game state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchTimes {
    count: u64,
    total_ns: u64,
    buckets: Vec<u64>,
}

impl SearchTimes {
    /// Searches that were timed.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean time of a search in microseconds; 0 without any.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.total_ns as f64 / self.count.max(1) as f64 / 1e3
    }

    /// The time that 99 of 100 searches stay under, in microseconds, rounded up by at most a sixteenth; 0 without any.
    #[must_use]
    pub fn p99_us(&self) -> f64 {
        let rank = self.count - self.count / 100;
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|&count| {
            seen += count;
            seen >= rank
        });
        bucket.map_or(0.0, |bucket| Self::upper_ns(bucket) as f64 / 1e3)
    }

    fn add(&mut self, ns: u64) {
        let bucket = Self::bucket(ns);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
    }

    /// Up to 15 ns exactly; then the octave and the four bits behind its leading one.
    const fn bucket(ns: u64) -> usize {
        if ns < 16 {
            return ns as usize;
        }
        let octave = ns.ilog2() - 4;
        octave as usize * 16 + (ns >> octave) as usize
    }

    /// The largest time that falls into a bucket.
    const fn upper_ns(bucket: usize) -> u64 {
        if bucket < 16 {
            return bucket as u64;
        }
        let (octave, leading) = (bucket / 16 - 1, bucket as u64 % 16 + 16);
        (leading << octave) + ((1 << octave) - 1)
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
    #[must_use]
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
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.waypoints.is_empty()
    }

    /// The turning points as they were found, both ends included; between two the way is straight or diagonal.
    #[must_use]
    pub fn waypoints(&self) -> &[IVec2] {
        &self.waypoints
    }

    /// Which waypoint the object is heading for; 0 right after the answer.
    #[must_use]
    pub const fn next(&self) -> usize {
        self.next
    }

    /// The waypoints still to come, the one it is heading for first.
    #[must_use]
    pub fn remaining(&self) -> &[IVec2] {
        self.waypoints.get(self.next..).unwrap_or_default()
    }

    /// The tile where the way ends.
    #[must_use]
    pub fn goal(&self) -> Option<IVec2> {
        self.waypoints.last().copied()
    }

    /// What it was asked as.
    #[must_use]
    pub const fn class(&self) -> PathClass {
        self.class
    }

    /// The [`SceneMap::version`] it was found on.
    #[must_use]
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
    #[must_use]
    pub fn is_waiting(&self, entity: Entity) -> bool {
        self.queue.contains_key(&entity)
    }

    /// How many requests wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Bytes that the scratch of all workers holds.
    #[must_use]
    pub fn scratch_bytes(&self) -> usize {
        self.searches.iter().map(Search::memory_bytes).sum()
    }
}

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    object: Object,
    goal: Vec2,
    class: PathClass,
    from: IVec2,
    to: IVec2,
    is_cancelled: bool,
}

impl Waiting {
    fn new(object: Object, position: Vec2, map: Option<&SceneMap>, request: PathRequest) -> Self {
        let PathRequest { goal, class, .. } = request;
        let (from, to) = (tile_of(map, position), tile_of(map, goal));
        Self {
            object,
            goal,
            class,
            from,
            to,
            is_cancelled: false,
        }
    }

    const fn answer(&self, entity: Entity, result: PathResult) -> PathAnswered {
        let Self {
            object,
            from,
            to,
            class,
            ..
        } = *self;
        PathAnswered {
            entity,
            object,
            from,
            to,
            result,
            length_tiles: 0.0,
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
    entity: Entity,
    waiting: Waiting,
    outcome: Option<Outcome>,
    waypoints: Vec<IVec2>,
    map_version: u64,
    expanded: u32,
    generated: u32,
    ns: u64,
}

impl Job {
    fn run(&mut self, search: &mut Search, map: Option<&SceneMap>, settings: &NavSettings) {
        if self.waiting.is_cancelled {
            return;
        }
        let Some(map) = map else {
            self.outcome = Some(Outcome::OutOfBounds);
            return;
        };
        let node_limit = match self.waiting.class {
            PathClass::Npc => Some(settings.npc_nodes_max),
            PathClass::Travel => None,
        };
        let query = SearchQuery {
            from: self.waiting.from,
            to: self.waiting.to,
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
        .map(|message| message.entity);
    let left = navigator
        .changed_scene
        .read(&changed_scene)
        .map(|message| message.entity);
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
    let mut cancel = |stats: &mut NavStats, entity, waiting: Waiting| {
        stats.count(PathResult::Cancelled);
        answers.write(waiting.answer(entity, PathResult::Cancelled));
    };
    if is_any_cancelled {
        queue.retain(|&entity, waiting| {
            if waiting.is_cancelled {
                cancel(&mut stats, entity, *waiting);
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
        let waiting = Waiting::new(
            *object,
            position.0,
            maps.get(object.scene_entity()).ok(),
            request,
        );
        let is_full = queue.len() >= settings.queue_max as usize;
        match queue.entry(request.entity) {
            Entry::Occupied(mut entry) => {
                let older = entry.insert(waiting);
                cancel(&mut stats, request.entity, older);
            }
            Entry::Vacant(_) if is_full => cancel(&mut stats, request.entity, waiting),
            Entry::Vacant(entry) => {
                entry.insert(waiting);
            }
        }
    }
    stats.waiting = queue.len() as u64;
}

/// What [`notice_edits`] keeps between ticks to save allocations.
#[derive(Default)]
struct EditBuffers {
    edits: Vec<(Entity, TileRect)>,
    broken: Vec<(Entity, Waiting)>,
    way: Vec<IVec2>,
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
    mut buffers: Local<EditBuffers>,
) {
    let EditBuffers { edits, broken, way } = &mut *buffers;
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
            .any(|&(edited, rect)| edited == scene && path_crosses(way, rect));
        let is_free = || {
            way.windows(2)
                .all(|ends| map.tiles().line_is_free(ends[0], ends[1]))
        };
        if is_crossed && map.tiles().is_free(way[0]) && !is_free() {
            let request = PathRequest {
                entity,
                goal: map.centre_of(goal),
                class: path.class(),
            };
            broken.push((
                entity,
                Waiting::new(*object, position.0, Some(map), request),
            ));
        }
    }
    broken.sort_unstable_by_key(|(_, waiting)| waiting.object.key());
    let room = (settings.queue_max as usize).saturating_sub(navigator.queue.len());
    // Those for whom there is no room find out when they come to the edit, and ask then.
    for &(entity, waiting) in broken.iter().take(room) {
        navigator.queue.insert(entity, waiting);
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
    let Navigator {
        queue,
        jobs,
        searches,
        ..
    } = &mut *navigator;
    let due = queue
        .len()
        .min(settings.searches_per_tick_max.max(1) as usize);
    let (mut done, mut generated) = (0, 0);
    while done < due && (done == 0 || generated < settings.nodes_per_tick_max) {
        let batch = BATCH_SEARCHES.min(due - done);
        for (place, (&entity, &waiting)) in queue.iter().skip(done).take(batch).enumerate() {
            let waiting = as_it_stands(entity, waiting, &objects, &maps);
            match jobs.get_mut(place) {
                Some(job) => {
                    let waypoints = std::mem::take(&mut job.waypoints);
                    *job = Job {
                        waypoints,
                        ..new_job(entity, waiting)
                    };
                }
                None => jobs.push(new_job(entity, waiting)),
            }
        }
        let batch = &mut jobs[..batch];
        workers.for_each_chunk(batch, CHUNK_SEARCHES_MIN, searches, |search, _, chunk| {
            for job in chunk {
                job.run(
                    search,
                    maps.get(job.waiting.object.scene_entity()).ok(),
                    &settings,
                );
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
            answers.write(PathAnswered {
                length_tiles,
                ..job.waiting.answer(job.entity, result)
            });
        }
        done += batch.len();
    }
    queue.drain(..done);
    stats.waiting = queue.len() as u64;
}

const fn new_job(entity: Entity, waiting: Waiting) -> Job {
    Job {
        entity,
        waiting,
        outcome: None,
        waypoints: Vec::new(),
        map_version: 0,
        expanded: 0,
        generated: 0,
        ns: 0,
    }
}

/// The request from where its object stands now; cancelled when that is not the object that asked.
fn as_it_stands(
    entity: Entity,
    waiting: Waiting,
    objects: &Query<(&Object, &Position)>,
    maps: &Query<&SceneMap>,
) -> Waiting {
    match objects.get(entity) {
        Ok((object, position)) if object.reference() == waiting.object.reference() => {
            let request = PathRequest {
                entity,
                goal: waiting.goal,
                class: waiting.class,
            };
            Waiting::new(
                *object,
                position.0,
                maps.get(object.scene_entity()).ok(),
                request,
            )
        }
        _ => Waiting {
            is_cancelled: true,
            ..waiting
        },
    }
}

/// Puts an answer into the object's path; the path's old buffer goes to the job.
fn apply(job: &mut Job, result: PathResult, paths: &mut Query<&mut Path>, commands: &mut Commands) {
    match (result, paths.get_mut(job.entity)) {
        (PathResult::Cancelled, _) => {}
        (PathResult::Found, Ok(mut path)) => {
            std::mem::swap(&mut path.waypoints, &mut job.waypoints);
            (path.next, path.class, path.map_version) = (0, job.waiting.class, job.map_version);
        }
        (PathResult::Found, Err(_)) => {
            let waypoints = std::mem::take(&mut job.waypoints);
            let path = Path {
                waypoints,
                next: 0,
                class: job.waiting.class,
                map_version: job.map_version,
            };
            commands.entity(job.entity).try_insert(path);
        }
        (_, Ok(mut path)) if !path.is_empty() => path.clear(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bevy_tasks::{ComputeTaskPool, TaskPool};

    use super::*;
    use crate::map::{TileEdit, TileMap, edit_map};
    use crate::sim::state_hash;
    use crate::world::{KindId, SceneSpec, change_scene, open_scene, spawn_object, teleport};

    fn app(settings: NavSettings) -> App {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, NavPlugin))
            .insert_resource(settings);
        sim::clock::one_tick_an_update(&mut app);
        app
    }

    /// One search a tick, so that further requests wait.
    fn slow() -> NavSettings {
        NavSettings {
            searches_per_tick_max: 1,
            ..Default::default()
        }
    }

    /// A scene of 1 m tiles.
    fn scene(app: &mut App, ascii: &str) -> Entity {
        let map = SceneMap::new(Arc::new(TileMap::from_ascii(ascii).unwrap()), 1.0);
        let spec = SceneSpec {
            size_m: map.size_m(),
            ..Default::default()
        };
        open_scene(app.world_mut(), spec, map).unwrap()
    }

    fn npc(app: &mut App, scene: Entity, x: f32, y: f32) -> Entity {
        spawn_object(app.world_mut(), scene, KindId(1), Vec2::new(x, y), ()).unwrap()
    }

    fn ask(app: &mut App, entity: Entity, x: f32, y: f32) {
        let goal = Vec2::new(x, y);
        app.world_mut().write_message(PathRequest {
            entity,
            goal,
            class: PathClass::Npc,
        });
    }

    /// Entity, result and goal of this tick's answers.
    fn answers(app: &App) -> Vec<(Entity, PathResult, (i32, i32))> {
        let answers = app
            .world()
            .resource::<Messages<PathAnswered>>()
            .iter_current_update_messages();
        answers
            .map(|answer| (answer.entity, answer.result, answer.to.into()))
            .collect()
    }

    fn stats(app: &App) -> NavStats {
        app.world().resource::<NavStats>().clone()
    }

    fn path(app: &App, entity: Entity) -> Vec<IVec2> {
        app.world()
            .get::<Path>(entity)
            .map_or(Vec::new(), |path| path.remaining().to_vec())
    }

    #[test]
    fn each_request_is_answered_with_its_result() {
        let mut app = app(NavSettings {
            npc_nodes_max: 2,
            ..Default::default()
        });
        let scene = scene(&mut app, "...@.\n.@.@.\n...@@\n.@...");
        let npcs = [(); 6].map(|()| npc(&mut app, scene, 0.5, 0.5));
        let goals = [
            (1.5, 0.5),
            (4.5, 0.5),
            (3.5, 0.5),
            (9.5, 0.5),
            (f32::NAN, 0.5),
            (4.5, 3.5),
        ];
        for (npc, goal) in npcs.into_iter().zip(goals) {
            ask(&mut app, npc, goal.0, goal.1);
        }
        app.update();
        use PathResult::{Blocked, Capped, Found, OutOfBounds, Unreachable};
        let results: Vec<_> = answers(&app)
            .into_iter()
            .map(|answer| (answer.0, answer.1))
            .collect();
        let expected = [
            Found,
            Unreachable,
            Blocked,
            OutOfBounds,
            OutOfBounds,
            Capped,
        ];
        assert_eq!(results, npcs.into_iter().zip(expected).collect::<Vec<_>>());
        assert_eq!(path(&app, npcs[0]), [IVec2::ZERO, IVec2::new(1, 0)]);
        assert!(npcs[1..].iter().all(|&npc| path(&app, npc).is_empty()));
        app.world_mut().write_message(PathRequest {
            entity: npcs[5],
            goal: Vec2::new(4.5, 3.5),
            class: PathClass::Travel,
        });
        app.update();
        let answer = *app
            .world()
            .resource::<Messages<PathAnswered>>()
            .iter_current_update_messages()
            .next()
            .unwrap();
        assert_eq!(
            (answer.result, answer.length_tiles),
            (Found, 7.0),
            "two down, two right, one down, two right"
        );
    }

    #[test]
    fn a_newer_request_takes_the_place_of_the_older_which_is_cancelled() {
        let mut app = app(slow());
        let scene = scene(&mut app, "......");
        let [a, b, c] = [0.5, 1.5, 2.5].map(|x| npc(&mut app, scene, x, 0.5));
        [a, b, c]
            .into_iter()
            .for_each(|npc| ask(&mut app, npc, 5.5, 0.5));
        app.update();
        assert_eq!(answers(&app), [(a, PathResult::Found, (5, 0))]);
        ask(&mut app, b, 4.5, 0.5);
        app.update();
        assert_eq!(
            answers(&app),
            [
                (b, PathResult::Cancelled, (5, 0)),
                (b, PathResult::Found, (4, 0))
            ]
        );
        app.update();
        assert_eq!(answers(&app), [(c, PathResult::Found, (5, 0))]);
        let stats = stats(&app);
        assert_eq!(
            (stats.requested, stats.found, stats.cancelled, stats.waiting),
            (4, 3, 1, 0)
        );
    }

    #[test]
    fn a_despawn_or_a_change_of_scene_cancels_what_waits() {
        let mut app = app(slow());
        let (here, there) = (scene(&mut app, "......"), scene(&mut app, "......"));
        let [a, b, c] = [0.5, 1.5, 2.5].map(|x| npc(&mut app, here, x, 0.5));
        [a, b, c]
            .into_iter()
            .for_each(|npc| ask(&mut app, npc, 5.5, 0.5));
        app.update();
        app.world_mut().despawn(b);
        change_scene(app.world_mut(), c, there, Vec2::splat(0.5)).unwrap();
        app.update();
        assert_eq!(
            answers(&app),
            [
                (b, PathResult::Cancelled, (5, 0)),
                (c, PathResult::Cancelled, (5, 0))
            ]
        );
        assert!(!path(&app, a).is_empty());
        change_scene(app.world_mut(), a, there, Vec2::splat(0.5)).unwrap();
        ask(&mut app, b, 1.5, 0.5);
        app.update();
        assert!(
            path(&app, a).is_empty(),
            "its way was one of the other scene"
        );
        assert_eq!(stats(&app).cancelled, 3, "a request of nobody is counted");
        assert_eq!(stats(&app).waiting, 0);
    }

    #[test]
    fn a_full_queue_refuses_newcomers_and_not_replacements() {
        let mut app = app(NavSettings {
            queue_max: 1,
            ..Default::default()
        });
        let scene = scene(&mut app, "......");
        let [a, b] = [0.5, 1.5].map(|x| npc(&mut app, scene, x, 0.5));
        ask(&mut app, a, 5.5, 0.5);
        ask(&mut app, b, 5.5, 0.5);
        ask(&mut app, a, 4.5, 0.5);
        app.update();
        let expected = [
            (b, PathResult::Cancelled, (5, 0)),
            (a, PathResult::Cancelled, (5, 0)),
            (a, PathResult::Found, (4, 0)),
        ];
        assert_eq!(answers(&app), expected);
    }

    #[test]
    fn an_edit_renews_exactly_the_paths_that_it_breaks() {
        let mut app = app(NavSettings::default());
        let scene = scene(&mut app, ".......\n.......\n.......");
        let [upper, lower, asking] = [0.5, 2.5, 0.5].map(|y| npc(&mut app, scene, 0.5, y));
        [(upper, 0.5), (lower, 2.5), (asking, 0.5)]
            .into_iter()
            .for_each(|(npc, y)| ask(&mut app, npc, 6.5, y));
        app.update();
        let wall = TileRect::new(3, 0, 1, 2);
        edit_map(app.world_mut(), scene, wall, &TileEdit::Block).unwrap();
        ask(&mut app, asking, 1.5, 0.5);
        app.update();
        assert_eq!(
            answers(&app),
            [
                (asking, PathResult::Found, (1, 0)),
                (upper, PathResult::Found, (6, 0))
            ],
            "one has other plans, and the lower path is whole"
        );
        assert_eq!(path(&app, upper).len(), 4, "round the wall");
        assert_eq!(app.world().get::<Path>(upper).unwrap().map_version(), 1);
        edit_map(app.world_mut(), scene, wall, &TileEdit::Free).unwrap();
        app.update();
        assert_eq!(
            (answers(&app), stats(&app).renewed),
            (Vec::new(), 1),
            "what opens breaks nothing"
        );
    }

    #[test]
    fn a_teleport_ends_a_path_and_not_the_one_that_is_asked_for_behind_it() {
        let mut app = app(NavSettings::default());
        let scene = scene(&mut app, "......");
        let [a, b] = [(); 2].map(|()| npc(&mut app, scene, 0.5, 0.5));
        [a, b]
            .into_iter()
            .for_each(|npc| ask(&mut app, npc, 5.5, 0.5));
        app.update();
        [a, b]
            .into_iter()
            .for_each(|npc| teleport(app.world_mut(), npc, Vec2::new(3.5, 0.5)).unwrap());
        ask(&mut app, b, 5.5, 0.5);
        app.update();
        assert_eq!(path(&app, a), []);
        assert_eq!(path(&app, b), [IVec2::new(3, 0), IVec2::new(5, 0)]);
        app.update();
        assert_eq!(path(&app, b).len(), 2);
    }

    /// Answers of every tick and the final hash of a crowd on a maze of pillars, under a node budget that bites.
    fn crowd(workers: usize) -> (Vec<Vec<(Entity, PathResult, (i32, i32))>>, u128) {
        let mut app = app(NavSettings {
            nodes_per_tick_max: 500,
            ..Default::default()
        });
        app.insert_resource(Workers::new(workers));
        let row = |odd: bool| if odd { ".@".repeat(20) } else { ".".repeat(40) };
        let ascii: Vec<String> = (0..40).map(|y| row(y % 2 == 1)).collect();
        let scene = scene(&mut app, &ascii.join("\n"));
        for i in 0..400 {
            let npc = npc(
                &mut app,
                scene,
                (i % 20 * 2) as f32 + 0.5,
                (i / 20 * 2) as f32 + 0.5,
            );
            ask(
                &mut app,
                npc,
                (i * 7 % 20 * 2) as f32 + 0.5,
                (i * 3 % 20 * 2) as f32 + 0.5,
            );
        }
        let mut ticks = Vec::new();
        while ticks.is_empty() || stats(&app).waiting > 0 {
            app.update();
            ticks.push(answers(&app));
        }
        (ticks, state_hash(app.world_mut()).0)
    }

    #[test]
    fn the_node_budget_ends_a_tick_at_the_same_request_with_any_number_of_workers() {
        ComputeTaskPool::get_or_init(TaskPool::default);
        let alone = crowd(1);
        assert!(
            alone.0.len() > 2,
            "the budget spreads the requests over ticks"
        );
        assert!(alone.0.iter().all(|answers| answers.len() <= 400
            && answers.len() % BATCH_SEARCHES <= 400 % BATCH_SEARCHES));
        assert_eq!(alone.0.iter().map(Vec::len).sum::<usize>(), 400);
        assert_eq!(alone, crowd(3));
    }

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
    fn the_histogram_is_exact_to_a_sixteenth() {
        for ns in (0..200).chain([1_000, 65_535, 65_536, 123_456_789, u64::MAX]) {
            let upper = SearchTimes::upper_ns(SearchTimes::bucket(ns));
            assert!(upper >= ns && upper - ns <= ns / 16, "{ns}: {upper}");
        }
        let mut times = SearchTimes::default();
        (0..98).for_each(|_| times.add(1_000));
        (0..2).for_each(|_| times.add(50_000));
        assert!((50.0..54.0).contains(&times.p99_us()) && times.mean_us() == 1.98);
        assert_eq!(SearchTimes::default().p99_us(), 0.0);
    }
}
