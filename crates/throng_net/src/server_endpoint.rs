//! The server's endpoint of a client, and how long anything of it is waited for. No seal, no sockets, no clock.
//!
//! ```text
//! packet ─▶ endpoint ─▶ messages of the client          packets of the server ─▶ endpoint ─▶ packets of the transport
//! ```

use throng_core::memory::MemoryUse;
use throng_protocol::wire::{Channel, PACKET_HEADER_BYTES};

use super::endpoint::{Endpoint, EndpointSettings, EndpointStats, PacketRefused, PushRefused};
use super::packet::{PacketStamp, StreamId, framed_bytes};
use crate::inbox::DisconnectReason;

/// What a connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionLimits {
    pub endpoint: EndpointSettings,
    /// How long at most after [`close`](ServerEndpoint::close) what is left is sent.
    pub linger_us: u64,
    /// How long what was pushed may wait to be acknowledged, before the connection counts as lost.
    pub unacknowledged_us_max: u64,
}

/// Sees to it that nothing waits for an acknowledgement for too long, with one mark that moves behind what was acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct AckWatch {
    /// Bytes that were pushed in all.
    pushed: u64,
    /// So many of those were pushed at this time, and are not all acknowledged.
    mark: Option<(u64, u64)>,
}

impl AckWatch {
    /// How long something has waited at least, when so many bytes wait. What is older than this is younger than twice as much.
    fn age_us(&mut self, now_us: u64, waiting: usize) -> u64 {
        let arrived = self.pushed.saturating_sub(waiting as u64);
        if self.mark.is_some_and(|(pushed, _)| arrived >= pushed) {
            self.mark = None;
        }
        if waiting == 0 {
            return 0;
        }
        let (_, since_us) = *self.mark.get_or_insert((self.pushed, now_us));
        now_us.saturating_sub(since_us)
    }
}

/// An endpoint with its deadlines.
#[derive(Debug)]
pub(super) struct ServerEndpoint {
    /// Something was pushed since it was flushed.
    pub is_touched: bool,
    /// When it was flushed last.
    pub flushed_us: u64,
    endpoint: Endpoint,
    stamp: PacketStamp,
    timeout_us: Option<u64>,
    heard_us: u64,
    /// It is being closed, and is gone then at the latest.
    closes_us: Option<u64>,
    watch: AckWatch,
    limits: ConnectionLimits,
}

impl ServerEndpoint {
    /// Of a client that is over after so many seconds without a sign of life; below 0 never.
    pub fn new(timeout_s: i32, limits: ConnectionLimits, now_us: u64) -> Self {
        let timeout_s = u64::try_from(timeout_s).ok();
        Self {
            is_touched: false,
            flushed_us: now_us,
            endpoint: Endpoint::new(limits.endpoint),
            stamp: PacketStamp::default(),
            timeout_us: timeout_s.map(|timeout_s| timeout_s.saturating_mul(1_000_000)),
            heard_us: now_us,
            closes_us: None,
            watch: AckWatch::default(),
            limits,
        }
    }

    /// The client is there.
    pub fn hear(&mut self, now_us: u64) {
        self.heard_us = self.heard_us.max(now_us);
    }

    /// Takes a packet of the client, and hands over the messages that are whole with it; none once it is being closed.
    pub fn receive(
        &mut self,
        now_us: u64,
        packet: &[u8],
        mut deliver: impl FnMut(&[u8]),
    ) -> Result<(), PacketRefused> {
        let is_open = self.closes_us.is_none();
        self.endpoint.receive(now_us, packet, |delivery| {
            if is_open {
                deliver(delivery.bytes);
            }
        })
    }

    /// Takes a packet for the client. Whether it can still be told everything: if not, it is behind, and to be given up.
    pub fn push(&mut self, channel: Channel, packet: &[u8]) -> bool {
        if self.closes_us.is_some() {
            return true;
        }
        self.is_touched = true;
        if let Some(&[_, epoch, _, _, low, high, ..]) = packet.first_chunk::<PACKET_HEADER_BYTES>()
        {
            self.stamp.tick = u16::from_le_bytes([low, high]);
            self.stamp.epoch = epoch;
        }
        let stream = match channel {
            Channel::Reliable => StreamId::World,
            // One that this path takes in pieces only comes late, which it may, and does not hold up the others.
            Channel::Unreliable => match self.endpoint.push_unreliable(packet) {
                Err(PushRefused::TooLong { .. }) => StreamId::Bulk,
                Ok(()) | Err(_) => return true,
            },
        };
        match self.endpoint.push(stream, packet) {
            Ok(()) => {
                self.watch.pushed += framed_bytes(packet.len()) as u64;
                true
            }
            Err(PushRefused::Behind { .. }) => false,
            // No packet is empty, nor longer than a datagram.
            Err(_) => true,
        }
    }

    /// It is told nothing more than what it was given.
    pub fn close(&mut self, now_us: u64) {
        let until_us = now_us.saturating_add(self.limits.linger_us);
        self.closes_us.get_or_insert(until_us);
    }

    /// Makes the packets of now in `packet`, and hands each to `send`.
    pub fn flush(&mut self, now_us: u64, packet: &mut Vec<u8>, send: impl FnMut(&[u8])) {
        self.mark_flushed(now_us);
        self.endpoint
            .flush(now_us, self.stamp, usize::MAX, packet, send);
    }

    /// Takes note that it was its turn.
    pub const fn mark_flushed(&mut self, now_us: u64) {
        self.is_touched = false;
        self.flushed_us = now_us;
    }

    /// Whether the connection is over: because it was closed and everything is through, or there was no more time for it
    /// (`Closed`); or since nothing comes any more, or nothing arrives (`Lost`).
    pub fn end(&mut self, now_us: u64) -> Option<DisconnectReason> {
        let waiting = self.endpoint.waiting_bytes();
        if let Some(closes_us) = self.closes_us
            && (waiting == 0 || now_us >= closes_us)
        {
            return Some(DisconnectReason::Closed);
        }
        let silent_us = now_us.saturating_sub(self.heard_us);
        let is_silent = self.timeout_us.is_some_and(|most_us| silent_us >= most_us);
        let age_us = self.watch.age_us(now_us, waiting);
        (is_silent || age_us.saturating_mul(2) >= self.limits.unacknowledged_us_max)
            .then_some(DisconnectReason::Lost)
    }

    /// What happened at its end.
    pub const fn stats(&self) -> &EndpointStats {
        self.endpoint.stats()
    }
}

impl MemoryUse for ServerEndpoint {
    fn heap_bytes(&self) -> usize {
        self.endpoint.heap_bytes()
    }
}
