//! Movement: walkers follow their paths, players' moves are checked and applied.
//!
//! ```text
//! MapEdited ──▶ [Push]    ──▶ whoever stands on a blocked tile is put on the nearest free one
//! MoveInput ──▶ [Players] ──▶ Position, Velocity, Heading, or MoveRefused
//! Path ───────▶ [Walkers] ──▶ Position, Velocity, Heading, Arrived, or a new PathRequest
//!               [Rest]    ──▶ players that sent nothing for a while stand still
//! Follows ────▶ [Follow]  ──▶ Position, Velocity, Heading of the other: spectators
//! ```
//! | file | holds |
//! |---|---|
//! | `walk` | how far a walker comes along its waypoints, smoothing as it reaches them |
//! | `plugin` | [`Walker`], [`Speed`], the settings, and the systems of the tick |
//! | `throng_protocol::movement` | [`Ground`], [`check_move`], [`PlayerStep`]: what is allowed and where it leads, the code that a client predicts by, too |
//!
//! Invariants: after `Move` nobody that can walk stands on a blocked tile, unless there is no free one within
//! [`MovementSettings::push_radius_tiles_max`]; a walker comes no farther in a tick than its speed allows and never
//! through a blocked tile or its corner; a player never comes farther over any time than [`MoveRules::allowance_m`], however many
//! messages it sends: inputs that come late are walked when they come, as far as that goes, and what goes beyond it is refused.
//! Inputs that come twice, out of order or with numbers that run backwards are refused before they come here.
//!
//! Deliberately absent: walkers do not collide with each other. Objects without [`Speed`] are furniture: a door may stand
//! in the wall that it closes, and is never pushed.
//!
//! Cost: O(walkers + moves), a few bits of the map each; lines of sight only at waypoints; nothing is allocated for an
//! object.

mod plugin;
#[cfg(test)]
mod tests;
mod walk;

pub use plugin::{
    Arrived, Follows, LastMove, MoveRefused, MovementPlugin, MovementSettings, MovementStats,
    MovementSystems, Speed, Walker,
};
pub use throng_protocol::movement::{
    Credit, Ground, MoveRules, PlayerStep, Refusal, check_move, direction_of, step_m,
};
pub use walk::{WalkEnd, WalkStep, advance};
