//! Navigation in the tick, on the searches of `throng_nav`: shortest paths on tile maps, exact also right after an edit.
//!
//! ```text
//! PathRequest ──▶ queue ──▶ Search on the scene's map ──▶ NavPath, PathFound or PathFailed
//! ```

mod plugin;

pub use plugin::{
    MapBuildStats, NavBuildLate, NavPath, NavPlugin, NavSettings, NavStats, NavSystems, Navigator,
    PathFailed, PathFailure, PathFound, PathRequest, SearchBudgetClass, SearchTimes, replan_path,
};
pub use throng_nav::{
    Algorithm, Diagonal, Direction, FoundPath, MapSectionError, MultiStartSearch, NODES_MAX,
    NavMap, PathCost, PathQuery, PathSearch, Scen, ScenCommand, ScenError, ScenPatch, ScenProblem,
    ScenQuery, SearchOutcome, Steps, UnknownAlgorithm, farthest_visible, octile, parse_scen,
    path_crosses, smooth_path, to_tiles,
};
