//! Requests of a tick with the same goal, which share one search from there.

use glam::IVec2;
use indexmap::IndexMap;

use super::ground::{MapGround, MapKey};
use super::job::{JobState, SearchJob};
use super::settings::NavSettings;
use crate::memory::MemoryUse;
use crate::nav::{MultiStartSearch, SearchOutcome};
use crate::sim::clock::Stopwatch;

/// The number of requests to one goal from which a shared search is used; below, single searches are as fast.
const MEMBERS_MIN: usize = 16;

/// The groups of a tick. Slots are kept for their buffers.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct GoalGroups {
    #[memory(each)]
    slots: Vec<GoalGroup>,
    used: usize,
}

/// Requests to one goal, and their results.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct GoalGroup {
    /// Indices of the jobs.
    members: Vec<usize>,
    starts: Vec<IVec2>,
    outcomes: Vec<SearchOutcome>,
    /// The paths of the members, one after the other, and the end of each.
    waypoints: Vec<IVec2>,
    ends: Vec<usize>,
    map_version: u64,
    expanded: u32,
    generated: u32,
    ns: u64,
}

/// Scratch of a worker.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct GroupScratch {
    search: MultiStartSearch,
    path: Vec<IVec2>,
}

impl GoalGroups {
    /// Moves jobs from single searches to groups if there are enough of them for one goal.
    pub(super) fn collect(&mut self, jobs: &mut [SearchJob]) {
        // The number of jobs for each goal; most goals have one job.
        let mut counts: IndexMap<_, usize, foldhash::fast::FixedState> = IndexMap::default();
        for goal in jobs.iter().filter_map(shared_goal) {
            *counts.entry(goal).or_default() += 1;
        }
        counts.retain(|_, count| *count >= MEMBERS_MIN);
        self.used = counts.len();
        if counts.is_empty() {
            return;
        }
        if self.slots.len() < self.used {
            self.slots.resize_with(self.used, GoalGroup::default);
        }
        for group in &mut self.slots[..self.used] {
            group.members.clear();
            group.starts.clear();
            group.ends.clear();
        }
        for (place, job) in jobs.iter_mut().enumerate() {
            let group = shared_goal(job).and_then(|goal| counts.get_index_of(&goal));
            if let Some(group) = group {
                self.slots[group].members.push(place);
                self.slots[group].starts.push(job.queued.from);
                job.state = JobState::InGroup;
            }
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [GoalGroup] {
        &mut self.slots[..self.used]
    }

    /// Copies the results to the members; members of groups that were not started keep waiting.
    pub(super) fn distribute(&self, jobs: &mut [SearchJob]) {
        for group in &self.slots[..self.used] {
            let mut begin = 0;
            for (nth, &place) in group.members.iter().enumerate() {
                let job = &mut jobs[place];
                let Some(&end) = group.ends.get(nth) else {
                    job.state = JobState::Pending;
                    continue;
                };
                job.state = JobState::Done(group.outcomes[nth]);
                job.waypoints.clear();
                job.waypoints
                    .extend_from_slice(&group.waypoints[begin..end]);
                begin = end;
                job.map_version = group.map_version;
                // The search is counted once, and its time is that of all.
                let is_first = nth == 0;
                job.expanded = if is_first { group.expanded } else { 0 };
                job.generated = if is_first { group.generated } else { 0 };
                job.ns = group.ns / group.members.len() as u64;
                job.is_shared = !is_first;
            }
        }
    }
}

/// The goal of a job that may be searched together with others.
fn shared_goal(job: &SearchJob) -> Option<(MapKey, IVec2)> {
    let request = &job.queued.request;
    // A partial path belongs to a single search.
    let may_share = matches!(job.state, JobState::Pending) && !request.partial;
    let map = MapKey {
        scene: job.queued.object.scene_entity(),
        clearance: request.clearance,
    };
    may_share.then_some((map, job.queued.to))
}

impl GoalGroup {
    /// The index of the first member.
    pub(super) fn first(&self) -> Option<usize> {
        self.members.first().copied()
    }

    /// Searches for all members, from their goal.
    pub(super) fn run(
        &mut self,
        goal: IVec2,
        scratch: &mut GroupScratch,
        ground: &MapGround,
        settings: &NavSettings,
    ) {
        let stopwatch = settings.time_searches.then(Stopwatch::start);
        let GroupScratch { search, path } = scratch;
        let nodes_max = u64::from(settings.short_nodes_max) * self.starts.len() as u64;
        let node_limit = Some(u32::try_from(nodes_max).unwrap_or(u32::MAX));
        search.find(
            ground.tiles,
            ground.nav_map,
            goal,
            &self.starts,
            node_limit,
            &mut self.outcomes,
        );
        self.waypoints.clear();
        for nth in 0..self.starts.len() {
            search.write_path(nth, path);
            self.waypoints.extend_from_slice(path);
            self.ends.push(self.waypoints.len());
        }
        self.map_version = ground.version;
        (self.expanded, self.generated) = (search.expanded(), search.generated());
        self.ns = stopwatch.map_or(0, |mut stopwatch| stopwatch.lap_ns());
    }
}
