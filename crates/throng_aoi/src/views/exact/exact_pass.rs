//! The step of the update for exact viewers.

use throng_core::parallel::ParallelExecutor;

use super::exact_views::ExactViews;
use crate::views::events::{ViewEvent, ViewLeaveReason};
use crate::views::scene_views::SceneViews;
use crate::views::state::cells::drop_if_large;

/// The minimum number of viewers in a chunk of parallel work.
const CHUNK_VIEWERS_MIN: usize = if cfg!(test) { 1 } else { 8 };

/// The event buffer of a viewer is freed when it is larger than this.
const EVENT_BYTES_MAX: usize = 512;

impl SceneViews {
    /// Updates the links of the exact viewers, after all cells. Appends their changes to `events`, by viewer.
    pub(crate) fn update_exact_viewers(
        &mut self,
        spread: impl ParallelExecutor,
        events: &mut Vec<ViewEvent>,
    ) {
        if self.exact.viewers.is_empty() {
            self.exact.free_memory();
            return;
        }
        let (shared, exact) = (&self.shared, &mut self.exact);
        if !exact.collect_changes(shared) {
            return;
        }
        let ExactViews {
            viewers,
            changed_cells,
            scratch,
            ..
        } = exact;
        spread.for_each_chunk(
            viewers,
            CHUNK_VIEWERS_MIN,
            scratch,
            |scratch, _, viewers| {
                for viewer in viewers {
                    viewer.recheck(shared, changed_cells, scratch);
                }
            },
        );
        let (scans, deferred) = exact.choose_scans(self.update_count);
        let ExactViews {
            viewers, scratch, ..
        } = exact;
        spread.for_each_chunk(
            viewers,
            CHUNK_VIEWERS_MIN,
            scratch,
            |scratch, _, viewers| {
                for viewer in viewers.iter_mut().filter(|viewer| viewer.scans) {
                    viewer.scan(shared, scratch);
                }
            },
        );
        self.counters.exact_scans += scans as u64;
        self.counters.exact_scans_deferred += deferred as u64;
        self.join_exact_events(events);
        self.exact.changed_cells.clear();
    }

    fn join_exact_events(&mut self, events: &mut Vec<ViewEvent>) {
        let counters = &mut self.counters;
        for viewer in &mut self.exact.viewers {
            if viewer.events.is_empty() {
                continue;
            }
            for event in &viewer.events {
                match event {
                    ViewEvent::Enter { .. } => counters.enters += 1,
                    ViewEvent::Leave { reason, .. } => {
                        counters.leaves += 1;
                        counters.evictions += u64::from(*reason == ViewLeaveReason::Evicted);
                    }
                }
            }
            let longest = viewer.lists.iter().map(Vec::len).max().unwrap_or(0);
            counters.longest_list = counters.longest_list.max(longest);
            events.append(&mut viewer.events);
            drop_if_large(&mut viewer.events, EVENT_BYTES_MAX);
        }
    }
}
