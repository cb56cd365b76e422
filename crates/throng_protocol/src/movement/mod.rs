//! Movement of players, with the same code at both ends: the server validates and applies a client's moves, and the client predicts them.

// | file | contents |
// | `ground` | the tiles under positions in metres: which tile, whether a step is free |
// | `check` | whether a player's move is allowed |
// | `step` | where a player's motion leads |

mod check;
mod ground;
mod step;

pub use check::{MoveBudget, MoveError, MoveRules, check_move};
pub use ground::Ground;
pub use step::{PlayerStep, direction_of, step_m};
