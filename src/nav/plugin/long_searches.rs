//! Long searches: requests of any length, searched in slices until a tick's expansions are spent, a few at once, each with its own
//! scratch. Unfinished ones continue in the next tick.
//!
//! A search restarts when its object was moved otherwise or its map was edited, so that the result is exact when it is
//! written; each edit doubles its slice, so that it also ends on a map that is edited every tick.

use bevy_ecs::prelude::*;

use super::job::{JobState, SearchJob, resolve_request};
use super::maps::NavMaps;
use super::request_queue::{QueuedRequest, RequestQuery, RequestQueue};
use super::results::ResultWriter;
use super::settings::NavSettings;
use crate::map::SceneMap;
use crate::memory::MemoryUse;
use crate::nav::PathSearch;
use crate::sim::StateHasher;

/// The cost of starting a search, so that one without expansions counts too.
const START_EXPANSIONS: u64 = 8;

/// The minimum slice: less is not worth the overhead.
const EXPANSIONS_MIN: u64 = 64;

/// The maximum number of doublings of a slice by edits.
const DOUBLINGS_MAX: u32 = 16;

/// The waiting requests, and those that are being searched, which keep their position in the queue.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct LongSearches {
    pub(super) queue: RequestQueue,
    #[memory(each)]
    pub(super) slots: Vec<LongSearchSlot>,
}

/// A running search, or scratch for the next one.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct LongSearchSlot {
    #[memory(skip)]
    job: Option<SearchJob>,
    search: PathSearch,
    is_started: bool,
    map_version: u64,
    edits: u32,
    /// Expansions of the last slice.
    pub(super) spent: u64,
}

impl LongSearches {
    /// Restarts from the object's current position with its current request.
    pub(super) fn restart(&mut self, entity: Entity) {
        let mut slots = self.slots.iter_mut();
        if let Some(slot) = slots.find(|slot| slot.is_for(entity)) {
            slot.is_started = false;
        }
    }

    /// Removes a request.
    pub(super) fn remove(&mut self, entity: Entity) -> Option<QueuedRequest> {
        let removed = self.queue.shift_remove(&entity)?;
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_for(entity)) {
            slot.job = None;
        }
        Some(removed)
    }

    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        for waiting in self.queue.values() {
            waiting.hash(hasher);
        }
        for (slot, job) in self
            .slots
            .iter()
            .filter_map(|slot| Some((slot, slot.job.as_ref()?)))
        {
            job.queued.hash(hasher);
            hasher.write_u64(u64::from(slot.search.expanded()));
        }
    }

    /// Assigns free slots to the oldest requests without one.
    pub(super) fn assign_slots(&mut self, slots_max: usize) {
        let mut waiting = self.queue.values();
        while self.slots.iter().filter(|slot| slot.job.is_some()).count() < slots_max {
            let Some(next) =
                waiting.find(|next| !self.slots.iter().any(|slot| slot.is_for(next.entity)))
            else {
                return;
            };
            let free = match self.slots.iter().position(|slot| slot.job.is_none()) {
                Some(free) => free,
                None => {
                    self.slots.push(LongSearchSlot::default());
                    self.slots.len() - 1
                }
            };
            let slot = &mut self.slots[free];
            slot.job = Some(SearchJob::new(*next, JobState::Pending, Vec::new()));
            (slot.is_started, slot.edits) = (false, 0);
        }
    }
}

impl LongSearches {
    /// The share of each search with a map, of this many expansions.
    pub(super) fn share_per_search(&self, expansions: u64) -> u32 {
        let jobs = self.slots.iter().filter_map(|slot| slot.job.as_ref());
        let under_way = jobs
            .filter(|job| !matches!(job.state, JobState::GroundBuilding))
            .count();
        let share = (expansions / under_way.max(1) as u64).max(EXPANSIONS_MIN);
        u32::try_from(share).unwrap_or(u32::MAX)
    }

    /// Writes the available results, and frees their slots.
    pub(super) fn write_results(&mut self, answers: &mut ResultWriter) {
        let jobs = self.slots.iter().filter_map(|slot| slot.job.as_ref());
        let mut answered: Vec<_> = jobs.filter(|job| job.is_answered()).collect();
        answered.sort_unstable_by_key(|job| self.queue.get_index_of(&job.queued.entity));
        answered.iter().for_each(|job| answers.write_result(job));
        for slot in &mut self.slots {
            if let Some(job) = slot.job.take_if(|job| job.is_answered()) {
                self.queue.shift_remove(&job.queued.entity);
            }
        }
    }
}

impl LongSearchSlot {
    /// Starts the search if necessary, and runs a slice, of at most `share` expansions unless its map was edited meanwhile.
    pub(super) fn continue_search(
        &mut self,
        nav_maps: &NavMaps,
        settings: &NavSettings,
        asking: &RequestQuery,
        maps: &Query<&SceneMap>,
        share: u32,
    ) {
        self.spent = 0;
        let Some(job) = &mut self.job else { return };
        let is_asking = job.queued.refreshed(asking, maps).is_some();
        let ground = nav_maps.ground(&job.queued, maps);
        let version = ground.map_or(0, |ground| ground.version);
        let is_edited = self.is_started && version != self.map_version;
        if !self.is_started || !is_asking || is_edited {
            (job.queued, job.state) =
                resolve_request(&job.queued, nav_maps, settings, asking, maps);
            self.search.abandon();
            (self.is_started, self.map_version) = (true, version);
            self.edits += u32::from(is_edited);
        }
        let slice = settings.long_search_slice_expansions.max(1);
        let slice = match self.edits {
            0 => slice.min(share),
            edits => slice.saturating_mul(1 << edits.min(DOUBLINGS_MAX)),
        };
        match (job.state, nav_maps.ground(&job.queued, maps)) {
            (JobState::Pending, Ok(ground)) => {
                // Slots are adjacent in memory, and a search writes to its own all the time, so it works on a local copy.
                let mut search = std::mem::take(&mut self.search);
                let before = search.expanded();
                job.run(&mut search, &ground, settings, slice);
                let after = search.expanded();
                self.search = search;
                // A restarted search counts from zero.
                let expanded = after.checked_sub(before).unwrap_or(after);
                self.spent = START_EXPANSIONS + u64::from(expanded);
            }
            (JobState::GroundBuilding, _) => self.is_started = false,
            _ => self.spent = START_EXPANSIONS,
        }
    }

    fn is_for(&self, entity: Entity) -> bool {
        self.job
            .as_ref()
            .is_some_and(|job| job.queued.entity == entity)
    }
}
