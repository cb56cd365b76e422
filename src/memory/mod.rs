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
//! | `plugin` | which module holds how much |
//! | `throng_core::memory` | what structures hold; the allocator that counts and what it counted; leaks; what the operating system reports |
//!
//! Invariants: nothing here is part of the game state; a structure is counted once, by the module that owns it; the table of live
//! blocks never allocates, and nor does the hook that fills it.
//!
//! # Of what a server's memory consists
//!
//! `throng run SCENARIO --memory --threads 1 --ticks 600`, built with `count-alloc`, as MB that the process grew by since the run was
//! set up. What modules tell and what the allocator took beyond what was asked of it explain 97 % of either:
//!
//! | scenario | grown by | modules | of what is allocated | allocator, huge pages included | not accounted |
//! |---|---|---|---|---|---|
//! | `town`: 2,500 objects, 500 clients with mirrors | 109 | 64 | 96 % | 42 | 3 |
//! | `churn`: 1,200 objects, 500 clients with mirrors | 107 | 50 | 94 % | 53 | 3 |
//!
//! What is not accounted is Bevy's own, such as schedules and archetypes, and lists that systems keep for themselves.
//! `tests/allocations.rs` drops all resources and components of a server with battles, lookups and a store, and finds that what
//! goes with those of each module is what the module tells, to a tenth and 16 kB.
//!
//! # Allocators
//!
//! The same runs, on a machine that was busy with other work: a time is good for a third of itself, memory is steady. Built at
//! `opt-level` 2, and all counted. Mimalloc is that of the crate, or Debian's library where it says so; the system's is glibc 2.36.
//!
//! | allocator | `town`: mean tick, ms | resident, MB | `churn`: mean tick, ms | resident, MB |
//! |---|---|---|---|---|
//! | mimalloc | 14.2 | 135 | 3.9 | 143 |
//! | mimalloc, `MIMALLOC_ALLOW_THP=0` | 15.7 | 105 | 3.1 | 113 |
//! | system | 17.4 | 94 | 6.3 | 95 |
//! | jemalloc 5.3 (library) | 13.5 | 106 | 5.5 | 104 |
//! | mimalloc 2.0 (library) | 16.5 | 103 | 4.9 | 108 |
//!
//! The program keeps mimalloc: no other is faster beyond what times vary there, and its memory above the system's is what it
//! maps as huge pages ahead of need, which whoever has little memory turns off with `MIMALLOC_ALLOW_THP=0`.
//!
//! # Pools
//!
//! `benches/peers`, `pool`: 4,096 values of 48 bytes, nanoseconds a value, the least of 301 rounds. *Leave* gives one drawn at random
//! back and takes one anew; *look* looks at one by its key; *walk* looks at all, gives every eighth back on the way, finds those by
//! looking all keys up, and takes as many anew. The pools are full throughout, which is where a list of those in use helps least.
//!
//! | | leave | look | walk |
//! |---|---|---|---|
//! | arrays with a free list and generations, as [`SceneObjects`](crate::world::SceneObjects) have | 5.1 | 1.3 | 3.2 |
//! | chunks of 60 with a list of those in use (the reference) | 12.6 | 1.9 | 5.2 |
//! | `slotmap` 1 | 5.2 | 1.7 | 3.0 |
//! | `slab` 0.4, which knows no generations | 4.9 | 1.2 | 3.0 |
//!
//! The chunks lose in all three, so there is no pool here. Neither crate gains more than 6 % on the arrays; object ids must be given out
//! lowest first and only after their despawn was told, and waiting messages are lists through the array, which neither crate has.

mod plugin;

pub use plugin::{MemoryAppExt, memory_by_module};
pub use throng_core::memory::*;
