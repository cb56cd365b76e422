//! Matches anywhere in the cluster: tickets, the matcher, the matches of a node, and players on their way.
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
//! - waiting times are those of the rows, so a new matcher continues with them. It does not know the recent opponents of players any more;
//! - a player on its way is a row, which the node that owns the player reads: so it gets home if the node of its match dies, too.
//!
//! Cost: a read per [`read_interval_ms`](MatcherSettings::read_interval_ms) of changed tickets (matcher), of matches to open, and of players
//! on their way; a transaction per ticket and five per match. The pool costs as much as [`throng_matchmaking`] says.
//!
//! | file | contains |
//! |---|---|
//! | `settings` | modes, times, limits, counters |
//! | `match_node` | the node: what is due, and what its driver requests |
//! | `replies` | how it handles replies, and requests without one |
//! | `forming` | the matcher: which tickets it knows, and the matches that it forms |
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
