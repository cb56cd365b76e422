//! What memory is used for: what structures hold, what is allocated under which tag, and what was never freed.
//!
//! | file | holds |
//! |---|---|
//! | `account` | what structures hold, from their capacities |
//! | `allocator` | the allocator that counts (feature `count-alloc`): the only `unsafe` code of the crate |
//! | `counts` | what it counted |
//! | `leaks`, `live_blocks` | live allocations by call stack (feature `leak-track`) |
//! | `os` | what the operating system reports |
//!
//! Invariants: nothing here is part of the game state; the table of live blocks never allocates, and nor does the hook that
//! fills it.

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
