//! The views of a scene, and the update that keeps them exact.
//!
//! ```text
//! insert, locate, set_traits, … ─▶ settle ─▶ each cell: who leaves ─▶ who is let in ─▶ pairs ─▶ ViewEvents, bit rows
//! (scene_views)                    └──────────── update/ ────────┘   └─ choose/ ─┘   └ pairs/ ┘   (events, state/)
//! ```
//! | file | holds |
//! |---|---|
//! | `scene_views` | the views of a scene: objects come, go and change |
//! | `part` | links that end at once, outside an update |
//! | `query` | what can be asked of them, and what of them is state |
//! | `events` | what an update tells and counts |
//! | `state/` | what is kept of a scene: objects, cells, slots, rows of bits |
//! | `update/` | the View step, from what changed to links; who leaves |
//! | `choose/` | who is let in: ties first, strangers where there is a place, the nearer for the farther |
//! | `pairs/` | mutual sight: pairs that both ends must accept |
//! | `check` | the brute-force check of all that is promised |
//! | `model/` | the same as a model over random scripts, for tests |

mod check;
mod choose;
mod events;
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
pub use scene_views::{
    RERANK_TICKS, RemovalReason, SceneViews, ViewCaps, ViewInsertError, ViewProfile,
};
pub use state::exceptions::ViewException;
pub use state::object::{IDS_MAX, LIST_COUNT, UNCAPPED, ViewLinkMode};
