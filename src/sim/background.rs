//! Background work: runs between and during ticks, on one thread of Bevy's pool.
//!
//! A thread that waits for a task also runs chunks of it. Otherwise background work takes at most one thread from a real-time
//! server.
//!
//! Invariant: no task starts inside another one. A thread that waits for the last chunk of its task would otherwise start the next task,
//! which may be long, with everything that its own task holds.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use bevy_tasks::futures_lite::future::yield_now;
use bevy_tasks::{AsyncComputeTaskPool, Task, block_on};
use throng_core::parallel::ParallelExecutor;

use super::worker_set::WorkerSet;
use crate::memory::{AllocationTag, with_local, with_thread_tag};

/// The number of threads that wait for a task.
static WAITING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread runs a task.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Starts a task whose allocations are counted under a tag. Without background threads the work is returned.
pub(crate) fn start_task<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(
    tag: AllocationTag,
    work: F,
) -> Result<Task<T>, F> {
    let pool = AsyncComputeTaskPool::try_get().filter(|pool| pool.thread_num() > 0);
    let Some(pool) = pool else {
        return Err(work);
    };
    Ok(pool.spawn(async move {
        while IS_BUSY.get() {
            yield_now().await;
        }
        with_local(&IS_BUSY, true, || with_thread_tag(tag, work))
    }))
}

/// The result of a task. Until it is done, the calling thread runs work of the pool, of any kind.
pub(crate) fn wait_for<T: Send + 'static>(task: Task<T>) -> T {
    // A finished task is taken at once, and no other work is started: the caller may have to keep real time.
    let pool = AsyncComputeTaskPool::try_get().filter(|_| !task.is_finished());
    let Some(pool) = pool else {
        return block_on(task);
    };
    let _waits = WaitGuard::new();
    let mut made = pool.scope_with_executor(true, None, |scope| scope.spawn(task));
    made.pop().expect("a scope gives what its one task made")
}

/// Counts the thread as waiting while it exists, also when the task panics.
struct WaitGuard;

impl WaitGuard {
    fn new() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The thread of a task, and the threads that [wait](wait_for) for one when a batch begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackgroundWorkers {
    tag: AllocationTag,
}

impl BackgroundWorkers {
    /// An executor that counts the allocations of its work under a tag.
    pub(crate) const fn tagged(tag: AllocationTag) -> Self {
        Self { tag }
    }

    fn on_pool(self) -> WorkerSet {
        WorkerSet {
            pool: AsyncComputeTaskPool::try_get().map(|pool| &**pool),
            count: 1 + WAITING.load(Ordering::Relaxed),
            stay_awake: false,
        }
    }
}

impl ParallelExecutor for BackgroundWorkers {
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
        self.on_pool()
            .for_each_chunk(items, chunk_min, scratch, tagged);
    }

    fn for_each_item<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        let tagged = |(): &mut (), _, item: &mut T| with_thread_tag(self.tag, || work(item));
        self.on_pool()
            .for_each_in_turn_with(items, &mut Vec::new(), tagged);
    }

    fn worker_count(self) -> usize {
        self.on_pool().count
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bevy_tasks::TaskPool;

    use super::*;
    use crate::sim::clock::Stopwatch;

    const WORKERS: BackgroundWorkers = BackgroundWorkers::tagged(AllocationTag(0));

    /// Waits until the condition holds; it takes longer while another test uses the threads of the pool.
    fn wait_until(is_so: impl Fn() -> bool) -> bool {
        let watch = Stopwatch::start();
        while !is_so() && watch.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        is_so()
    }

    #[test]
    fn waiting_thread_helps_with_its_task() {
        AsyncComputeTaskPool::get_or_init(TaskPool::default);
        let task = start_task(AllocationTag(0), || {
            let (is_waited_for, begun) = (
                wait_until(|| WORKERS.worker_count() > 1),
                AtomicUsize::new(0),
            );
            let mut met = [false; 2];
            WORKERS.for_each_item(&mut met, |met| {
                begun.fetch_add(1, Ordering::SeqCst);
                *met = wait_until(|| begun.load(Ordering::SeqCst) == 2);
            });
            (is_waited_for, met)
        });
        assert_eq!(wait_for(task.ok().unwrap()), (true, [true; 2]));
    }

    #[test]
    fn tasks_do_not_start_inside_another_task() {
        thread_local! {
            static DEPTH: Cell<usize> = const { Cell::new(0) };
        }
        AsyncComputeTaskPool::get_or_init(TaskPool::default);
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let work = || {
                    DEPTH.set(DEPTH.get() + 1);
                    let depth = DEPTH.get();
                    for _ in 0..20 {
                        let mut items = [0; 4];
                        WORKERS.for_each_item(&mut items, |_| std::thread::yield_now());
                    }
                    DEPTH.set(DEPTH.get() - 1);
                    depth
                };
                start_task(AllocationTag(0), work).ok().unwrap()
            })
            .collect();
        assert!(tasks.into_iter().all(|task| wait_for(task) == 1));
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
        WORKERS.for_each_item(&mut items, |item| *item += 1);
        assert!(items.into_iter().eq(1..=500));
        assert_eq!(scratch.iter().sum::<usize>(), 500);
    }
}
