//! Moves objects off blocked tiles.
//!
//! ```text
//! MapEdited ──▶ objects in the rectangle ┬▶ on a blocked tile? ─▶ moved to the nearest free tile, new path
//! Position changed by other modules ─────┘
//! ```
//! Cost: one change tick per object, and one map bit for each position that another module changed.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemState;
use glam::Vec2;

use super::change_ticks::MovementChangeTicks;
use super::components::{MaxSpeed, Walker};
use super::ground_cache::{GroundCache, MapQuery};
use super::settings::MovementSettings;
use super::stats::MovementStats;
use crate::map::{MapEdited, SceneMap, TileRect};
use crate::nav::{NavPath, replan_path};
use crate::world::{Object, Position, teleport};

type PushRow = (
    Entity,
    Ref<'static, Object>,
    Ref<'static, Position>,
    Ref<'static, MaxSpeed>,
);

/// The inputs of [`push_off_blocked`].
type PushQuery<'w, 's> = (
    MessageReader<'w, 's, MapEdited>,
    Query<'w, 's, PushRow>,
    MapQuery<'w, 's>,
    Query<'w, 's, (), Changed<SceneMap>>,
    Res<'w, MovementChangeTicks>,
    Res<'w, MovementSettings>,
);

/// Buffers of [`push_off_blocked`], kept between ticks to save allocations.
#[derive(Default)]
pub(super) struct PushBuffers {
    edits: Vec<(Entity, TileRect)>,
    /// Key, entity, and the centre of the target tile.
    pushed: Vec<(u64, Entity, Option<Vec2>)>,
}

/// Moves objects on a blocked tile to the nearest free one, whether the tile was blocked or the object was
/// put there. A walker requests a new path to its goal.
pub(super) fn push_off_blocked(
    world: &mut World,
    push_query: &mut SystemState<PushQuery>,
    mut buffers: Local<PushBuffers>,
) {
    let PushBuffers { edits, pushed } = &mut *buffers;
    let Ok((mut edited, objects, maps, changed_maps, own_steps, settings)) =
        push_query.get_mut(world)
    else {
        return;
    };
    edits.clear();
    edits.extend(edited.read().map(|edit| (edit.scene_entity, edit.rect)));
    pushed.clear();
    // A map that was replaced has no edit messages.
    let own_steps = if changed_maps.is_empty() {
        *own_steps
    } else {
        MovementChangeTicks::default()
    };
    let mut grounds = GroundCache::new(&maps);
    for (entity, object, position, speed) in &objects {
        let is_put = position.is_changed() && !own_steps.contains(position.last_changed())
            || object.is_changed()
            || speed.is_added();
        if !is_put && edits.is_empty() {
            continue;
        }
        let scene = object.scene_entity();
        let Some(ground) = grounds.ground_of(scene) else {
            continue;
        };
        let tile = ground.tile_at(position.0);
        let is_in = |edit: &(Entity, TileRect)| edit.0 == scene && edit.1.contains(tile);
        if !ground.tiles.is_free(tile) && (is_put || edits.iter().any(is_in)) {
            let radius_max = settings.push_radius_tiles_max;
            let free = ground.tiles.nearest_free(tile, radius_max);
            let to = free.map(|tile| ground.centre_of(tile));
            pushed.push((object.key(), entity, to));
        }
    }
    // Pushed objects do not affect each other, but messages are sorted by key.
    pushed.sort_unstable_by_key(|&(key, ..)| key);
    for &(_, entity, to) in &*pushed {
        let is_pushed = to.is_some_and(|to| teleport(world, entity, to).is_ok());
        let mut stats = world.resource_mut::<MovementStats>();
        *(if is_pushed {
            &mut stats.pushed
        } else {
            &mut stats.push_failures
        }) += 1;
        if is_pushed {
            replan_pushed(world, entity);
        }
    }
}

/// Ends the path of an object that was pushed; a walker requests a path from its new position, unless it has already requested
/// another one.
fn replan_pushed(world: &mut World, entity: Entity) {
    let Some(mut path) = world.get_mut::<NavPath>(entity) else {
        return;
    };
    if path.is_empty() {
        return;
    }
    let request = path.request();
    path.clear();
    if world.get::<Walker>(entity).is_some() {
        replan_path(&mut world.entity_mut(entity), request);
    }
}
