//! Spreading a tick's work over threads, with a result that does not depend on how many there are.

use std::sync::{Mutex, PoisonError};

use bevy_ecs::prelude::*;
use bevy_tasks::ComputeTaskPool;

use super::spread::Spread;

/// How many chunks a parallel step is cut into: at most this many run at once on Bevy's compute pool.
///
/// 1 runs inline on the calling thread. Systems are written so that the number never changes a result: a chunk writes only
/// to its own items, and what it gathers is joined in the order of the items.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers(usize);

impl Default for Workers {
    fn default() -> Self {
        Self(1)
    }
}

impl Workers {
    /// At most `count` chunks; 0 counts as 1.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(count.max(1))
    }

    /// The same, with Bevy's pool made if there is none yet.
    #[cfg(test)]
    pub(crate) fn with_pool(count: usize) -> Self {
        ComputeTaskPool::get_or_init(bevy_tasks::TaskPool::default);
        Self::new(count)
    }

    /// How many chunks there may be.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0
    }

    /// Calls `work(scratch, first, chunk)` for consecutive chunks that cover `items`; `first` is the chunk's place.
    ///
    /// `scratch` holds one value a chunk, made when first needed and kept for the next call. A chunk has at least
    /// `chunk_min` items, so that little work stays on one thread. Without Bevy's pool everything runs inline.
    pub fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        let pool = ComputeTaskPool::try_get().filter(|_| self.0 > 1);
        let chunks = if pool.is_some() {
            self.0.min(items.len() / chunk_min.max(1)).max(1)
        } else {
            1
        };
        if scratch.len() < chunks {
            scratch.resize_with(chunks, S::default);
        }
        match pool {
            Some(pool) if chunks > 1 => {
                let length = items.len().div_ceil(chunks);
                let work = &work;
                pool.scope(|scope| {
                    for (index, (chunk, scratch)) in
                        items.chunks_mut(length).zip(scratch).enumerate()
                    {
                        scope.spawn(async move { work(scratch, index * length, chunk) });
                    }
                });
            }
            _ => work(&mut scratch[0], 0, items),
        }
    }

    /// Calls `work` for every item; whoever is done takes the next one. For a few items of which some may be much more work
    /// than others: the largest should come first. Without Bevy's pool everything runs inline, in order.
    pub fn for_each_in_turn<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        let pool = ComputeTaskPool::try_get().filter(|_| self.0 > 1 && items.len() > 1);
        let Some(pool) = pool else {
            return items.iter_mut().for_each(work);
        };
        let hands = self.0.min(items.len());
        let items = Mutex::new(items.iter_mut());
        let next = || {
            let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
            items.next()
        };
        pool.scope(|scope| {
            for _ in 0..hands {
                scope.spawn(async {
                    while let Some(item) = next() {
                        work(item);
                    }
                });
            }
        });
    }
}

impl Spread for Workers {
    fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        Self::for_each_chunk(self, items, chunk_min, scratch, work);
    }

    fn for_each_in_turn<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        Self::for_each_in_turn(self, items, work);
    }

    fn hands(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_tasks::TaskPool;

    #[test]
    fn every_item_is_visited_once_whatever_the_number_of_chunks() {
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
