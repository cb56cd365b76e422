//! The grounds of scenes.

use bevy_ecs::prelude::*;

use crate::map::SceneMap;
use crate::movement::Ground;
use crate::nav::Navigator;

pub(super) type MapQuery<'w, 's> = Query<'w, 's, &'static SceneMap>;

/// Caches the ground of one scene: consecutive objects are usually in the same scene.
pub(super) struct GroundCache<'a, 'w, 's> {
    maps: &'a MapQuery<'w, 's>,
    last: Option<(Entity, Option<Ground<'a>>)>,
}

impl<'a, 'w, 's> GroundCache<'a, 'w, 's> {
    pub(super) fn new(maps: &'a MapQuery<'w, 's>) -> Self {
        Self { maps, last: None }
    }

    pub(super) fn ground_of(&mut self, scene: Entity) -> Option<Ground<'a>> {
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

    /// The ground of a scene for walkers that need this many free tiles around theirs.
    pub(super) fn with_clearance(
        &mut self,
        navigator: &'a Navigator,
        scene: Entity,
        clearance: u8,
    ) -> Option<Ground<'a>> {
        if clearance == 0 {
            return self.ground_of(scene);
        }
        let map = self.maps.get(scene).ok()?;
        Some(Ground {
            tiles: navigator.tiles(map, scene, clearance)?,
            tile_m: map.tile_m(),
        })
    }
}
