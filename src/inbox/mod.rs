//! Messages from clients: the inbox resource, on the queues of [`throng_net::inbox`].

mod plugin;

pub(crate) use plugin::lock;
pub use plugin::{Inbox, InboxPlugin, InboxSettings};
pub use throng_net::inbox::{
    BacklogLength, BudgetRule, CLIENT_QUEUE_BYTES, ClientQuota, ConnectionInfo,
    ContinuedConnection, DisconnectReason, InboundMessage, InboxCounters, InboxLimits,
    MessageCosts, MessageQueue, PLAYERS_PER_UNAUTHENTICATED, ReceiveError, TickTime,
    TransportEvent, VerifiedIdentity, WorkBudget,
};
pub(crate) use throng_net::inbox::{Intake, address_words};
