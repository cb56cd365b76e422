//! The ground of a scene has the tiles of the scene's map.

use std::sync::Arc;

use glam::Vec2;
use proptest::prelude::*;

use crate::map::{SceneMap, TileMap};
use crate::movement::Ground;

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn tiles_match_the_scene_map(
        (x, y) in (-1.0f32..10.0, -1.0f32..10.0), tile_m in 0.1f32..3.0, snap in any::<bool>(),
    ) {
        let scene = SceneMap::new(Arc::new(TileMap::new(4, 3, false).unwrap()), tile_m);
        let ground = Ground { tiles: scene.tiles(), tile_m };
        let position = if snap { scene.size_m() } else { Vec2::new(x, y) };
        let tile = ground.tile_at(position);
        prop_assert_eq!(tile, scene.tile_at(position));
        prop_assert_eq!(ground.centre_of(tile), scene.centre_of(tile));
        prop_assert_eq!(ground.is_free_at(position), scene.is_free_at(position));
    }
}
