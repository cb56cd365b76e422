//! Counters of movement.

use bevy_ecs::prelude::*;

/// What movement has done since the server began: counters that only grow.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MovementStats {
    /// Steps of walkers, one a walker and tick.
    pub walker_steps: u64,
    /// Walkers that came to the end of their path.
    pub arrived: u64,
    /// Steps that the map did not let through; a new path is asked for.
    pub blocked: u64,
    /// Objects that stood on a blocked tile and were put on a free one.
    pub pushed: u64,
    /// Objects that stood on a blocked tile, and there was no free one near enough.
    pub push_failures: u64,
    /// Players' moves that were applied, mere turns not counted.
    pub moves_accepted: u64,
    /// Players' moves that were not allowed.
    pub moves_refused: u64,
}
