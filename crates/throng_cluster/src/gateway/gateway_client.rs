//! A client of a gateway, with or without a node.

use std::collections::VecDeque;

use throng_core::ids::PlayerId;
use throng_net::inbox::{ConnectionInfo, ContinuedConnection};
use throng_protocol::wire::{ClientMessage, MessageClass, is_newer};

use super::hand_off_timer::HandOffTimer;
use super::packet_numbers::PacketNumbers;
use crate::bus::BusPeer;
use crate::link::LinkClient;

/// The node of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientHome {
    /// The client is at this node, with this number.
    Node(BusPeer, LinkClient),
    /// The client has no node, and waits for one until a time.
    Waiting {
        /// The node that had it last, or that is to have it first. It may get the client again.
        node: BusPeer,
        /// The time when the client is closed.
        until_ms: u64,
    },
}

/// A client.
#[derive(Debug)]
pub(super) struct GatewayClient {
    pub player: PlayerId,
    pub home: ClientHome,
    pub numbers: PacketNumbers,
    pub hand_offs: HandOffTimer,
    /// Its session has begun. A node that takes it over continues the session without another login.
    pub is_welcome: bool,
    info: ConnectionInfo,
    /// The numbers of the messages that it has sent to nodes.
    sent: ContinuedConnection,
    kept: KeptMessages,
}

impl GatewayClient {
    pub fn new(player: PlayerId, info: ConnectionInfo, home: ClientHome) -> Self {
        Self {
            player,
            home,
            numbers: PacketNumbers::default(),
            hand_offs: HandOffTimer::default(),
            is_welcome: false,
            info,
            sent: ContinuedConnection::default(),
            kept: KeptMessages::default(),
        }
    }

    /// Whether another node can take it over: it is welcome, or all messages that it has sent are kept.
    pub const fn can_move(&self) -> bool {
        self.is_welcome || !self.kept.is_incomplete
    }

    /// Begins its time at a node. Returns the connection for the node, and the messages that follow it.
    pub fn begin_node(&mut self) -> (ConnectionInfo, VecDeque<Vec<u8>>) {
        self.numbers.begin_node();
        let messages = std::mem::take(&mut self.kept.messages);
        self.kept.bytes = 0;
        let info = self.info.clone();
        if self.is_welcome {
            return (info.continuing(self.sent), messages);
        }
        // The next node handles all of its messages again, its login among them.
        self.sent = ContinuedConnection::default();
        (info, messages)
    }

    /// Counts a message that was sent to its node. Before its welcome, the message is kept for another one.
    pub fn count_sent(&mut self, message: &[u8], limits: KeptLimits) {
        self.sent.last_message = self.sent.last_message.wrapping_add(1);
        if MessageClass::of(message) == MessageClass::Input
            && let Ok(ClientMessage::Input(input)) = ClientMessage::decode(message)
            && self
                .sent
                .last_input
                .is_none_or(|last| is_newer(input.seq, last))
        {
            self.sent.last_input = Some(input.seq);
        }
        if !self.is_welcome && !self.kept.is_incomplete && !self.kept.push(message, limits) {
            self.kept = KeptMessages {
                is_incomplete: true,
                ..KeptMessages::default()
            };
        }
    }

    /// Keeps a message for its next node. `false` if there is no room.
    pub fn keep(&mut self, message: &[u8], limits: KeptLimits) -> bool {
        self.kept.push(message, limits)
    }

    /// Marks it as welcomed by its node, and drops the kept messages of its login.
    pub fn welcome(&mut self) {
        self.is_welcome = true;
        self.kept = KeptMessages::default();
    }
}

/// Limits of the messages that are kept for a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptLimits {
    pub messages_max: usize,
    pub bytes_max: usize,
}

/// Messages of a client, oldest first.
#[derive(Debug, Default)]
struct KeptMessages {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Some had no room.
    is_incomplete: bool,
}

impl KeptMessages {
    /// Adds a message. At the limit, the oldest inputs are dropped, since newer ones replace them. `false` if there is no room.
    fn push(&mut self, message: &[u8], limits: KeptLimits) -> bool {
        while self.messages.len() >= limits.messages_max
            || self.bytes + message.len() > limits.bytes_max
        {
            let mut messages = self.messages.iter();
            let oldest = messages.position(|kept| MessageClass::of(kept) == MessageClass::Input);
            let Some(dropped) = oldest.and_then(|nth| self.messages.remove(nth)) else {
                return false;
            };
            self.bytes -= dropped.len();
        }
        self.bytes += message.len();
        self.messages.push_back(message.to_vec());
        true
    }
}
