//! How kinds of objects differ to those who look: their class and their visibility. Plain values, without the ECS.

use serde::{Deserialize, Serialize};

/// How far away an object of a kind is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ViewRange {
    /// In the nine grid cells around a viewer; counts against the viewer's cap.
    #[default]
    Near,
    /// In the nine cells of a coarser grid whose cells are this many grid cells wide; outside caps.
    Far(u8),
    /// Everywhere in the scene (a world boss, the state of the scene); outside caps.
    Scene,
}

/// The classes of kinds that a viewer's caps tell apart.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[repr(u8)]
pub enum ObjectCategory {
    /// Characters that a player controls.
    Player,
    /// Characters that the server controls: monsters, guards, pets.
    #[default]
    Npc,
    /// What is no character: doors, projectiles, loot.
    Thing,
}

impl ObjectCategory {
    /// All classes, in the order in which caps are listed.
    pub const ALL: [Self; 3] = [Self::Player, Self::Npc, Self::Thing];

    /// The place of this class in a list of caps.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}
