//! Area of interest: which objects see each other in a scene, exactly, with limits per viewer.
//!
//! ```text
//! Position ──locate──▶ sticky GridCell ──update──▶ bit rows + Enter / Leave ──▶ sync
//! ```
//! The grid and the views are in the crate `throng_aoi`, which documents their guarantees. This module re-exports its items.
//! The crate does not depend on the ECS and can be used alone.
//!
//! Invariants, after each tick: those of [`SceneViews`]; distance bands are correct after every viewer was ranked again
//! (`rerank_ticks`).
//!
//! Cost: that of [`SceneViews`]. `throng bench aoi` measures it next to two other designs.

mod plugin;

pub use plugin::{
    AoiPlugin, AoiSettings, AoiStats, SceneAoiSettings, SceneInterest, ViewEntered,
    ViewEntityCommandsExt, ViewError, ViewExceptions, ViewLeft, ViewRelations, ViewRerankRequest,
    ViewRules, ViewTag, Viewable, Viewer, Views, clear_view_exception, hide_from, show_to,
    validate_views,
};
pub use throng_aoi::*;
