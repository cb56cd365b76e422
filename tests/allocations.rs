//! After warm-up nothing is allocated where messages become packets. A binary of its own, because the allocator is the whole
//! process's.
#![expect(
    unsafe_code,
    reason = "an allocator that counts cannot be written without"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use throng::outbox::workload::{WorkloadShard, fill};
use throng::outbox::{Assembler, Batch, CountingSink};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counted.
struct Counting;

// SAFETY: every call is passed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The only test here: others would allocate beside it.
#[test]
fn a_warm_outbox_allocates_nothing() {
    let mut batch = Batch::default();
    fill(&mut batch, 1, 2_000, 200, 60);
    let (mut assembler, mut sink) = (Assembler::default(), CountingSink::default());
    let mut shard = WorkloadShard::new(1 << 20, Box::new(CountingSink::default()));
    let mut tick = || {
        for line in batch.parts.iter().flat_map(|part| part.lines()) {
            assembler.line(1, line, &batch.shared, &mut sink);
        }
        shard.offer(&batch);
        shard.take();
    };
    (0..300).for_each(|_| tick());
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..100).for_each(|_| tick());
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
}
