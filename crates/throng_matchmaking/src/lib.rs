#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! ```text
//! Ticket ─▶ [MatchmakingCore] ─▶ pool of its mode ─▶ heartbeat: [GroupMode]
//!                                by age, by skill    1 priority     parties past the wait bound  (partner_search)
//!                                                    2 pack         all at once inside windows   (sweep, exact)
//!                                                    3 left over    oldest first, by composition (partner_search)
//!                                                    └▶ balance ─▶ Match { groups, power, quality } ─▶ proposed ─▶ started
//! ```
//! Objectives, in this order: the wait bound, the window, players matched, spread, gap. [`GroupMode`] documents the
//! guarantees, in particular the wait bound.
//!
//! Invariants, after every heartbeat:
//! - a player is in at most one ticket or match; a party is whole; a group has exactly K players;
//! - queued = matched + cancelled + expired + waiting;
//! - the same requests give the same matches: equal candidates are ordered by ticket id or by waiting time, never by a
//!   clock or by hash order.
//!
//! Cost: O(log n) per request; the cost of a heartbeat depends on the matches that it makes, with a million waiting parties
//! or a few: see [`GroupMode`].
#![warn(missing_docs)]

// | file | holds |
// | `ticket` | a party that requests a match; why it can be refused |
// | `mode`, `match_mode_settings` | the settings of a mode, in seconds and in ticks; the kinds of modes |
// | `queue` | waiting parties, by age and by skill |
// | `pack` | groups of K out of the waiting parties |
// | `rooms` | rooms of 1v1, 2v2 or 3v3 that fill over time |
// | `matches`, `quality` | a match, and how good it is |
// | `rematch`, `penalties`, `proposals` | recent opponents; players who may not queue; matches that players have to accept |
// | `match_mode`, `matchmaking_core` | a running mode, of either kind; all modes together |
// | `stats` | the counters of a mode |
// | `workload` | the queues for benches and tests (feature `bench`) |

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
