//! Heap memory in use, counted by throng's allocator. Counting makes each allocation a little slower, so `nav` should be measured without
//! the feature.

use std::alloc::System;

use throng::memory::{CountingAllocator, allocated};

#[global_allocator]
static HEAP: CountingAllocator<System> = CountingAllocator::new(System);

/// Allocated bytes in use.
pub fn allocated_bytes() -> usize {
    allocated().bytes
}
