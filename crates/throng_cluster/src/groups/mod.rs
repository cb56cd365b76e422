//! The parties and guilds of the players of a node.
//!
//! ```text
//! GroupChange ─▶ row ─▶ hint to all nodes ─▶ players to read ─▶ rows of their groups ─▶ GroupEvent
//!                                               ▲
//!           players that arrive, and those whose groups have changed by the rows (every read_interval_ms)
//! ```
//!
//! The rows decide. A hint may be lost: then the other nodes read the change with their next read of changes. All changes have consecutive revisions, and
//! are committed in this order, so a read of changes after a revision misses none.
//!
//! Invariants: one change is sent after the other, and each is repeated until its outcome is known. The known groups are those with a player of
//! the node, and an older row never replaces a newer one.
//!
//! Cost: O(changes of the cluster) rows per read of changes, and only the groups of own players are transferred. Without players, nothing is read.
//!
//! | file | contains |
//! |---|---|
//! | `settings` | limits, counters |
//! | `hint` | the bytes of a hint on the bus |
//! | `group_event` | events for the tick |
//! | `known_groups` | the groups of the players of the node |
//! | `group_directory` | the state machine: no clock, no socket |

mod group_directory;
mod group_event;
mod hint;
mod known_groups;
mod settings;

pub use group_directory::{GroupDirectory, GroupOutput};
pub use group_event::{GroupEvent, GroupNotChanged};
pub use settings::{GroupSettings, GroupStats};
