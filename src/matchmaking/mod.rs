//! Matchmaking: forms matches of two groups of exactly K players from parties that stay together.
//!
//! Insert [`MatchmakingSettings`] with the modes, write a [`QueueRequest`] with a [`Ticket`], and read [`MatchFormed`] or
//! [`TicketRefused`].
//!
//! ```text
//! QueueRequest ─▶ Ticket ─▶ [MatchmakingCore] ─▶ heartbeat ─▶ MatchProposed ─▶ MatchFormed
//! ```
//!
//! The queues and the packing are in `throng_matchmaking`, which documents their guarantees and is re-exported here. It does not depend
//! on the ECS and can be used alone.
//!
//! Invariants: those of the [`MatchmakingCore`]. The queue at a tick depends only on the requests and their order.
//!
//! Cost: O(log n) per request. The cost of a heartbeat depends on the matches that it forms, not on the number of waiting parties; see
//! [`GroupMode`].

mod plugin;
mod suspended;

#[doc(hidden)]
pub use plugin::tick_rate_millihertz;
pub use plugin::{
    BackfillRequest, BackfillResult, CancelRequest, MatchFormed, MatchProposed, MatchResponse,
    Matchmaker, MatchmakingPlugin, MatchmakingSettings, MatchmakingStats, PartyTicket,
    QueueRequest, SpectateRequest, TicketCancelled, TicketExpired, TicketQueued, TicketRefused,
};
pub use throng_matchmaking::*;
