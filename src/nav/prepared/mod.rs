//! What is built of a map once, so that searches need not look at its tiles again and again.
//!
//! | file | holds |
//! |---|---|
//! | `nav_map` | [`NavMap`]: what is prepared of a map, and how it follows edits |
//! | `planes` | sign planes: which straight walks end at a jump point |
//! | `graph` | the graph of jump points, with all successors listed |

mod graph;
mod nav_map;
mod planes;

pub(super) use graph::JumpGraph;
pub use nav_map::NavMap;
pub(super) use planes::{SignPlanes, SignWalks};
