//! Sessions: which clients are connected, which player each one is, and which object it controls.
//!
//! A transport reports connections through a [`TransportHandle`]. The game authenticates logins with [`Authentication`], spawns an
//! object on [`LoggedIn`], and gives the client control of it with [`ControlledBy`]. Each session has an entity with
//! [`SessionClient`], which `ControlledBy` names; it stays the same when a session is resumed over another connection.
//!
//! ```text
//! TransportHandle ─▶ Connecting ─ Login ─▶ Authentication ─▶ login queue ─▶ LoggedIn
//! LoggedIn ─▶ (the game spawns an object) ─▶ ControlledBy ─▶ Loading ─ Ready ─▶ InWorld ─ Move, Input, … ─▶ MoveInput, …
//! ConnectionLost ─▶ SessionResumed, or LoggedOut: the object is despawned ─▶ SessionClosed: the client is notified
//! ```
//!
//! Invariants:
//! - A client becomes a player only by authentication. Its claim alone is never enough.
//! - A player has at most one session, the newest.
//! - A client controls at most one object, and an object has at most one client.
//! - A message before the login, or one that cannot be decoded, is counted and changes nothing.
//! - Sessions call no other module. They write messages, and other modules read them.

// | file | contents |
// | `transport` | the handle for transports, and the contract for new ones |
// | `sessions`, `state`, `table` | the list of sessions; one session and its states; lookup by client id |
// | `tick_settings`, `reasons` | limits in ticks; reasons of refusals and ends |
// | `admission` | the login queue |
// | `entering` | from a login to the world |
// | `stopping` | a server that stops: no new logins, then no sessions |
// | `resume`, `client_aliases` | resumed sessions, and the client ids that they had before |
// | `authentication` | the authentication hook |
// | `bans` | bans of players and of address ranges |
// | `token` | the token that resumes a session |
// | `moved_tokens` | former resume tokens of players that were handed over to this process |
// | `plugin` | sessions in the tick, control, client messages |
// | `model` | reference model of the list, for tests |

mod admission;
mod authentication;
mod bans;
mod client_aliases;
mod entering;
#[cfg(test)]
mod model;
mod moved_tokens;
mod plugin;
mod reasons;
mod resume;
mod sessions;
mod state;
mod stopping;
mod table;
mod tick_settings;
mod token;
pub mod transport;

pub use crate::inbox::{
    ConnectionInfo, ContinuedConnection, DisconnectReason, TransportEvent, VerifiedIdentity,
};
pub use authentication::{
    AdmissionClass, Authentication, Authenticator, LoginRequest, LoginResponder, ResumeAttempt,
};
pub use bans::{BAN_REASON_BYTES_MAX, BANS_MAX, Ban, BanError, BanList, BanTarget};
pub use plugin::{
    AwaitingReconnect, ClientMessageAppExt, ClientMessageRefused, ClientMessageType,
    ConnectionLost, ControlledBy, Controls, FromClient, LoggedIn, LoggedOut, LoginRefusalCounts,
    OutlivesSession, PlayerInput, PlayerRequest, PlayerRequestReceived, REFUSALS_PER_TICK_MAX,
    SessionClient, SessionClosed, SessionCommandsExt, SessionEndCounts, SessionNoticeRequest,
    SessionPlugin, SessionResumed, SessionSettings, SessionStats, SessionUserData, ban, connect,
    control, controlling_client, disconnect,
};
pub use reasons::{AcceptError, LogoutReason};
pub use sessions::Sessions;
pub use state::{SESSION_BYTES, Session, SessionState};
pub use throng_net::{TokenUserData, USER_DATA_BYTES};
pub use token::SessionKey;
pub use transport::TransportHandle;
