//! Attributes of party members on other nodes.
//!
//! ```text
//!  node of A                                             node of B, in the party of A
//!  read of the party ─▶ B is there ── status: A, number ──▶ A is there: listens
//!                       listens    ◀── status: B, number ──
//!  values of A ───────────────────── all values of A ─────▶ ForeignMembers ─▶ clients
//!  a value changes ───────────────── the change, numbers ─▶ does it follow the number known here?
//!                                  ◀── request ─────────── no: a message is missing
//! ```
//!
//! A node sends the statuses of its members to the nodes on which their parties have other members: when something has changed, and every second.
//! A status names the party, the player, its epoch and the number of its values. A node that names a member of a party *listens*: it gets all values
//! of the other members once, then changes. With a status that has another number than its own values, or a change that does not follow them, a
//! node notices that a message is missing, and requests all values.
//!
//! Where members are: by the rows when the party was read, then by the statuses of their nodes; the higher epoch wins. A node that gets a player reads
//! its party then, so of two nodes that get members at the same time, the later one finds the other.
//!
//! A member is forgotten when it leaves the party by the rows, arrives on this node, or logs out, and when its node has sent nothing about it for
//! [`expire_ms`](PartyValueSettings::expire_ms), for example because it has died. While it moves from one node to another, its values stay.
//!
//! Invariants: nothing is sent about parties with all members on one node. Values of a lower epoch never replace those of a higher one. Messages
//! with another version are ignored and counted.
//!
//! Cost: per tick O(own members of parties over several nodes); per second and party, one status of 24 bytes per own member and other node.
//!
//! | file | contains |
//! |---|---|
//! | `settings` | times, limits, counters |
//! | `party_message` | the messages of the bus |
//! | `members` | the members here and elsewhere |
//! | `party_exchange` | the state machine: no clock, no socket |

mod members;
mod party_exchange;
mod party_message;
mod settings;

pub use party_exchange::{MemberHere, PartyExchange};
pub use settings::{PartyValueSettings, PartyValueStats};
