//! Matchmaking: battles between two groups of exactly K players, made of parties that stay together.
//!
//! ```text
//! Ticket ─▶ [Matcher] ─▶ pool of its mode ─▶ heartbeat: [Groups]
//!                        by age, by skill     1 first in line   parties past the wait bound      (seek)
//!                                             2 pack            all at once inside windows       (sweep, exact)
//!                                             3 left over       oldest first, by composition     (seek)
//!                                             └▶ balance ─▶ Match { groups, power, quality } ─▶ proposed ─▶ on
//! ```
//! Objectives, in this order: the wait bound, the window, players matched, spread, gap. What is guaranteed, the
//! wait bound above all, stands in [`groups`](pack::groups).
//!
//! Invariants, after every heartbeat:
//! - a player is in at most one ticket or match; a party is whole; a group has exactly K players;
//! - queued = matched + cancelled + expired + waiting;
//! - the same requests give the same matches: ties go by ticket id or to who waited longer, no clock, no hash
//!   order.
//!
//! All files but `plugin.rs`, which puts the matcher into the tick, know nothing of the ECS.
//!
//! Cost: O(log n) a request; a heartbeat follows the matches that it makes, with a million parties waiting or a
//! few: see [`groups`](pack::groups).

pub mod matcher;
pub mod mode;
pub mod open_mode;
pub mod pack;
pub mod penalties;
pub mod plugin;
pub mod proposals;
pub mod quality;
pub mod queue;
pub mod rematch;
pub mod rooms;
pub mod stats;
pub mod ticket;
#[doc(hidden)]
pub mod workload;

pub use matcher::{HeartbeatOutcome, Match, Matcher};
pub use mode::{ModeError, ModeId, ModeSettings, Packing, QueueMode};
pub use open_mode::OpenMode;
pub use pack::backfill::Backfill;
pub use pack::groups::Groups;
pub use pack::wait_reason::WaitReason;
pub(crate) use plugin::tick_mhz;
pub use plugin::{
    AnswerRequest, BackfillRequest, CancelRequest, MatchFilled, MatchFormed, MatchProposed,
    Matchmaker, MatchmakingPlugin, MatchmakingSettings, MatchmakingStats, PartyTicket,
    QueueRequest, TicketCancelled, TicketExpired, TicketQueued, TicketRefused, WatchRequest,
};
pub use quality::Quality;
pub use rooms::settings::RoomSettings;
pub use stats::{Distribution, ModeStats};
pub use ticket::{Ticket, TicketError, Wishes, whole_power};

#[cfg(test)]
mod tests;
