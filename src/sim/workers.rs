//! Distributes the work of a tick over threads. The result does not depend on their number.

use bevy_ecs::prelude::*;
use bevy_tasks::ComputeTaskPool;
use throng_core::parallel::ParallelExecutor;

use super::worker_set::WorkerSet;

/// The number of threads that work on a step of a tick: the calling one, and others of Bevy's compute pool.
///
/// 1 runs inline on the calling thread. Systems are written so that the number never changes a result: a chunk writes only to
/// its own items, and collected results are joined in the order of the items.
///
/// With several threads, each has its scratch data on its own stack, since threads that write to one cache line wait for each
/// other. Only the calling thread may leave its scratch in place, as no other scratch is next to it then. Items that are
/// written to often should be as far apart.
///
/// Cost: one lock per item or chunk, and about 10 µs per step while a thread that could help is asleep. Helper threads poll for
/// more work for 300 µs before they sleep, and so take that much processor time when only one thread has work.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers(usize);

impl Default for Workers {
    fn default() -> Self {
        Self(1)
    }
}

impl Workers {
    /// At most `count` threads; 0 counts as 1.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(count.max(1))
    }

    /// The same, and creates Bevy's pool if there is none yet.
    #[cfg(test)]
    pub(crate) fn with_pool(count: usize) -> Self {
        ComputeTaskPool::get_or_init(bevy_tasks::TaskPool::default);
        Self::new(count)
    }

    /// The maximum number of threads.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0
    }

    /// Calls `work(scratch, first, chunk)` for consecutive chunks that cover `items`; `first` is the index of the chunk's first
    /// item.
    ///
    /// `scratch` has one value per chunk, created when first needed and kept for the next call. A chunk has at least `chunk_min`
    /// items, so that little work stays on one thread. There are several chunks per worker; a worker that is done takes the next
    /// one. Without Bevy's pool everything runs inline.
    pub fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        self.on_pool()
            .for_each_chunk(items, chunk_min, scratch, work);
    }

    /// Calls `work` for every item. A worker that is done takes the next one, the calling thread from the front and others from the
    /// back. For a few items, some of which may be much more work than others: the largest should come first. Without Bevy's pool
    /// everything runs inline, in order.
    pub fn for_each_in_turn<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        self.for_each_in_turn_with(items, &mut Vec::new(), |(), _, item| work(item));
    }

    /// The same with `work(scratch, index, item)`: each worker has its own scratch value, created when first needed and kept for
    /// the next call. The result must not depend on which worker processes which items.
    pub fn for_each_in_turn_with<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut T) + Sync,
    ) {
        self.on_pool().for_each_in_turn_with(items, scratch, work);
    }

    fn on_pool(self) -> WorkerSet {
        WorkerSet {
            pool: ComputeTaskPool::try_get().map(|pool| &**pool),
            count: self.0,
            stay_awake: true,
        }
    }
}

impl ParallelExecutor for Workers {
    fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        Self::for_each_chunk(self, items, chunk_min, scratch, work);
    }

    fn for_each_item<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        Self::for_each_in_turn(self, items, work);
    }

    fn worker_count(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use bevy_tasks::TaskPool;

    use super::*;
    use crate::sim::clock::Stopwatch;

    #[test]
    fn items_are_processed_in_parallel() {
        ComputeTaskPool::get_or_init(TaskPool::default);
        // If another test uses all threads, they come later.
        let begun = AtomicUsize::new(0);
        let all_begun = |all: usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            let watch = Stopwatch::start();
            while begun.load(Ordering::SeqCst) < all && watch.elapsed() < Duration::from_secs(60) {
                std::thread::yield_now();
            }
            begun.load(Ordering::SeqCst) >= all
        };
        let mut met = [false; 2];
        Workers::new(2).for_each_in_turn(&mut met, |met| *met = all_begun(2));
        assert_eq!(met, [true; 2]);
        Workers::new(2).for_each_chunk(&mut met, 1, &mut vec![(); 2], |(), _, met| {
            met.fill(all_begun(4));
        });
        assert_eq!(met, [true; 2]);
    }

    #[test]
    fn caller_panic_is_propagated_after_other_threads_finish() {
        ComputeTaskPool::get_or_init(TaskPool::default);
        let (has_begun, is_done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |nth: &mut usize| {
            if *nth > 0 {
                has_begun.store(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(50));
                is_done.store(1, Ordering::SeqCst);
                return;
            }
            while has_begun.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            panic!("as the test wants it");
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            Workers::new(2).for_each_in_turn(&mut [0, 1], work);
        }));
        assert!(panicked.is_err());
        assert_eq!(is_done.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn threads_have_their_own_scratch() {
        ComputeTaskPool::get_or_init(TaskPool::default);
        for workers in [1, 2, 5] {
            let (mut items, mut scratch) = (vec![0; 100], Vec::<usize>::new());
            Workers::new(workers).for_each_in_turn_with(
                &mut items,
                &mut scratch,
                |seen, place, item| {
                    *seen += 1;
                    *item = place;
                },
            );
            assert!(items.into_iter().eq(0..100));
            assert_eq!((scratch.len(), scratch.iter().sum()), (workers, 100));
        }
    }

    #[test]
    fn items_are_visited_once_for_any_chunk_count() {
        ComputeTaskPool::get_or_init(TaskPool::default);
        for workers in [1, 2, 3, 7, 100] {
            let mut items = vec![0usize; 50];
            let mut scratch = Vec::<usize>::new();
            Workers::new(workers).for_each_chunk(
                &mut items,
                1,
                &mut scratch,
                |seen, first, chunk| {
                    *seen += chunk.len();
                    chunk
                        .iter_mut()
                        .enumerate()
                        .for_each(|(place, item)| *item += first + place + 1);
                },
            );
            assert!(
                items
                    .iter()
                    .enumerate()
                    .all(|(place, &item)| item == place + 1),
                "{workers} workers"
            );
            assert_eq!(scratch.iter().sum::<usize>(), 50);
            Workers::new(workers).for_each_in_turn(&mut items, |item| *item += 1);
            assert!(
                items
                    .iter()
                    .enumerate()
                    .all(|(place, &item)| item == place + 2),
                "{workers} workers"
            );
        }
    }
}
