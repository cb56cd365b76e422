//! What all systems share: scenes, the objects in them, who they are and where they stand.
//!
//! ```text
//! open_scene ─▶ Scene + SceneObjects ◀─ id, generation ─ Object (+ Position, Velocity, Heading, Floor, …)
//!                         ▲ Object::in_scene, spawn_object, change_scene; despawn of any kind gives the id back
//! ```
//! Other systems learn of changes through [`Spawned`], [`Despawned`], [`Teleported`], [`SceneChanged`],
//! [`AffiliationChanged`], [`SceneOpened`] and [`SceneClosed`].
//!
//! | file | holds |
//! |---|---|
//! | `scenes` | scenes open and close |
//! | `scene_objects` | the ids of a scene: who has which |
//! | `objects` | objects come, go, are put elsewhere |
//! | `spawning` | spawning by components and by commands; what a player and an NPC are made of |
//! | `unplaced` | the mark of an entity that has no place yet |
//! | `registry` | the registered kinds |
//! | `parties` | who belongs to whom |
//! | `input` | what players ask their objects to do |
//! | `hash` | components of objects in the state hash |
//! | `error` | why something could not be done |
//! | `plugin` | what is registered, and when ids are handed over |
//! | `throng_core` | numbers of scenes, objects and players; where an object is; classes and visibility |
//!
//! Invariants: a live object has exactly one place in its scene's [`SceneObjects`], and that place knows its entity; no two
//! live objects share (scene, id); an id is reused only after its `Despawned` went through a whole Replicate, and then with
//! the next generation; scene ids are never reused. Id 0 is the scene itself and no object's.

mod error;
mod hash;
mod input;
mod objects;
mod parties;
mod plugin;
mod registry;
mod scene_objects;
mod scenes;
mod spawning;
mod unplaced;

pub use error::WorldError;
pub use hash::{ObjectHashAppExt, StateHashed};
pub use input::MoveInput;
pub use objects::{
    Despawned, Object, SceneChanged, Spawned, Teleported, change_scene, despawn_object,
    spawn_object, teleport,
};
pub use parties::{
    AffiliationChanged, PARTIES_MAX, PARTY_PLAYERS_MAX, Parties, PartyError, Players, join_party,
    leave_party,
};
pub use plugin::WorldPlugin;
pub use registry::{KindId, ObjectKind, ObjectKinds};
pub use scene_objects::SceneObjects;
pub use scenes::{
    OBJECTS_MAX, Scene, SceneClosed, SceneOpened, SceneSpec, Scenes, close_scene, open_scene,
};
pub use spawning::{Npc, ObjectCommandsExt, ObjectRequest, Player, SpawnRefused};
pub use throng_core::ids::{
    Generation, GuildId, ObjectId, ObjectRef, PartyId, PlayerId, SceneId, TeamId,
};
pub use throng_core::kinds::{KindClass, Visibility};
pub use throng_core::motion::PlayerMotion;
pub use throng_core::spatial::{Floor, Heading, Position, Velocity};
pub use unplaced::Unplaced;
