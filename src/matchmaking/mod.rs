//! Matchmaking: battles between two groups of exactly K players, made of parties that stay together.
//!
//! ```text
//! QueueRequest ─▶ Ticket ─▶ [Matcher] ─▶ heartbeat ─▶ MatchProposed ─▶ MatchFormed
//! ```
//! The queues, the packing and what they guarantee are `throng_matchmaking`, whose items are re-exported here; it knows nothing of
//! the ECS, and an app of any kind can use it alone.
//!
//! | file | holds |
//! |---|---|
//! | `held` | tickets of parties that lack somebody whose connection is lost |
//! | `plugin` | requests, facts and the heartbeat in the tick |
//!
//! Invariants: those of the [`Matcher`], and: who waits in a tick depends on the requests and on their order alone.
//!
//! Cost: O(log n) a request; a heartbeat follows the matches that it makes, with a million parties waiting or a
//! few: see [`Groups`].

mod held;
mod plugin;

#[doc(hidden)]
pub use plugin::tick_mhz;
pub use plugin::{
    AnswerRequest, BackfillRequest, CancelRequest, MatchFilled, MatchFormed, MatchProposed,
    Matchmaker, MatchmakingPlugin, MatchmakingSettings, MatchmakingStats, PartyTicket,
    QueueRequest, TicketCancelled, TicketExpired, TicketQueued, TicketRefused, WatchRequest,
};
pub use throng_matchmaking::*;
