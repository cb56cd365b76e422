//! Counters of movement.

use bevy_ecs::prelude::*;

/// Counters of movement since the server started.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MovementStats {
    /// Steps of walkers, one per walker and tick.
    pub walker_steps: u64,
    /// Walkers that reached the end of their path.
    pub arrived: u64,
    /// Steps that the map blocked; a new path is requested.
    pub blocked: u64,
    /// Objects on a blocked tile that were moved to a free one.
    pub pushed: u64,
    /// Objects on a blocked tile without a free tile near enough.
    pub push_failures: u64,
    /// Players' moves that were applied, without turns in place.
    pub moves_accepted: u64,
    /// Players' moves that were refused.
    pub moves_refused: u64,
}
