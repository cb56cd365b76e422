//! How players' objects move, the same at both ends: the server checks and applies what a client asks for, a client walks ahead by the
//! same code.
//!
//! | file | holds |
//! |---|---|
//! | `ground` | tiles under positions in metres: which tile, whether a step is free |
//! | `check` | whether a player's move is allowed |
//! | `step` | where a player's motion leads |

mod check;
mod ground;
mod step;

pub use check::{MoveBudget, MoveError, MoveRules, check_move};
pub use ground::Ground;
pub use step::{PlayerStep, direction_of, step_m};
