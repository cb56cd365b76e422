//! Ids of scenes, objects, players and their groups. Plain values; components with the feature `bevy`.

use std::fmt;

#[cfg(feature = "reflect")]
use bevy_ecs::prelude::ReflectComponent;
use serde::{Deserialize, Serialize};

use crate::hash::StateHashed;
use crate::memory::MemoryUse;

/// The id of a scene. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct SceneId(pub u32);

/// The id of an object in its scene: dense, from 1; 0 is the scene itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct ObjectId(pub u32);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How often an id was used before: distinguishes an object from earlier ones with the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct Generation(pub u32);

/// An object reference for messages and files: stays unique when the id is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct ObjectRef {
    /// The scene that it is in.
    pub scene: SceneId,
    /// Its id in that scene.
    pub id: ObjectId,
    /// The generation of that id.
    pub generation: Generation,
}

/// Ids of players and their groups: immutable components, which are replaced and never changed.
macro_rules! component_ids {
    ($($(#[$doc:meta])* $id:ident($number:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(Serialize, Deserialize, StateHashed, MemoryUse)]
        #[cfg_attr(feature = "bevy", derive(bevy_ecs::prelude::Component), component(immutable))]
        #[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), reflect(Component))]
        pub struct $id(pub $number);
    )*};
}
component_ids! {
    /// A player: persistent over sessions, scenes and servers. As a component, on the object that the player controls.
    PlayerId(u64);

    /// A side in a conflict. `u32::MAX` means no team, in views and in messages to clients. In an app with the `WorldPlugin` of
    /// `throng`, inserting, replacing or removing the component writes `AffiliationChanged`; so do
    /// [`PartyId`] and [`GuildId`].
    TeamId(u32);

    /// Up to five players that play together. In `throng` set through `join_party` and `leave_party`.
    PartyId(u32);

    /// A permanent group of players. `u32::MAX` means none, as for a [`TeamId`].
    GuildId(u32);
}
