//! The grounds of scenes.

use bevy_ecs::prelude::*;

use crate::map::SceneMap;
use crate::movement::Ground;
use crate::nav::Navigator;

pub(super) type Maps<'w, 's> = Query<'w, 's, &'static SceneMap>;

/// Remembers the ground of one scene: objects of a scene mostly come one after the other.
pub(super) struct Grounds<'a, 'w, 's> {
    maps: &'a Maps<'w, 's>,
    last: Option<(Entity, Option<Ground<'a>>)>,
}

impl<'a, 'w, 's> Grounds<'a, 'w, 's> {
    pub(super) fn new(maps: &'a Maps<'w, 's>) -> Self {
        Self { maps, last: None }
    }

    pub(super) fn of(&mut self, scene: Entity) -> Option<Ground<'a>> {
        match self.last {
            Some((last, ground)) if last == scene => ground,
            _ => {
                let map = self.maps.get(scene).ok();
                let ground = map.map(|map| Ground {
                    tiles: map.tiles(),
                    tile_m: map.tile_m(),
                });
                self.last = Some((scene, ground));
                ground
            }
        }
    }

    /// The ground of a scene for bodies that need so many tiles free around theirs.
    pub(super) fn with_clearance(
        &mut self,
        navigator: &'a Navigator,
        scene: Entity,
        clearance: u8,
    ) -> Option<Ground<'a>> {
        if clearance == 0 {
            return self.of(scene);
        }
        let map = self.maps.get(scene).ok()?;
        Some(Ground {
            tiles: navigator.tiles(map, scene, clearance)?,
            tile_m: map.tile_m(),
        })
    }
}
