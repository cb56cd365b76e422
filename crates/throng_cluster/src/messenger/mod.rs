//! Messages to players on any node, and to all nodes.
//!
//! ```text
//! send ─┬─ location cached ─────────────────────────────▶ one bus message per node ─▶ deliver: which players are here?
//!       └─ unknown ─▶ read rows, all players at once ─────▲                             ├─ here ─▶ the game
//!                       ▲                                                               └─ not here
//!                       └──────────── returned with its players ◀─────────────────────────┘
//! ```
//!
//! A cached location may be wrong: a node that receives a message for a player that it does not have returns it at once, and the sender reads the
//! row. If the sender had read the row before, the player is about to arrive. So the message first waits for it for
//! [`hold_ms`](MessengerSettings::hold_ms). After reads, a message is sent at most [`sends_max`](MessengerSettings::sends_max) times.
//!
//! Messages may be lost, for example when a node dies. A player receives a message at most once. Messages of one node to a player that stays on
//! its node arrive in order; messages to a player that moves may overtake each other.
//!
//! | file | contains |
//! |---|---|
//! | `settings` | limits, counters |
//! | `locations` | the cache of the locations of players |
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
