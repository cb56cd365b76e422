//! Waiting requests: one per object, those of each class in the order of arrival.

use bevy_ecs::prelude::*;
use glam::{IVec2, Vec2};
use indexmap::IndexMap;

use super::request::{PathFailed, PathFailure, PathRequest};
use super::settings::NavSettings;
use crate::map::{SceneMap, TileMap};
use crate::nav::PathQuery as SearchQuery;
use crate::sim::StateHasher;
use crate::world::{Object, Position, StateHashed};

/// Looked up by entity, never sorted by it.
pub(super) type RequestQueue = IndexMap<Entity, QueuedRequest, foldhash::fast::FixedState>;

/// The data of requesting objects.
pub(super) type RequestQuery<'w, 's> =
    Query<'w, 's, (&'static Object, &'static Position, &'static PathRequest)>;

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedRequest {
    pub(super) entity: Entity,
    pub(super) request: PathRequest,
    pub(super) object: Object,
    pub(super) from: IVec2,
    pub(super) to: IVec2,
}

impl QueuedRequest {
    pub(super) fn new(
        entity: Entity,
        (object, position, request): (&Object, &Position, &PathRequest),
        maps: &Query<&SceneMap>,
    ) -> Self {
        let map = maps.get(object.scene_entity()).ok();
        Self {
            entity,
            request: *request,
            object: *object,
            from: tile_of(map, position.0),
            to: tile_of(map, request.goal),
        }
    }

    /// The current request; `None` when its object is gone, or the request was withdrawn.
    pub(super) fn refreshed(&self, asking: &RequestQuery, maps: &Query<&SceneMap>) -> Option<Self> {
        asking
            .get(self.entity)
            .ok()
            .filter(|(object, ..)| object.reference() == self.object.reference())
            .map(|asking| Self::new(self.entity, asking, maps))
    }

    /// Moves start and goal as far as the request allows: off blocked tiles, and the goal to a reachable tile.
    pub(super) fn snapped(mut self, tiles: &TileMap, settings: &NavSettings) -> Self {
        let snap_tiles = self.request.snap_tiles.min(settings.snap_tiles_max);
        let nearest_tiles = self.request.nearest_tiles.min(settings.snap_tiles_max);
        for end in [&mut self.from, &mut self.to] {
            if snap_tiles > 0 && *end != IVec2::MIN && !tiles.is_free(*end) {
                *end = tiles.nearest_free(*end, snap_tiles).unwrap_or(*end);
            }
        }
        if nearest_tiles > 0
            && self.to != IVec2::MIN
            && let Some(region) = tiles.region(self.from)
            && !tiles.are_connected(self.from, self.to)
        {
            let nearest = tiles.nearest_in_region(self.to, nearest_tiles, region);
            self.to = nearest.unwrap_or(self.to);
        }
        self
    }

    /// The estimated expansions of the search, from the distance, since nothing else is known before. Results without a
    /// search need few.
    pub(super) fn estimate(&self, tiles: &TileMap, settings: &NavSettings) -> u64 {
        if !tiles.are_connected(self.from, self.to) {
            return 8;
        }
        let distance = (self.to.as_i64vec2() - self.from.as_i64vec2())
            .abs()
            .max_element() as u64;
        (8 + distance / 2).min(u64::from(settings.nodes_max(self.request.class)))
    }

    pub(super) fn query(&self, settings: &NavSettings) -> SearchQuery {
        SearchQuery {
            from: self.from,
            to: self.to,
            node_limit: Some(settings.nodes_max(self.request.class)),
        }
    }

    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        let Self {
            object, request, ..
        } = self;
        hasher.write_u64(object.key());
        hasher.write_u64(u64::from(object.generation().0));
        request.hash(hasher);
    }

    pub(super) const fn failed(&self, reason: PathFailure) -> PathFailed {
        PathFailed {
            entity: self.entity,
            object: self.object,
            reason,
            from: self.from,
            to: self.to,
            class: self.request.class,
        }
    }
}

/// The tile of a point; a tile outside every map for a point that is not finite, which would otherwise round to tile (0, 0).
fn tile_of(map: Option<&SceneMap>, point: Vec2) -> IVec2 {
    map.filter(|_| point.is_finite())
        .map_or(IVec2::MIN, |map| map.tile_at(point))
}
