//! Statistics of movement in a run: walkers, and the moves of players.

use bevy_ecs::prelude::*;
use serde::Serialize;

use throng::movement::MovementStats;

/// Walkers and moves over the run. See [`MovementStats`] for the definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MovementSummary {
    /// Walkers that reached the end of their path.
    pub arrived: u64,
    /// Steps of walkers that the map blocked.
    pub blocked_steps: u64,
    /// Objects on a blocked tile that were moved to a free one.
    pub pushed: u64,
    /// Moves of players that were applied.
    pub moves_accepted: u64,
    /// Moves of players that were refused; each is a correction of the client's prediction.
    pub moves_refused: u64,
}

/// The statistics so far.
pub(super) fn movement_summary(world: &World) -> MovementSummary {
    let stats = world.get_resource::<MovementStats>().copied();
    let MovementStats {
        arrived,
        blocked,
        pushed,
        moves_accepted,
        moves_refused,
        ..
    } = stats.unwrap_or_default();
    MovementSummary {
        arrived,
        blocked_steps: blocked,
        pushed,
        moves_accepted,
        moves_refused,
    }
}
