//! What is built of a map once, so that searches need not look at its tiles again and again.
//!
//! | file | holds |
//! |---|---|
//! | `nav_map` | [`NavMap`]: what is prepared of a map, and how it follows edits |
//! | `planes` | sign planes: which straight walks end at a jump point |
//! | `jump_points` | which tiles are jump points, and their numbers |
//! | `landmarks` | how far each of them is from the corners of the map |
//! | `graph` | the graph of jump points, with all successors listed, and its landmarks |
//! | `part` | planes and graph to bytes and back, as a map's file keeps them |

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
