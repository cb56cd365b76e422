//! Messages to players, wherever they are, and to all nodes.
//!
//! ```text
//! send ─┬─ location cached ─────────────────────────────▶ one bus message per node ─▶ deliver: who is here?
//!       └─ unknown ─▶ read rows, all players at once ─────▲                             ├─ here ─▶ the game
//!                       ▲                                                               └─ not here
//!                       └──────────── returned with its players ◀─────────────────────────┘
//! ```
//!
//! A cached location may be wrong, which is harmless: a node that gets a message for a player that it does not have returns it at once,
//! and the sender reads the row. If the row was read before, the player is about to arrive, so the message waits for it for
//! [`hold_ms`](MessengerSettings::hold_ms) first. A message is sent [`sends_max`](MessengerSettings::sends_max) times at most after reads.
//!
//! Messages may be lost, such as with a node that dies. A player gets a message at most once. Messages of one node to a player that stays arrive
//! in order; those to a player that moves may overtake each other.
//!
//! | file | contains |
//! |---|---|
//! | `settings` | limits, counters |
//! | `locations` | the cache of who is where |
//! | `player_message` | a message, and its bytes |
//! | `player_messenger` | the state machine: no clock, no socket |

mod locations;
mod player_message;
mod player_messenger;
mod settings;

pub use locations::PlayerLocations;
pub use player_messenger::{MessengerEvent, PlayerMessenger};
pub use settings::{MessengerSettings, MessengerStats};

#[cfg(feature = "gateway")]
pub(crate) use player_message::is_announcement;
pub(crate) use player_messenger::MessengerOutput;
