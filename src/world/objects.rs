//! Objects: ids and generations, spawning, despawning, teleports and scene changes.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::Vec2;
use throng_core::ids::{Generation, ObjectId, ObjectRef, SceneId};
use throng_core::spatial::{Floor, Heading, Position, Velocity};

use super::error::WorldError;
use super::in_scene::InScene;
use super::registry::{KindId, ObjectKinds};
use super::scene_ids::SceneIds;
use super::scenes::SimScene;

/// What the world gives to an entity that is in a scene: its id there, with the generation of the id, and its kind. It is added
/// to an entity that is spawned with [`InScene`], and by [`spawn_object`] and [`change_scene`]; an entity without it is not an
/// object.
///
/// However it is removed (`despawn_object`, a plain `despawn()`, removal of the component or of `InScene`, a closing scene), a
/// hook releases the id and writes [`ObjectDespawned`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// /// What a game may send to its clients: entities differ between runs, references do not.
/// fn print_objects(objects: Query<(&Object, &Position)>) {
///     for (object, at) in &objects {
///         let reference = object.reference();
///         println!("object {} of scene {} is at {}", reference.id.0, reference.scene.0, at.0);
///     }
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_discard = on_object_discarded, on_remove = on_object_removed, clone_behavior = Ignore)]
#[require(Position, Velocity, Heading, Floor)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Object {
    scene_entity: Entity,
    reference: ObjectRef,
    kind: KindId,
}

impl Object {
    /// Its id in its scene.
    #[must_use]
    pub const fn id(&self) -> ObjectId {
        self.reference.id
    }

    /// The generation of that id.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.reference.generation
    }

    /// The id of its scene.
    #[must_use]
    pub const fn scene(&self) -> SceneId {
        self.reference.scene
    }

    /// The entity of its scene.
    #[must_use]
    pub const fn scene_entity(&self) -> Entity {
        self.scene_entity
    }

    /// Its kind; [`ObjectKinds`] has the details.
    #[must_use]
    pub const fn kind(&self) -> KindId {
        self.kind
    }

    /// Scene, id and generation together.
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

/// An object was added to a scene.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn report(mut spawned: MessageReader<ObjectSpawned>) {
///     for it in spawned.read() {
///         println!("{} appeared at {}", it.entity, it.position);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct ObjectSpawned {
    /// The entity of the object.
    pub entity: Entity,
    /// Its new scene, id, generation and kind.
    pub object: Object,
    /// Its position in the scene, in metres.
    pub position: Vec2,
}

/// An object left its scene: it was despawned, or went to another scene.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn report(mut despawned: MessageReader<ObjectDespawned>) {
///     for it in despawned.read() {
///         println!("object {} is gone", it.object.id().0);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectDespawned {
    /// The entity of the object; it still exists after a change of scene.
    pub entity: Entity,
    /// Its former scene, id, generation and kind.
    pub object: Object,
}

/// An object was teleported within its scene.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::ObjectTeleported;
///
/// fn report(mut teleported: MessageReader<ObjectTeleported>) {
///     for it in teleported.read() {
///         println!("{} jumped to {}", it.entity, it.to);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct ObjectTeleported {
    /// The entity of the object.
    pub entity: Entity,
    /// Its scene, id, generation and kind.
    pub object: Object,
    /// Its former position, in metres.
    pub from: Vec2,
    /// Its new position, in metres.
    pub to: Vec2,
}

/// An object changed its scene. The messages [`ObjectDespawned`] for the old scene and [`ObjectSpawned`] for the new one are
/// written as well.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::ObjectChangedScene;
///
/// fn report(mut changed: MessageReader<ObjectChangedScene>) {
///     for it in changed.read() {
///         println!("{} is in scene {} now", it.entity, it.to.scene().0);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectChangedScene {
    /// The entity of the object.
    pub entity: Entity,
    /// Its former scene, id, generation and kind.
    pub from: Object,
    /// Its new scene, id, generation and kind.
    pub to: Object,
}

/// Spawns an object and returns its entity; `extra` are further components of it. O(1) in addition to Bevy's spawn.
///
/// # Errors
/// [`WorldError::NoSuchScene`], [`WorldError::SceneFull`], [`WorldError::NoSuchKind`], or [`WorldError::OutsideScene`] for a
/// position that is outside of the scene or not finite. Nothing is changed then.
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
            // Written first: an observer of the components may despawn the entity.
            world.write_message(ObjectSpawned {
                entity,
                object,
                position,
            });
            world
                .entity_mut(entity)
                .insert((object, InScene(scene), kind, Position(position)));
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

/// Makes an entity that is [`InScene`] an object, at its [`Position`] and of its [`KindId`].
pub(super) fn make_object(
    world: &mut World,
    entity: Entity,
    scene: Entity,
) -> Result<(), WorldError> {
    let asked = world.get::<SimScene>(scene).map(SimScene::id);
    let asked = asked.ok_or(WorldError::NoSuchScene { scene })?;
    let kind = world.get::<KindId>(entity).copied();
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
    // Written first: an observer of the component may despawn the entity.
    world.write_message(ObjectSpawned {
        entity,
        object,
        position,
    });
    world.entity_mut(entity).insert(object);
    Ok(())
}

/// Despawns an object; like a plain `despawn()` of its entity, but with an error.
///
/// # Errors
/// [`WorldError::NoSuchObject`] when the entity is not a live object.
pub fn despawn_object(world: &mut World, entity: Entity) -> Result<(), WorldError> {
    object_of(world, entity)?;
    world.despawn(entity);
    Ok(())
}

/// Moves an object to another position in its scene, at rest.
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

/// Moves an object to another scene, or respawns it in its own, at rest, with a new id.
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
    // The insert replaces the old component, whose hook releases the old id.
    let mut moved = world.entity_mut(entity);
    moved.insert((object, Position(to), Velocity::default()));
    // It may be the reason for this change. An observer may have despawned the entity.
    if let Ok(mut moved) = world.get_entity_mut(entity)
        && moved.get::<InScene>() != Some(&InScene(scene))
    {
        moved.insert(InScene(scene));
    }
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
        .get_mut::<SceneIds>(scene)
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

/// Removes the membership of an entity that is no longer an object.
fn on_object_removed(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    if world.get::<InScene>(entity).is_some() {
        world.commands().queue(move |world: &mut World| {
            if let Ok(mut found) = world.get_entity_mut(entity)
                && !found.contains::<Object>()
            {
                found.remove::<InScene>();
            }
        });
    }
}

fn on_object_discarded(mut world: DeferredWorld, context: HookContext) {
    let Some(&object) = world.get::<Object>(context.entity) else {
        return;
    };
    if let Some(mut objects) = world.get_mut::<SceneIds>(object.scene_entity) {
        objects.release(object.id(), object.generation());
    }
    world.write_message(ObjectDespawned {
        entity: context.entity,
        object,
    });
}
