//! Messages from clients: bounded queues between the transports and the tick.
//!
//! ```text
//! transports ─▶ a queue per client (limits, quota, or refused) ─▶ the tick: one message of each client in turn, within a budget
//! ```
//! | file | what it holds |
//! |---|---|
//! | `queue` | the queues, their limits, and the number of each client's messages |
//! | `quota` | how much a client may send: token buckets |
//! | `budget` | how much of a tick goes to messages |
//! | `intake` | connections and messages behind a lock: where transports and the tick meet |
//! | `reference` | what it is measured beside |
//!
//! Invariants: a client that floods delays and displaces only its own messages; nothing is kept for a client without a session; the
//! messages of one client are handled in the order of their arrival, except inputs that a newer one replaced; every message that is not
//! handled is counted. Budgets are counted in work units unless a clock is asked for, so a run does not depend on the machine's speed.
//!
//! Cost: a lock and O(1) per message; `throng bench inbox`.

mod budget;
mod queue;
mod quota;
#[cfg(any(test, feature = "bench"))]
pub mod reference;
mod shared;

pub use budget::{BacklogLength, BudgetRule, MessageCosts, TickTime, WorkBudget};
pub use queue::{
    CLIENT_QUEUE_BYTES, DisconnectReason, InboundMessage, InboxCounters, InboxLimits, MessageQueue,
    PLAYERS_PER_UNAUTHENTICATED, ReceiveError,
};
pub use quota::ClientQuota;
pub use shared::{ConnectionInfo, TransportEvent, VerifiedIdentity};
#[doc(hidden)]
pub use shared::{Intake, address_words};
