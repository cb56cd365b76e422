//! Messages between nodes and gateways.
//!
//! ```text
//! BusMessage ─▶ MessageBus ─ frame ─▶ BusTransport ═▶ BusTransport ─ frame ─▶ MessageBus ─▶ BusEvent
//!               number, authenticate    memory or NATS                       check, count gaps
//! ```
//!
//! | file | contains |
//! |---|---|
//! | `frame` | the bytes around a message, and the key that authenticates them |
//! | `message` | the messages and their bytes |
//! | `message_bus` | one end of the bus: numbers, gaps, counters |
//! | `inbox` | what a transport has received |
//! | `local` | a transport in memory |
//! | `nats`, `address` | a transport by a NATS server, and its address (feature `nats`) |
//!
//! Invariants: a message that was not sent by a member of the cluster, to this receiver, is refused. Of one sender, messages arrive in order
//! and at most once. A missing message is reported with the next one that arrives. Nothing here waits for a receiver.
//!
//! Messages may be lost, so rows decide and messages are hints. A message that was recorded and is sent again passes only at a receiver that
//! has restarted since; what it causes is that rows are read.

#[cfg(feature = "nats")]
mod address;
mod frame;
mod inbox;
mod local;
mod message;
mod message_bus;
#[cfg(feature = "nats")]
mod nats;

#[cfg(feature = "nats")]
pub use address::BusConnectError;
pub use frame::{
    BUS_VERSION, BusRefusal, ClusterKey, FRAME_OVERHEAD_BYTES, InvalidClusterKey, MESSAGE_BYTES_MAX,
};
pub use local::{LocalBus, LocalTransport};
pub use message::BusMessage;
pub use message_bus::{BusEvent, BusSendError, BusStats, MessageBus};
#[cfg(feature = "nats")]
pub use nats::{NatsSettings, NatsTransport};

use std::fmt;
use std::task::Waker;

use crate::ids::{ClusterNodeId, GatewayId};

/// A sender or receiver of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BusPeer {
    /// A node.
    Node(ClusterNodeId),
    /// A gateway.
    Gateway(GatewayId),
    /// All nodes and gateways: only as a receiver.
    All,
}

impl fmt::Display for BusPeer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(formatter, "node.{}", node.0),
            Self::Gateway(gateway) => write!(formatter, "gateway.{}", gateway.0),
            Self::All => formatter.write_str("all"),
        }
    }
}

/// The queue to the bus is full; the message is dropped, and the receiver will notice the gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusFull;

/// What a transport reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusSignal {
    /// Bytes for this receiver.
    Message(Vec<u8>),
    /// The connection exists, or does so again: messages may be missing.
    Connected,
    /// The connection is lost. The transport connects again by itself.
    Disconnected,
    /// Messages that were dropped here because this receiver did not take them in time.
    Dropped(u64),
}

/// Carries bytes from one peer to another, at most once. It never waits for a receiver, and success proves nothing.
pub trait BusTransport: Send {
    /// Sends bytes to a peer, if it is there; to [`BusPeer::All`], to all that are there, perhaps including this one. O(bytes).
    ///
    /// # Errors
    /// [`BusFull`] if too much waits to be sent.
    fn publish(&mut self, to: BusPeer, bytes: Vec<u8>) -> Result<(), BusFull>;

    /// The next report, if there is one. O(1).
    fn receive(&mut self) -> Option<BusSignal>;

    /// Wakes this task or thread whenever something has arrived.
    fn set_waker(&mut self, waker: Waker);
}

/// Carries more than [`BusMessage`]s over a node's end of the bus, such as the packets of clients at gateways.
pub trait BusRelay: Send {
    /// Handles a message. `false` if it is not one of this relay.
    fn receive(&mut self, now_ms: u64, from: BusPeer, bytes: &[u8]) -> bool;

    /// The messages that are due.
    fn poll(&mut self, now_ms: u64) -> Vec<(BusPeer, Vec<u8>)>;

    /// Wakes this task or thread when something is due.
    fn set_waker(&mut self, waker: Waker);
}
