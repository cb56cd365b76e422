//! The state of navigation between ticks.

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;

use super::groups::{GoalGroups, GroupScratch};
use super::job::SearchJob;
use super::long_searches::LongSearches;
use super::maps::NavMaps;
use super::request_queue::RequestQueue;
use super::stats::MapBuildStats;
use crate::map::{SceneMap, TileMap};
use crate::memory::MemoryUse;
use crate::nav::{Algorithm, PathSearch};
use crate::world::{ObjectChangedScene, ObjectTeleported};

/// The waiting requests, the prepared data of the scenes' maps, and the scratch of the searches: one [`PathSearch`] per worker.
#[derive(Resource, Debug, Default, MemoryUse)]
pub struct Navigator {
    /// The short requests.
    pub(super) queue: RequestQueue,
    pub(super) long_searches: LongSearches,
    pub(super) maps: NavMaps,
    pub(super) jobs: Vec<SearchJob>,
    #[memory(each)]
    pub(super) searches: Vec<PathSearch>,
    pub(super) groups: GoalGroups,
    #[memory(each)]
    pub(super) group_searches: Vec<GroupScratch>,
    pub(super) teleported: MessageCursor<ObjectTeleported>,
    pub(super) changed_scene: MessageCursor<ObjectChangedScene>,
}

impl Navigator {
    /// The bytes of the prepared data of all scenes' maps for an algorithm; scenes that share data count it each.
    pub fn prepared_bytes(&self, algorithm: Algorithm) -> usize {
        self.maps.bytes(algorithm)
    }

    /// The bytes of the prepared data of all scenes' maps, eroded maps included; shared data counts once. They
    /// depend on the maps and not on the number of walkers, so memory reports list them separately.
    pub fn map_bytes(&self) -> usize {
        self.maps.structure_bytes()
    }

    /// The bytes of everything else: scratch and waiting requests.
    pub(super) fn bytes_without_maps(&self) -> usize {
        self.heap_bytes() - self.map_bytes()
    }

    /// The counters of background builds.
    pub const fn build_stats(&self) -> MapBuildStats {
        self.maps.stats
    }

    /// The tiles of a scene with this map for walkers that need this many free tiles around theirs: the map's own for 0, otherwise
    /// the [eroded](TileMap::eroded) ones, from the tick after the first [`PathRequest`](crate::nav::PathRequest) that needs them.
    pub fn tiles<'a>(
        &'a self,
        map: &'a SceneMap,
        scene: Entity,
        clearance: u8,
    ) -> Option<&'a TileMap> {
        match clearance {
            0 => Some(map.tiles()),
            _ => self
                .maps
                .clearance_tiles(scene, clearance)
                .map(|tiles| &**tiles),
        }
    }
}
