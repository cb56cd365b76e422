//! Data that is computed once per map, so that searches need not scan its tiles again and again.
//!
//! | file | holds |
//! |---|---|
//! | `nav_map` | [`NavMap`]: the prepared data of a map, and its updates after edits |
//! | `planes` | sign planes: which straight scans end at a jump point |
//! | `jump_points` | the jump points and their numbers |
//! | `landmarks` | the distances of jump points from the corners of the map |
//! | `graph` | the graph of jump points, with all successors listed, and its landmarks |
//! | `section` | planes and graph to bytes and back, for a map's file |

mod graph;
mod jump_points;
mod landmarks;
mod nav_map;
mod planes;
mod section;

pub(super) use graph::JumpGraph;
pub(super) use landmarks::LandmarkDistances;
pub use nav_map::NavMap;
pub(super) use planes::{SignPlanes, SignScanner};
pub use section::MapSectionError;
