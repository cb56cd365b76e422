//! Object components in the state hash.

use bevy_app::App;
use bevy_ecs::prelude::*;
pub use throng_core::hash::StateHashed;

use super::Object;
use crate::sim::{HashAppExt, StateHasher};

/// Adds components of objects to the state hash.
pub trait ObjectHashAppExt {
    /// Adds a component of objects under a unique name. O(objects with the component) for each hash.
    fn hash_component<T: Component + StateHashed>(&mut self, name: &'static str) -> &mut Self;
}

impl ObjectHashAppExt for App {
    fn hash_component<T: Component + StateHashed>(&mut self, name: &'static str) -> &mut Self {
        let mut query = None;
        self.hash_part(name, move |world, hasher| {
            let query = query.get_or_insert_with(|| world.query::<(&Object, &T)>());
            let mut sum = 0u128;
            for (object, component) in query.iter(world) {
                let mut own = StateHasher::default();
                own.write_u64(object.key());
                own.write_u64(u64::from(object.generation().0));
                component.hash(&mut own);
                sum = sum.wrapping_add(own.finish());
            }
            hasher.write_u64(sum as u64);
            hasher.write_u64((sum >> 64) as u64);
        })
    }
}

impl StateHashed for Object {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.kind().0));
    }
}
