//! Navigation in the tick, on the searches of `throng_nav`: shortest paths on tile maps, exact also right after an edit.
//!
//! ```text
//! PathRequest ──▶ queue ──▶ Search on the scene's map ──▶ NavPath, PathFound or PathFailed
//! ```
//! | file | holds |
//! |---|---|
//! | `plugin` | requests, queue, answers and [`NavPath`]s in the tick; builds in the background |
//! | `throng_nav` | [`NavMap`], [`Search`]: what is prepared of a map, queries, A* and Jump Point Search |

mod plugin;

pub use plugin::{
    MapBuildStats, NavBuildLate, NavPath, NavPlugin, NavSettings, NavStats, NavSystems, Navigator,
    PathFailed, PathFailure, PathFound, PathRequest, SearchBudgetClass, SearchTimes, replan_path,
};
pub use throng_nav::{
    Algorithm, Cost, Diagonal, Direction, FoundPath, MapSectionError, MultiStartSearch, NODES_MAX,
    NavMap, PathQuery, Scen, ScenCommand, ScenError, ScenPatch, ScenProblem, ScenQuery, Search,
    SearchOutcome, Steps, UnknownAlgorithm, farthest_in_sight, octile, parse_scen, path_crosses,
    smooth, to_tiles,
};
