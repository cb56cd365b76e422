//! Requests waiting and being answered.

use bevy_ecs::prelude::*;
use glam::{IVec2, Vec2};
use indexmap::IndexMap;
use indexmap::map::Entry;
use tracing::debug;

use super::{
    NavSettings, NavStats, Navigator, Path, PathClass, PathFailed, PathFailure, PathFound,
    PathRequest,
};
use crate::map::SceneMap;
use crate::nav::{FoundPath, NavMap, Outcome, Query as SearchQuery, Search};
use crate::sim::clock::Stopwatch;
use crate::sim::{StateHasher, Workers};
use crate::world::{Object, Position};

/// A chunk for another thread has at least this many searches.
const CHUNK_SEARCHES_MIN: usize = 2;

type Objects<'w, 's> = Query<'w, 's, (&'static Object, &'static Position, &'static PathRequest)>;

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    entity: Entity,
    request: PathRequest,
    object: Object,
    from: IVec2,
    to: IVec2,
}

impl Waiting {
    fn new(
        entity: Entity,
        (object, position, request): (&Object, &Position, &PathRequest),
        maps: &Query<&SceneMap>,
    ) -> Self {
        let map = maps.get(object.scene_entity()).ok();
        Self {
            entity,
            request: *request,
            object: *object,
            from: tile_of(map, position.0),
            to: tile_of(map, request.goal),
        }
    }

    /// Moves the ends as far as the request allows: off blocked tiles, and a goal to where it can be reached.
    fn snapped(mut self, maps: &Query<&SceneMap>, settings: &NavSettings) -> Self {
        let Ok(map) = maps.get(self.object.scene_entity()) else {
            return self;
        };
        let tiles = map.tiles();
        let snap_tiles = self.request.snap_tiles.min(settings.snap_tiles_max);
        let nearest_tiles = self.request.nearest_tiles.min(settings.snap_tiles_max);
        for end in [&mut self.from, &mut self.to] {
            if snap_tiles > 0 && *end != IVec2::MIN && !tiles.is_free(*end) {
                *end = tiles.nearest_free(*end, snap_tiles).unwrap_or(*end);
            }
        }
        if nearest_tiles > 0
            && self.to != IVec2::MIN
            && let Some(region) = tiles.region(self.from)
            && !tiles.connected(self.from, self.to)
        {
            let nearest = tiles.nearest_in_region(self.to, nearest_tiles, region);
            self.to = nearest.unwrap_or(self.to);
        }
        self
    }

    /// Expansions that the search is taken to need: a guess from the distance, as nothing else is known before. What is
    /// answered without a search needs few.
    fn estimate(&self, maps: &Query<&SceneMap>, settings: &NavSettings) -> u64 {
        let map = maps.get(self.object.scene_entity());
        if !map.is_ok_and(|map| map.tiles().connected(self.from, self.to)) {
            return 8;
        }
        let tiles = (self.to.as_i64vec2() - self.from.as_i64vec2())
            .abs()
            .max_element() as u64;
        let estimate = 8 + tiles / 2;
        match self.request.class {
            PathClass::Npc => estimate.min(u64::from(settings.npc_nodes_max)),
            PathClass::Travel => estimate,
        }
    }

    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        let Self {
            object, request, ..
        } = self;
        hasher.write_u64(object.key());
        hasher.write_u64(u64::from(object.generation().0));
        request.hash(hasher);
    }

    const fn failed(&self, reason: PathFailure) -> PathFailed {
        PathFailed {
            entity: self.entity,
            object: self.object,
            reason,
            from: self.from,
            to: self.to,
            class: self.request.class,
        }
    }
}

/// The tile of a point; one that no map has for a point that is none, which would else be rounded to tile (0, 0).
fn tile_of(map: Option<&SceneMap>, point: Vec2) -> IVec2 {
    map.filter(|_| point.is_finite())
        .map_or(IVec2::MIN, |map| map.tile_at(point))
}

/// A search of this tick: a slot that its worker alone writes to.
#[derive(Debug)]
pub(super) struct Job {
    waiting: Waiting,
    work: Work,
    waypoints: Vec<IVec2>,
    map_version: u64,
    expanded: u32,
    generated: u32,
    ns: u64,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Not begun, for want of time.
    Waits,
    /// What asked is no more.
    Cancelled,
    /// An earlier job of the tick asks the same.
    SameAs(usize),
    Done(Outcome),
}

impl Job {
    fn run(
        &mut self,
        search: &mut Search,
        map: Option<&SceneMap>,
        nav_map: &NavMap,
        settings: &NavSettings,
    ) {
        let Some(map) = map else {
            self.work = Work::Done(Outcome::OutOfBounds);
            return;
        };
        let node_limit = match self.waiting.request.class {
            PathClass::Npc => settings.npc_nodes_max,
            PathClass::Travel => settings.travel_nodes_max,
        };
        let Waiting { from, to, .. } = self.waiting;
        let query = SearchQuery {
            from,
            to,
            node_limit: Some(node_limit),
        };
        let stopwatch = settings.time_searches.then(Stopwatch::start);
        let (tiles, algorithm) = (map.tiles(), settings.algorithm);
        let outcome = search.find(tiles, nav_map, algorithm, query, &mut self.waypoints);
        if outcome == Outcome::Capped && self.waiting.request.partial {
            search.write_partial(tiles, nav_map, algorithm, query, &mut self.waypoints);
        }
        self.work = Work::Done(outcome);
        self.ns = stopwatch.map_or(0, |mut stopwatch| stopwatch.lap_ns());
        (self.expanded, self.generated) = (search.expanded(), search.generated());
        self.map_version = map.version();
    }
}

/// Queues what was asked since the last tick.
///
/// A request of the tick in which its object changed scene is one for the new scene.
pub(super) fn take_requests(
    settings: Res<NavSettings>,
    mut navigator: ResMut<Navigator>,
    mut stats: ResMut<NavStats>,
    objects: Objects,
    maps: Query<&SceneMap>,
    mut failed: MessageWriter<PathFailed>,
    mut commands: Commands,
) {
    let navigator = &mut *navigator;
    for entity in navigator.asked.drain(..) {
        // Withdrawn at once, or given to what is no object.
        let Ok(asking) = objects.get(entity) else {
            debug!(?entity, "path request of no object, or withdrawn");
            commands.entity(entity).try_remove::<PathRequest>();
            continue;
        };
        stats.requested += 1;
        let waiting = Waiting::new(entity, asking, &maps);
        let is_full = navigator.queue.len() >= settings.queue_max as usize;
        let cancelled = match navigator.queue.entry(entity) {
            Entry::Occupied(mut entry) => entry.insert(waiting),
            Entry::Vacant(_) if is_full => {
                commands.entity(entity).try_remove::<PathRequest>();
                waiting
            }
            Entry::Vacant(entry) => {
                entry.insert(waiting);
                continue;
            }
        };
        stats.count_failed(PathFailure::Cancelled);
        failed.write(cancelled.failed(PathFailure::Cancelled));
    }
    stats.waiting = navigator.queue.len() as u64;
}

/// Admits requests, searches in parallel, and applies the answers in the order of the queue.
pub(super) fn answer_requests(
    settings: Res<NavSettings>,
    workers: Res<Workers>,
    mut navigator: ResMut<Navigator>,
    mut stats: ResMut<NavStats>,
    objects: Objects,
    maps: Query<&SceneMap>,
    mut paths: Query<&mut Path>,
    mut commands: Commands,
    mut found: MessageWriter<PathFound>,
    mut failed: MessageWriter<PathFailed>,
) {
    let navigator = &mut *navigator;
    let admitted = admit(navigator, &settings, &objects, &maps);
    if admitted == 0 {
        return;
    }
    let jobs = &mut navigator.jobs[..admitted];
    let (scratch, nav_maps) = (&mut navigator.searches, &navigator.maps);
    let stopwatch = Stopwatch::start();
    let is_late = || {
        let elapsed_ms = || stopwatch.elapsed().as_secs_f32() * 1e3;
        settings.budget_ms.is_some_and(|ms| elapsed_ms() > ms)
    };
    workers.for_each_chunk(jobs, CHUNK_SEARCHES_MIN, scratch, |search, first, chunk| {
        for (nth, job) in chunk.iter_mut().enumerate() {
            // The oldest request is answered whatever the time, or a queue might never move.
            if !matches!(job.work, Work::Waits) {
                continue;
            }
            if first + nth > 0 && is_late() {
                return;
            }
            let scene = job.waiting.object.scene_entity();
            let map = maps.get(scene).ok();
            job.run(search, map, nav_maps.of(scene), &settings);
        }
    });
    for nth in 0..admitted {
        share(jobs, nth, &mut stats);
        let job = &mut jobs[nth];
        let outcome = match job.work {
            Work::Waits | Work::SameAs(_) => continue,
            Work::Cancelled => None,
            Work::Done(outcome) => Some(outcome),
        };
        stats.expanded += u64::from(job.expanded);
        stats.generated += u64::from(job.generated);
        if job.ns > 0 {
            stats.times.add(job.ns);
        }
        let waiting = job.waiting;
        remove_request(&mut commands, waiting.entity, waiting.request);
        match verdict(outcome) {
            Ok(path) => {
                stats.found += 1;
                found.write(PathFound {
                    entity: waiting.entity,
                    object: waiting.object,
                    from: waiting.from,
                    to: waiting.to,
                    length_tiles: path.length_tiles(),
                    class: waiting.request.class,
                });
            }
            Err(reason) => {
                stats.count_failed(reason);
                failed.write(waiting.failed(reason));
            }
        }
        if outcome.is_some() {
            apply(job, &mut paths, &mut commands);
        }
    }
    // What there was no time for keeps its place.
    let mut jobs = navigator.jobs[..admitted].iter();
    navigator.queue.retain(|_, _| match jobs.next() {
        Some(job) => matches!(job.work, Work::Waits | Work::SameAs(_)),
        None => true,
    });
    stats.waiting = navigator.queue.len() as u64;
}

/// Removes the request that was answered, and not one that has taken its place meanwhile.
fn remove_request(commands: &mut Commands, entity: Entity, answered: PathRequest) {
    if let Ok(mut entity) = commands.get_entity(entity) {
        entity.queue_silenced(move |mut entity: EntityWorldMut| {
            if entity
                .get::<PathRequest>()
                .is_some_and(|request| request.is_same(&answered))
            {
                entity.remove::<PathRequest>();
            }
        });
    }
}

/// Puts the oldest requests into the first jobs, as they stand now, until their estimates come to the budget; gives how many.
fn admit(
    navigator: &mut Navigator,
    settings: &NavSettings,
    objects: &Objects,
    maps: &Query<&SceneMap>,
) -> usize {
    let searches_max = settings.searches_per_tick_max.max(1);
    let (mut admitted, mut searches, mut expansions) = (0, 0, 0);
    let mut asked: IndexMap<_, usize, foldhash::fast::FixedState> = IndexMap::default();
    for waiting in navigator.queue.values() {
        let is_spent = expansions >= settings.expansions_per_tick_max;
        if searches > 0 && is_spent || searches >= searches_max {
            break;
        }
        let now = objects
            .get(waiting.entity)
            .ok()
            .filter(|(object, ..)| object.reference() == waiting.object.reference());
        let (waiting, work) = match now {
            Some(asking) => {
                let waiting = Waiting::new(waiting.entity, asking, maps).snapped(maps, settings);
                let PathRequest { class, partial, .. } = waiting.request;
                let scene = waiting.object.scene_entity();
                let same = (scene, waiting.from, waiting.to, class, partial);
                match asked.entry(same) {
                    Entry::Occupied(first) => (waiting, Work::SameAs(*first.get())),
                    Entry::Vacant(entry) => {
                        entry.insert(admitted);
                        searches += 1;
                        expansions += waiting.estimate(maps, settings);
                        (waiting, Work::Waits)
                    }
                }
            }
            None => (*waiting, Work::Cancelled),
        };
        let job = |waypoints| Job {
            waiting,
            work,
            waypoints,
            map_version: 0,
            expanded: 0,
            generated: 0,
            ns: 0,
        };
        match navigator.jobs.get_mut(admitted) {
            Some(old) => *old = job(std::mem::take(&mut old.waypoints)),
            None => navigator.jobs.push(job(Vec::new())),
        }
        admitted += 1;
    }
    admitted
}

/// Copies the answer of an earlier job that asks the same.
fn share(jobs: &mut [Job], nth: usize, stats: &mut NavStats) {
    let Work::SameAs(first) = jobs[nth].work else {
        return;
    };
    let (before, from) = jobs.split_at_mut(nth);
    let (Some(first), Some(job)) = (before.get(first), from.first_mut()) else {
        return;
    };
    if let Work::Done(_) = first.work {
        (job.work, job.map_version) = (first.work, first.map_version);
        job.waypoints.clone_from(&first.waypoints);
        stats.shared += 1;
    }
}

const fn verdict(outcome: Option<Outcome>) -> Result<FoundPath, PathFailure> {
    match outcome {
        Some(Outcome::Found(path)) => Ok(path),
        Some(Outcome::Unreachable) => Err(PathFailure::Unreachable),
        Some(Outcome::Blocked) => Err(PathFailure::Blocked),
        Some(Outcome::OutOfBounds) => Err(PathFailure::OutOfBounds),
        Some(Outcome::Capped) => Err(PathFailure::Capped),
        None => Err(PathFailure::Cancelled),
    }
}

/// Puts an answer into the object's path.
fn apply(job: &Job, paths: &mut Query<&mut Path>, commands: &mut Commands) {
    let Job {
        waiting,
        waypoints,
        map_version,
        ..
    } = job;
    let request = waiting.request;
    match paths.get_mut(waiting.entity) {
        Ok(mut path) if !waypoints.is_empty() => {
            path.waypoints.clone_from(waypoints);
            (path.next, path.request, path.map_version) = (0, request, *map_version);
        }
        Err(_) if !waypoints.is_empty() => {
            let path = Path {
                waypoints: waypoints.clone(),
                next: 0,
                request,
                map_version: *map_version,
            };
            commands.entity(waiting.entity).try_insert(path);
        }
        Ok(mut path) if !path.is_empty() => path.clear(),
        _ => {}
    }
}
