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
    /// Players' moves that were refused with [`MoveRefused`](super::MoveRefused): the object is where it was.
    pub moves_refused: u64,
    /// Accepted moves that ended elsewhere than the input asked for: steps in a direction that an obstacle turned along a wall, or stopped.
    /// These are the steps that a client without the map predicts wrongly. A step that ends at the border of the scene is not one of them,
    /// since every client knows the border. A move to a position is applied exactly or refused, so it is never corrected. Pushed and
    /// teleported objects are not counted here.
    pub moves_corrected: u64,
}
