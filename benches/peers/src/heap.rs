//! Heap memory in use, by throng's own count. Counting costs a little per allocation, so `nav` is better measured without the
//! feature.

use std::alloc::System;

use throng::memory::{CountingAllocator, allocated};

#[global_allocator]
static HEAP: CountingAllocator<System> = CountingAllocator::new(System);

/// Bytes in use now.
pub fn lent_bytes() -> usize {
    allocated().bytes
}
