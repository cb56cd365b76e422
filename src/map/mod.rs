//! Obstacle maps of scenes and their edits in the tick, on the maps of `throng_nav`.
//!
//! ```text
//! edit_map ──▶ SceneMap ──▶ MapEdited ──▶ modules that depend on the map
//!                 └─ settled over the following ticks
//! ```

mod plugin;

pub(crate) use plugin::split_runs_per_map;
pub use plugin::{MapEdited, MapPlugin, SceneMap, edit_map};
pub use throng_nav::map::*;
