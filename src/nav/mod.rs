//! Navigation: shortest paths on tile maps, exact also right after an edit.
//!
//! ```text
//!                      ┌ AStar ───────── astar ─┐
//! TileMap ─▶ [`NavMap`] ┤ Jps… ─ jump ◀─ tiles, bits, planes, table   ├─▶ [`Search::find`] ─▶ Outcome + waypoints
//!   edit ─▶ follow_edit └ JpsGraph ────── graph ◀─ planes ┘      ▲ nodes, open_list: scratch of a thread
//! ```
//! | file | what it holds |
//! |---|---|
//! | `algorithm` | the seven algorithms by name |
//! | `rule` | the two movement rules, and where walks turn under each |
//! | `cost`, `direction` | exact integer costs; the eight steps |
//! | `search` | queries, answers, the scratch of a thread, what all algorithms share |
//! | `shared` | one search for many starts with one goal |
//! | `nodes`, `open_list` | node pool and index; the heap |
//! | `astar` | A*, the reference |
//! | `jump` | Jump Point Search over whatever tells it where walks end |
//! | `tiles`, `bits`, `planes`, `table` | … which are these: by tile, by 64 tiles, with sign planes, from a table of steps |
//! | `graph` | the graph of jump points, with all successors listed |
//! | `nav_map` | what is prepared of a map, and how it follows edits |
//! | `smooth` | shorter walks along a path, and which paths an edit crosses |
//! | `workload` | the queries that searches are measured with |
//! | `scen` | benchmark files with known lengths |
//! | `plugin` | requests, queue, answers and [`Path`]s in the tick; builds in the background |
//!
//! Invariants: all algorithms return the same cost, that of a shortest path under the map's [`Diagonal`] rule, whatever is
//! prepared and right after every edit; a search that gives up says [`Outcome::Capped`]; the same query on the same map
//! with the same algorithm and preparations gives the same waypoints, whatever was searched before with the same scratch.
//!
//! Cost, mean of all queries of four benchmark maps (streets, rooms, two game maps; see the CHANGELOG): 6 to 65 µs with
//! the graph, 11 to 115 with sign planes, which an edit repairs in microseconds. Scratch is one [`Search`] a thread, for
//! maps of any size.

mod algorithm;
mod astar;
mod bits;
mod cost;
mod direction;
#[cfg(test)]
mod exactness;
mod graph;
mod jump;
mod nav_map;
mod nodes;
mod open_list;
mod planes;
mod plugin;
mod rule;
mod scen;
mod search;
mod shared;
mod smooth;
mod table;
mod tiles;
pub mod workload;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use cost::{Cost, Steps, octile, to_tiles};
pub use direction::Direction;
pub use nav_map::NavMap;
pub use plugin::{
    NavPlugin, NavSettings, NavStats, NavSystems, Navigator, Path, PathClass, PathFailed,
    PathFailure, PathFound, PathRequest, SearchTimes,
};
pub use rule::Diagonal;
pub use scen::{Scen, ScenCommand, ScenError, ScenPatch, ScenProblem, ScenQuery, parse_scen};
pub use search::{FoundPath, NODES_MAX, Outcome, Query, Search};
pub use shared::SharedSearch;
pub use smooth::{farthest_in_sight, path_crosses, smooth};
