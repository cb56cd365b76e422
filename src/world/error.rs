//! Errors of world functions.

use bevy_ecs::entity::Entity;
use glam::Vec2;
use thiserror::Error;
use throng_core::ids::{ObjectRef, SceneId};

use super::parties::PartyError;
use super::registry::KindId;

/// Why something could not be done to the world.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum WorldError {
    /// The entity is no open scene.
    #[error("no such scene: entity {scene} is not an open scene")]
    NoSuchScene {
        /// The entity that was given as a scene.
        scene: Entity,
    },
    /// The entity is no live object.
    #[error("no such object: entity {entity} is not a live object of a scene")]
    NoSuchObject {
        /// The entity that was given as an object.
        entity: Entity,
    },
    /// The entity asks for a place in a scene and is an object already.
    #[error(
        "entity {entity} is already object {} of scene {}: use `change_scene` to move it",
        object.id, object.scene.0
    )]
    AlreadyAnObject {
        /// The entity that asked.
        entity: Entity,
        /// The object that it is.
        object: ObjectRef,
    },
    /// The entity asks for a place in a scene and does not say where.
    #[error("entity {entity} has no position in scene {}: add `Position` with `Object::in_scene`", scene.0)]
    NoPosition {
        /// The entity that asked.
        entity: Entity,
        /// The scene that it was to come to.
        scene: SceneId,
    },
    /// The entity asks for a place in a scene and does not say what it is.
    #[error(
        "entity {entity} has no kind in scene {}: add `Player` or `Npc`, or call `of_kind` on `Object::in_scene`",
        scene.0
    )]
    NoKind {
        /// The entity that asked.
        entity: Entity,
        /// The scene that it was to come to.
        scene: SceneId,
    },
    /// The kind was never registered.
    #[error("no object kind with number {}: register it with `ObjectKinds` first", .0.0)]
    NoSuchKind(KindId),
    /// The scene holds as many objects as it can.
    #[error("scene {} is full: at most {max_objects} objects (`SceneSpec::max_objects`)", scene.0)]
    SceneFull {
        /// The scene that has no id left.
        scene: SceneId,
        /// Its `max_objects`.
        max_objects: u32,
    },
    /// The position is not in the scene.
    #[error(
        "position {position} m is outside scene {}: expected from (0, 0) to {size_m} m",
        scene.0
    )]
    OutsideScene {
        /// The scene asked for.
        scene: SceneId,
        /// The position asked for, in metres.
        position: Vec2,
        /// How large the scene is.
        size_m: Vec2,
    },
    /// A scene cannot be opened with these values.
    #[error(
        "invalid scene of {size_m} m with at most {max_objects} objects: expected a positive size and 1 to 1048576 objects"
    )]
    InvalidScene {
        /// The size asked for.
        size_m: Vec2,
        /// The number of objects asked for.
        max_objects: u32,
    },
    /// Whoever was to move an object to another scene left it where it was.
    #[error("scene change failed: entity {entity} is not in the scene of entity {scene}")]
    NotMoved {
        /// The entity of the object.
        entity: Entity,
        /// The entity of the scene.
        scene: Entity,
    },
    /// There are as many of something as there may be.
    #[error("too many {what}: at most {max}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// Too many scenes are open.
    #[error("too many scenes: at most {max} can be open at once")]
    TooManyScenes {
        /// How many scenes can be open at once.
        max: usize,
    },
    /// A party could not be made or joined.
    #[error(transparent)]
    Party(#[from] PartyError),
}
