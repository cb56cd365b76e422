//! Objects: ids and generations, spawning, despawning, teleports and scene changes.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::Vec2;
use throng_core::ids::{Generation, ObjectId, ObjectRef, SceneId};
use throng_core::spatial::{Floor, Heading, Position, Velocity};

use super::error::WorldError;
use super::registry::{KindId, ObjectKinds};
use super::scene_objects::SceneObjects;
use super::scenes::SimScene;

/// What makes an entity an object of a scene. Made for an entity that is spawned with [`Object::in_scene`], and by
/// [`spawn_object`] and [`change_scene`]; an entity has it, or it is no object.
///
/// However it goes away (`despawn_object`, a plain `despawn()`, removal of the component, a closing scene), a hook gives
/// the id back and writes [`ObjectDespawned`].
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_discard = on_object_discarded, clone_behavior = Ignore)]
#[require(Position, Velocity, Heading, Floor)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Object {
    scene_entity: Entity,
    reference: ObjectRef,
    kind: KindId,
}

impl Object {
    /// Its number in its scene.
    #[must_use]
    pub const fn id(&self) -> ObjectId {
        self.reference.id
    }

    /// Which bearer of that number it is.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.reference.generation
    }

    /// Its scene's number.
    #[must_use]
    pub const fn scene(&self) -> SceneId {
        self.reference.scene
    }

    /// Its scene's entity.
    #[must_use]
    pub const fn scene_entity(&self) -> Entity {
        self.scene_entity
    }

    /// Its kind, to be looked up in [`ObjectKinds`].
    #[must_use]
    pub const fn kind(&self) -> KindId {
        self.kind
    }

    /// Scene, id and generation in one.
    #[must_use]
    pub const fn reference(&self) -> ObjectRef {
        self.reference
    }

    /// Scene and id in one word: sorts objects the same way in every run.
    #[must_use]
    pub const fn key(&self) -> u64 {
        (self.reference.scene.0 as u64) << 32 | self.reference.id.0 as u64
    }
}

/// An object came into a scene.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct ObjectSpawned {
    /// The entity of the object.
    pub entity: Entity,
    /// Its scene, id, generation and kind from now on.
    pub object: Object,
    /// Where in its scene it came, in metres.
    pub position: Vec2,
}

/// An object left its scene: it was despawned, or went to another scene.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectDespawned {
    /// The entity it was, or still is after a change of scene.
    pub entity: Entity,
    /// Its scene, id, generation and kind up to now.
    pub object: Object,
}

/// An object was put elsewhere in its scene.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct ObjectTeleported {
    /// The entity of the object.
    pub entity: Entity,
    /// Its scene, id, generation and kind from now on.
    pub object: Object,
    /// Where it was, in metres.
    pub from: Vec2,
    /// Where it is now, in metres.
    pub to: Vec2,
}

/// An object went to another scene: its [`ObjectDespawned`] there and [`ObjectSpawned`] here come with it.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectChangedScene {
    /// The entity of the object.
    pub entity: Entity,
    /// Its scene, id, generation and kind up to now.
    pub from: Object,
    /// Its scene, id, generation and kind from now on.
    pub to: Object,
}

/// Spawns an object and gives its entity; `extra` are further components of it. O(1) beside Bevy's own spawn.
///
/// # Errors
/// [`WorldError::NoSuchScene`], [`WorldError::SceneFull`], [`WorldError::NoSuchKind`], or
/// [`WorldError::OutsideScene`] for a position that is not in the scene (not finite included). Nothing is changed then.
pub fn spawn_object(
    world: &mut World,
    scene: Entity,
    kind: KindId,
    position: Vec2,
    extra: impl Bundle,
) -> Result<Entity, WorldError> {
    check_kind(world, kind)?;
    check_inside(world, scene, position)?;
    let entity = world.spawn_empty().id();
    match allocate(world, scene, entity) {
        Ok(reference) => {
            let object = Object {
                scene_entity: scene,
                reference,
                kind,
            };
            // Told before: whoever hears of the components may despawn it.
            world.write_message(ObjectSpawned {
                entity,
                object,
                position,
            });
            world
                .entity_mut(entity)
                .insert((object, Position(position)));
            if let Ok(mut entity) = world.get_entity_mut(entity) {
                entity.insert(extra);
            }
            Ok(entity)
        }
        Err(error) => {
            world.despawn(entity);
            Err(error)
        }
    }
}

/// Makes an entity that is there already an object, where its [`Position`] says. For [`SpawnRequest`](super::SpawnRequest).
pub(super) fn make_object(
    world: &mut World,
    entity: Entity,
    scene: Entity,
    kind: Option<KindId>,
) -> Result<(), WorldError> {
    if let Some(object) = world.get::<Object>(entity) {
        let object = object.reference;
        return Err(WorldError::AlreadyAnObject { entity, object });
    }
    let asked = world.get::<SimScene>(scene).map(SimScene::id);
    let asked = asked.ok_or(WorldError::NoSuchScene { scene })?;
    let kind = kind.ok_or(WorldError::NoKind {
        entity,
        scene: asked,
    })?;
    check_kind(world, kind)?;
    let Some(&Position(position)) = world.get::<Position>(entity) else {
        return Err(WorldError::NoPosition {
            entity,
            scene: asked,
        });
    };
    check_inside(world, scene, position)?;
    let object = Object {
        scene_entity: scene,
        reference: allocate(world, scene, entity)?,
        kind,
    };
    // Told before: whoever hears of the component may despawn it.
    world.write_message(ObjectSpawned {
        entity,
        object,
        position,
    });
    world.entity_mut(entity).insert(object);
    Ok(())
}

/// Despawns an object; the same as a plain `despawn()` of its entity, but for the error.
///
/// # Errors
/// [`WorldError::NoSuchObject`] when the entity is no live object.
pub fn despawn_object(world: &mut World, entity: Entity) -> Result<(), WorldError> {
    object_of(world, entity)?;
    world.despawn(entity);
    Ok(())
}

/// Puts an object elsewhere in its scene, at rest.
///
/// # Errors
/// [`WorldError::NoSuchObject`], or [`WorldError::OutsideScene`]; nothing is changed then.
pub fn teleport(world: &mut World, entity: Entity, to: Vec2) -> Result<(), WorldError> {
    let object = object_of(world, entity)?;
    check_inside(world, object.scene_entity, to)?;
    let from = world
        .get::<Position>(entity)
        .map_or(to, |position| position.0);
    world
        .entity_mut(entity)
        .insert((Position(to), Velocity::default()));
    world.write_message(ObjectTeleported {
        entity,
        object,
        from,
        to,
    });
    Ok(())
}

/// Moves an object to another scene (or anew into its own), at rest, with an id of the new scene.
///
/// # Errors
/// [`WorldError::NoSuchObject`], [`WorldError::NoSuchScene`], [`WorldError::OutsideScene`],
/// [`WorldError::SceneFull`]; nothing is changed then.
pub fn change_scene(
    world: &mut World,
    entity: Entity,
    scene: Entity,
    to: Vec2,
) -> Result<(), WorldError> {
    let from = object_of(world, entity)?;
    check_inside(world, scene, to)?;
    let reference = allocate(world, scene, entity)?;
    let object = Object {
        scene_entity: scene,
        reference,
        kind: from.kind,
    };
    // The insert replaces the old component, whose hook gives the old id back.
    world
        .entity_mut(entity)
        .insert((object, Position(to), Velocity::default()));
    world.write_message(ObjectSpawned {
        entity,
        object,
        position: to,
    });
    world.write_message(ObjectChangedScene {
        entity,
        from,
        to: object,
    });
    Ok(())
}

fn check_kind(world: &World, kind: KindId) -> Result<(), WorldError> {
    let kinds = world.get_resource::<ObjectKinds>();
    let known = kinds.and_then(|kinds| kinds.get(kind));
    known.map(drop).ok_or(WorldError::NoSuchKind(kind))
}

fn object_of(world: &World, entity: Entity) -> Result<Object, WorldError> {
    world
        .get::<Object>(entity)
        .copied()
        .ok_or(WorldError::NoSuchObject { entity })
}

fn allocate(world: &mut World, scene: Entity, entity: Entity) -> Result<ObjectRef, WorldError> {
    world
        .get_mut::<SceneObjects>(scene)
        .ok_or(WorldError::NoSuchScene { scene })?
        .allocate(entity)
}

fn check_inside(world: &World, scene: Entity, position: Vec2) -> Result<(), WorldError> {
    let scene = world
        .get::<SimScene>(scene)
        .ok_or(WorldError::NoSuchScene { scene })?;
    let (scene, size_m) = (scene.id(), scene.size_m());
    let inside = position.cmpge(Vec2::ZERO).all() && position.cmple(size_m).all();
    if inside {
        Ok(())
    } else {
        Err(WorldError::OutsideScene {
            scene,
            position,
            size_m,
        })
    }
}

fn on_object_discarded(mut world: DeferredWorld, context: HookContext) {
    let Some(&object) = world.get::<Object>(context.entity) else {
        return;
    };
    if let Some(mut objects) = world.get_mut::<SceneObjects>(object.scene_entity) {
        objects.release(object.id(), object.generation());
    }
    world.write_message(ObjectDespawned {
        entity: context.entity,
        object,
    });
}
