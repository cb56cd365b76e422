//! The views of a scene, and the update that keeps them exact.
//!
//! ```text
//! insert, locate, set_traits, … ─▶ apply ─▶ each cell: leaves ─▶ enters ─▶ pairs ─▶ ViewEvents, bit rows
//! (scene_views)                    └─────── update/ ────────┘  └choose/┘  └pairs/┘  (events, state/)
//! ```
//! | file | holds |
//! |---|---|
//! | `scene_views` | the views of a scene: insert, remove and change objects |
//! | `removal` | links that end at once, outside an update |
//! | `query` | queries, and the hash of the state |
//! | `events` | events and counters of an update |
//! | `state/` | the stored state of a scene: objects, cells, slots, rows of bits |
//! | `update/` | the View step, from changes to links; targets that leave |
//! | `choose/` | targets that enter: related ones first, unrelated ones in free slots, nearer ones for farther ones |
//! | `pairs/` | mutual mode: pairs that both ends must accept |
//! | `exact/` | viewers whose links depend on exact distances: a radius of their own, rules by distance |
//! | `check` | the brute-force check of all promises |
//! | `model/` | the same as a model over random scripts, for tests |

mod check;
mod choose;
mod events;
mod exact;
#[cfg(test)]
mod model;
mod pairs;
mod query;
mod removal;
mod scene_views;
mod state;
mod update;

pub use check::ViewInvariantError;
pub use events::{ViewCounters, ViewEvent, ViewLeaveReason};
pub use exact::ViewRadiusError;
pub use scene_views::{
    RERANK_TICKS, RemovalReason, SceneViews, ViewCaps, ViewInsertError, ViewProfile,
};
pub use state::exceptions::ViewException;
pub use state::object::{IDS_MAX, LIST_COUNT, UNCAPPED, ViewLinkMode};
