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
//! | `sessions` | the list of sessions, and their life |
//! | `admission` | who goes in next |
//! | `authentication` | the hook that says who a client is |
//! | `token` | how a client proves that a session is its own |
//! | `plugin` | sessions in the tick; control; what clients send |
//!
//! Invariants: nobody is a player by saying so; a player has at most one session, the newest; a client controls at most one
//! object, and an object has at most one client; what a client sends before its login, or what does not decode, is counted and
//! changes nothing. Sessions call nobody: everybody else reacts to what they tell, which are messages.

mod admission;
mod authentication;
mod plugin;
mod sessions;
mod token;
pub mod transport;

pub use crate::inbox::{Claims, Connected, DisconnectReason, TransportEvent};
pub use authentication::{AdmissionClass, Authentication, Authenticator, LoginAnswer, LoginAsked};
pub use plugin::{
    ClientMessageAppExt, ClientMessageError, ClientMessageType, ClientTold, ControlledBy,
    FromClient, LinkDead, LinkLost, LoggedIn, LoggedOut, PlayerAsked, PlayerInput, PlayerRequest,
    Resumed, SessionClosed, SessionPlugin, SessionSettings, SessionStats, connect, control,
    disconnect,
};
pub use sessions::{LogoutReason, Session, SessionRefused, SessionState, Sessions};
pub use token::SessionKey;
pub use transport::TransportHandle;
