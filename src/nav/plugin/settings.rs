//! Budgets of a tick's searches, and what may be asked of them.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use super::request::SearchBudgetClass;
use crate::nav::Algorithm;

/// How paths are searched for, and how much a tick spends on it. A `Resource`; a scenario sets it as `settings: (nav: …)`.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct NavSettings {
    /// How paths are searched, by its name. Until what it reads is built, `jps-bit-prune` answers.
    #[serde(with = "algorithm_by_name")]
    pub algorithm: Algorithm,
    /// Ticks from a build's beginning to its adoption, and without an edit before one is begun.
    pub build_ticks: u32,
    /// Whether a build that is not done is waited for ahead of the tick that is to adopt it, so that runs are deterministic: for
    /// some 20 to 80 ns a tile of a map just opened. The thread that waits helps with that and with all else that Bevy's
    /// `AsyncComputeTaskPool` has to do. What was waited for counts as no tick's time, and stands in
    /// [`Navigator::build_stats`](crate::nav::Navigator::build_stats). A [`Server`](crate::server::Server) that keeps real time waits for
    /// none, whatever is set here: a build that is late is adopted when it is done, and until then paths are as short, but may be
    /// others of the same length. An embedder's own loop in real time switches it off.
    pub wait_for_builds: bool,
    /// Bytes a tile that the graph of jump points and its landmarks may take; a map that needs more is searched with sign planes.
    pub graph_bytes_per_tile_max: f32,
    /// Nodes that a search of [`SearchBudgetClass::Short`] may generate before it gives up as `capped`.
    #[serde(alias = "npc_nodes_max")]
    pub short_nodes_max: u32,
    /// The same for [`SearchBudgetClass::Long`].
    #[serde(alias = "travel_nodes_max")]
    pub long_nodes_max: u32,
    /// Searches of [`SearchBudgetClass::Long`] under way at once, each with scratch of its own; further ones wait. 0 counts as 1. Scratch
    /// takes half a kB for each 32 jump points, near each other, that the longest search came by, and 16 bytes for what waited in
    /// it at most: 1.3 MB after ways across a town of 4,096 by 4,096 tiles. It is kept, as taking it anew for each search makes
    /// them a third slower.
    #[serde(alias = "travels_at_once_max")]
    pub long_searches_max: u32,
    /// Expansions a tick of all of them together, and up to 64 more for each that is under way, or a slice of one whose map was
    /// edited meanwhile; the rest of their way they go in the next.
    #[serde(alias = "travel_expansions_per_tick")]
    pub long_search_expansions_per_tick: u64,
    /// Expansions that one makes before the others have their turn, twice as many after each edit of its map. 0 counts as 1.
    #[serde(alias = "travel_slice_expansions")]
    pub long_search_slice_expansions: u32,
    /// The widest bodies provided for, by [`PathRequest::clearance`](crate::nav::PathRequest::clearance); requests for wider ones fail as `blocked`. Every
    /// clearance in use takes an eroded map a scene.
    pub clearance_max: u8,
    /// Tiles that an end of a path may be moved at most, whatever the request says.
    pub snap_tiles_max: u32,
    /// Searches a tick; further requests wait. 0 counts as 1.
    pub searches_per_tick_max: u32,
    /// Expansions a tick, by the estimate made before the search: requests are admitted, oldest first, until theirs come to
    /// this. At least one is.
    pub expansions_per_tick_max: u64,
    /// Milliseconds a tick, after which no further search is begun, though one always is; `None` in deterministic runs.
    pub budget_ms: Option<f32>,
    /// Requests that may wait; a further one is `cancelled` at once.
    pub queue_max: u32,
    /// Whether each search is timed for [`NavStats::times`](crate::nav::NavStats::times).
    pub time_searches: bool,
}

impl Default for NavSettings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            build_ticks: 10,
            wait_for_builds: true,
            graph_bytes_per_tile_max: 5.0,
            short_nodes_max: 800,
            long_nodes_max: 1_000_000,
            long_searches_max: 8,
            long_search_expansions_per_tick: 50_000,
            long_search_slice_expansions: 2_000,
            clearance_max: 4,
            snap_tiles_max: 64,
            searches_per_tick_max: 500,
            expansions_per_tick_max: 40_000,
            budget_ms: None,
            queue_max: 16_384,
            time_searches: false,
        }
    }
}

impl NavSettings {
    pub(super) const fn nodes_max(&self, class: SearchBudgetClass) -> u32 {
        match class {
            SearchBudgetClass::Short => self.short_nodes_max,
            SearchBudgetClass::Long => self.long_nodes_max,
        }
    }
}

mod algorithm_by_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::nav::Algorithm;

    pub fn serialize<S: Serializer>(
        algorithm: &Algorithm,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(algorithm.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Algorithm, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_by_name_and_unknown_fields_are_refused() {
        let settings: NavSettings =
            ron::from_str("(algorithm: \"astar\", short_nodes_max: 9)").unwrap();
        assert_eq!(
            (settings.algorithm, settings.short_nodes_max),
            (Algorithm::AStar, 9)
        );
        let written = ron::to_string(&settings).unwrap();
        assert_eq!(ron::from_str::<NavSettings>(&written).unwrap(), settings);
        assert!(ron::from_str::<NavSettings>("(algorithm: \"dijkstra\")").is_err());
        assert!(ron::from_str::<NavSettings>("(npc_node_max: 9)").is_err());
    }
}
