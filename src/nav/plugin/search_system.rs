//! Runs the short searches.

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use indexmap::map::Entry;

use super::job::{JobState, SearchJob, resolve_request};
use super::navigator::Navigator;
use super::request::PathRequest;
use super::request_queue::RequestQuery;
use super::results::ResultWriter;
use super::settings::NavSettings;
use crate::map::SceneMap;
use crate::sim::clock::Stopwatch;
use crate::sim::{Overload, Workers};

/// Admits short requests, searches in parallel, and applies the results in the order of the queue.
pub(super) fn search_requests(
    settings: Res<NavSettings>,
    workers: Res<Workers>,
    mut navigator: ResMut<Navigator>,
    asking: RequestQuery,
    maps: Query<&SceneMap>,
    overload: Res<Overload>,
    mut answers: ResultWriter,
) {
    let navigator = &mut *navigator;
    let admitted = dequeue(navigator, (&settings, &overload), &asking, &maps);
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
    groups.collect(jobs);
    let stopwatch = Stopwatch::start();
    // The oldest request is always searched, otherwise the queue might never move.
    let is_late = |is_oldest: bool| {
        let elapsed_ms = || stopwatch.elapsed().as_secs_f32() * 1e3;
        !is_oldest && settings.budget_ms.is_some_and(|ms| elapsed_ms() > ms)
    };
    let all = &*jobs;
    workers.for_each_in_turn_with(
        groups.as_mut_slice(),
        group_searches,
        |scratch, _, group| {
            let Some(first) = group.first().filter(|&first| !is_late(first == 0)) else {
                return;
            };
            let waiting = &all[first].queued;
            if let Ok(ground) = nav_maps.ground(waiting, &maps) {
                group.run(waiting.to, scratch, &ground, &settings);
            }
        },
    );
    workers.for_each_in_turn_with(jobs, searches, |search, nth, job| {
        if !matches!(job.state, JobState::Pending) || is_late(nth == 0) {
            return;
        }
        if let Ok(ground) = nav_maps.ground(&job.queued, &maps) {
            search.abandon();
            job.run(search, &ground, &settings, u32::MAX);
        }
    });
    groups.distribute(jobs);
    for nth in 0..admitted {
        copy_shared_result(jobs, nth);
        answers.write_result(&jobs[nth]);
    }
    // Requests without time left keep their queue position.
    let mut jobs = navigator.jobs[..admitted].iter();
    navigator
        .queue
        .retain(|_, _| jobs.next().is_none_or(|job| !job.is_answered()));
    answers.stats.waiting = (navigator.queue.len() + navigator.long_searches.queue.len()) as u64;
}

/// Fills the first jobs with the oldest requests in their current state, until their estimates reach the budget; returns the number.
fn dequeue(
    navigator: &mut Navigator,
    (settings, overload): (&NavSettings, &Overload),
    asking: &RequestQuery,
    maps: &Query<&SceneMap>,
) -> usize {
    let searches_max = overload.deferrable_budget_u32(settings.searches_per_tick_max.max(1));
    let expansions_max = overload.deferrable_budget(settings.expansions_per_tick_max);
    let (mut admitted, mut searches, mut expansions) = (0, 0, 0);
    let mut asked: IndexMap<_, usize, foldhash::fast::FixedState> = IndexMap::default();
    for waiting in navigator.queue.values() {
        let is_spent = expansions >= expansions_max;
        if searches > 0 && is_spent || searches >= searches_max {
            break;
        }
        let (waiting, mut work) = resolve_request(waiting, &navigator.maps, settings, asking, maps);
        if matches!(work, JobState::Pending) {
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

/// Copies the result of an equal earlier job.
fn copy_shared_result(jobs: &mut [SearchJob], nth: usize) {
    let JobState::SameAs(first) = jobs[nth].state else {
        return;
    };
    let (before, from) = jobs.split_at_mut(nth);
    let (Some(first), Some(job)) = (before.get(first), from.first_mut()) else {
        return;
    };
    if let JobState::Done(_) = first.state {
        (job.state, job.map_version) = (first.state, first.map_version);
        job.waypoints.clone_from(&first.waypoints);
        job.is_shared = true;
    }
}
