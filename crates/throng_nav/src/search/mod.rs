//! Searches: one start and one goal, or many starts with one goal.
//!
//! | file | holds |
//! |---|---|
//! | `query` | queries and results |
//! | `path_search` | [`PathSearch`]: the scratch of a thread, and the data that each algorithm reads |
//! | `multi_start` | [`MultiStartSearch`]: one search for many starts with one goal |
//! | `run` | a running search: code shared by all algorithms |
//! | `astar` | A*, the reference |
//! | `jump` | Jump Point Search over any scanner |
//! | `jump_graph` | the same over the graph of jump points |
//! | `nodes`, `open_list` | node pool and index; the heap |
//! | `waypoints` | turning points of a path |

mod astar;
mod jump;
mod jump_graph;
mod multi_start;
mod nodes;
mod open_list;
mod path_search;
mod query;
mod run;
mod waypoints;

pub use multi_start::MultiStartSearch;
pub use path_search::PathSearch;
pub use query::{FoundPath, NODES_MAX, PathQuery, SearchOutcome};
