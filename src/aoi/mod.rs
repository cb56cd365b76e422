//! Area of interest: who sees whom in a scene, exactly, under caps.
//!
//! ```text
//! Position ──locate──▶ sticky GridCell ──update──▶ links + Enter / Leave ──▶ sync
//!                       (grid.rs)       (update.rs) (links.rs)
//! ```
//! Invariants, after each update: a link joins two that can see each other now; link ⇔ membership ⇔ an entry
//! at each end; nobody is over cap; leavers are gone the same tick; and unless a viewer is queued, nobody
//! whom it could see and does not outranks a member of the list concerned, and it has no free place while
//! such an object exists. The queue is worked by a fixed number of looks a tick and lets go of a viewer only
//! when it has nothing to gain.
//!
//! Cost: O(objects that changed cell × population of the cells that differ) plus the looks.

pub mod check;
pub mod grid;
pub mod links;
#[cfg(test)]
mod model;
mod object;
mod pairs;
mod plugin;
pub mod priority;
pub mod queue;
mod rerank;
pub mod update;
pub mod views;

pub use plugin::{
    AoiPlugin, AoiSettings, AoiStats, Entered, InterestSpec, Left, PriorityChanged, SceneInterest,
    Ties, Viewable, Viewer,
};
pub use views::{LeaveReason, SceneViews, Sight, ViewCaps};
