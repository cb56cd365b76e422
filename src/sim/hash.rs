//! The state hash: 128 bits over all game state, equal for every run with the same seed and inputs.
//!
//! ```text
//! part "world" ─┐
//! part "views" ─┼─▶ each hashed separately ─▶ combined in the order of names ─▶ 128 bits ─▶ 64 shown
//! part …       ─┘
//! ```
//! A part is a function that feeds a [`StateHasher`]. Parts over many objects hash each object separately and add the results, so that the
//! storage order of the ECS has no effect. The hash is computed on request ([`state_hash`]) and costs nothing otherwise.

use bevy_app::App;
use bevy_ecs::prelude::*;
pub use throng_core::hash::{StateHash, StateHasher};

use crate::memory::{MemoryAppExt, MemoryUse};

type HashPart = Box<dyn FnMut(&mut World, &mut StateHasher) + Send + Sync>;

/// The registered parts, sorted by name.
#[derive(Resource, Default, MemoryUse)]
struct HashParts(Vec<(&'static str, HashPart)>);

/// Registers parts of the state hash.
pub trait HashAppExt {
    /// Adds a part of the state. Registering the same name again replaces the part.
    fn hash_part(
        &mut self,
        name: &'static str,
        part: impl FnMut(&mut World, &mut StateHasher) + Send + Sync + 'static,
    ) -> &mut Self;
}

impl HashAppExt for App {
    fn hash_part(
        &mut self,
        name: &'static str,
        part: impl FnMut(&mut World, &mut StateHasher) + Send + Sync + 'static,
    ) -> &mut Self {
        if !self.world().contains_resource::<HashParts>() {
            self.init_resource::<HashParts>()
                .count_memory::<HashParts>("sim");
        }
        let mut parts = self.world_mut().resource_mut::<HashParts>();
        let part: HashPart = Box::new(part);
        match parts.0.binary_search_by_key(&name, |&(name, _)| name) {
            Ok(place) => parts.0[place].1 = part,
            Err(place) => parts.0.insert(place, (name, part)),
        }
        self
    }
}

/// The current hash of all registered state. O(state).
pub fn state_hash(world: &mut World) -> StateHash {
    let Some(mut parts) = world.get_resource_mut::<HashParts>() else {
        return StateHash::default();
    };
    // Parts use the whole world, so the list is moved out and the resource stays.
    let mut parts = std::mem::take(&mut parts.0);
    let mut whole = StateHasher::default();
    for (name, part) in &mut parts {
        let mut hasher = StateHasher::default();
        part(world, &mut hasher);
        let hash = hasher.finish();
        tracing::trace!(
            part = name,
            hash = format_args!("{hash:032x}"),
            "state hash"
        );
        whole.write_bytes(name.as_bytes());
        whole.write_u64(hash as u64);
        whole.write_u64((hash >> 64) as u64);
    }
    world.resource_mut::<HashParts>().0 = parts;
    StateHash(whole.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_count_by_name_and_not_by_the_order_of_registration() {
        let app = |names: [&'static str; 2]| {
            let mut app = App::new();
            for name in names {
                app.hash_part(name, move |_, hasher| hasher.write_u64(name.len() as u64));
            }
            state_hash(app.world_mut())
        };
        assert_eq!(app(["a", "bc"]), app(["bc", "a"]));
        assert_ne!(app(["a", "bc"]), app(["a", "bcd"]));
    }
}
