//! How much is allocated, by tag: in which set of a tick, or on which kind of thread.
//!
//! A tick runs its sets one after the other, whatever number of threads it is spread over, so one tag for the process says in which
//! set it is; a thread that works beside the ticks has one of its own.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread::LocalKey;

/// How many tags there are.
pub const TAGS_MAX: usize = 32;

/// What allocations are counted under; 0, the default, is for all that has no other, and what is beyond [`TAGS_MAX`] is that, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllocationTag(pub u8);

/// What is allocated now under a tag, or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// As they were asked for, without what the allocator adds to them.
    pub bytes: usize,
    /// Blocks.
    pub blocks: usize,
}

struct Count {
    bytes: AtomicUsize,
    blocks: AtomicUsize,
}

static COUNTS: [Count; TAGS_MAX] = [const {
    Count {
        bytes: AtomicUsize::new(0),
        blocks: AtomicUsize::new(0),
    }
}; TAGS_MAX];

static CALLS: AtomicU64 = AtomicU64::new(0);

static TICK_TAG: AtomicU8 = AtomicU8::new(0);

thread_local! {
    static THREAD_TAG: Cell<u8> = const { Cell::new(0) };
}

/// From now on, what threads without a tag of their own allocate is counted under this one. Changes nothing but counts.
pub fn set_tick_tag(tag: AllocationTag) {
    TICK_TAG.store(tag.0, Relaxed);
}

/// Counts what this thread allocates in `work` under this tag, whatever set the tick is in.
pub fn with_thread_tag<T>(tag: AllocationTag, work: impl FnOnce() -> T) -> T {
    with_local(&THREAD_TAG, tag.0, work)
}

/// Does something with a value in force on this thread, and then the one before again, also where that panics.
pub fn with_local<V: Copy + 'static, T>(
    key: &'static LocalKey<Cell<V>>,
    value: V,
    work: impl FnOnce() -> T,
) -> T {
    struct Restore<V: Copy + 'static>(&'static LocalKey<Cell<V>>, V);
    impl<V: Copy + 'static> Drop for Restore<V> {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _restore = Restore(key, key.replace(value));
    work()
}

/// Where a tag is counted.
const fn tag_index(tag: usize) -> usize {
    if tag < TAGS_MAX { tag } else { 0 }
}

/// What is allocated now by the whole process; zero where no `CountingAllocator` is in place.
#[must_use]
pub fn allocated() -> Allocated {
    (0..TAGS_MAX as u8).fold(Allocated::default(), |sum, tag| {
        let one = allocated_with_tag(AllocationTag(tag));
        Allocated {
            bytes: sum.bytes.wrapping_add(one.bytes),
            blocks: sum.blocks.wrapping_add(one.blocks),
        }
    })
}

/// What is allocated now of what was allocated under a tag.
#[must_use]
pub fn allocated_with_tag(tag: AllocationTag) -> Allocated {
    let count = &COUNTS[tag_index(usize::from(tag.0))];
    Allocated {
        bytes: count.bytes.load(Relaxed),
        blocks: count.blocks.load(Relaxed),
    }
}

/// How often the process has allocated or grown a block since it began; 0 where nothing is counted.
#[must_use]
pub fn allocation_count() -> u64 {
    CALLS.load(Relaxed)
}

/// Counts a block; gives the tag that it is counted under.
#[cfg(feature = "count-alloc")]
pub(super) fn add(bytes: usize) -> usize {
    let own = THREAD_TAG.get();
    let tag = if own == 0 {
        TICK_TAG.load(Relaxed)
    } else {
        own
    };
    let tag = tag_index(usize::from(tag));
    CALLS.fetch_add(1, Relaxed);
    COUNTS[tag].bytes.fetch_add(bytes, Relaxed);
    COUNTS[tag].blocks.fetch_add(1, Relaxed);
    tag
}

/// Takes a block from the count of its tag.
#[cfg(feature = "count-alloc")]
pub(super) fn subtract(tag: usize, bytes: usize) {
    let count = &COUNTS[tag_index(tag)];
    count.bytes.fetch_sub(bytes, Relaxed);
    count.blocks.fetch_sub(1, Relaxed);
}
