//! Spreading work that goes on beside the ticks.

use bevy_tasks::{AsyncComputeTaskPool, Task, block_on};

use super::hands::Hands;
use super::spread::Spread;
use crate::memory::{AllocationTag, with_thread_tag};

/// The threads of Bevy's pool for work beside the ticks, and whoever [waits](wait_for) for what they make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackgroundWorkers {
    tag: AllocationTag,
}

impl BackgroundWorkers {
    /// Those whose work counts what it allocates under a tag.
    pub(crate) const fn tagged(tag: AllocationTag) -> Self {
        Self { tag }
    }

    fn threads(self) -> Hands {
        let pool = AsyncComputeTaskPool::try_get().map(|pool| &**pool);
        Hands {
            pool,
            count: pool.map_or(1, |pool| pool.thread_num() + 1),
            stay_awake: false,
        }
    }
}

impl Spread for BackgroundWorkers {
    fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        let tagged = |scratch: &mut S, first, chunk: &mut [T]| {
            with_thread_tag(self.tag, || work(scratch, first, chunk));
        };
        self.threads()
            .for_each_chunk(items, chunk_min, scratch, tagged);
    }

    fn for_each_in_turn<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        let tagged = |(): &mut (), _, item: &mut T| with_thread_tag(self.tag, || work(item));
        self.threads()
            .for_each_in_turn_with(items, &mut Vec::new(), tagged);
    }

    fn hands(self) -> usize {
        self.threads().count
    }
}

/// What a task of the pool makes. While it is not done the calling thread helps with what the pool has to do, this and
/// everything else.
pub(crate) fn wait_for<T: Send + 'static>(task: Task<T>) -> T {
    let pool = AsyncComputeTaskPool::try_get().filter(|_| !task.is_finished());
    let Some(pool) = pool else {
        return block_on(task);
    };
    let mut made = pool.scope_with_executor(true, None, |scope| scope.spawn(task));
    made.pop().expect("a scope gives what its one task made")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use bevy_tasks::TaskPool;

    use super::*;
    use crate::sim::clock::Stopwatch;

    const WORKERS: BackgroundWorkers = BackgroundWorkers::tagged(AllocationTag(0));

    #[test]
    fn who_waits_for_a_task_works_with_it() {
        let pool = AsyncComputeTaskPool::get_or_init(TaskPool::default);
        let all = WORKERS.hands();
        assert_eq!(all, pool.thread_num() + 1);
        let task = pool.spawn(async move {
            let begun = AtomicUsize::new(0);
            let mut met = vec![false; all];
            // If another test has threads of the pool, they come later.
            WORKERS.for_each_in_turn(&mut met, |met| {
                begun.fetch_add(1, Ordering::SeqCst);
                let watch = Stopwatch::start();
                while begun.load(Ordering::SeqCst) < all
                    && watch.elapsed() < Duration::from_secs(60)
                {
                    std::thread::yield_now();
                }
                *met = begun.load(Ordering::SeqCst) == all;
            });
            met
        });
        assert_eq!(wait_for(task), vec![true; all]);
    }

    #[test]
    fn every_item_is_visited_once() {
        AsyncComputeTaskPool::get_or_init(TaskPool::default);
        let (mut items, mut scratch) = (vec![0; 500], Vec::<usize>::new());
        WORKERS.for_each_chunk(&mut items, 1, &mut scratch, |seen, first, chunk| {
            *seen += chunk.len();
            (first..)
                .zip(chunk)
                .for_each(|(place, item)| *item += place);
        });
        WORKERS.for_each_in_turn(&mut items, |item| *item += 1);
        assert!(items.into_iter().eq(1..=500));
        assert_eq!(scratch.iter().sum::<usize>(), 500);
    }
}
