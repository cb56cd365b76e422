//! The relationship between objects and their scene.

use std::iter::Copied;

use bevy_ecs::entity::{EntityIndexSet, EntityMapper, MapEntities, index_set};
use bevy_ecs::prelude::*;
use bevy_ecs::relationship::RelationshipSourceCollection;

use crate::memory::MemoryUse;

/// The scene that an entity is in. An entity that is spawned with it becomes an object of the scene, at the
/// [`Position`](super::Position) in the same bundle. Its kind is that of [`Player`](super::Player), [`Npc`](super::Npc) or a
/// [`KindId`](super::KindId) in the bundle.
///
/// It is handled as soon as the spawn or insert has been applied: then the entity has [`Object`](super::Object). Without a
/// position, a kind or an open scene the spawn is refused: a warning is logged and [`SpawnRefused`](super::SpawnRefused) is
/// written. A refused entity is not an object, keeps its other components, and is despawned at the end of the tick, so that no
/// incomplete object remains. To keep the entity, remove [`SpawnFailed`](super::SpawnFailed) before that; inserting `InScene`
/// again is another attempt.
///
/// - Inserting another scene on an object moves it to that scene, at rest, at its `Position`: one from the same bundle, or the
///   current one. On an error a warning is logged, and the object stays where it was.
///   [`change_scene`](super::ObjectEntityCommandsExt::change_scene) does the same for a scene and a position.
/// - Removing it takes the entity out of its scene: [`Object`](super::Object) is removed as well.
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
#[relationship(relationship_target = SceneObjects)]
pub struct InScene(pub Entity);

/// The entities that are [`InScene`] of this scene: its objects. Absent while there is none. Despawning the scene despawns them.
///
/// Spawn objects with `InScene` in their own bundle: `SceneObjects::spawn` and `related!` insert the relationship before the other
/// components, so the object has no position and no kind yet, and is refused.
///
/// The order depends on the history of the scene, and is the same in every run. For the order of object ids use
/// [`SceneIds`](super::SceneIds).
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::SceneObjects;
///
/// fn count(scenes: Query<(&SimScene, &SceneObjects)>, npcs: Query<(), With<Npc>>) {
///     for (scene, objects) in &scenes {
///         let npcs = objects.iter().filter(|&object| npcs.contains(object));
///         println!("{}: {} NPCs", scene.name(), npcs.count());
///     }
/// }
/// ```
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
