//! Movement: moves walkers along their paths, and validates and applies players' moves.
//!
//! An object with [`MaxSpeed`] can be moved by its player: write [`MoveInput`](crate::world::MoveInput), or let the session do it. An
//! object with [`Walker`] follows the [`NavPath`](crate::nav::NavPath) that a [`PathRequest`](crate::nav::PathRequest) finds.
//! [`AttachedTo`] keeps an object at the position of another one, for example a spectator.
//!
//! ```text
//! MapEdited ──▶ [Push]     ──▶ objects on a blocked tile are moved to the nearest free tile
//! MoveInput ──▶ [Players]  ──▶ Position, Velocity, Heading, or MoveRefused
//! NavPath ────▶ [Walkers]  ──▶ Position, Velocity, Heading, WalkerArrived, or a new PathRequest
//!               [StopIdle] ──▶ players without input for some time stand still
//! AttachedTo ─▶ [Attach]   ──▶ Position, Velocity, Heading of the other object
//! ```
//!
//! Invariants:
//! - After `Move` no object that can walk is on a blocked tile, unless there is no free tile within
//!   [`MovementSettings::push_radius_tiles_max`].
//! - A walker moves at most its speed per tick, and never through a blocked tile or its corner.
//! - Over any time a player moves at most [`MoveRules::allowance_m`] in all, however many messages it sends: by default 10 % more than its
//!   speed allows, and the way of one second more. Delayed inputs are applied when they arrive, up to this limit; the rest is refused.
//! - Inputs that are duplicate or out of order are refused before they reach this module.
//!
//! Not provided: collisions between walkers. An object without [`MaxSpeed`] is never pushed: a door may stand in the wall that it closes.
//!
//! Cost: O(walkers + moves), a few bits of the map for each. Line-of-sight tests only at waypoints. No allocation per object.

// | file | contents |
// | `walk` | one step along waypoints, with smoothing |
// | `plugin` | `Walker`, `MaxSpeed`, the settings and the systems |
// | `throng_protocol::movement` | `Ground`, `check_move`, `PlayerStep`: validation and steps, shared with the client's prediction |

mod plugin;
#[cfg(test)]
mod tests;
mod walk;

pub use plugin::{
    AttachedTo, LastMove, MaxSpeed, MoveRefused, MovementPlugin, MovementSettings, MovementStats,
    MovementSystems, Walker, WalkerArrived,
};
pub use throng_protocol::movement::{
    Ground, MoveBudget, MoveError, MoveRules, PlayerStep, check_move, direction_of, step_m,
};
pub use walk::{WalkStatus, WalkStep, advance};
