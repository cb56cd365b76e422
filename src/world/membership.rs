//! Membership: an entity that is [`InScene`] becomes an object, changes its scene or leaves it.
//!
//! ```text
//! commands.spawn((Player, InScene(scene), Position(at), …))
//!     ─▶ commands are applied ─▶ Object, ObjectSpawned
//!                              └ refused ─▶ SpawnRefused, SpawnFailed ─ end of the tick ─▶ despawned
//! ```
//! Ids are assigned in the order in which spawns are applied: that of the commands of a system, and of the systems in their schedule. The
//! order of entities or archetypes has no effect, so a run is reproducible, as with [`spawn_object`](super::spawn_object), which uses the
//! same list of ids.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use throng_core::spatial::Position;
use tracing::warn;

use super::error::WorldError;
use super::in_scene::InScene;
use super::objects::{Object, change_scene, make_object};
use super::scenes::SimScene;

/// A spawn was refused; see [`InScene`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::SpawnRefused;
///
/// fn report(mut refused: MessageReader<SpawnRefused>) {
///     for refused in refused.read() {
///         println!("{} is not in {}: {}", refused.entity, refused.scene, refused.error);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq)]
pub struct SpawnRefused {
    /// The entity. It is despawned at the end of the tick.
    pub entity: Entity,
    /// The requested scene.
    pub scene: Entity,
    /// Why it was refused.
    pub error: WorldError,
}

/// On an entity whose spawn was refused, until it is despawned at the end of the tick; see [`InScene`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::SpawnFailed;
///
/// fn count(failed: Query<(), With<SpawnFailed>>) -> usize {
///     failed.iter().count()
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[component(clone_behavior = Ignore)]
pub struct SpawnFailed;

/// Whether the entity will become an object in this flush of commands. What an object takes over from others (a player's entry
/// in the list, a client's control) it takes over when it has become one, so a refused entity takes over nothing.
pub(crate) fn is_spawn_pending(world: &DeferredWorld, entity: Entity) -> bool {
    let found = world.get_entity(entity);
    found.is_ok_and(|found| found.contains::<InScene>() && !found.contains::<Object>())
}

/// Handles a membership right after the command that inserted it, when all components exist and the scene has the entity in
/// its [`SceneObjects`](super::SceneObjects). An observer, since its commands follow those of Bevy's hook for relationships.
pub(super) fn on_membership_inserted(inserted: On<Insert<InScene>>, mut world: DeferredWorld) {
    let entity = inserted.entity;
    let Some(&InScene(scene)) = world.get::<InScene>(entity) else {
        return;
    };
    let object = world.get::<Object>(entity);
    if object.is_none_or(|object| object.scene_entity() != scene) {
        world
            .commands()
            .queue(move |world: &mut World| enter_scene(world, entity, scene));
    }
}

fn enter_scene(world: &mut World, entity: Entity, scene: Entity) {
    let Ok(found) = world.get_entity(entity) else {
        return;
    };
    match found.get::<InScene>() {
        Some(now) if now.0 == scene => {}
        // Bevy has removed a relationship to itself, or to an entity that does not exist.
        None if scene == entity || world.get_entity(scene).is_err() => {}
        // It was replaced or removed in the meantime.
        _ => return,
    }
    let Some(&object) = found.get::<Object>() else {
        return spawn_in_scene(world, entity, scene);
    };
    if object.scene_entity() == scene {
        return;
    }
    if let Err(error) = change_scene_in_place(world, entity, scene) {
        warn!(%entity, %scene, %error, "scene change failed");
        if let Ok(mut stays) = world.get_entity_mut(entity) {
            stays.insert(InScene(object.scene_entity()));
        }
    }
}

fn spawn_in_scene(world: &mut World, entity: Entity, scene: Entity) {
    let result = make_object(world, entity, scene);
    let refusal = result.err().map(|error| {
        warn!(%entity, %scene, %error, "object not spawned");
        SpawnRefused {
            entity,
            scene,
            error,
        }
    });
    // An observer of the new object may have despawned it.
    if let Ok(mut found) = world.get_entity_mut(entity) {
        match refusal {
            None => found.remove::<SpawnFailed>(),
            Some(_) => found.insert(SpawnFailed).remove::<InScene>(),
        };
    }
    if let Some(refused) = refusal {
        world.write_message(refused);
    }
}

fn change_scene_in_place(
    world: &mut World,
    entity: Entity,
    scene: Entity,
) -> Result<(), WorldError> {
    let requested = world.get::<SimScene>(scene).map(SimScene::id);
    let requested = requested.ok_or(WorldError::NoSuchScene { scene })?;
    let position = world.get::<Position>(entity).copied();
    let Position(at) = position.ok_or(WorldError::NoPosition {
        entity,
        scene: requested,
    })?;
    change_scene(world, entity, scene, at)
}

/// Takes an entity out of its scene when its membership is removed.
pub(super) fn on_membership_removed(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    let scene = world.get::<InScene>(entity).map(|removed| removed.0);
    let object = world.get::<Object>(entity).map(Object::scene_entity);
    // A membership that was not accepted is replaced by the one of the object.
    if object.is_some() && object == scene {
        world.commands().queue(move |world: &mut World| {
            if let Ok(mut found) = world.get_entity_mut(entity)
                && !found.contains::<InScene>()
            {
                found.remove::<Object>();
            }
        });
    }
}

/// Despawns refused entities at the end of the tick.
pub(super) fn despawn_refused(
    refused: Query<(Entity, Has<Object>), With<SpawnFailed>>,
    mut commands: Commands,
) {
    for (entity, is_object) in &refused {
        if is_object {
            commands.entity(entity).try_remove::<SpawnFailed>();
        } else {
            commands.entity(entity).try_despawn();
        }
    }
}
