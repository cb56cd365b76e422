//! The properties of kinds of objects that views use: category and view range. Plain values, without the ECS.

use serde::{Deserialize, Serialize};

/// From how far away an object of a kind is visible.
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

/// The categories of kinds that the caps of a viewer distinguish.
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
    /// Not a character: doors, projectiles, loot.
    Thing,
}

impl ObjectCategory {
    /// All categories, in the order in which caps are listed.
    pub const ALL: [Self; 3] = [Self::Player, Self::Npc, Self::Thing];

    /// The index of this category in a list of caps.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}
