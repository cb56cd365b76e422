//! What the server's memory is used for: by module, by the set of the tick that asked for it, and by who never gave it back.
//!
//! ```text
//! structures' capacities ─ MemoryUse ─▶ memory_by_module ─┐
//! CountingAllocator ─▶ allocated, allocated_under(tag) ────┼─▶ `throng run --memory`
//! /proc/self/status ─▶ process_memory ─────────────────────┘
//! CountingAllocator ─▶ live blocks, by call stack ─▶ live_sites ─▶ `throng run --leaks`
//! ```
//! | file | holds |
//! |---|---|
//! | `account` | what structures hold, from their capacities |
//! | `plugin` | which module holds how much |
//! | `allocator` | the allocator that counts (feature `count-alloc`): the only `unsafe` code of the crate |
//! | `counts` | what it counted |
//! | `leaks`, `live_blocks` | what was allocated and lives, by call stack (feature `leak-track`) |
//! | `os` | what the operating system says |
//!
//! Invariants: nothing here is part of the game state; a structure is counted once, by the module that owns it; the table of live
//! blocks never allocates, and nor does the hook that fills it.

mod account;
#[cfg(feature = "count-alloc")]
mod allocator;
mod counts;
#[cfg(feature = "leak-track")]
mod leaks;
#[cfg(feature = "leak-track")]
mod live_blocks;
mod os;
mod plugin;

pub use account::{MemoryUse, each};
#[cfg(feature = "count-alloc")]
pub use allocator::CountingAllocator;
pub use counts::{
    Allocated, AllocationTag, TAGS_MAX, allocated, allocated_under, allocations, tag_tick,
    with_thread_tag,
};
#[cfg(feature = "leak-track")]
pub use leaks::{LiveSite, LiveSites, live_sites, stop_tracking_leaks, track_leaks, untracked};
pub use os::{ProcessMemory, process_memory};
pub use plugin::{MemoryAppExt, memory_by_module};
