//! Memory use: the size of structures, allocations by tag, and leaks.
//!
//! Invariants: nothing here is part of the game state; the table of live blocks never allocates, and nor does the hook that
//! fills it.

// | file | holds |
// | `account` | the heap memory of structures, from their capacities |
// | `allocator` | the counting allocator (feature `count-alloc`): the only `unsafe` code of the crate |
// | `counts` | its counters |
// | `leaks`, `live_blocks` | live allocations by call stack (feature `leak-track`) |
// | `os` | the numbers of the operating system |

mod account;
#[cfg(feature = "count-alloc")]
mod allocator;
mod counts;
#[cfg(feature = "leak-track")]
mod leaks;
#[cfg(feature = "leak-track")]
mod live_blocks;
mod os;

#[doc(hidden)]
pub use account::{CopiedField, FieldMemory};
pub use account::{MemoryUse, clear_and_shrink, heap_bytes_of, heap_bytes_of_lists};
#[cfg(feature = "count-alloc")]
pub use allocator::CountingAllocator;
#[doc(hidden)]
pub use counts::with_local;
pub use counts::{
    Allocated, AllocationTag, TAGS_MAX, allocated, allocated_with_tag, allocation_count,
    set_tick_tag, with_thread_tag,
};
#[cfg(feature = "leak-track")]
pub use leaks::{
    AllocationSite, AllocationSites, allocation_sites, has_line_tables, stop_tracking_leaks,
    track_leaks, without_leak_tracking,
};
pub use os::{ProcessMemory, process_memory};
