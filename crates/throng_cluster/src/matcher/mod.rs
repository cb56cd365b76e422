//! Matches of players on different nodes: tickets, the matcher, the matches of a node, and players that travel to a match or home.
//!
//! ```text
//!  node of a player          the matcher (one node, by the row of the role)      node of the match
//!  add_ticket ─▶ row ──────▶ reads changes ─▶ pool ─▶ finds ─▶ FormMatch ──────▶ reads, Open ─▶ opened ─▶ MatchReady
//!  reads travels ◀─────────────────────────────────────────────────────────────────────────────────────────┘
//!  Move ─▶ hand-off ─────────────────────────────────────────────────────────▶ Arrived … end_match
//!  Arrived ◀──────────────────────────────────────────────── hand-off ◀─ Move ◀─ reads travels ◀─┘
//! ```
//! [`MatchNode`] runs on every node and acts as the matcher while it holds the role. It has no clock, no socket and no players: it
//! returns what its driver has to do.
//!
//! Invariants, whatever is lost, late or repeated:
//! - a ticket belongs to one match at most, because the transaction that forms the match claims all its tickets;
//! - only the holder of the role forms matches: the id of a match contains the epoch of the role, which the transaction checks;
//! - waiting times are stored in the rows, so a new matcher continues with them. It does not know the recent opponents of players;
//! - each travelling player is a row, which the node that owns the player reads: the player gets home even if the node of its match dies.
//!
//! Cost: per [`read_interval_ms`](MatcherSettings::read_interval_ms) a read of the matches to open, of the travelling players, and (only
//! the matcher) of changed tickets; one transaction per ticket, and five per match. [`throng_matchmaking`] documents the cost of the pool.
//!
//! | file | contains |
//! |---|---|
//! | `settings` | modes, times, limits, counters |
//! | `match_node` | the node: sends requests when they are due, and returns the work of its driver |
//! | `replies` | handles replies, and requests without a reply |
//! | `forming` | the matcher: its tickets, and the matches that it forms |
//! | `pool` | the tickets in a [`MatchmakingCore`](throng_matchmaking::MatchmakingCore) |
//! | `instances` | the matches that are played on the node |
//! | `requests` | which request is pending |

mod forming;
mod instances;
mod match_node;
mod pool;
mod replies;
mod requests;
mod settings;

pub use match_node::{MatchNode, MatchOutput, TicketNotAdded, TicketOutcome};
pub use settings::{ClusterModeSettings, HostLoad, MatcherSettings, MatcherStats};
