//! Opens, closes and finds scenes.

use std::collections::BTreeMap;

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::Vec2;
use throng_core::ids::{Generation, ObjectId, ObjectRef, SceneId};
use tracing::warn;

use super::error::WorldError;
use super::scene_ids::SceneIds;
use crate::memory::MemoryUse;

/// The largest `max_objects` of a scene.
pub const OBJECTS_MAX: u32 = 1 << 20;

/// The maximum number of open scenes.
const SCENES_MAX: usize = 1 << 16;

/// The values that a scene is opened with. An entity that is spawned with it becomes an open scene as soon as the command has been
/// applied: it has [`SimScene`] and [`SceneIds`], [`SceneOpened`] is written, and this component is removed. Scenes are numbered
/// in the order of the commands.
///
/// An invalid spec, or one scene too many, logs a warning with the [`WorldError`]. The entity is then not a scene and keeps its
/// `SceneSpec`; objects that are spawned into it are refused. Inserted on an open scene, it logs a warning and changes nothing.
/// [`open_scene`] returns the error instead.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use glam::Vec2;
/// use throng::prelude::*;
///
/// fn open_town(mut commands: Commands) -> Result {
///     let map = SceneMap::new(TileMap::new(200, 200, false)?.into(), 0.5);
///     let town = commands.spawn((SceneSpec::new("town", map.size_m()), map)).id();
///     commands.spawn((Npc, InScene(town), Position(Vec2::splat(10.0))));
///     Ok(())
/// }
/// ```
#[derive(Component, Clone, Debug, PartialEq)]
#[component(immutable, on_insert = on_spec_inserted)]
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
/// Created by a [`SceneSpec`] on its entity, or by [`open_scene`]. A plain `despawn()` of its entity closes it and despawns its
/// objects. A clone of its entity is not a scene.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn report(scenes: Query<&SimScene, Added<SimScene>>) {
///     for scene in &scenes {
///         println!("{} is open: {} m × {} m", scene.name(), scene.size_m().x, scene.size_m().y);
///     }
/// }
/// ```
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
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::SceneOpened;
///
/// fn report(mut opened: MessageReader<SceneOpened>) {
///     for it in opened.read() {
///         println!("scene {} is {}", it.id.0, it.entity);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SceneOpened {
    /// The id of the scene; no other scene had it before.
    pub id: SceneId,
    /// The entity that has its [`SimScene`].
    pub entity: Entity,
}

/// A scene was closed; an [`ObjectDespawned`](super::ObjectDespawned) is written for each of its objects.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::SceneClosed;
///
/// fn report(mut closed: MessageReader<SceneClosed>) {
///     for it in closed.read() {
///         println!("scene {} is closed", it.id.0);
///     }
/// }
/// ```
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
    check(world, &spec)?;
    let entity = world.spawn_empty().id();
    let scene = register(world, spec, entity);
    world.entity_mut(entity).insert((scene, extra));
    Ok(entity)
}

/// Opens the scene of a [`SceneSpec`] right after the command that inserted it.
fn on_spec_inserted(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    world.commands().queue(move |world: &mut World| {
        if let Err(error) = open_scene_on(world, entity) {
            warn!(%entity, %error, "scene not opened");
        }
    });
}

/// Makes an entity with a [`SceneSpec`] a scene. Does nothing when the entity is despawned, or an earlier call opened the scene.
fn open_scene_on(world: &mut World, entity: Entity) -> Result<(), WorldError> {
    let Some(spec) = world.get::<SceneSpec>(entity).cloned() else {
        return Ok(());
    };
    if let Some(scene) = world.get::<SimScene>(entity).map(SimScene::id) {
        world.entity_mut(entity).remove::<SceneSpec>();
        return Err(WorldError::AlreadyAScene { entity, scene });
    }
    check(world, &spec)?;
    let scene = register(world, spec, entity);
    world.entity_mut(entity).insert(scene);
    if let Ok(mut opened) = world.get_entity_mut(entity) {
        opened.remove::<SceneSpec>();
    }
    Ok(())
}

/// Whether a scene can be opened with these values now.
fn check(world: &mut World, spec: &SceneSpec) -> Result<(), WorldError> {
    let size_ok = spec.size_m.is_finite() && spec.size_m.min_element() > 0.0;
    if !size_ok || !(1..=OBJECTS_MAX).contains(&spec.max_objects) {
        return Err(WorldError::InvalidScene {
            size_m: spec.size_m,
            max_objects: spec.max_objects,
        });
    }
    let scenes = world.get_resource_or_init::<Scenes>();
    // The last id is no scene: messages to clients use it for party members that are not in this world.
    if scenes.open.len() >= SCENES_MAX || scenes.opened == u32::MAX {
        return Err(WorldError::TooManyScenes { max: SCENES_MAX });
    }
    Ok(())
}

/// Adds a checked scene to the list, and returns its components. Before they are inserted: an observer of them may open another
/// scene, or despawn this one.
fn register(world: &mut World, spec: SceneSpec, entity: Entity) -> (SimScene, SceneIds) {
    let mut scenes = world.get_resource_or_init::<Scenes>();
    let id = SceneId(scenes.opened);
    scenes.opened += 1;
    scenes.open.insert(id, entity);
    world.write_message(SceneOpened { id, entity });
    let scene = SimScene {
        id,
        name: spec.name,
        size_m: spec.size_m,
    };
    (scene, SceneIds::new(id, spec.max_objects))
}

/// Closes a scene: despawns its objects, then the scene.
///
/// # Errors
/// [`WorldError::NoSuchScene`] when the entity is not an open scene.
pub fn close_scene(world: &mut World, scene: Entity) -> Result<(), WorldError> {
    let objects = world
        .get::<SceneIds>(scene)
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
        .get::<SceneIds>(entity)
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
