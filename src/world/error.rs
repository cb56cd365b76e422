//! Why something could not be done to the world.

use glam::Vec2;
use thiserror::Error;

use super::ids::SceneId;
use super::parties::PartyError;
use super::registry::KindId;

/// Why something could not be done to the world.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum WorldError {
    /// The entity is no open scene.
    #[error("no such scene: the entity is not an open scene")]
    NoSuchScene,
    /// The entity is no live object.
    #[error("no such object: the entity is not a live object of a scene")]
    NoSuchObject,
    /// The kind was never registered.
    #[error("no object kind with number {}: register it with `ObjectKinds` first", .0.0)]
    NoSuchKind(KindId),
    /// The scene holds as many objects as it can.
    #[error("scene {} is full: it holds at most {max_objects} objects", scene.0)]
    SceneFull {
        /// The scene that has no id left.
        scene: SceneId,
        /// Its `max_objects`.
        max_objects: u32,
    },
    /// The position is not in the scene.
    #[error("position {position} m is outside the scene: expected from (0, 0) to {size_m} m")]
    OutsideScene {
        /// The position asked for, in metres.
        position: Vec2,
        /// How large the scene is.
        size_m: Vec2,
    },
    /// A scene cannot be opened with these values.
    #[error(
        "a scene of {size_m} m with {max_objects} objects at most: expected a positive size and 1 to 1048576 objects"
    )]
    BadScene {
        /// The size asked for.
        size_m: Vec2,
        /// The number of objects asked for.
        max_objects: u32,
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
