//! Errors of world functions.

use bevy_ecs::entity::Entity;
use glam::Vec2;
use thiserror::Error;
use throng_core::ids::{PartyId, PlayerId, SceneId};

use super::registry::KindId;

/// Why a change of the world failed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum WorldError {
    /// The entity is not an open scene.
    #[error("no such scene: entity {scene} is not an open scene; spawn a scene with `SceneSpec`")]
    NoSuchScene {
        /// The entity that was given as a scene.
        scene: Entity,
    },
    /// The entity is not a live object.
    #[error("no such object: entity {entity} is not a live object of a scene")]
    NoSuchObject {
        /// The entity that was given as an object.
        entity: Entity,
    },
    /// A [`SceneSpec`](super::SceneSpec) was inserted on an entity that is already an open scene.
    #[error("entity {entity} is already scene {}: spawn another entity for another scene", scene.0)]
    AlreadyAScene {
        /// The entity of the scene.
        entity: Entity,
        /// The scene that it is.
        scene: SceneId,
    },
    /// An entity without a position should enter a scene.
    #[error("entity {entity} has no position in scene {}: add `Position` with `InScene`", scene.0)]
    NoPosition {
        /// The entity.
        entity: Entity,
        /// The requested scene.
        scene: SceneId,
    },
    /// An entity without an object kind should enter a scene.
    #[error(
        "entity {entity} has no kind in scene {}: add `Player`, `Npc` or a `KindId` with `InScene`",
        scene.0
    )]
    NoKind {
        /// The entity.
        entity: Entity,
        /// The requested scene.
        scene: SceneId,
    },
    /// The kind was never registered.
    #[error("no object kind with number {}: register it with `ObjectKinds` first", .0.0)]
    NoSuchKind(KindId),
    /// The scene has the maximum number of objects.
    #[error("scene {} is full: at most {max_objects} objects (`SceneSpec::max_objects`)", scene.0)]
    SceneFull {
        /// The scene without a free id.
        scene: SceneId,
        /// Its `max_objects`.
        max_objects: u32,
    },
    /// The position is outside of the scene.
    #[error(
        "position {position} m is outside scene {}: expected from (0, 0) to {size_m} m",
        scene.0
    )]
    OutsideScene {
        /// The requested scene.
        scene: SceneId,
        /// The requested position, in metres.
        position: Vec2,
        /// Width and height of the scene, in metres.
        size_m: Vec2,
    },
    /// A scene cannot be opened with these values.
    #[error(
        "invalid scene of {size_m} m with at most {max_objects} objects: expected a positive size and 1 to 1048576 objects"
    )]
    InvalidScene {
        /// The requested size, in metres.
        size_m: Vec2,
        /// The requested number of objects.
        max_objects: u32,
    },
    /// The function that should move an object to another scene did not move it.
    #[error("scene change failed: entity {entity} is not in the scene of entity {scene}")]
    NotMoved {
        /// The entity of the object.
        entity: Entity,
        /// The entity of the scene.
        scene: Entity,
    },
    /// A limit was reached.
    #[error("too many {what}: at most {max}")]
    TooMany {
        /// What is limited.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// Too many scenes are open.
    #[error("too many scenes: at most {max} can be open at once")]
    TooManyScenes {
        /// The maximum number of open scenes.
        max: usize,
    },
    /// A party could not be created or joined.
    #[error(transparent)]
    Party(#[from] PartyError),
}

/// Why a party could not be created or joined.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartyError {
    /// Too many parties exist.
    #[error("too many parties: at most {max} can exist at once")]
    TooMany {
        /// The maximum number of parties at once.
        max: usize,
    },
    /// The party does not exist, or has ended.
    #[error("party {} does not exist", .0.0)]
    NotFound(PartyId),
    /// The party has five members.
    #[error("party {} is full: it has five members", .0.0)]
    Full(PartyId),
    /// The player is in a party already.
    #[error("player {} is already in party {}", player.0, party.0)]
    AlreadyMember {
        /// The player that tried to join.
        player: PlayerId,
        /// The party that it is in.
        party: PartyId,
    },
    /// The entity has no [`PlayerId`].
    #[error("entity {entity} has no player: it does not exist, or has no `PlayerId`")]
    NoPlayer {
        /// The entity whose player should join or leave a party.
        entity: Entity,
    },
}
