//! Pool threads that work in parallel with the calling thread.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use bevy_tasks::TaskPool;
use bevy_tasks::futures_lite::future::yield_now;

use super::clock::Stopwatch;

/// A maximum number of threads: the calling one, and others of a pool. Without a pool everything runs inline.
#[derive(Clone, Copy)]
pub(super) struct WorkerSet {
    pub(super) pool: Option<&'static TaskPool>,
    pub(super) count: usize,
    /// Whether helper threads [poll for more work](AWAKE_NS) before they sleep.
    pub(super) stay_awake: bool,
}

impl WorkerSet {
    /// See [`Workers::for_each_chunk`](super::Workers::for_each_chunk).
    pub(super) fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        let hands = self.count_for(items.len());
        let chunks_max = if hands > 1 {
            hands * CHUNKS_PER_WORKER
        } else {
            1
        };
        let chunks = chunks_max.min(items.len() / chunk_min.max(1)).max(1);
        if scratch.len() < chunks {
            scratch.resize_with(chunks, S::default);
        }
        if chunks == 1 {
            return work(&mut scratch[0], 0, items);
        }
        let length = items.len().div_ceil(chunks);
        let chunks = items.chunks_mut(length).zip(scratch).enumerate();
        self.run_parallel(
            &mut vec![(); hands.min(chunks.len())],
            chunks,
            |(), (nth, (chunk, scratch))| {
                let mut own = std::mem::take(scratch);
                work(&mut own, nth * length, chunk);
                *scratch = own;
            },
        );
    }

    /// See [`Workers::for_each_in_turn_with`](super::Workers::for_each_in_turn_with).
    pub(super) fn for_each_in_turn_with<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut T) + Sync,
    ) {
        let hands = self.count_for(items.len());
        if scratch.len() < hands {
            scratch.resize_with(hands, S::default);
        }
        let items = items.iter_mut().enumerate();
        self.run_parallel(&mut scratch[..hands], items, |scratch, (place, item)| {
            work(scratch, place, item);
        });
    }

    /// How many of this many items may be processed at once; at least 1.
    fn count_for(self, items: usize) -> usize {
        match self.pool {
            Some(_) => self.count.min(items).max(1),
            None => 1,
        }
    }

    /// Each worker takes one item after another until none is left: the first, on the calling thread, from the front, and others
    /// from the back. So the same thread mostly processes the same items in every step of a tick, and has their memory in its
    /// caches.
    fn run_parallel<H: Send + Default, I: DoubleEndedIterator + Send>(
        self,
        hands: &mut [H],
        items: I,
        work: impl Fn(&mut H, I::Item) + Sync,
    ) {
        let Some(pool) = self.pool.filter(|_| hands.len() > 1) else {
            return items.for_each(|item| work(&mut hands[0], item));
        };
        let (own, others) = hands.split_at_mut(1);
        let helpers = others.len();
        let (items, others) = (Mutex::new(items), Mutex::new(others.iter_mut()));
        // No lock is held while an item is processed.
        let (first, last) = (|| locked(&items).next(), || locked(&items).next_back());
        let help = || {
            let Some(hand) = locked(&others).next() else {
                return;
            };
            let mut own = std::mem::take(hand);
            while let Some(item) = last() {
                work(&mut own, item);
            }
            *hand = own;
        };
        run_with_helpers(pool, helpers, &help, &mut || {
            // A thread that is still asleep is not needed: this one processes all items, and the other finds none left.
            while let Some(item) = first() {
                work(&mut own[0], item);
            }
        });
        if self.stay_awake {
            keep_awake(pool, helpers);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `help` on this many threads of the pool, and `own` on the calling one. A panic of `own` is rethrown when all have finished, as
/// they use what the caller borrowed.
///
/// Not generic: the compiler would otherwise copy the scope of the pool and its tasks for each parallel step.
fn run_with_helpers(
    pool: &TaskPool,
    helpers: usize,
    help: &(dyn Fn() + Sync),
    own: &mut dyn FnMut(),
) {
    let mut worked = Ok(());
    pool.scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(async move { help() });
        }
        worked = catch_unwind(AssertUnwindSafe(own));
    });
    if let Err(panic) = worked {
        resume_unwind(panic);
    }
}

/// Chunks per worker. More of them balance better, and each costs a scratch value.
const CHUNKS_PER_WORKER: usize = 4;

/// How long a thread polls for more work before it sleeps. To wake one takes 60 to 100 µs, which is more than many steps of a
/// tick take; between most of them there is less than this.
const AWAKE_NS: u64 = 300_000;

/// For [`AWAKE_NS`] from now, this many threads of the pool poll for work and do not sleep; they yield to other threads on their
/// core. The pool belongs to the whole process, and so does the state of its threads.
fn keep_awake(pool: &'static TaskPool, threads: usize) {
    static CLOCK: LazyLock<Stopwatch> = LazyLock::new(Stopwatch::start);
    static UNTIL_NS: AtomicU64 = AtomicU64::new(0);
    static AWAKE: AtomicUsize = AtomicUsize::new(0);
    let now_ns = || u64::try_from(CLOCK.elapsed().as_nanos()).unwrap_or(u64::MAX);
    UNTIL_NS.store(now_ns().saturating_add(AWAKE_NS), Ordering::Relaxed);
    while AWAKE.load(Ordering::Relaxed) < threads {
        AWAKE.fetch_add(1, Ordering::Relaxed);
        let look_for_work = async move {
            while now_ns() < UNTIL_NS.load(Ordering::Relaxed) {
                std::thread::yield_now();
                // Other tasks of the pool come first.
                yield_now().await;
            }
            AWAKE.fetch_sub(1, Ordering::Relaxed);
        };
        pool.spawn(look_for_work).detach();
    }
}
