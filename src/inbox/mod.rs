//! Inbound messages: a bounded queue between the transport and the tick.
//!
//! ```text
//! transport ─▶ offer (limits, or refused) ─▶ queue, oldest first ─▶ [Ingest] drain (a budget a tick) ─▶ sessions
//! ```
//! | file | what it holds |
//! |---|---|
//! | `queue` | the queue, its limits, and the number of each client's messages |
//! | `plugin` | the queue as a resource, with settings |
//!
//! Invariants: what was accepted is handled, in the order of arrival; at the limits a message is refused and counted, never
//! dropped later. The budget is counted in messages, so that a run does not depend on the machine's speed.

mod plugin;
mod queue;

pub use plugin::{Inbox, InboxPlugin, InboxSettings, InboxWriter, offer};
pub use queue::{
    InboundMessage, InboxCounters, InboxLimits, MESSAGE_BYTES_MAX, MessageQueue, Refused,
};
