//! The server's endpoint of a client, with its deadlines. No encryption, no sockets, no clock.
//!
//! ```text
//! packet ─▶ endpoint ─▶ messages of the client          packets of the server ─▶ endpoint ─▶ packets of the transport
//! ```

use throng_core::memory::MemoryUse;
use throng_protocol::wire::{Channel, PACKET_HEADER_BYTES};

use super::endpoint::{EndpointSettings, EndpointStats, PacketError, ReliableEndpoint, SendError};
use super::packet::{PacketStamp, StreamId, framed_bytes};
use crate::inbox::DisconnectReason;

/// Time limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionLimits {
    pub endpoint: EndpointSettings,
    /// How long the endpoint sends what is left after [`close`](ServerEndpoint::close), at most.
    pub linger_us: u64,
    /// How long a client that sends packets may leave messages unacknowledged before the connection is lost.
    pub unacknowledged_us_max: u64,
}

/// After this time without a packet a client counts as silent: it may be in a tunnel, and cannot acknowledge anything.
const SILENCE_US: u64 = 1_000_000;

/// Measures how long data waits for its acknowledgement, with one mark that advances as bytes are acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct AckWatch {
    /// Bytes pushed in total.
    pushed: u64,
    /// The number of bytes pushed up to the mark, and its time. Not all of them are acknowledged.
    mark: Option<(u64, u64)>,
}

impl AckWatch {
    /// A lower bound of the age of the oldest unacknowledged data, while `waiting` bytes are unacknowledged. The true age is less than
    /// twice as much.
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
#[derive(Debug, MemoryUse)]
pub(super) struct ServerEndpoint {
    /// Something was pushed since the last flush.
    pub is_touched: bool,
    /// Time of the last flush.
    pub flushed_us: u64,
    endpoint: ReliableEndpoint,
    stamp: PacketStamp,
    timeout_us: Option<u64>,
    last_received_us: u64,
    /// Total time in which the client sent packets. Each silence counts for at most [`SILENCE_US`].
    active_us: u64,
    /// Set while the connection closes: it ends at this time at the latest.
    close_deadline_us: Option<u64>,
    watch: AckWatch,
    limits: ConnectionLimits,
}

impl ServerEndpoint {
    /// The endpoint of a client that is lost after this number of seconds without a packet. Below 0: never.
    pub fn new(timeout_s: i32, limits: ConnectionLimits, now_us: u64) -> Self {
        let timeout_s = u64::try_from(timeout_s).ok();
        Self {
            is_touched: false,
            flushed_us: now_us,
            endpoint: ReliableEndpoint::new(limits.endpoint),
            stamp: PacketStamp::default(),
            timeout_us: timeout_s.map(|timeout_s| timeout_s.saturating_mul(1_000_000)),
            last_received_us: now_us,
            active_us: 0,
            close_deadline_us: None,
            watch: AckWatch::default(),
            limits,
        }
    }

    /// Records that a packet of the client was received.
    pub fn mark_received(&mut self, now_us: u64) {
        self.active_us = self.active_us(now_us);
        self.last_received_us = self.last_received_us.max(now_us);
    }

    fn active_us(&self, now_us: u64) -> u64 {
        self.active_us + now_us.saturating_sub(self.last_received_us).min(SILENCE_US)
    }

    /// Handles a packet of the client, and passes the messages that it completes to `receive`. No messages while the connection closes.
    pub fn receive(
        &mut self,
        now_us: u64,
        packet: &[u8],
        mut deliver: impl FnMut(&[u8]),
    ) -> Result<(), PacketError> {
        let is_open = self.close_deadline_us.is_none();
        self.endpoint.receive(now_us, packet, |delivery| {
            if is_open {
                deliver(delivery.bytes);
            }
        })
    }

    /// Queues a packet for the client. Returns false if the send queue is full: then the connection has to be closed.
    pub fn push(&mut self, channel: Channel, packet: &[u8]) -> bool {
        if self.close_deadline_us.is_some() {
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
            // A packet that this path can send only in stream frames arrives later, which is allowed, and does not delay the others.
            Channel::Unreliable => match self.endpoint.push_unreliable(packet) {
                Err(SendError::TooLong { .. }) => StreamId::Bulk,
                Ok(()) | Err(_) => return true,
            },
        };
        match self.endpoint.push(stream, packet) {
            Ok(()) => {
                self.watch.pushed += framed_bytes(packet.len()) as u64;
                true
            }
            Err(SendError::SendQueueFull { .. }) => false,
            // Cannot happen: no packet is empty or longer than a datagram.
            Err(_) => true,
        }
    }

    /// Closes the connection. The client receives only what was pushed before.
    pub fn close(&mut self, now_us: u64) {
        let until_us = now_us.saturating_add(self.limits.linger_us);
        self.close_deadline_us.get_or_insert(until_us);
    }

    /// Builds the pending packets in `packet`, and passes each to `send`.
    pub fn flush(&mut self, now_us: u64, packet: &mut Vec<u8>, send: impl FnMut(&[u8])) {
        self.mark_flushed(now_us);
        self.endpoint
            .flush(now_us, self.stamp, usize::MAX, packet, send);
    }

    /// Records that the endpoint was flushed.
    pub const fn mark_flushed(&mut self, now_us: u64) {
        self.is_touched = false;
        self.flushed_us = now_us;
    }

    /// Whether the connection is over. `Closed`: it was closed, and everything is acknowledged or the time for it has passed. `Lost`: the
    /// client was silent for its timeout, or sends packets without acknowledging anything. A client that is silent for less than its
    /// timeout is not lost, whatever is in flight.
    pub fn end_reason(&mut self, now_us: u64) -> Option<DisconnectReason> {
        let waiting = self.endpoint.pending_bytes();
        if let Some(closes_us) = self.close_deadline_us
            && (waiting == 0 || now_us >= closes_us)
        {
            return Some(DisconnectReason::Closed);
        }
        let silent_us = now_us.saturating_sub(self.last_received_us);
        let is_silent = self.timeout_us.is_some_and(|most_us| silent_us >= most_us);
        let age_us = self.watch.age_us(self.active_us(now_us), waiting);
        (is_silent || age_us.saturating_mul(2) >= self.limits.unacknowledged_us_max)
            .then_some(DisconnectReason::Lost)
    }

    /// Smoothed round trip time, in microseconds; 0 before the first measurement.
    pub const fn round_trip_us(&self) -> u64 {
        self.endpoint.round_trip_us()
    }

    /// Estimated share of packets that do not arrive at the client.
    pub fn loss(&self) -> f32 {
        self.endpoint.loss()
    }

    /// Counters of the endpoint.
    pub const fn stats(&self) -> &EndpointStats {
        self.endpoint.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_US: u64 = 50_000;

    fn limits() -> ConnectionLimits {
        ConnectionLimits {
            endpoint: EndpointSettings::default(),
            linger_us: 1_000_000,
            unacknowledged_us_max: 5_000_000,
        }
    }

    /// When and why a connection with a timeout of 10 s ends, in milliseconds. The server sends in every tick. The client sends in the ticks
    /// for which `speaks` is true, and acknowledges if `acknowledges` is true.
    fn ends_at_ms(
        speaks: impl Fn(u64) -> bool,
        acknowledges: bool,
    ) -> Option<(u64, DisconnectReason)> {
        let limits = limits();
        let mut server = ServerEndpoint::new(10, limits, 0);
        let mut client = ReliableEndpoint::new(limits.endpoint.for_client());
        let mut buffer = Vec::new();
        for tick in 0..600 {
            let now_us = tick * TICK_US;
            server.push(Channel::Reliable, &[1; 20]);
            let mut packets = Vec::new();
            server.flush(now_us, &mut buffer, |packet| packets.push(packet.to_vec()));
            if speaks(tick) {
                for packet in packets.iter().filter(|_| acknowledges) {
                    client.receive(now_us, packet, |_| ()).unwrap();
                }
                client.push(StreamId::World, &[2]).ok();
                let mut answers = Vec::new();
                let stamp = PacketStamp::default();
                client.flush(now_us, stamp, usize::MAX, &mut buffer, |packet| {
                    answers.push(packet.to_vec());
                });
                for answer in answers {
                    server.mark_received(now_us);
                    server.receive(now_us, &answer, |_| ()).unwrap();
                }
            }
            if let Some(reason) = server.end_reason(now_us) {
                return Some((now_us / 1_000, reason));
            }
        }
        None
    }

    #[test]
    fn silence_shorter_than_the_timeout_ends_no_connection() {
        for gap_ticks in [40, 60, 120, 190] {
            let speaks = |tick| !(100..100 + gap_ticks).contains(&tick);
            assert_eq!(ends_at_ms(speaks, true), None, "a gap of {gap_ticks} ticks");
        }
        let (ms, reason) = ends_at_ms(|tick| tick < 100, true).unwrap();
        assert_eq!(reason, DisconnectReason::Lost);
        assert!((14_900..15_100).contains(&ms), "{ms}");
    }

    #[test]
    fn client_that_sends_but_never_acknowledges_is_lost() {
        let (ms, reason) = ends_at_ms(|_| true, false).unwrap();
        assert_eq!(reason, DisconnectReason::Lost);
        assert!((2_400..5_100).contains(&ms), "{ms}");
    }
}
