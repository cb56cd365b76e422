//! Objects: their ids and generations, spawning, despawning, teleports and scene changes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::Vec2;

use super::{Floor, Heading, KindId, ObjectKinds, Position, Scene, SceneId, Velocity, WorldError};

/// The number of an object in its scene: dense, from 1; 0 is the scene itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How often an id was given out before: tells an object from those that had its id earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u32);

/// An object as messages and files name it: never mistaken, also when the id is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Its scene.
    pub scene: SceneId,
    /// Its number there.
    pub id: ObjectId,
    /// Which bearer of that number.
    pub generation: Generation,
}

/// What makes an entity an object of a scene. Made by [`spawn_object`] and [`change_scene`] only.
///
/// However it goes away (`despawn_object`, a plain `despawn()`, removal of the component, a closing scene), a hook gives
/// the id back and writes [`Despawned`].
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_discard = released, clone_behavior = Ignore)]
#[require(Position, Velocity, Heading, Floor)]
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

    /// Its kind.
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
pub struct Spawned {
    /// Its entity.
    pub entity: Entity,
    /// What it is.
    pub object: Object,
    /// Where, in metres.
    pub position: Vec2,
}

/// An object left its scene: it was despawned, or went to another scene.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Despawned {
    /// The entity it was, or still is after a change of scene.
    pub entity: Entity,
    /// What it was.
    pub object: Object,
}

/// An object was put elsewhere in its scene.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct Teleported {
    /// Its entity.
    pub entity: Entity,
    /// What it is.
    pub object: Object,
    /// From where, in metres.
    pub from: Vec2,
    /// To where, in metres.
    pub to: Vec2,
}

/// An object went to another scene: its [`Despawned`] there and [`Spawned`] here come with it.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SceneChanged {
    /// Its entity.
    pub entity: Entity,
    /// What it was.
    pub from: Object,
    /// What it is.
    pub to: Object,
}

/// The ids of a scene: who has which.
#[derive(Component, Debug)]
pub struct SceneObjects {
    scene: SceneId,
    slots: Vec<ObjectSlot>,
    /// Ids that can be given out, the lowest first, so that they stay dense.
    free: BinaryHeap<Reverse<u32>>,
    /// Given back, and their `Despawned` not yet handed over.
    released: Vec<u32>,
    /// Given back before the Locate of this tick, so that its Replicate tells of them.
    handed_over: Vec<u32>,
    max_objects: u32,
    live: u32,
}

#[derive(Clone, Copy, Debug)]
struct ObjectSlot {
    entity: Option<Entity>,
    generation: Generation,
}

impl SceneObjects {
    pub(super) fn new(scene: SceneId, max_objects: u32) -> Self {
        // Slot 0 stands for the scene itself.
        let slots = vec![ObjectSlot {
            entity: None,
            generation: Generation(0),
        }];
        Self {
            scene,
            slots,
            free: BinaryHeap::new(),
            released: Vec::new(),
            handed_over: Vec::new(),
            max_objects,
            live: 0,
        }
    }

    /// How many objects live in the scene.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.live
    }

    /// Whether nobody lives in the scene.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// How many it can hold.
    #[must_use]
    pub const fn max_objects(&self) -> u32 {
        self.max_objects
    }

    /// The entity that has this id now. O(1).
    #[must_use]
    pub fn entity(&self, id: ObjectId) -> Option<Entity> {
        self.slots.get(id.0 as usize)?.entity
    }

    /// The entity that has this id in this generation; `None` for a stale one. O(1).
    #[must_use]
    pub fn resolve(&self, id: ObjectId, generation: Generation) -> Option<Entity> {
        let slot = self.slots.get(id.0 as usize)?;
        slot.entity.filter(|_| slot.generation == generation)
    }

    /// Live objects by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectId, Entity)> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter_map(|(id, slot)| Some((ObjectId(id as u32), slot.entity?)))
    }

    fn allocate(&mut self, entity: Entity) -> Result<ObjectRef, WorldError> {
        let id = match self.free.pop() {
            Some(Reverse(id)) => id,
            None if self.slots.len() as u32 <= self.max_objects => {
                self.slots.push(ObjectSlot {
                    entity: None,
                    generation: Generation(0),
                });
                self.slots.len() as u32 - 1
            }
            None => {
                return Err(WorldError::SceneFull {
                    scene: self.scene,
                    max_objects: self.max_objects,
                });
            }
        };
        let slot = &mut self.slots[id as usize];
        debug_assert!(slot.entity.is_none(), "id {id} is given out twice");
        slot.entity = Some(entity);
        self.live += 1;
        Ok(ObjectRef {
            scene: self.scene,
            id: ObjectId(id),
            generation: slot.generation,
        })
    }

    fn release(&mut self, id: ObjectId, generation: Generation) {
        let Some(slot) = self.slots.get_mut(id.0 as usize) else {
            return;
        };
        if slot.entity.is_none() || slot.generation != generation {
            return;
        }
        slot.entity = None;
        slot.generation = Generation(slot.generation.0.wrapping_add(1));
        self.released.push(id.0);
        self.live -= 1;
    }

    /// Locate begins: what was given back so far is handed over in this tick's Replicate.
    pub(super) fn begin_hand_over(&mut self) {
        self.handed_over.append(&mut self.released);
    }

    /// Replicate has ended: what was handed over can be given out again.
    pub(super) fn end_hand_over(&mut self) {
        self.free.extend(self.handed_over.drain(..).map(Reverse));
    }
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
    if world
        .get_resource::<ObjectKinds>()
        .is_none_or(|kinds| kinds.get(kind).is_none())
    {
        return Err(WorldError::NoSuchKind(kind));
    }
    check_inside(world, scene, position)?;
    let entity = world.spawn_empty().id();
    match allocate(world, scene, entity) {
        Ok(reference) => {
            let object = Object {
                scene_entity: scene,
                reference,
                kind,
            };
            world
                .entity_mut(entity)
                .insert((object, Position(position)))
                .insert(extra);
            world.write_message(Spawned {
                entity,
                object,
                position,
            });
            Ok(entity)
        }
        Err(error) => {
            world.despawn(entity);
            Err(error)
        }
    }
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
    world.write_message(Teleported {
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
    world.write_message(Spawned {
        entity,
        object,
        position: to,
    });
    world.write_message(SceneChanged {
        entity,
        from,
        to: object,
    });
    Ok(())
}

fn object_of(world: &World, entity: Entity) -> Result<Object, WorldError> {
    world
        .get::<Object>(entity)
        .copied()
        .ok_or(WorldError::NoSuchObject)
}

fn allocate(world: &mut World, scene: Entity, entity: Entity) -> Result<ObjectRef, WorldError> {
    world
        .get_mut::<SceneObjects>(scene)
        .ok_or(WorldError::NoSuchScene)?
        .allocate(entity)
}

fn check_inside(world: &World, scene: Entity, position: Vec2) -> Result<(), WorldError> {
    let size_m = world
        .get::<Scene>(scene)
        .ok_or(WorldError::NoSuchScene)?
        .size_m();
    let inside = position.cmpge(Vec2::ZERO).all() && position.cmple(size_m).all();
    if inside {
        Ok(())
    } else {
        Err(WorldError::OutsideScene { position, size_m })
    }
}

fn released(mut world: DeferredWorld, context: HookContext) {
    let Some(&object) = world.get::<Object>(context.entity) else {
        return;
    };
    if let Some(mut objects) = world.get_mut::<SceneObjects>(object.scene_entity) {
        objects.release(object.id(), object.generation());
    }
    world.write_message(Despawned {
        entity: context.entity,
        object,
    });
}
