//! Inbound messages: bounded lanes between the transports and the tick, and how much of a tick goes to them.
//!
//! ```text
//! transports ─▶ lane a client (limits, quota, or refused) ─▶ [Ingest] one of each in turn, within a budget ─▶ sessions
//! ```
//! | file | what it holds |
//! |---|---|
//! | `queue` | the lanes, their limits, and the number of each client's messages |
//! | `quota` | how much a client may send: token buckets |
//! | `budget` | how much of a tick goes to messages |
//! | `intake` | connections and messages behind a lock: where transports and the tick meet |
//! | `plugin` | the intake as a resource, with settings |
//! | `reference` | what it is measured beside |
//!
//! Invariants: what a client sends delays and displaces nobody but itself; nothing is kept of who has no session; of one client
//! messages are handled in the order of their arrival, but for inputs that gave way to newer ones; whatever is not handled is
//! counted. Budgets are counted in work units unless a clock is asked for, so that a run does not depend on the machine's speed.
//!
//! Cost: a lock and O(1) a message; `throng bench inbox`.

mod budget;
mod intake;
mod plugin;
mod queue;
mod quota;
#[cfg(any(test, feature = "bench"))]
pub mod reference;

pub use budget::{BacklogLength, BudgetRule, MessageCosts, WorkBudget, WorkSpan};
pub use intake::{Connected, TransportClaims, TransportEvent};
pub(crate) use intake::{Intake, address_words};
pub(crate) use plugin::lock;
pub use plugin::{Inbox, InboxPlugin, InboxSettings};
pub use queue::{
    DisconnectReason, InboundMessage, InboxCounters, InboxLimits, LANE_BYTES, MessageQueue,
    PLAYERS_A_NEWCOMER, Refused,
};
pub use quota::ClientQuota;
