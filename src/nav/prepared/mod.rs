//! What is built of a map once, so that searches need not look at its tiles again and again.
//!
//! | file | holds |
//! |---|---|
//! | `nav_map` | [`NavMap`]: what is prepared of a map, and how it follows edits |
//! | `planes` | sign planes: which straight walks end at a jump point |
//! | `graph` | the graph of jump points, with all successors listed |
//! | `part` | planes and graph to bytes and back, as a map's file keeps them |

mod graph;
mod nav_map;
mod part;
mod planes;

pub(super) use graph::JumpGraph;
pub use nav_map::NavMap;
pub use part::PartRefused;
pub(super) use planes::{SignPlanes, SignWalks};
