//! Writes results: to the object's path, the messages, the counters.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

use super::job::{JobState, SearchJob};
use super::request::{NavPath, PathFailed, PathFailure, PathFound, PathRequest};
use super::request_queue::QueuedRequest;
use super::stats::NavStats;
use crate::nav::{FoundPath, SearchOutcome};

/// The destinations of results.
#[derive(SystemParam)]
pub(super) struct ResultWriter<'w, 's> {
    pub(super) commands: Commands<'w, 's>,
    pub(super) stats: ResMut<'w, NavStats>,
    paths: Query<'w, 's, &'static mut NavPath>,
    found: MessageWriter<'w, PathFound>,
    failed: MessageWriter<'w, PathFailed>,
}

impl ResultWriter<'_, '_> {
    /// Whether the object's path was found for the same goal: a walker that an edit has stopped requests it again.
    pub(super) fn is_repeated(&self, waiting: &QueuedRequest) -> bool {
        let path = self.paths.get(waiting.entity);
        path.is_ok_and(|path| path.request().goal == waiting.request.goal)
    }

    /// Reports a request that leaves the queue without a search.
    pub(super) fn cancel(&mut self, waiting: &QueuedRequest) {
        self.stats.count_failed(PathFailure::Cancelled);
        self.failed.write(waiting.failed(PathFailure::Cancelled));
    }

    /// Writes the result of a job, if it has one.
    pub(super) fn write_result(&mut self, job: &SearchJob) {
        let outcome = match job.state {
            JobState::Pending
            | JobState::GroundBuilding
            | JobState::SameAs(_)
            | JobState::InGroup => {
                return;
            }
            JobState::Cancelled => None,
            JobState::Done(outcome) => Some(outcome),
        };
        let waiting = &job.queued;
        self.stats.expanded += u64::from(job.expanded);
        self.stats.generated += u64::from(job.generated);
        self.stats.shared += u64::from(job.is_shared);
        if job.ns > 0 {
            self.stats.times.add(job.ns);
        }
        self.remove_request(waiting.entity, waiting.request);
        match path_result(outcome) {
            Ok(path) => {
                self.stats.found += 1;
                self.found.write(PathFound {
                    entity: waiting.entity,
                    object: waiting.object,
                    from: waiting.from,
                    to: waiting.to,
                    length_tiles: path.length_tiles(),
                    nodes: job.expanded,
                    class: waiting.request.class,
                });
            }
            Err(reason) => {
                self.stats.count_failed(reason);
                self.failed.write(waiting.failed(reason));
            }
        }
        if outcome.is_some() {
            self.apply_path(job);
        }
    }

    /// Removes the request of this result, but not a newer one.
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

    /// Writes a result to the object's path.
    fn apply_path(&mut self, job: &SearchJob) {
        let SearchJob {
            queued: waiting,
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
                let path = NavPath {
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

const fn path_result(outcome: Option<SearchOutcome>) -> Result<FoundPath, PathFailure> {
    match outcome {
        Some(SearchOutcome::Found(path)) => Ok(path),
        Some(SearchOutcome::Unreachable) => Err(PathFailure::Unreachable),
        Some(SearchOutcome::Blocked) => Err(PathFailure::Blocked),
        Some(SearchOutcome::OutOfBounds) => Err(PathFailure::OutOfBounds),
        Some(SearchOutcome::Capped) => Err(PathFailure::Capped),
        None => Err(PathFailure::Cancelled),
    }
}
