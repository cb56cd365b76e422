//! A client of a gateway, with or without a node.

use std::collections::VecDeque;

use throng_core::ids::PlayerId;
use throng_net::inbox::{ConnectionInfo, ContinuedConnection};
use throng_protocol::wire::{ClientMessage, MessageClass, is_newer};

use super::packet_numbers::PacketNumbers;
use crate::bus::BusPeer;
use crate::link::LinkClient;

/// Which node has a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientHome {
    /// This one; it is this client there.
    Node(BusPeer, LinkClient),
    /// None until then. It may be this one again.
    Waiting {
        /// The node that had it last, or is to have it first.
        node: BusPeer,
        /// When it is closed.
        until_ms: u64,
    },
}

/// A client.
#[derive(Debug)]
pub(super) struct GatewayClient {
    pub player: PlayerId,
    pub home: ClientHome,
    pub numbers: PacketNumbers,
    /// Its session has begun: nodes that take it over open it without another login.
    pub is_welcome: bool,
    info: ConnectionInfo,
    /// What it has sent to nodes.
    sent: ContinuedConnection,
    kept: KeptMessages,
}

impl GatewayClient {
    pub fn new(player: PlayerId, info: ConnectionInfo, home: ClientHome) -> Self {
        Self {
            player,
            home,
            numbers: PacketNumbers::default(),
            is_welcome: false,
            info,
            sent: ContinuedConnection::default(),
            kept: KeptMessages::default(),
        }
    }

    /// Whether it can be given to another node: what it has sent before its welcome is known.
    pub const fn can_move(&self) -> bool {
        self.is_welcome || !self.kept.is_incomplete
    }

    /// The node takes it over: what the node has to know, and the messages that follow.
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

    /// Keeps a message for its next node. `false` if that is too much.
    pub fn keep(&mut self, message: &[u8], limits: KeptLimits) -> bool {
        self.kept.push(message, limits)
    }

    /// Its node has welcomed it: its login is not needed any more.
    pub fn welcome(&mut self) {
        self.is_welcome = true;
        self.kept = KeptMessages::default();
    }
}

/// How much is kept for a client.
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
    /// Adds a message. At the limit, older inputs are dropped: of several, the newest counts. `false` if there is no room.
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
