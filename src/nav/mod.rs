//! Navigation in the tick, on the searches of `throng_nav`: shortest paths on tile maps, exact also right after an edit.
//!
//! ```text
//! PathRequest ──▶ queue ──▶ Search on the scene's map ──▶ Path, PathFound or PathFailed
//! ```
//! | file | holds |
//! |---|---|
//! | `plugin` | requests, queue, answers and [`Path`]s in the tick; builds in the background |
//! | `throng_nav` | [`NavMap`], [`Search`]: what is prepared of a map, queries, A* and Jump Point Search |

mod plugin;

pub use plugin::{
    BuildCameLate, MapBuildStats, NavPlugin, NavSettings, NavStats, NavSystems, Navigator, Path,
    PathClass, PathFailed, PathFailure, PathFound, PathRequest, SearchTimes, ask_again,
};
pub use throng_nav::{
    Algorithm, Cost, Diagonal, Direction, FoundPath, NODES_MAX, NavMap, Outcome, PartRefused,
    Query, Scen, ScenCommand, ScenError, ScenPatch, ScenProblem, ScenQuery, Search, SharedSearch,
    Steps, UnknownAlgorithm, farthest_in_sight, octile, parse_scen, path_crosses, smooth, to_tiles,
};
