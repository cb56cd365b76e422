//! What all systems share: scenes, the objects in them, who they are and where they stand.
//!
//! ```text
//! open_scene ─▶ Scene + SceneObjects ◀─ id, generation ─ Object (+ Position, Velocity, Heading, Floor, …)
//!                                          ▲ spawn_object, change_scene; despawn of any kind gives the id back
//! ```
//! Other systems learn of changes through [`Spawned`], [`Despawned`], [`Teleported`], [`SceneChanged`],
//! [`StandingChanged`], [`SceneOpened`] and [`SceneClosed`].
//!
//! Invariants: a live object has exactly one place in its scene's [`SceneObjects`], and that place knows its entity; no two
//! live objects share (scene, id); an id is reused only after its `Despawned` went through a whole Replicate, and then with
//! the next generation; scene ids are never reused. Id 0 is the scene itself and no object's.

mod hash;
mod input;
pub mod kinds;
mod objects;
mod parties;
mod plugin;
mod registry;
mod scenes;
mod spatial;

pub use hash::{ObjectHashAppExt, StateHashed};
pub use input::MoveInput;
pub use kinds::{KindClass, Visibility};
pub use objects::{
    Despawned, Generation, Object, ObjectId, ObjectRef, SceneChanged, SceneObjects, Spawned,
    Teleported, change_scene, despawn_object, spawn_object, teleport,
};
pub use parties::{
    GuildId, PARTIES_MAX, PARTY_PLAYERS_MAX, Parties, PartyId, PlayerId, Players, StandingChanged,
    TeamId, join_party, leave_party,
};
pub use plugin::{WorldError, WorldPlugin};
pub use registry::{KindId, ObjectKind, ObjectKinds};
pub use scenes::{
    OBJECTS_MAX, Scene, SceneClosed, SceneId, SceneOpened, SceneSpec, Scenes, close_scene,
    open_scene,
};
pub use spatial::{Floor, Heading, Position, Velocity};
