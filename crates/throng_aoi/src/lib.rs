#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! ```text
//! position ──locate──▶ sticky GridCell ──update──▶ bit rows + Enter / Leave
//!                        (grid)         (views/)
//! ```
//! | file | holds |
//! |---|---|
//! | `priority` | what views read of an object, the classes of pairs and the bands of distance |
//! | `grid` | which cell an object is in, and which cells are in range of each other |
//! | `views/` | the views of a scene, and the update that keeps them exact |
//! | `workload`, `reference`, `sets` | what views are measured with, and two designs to measure beside (feature `bench`) |
//!
//! Invariants, after each update: a link joins two that can see each other now; nobody is over cap; leavers are gone the
//! same tick. *Directed* sight: nobody whom a viewer could see and does not has a higher class than a member of the list
//! concerned, and it has no free place while such an object exists. Of those who come or move at most so many look around in
//! the same tick; the rest waits in a queue, worked by a fixed number of looks a tick, and these are excepted, as is whoever has a free
//! place in a list with a ranking of the game's own or with scenery among others: such a place waits for a look as well.
//! *Mutual* sight: of every pair that both ends would accept and that is not linked, an end is queued. Of one class the
//! nearer band of distance goes first; bands are right once every viewer had its turn
//! ([`set_rerank_ticks`](SceneViews::set_rerank_ticks)).
//!
//! Who sees whom is a row of bits for each viewer, a bit for each slot of the nine cells around it. Cells are worked side by
//! side, each writing its own rows: links, events and counters are the same for any number of threads.
//!
//! Cost: for each object that changed cell, a look at its bit in the rows around where it was, its own row, and a comparison
//! of ties with the population of nine cells; for each that is removed, a look at its bit in the rows of nine cells; O(links
//! that begin or end); a share of re-ranked viewers. A row has a bit for each slot of nine cells, in crowds only words with one.
#![warn(missing_docs)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

mod grid;
mod priority;
#[cfg(any(test, feature = "bench"))]
#[doc(hidden)]
pub mod reference;
#[cfg(any(test, feature = "bench"))]
#[doc(hidden)]
pub mod reference_sets;
mod views;
#[cfg(any(test, feature = "bench"))]
#[doc(hidden)]
pub mod workload;

pub use grid::{CELLS_MAX, GridCell, GridError, SceneGrid, cell_m_for_screen};
pub use priority::{
    ATTACKER, BAND_COUNT, CLASS_MAX, DistanceBands, GUILD, OWN_OR_TARGET, PARTY, SCENERY, TEAM,
    UNRELATED, ViewFilter, ViewPriority, ViewTraits, by_relationship,
};
pub use views::{
    IDS_MAX, LIST_COUNT, RERANK_TICKS, RemovalReason, SceneViews, UNCAPPED, ViewCaps, ViewCounters,
    ViewEvent, ViewException, ViewInsertError, ViewInvariantError, ViewLeaveReason, ViewLinkMode,
    ViewProfile,
};
