//! Memory accounting: by module, by the set of the tick that allocated it, and by the call stack that did not free it.
//!
//! Call [`memory_by_module`] in a server, or run `throng run SCENARIO --memory` or `--leaks`. Implement [`MemoryUse`] for your own resources and
//! components. For counts of allocations install the counting allocator (feature `count-alloc`), for leaks build with `leak-track`.
//!
//! ```text
//! capacities of structures ─ MemoryUse ─▶ memory_by_module ─┐
//! CountingAllocator ─▶ allocated, allocated_under(tag) ─────┼─▶ `throng run --memory`
//! /proc/self/status ─▶ process_memory ──────────────────────┘
//! CountingAllocator ─▶ live blocks, by call stack ─▶ live_sites ─▶ `throng run --leaks`
//! ```
//!
//! Invariants: nothing here is part of the game state. A structure is counted once, by the module that owns it. The table of live blocks,
//! and the hook that fills it, never allocate.
//!
//! # Accuracy
//!
//! Growth of the process in MB since the run was set up: `throng run SCENARIO --memory --threads 1 --ticks 600`, built with `count-alloc`.
//! The modules and the overhead of the allocator explain 97 % of it:
//!
//! | scenario | growth | modules | share of all allocations | allocator overhead, including huge pages | unattributed |
//! |---|---|---|---|---|---|
//! | `town`: 2,500 objects, 500 clients with mirrors | 109 | 64 | 96 % | 42 | 3 |
//! | `churn`: 1,200 objects, 500 clients with mirrors | 107 | 50 | 94 % | 53 | 3 |
//!
//! The rest is memory of Bevy, such as schedules and archetypes, and scratch lists of systems. `tests/allocations.rs` drops all resources
//! and components of a server, and checks that each module reports what is freed with it, to 10 % and 16 kB.
//!
//! `docs/decisions/0013` compares allocators and object pools.

mod plugin;

pub use plugin::{MemoryAppExt, memory_by_module};
pub use throng_core::memory::*;
