//! Queues new requests.

use bevy_ecs::prelude::*;
use indexmap::map::Entry;
use tracing::{debug, warn};

use super::navigator::Navigator;
use super::request::{NewPathRequests, PathRequest, SearchBudgetClass};
use super::request_queue::{QueuedRequest, RequestQuery};
use super::results::ResultWriter;
use super::settings::NavSettings;
use crate::map::SceneMap;
use crate::sim::WarnedCauses;

/// Queues the requests since the last tick.
///
/// A request in the tick in which its object changed scene applies to the new scene.
pub(super) fn enqueue_requests(
    settings: Res<NavSettings>,
    mut asked: ResMut<NewPathRequests>,
    mut navigator: ResMut<Navigator>,
    asking: RequestQuery,
    maps: Query<&SceneMap>,
    (mut answers, mut warned): (ResultWriter, Local<WarnedCauses>),
) {
    let Navigator {
        queue,
        long_searches: travels,
        maps: nav_maps,
        ..
    } = &mut *navigator;
    for entity in asked.0.drain(..) {
        // Withdrawn at once, or on an entity that is not an object.
        let Ok(asks) = asking.get(entity) else {
            debug!(
                ?entity,
                "path request dropped: the entity is not an object, or the request was withdrawn"
            );
            answers.commands.entity(entity).try_remove::<PathRequest>();
            continue;
        };
        answers.stats.requested += 1;
        let waiting = QueuedRequest::new(entity, asks, &maps);
        if !answers.is_repeated(&waiting) {
            warn_of_lost_cause(&waiting, &maps, &mut warned);
        }
        let clearance = waiting.request.clearance;
        if (1..=settings.clearance_max).contains(&clearance) {
            nav_maps.request_clearance(waiting.object.scene_entity(), clearance);
        }
        let class = waiting.request.class;
        let replaced = match class {
            SearchBudgetClass::Short => travels.remove(entity),
            SearchBudgetClass::Long => queue.shift_remove(&entity),
        };
        if let Some(replaced) = replaced {
            answers.cancel(&replaced);
        }
        let is_full = queue.len() + travels.queue.len() >= settings.queue_max as usize;
        let queue = match class {
            SearchBudgetClass::Short => &mut *queue,
            SearchBudgetClass::Long => &mut travels.queue,
        };
        match queue.entry(entity) {
            Entry::Occupied(mut entry) => {
                let replaced = entry.insert(waiting);
                answers.cancel(&replaced);
                if !replaced.request.is_same(&waiting.request) {
                    travels.restart(entity);
                }
            }
            Entry::Vacant(_) if is_full => {
                answers.commands.entity(entity).try_remove::<PathRequest>();
                answers.cancel(&waiting);
            }
            Entry::Vacant(entry) => {
                entry.insert(waiting);
            }
        }
    }
    answers.stats.waiting = (queue.len() + travels.queue.len()) as u64;
}

/// Logs, once for each scene and cause, why a request cannot have a path. Its [`PathFailed`](super::PathFailed) does not say it as
/// plainly, and is easily missed.
fn warn_of_lost_cause(waiting: &QueuedRequest, maps: &Query<&SceneMap>, warned: &mut WarnedCauses) {
    let QueuedRequest {
        entity,
        object,
        request,
        to,
        ..
    } = waiting;
    let scene = object.scene().0;
    let mut is_new = |kind| warned.is_new(kind, u64::from(scene));
    let Ok(map) = maps.get(object.scene_entity()) else {
        if is_new(0) {
            warn!(%entity, scene, "path request fails: its scene has no map (`SceneMap`)");
        }
        return;
    };
    let (goal, tiles) = (request.goal, map.tiles());
    if !tiles.rect().contains(*to) {
        let size_m = map.size_m();
        if is_new(1) {
            warn!(%entity, scene, %goal, %size_m, "path request fails: its goal is outside the map");
        }
    } else if !tiles.is_free(*to) && request.snap_tiles == 0 && is_new(2) {
        warn!(%entity, scene, %goal, "path request fails: its goal is on a blocked tile (`snap_tiles` moves it to a free one)");
    }
}
