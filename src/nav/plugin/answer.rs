//! Searching for what was asked, and giving the answers.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use glam::IVec2;
use indexmap::IndexMap;
use indexmap::map::Entry;

use super::maps::{MapGround, NavMaps, NoGround};
use super::queue::{Asking, Waiting};
use super::{
    NavSettings, NavStats, Navigator, Path, PathFailed, PathFailure, PathFound, PathRequest,
};
use crate::map::SceneMap;
use crate::nav::{FoundPath, Outcome, Search};
use crate::sim::Workers;
use crate::sim::clock::Stopwatch;

/// A chunk for another thread has at least this many searches.
const CHUNK_SEARCHES_MIN: usize = 2;

/// A search of this tick: a slot that its worker alone writes to.
#[derive(Debug)]
pub(super) struct SearchJob {
    pub(super) waiting: Waiting,
    pub(super) work: JobState,
    pub(super) waypoints: Vec<IVec2>,
    pub(super) map_version: u64,
    pub(super) expanded: u32,
    pub(super) generated: u32,
    pub(super) ns: u64,
    /// Whether the search was another job's too, which counts it.
    pub(super) is_shared: bool,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum JobState {
    /// Not begun, or not done, for want of time.
    Waits,
    /// The ground for a body that wide is being made.
    NoGround,
    /// What asked is no more.
    Cancelled,
    /// An earlier job of the tick asks the same.
    SameAs(usize),
    /// Searched with others to the same goal.
    InGroup,
    Done(Outcome),
}

impl SearchJob {
    pub(super) const fn new(waiting: Waiting, work: JobState, waypoints: Vec<IVec2>) -> Self {
        Self {
            waiting,
            work,
            waypoints,
            map_version: 0,
            expanded: 0,
            generated: 0,
            ns: 0,
            is_shared: false,
        }
    }

    /// Takes the place of an older job and its buffer.
    fn replace(&mut self, waiting: Waiting, work: JobState) {
        *self = Self::new(waiting, work, std::mem::take(&mut self.waypoints));
    }

    /// Searches on for so many expansions.
    pub(super) fn run(
        &mut self,
        search: &mut Search,
        ground: &MapGround,
        settings: &NavSettings,
        expansions: u32,
    ) {
        let stopwatch = settings.time_searches.then(Stopwatch::start);
        let &MapGround {
            tiles,
            nav_map,
            version,
        } = ground;
        let (algorithm, query) = (settings.algorithm, self.waiting.query(settings));
        let waypoints = &mut self.waypoints;
        let outcome = search.resume(tiles, nav_map, algorithm, query, expansions, waypoints);
        if outcome == Some(Outcome::Capped) && self.waiting.request.partial {
            search.write_partial(tiles, nav_map, algorithm, query, waypoints);
        }
        self.work = outcome.map_or(JobState::Waits, JobState::Done);
        self.ns += stopwatch.map_or(0, |mut stopwatch| stopwatch.lap_ns());
        (self.expanded, self.generated) = (search.expanded(), search.generated());
        self.map_version = version;
    }

    pub(super) const fn is_answered(&self) -> bool {
        matches!(self.work, JobState::Done(_) | JobState::Cancelled)
    }
}

/// Where answers go.
#[derive(SystemParam)]
pub(super) struct Answers<'w, 's> {
    pub(super) commands: Commands<'w, 's>,
    pub(super) stats: ResMut<'w, NavStats>,
    paths: Query<'w, 's, &'static mut Path>,
    found: MessageWriter<'w, PathFound>,
    failed: MessageWriter<'w, PathFailed>,
}

impl Answers<'_, '_> {
    /// Tells of a request that leaves the queue unanswered.
    pub(super) fn cancel(&mut self, waiting: &Waiting) {
        self.stats.count_failed(PathFailure::Cancelled);
        self.failed.write(waiting.failed(PathFailure::Cancelled));
    }

    /// Gives the answer of a job, if it has one.
    pub(super) fn give(&mut self, job: &SearchJob) {
        let outcome = match job.work {
            JobState::Waits | JobState::NoGround | JobState::SameAs(_) | JobState::InGroup => {
                return;
            }
            JobState::Cancelled => None,
            JobState::Done(outcome) => Some(outcome),
        };
        let waiting = &job.waiting;
        self.stats.expanded += u64::from(job.expanded);
        self.stats.generated += u64::from(job.generated);
        self.stats.shared += u64::from(job.is_shared);
        if job.ns > 0 {
            self.stats.times.add(job.ns);
        }
        self.remove_request(waiting.entity, waiting.request);
        match verdict(outcome) {
            Ok(path) => {
                self.stats.found += 1;
                self.found.write(PathFound {
                    entity: waiting.entity,
                    object: waiting.object,
                    from: waiting.from,
                    to: waiting.to,
                    length_tiles: path.length_tiles(),
                    class: waiting.request.class,
                });
            }
            Err(reason) => {
                self.stats.count_failed(reason);
                self.failed.write(waiting.failed(reason));
            }
        }
        if outcome.is_some() {
            self.apply(job);
        }
    }

    /// Removes the request that was answered, and not one that has taken its place meanwhile.
    fn remove_request(&mut self, entity: Entity, answered: PathRequest) {
        if let Ok(mut entity) = self.commands.get_entity(entity) {
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

    /// Puts an answer into the object's path.
    fn apply(&mut self, job: &SearchJob) {
        let SearchJob {
            waiting,
            waypoints,
            map_version,
            ..
        } = job;
        let request = waiting.request;
        match self.paths.get_mut(waiting.entity) {
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
                self.commands.entity(waiting.entity).try_insert(path);
            }
            Ok(mut path) if !path.is_empty() => path.clear(),
            _ => {}
        }
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

/// Admits short requests, searches in parallel, and applies the answers in the order of the queue.
pub(super) fn answer_requests(
    settings: Res<NavSettings>,
    workers: Res<Workers>,
    mut navigator: ResMut<Navigator>,
    asking: Asking,
    maps: Query<&SceneMap>,
    mut answers: Answers,
) {
    let navigator = &mut *navigator;
    let admitted = admit(navigator, &settings, &asking, &maps);
    if admitted == 0 {
        return;
    }
    let Navigator {
        jobs,
        groups,
        searches,
        group_searches,
        maps: nav_maps,
        ..
    } = navigator;
    let jobs = &mut jobs[..admitted];
    groups.gather(jobs);
    let stopwatch = Stopwatch::start();
    // The oldest request is answered whatever the time, or a queue might never move.
    let is_late = |is_oldest: bool| {
        let elapsed_ms = || stopwatch.elapsed().as_secs_f32() * 1e3;
        !is_oldest && settings.budget_ms.is_some_and(|ms| elapsed_ms() > ms)
    };
    let all = &*jobs;
    workers.for_each_chunk(
        groups.as_mut_slice(),
        1,
        group_searches,
        |scratch, _, chunk| {
            for group in chunk {
                let Some(first) = group.first().filter(|&first| !is_late(first == 0)) else {
                    return;
                };
                let waiting = &all[first].waiting;
                if let Ok(ground) = nav_maps.ground(waiting, &maps) {
                    group.run(waiting.to, scratch, &ground, &settings);
                }
            }
        },
    );
    workers.for_each_chunk(
        jobs,
        CHUNK_SEARCHES_MIN,
        searches,
        |search, first, chunk| {
            for (nth, job) in chunk.iter_mut().enumerate() {
                if !matches!(job.work, JobState::Waits) {
                    continue;
                }
                if is_late(first + nth == 0) {
                    return;
                }
                if let Ok(ground) = nav_maps.ground(&job.waiting, &maps) {
                    search.abandon();
                    job.run(search, &ground, &settings, u32::MAX);
                }
            }
        },
    );
    groups.hand_out(jobs);
    for nth in 0..admitted {
        share(jobs, nth);
        answers.give(&jobs[nth]);
    }
    // What there was no time for keeps its place.
    let mut jobs = navigator.jobs[..admitted].iter();
    navigator
        .queue
        .retain(|_, _| jobs.next().is_none_or(|job| !job.is_answered()));
    answers.stats.waiting = (navigator.queue.len() + navigator.travels.queue.len()) as u64;
}

/// Puts the oldest requests into the first jobs, as they stand now, until their estimates come to the budget; gives how many.
fn admit(
    navigator: &mut Navigator,
    settings: &NavSettings,
    asking: &Asking,
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
        let (waiting, mut work) = begin(waiting, &navigator.maps, settings, asking, maps);
        if matches!(work, JobState::Waits) {
            let PathRequest {
                class,
                partial,
                clearance,
                ..
            } = waiting.request;
            let scene = waiting.object.scene_entity();
            let same = (scene, waiting.from, waiting.to, class, partial, clearance);
            match asked.entry(same) {
                Entry::Occupied(first) => work = JobState::SameAs(*first.get()),
                Entry::Vacant(entry) => {
                    entry.insert(admitted);
                    searches += 1;
                    let ground = navigator.maps.ground(&waiting, maps);
                    expansions +=
                        ground.map_or(0, |ground| waiting.estimate(ground.tiles, settings));
                }
            }
        }
        match navigator.jobs.get_mut(admitted) {
            Some(job) => job.replace(waiting, work),
            None => navigator
                .jobs
                .push(SearchJob::new(waiting, work, Vec::new())),
        }
        admitted += 1;
    }
    admitted
}

/// A request as it stands when its turn comes, its ends where the search is to have them.
pub(super) fn begin(
    waiting: &Waiting,
    nav_maps: &NavMaps,
    settings: &NavSettings,
    asking: &Asking,
    maps: &Query<&SceneMap>,
) -> (Waiting, JobState) {
    let Some(now) = waiting.now(asking, maps) else {
        return (*waiting, JobState::Cancelled);
    };
    match nav_maps.ground(&now, maps) {
        Ok(ground) => (now.snapped(ground.tiles, settings), JobState::Waits),
        Err(NoGround::NoMap) => (now, JobState::Done(Outcome::OutOfBounds)),
        Err(NoGround::TooWide) => (now, JobState::Done(Outcome::Blocked)),
        Err(NoGround::NotYet) => (now, JobState::NoGround),
    }
}

/// Copies the answer of an earlier job that asks the same.
fn share(jobs: &mut [SearchJob], nth: usize) {
    let JobState::SameAs(first) = jobs[nth].work else {
        return;
    };
    let (before, from) = jobs.split_at_mut(nth);
    let (Some(first), Some(job)) = (before.get(first), from.first_mut()) else {
        return;
    };
    if let JobState::Done(_) = first.work {
        (job.work, job.map_version) = (first.work, first.map_version);
        job.waypoints.clone_from(&first.waypoints);
        job.is_shared = true;
    }
}
