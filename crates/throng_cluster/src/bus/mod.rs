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
//! | `inbox` | the queue of received messages of a transport |
//! | `local` | a transport in memory |
//! | `nats`, `address` | a transport over a NATS server, and its address (feature `nats`) |
//!
//! Invariants: a message is refused unless a member of the cluster has sent it to this receiver. The messages of one sender arrive in order and
//! at most once. A missing message is reported with the next one that arrives. No sender waits for a receiver.
//!
//! Messages may be lost, so the rows decide and messages are hints. An attacker who has recorded a message can replay it only to a receiver that
//! has restarted since then. The receiver then reads the rows, which does no harm.

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

use std::collections::BTreeMap;
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

/// The queue to the bus is full. The message is dropped, and the receiver notices the gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusFull;

/// A report of a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusSignal {
    /// Bytes for this receiver.
    Message(Vec<u8>),
    /// The connection is established for the first time, or again. Messages may be missing.
    Connected,
    /// The connection is lost. The transport connects again by itself.
    Disconnected,
    /// The number of messages that were dropped because this receiver did not take them in time.
    Dropped(u64),
    /// The reply to a probe with this number: the peer is not connected.
    Unreachable(BusPeer, u64),
}

/// Carries bytes from one peer to others, at most once. It never waits for a receiver. Success does not mean that the bytes arrive.
pub trait BusTransport: Send {
    /// Sends bytes to a peer, to this one itself, or with [`BusPeer::All`] to all connected peers, perhaps including this one. O(bytes).
    ///
    /// # Errors
    /// [`BusFull`] if the queue is full.
    fn publish(&mut self, to: BusPeer, bytes: Vec<u8>) -> Result<(), BusFull>;

    /// Asks whether a peer is connected. If it is not, [`BusSignal::Unreachable`] arrives with this number; if it is, nothing. Both may be lost.
    /// O(1).
    fn probe(&mut self, to: BusPeer, number: u64);

    /// The next report, if there is one. O(1).
    fn receive(&mut self) -> Option<BusSignal>;

    /// Sets the task or thread to wake when something has arrived.
    fn set_waker(&mut self, waker: Waker);
}

/// Sends and receives messages other than [`BusMessage`]s over the bus of a node, such as the packets of clients at gateways.
pub trait BusRelay: Send {
    /// Handles a message. `false` if it is not a message for this relay.
    fn receive(&mut self, now_ms: u64, from: BusPeer, bytes: &[u8]) -> bool;

    /// The messages to send now.
    fn poll(&mut self, now_ms: u64) -> Vec<(BusPeer, Vec<u8>)>;

    /// The number of clients at each gateway that are routed to this node, for operators. O(clients).
    fn client_counts(&self) -> BTreeMap<BusPeer, u32> {
        BTreeMap::new()
    }

    /// Sets the task or thread to wake when there is something to send.
    fn set_waker(&mut self, waker: Waker);
}
