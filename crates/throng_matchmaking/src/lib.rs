#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! ```text
//! Ticket ─▶ [MatchmakingCore] ─▶ pool of its mode ─▶ heartbeat: [GroupMode]
//!                        by age, by skill     1 first in line   parties past the wait bound      (seek)
//!                                             2 pack            all at once inside windows       (sweep, exact)
//!                                             3 left over       oldest first, by composition     (seek)
//!                                             └▶ balance ─▶ Match { groups, power, quality } ─▶ proposed ─▶ on
//! ```
//! Objectives, in this order: the wait bound, the window, players matched, spread, gap. What is guaranteed, the
//! wait bound above all, stands at [`GroupMode`].
//!
//! Invariants, after every heartbeat:
//! - a player is in at most one ticket or match; a party is whole; a group has exactly K players;
//! - queued = matched + cancelled + expired + waiting;
//! - the same requests give the same matches: ties go by ticket id or to who waited longer, no clock, no hash
//!   order.
//!
//! | file | holds |
//! |---|---|
//! | `ticket` | a party that wants a battle; why it can be refused |
//! | `mode`, `match_mode_settings` | what a mode asks, in seconds and in ticks; the kinds of modes |
//! | `queue` | who waits, by age and by skill |
//! | `pack` | groups of K out of those who wait |
//! | `rooms` | rooms of 1v1, 2v2 or 3v3 that fill over time |
//! | `found`, `quality` | a match, and how good it is |
//! | `rematch`, `penalties`, `proposals` | who met of late; who may not queue; who is asked to accept |
//! | `match_mode`, `matcher` | a mode at work, of either kind; all modes together |
//! | `stats` | what a mode counts |
//! | `workload` | the queues that benches and tests measure on (feature `bench`) |
//!
//! Cost: O(log n) a request; a heartbeat follows the matches that it makes, with a million parties waiting or a
//! few: see [`GroupMode`].
#![warn(missing_docs)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

mod match_mode;
mod match_mode_settings;
mod matches;
mod matchmaking_core;
mod mode;
mod pack;
mod penalties;
mod proposals;
mod quality;
mod queue;
mod rematch;
mod rooms;
mod stats;
mod ticket;
#[cfg(any(test, feature = "bench"))]
#[doc(hidden)]
pub mod workload;

pub use match_mode::MatchMode;
pub use match_mode_settings::MatchModeSettings;
pub use matches::{HeartbeatOutcome, Match};
pub use matchmaking_core::MatchmakingCore;
pub use mode::{
    GROUP_SIZE_MAX, GroupModeSettings, GroupModeTickSettings, ModeError, Packing, SECONDS_MAX,
    UNLIMITED, Widening,
};
pub use pack::backfill::Backfill;
pub use pack::groups::GroupMode;
pub use pack::wait_reason::WaitReason;
pub use quality::MatchQuality;
pub use queue::ticket_queue::TicketQueue;
pub use rooms::mode::{RoomMode, SPECTATORS_MAX};
pub use rooms::settings::{RoomModeSettings, RoomModeTickSettings, SIDE_SIZE_MAX};
pub use stats::{Distribution, ModeStats};
pub use ticket::{
    AVOIDED_MAX, ModeId, PARTY_SIZE_MAX, ROLE_COUNT, Ticket, TicketError, TicketParty,
    TicketPlayer, TicketPreferences, rounded_power,
};

#[cfg(test)]
mod tests;
