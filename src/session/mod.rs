//! Clients: who is connected, who plays, and which object each controls.
//!
//! ```text
//! connect ─▶ Session ─ Login ─▶ LoggedIn ─▶ (the game spawns an object) ─▶ control ─▶ Move, Face ─▶ MoveInput
//!                     ─ Logout, disconnect, a second login ─▶ LoggedOut, object despawned
//! ```
//! | file | what it holds |
//! |---|---|
//! | `sessions` | the list of sessions |
//! | `connections` | what a transport does: opens sessions, hands over what arrives |
//! | `plugin` | sessions in the tick: logins, logouts, inputs, control |
//!
//! Invariants: a player has at most one session, the newest; a client controls at most one object, and an object has at most
//! one client; what a client sends before its login, or what does not decode, is counted and changes nothing.

mod connections;
mod plugin;
mod sessions;

pub use connections::{Connections, connect};
pub use plugin::{
    ControlledBy, LoggedIn, LoggedOut, SessionPlugin, SessionSettings, SessionStats, control,
    disconnect,
};
pub use sessions::{LogoutReason, Session, SessionRefused, Sessions};
