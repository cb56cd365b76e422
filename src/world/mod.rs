//! Scenes, the objects in them, and their ids, kinds, positions and affiliations. All other modules use them.
//!
//! Open a scene with [`open_scene`]. Spawn an entity with [`Object::in_scene`] and a [`Position`], or call [`spawn_object`]. Move it by writing
//! its `Position`, with [`teleport`], or with [`change_scene`]. Despawn it in any way.
//!
//! ```text
//! open_scene ─▶ SimScene + SceneObjects ◀─ id, generation ─ Object (+ Position, Velocity, Heading, Floor, …)
//!                         ▲ Object::in_scene, spawn_object, change_scene; every kind of despawn releases the id
//! ```
//!
//! Other modules read changes from the messages [`ObjectSpawned`], [`ObjectDespawned`], [`ObjectTeleported`], [`ObjectChangedScene`], [`AffiliationChanged`],
//! [`SceneOpened`] and [`SceneClosed`].
//!
//! Invariants:
//! - A live object has exactly one slot in the [`SceneObjects`] of its scene, and this slot has its entity.
//! - No two live objects have the same scene and id.
//! - An id is used again only after its `ObjectDespawned` was replicated, and then with the next generation. Scene ids are never used again.
//! - Id 0 is the scene itself, never an object.
//!
//! | file | contents |
//! |---|---|
//! | `scenes` | opening and closing scenes |
//! | `scene_objects` | the ids of a scene and their entities |
//! | `objects` | spawn, despawn, teleport and change of scene |
//! | `spawning` | spawning by components and commands; required components of players and NPCs |
//! | `commands` | commands for an object: teleport, change of scene, parties |
//! | `spawn_pending` | marker of an entity whose spawn is pending |
//! | `registry` | registered object kinds |
//! | `parties` | teams, parties and guilds |
//! | `input` | requests of players to their objects |
//! | `hash` | object components in the state hash |
//! | `error` | errors |
//! | `plugin` | registration, and when ids are released |
//! | `throng_core` | ids of scenes, objects and players; positions; object classes and visibility |

mod commands;
mod error;
mod hash;
mod input;
mod objects;
mod parties;
mod plugin;
mod registry;
mod scene_objects;
mod scenes;
mod spawn_pending;
mod spawning;

pub use commands::ObjectEntityCommandsExt;
pub use error::WorldError;
pub use hash::{ObjectHashAppExt, StateHashed};
pub use input::MoveInput;
pub use objects::{
    Object, ObjectChangedScene, ObjectDespawned, ObjectSpawned, ObjectTeleported, change_scene,
    despawn_object, spawn_object, teleport,
};
pub use parties::{
    AffiliationChanged, PARTIES_MAX, PARTY_PLAYERS_MAX, Parties, PartyError, Players, join_party,
    leave_party,
};
pub use plugin::WorldPlugin;
pub use registry::{KindId, ObjectKind, ObjectKinds};
pub use scene_objects::SceneObjects;
pub use scenes::{
    OBJECTS_MAX, SceneClosed, SceneOpened, SceneSpec, Scenes, SimScene, close_scene, open_scene,
};
pub use spawn_pending::SpawnPending;
pub use spawning::{Npc, ObjectCommandsExt, Player, SpawnRefused, SpawnRequest};
pub use throng_core::ids::{
    Generation, GuildId, ObjectId, ObjectRef, PartyId, PlayerId, SceneId, TeamId,
};
pub use throng_core::kinds::{ObjectCategory, ViewRange};
pub use throng_core::motion::PlayerMotion;
pub use throng_core::spatial::{Floor, Heading, Position, Velocity};
