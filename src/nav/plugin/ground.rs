//! The map that a path is searched on, and its edits.

use bevy_ecs::prelude::*;

use crate::map::{MapEdited, TileMap, TileRect};
use crate::nav::NavMap;

/// The map of a scene, for walkers that need this many free tiles around theirs.
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

/// The data that a path is searched on.
pub(super) struct MapGround<'a> {
    pub(super) tiles: &'a TileMap,
    pub(super) nav_map: &'a NavMap,
    /// [`SceneMap::version`].
    pub(super) version: u64,
}

/// Why there is no data to search on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroundError {
    NoMap,
    /// The clearance is above the limit.
    TooWide,
    /// The eroded map is being built.
    Building,
}

/// Appends the edited rectangles between two states of a map; returns whether edits alone led from one to the other.
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
