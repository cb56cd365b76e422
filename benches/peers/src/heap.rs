//! How much memory is in use: the system's allocator, with a count of the bytes that it has lent. Counting takes a little of
//! every allocation, so `nav` is better measured without the feature.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LENT_BYTES: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static HEAP: Counted = Counted;

struct Counted;

/// Bytes in use now.
pub fn lent_bytes() -> usize {
    LENT_BYTES.load(Relaxed)
}

// SAFETY: all calls are passed on as they come.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LENT_BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LENT_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LENT_BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LENT_BYTES.fetch_add(size, Relaxed);
        LENT_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
