//! Numbers of scenes and objects, and how an object is named beyond doubt. Plain values, without the ECS.

use std::fmt;

/// The number of a scene. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub struct SceneId(pub u32);

/// The number of an object in its scene: dense, from 1; 0 is the scene itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub struct ObjectId(pub u32);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How often an id was given out before: tells an object from those that had its id earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub struct Generation(pub u32);

/// An object as messages and files name it: never mistaken, also when the id is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub struct ObjectRef {
    /// The scene that it is in.
    pub scene: SceneId,
    /// Its number in that scene.
    pub id: ObjectId,
    /// Which bearer of that number.
    pub generation: Generation,
}
