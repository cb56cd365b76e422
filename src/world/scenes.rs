//! Opens, closes and finds scenes.

use std::collections::BTreeMap;

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::Vec2;
use throng_core::ids::{Generation, ObjectId, ObjectRef, SceneId};

use super::error::WorldError;
use super::scene_objects::SceneObjects;
use crate::memory::MemoryUse;

/// The largest `max_objects` of a scene.
pub const OBJECTS_MAX: u32 = 1 << 20;

/// The maximum number of open scenes.
const SCENES_MAX: usize = 1 << 16;

/// The values that a scene is opened with.
#[derive(Clone, Debug, PartialEq)]
pub struct SceneSpec {
    /// Its name in scenarios and reports; need not be unique.
    pub name: String,
    /// Width and height in metres.
    pub size_m: Vec2,
    /// The maximum number of objects, at most [`OBJECTS_MAX`].
    pub max_objects: u32,
}

impl SceneSpec {
    /// A scene of this name and size, in metres, for at most 4,096 objects.
    #[must_use]
    pub fn new(name: &str, size_m: Vec2) -> Self {
        Self {
            name: name.to_owned(),
            size_m,
            ..Self::default()
        }
    }
}

impl Default for SceneSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            size_m: Vec2::splat(1000.0),
            max_objects: 4096,
        }
    }
}

/// An independent space with objects of its own.
///
/// Created by [`open_scene`]. A plain `despawn()` of its entity closes it and despawns its objects.
#[derive(Component, Debug)]
#[component(immutable, on_remove = on_scene_removed)]
pub struct SimScene {
    id: SceneId,
    name: String,
    size_m: Vec2,
}

impl SimScene {
    /// Its id: scenes are numbered from 0 in the order of opening, and no id is used again.
    #[must_use]
    pub const fn id(&self) -> SceneId {
        self.id
    }

    /// The name that it was opened with; not necessarily unique.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Width and height in metres.
    #[must_use]
    pub const fn size_m(&self) -> Vec2 {
        self.size_m
    }

    /// The scene itself as an object: id 0.
    #[must_use]
    pub const fn reference(&self) -> ObjectRef {
        ObjectRef {
            scene: self.id,
            id: ObjectId(0),
            generation: Generation(0),
        }
    }
}

/// The open scenes.
#[derive(Resource, Debug, Default, MemoryUse)]
pub struct Scenes {
    open: BTreeMap<SceneId, Entity>,
    opened: u32,
}

impl Scenes {
    /// The entity of an open scene. O(log scenes).
    #[must_use]
    pub fn entity(&self, id: SceneId) -> Option<Entity> {
        self.open.get(&id).copied()
    }

    /// Open scenes by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (SceneId, Entity)> {
        self.open.iter().map(|(&id, &entity)| (id, entity))
    }

    /// The number of scenes that were ever opened.
    #[must_use]
    pub const fn opened(&self) -> u32 {
        self.opened
    }
}

/// A scene was opened.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SceneOpened {
    /// The id of the scene; no other scene had it before.
    pub id: SceneId,
    /// The entity that has its [`SimScene`].
    pub entity: Entity,
}

/// A scene was closed; an [`ObjectDespawned`](super::ObjectDespawned) is written for each of its objects.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SceneClosed {
    /// The id that it had; it is never used again.
    pub id: SceneId,
    /// The former entity of the scene.
    pub entity: Entity,
}

/// Opens a scene and returns its entity; `extra` are further components of it, such as its map.
///
/// # Errors
/// [`WorldError::InvalidScene`] for a size that is not positive and finite or a `max_objects` of 0 or above [`OBJECTS_MAX`];
/// [`WorldError::TooManyScenes`] at the limit of 65,536 open scenes.
pub fn open_scene(
    world: &mut World,
    spec: SceneSpec,
    extra: impl Bundle,
) -> Result<Entity, WorldError> {
    let size_ok = spec.size_m.is_finite() && spec.size_m.min_element() > 0.0;
    if !size_ok || !(1..=OBJECTS_MAX).contains(&spec.max_objects) {
        return Err(WorldError::InvalidScene {
            size_m: spec.size_m,
            max_objects: spec.max_objects,
        });
    }
    let scenes = world.get_resource_or_init::<Scenes>();
    if scenes.open.len() >= SCENES_MAX || scenes.opened == u32::MAX {
        return Err(WorldError::TooManyScenes { max: SCENES_MAX });
    }
    let id = SceneId(scenes.opened);
    let scene = SimScene {
        id,
        name: spec.name,
        size_m: spec.size_m,
    };
    let entity = world
        .spawn((scene, SceneObjects::new(id, spec.max_objects), extra))
        .id();
    let mut scenes = world.resource_mut::<Scenes>();
    scenes.opened += 1;
    scenes.open.insert(id, entity);
    world.write_message(SceneOpened { id, entity });
    Ok(entity)
}

/// Closes a scene: despawns its objects, then the scene.
///
/// # Errors
/// [`WorldError::NoSuchScene`] when the entity is not an open scene.
pub fn close_scene(world: &mut World, scene: Entity) -> Result<(), WorldError> {
    let objects = world
        .get::<SceneObjects>(scene)
        .ok_or(WorldError::NoSuchScene { scene })?;
    let entities: Vec<Entity> = objects.iter().map(|(_, entity)| entity).collect();
    for entity in entities {
        world.despawn(entity);
    }
    world.despawn(scene);
    Ok(())
}

/// Removes a closed scene from the list, and despawns its objects. Runs for every kind of removal.
fn on_scene_removed(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    let Some(id) = world.get::<SimScene>(entity).map(SimScene::id) else {
        return;
    };
    let left: Vec<Entity> = world
        .get::<SceneObjects>(entity)
        .map(|objects| objects.iter().map(|(_, object)| object).collect())
        .unwrap_or_default();
    for object in left {
        world.commands().entity(object).try_despawn();
    }
    if let Some(mut scenes) = world.get_resource_mut::<Scenes>() {
        scenes.open.remove(&id);
    }
    world.write_message(SceneClosed { id, entity });
}
