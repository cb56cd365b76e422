#![doc = include_str!("../README.md")]
//!
//! # The modules
//!
//! ```text
//!                       ┌ AStar ───────── astar ────────────────────────┐
//! TileMap ─▶ [`NavMap`] ┼ Jps… ─ jump ◀─ tiles, bits, planes, table     ├─▶ [`PathSearch::find`] ─▶ SearchOutcome + waypoints
//!   edit ─▶ apply_edit  └ JpsGraph ────── jump_graph ◀─ graph ◀─ planes ┘      ▲ nodes, open_list: scratch of a thread
//! ```
//!
//! Invariants: all algorithms return the same cost, that of a shortest path under the map's [`Diagonal`] rule, whatever is
//! prepared and right after every edit; a search that reaches its limit returns [`SearchOutcome::Capped`]; the same query on
//! the same map with the same algorithm and preparations gives the same waypoints, whatever the scratch was used for before.
//!
//! Cost, mean of all queries of four benchmark maps (streets, rooms, two game maps; see `benches/RESULTS.md` in the repository): 5 to 38 µs
//! with the graph, 10 to 139 µs with sign planes, which an edit repairs in microseconds. Scratch is one [`PathSearch`] per
//! thread, for maps of any size.
#![warn(missing_docs)]

// | file | holds |
// | `algorithm` | the seven algorithms by name |
// | `rule` | the two movement rules, and where paths turn under each |
// | `cost`, `direction`, `key` | exact integer costs; the eight steps; a tile in four bytes |
// | `map/` | obstacle maps: tiles, regions, edits, formats, generators |
// | `jump_scan/` | scans over a map for Jump Point Search, and the successors that follow |
// | `prepared/` | data that is computed once per map: sign planes, the graph of jump points with landmarks |
// | `reference/` | references for comparison: scans tile by tile, step tables |
// | `search/` | queries, results, the scratch of a thread, A* and Jump Point Search |
// | `smooth` | shorter paths in any direction, and the paths that an edit crosses |
// | `scen/` | benchmark files with known lengths |
// | `workload` | queries for benchmarks |

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

mod algorithm;
mod cost;
mod direction;
#[cfg(test)]
mod exactness;
mod jump_scan;
mod key;
pub mod map;
mod prepared;
mod reference;
mod rule;
mod scen;
mod search;
mod smooth;
#[cfg(any(test, feature = "bench"))]
#[doc(hidden)]
pub mod workload;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use cost::{PathCost, Steps, octile, to_tiles};
pub use direction::Direction;
pub use prepared::{MapSectionError, NavMap};
pub use rule::Diagonal;
pub use scen::{Scen, ScenCommand, ScenError, ScenPatch, ScenProblem, ScenQuery, parse_scen};
pub use search::{FoundPath, MultiStartSearch, NODES_MAX, PathQuery, PathSearch, SearchOutcome};
pub use smooth::{farthest_visible, path_crosses, smooth_path};
