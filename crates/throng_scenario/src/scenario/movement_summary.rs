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
    /// Moves of players that were refused: too far for the time, or into an obstacle. The object stays where it was.
    pub moves_refused: u64,
    /// Accepted moves of players that ended elsewhere than the input asked for: steps in a direction that an obstacle turned along a
    /// wall, or stopped. Moves to a position, such as those of a scenario's own crowds, are accepted exactly or refused.
    pub moves_corrected: u64,
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
        moves_corrected,
        ..
    } = stats.unwrap_or_default();
    MovementSummary {
        arrived,
        blocked_steps: blocked,
        pushed,
        moves_accepted,
        moves_refused,
        moves_corrected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_a_counter_of_its_own() {
        let mut world = World::new();
        world.insert_resource(MovementStats {
            walker_steps: 1,
            arrived: 2,
            blocked: 3,
            pushed: 4,
            push_failures: 5,
            moves_accepted: 6,
            moves_refused: 7,
            moves_corrected: 8,
        });
        let figures = serde_json::to_value(movement_summary(&world)).unwrap();
        let expected = serde_json::json!({
            "arrived": 2,
            "blocked_steps": 3,
            "pushed": 4,
            "moves_accepted": 6,
            "moves_refused": 7,
            "moves_corrected": 8,
        });
        assert_eq!(figures, expected);
    }
}
