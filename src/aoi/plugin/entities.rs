//! The entity that has, or last had, each object id of a scene.

use bevy_ecs::entity::Entity;

use crate::memory::MemoryUse;
use crate::world::{Generation, ObjectId};

/// The entity of each id, kept until the id is reused: events about despawned objects name their entities, too.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(super) struct EntityByObjectId(Vec<Option<(Entity, Generation)>>);

impl EntityByObjectId {
    pub fn set(&mut self, id: ObjectId, entity: Entity, generation: Generation) {
        let place = id.0 as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        self.0[place] = Some((entity, generation));
    }

    pub fn generation(&self, id: ObjectId) -> Generation {
        self.get(id).map(|bearer| bearer.1).unwrap_or_default()
    }

    pub fn entity(&self, id: ObjectId) -> Option<Entity> {
        self.get(id).map(|bearer| bearer.0)
    }

    fn get(&self, id: ObjectId) -> Option<(Entity, Generation)> {
        self.0.get(id.0 as usize).copied().flatten()
    }
}
