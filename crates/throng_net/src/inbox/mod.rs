//! Messages from clients: bounded queues between the transports and the tick.
//!
//! ```text
//! transports ─▶ a queue per client (limits, quota, or refused) ─▶ the tick: one message of each client in turn, within a budget
//! ```
//!
//! Invariants: a client that floods delays and displaces only its own messages. Nothing is stored for a client without a connection. The
//! messages of one client are handled in the order of their arrival, except inputs that a newer one replaced. Every message that is not
//! handled is counted. Budgets are counted in work units unless a clock is configured, so a run does not depend on the machine's speed.
//!
//! Cost: a lock and O(1) per message; `throng bench inbox`.

// | file | contents |
// | `queue` | the queues, their limits, and the number of each client's messages |
// | `quota` | how much a client may send: token buckets |
// | `budget` | how much time of a tick is spent on messages |
// | `shared` | connections and messages behind a lock, between transports and the tick |
// | `reference` | reference implementations for benches |

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
pub use shared::{ConnectionInfo, ContinuedConnection, TransportEvent, VerifiedIdentity};
#[doc(hidden)]
pub use shared::{Intake, address_words};
