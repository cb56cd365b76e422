//! Replans broken paths: an edit crosses one, its object was moved otherwise, or it ran into a wall.

use bevy_ecs::prelude::*;
use glam::IVec2;

use super::navigator::Navigator;
use super::request::{NavPath, PathRequest};
use super::stats::NavStats;
use crate::map::{MapEdited, SceneMap, TileRect};
use crate::nav::path_crosses;
use crate::world::{Object, Position};

/// Repeats the request of a path that broke. An object with a newer request keeps
/// that one. Code that moves objects along [`NavPath`]s calls this when the path is blocked; navigation itself detects edits
/// that break a path.
pub fn replan_path(entity: &mut EntityWorldMut, request: PathRequest) {
    if !entity.contains::<PathRequest>() {
        entity.insert(request);
    }
}

/// Requests the paths that an edit broke again, unless their objects have requested another path already.
///
/// An object on a blocked tile keeps its path: a search would only fail, and the code that moves the
/// object off the tile reads the goal from the path.
pub(super) fn replan_edited_paths(
    mut edited: MessageReader<MapEdited>,
    navigator: Res<Navigator>,
    mut stats: ResMut<NavStats>,
    walkers: Query<(Entity, &Object, &Position, &NavPath), Without<PathRequest>>,
    maps: Query<&SceneMap>,
    mut commands: Commands,
    mut edits: Local<Vec<(Entity, TileRect)>>,
    mut broken: Local<Vec<(u64, Entity, PathRequest)>>,
    mut way: Local<Vec<IVec2>>,
) {
    edits.clear();
    edits.extend(edited.read().map(|edit| (edit.scene_entity, edit.rect)));
    if edits.is_empty() {
        return;
    }
    broken.clear();
    for (entity, object, position, path) in &walkers {
        let scene = object.scene_entity();
        if path.is_empty() || !edits.iter().any(|edit| edit.0 == scene) {
            continue;
        }
        let Ok(map) = maps.get(scene) else { continue };
        let clearance = path.request().clearance;
        let Some(tiles) = navigator.tiles(map, scene, clearance) else {
            continue;
        };
        way.clear();
        way.push(map.tile_at(position.0));
        way.extend_from_slice(path.remaining());
        let is_crossed = edits
            .iter()
            .filter(|(edited, _)| *edited == scene)
            .any(|(_, rect)| path_crosses(&way, rect.grown(u32::from(clearance))));
        let mut lines = way.windows(2);
        let mut is_free = || lines.all(|ends| tiles.is_line_free(ends[0], ends[1]));
        if is_crossed && tiles.is_free(way[0]) && !is_free() {
            broken.push((object.key(), entity, path.request()));
        }
    }
    // Requests are served in order, and storage order must have no effect.
    broken.sort_unstable_by_key(|&(key, ..)| key);
    stats.replanned += broken.len() as u64;
    for &(_, entity, request) in &*broken {
        commands
            .entity(entity)
            .queue_silenced(move |mut entity: EntityWorldMut| replan_path(&mut entity, request));
    }
}
