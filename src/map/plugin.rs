//! Maps of scenes: shared, editable at run time, settled in slices. Modules that depend on a map receive the rectangle that
//! changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use glam::{IVec2, Vec2};
use tracing::warn;

use super::{MapError, TileEdit, TileMap, TileRect};
use crate::memory::MemoryAppExt;
use crate::sim::{HashAppExt, SimSystems};
use crate::world::{SceneId, Scenes, SimScene, WorldPlugin};

/// The cost of settling maps in a tick, as [`TileMap::finish_splits`] counts it, for the maps of all scenes together, and again
/// for all maps derived from them for wide bodies: about 100 µs.
const SPLIT_RUNS_PER_TICK_MAX: usize = 8_192;

/// The share of that limit for each map with pending splits.
pub(crate) fn split_runs_per_map(maps: usize) -> usize {
    (SPLIT_RUNS_PER_TICK_MAX / maps.max(1)).max(1)
}

/// Obstacle maps of scenes, and their edits.
///
/// Insert a [`SceneMap`] with the [`SceneSpec`](crate::world::SceneSpec) of a scene. [`edit_map`] blocks or frees tiles while the scene is
/// open; modules that depend on the map read the message [`MapEdited`], and paths are exact in the same tick.
///
/// Without edits it costs nothing. After edits it spends at most about 100 µs a tick, for all scenes together. Adds [`WorldPlugin`] when
/// it is missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapPlugin;

crate::sim::sim_plugin!(MapPlugin, WorldPlugin);

impl MapPlugin {
    fn add_to(app: &mut App) {
        app.add_message::<MapEdited>()
            .count_memory_by("map", map_bytes)
            .add_observer(warn_size_mismatch)
            .add_systems(
                FixedUpdate,
                finish_map_splits
                    .after(SimSystems::First)
                    .before(SimSystems::Ingest),
            )
            .hash_part("maps", |world, hasher| {
                let scenes: Vec<Entity> = world
                    .resource::<Scenes>()
                    .iter()
                    .map(|(_, entity)| entity)
                    .collect();
                for map in scenes
                    .into_iter()
                    .filter_map(|scene| world.get::<SceneMap>(scene))
                {
                    hasher.write_u64(map.version);
                    hasher.write_u64(map.fingerprint);
                    hasher.write_f32(map.tile_m);
                }
            });
    }
}

/// Warns of a map that is smaller than its scene: without tiles there are no paths.
fn warn_size_mismatch(
    inserted: On<Insert<(SimScene, SceneMap)>>,
    scenes: Query<(&SimScene, &SceneMap)>,
) {
    let Ok((scene, map)) = scenes.get(inserted.entity) else {
        return;
    };
    let (scene_m, map_m) = (scene.size_m(), map.size_m());
    // If a side is not a whole number of tiles, less than one tile is missing.
    if (scene_m - map_m).cmpge(Vec2::splat(map.tile_m)).any() {
        let scene = scene.id().0;
        warn!(scene, %scene_m, %map_m, "map smaller than its scene: no paths beyond the map");
    }
}

/// The obstacle map of a scene, on the scene's entity.
///
/// Scenes that were given the same `Arc` share the map until one of them edits it (copy on write). A map that is not
/// [settled](TileMap::has_final_regions) after an edit is settled over the following ticks.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn open_cave(mut commands: Commands) -> Result {
///     let map = SceneMap::new(TileMap::from_ascii("....\n.##.\n....")?.into(), 0.5);
///     commands.spawn((SceneSpec::new("cave", map.size_m()), map));
///     Ok(())
/// }
/// ```
#[derive(Component, Clone, Debug)]
pub struct SceneMap {
    map: Arc<TileMap>,
    tile_m: f32,
    version: u64,
    fingerprint: u64,
}

impl SceneMap {
    /// A map whose tiles are squares of `tile_m` metres.
    #[must_use]
    pub fn new(map: Arc<TileMap>, tile_m: f32) -> Self {
        let fingerprint = map.fingerprint();
        Self {
            map,
            tile_m,
            version: 0,
            fingerprint,
        }
    }

    /// The map as it is now.
    #[must_use]
    pub const fn tiles(&self) -> &Arc<TileMap> {
        &self.map
    }

    /// The side of a tile, in metres.
    #[must_use]
    pub const fn tile_m(&self) -> f32 {
        self.tile_m
    }

    /// The number of edits so far.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Width and height in metres.
    #[must_use]
    pub fn size_m(&self) -> Vec2 {
        Vec2::new(self.map.width() as f32, self.map.height() as f32) * self.tile_m
    }

    /// The tile on which a position lies; a position on the far border lies on the last tile.
    #[must_use]
    pub fn tile_at(&self, position: Vec2) -> IVec2 {
        let tile = (position / self.tile_m).floor().as_ivec2();
        let last = IVec2::new(self.map.width() as i32 - 1, self.map.height() as i32 - 1);
        let on_border = position.cmpeq(self.size_m());
        IVec2::new(
            if on_border.x { last.x } else { tile.x },
            if on_border.y { last.y } else { tile.y },
        )
    }

    /// The middle of a tile, in metres.
    #[must_use]
    pub fn centre_of(&self, tile: IVec2) -> Vec2 {
        (tile.as_vec2() + 0.5) * self.tile_m
    }

    /// Whether an object can stand there.
    #[must_use]
    pub fn is_free_at(&self, position: Vec2) -> bool {
        self.map.is_free(self.tile_at(position))
    }
}

/// A scene's map was edited.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::map::MapEdited;
///
/// fn log_edits(mut edited: MessageReader<MapEdited>) {
///     for edit in edited.read() {
///         println!("{:?} of scene {} changed", edit.rect, edit.scene.0);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapEdited {
    /// The id of the scene.
    pub scene: SceneId,
    /// The entity of the scene.
    pub scene_entity: Entity,
    /// Contains every changed tile.
    pub rect: TileRect,
    /// The map's [fingerprint](TileMap::fingerprint) before the edit.
    pub before: u64,
    /// The fingerprint after it.
    pub after: u64,
}

/// Edits the map of a scene, and returns the rectangle that really changed; [`MapEdited`] notifies modules that depend on the
/// map.
///
/// Work that the edit leaves to be [settled](TileMap::finish_splits) is done from the next tick on.
///
/// Cost: that of [`TileMap::edit`], and a copy of the map when another scene shares it.
///
/// # Errors
/// [`MapError`] when the rectangle is not on the map; nothing is changed then. In a scene without a map nothing changes.
pub fn edit_map(
    world: &mut World,
    scene: Entity,
    rect: TileRect,
    edit: &TileEdit,
) -> Result<Option<TileRect>, MapError> {
    let Some(id) = world.get::<SimScene>(scene).map(SimScene::id) else {
        return Ok(None);
    };
    let Some(mut map) = world.get_mut::<SceneMap>(scene) else {
        return Ok(None);
    };
    let before = map.map.fingerprint();
    let Some(rect) = Arc::make_mut(&mut map.map).edit(rect, edit)? else {
        return Ok(None);
    };
    map.version += 1;
    map.fingerprint = map.map.fingerprint();
    let after = map.fingerprint;
    world.write_message(MapEdited {
        scene: id,
        scene_entity: scene,
        rect,
        before,
        after,
    });
    Ok(Some(rect))
}

/// Continues the work that edits left, before any system of the tick reads or edits the maps.
///
/// A map that is shared, or used by a background build, is copied first, once. Settling changes no tile and nothing that
/// follows from the tiles, so it does not count as a change of the map.
fn finish_map_splits(scenes: Res<Scenes>, mut maps: Query<&mut SceneMap>) {
    let is_settled = |map: &SceneMap| map.map.has_final_regions();
    let unsettled = maps.iter().filter(|map| !is_settled(map)).count();
    if unsettled == 0 {
        return;
    }
    for (_, scene) in scenes.iter() {
        if let Ok(mut map) = maps.get_mut(scene)
            && !is_settled(&map)
        {
            let map = map.bypass_change_detection();
            Arc::make_mut(&mut map.map).finish_splits(split_runs_per_map(unsettled));
        }
    }
}

/// Memory of the maps of all scenes; a shared map counts once.
fn map_bytes(world: &World) -> usize {
    let Some(mut maps) = world.try_query::<&SceneMap>() else {
        return 0;
    };
    let maps = maps
        .iter(world)
        .map(|map| (Arc::as_ptr(&map.map).addr(), &map.map));
    let maps = BTreeMap::from_iter(maps).into_values();
    maps.map(|map| size_of::<TileMap>() + map.memory().total_bytes())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{SceneSpec, open_scene};

    #[test]
    fn scenes_share_a_map_until_one_edits_it() {
        let mut app = App::new();
        app.add_plugins(MapPlugin);
        let shared = Arc::new(TileMap::new(8, 8, false).unwrap());
        let [a, b] = [(); 2].map(|()| {
            let map = SceneMap::new(shared.clone(), 0.5);
            open_scene(
                app.world_mut(),
                SceneSpec {
                    size_m: map.size_m(),
                    ..Default::default()
                },
                map,
            )
            .unwrap()
        });
        let rect = TileRect {
            x: 1,
            y: 2,
            width: 3,
            height: 1,
        };
        assert_eq!(
            edit_map(app.world_mut(), a, rect, &TileEdit::Block).unwrap(),
            Some(rect)
        );
        assert_eq!(
            edit_map(app.world_mut(), a, rect, &TileEdit::Block).unwrap(),
            None,
            "nothing changed"
        );
        let free = |app: &App, scene| {
            app.world()
                .get::<SceneMap>(scene)
                .unwrap()
                .is_free_at(Vec2::new(0.7, 1.2))
        };
        assert!(!free(&app, a) && free(&app, b));
        let outside = TileRect {
            x: 6,
            y: 0,
            width: 3,
            height: 1,
        };
        assert!(edit_map(app.world_mut(), a, outside, &TileEdit::Block).is_err());
        let edited: Vec<_> = app
            .world()
            .resource::<Messages<MapEdited>>()
            .iter_current_update_messages()
            .collect();
        assert_eq!(edited.len(), 1);
    }

    #[test]
    fn large_split_finishes_over_ticks_and_other_maps_stay_shared() {
        let mut app = App::new();
        app.add_plugins(MapPlugin);
        // A comb: cut in the middle of its back, each half has far more tiles than an edit examines.
        let comb = TileMap::from_fn(600, 400, |x, y| y > 0 && x % 2 == 1).unwrap();
        let shared = Arc::new(comb);
        let [a, b, c] = [(); 3].map(|()| {
            let map = SceneMap::new(shared.clone(), 0.5);
            let spec = SceneSpec {
                size_m: map.size_m(),
                ..Default::default()
            };
            open_scene(app.world_mut(), spec, map).unwrap()
        });
        let rect = TileRect::new(301, 0, 1, 1);
        for scene in [a, b] {
            edit_map(app.world_mut(), scene, rect, &TileEdit::Block).unwrap();
        }
        let tiles = |app: &App, scene| app.world().get::<SceneMap>(scene).unwrap().map.clone();
        let is_joined = |app: &App, scene| {
            tiles(app, scene).are_connected(IVec2::new(0, 399), IVec2::new(598, 399))
        };
        let mut ticks = 0;
        while [a, b].iter().any(|&scene| is_joined(&app, scene)) {
            assert_eq!(is_joined(&app, a), is_joined(&app, b));
            app.world_mut().run_schedule(FixedUpdate);
            ticks += 1;
        }
        assert!((20..200).contains(&ticks), "{ticks}");
        assert!(is_joined(&app, c) && Arc::ptr_eq(&shared, &tiles(&app, c)));
    }

    #[test]
    fn small_map_is_one_warning_however_its_scene_is_opened() {
        let mut app = App::new();
        app.add_plugins(MapPlugin);
        let map = || SceneMap::new(Arc::new(TileMap::new(8, 8, false).unwrap()), 0.5);
        let warnings = crate::sim::logged_warnings(|| {
            app.world_mut().spawn((SceneSpec::default(), map()));
            open_scene(app.world_mut(), SceneSpec::default(), map()).unwrap();
            let exact = SceneSpec::new("exact", map().size_m());
            app.world_mut().spawn((exact, map()));
        });
        let scenes: Vec<_> = warnings
            .iter()
            .map(|warning| warning.contains("; scene=0;") || warning.contains("; scene=1;"))
            .collect();
        assert_eq!(scenes, [true; 2], "{warnings:?}");
    }

    #[test]
    fn far_border_belongs_to_the_last_tile() {
        let map = SceneMap::new(Arc::new(TileMap::new(4, 6, false).unwrap()), 0.5);
        assert_eq!(map.tile_at(Vec2::new(2.0, 3.0)), IVec2::new(3, 5));
        assert_eq!(
            map.tile_at(map.centre_of(IVec2::new(2, 1))),
            IVec2::new(2, 1)
        );
        assert!(!map.is_free_at(Vec2::new(-0.1, 1.0)) && !map.is_free_at(Vec2::new(2.1, 1.0)));
    }
}
