//! Searches: one start and one goal, or many starts with one goal.
//!
//! | file | holds |
//! |---|---|
//! | `query` | what is asked and what is answered |
//! | `find` | [`PathSearch`]: the scratch of a thread, and which algorithm reads what |
//! | `shared` | [`MultiStartSearch`]: one search for many starts with one goal |
//! | `run` | a search under way: what all algorithms share |
//! | `astar` | A*, the reference |
//! | `jump` | Jump Point Search over whatever tells where walks end |
//! | `jump_graph` | the same over the graph of jump points |
//! | `nodes`, `open_list` | node pool and index; the heap |
//! | `waypoints` | turning points of a walk |

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
