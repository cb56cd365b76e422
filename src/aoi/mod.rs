//! Area of interest: who sees whom in a scene, exactly, under caps.
//!
//! ```text
//! Position ──locate──▶ sticky GridCell ──update──▶ bit rows + Enter / Leave ──▶ sync
//! ```
//! The grid, the views and what they guarantee are `throng_aoi`, whose items are re-exported here; it knows nothing of the ECS,
//! and an app of any kind can use it alone.
//!
//! | file | holds |
//! |---|---|
//! | `plugin` | components and messages of the tick |
//!
//! Invariants, after each tick: those of [`SceneViews`]; bands are right once every viewer had its turn (`rerank_ticks`).
//!
//! Cost: that of [`SceneViews`]; bench `aoi::*`, and `throng bench aoi` beside the modules `reference` and `sets` of the feature
//! `bench`.

mod plugin;

pub use plugin::{
    AoiPlugin, AoiSettings, AoiStats, SceneAoiSettings, SceneInterest, ViewEntered,
    ViewEntityCommandsExt, ViewError, ViewExceptions, ViewLeft, ViewRelations, ViewRerankRequest,
    ViewRules, ViewTag, Viewable, Viewer, Views, clear_view_exception, hide_from, show_to,
    validate_views,
};
pub use throng_aoi::*;
