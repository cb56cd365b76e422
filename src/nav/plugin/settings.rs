//! Budgets of a tick's searches, and limits of requests.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use super::request::SearchBudgetClass;
use crate::nav::Algorithm;

/// The search algorithm, and how much a tick spends on searches. A `Resource`; a scenario sets it as `settings: (nav: …)`.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::nav::NavSettings;
///
/// // Half the path searches of a tick; an own loop in real time does not wait for maps.
/// app.insert_resource(NavSettings { expansions_per_tick_max: 20_000, wait_for_builds: false, ..NavSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct NavSettings {
    /// The search algorithm, by its name. Until its data is built, `jps-bit-prune` is used.
    #[serde(with = "algorithm_by_name")]
    pub algorithm: Algorithm,
    /// The ticks between the start and the adoption of a build, and the ticks without an edit before one starts.
    pub build_ticks: u32,
    /// Whether to wait for an unfinished build before the tick that adopts it, so that runs are deterministic: about
    /// 20 to 80 ns per tile of a newly opened map. The waiting thread helps with that and with all other work of Bevy's
    /// `AsyncComputeTaskPool`. The waiting time is not part of any tick and is counted in
    /// [`Navigator::build_stats`](crate::nav::Navigator::build_stats). A [`Server`](crate::server::Server) in real time never
    /// waits, whatever this setting: a late build is adopted when it is finished, and until then paths are as short, but may be
    /// others of the same length. An embedder's own loop in real time should turn it off.
    pub wait_for_builds: bool,
    /// The limit of the graph of jump points and its landmarks, in bytes per tile; a map that needs more is searched with sign planes.
    pub graph_bytes_per_tile_max: f32,
    /// The node limit of a search of [`SearchBudgetClass::Short`], at which it fails as `capped`.
    #[serde(alias = "npc_nodes_max")]
    pub short_nodes_max: u32,
    /// The same for [`SearchBudgetClass::Long`].
    #[serde(alias = "travel_nodes_max")]
    pub long_nodes_max: u32,
    /// The maximum number of running searches of [`SearchBudgetClass::Long`], each with its own scratch; further ones wait. 0 counts as 1.
    /// Scratch takes half a kB for each 32 adjacent jump points that the longest search visited, and 16 bytes for each entry of its
    /// longest open list: 1.3 MB after paths across a town of 4,096 by 4,096 tiles. It is kept, as allocating it for each search makes
    /// them a third slower.
    #[serde(alias = "travels_at_once_max")]
    pub long_searches_max: u32,
    /// The expansions per tick of all long searches together, and up to 64 more for each running one, or a slice of one whose map was
    /// edited meanwhile; they continue in the next tick. The default takes about 12 ms of one thread.
    #[serde(alias = "travel_expansions_per_tick")]
    pub long_search_expansions_per_tick: u64,
    /// The expansions of one long search per slice, doubled after each edit of its map. 0 counts as 1.
    #[serde(alias = "travel_slice_expansions")]
    pub long_search_slice_expansions: u32,
    /// The maximum [`PathRequest::clearance`](crate::nav::PathRequest::clearance); requests above it fail as `blocked`. Every
    /// clearance in use needs an eroded map per scene.
    pub clearance_max: u8,
    /// The maximum distance in tiles that start or goal may be moved, whatever the request allows.
    pub snap_tiles_max: u32,
    /// Searches per tick; further requests wait. 0 counts as 1.
    pub searches_per_tick_max: u32,
    /// Expansions per tick, by the estimates made before the searches: requests are admitted, oldest first, until their sum reaches
    /// this. At least one is. An expansion takes 0.1 to 0.2 µs, so that the default is at most 8 ms of one thread.
    pub expansions_per_tick_max: u64,
    /// Milliseconds per tick, after which no further search is started, except the first; `None` in deterministic runs.
    pub budget_ms: Option<f32>,
    /// The maximum number of waiting requests; a further one is `cancelled` at once.
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
