//! A search of a tick, and its state.

use bevy_ecs::prelude::*;
use glam::IVec2;

use super::ground::{GroundError, MapGround};
use super::maps::NavMaps;
use super::request_queue::{QueuedRequest, RequestQuery};
use super::settings::NavSettings;
use crate::map::SceneMap;
use crate::nav::{PathSearch, SearchOutcome};
use crate::sim::clock::Stopwatch;

/// A search of this tick: a slot that only its worker writes to.
#[derive(Debug)]
pub(super) struct SearchJob {
    pub(super) queued: QueuedRequest,
    pub(super) state: JobState,
    pub(super) waypoints: Vec<IVec2>,
    pub(super) map_version: u64,
    pub(super) expanded: u32,
    pub(super) generated: u32,
    pub(super) ns: u64,
    /// Whether the search is shared with another job, which counts it.
    pub(super) is_shared: bool,
}

/// The state of a job.
#[derive(Clone, Copy, Debug)]
pub(super) enum JobState {
    /// Not started, or not finished for lack of time.
    Pending,
    /// The map for the clearance is being built.
    GroundBuilding,
    /// The requesting entity is gone.
    Cancelled,
    /// An earlier job of the tick is equal.
    SameAs(usize),
    /// Searched in a group with the same goal.
    InGroup,
    Done(SearchOutcome),
}

impl SearchJob {
    pub(super) const fn new(waiting: QueuedRequest, work: JobState, waypoints: Vec<IVec2>) -> Self {
        Self {
            queued: waiting,
            state: work,
            waypoints,
            map_version: 0,
            expanded: 0,
            generated: 0,
            ns: 0,
            is_shared: false,
        }
    }

    /// Reuses an older job and its buffer.
    pub(super) fn replace(&mut self, waiting: QueuedRequest, work: JobState) {
        *self = Self::new(waiting, work, std::mem::take(&mut self.waypoints));
    }

    /// Continues the search for this many expansions.
    pub(super) fn run(
        &mut self,
        search: &mut PathSearch,
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
        let (algorithm, query) = (settings.algorithm, self.queued.query(settings));
        let waypoints = &mut self.waypoints;
        let outcome = search.resume(tiles, nav_map, algorithm, query, expansions, waypoints);
        if outcome == Some(SearchOutcome::Capped) && self.queued.request.partial {
            search.write_partial(tiles, nav_map, algorithm, query, waypoints);
        }
        self.state = outcome.map_or(JobState::Pending, JobState::Done);
        self.ns += stopwatch.map_or(0, |mut stopwatch| stopwatch.lap_ns());
        (self.expanded, self.generated) = (search.expanded(), search.generated());
        self.map_version = version;
    }

    pub(super) const fn is_answered(&self) -> bool {
        matches!(self.state, JobState::Done(_) | JobState::Cancelled)
    }
}

/// The current state of a request, with its start and goal resolved for the search.
pub(super) fn resolve_request(
    waiting: &QueuedRequest,
    nav_maps: &NavMaps,
    settings: &NavSettings,
    asking: &RequestQuery,
    maps: &Query<&SceneMap>,
) -> (QueuedRequest, JobState) {
    let Some(now) = waiting.refreshed(asking, maps) else {
        return (*waiting, JobState::Cancelled);
    };
    match nav_maps.ground(&now, maps) {
        Ok(ground) => (now.snapped(ground.tiles, settings), JobState::Pending),
        Err(GroundError::NoMap) => (now, JobState::Done(SearchOutcome::OutOfBounds)),
        Err(GroundError::TooWide) => (now, JobState::Done(SearchOutcome::Blocked)),
        Err(GroundError::Building) => (now, JobState::GroundBuilding),
    }
}
