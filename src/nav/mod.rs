//! Navigation: shortest paths on tile maps, exact also right after an edit.
//!
//! ```text
//! Query ──▶ [`Search::find`] ──▶ Outcome + waypoints ──▶ [`farthest_in_sight`] as the walker goes
//!             │ TileMap: words of 64 tiles, regions          [`path_crosses`] when the map is edited
//!             └ Algorithm: A*, JPS on bitmaps, the same pruned
//! ```
//! | file | what it holds |
//! |---|---|
//! | `cost` | exact integer costs |
//! | `direction` | the eight steps |
//! | `nodes` | node pool and tile → node index |
//! | `open_list` | the heap |
//! | `search` | queries, answers, the scratch of a thread, what all algorithms share |
//! | `astar`, `jps_bit` | an algorithm each: the successors of a node |
//! | `smooth` | lines of sight along a path, what an edit crosses |
//! | `scen` | benchmark files with known lengths and edits |
//! | `plugin` | requests, queue, answers and [`Path`]s in the tick |
//!
//! The movement rule: eight neighbours, a diagonal step needs both straight neighbours free, so that a walker never
//! clips a corner.
//!
//! Invariants: all algorithms return the same cost, that of a shortest path; a search that gives up says
//! [`Outcome::Capped`]; the same query on the same map with the same algorithm gives the same waypoints, whatever
//! was searched before with the same scratch.
//!
//! Cost: a search reads only the bitmaps and the regions, so nothing is prepared and nothing has to follow an edit.
//! Scratch is one [`Search`] a thread, for maps of any size.

mod astar;
mod cost;
mod direction;
#[cfg(test)]
mod exactness;
mod jps_bit;
mod nodes;
mod open_list;
mod plugin;
mod scen;
mod search;
mod smooth;

pub use cost::{Cost, Steps, octile, to_tiles};
pub use direction::Direction;
pub use plugin::{
    NavPlugin, NavSettings, NavStats, NavSystems, Navigator, Path, PathAnswered, PathClass,
    PathRequest, PathResult, SearchTimes,
};
pub use scen::{Scen, ScenCommand, ScenError, ScenPatch, ScenProblem, ScenQuery, parse_scen};
pub use search::{Algorithm, FoundPath, NODES_MAX, Outcome, Query, Search, UnknownAlgorithm};
pub use smooth::{farthest_in_sight, path_crosses, smooth};
