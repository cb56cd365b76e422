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
