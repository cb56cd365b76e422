//! Scenes, the objects in them, and their ids, kinds, positions and affiliations. All other modules use them.
//!
//! Open a scene by spawning a [`SceneSpec`], or with [`open_scene`]. Spawn an entity with [`InScene`] and a [`Position`], or call
//! [`spawn_object`]. Move it by writing its `Position`, with [`teleport`], with another `InScene`, or with [`change_scene`]. Despawn
//! it in any way.
//!
//! ```text
//! SceneSpec, open_scene ─▶ SimScene + SceneIds ◀─ id, generation ─ Object (+ Position, Velocity, Heading, Floor, …)
//!                          SceneObjects ◀─────────────────────── InScene
//!                                     ▲ spawn, spawn_object, change_scene; every kind of despawn releases the id
//! ```
//!
//! Other modules read changes from the messages [`ObjectSpawned`], [`ObjectDespawned`], [`ObjectTeleported`], [`ObjectChangedScene`], [`AffiliationChanged`],
//! [`SceneOpened`] and [`SceneClosed`].
//!
//! Invariants:
//! - A live object has exactly one slot in the [`SceneIds`] of its scene, and this slot has its entity. Its [`InScene`] is that scene.
//! - No two live objects have the same scene and id.
//! - An id is used again only after its `ObjectDespawned` was replicated, and then with the next generation. Scene ids are never used again.
//! - Id 0 is the scene itself, never an object.

// | file | contents |
// | `scenes` | opening and closing scenes |
// | `scene_ids` | the ids of a scene and their entities |
// | `in_scene` | the relationship between objects and their scene |
// | `membership` | spawning, changing scenes and leaving them by this relationship |
// | `objects` | spawn, despawn, teleport and change of scene |
// | `spawning` | players and NPCs; spawning by commands |
// | `commands` | commands for an object: teleport, change of scene, parties |
// | `registry` | registered object kinds |
// | `parties` | teams, parties and guilds |
// | `input` | requests of players to their objects |
// | `hash` | object components in the state hash |
// | `error` | errors |
// | `plugin` | registration, and when ids are released |
// | `throng_core` | ids of scenes, objects and players; positions; object classes and visibility |

mod commands;
mod error;
mod hash;
mod in_scene;
mod input;
mod membership;
mod objects;
mod parties;
mod plugin;
mod registry;
mod scene_ids;
mod scenes;
mod spawning;
#[cfg(test)]
mod tests;

pub use commands::ObjectEntityCommandsExt;
pub use error::{PartyError, WorldError};
pub use hash::{ObjectHashAppExt, StateHashed};
pub use in_scene::{InScene, SceneObjectSet, SceneObjects};
pub use input::MoveInput;
pub(crate) use membership::is_spawn_pending;
pub use membership::{SpawnFailed, SpawnRefused};
pub use objects::{
    Object, ObjectChangedScene, ObjectDespawned, ObjectSpawned, ObjectTeleported, change_scene,
    despawn_object, spawn_object, teleport,
};
pub use parties::{
    AffiliationChanged, PARTIES_MAX, PARTY_PLAYERS_MAX, Parties, Players, join_party, leave_party,
    set_party_members,
};
pub use plugin::WorldPlugin;
pub use registry::{KindId, ObjectKind, ObjectKinds};
pub use scene_ids::SceneIds;
pub use scenes::{
    OBJECTS_MAX, SceneClosed, SceneOpened, SceneSpec, Scenes, SimScene, close_scene, open_scene,
};
pub use spawning::{Npc, ObjectCommandsExt, Player};
pub use throng_core::ids::{
    Generation, GuildId, ObjectId, ObjectRef, PartyId, PlayerId, SceneId, TeamId,
};
pub use throng_core::kinds::{ObjectCategory, ViewRange};
pub use throng_core::motion::PlayerMotion;
pub use throng_core::spatial::{Floor, Heading, Position, Velocity};
