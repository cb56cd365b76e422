//! Membership: the scene that an entity is in, as a relationship.
//!
//! ```text
//! commands.spawn((Player, InScene(scene), Position(at), …))
//!     ─▶ commands are applied ─▶ Object, ObjectSpawned
//!                              └ refused ─▶ SpawnRefused, SpawnFailed ─ end of the tick ─▶ despawned
//! ```
//! Ids are assigned in the order in which spawns are applied: that of the commands of a system, and of the systems in their schedule. The
//! order of entities or archetypes has no effect, so a run is reproducible, as with [`spawn_object`](super::spawn_object), which uses the
//! same list of ids.

use std::iter::Copied;

use bevy_ecs::entity::{EntityIndexSet, EntityMapper, MapEntities, index_set};
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::relationship::RelationshipSourceCollection;
use bevy_ecs::world::DeferredWorld;
use throng_core::spatial::Position;
use tracing::warn;

use super::error::WorldError;
use super::objects::{Object, change_scene, make_object};
use super::scenes::SimScene;
use crate::memory::MemoryUse;

/// The scene that an entity is in. An entity that is spawned with it becomes an object of the scene, at the [`Position`] in the
/// same bundle. Its kind is that of [`Player`](super::Player), [`Npc`](super::Npc) or a [`KindId`](super::KindId) in the
/// bundle.
///
/// It is handled as soon as the spawn or insert has been applied: then the entity has [`Object`]. Without a position, a kind or
/// an open scene the spawn is refused: a warning is logged and [`SpawnRefused`] is written. A refused entity is not an object,
/// keeps its other components, and is despawned at the end of the tick, so that no incomplete object remains. To keep the
/// entity, remove [`SpawnFailed`] before that; inserting `InScene` again is another attempt.
///
/// - Inserting another scene on an object moves it to that scene, at rest, at its `Position`: one from the same bundle, or the
///   current one. On an error a warning is logged, and the object stays where it was.
///   [`change_scene`](super::ObjectEntityCommandsExt::change_scene) does the same for a scene and a position.
/// - Removing it takes the entity out of its scene: [`Object`] is removed as well.
/// - A clone of the entity enters the same scene as an object of its own.
/// - Despawning the scene despawns the entity.
///
/// Cost: O(1) in addition to Bevy's spawn.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// # fn f(mut commands: Commands, town: Entity, dungeon: Entity) {
/// let guard = commands.spawn((Npc, InScene(town), Position(Vec2::new(10.0, 20.0)))).id();
/// let at = Position(Vec2::new(12.0, 20.0));
/// commands.spawn((KindId::DOOR, Viewable::default(), InScene(town), at));
///
/// commands.entity(guard).insert((InScene(dungeon), Position(Vec2::new(3.0, 4.0))));
/// # }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(on_remove = on_membership_removed)]
#[relationship(relationship_target = SceneObjects)]
pub struct InScene(pub Entity);

/// The entities that are [`InScene`] of this scene: its objects. Absent while there is none. Despawning the scene despawns them.
///
/// The order depends on the history of the scene, and is the same in every run. For the order of object ids use
/// [`SceneIds`](super::SceneIds).
#[derive(Component, Debug, MemoryUse)]
#[relationship_target(relationship = InScene, linked_spawn)]
pub struct SceneObjects(SceneObjectSet);

impl SceneObjects {
    /// Whether an entity is in the scene. O(1).
    #[must_use]
    pub fn contains(&self, entity: Entity) -> bool {
        self.0.0.contains(&entity)
    }
}

/// The collection of [`SceneObjects`]. Insert and remove are O(1); about 30 bytes per object.
///
/// A removed entity is replaced by the last one, so the order depends on the inserts and removals and not on the entities'
/// indexes.
#[derive(Debug, Default)]
pub struct SceneObjectSet(EntityIndexSet);

impl RelationshipSourceCollection for SceneObjectSet {
    type SourceIter<'a> = Copied<index_set::Iter<'a, Entity>>;

    fn new() -> Self {
        Self::default()
    }

    fn with_capacity(capacity: usize) -> Self {
        Self(EntityIndexSet::with_capacity(capacity))
    }

    fn reserve(&mut self, additional: usize) {
        self.0.reserve(additional);
    }

    fn add(&mut self, entity: Entity) -> bool {
        self.0.insert(entity)
    }

    fn remove(&mut self, entity: Entity) -> bool {
        self.0.swap_remove(&entity)
    }

    fn iter(&self) -> Self::SourceIter<'_> {
        self.0.iter().copied()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    fn extend_from_iter(&mut self, entities: impl IntoIterator<Item = Entity>) {
        self.0.extend(entities);
    }
}

impl MapEntities for SceneObjectSet {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        let mapped = self.0.iter().map(|&entity| mapper.get_mapped(entity));
        self.0 = mapped.collect();
    }
}

impl MemoryUse for SceneObjectSet {
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

/// A spawn was refused; see [`InScene`].
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
/// its [`SceneObjects`]. An observer, since its commands follow those of Bevy's hook for relationships.
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
fn on_membership_removed(mut world: DeferredWorld, context: HookContext) {
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
