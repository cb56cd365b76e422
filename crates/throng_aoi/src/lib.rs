#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! ```text
//! position ──locate──▶ sticky GridCell ──update──▶ bit rows + Enter / Leave
//!                        (grid)         (views/)
//! ```
//!
//! Invariants after each update: a link joins two objects that can see each other now; no list is over its cap; objects that
//! leave are removed in the same tick. *Directed* mode: an object that a viewer could see and does not see never has a higher
//! class than a member of that list, and the list has no free slot while such an object exists. At most a fixed number of the
//! viewers that arrive or move scan their surroundings in the same tick; the others wait in a queue that runs a fixed number
//! of scans a tick, and are excepted. A free slot also waits for a scan in a list with a custom ranking, or with scenery
//! among other objects. *Mutual* mode: if both ends would accept a pair that is not linked, one end is queued. Within one
//! class, the nearer band of distance goes first; bands are right once every viewer had its turn
//! ([`set_rerank_ticks`](SceneViews::set_rerank_ticks)).
//!
//! A viewer with a radius of its own, and every viewer of a scene with rules by distance, is an *exact viewer*: its links
//! depend on exact distances, so it is examined again in every update in which an object near it moved (views/exact). The
//! others do not pay for it.
//!
//! Each other viewer has a row of bits, one bit for each slot of the nine cells around it. Cells run in parallel and each writes
//! its own rows only, so links, events and counters are the same for any number of threads.
//!
//! Cost: for each object that changed cell, a test of its bit in the rows around its old cell, its own row, and a comparison
//! of relations with the population of nine cells; for each removed object, a test of its bit in the rows of nine cells;
//! O(links that begin or end); a share of re-ranked viewers. A row has a bit for each slot of nine cells; in crowds it stores
//! only words with a set bit.
#![warn(missing_docs)]

// | file | holds |
// | `priority` | the traits of an object that views read, classes of pairs, bands of distance |
// | `grid` | the cell of each object, and which cells are in range of each other |
// | `views/` | the views of a scene, and the update that keeps them exact |
// | `workload`, `reference`, `reference_sets` | benchmark load, and two other designs to compare with (feature `bench`) |

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
    ATTACKER, BAND_COUNT, CLASS_MAX, DISTANCE_RULES_MAX, DistanceBands, DistanceRules, GUILD,
    OWN_OR_TARGET, PARTY, SCENERY, TEAM, UNRELATED, ViewFilter, ViewPriority, ViewTraits,
    by_relationship, is_same_team,
};
pub use views::{
    IDS_MAX, LIST_COUNT, RERANK_TICKS, RemovalReason, SceneViews, UNCAPPED, ViewCaps, ViewCounters,
    ViewEvent, ViewException, ViewInsertError, ViewInvariantError, ViewLeaveReason, ViewLinkMode,
    ViewProfile, ViewRadiusError,
};
