//! Runs the long searches.

use bevy_ecs::prelude::*;

use super::navigator::Navigator;
use super::request_queue::RequestQuery;
use super::results::ResultWriter;
use super::settings::NavSettings;
use crate::map::SceneMap;
use crate::sim::{Overload, Workers};

/// Continues long searches in parallel, in rounds of slices until the tick's expansions are spent, and
/// applies the results of each round in the order of the queue.
pub(super) fn run_long_searches(
    settings: Res<NavSettings>,
    workers: Res<Workers>,
    mut navigator: ResMut<Navigator>,
    asking: RequestQuery,
    maps: Query<&SceneMap>,
    overload: Res<Overload>,
    mut answers: ResultWriter,
) {
    let Navigator {
        long_searches: travels,
        maps: nav_maps,
        queue,
        ..
    } = &mut *navigator;
    let mut spent = 0;
    let expansions_max =
        overload.deferrable_budget(settings.long_search_expansions_per_tick.max(1));
    while spent < expansions_max && !travels.queue.is_empty() {
        travels.assign_slots(settings.long_searches_max.max(1) as usize);
        let share = travels.share_per_search(expansions_max - spent);
        let slots = &mut travels.slots;
        workers.for_each_in_turn(slots, |slot| {
            slot.continue_search(nav_maps, &settings, &asking, &maps, share);
        });
        let of_round: u64 = slots.iter().map(|slot| slot.spent).sum();
        travels.write_results(&mut answers);
        spent += of_round;
        if of_round == 0 {
            // All running searches wait for their map.
            break;
        }
    }
    answers.stats.waiting = (queue.len() + travels.queue.len()) as u64;
}
