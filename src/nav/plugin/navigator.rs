//! What navigation keeps from tick to tick.

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

/// The requests that wait, what is prepared of the scenes' maps, and the scratch of the searches: one [`PathSearch`] a worker.
#[derive(Resource, Debug, Default, MemoryUse)]
pub struct Navigator {
    /// The short ones.
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
    /// Bytes of everything prepared of all scenes' maps for an algorithm; scenes that share it count it each.
    pub fn prepared_bytes(&self, algorithm: Algorithm) -> usize {
        self.maps.bytes(algorithm)
    }

    /// Bytes of everything prepared of all scenes' maps, maps for wide bodies included; what scenes share counts once. They
    /// grow with the maps and not with who walks there, so they are a row of their own where memory is told by module.
    pub fn map_bytes(&self) -> usize {
        self.maps.structure_bytes()
    }

    /// Bytes of everything else: scratch, and who waits.
    pub(super) fn bytes_without_maps(&self) -> usize {
        self.heap_bytes() - self.map_bytes()
    }

    /// What was made of maps beside the ticks.
    pub const fn build_stats(&self) -> MapBuildStats {
        self.maps.stats
    }

    /// The tiles of a scene with this map for bodies that need so many tiles free around theirs: the map's own for 0, else
    /// those [eroded](TileMap::eroded), from the tick after a [`PathRequest`](crate::nav::PathRequest) has first asked for them.
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
