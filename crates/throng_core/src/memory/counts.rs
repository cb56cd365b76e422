//! Allocations by tag: by set of a tick, or by kind of thread.
//!
//! A tick runs its sets one after the other on any number of threads, so one tag for the process identifies the current
//! set; a thread that works beside the ticks has its own tag.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread::LocalKey;

/// The number of tags.
pub const TAGS_MAX: usize = 32;

/// The tag of allocations; 0, the default, is for all without another tag, including tags beyond [`TAGS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllocationTag(pub u8);

/// The live allocations under a tag, or in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// The requested bytes, without the allocator's overhead.
    pub bytes: usize,
    /// The number of blocks.
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

/// Sets the tag for allocations of threads without a tag of their own. Changes only counts.
pub fn set_tick_tag(tag: AllocationTag) {
    TICK_TAG.store(tag.0, Relaxed);
}

/// Counts this thread's allocations in `work` under this tag, whatever set the tick is in.
pub fn with_thread_tag<T>(tag: AllocationTag, work: impl FnOnce() -> T) -> T {
    with_local(&THREAD_TAG, tag.0, work)
}

/// Runs code with a thread-local value set, and restores the previous value afterwards, also after a panic.
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

/// The index of a tag's counts.
const fn tag_index(tag: usize) -> usize {
    if tag < TAGS_MAX { tag } else { 0 }
}

/// The live allocations of the whole process; zero without a `CountingAllocator`.
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

/// The live allocations that were made under a tag.
#[must_use]
pub fn allocated_with_tag(tag: AllocationTag) -> Allocated {
    let count = &COUNTS[tag_index(usize::from(tag.0))];
    Allocated {
        bytes: count.bytes.load(Relaxed),
        blocks: count.blocks.load(Relaxed),
    }
}

/// The number of allocations and growths of blocks since the process started; 0 without a `CountingAllocator`.
#[must_use]
pub fn allocation_count() -> u64 {
    CALLS.load(Relaxed)
}

/// Counts a block; returns the tag that it is counted under.
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

/// Subtracts a block from the count of its tag.
#[cfg(feature = "count-alloc")]
pub(super) fn subtract(tag: usize, bytes: usize) {
    let count = &COUNTS[tag_index(tag)];
    count.bytes.fetch_sub(bytes, Relaxed);
    count.blocks.fetch_sub(1, Relaxed);
}
