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

    /// Adds a value of a component of objects under a unique name: `app.hash_field("health", |health: &Health| health.0)`. For one field
    /// of several, and for components of other crates. O(objects with the component) for each hash.
    fn hash_field<T: Component, V: StateHashed>(
        &mut self,
        name: &'static str,
        read: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> &mut Self;
}

impl ObjectHashAppExt for App {
    fn hash_component<T: Component + StateHashed>(&mut self, name: &'static str) -> &mut Self {
        add_component_part(self, name, T::hash)
    }

    fn hash_field<T: Component, V: StateHashed>(
        &mut self,
        name: &'static str,
        read: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> &mut Self {
        add_component_part(self, name, move |component, hasher| {
            read(component).hash(hasher);
        })
    }
}

/// Adds what `feed` writes about a component of each object, in an order that does not depend on the storage.
fn add_component_part<'a, T: Component>(
    app: &'a mut App,
    name: &'static str,
    feed: impl Fn(&T, &mut StateHasher) + Send + Sync + 'static,
) -> &'a mut App {
    let mut query = None;
    app.hash_part(name, move |world, hasher| {
        let query = query.get_or_insert_with(|| world.query::<(&Object, &T)>());
        let mut sum = 0u128;
        for (object, component) in query.iter(world) {
            let mut own = StateHasher::default();
            own.write_u64(object.key());
            own.write_u64(u64::from(object.generation().0));
            feed(component, &mut own);
            sum = sum.wrapping_add(own.finish());
        }
        hasher.write_u64(sum as u64);
        hasher.write_u64((sum >> 64) as u64);
    })
}

impl StateHashed for Object {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.kind().0));
    }
}

#[cfg(test)]
mod tests {
    use glam::Vec2;

    use super::*;
    use crate::server::Server;
    use crate::world::{InScene, Npc, Position, SceneSpec, open_scene};

    #[derive(Component, StateHashed)]
    struct Hunger(u16);

    #[derive(Component)]
    struct Thirst {
        level: u16,
        _shown: u8,
    }

    #[test]
    fn hashed_field_counts_like_a_component_with_this_value_only() {
        let hash = |level: u16, shown: u8, register: fn(&mut App)| {
            let mut server = Server::builder().configure(register).build();
            let scene = open_scene(server.world_mut(), SceneSpec::default(), ()).unwrap();
            let thirst = Thirst {
                level,
                _shown: shown,
            };
            let place = (Npc, InScene(scene), Position(Vec2::ONE));
            server.world_mut().spawn((place, Hunger(level), thirst));
            server.step(1);
            let mut objects = server.world_mut().query::<(&Object, &Thirst)>();
            assert_eq!(objects.iter(server.world()).count(), 1);
            server.state_hash()
        };
        let field: fn(&mut App) = |app| {
            app.hash_field("need", |thirst: &Thirst| thirst.level);
        };
        let component: fn(&mut App) = |app| {
            app.hash_component::<Hunger>("need");
        };
        assert_eq!(hash(5, 0, field), hash(5, 0, component));
        assert_eq!(hash(5, 0, field), hash(5, 1, field));
        assert_ne!(hash(5, 0, field), hash(6, 0, field));
    }
}
