//! Matchmaking: battles between two groups of exactly K players, made of parties that stay together.
//!
//! ```text
//! Ticket ─▶ [Matcher] ─▶ queue of its mode ─▶ heartbeat: [Groups]
//!                                               1 overdue   parties past the wait bound   (leftovers)
//!                                               2 packing   full groups inside windows, neighbours meet
//!                                               3 left over oldest first, by composition  (leftovers)
//!                                               └▶ balance ─▶ Match { groups, power, quality }
//! ```
//! Objectives, in this order: the wait bound, the window, players matched, spread, gap. What is guaranteed, the
//! wait bound above all, stands in [`groups`].
//!
//! Invariants, after every heartbeat:
//! - a player is in at most one ticket or match; a party is whole; a group has exactly K players;
//! - queued = matched + cancelled + expired + waiting;
//! - the same requests give the same matches: ties go to who waited longer, no clock, no hash order.
//!
//! All files but `plugin.rs`, which puts the matcher into the tick, know nothing of the ECS.
//!
//! Deliberately absent: levels and leaders decide nothing; parties are not asked whether they accept.
//!
//! Cost: O(n log n) a heartbeat with n waiting parties.

pub mod balance;
pub mod compositions;
pub mod groups;
pub mod leftovers;
pub mod matcher;
pub mod mode;
pub mod packing;
pub mod pairing;
pub mod plugin;
pub mod pool;
pub mod quality;
pub mod queue;
pub mod stats;
pub mod ticket;

pub use groups::{Groups, WhyWaiting};
pub use matcher::{Match, Matcher};
pub use mode::{ModeError, ModeId, ModeSettings, Packing, QueueMode};
pub(crate) use plugin::tick_mhz;
pub use plugin::{
    CancelRequest, MatchFormed, Matchmaker, MatchmakingPlugin, MatchmakingSettings,
    MatchmakingStats, QueueRequest, TicketCancelled, TicketExpired, TicketQueued, TicketRefused,
};
pub use quality::Quality;
pub use stats::{Distribution, ModeStats};
pub use ticket::{Ticket, TicketError};

#[cfg(test)]
mod tests;
