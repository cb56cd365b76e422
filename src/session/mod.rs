//! Clients: who is connected, who plays, and which object each controls.
//!
//! ```text
//! TransportHandle ─▶ Connecting ─ Login ─▶ the hook ─▶ the line ─▶ LoggedIn ─▶ (the game spawns an object) ─▶ control
//!                                                                                  │
//!                    Loading ─ Ready ─▶ InWorld ◀──────────────────────────────────┘     ─ Move, Input, … ─▶ MoveInput, …
//!                    LinkLost ─▶ Resumed, or LoggedOut: the object is despawned          ─▶ SessionClosed: the client is told
//! ```
//! | file | what it holds |
//! |---|---|
//! | `transport` | the handle that transports call, and the contract for who writes one |
//! | `sessions`, `life` | the list of sessions; one of them, and where it is in its life |
//! | `table` | where each of them is, by number |
//! | `rules`, `reasons` | their limits; why they end |
//! | `admission` | who goes in next |
//! | `returning`, `former` | who comes back over another connection; the numbers that it had |
//! | `authentication` | the hook that says who a client is |
//! | `token` | how a client proves that a session is its own |
//! | `plugin` | sessions in the tick; control; what clients send |
//! | `model` | what the list of sessions is tested beside |
//!
//! Invariants: nobody is a player by saying so; a player has at most one session, the newest; a client controls at most one
//! object, and an object has at most one client; what a client sends before its login, or what does not decode, is counted and
//! changes nothing. Sessions call nobody: everybody else reacts to what they tell, which are messages.

mod admission;
mod authentication;
mod former;
mod life;
#[cfg(test)]
mod model;
mod plugin;
mod reasons;
mod returning;
mod rules;
mod sessions;
mod table;
mod token;
pub mod transport;

pub use crate::inbox::{Connected, DisconnectReason, TransportClaims, TransportEvent};
pub use authentication::{
    AdmissionClass, Authentication, Authenticator, LoginAnswer, LoginAsked, ResumeAsked,
};
pub use life::{SESSION_BYTES, Session, SessionState};
pub use plugin::{
    ClientMessageAppExt, ClientMessageType, ClientTold, ControlledBy, FromClient, LinkDead,
    LinkLost, LoggedIn, LoggedOut, PlayerAsked, PlayerInput, PlayerRequest, Resumed, SessionClosed,
    SessionEnds, SessionPlugin, SessionSettings, SessionStats, connect, control, disconnect,
};
pub use reasons::{LogoutReason, SessionRefused};
pub use sessions::Sessions;
pub use token::SessionKey;
pub use transport::TransportHandle;
