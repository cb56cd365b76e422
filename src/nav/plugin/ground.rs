//! Which map a path is searched on, and what was edited of it.

use bevy_ecs::prelude::*;

use crate::map::{MapEdited, TileMap, TileRect};
use crate::nav::NavMap;

/// The map of a scene, for bodies that need so many tiles free around theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MapKey {
    pub(super) scene: Entity,
    pub(super) clearance: u8,
}

/// An edit of one of these maps.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapEdit {
    pub(super) map: MapKey,
    pub(super) rect: TileRect,
    /// The tiles' fingerprints.
    pub(super) before: u64,
    pub(super) after: u64,
}

impl From<&MapEdited> for MapEdit {
    fn from(edited: &MapEdited) -> Self {
        Self {
            map: MapKey {
                scene: edited.scene_entity,
                clearance: 0,
            },
            rect: edited.rect,
            before: edited.before,
            after: edited.after,
        }
    }
}

/// What a path is searched on.
pub(super) struct MapGround<'a> {
    pub(super) tiles: &'a TileMap,
    pub(super) nav_map: &'a NavMap,
    /// [`SceneMap::version`].
    pub(super) version: u64,
}

/// Why there is nothing to search on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroundError {
    NoMap,
    /// No body that wide is provided for.
    TooWide,
    /// The eroded map is being made.
    Building,
}

/// Writes where a map was edited to get from one state to another; gives whether edits alone have led there.
pub(super) fn edits_between(
    edits: &[MapEdit],
    map: MapKey,
    before: u64,
    after: u64,
    rects: &mut Vec<TileRect>,
) -> bool {
    rects.clear();
    let mut reached = before;
    for edit in edits.iter().filter(|edit| edit.map == map) {
        if edit.before == reached {
            rects.push(edit.rect);
            reached = edit.after;
        }
    }
    reached == after
}
