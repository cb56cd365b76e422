//! Cells: where everybody is, and who is in a cell to be seen, or to see.
//!
//! | file | holds |
//! |---|---|
//! | `scene_grid` | the grid of a scene, sticky cells, coarser layers for what is seen from afar |
//! | `target_index` | who is in a cell to be seen, and who just arrived there |
//! | `viewer_index` | who is in a cell to see, and who of them takes strangers |
//! | `members` | the members of one cell, with their ties in columns |

mod members;
mod scene_grid;
mod target_index;
mod viewer_index;

pub use members::TieQuery;
pub use scene_grid::{CELLS_MAX, GridCell, GridError, SceneGrid, cell_m_for_screen};
pub use viewer_index::ViewerIndex;
