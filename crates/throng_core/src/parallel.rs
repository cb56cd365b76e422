//! Parallel execution for algorithms that know no threads, pools or ECS.
//!
//! ```text
//! algorithm ──items──▶ ParallelExecutor ─┬─ InlineExecutor    sequentially, on the calling thread
//!                                        ├─ ThreadExecutor    in parallel, on threads that end with the step
//!                                        └─ any other implementation, such as the workers of `throng` on Bevy's pool
//! ```
//! Invariant: the executor changes how long the work takes and nothing else; an algorithm writes only to the items and the
//! scratch that it is given.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs the parts of a batch of work.
pub trait ParallelExecutor: Copy {
    /// Calls `work(scratch, first, chunk)` for consecutive chunks that cover `items`; `first` is the index of the chunk's first item.
    ///
    /// `scratch` holds one value per chunk, created when first needed and kept for the next call. A chunk has at least
    /// `chunk_min` items, so that a small batch stays in one chunk.
    fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    );

    /// Calls `work` once for every item. For a few items of different size; the largest should come first.
    fn for_each_item<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync);

    /// The maximum number of parallel workers.
    fn worker_count(self) -> usize;
}

/// Runs everything on the calling thread, in the order of the items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InlineExecutor;

impl ParallelExecutor for InlineExecutor {
    fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        _chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        if scratch.is_empty() {
            scratch.push(S::default());
        }
        work(&mut scratch[0], 0, items);
    }

    fn for_each_item<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        items.iter_mut().for_each(work);
    }

    fn worker_count(self) -> usize {
        1
    }
}

/// Runs work on up to this many threads, started for each step and ended with it, which takes about 20 µs per thread: for
/// programs without a thread pool. A panic of one is propagated when all are finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadExecutor(usize);

/// Chunks per thread: more of them balance better, and each costs a scratch.
const CHUNKS_PER_THREAD: usize = 4;

impl ThreadExecutor {
    /// At most `count` threads, the calling one included; 0 counts as 1.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(count.max(1))
    }
}

impl ParallelExecutor for ThreadExecutor {
    fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        let chunks = (self.0 * CHUNKS_PER_THREAD).min(items.len() / chunk_min.max(1));
        if self.0 == 1 || chunks < 2 {
            return InlineExecutor.for_each_chunk(items, chunk_min, scratch, work);
        }
        if scratch.len() < chunks {
            scratch.resize_with(chunks, S::default);
        }
        let length = items.len().div_ceil(chunks);
        let chunks = items.chunks_mut(length).zip(scratch).enumerate();
        self.for_each_item(
            &mut chunks.collect::<Vec<_>>(),
            |(nth, (chunk, scratch))| work(scratch, *nth * length, chunk),
        );
    }

    fn for_each_item<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        let others = self.0.min(items.len()).saturating_sub(1);
        let items = Mutex::new(items.iter_mut());
        // The lock is not held while an item is worked on.
        let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work_on = || std::iter::from_fn(next).for_each(&work);
        thread::scope(|scope| {
            for _ in 0..others {
                scope.spawn(work_on);
            }
            work_on();
        });
    }

    fn worker_count(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_work_visits_every_item_once_with_one_scratch() {
        let (mut items, mut scratch) = ([1, 2, 3], Vec::<usize>::new());
        InlineExecutor.for_each_chunk(&mut items, 1, &mut scratch, |seen, first, chunk| {
            assert_eq!(first, 0);
            *seen += chunk.len();
            chunk.iter_mut().for_each(|item| *item *= 2);
        });
        InlineExecutor.for_each_item(&mut items, |item| *item += 1);
        assert_eq!((items, scratch), ([3, 5, 7], vec![3]));
    }

    #[test]
    fn threads_visit_every_item_once() {
        for count in [0, 1, 2, 7, 100] {
            for length in [0, 1, 50] {
                let (mut items, mut scratch) = (vec![0; length], Vec::<usize>::new());
                let threads = ThreadExecutor::new(count);
                threads.for_each_chunk(&mut items, 1, &mut scratch, |seen, first, chunk| {
                    *seen += chunk.len();
                    for (place, item) in (first..).zip(chunk) {
                        *item += place;
                    }
                });
                threads.for_each_item(&mut items, |item| *item += 1);
                assert!(items.into_iter().eq(1..=length), "{count} threads");
                assert_eq!(scratch.iter().sum::<usize>(), length);
            }
        }
    }
}
