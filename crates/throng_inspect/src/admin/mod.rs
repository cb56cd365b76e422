//! The administration API: operators list players, kick and ban them by HTTP requests with a token.
//!
//! ```text
//! HTTP request ─▶ token, route, body ─▶ command ─▶ the tick ─▶ outcome ─▶ ban file, audit log ─▶ HTTP reply
//! ```
//! | file | holds |
//! |---|---|
//! | `tokens` | who may use the API |
//! | `api` | which request is which command; replies as JSON |
//! | `plugin`, `error` | opening the API |
//! | `plugin/commands` | the commands in the tick |
//! | `protocol` | the messages between the thread and the tick |
//! | `server` | the thread: the socket, and one request per connection |
//! | `storage` | the ban file and the audit log |
//!
//! Invariants: the tick waits for nothing here. It handles at most [`ADMIN_COMMANDS_PER_TICK_MAX`] commands per tick, from a channel of
//! limited length, and lists have pages. A reply to a ban is sent after the ban is in the ban file, which has the bans of this API; a game
//! that calls [`ban`](throng::session::ban) itself keeps its bans itself. Each change has a line in the audit log.

mod api;
mod error;
mod plugin;
mod protocol;
mod server;
mod storage;
mod tokens;

pub use error::AdminError;
pub(super) use plugin::PageAdmin;
pub(super) use plugin::commands::handle_admin_commands;
pub use plugin::{ADMIN_COMMANDS_PER_TICK_MAX, AdminServer, AdminSettings, open_admin};
pub(super) use server::{AdminAccess, respond};
pub use tokens::{AdminTokens, InvalidAdminTokens};
