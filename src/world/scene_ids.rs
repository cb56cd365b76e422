//! The ids of a scene: which entity has which, and when an id may be used again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bevy_ecs::prelude::*;
use throng_core::ids::{Generation, ObjectId, ObjectRef, SceneId};

use super::error::WorldError;
use crate::memory::MemoryUse;

/// The ids of a scene and their entities; on the scene's entity. [`SceneObjects`](super::SceneObjects) has the same entities as a
/// relationship.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::SceneIds;
///
/// fn find_empty(scenes: Query<(&SimScene, &SceneIds)>) {
///     for (scene, ids) in &scenes {
///         if ids.is_empty() {
///             println!("{} is empty", scene.name());
///         }
///     }
/// }
/// ```
#[derive(Component, Debug, MemoryUse)]
pub struct SceneIds {
    scene: SceneId,
    slots: Vec<ObjectSlot>,
    /// Free ids, the lowest first, so that they stay dense.
    free: BinaryHeap<Reverse<u32>>,
    /// Released ids whose `ObjectDespawned` was not replicated yet.
    released: Vec<u32>,
    /// Ids that were released before the Locate of this tick, so that its Replicate handles them.
    releasing: Vec<u32>,
    max_objects: u32,
    live: u32,
}

#[derive(Clone, Copy, Debug)]
struct ObjectSlot {
    entity: Option<Entity>,
    generation: Generation,
}

impl SceneIds {
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
            releasing: Vec::new(),
            max_objects,
            live: 0,
        }
    }

    /// The number of live objects in the scene.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.live
    }

    /// Whether the scene has no live objects.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The maximum number of objects.
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

    pub(super) fn allocate(&mut self, entity: Entity) -> Result<ObjectRef, WorldError> {
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

    pub(super) fn release(&mut self, id: ObjectId, generation: Generation) {
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

    /// Called when Locate begins: ids released so far are replicated in this tick.
    pub(super) fn begin_release(&mut self) {
        self.releasing.append(&mut self.released);
    }

    /// Called when Replicate has ended: ids that were replicated are free again.
    pub(super) fn finish_release(&mut self) {
        self.free.extend(self.releasing.drain(..).map(Reverse));
    }
}
