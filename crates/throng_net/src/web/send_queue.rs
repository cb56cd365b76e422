//! The send queue of a client: the server's tick or its sender threads write to it, and the client's task takes the packets.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use throng_protocol::wire::Channel;
use tokio::sync::Notify;

use super::settings::WebSettings;
use crate::connection_stats::{CONNECTION_STATS_US, ConnectionStats};
use crate::handshake::TokenUse;

/// Packets, contiguous in one buffer.
#[derive(Debug, Default)]
pub(super) struct QueuedPackets {
    pub bytes: Vec<u8>,
    ends: Vec<(Channel, usize)>,
}

impl QueuedPackets {
    fn push(&mut self, channel: Channel, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        self.ends.push((channel, self.bytes.len()));
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes and returns the packets, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = (Channel, Bytes)> + use<> {
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        let mut start = 0;
        let ends = std::mem::take(&mut self.ends).into_iter();
        ends.map(move |(channel, end)| {
            let packet = bytes.slice(start..end);
            start = end;
            (channel, packet)
        })
    }
}

/// State of a send queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SendQueueState {
    /// A reliable packet did not fit.
    pub is_full: bool,
    /// No more packets follow.
    pub is_closed: bool,
}

/// The send queue of a client.
#[derive(Debug, Default)]
pub(super) struct WebSendQueue {
    waiting: Mutex<(QueuedPackets, SendQueueState)>,
    /// There are packets to write, or the queue is closed.
    pub filled: Notify,
    /// The use of the token that admitted the client.
    pub token: TokenUse,
    /// The server has closed it.
    is_closed_by_server: AtomicBool,
    /// When the figures of the connection were measured, in microseconds, and the figures.
    measured: Mutex<(u64, ConnectionStats)>,
}

impl WebSendQueue {
    pub fn new(token: TokenUse) -> Self {
        Self {
            token,
            ..Self::default()
        }
    }

    /// Appends a packet; `of_all` counts the bytes that wait for all clients. Returns false if the packet is dropped without other
    /// consequences.
    pub fn push(
        &self,
        channel: Channel,
        packet: &[u8],
        of_all: &AtomicUsize,
        limits: &WebSettings,
    ) -> bool {
        let mut waiting = self.lock();
        let (packets, state) = &mut *waiting;
        if state.is_closed || state.is_full {
            return true;
        }
        let of_client = packets.bytes.len() + packet.len();
        let most = match channel {
            Channel::Reliable => limits.client_bytes_max,
            Channel::Unreliable => limits.unreliable_bytes_max,
        };
        // Threads that push at the same time may exceed the limit by one packet each.
        let is_room = of_all.load(Ordering::Relaxed) + packet.len() <= limits.outbound_bytes_max;
        if of_client > most || !is_room {
            state.is_full = channel == Channel::Reliable;
            return state.is_full;
        }
        of_all.fetch_add(packet.len(), Ordering::Relaxed);
        packets.push(channel, packet);
        true
    }

    /// The figures of the connection, if they were measured.
    pub fn connection_stats(&self) -> Option<ConnectionStats> {
        let (measured_us, stats) = *self.measured();
        (measured_us > 0).then_some(stats)
    }

    /// Measures the figures of the connection if it is time: round trip time in microseconds, bytes sent, share of lost packets.
    pub fn measure(&self, now_us: u64, measured: impl FnOnce() -> (u64, u64, f32)) {
        let mut last = self.measured();
        // The first measurement of a connection has no time that it could give a rate of.
        let elapsed_us = match last.0 {
            0 => u64::MAX,
            measured_us => now_us.saturating_sub(measured_us),
        };
        if elapsed_us >= CONNECTION_STATS_US {
            *last = (now_us.max(1), last.1.next(elapsed_us, measured()));
        }
    }

    fn measured(&self) -> MutexGuard<'_, (u64, ConnectionStats)> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server closes the client: the queue accepts no more packets.
    pub fn close(&self) {
        self.is_closed_by_server.store(true, Ordering::Relaxed);
        self.lock().1.is_closed = true;
    }

    /// Whether the server has closed the client.
    pub fn is_closed_by_server(&self) -> bool {
        self.is_closed_by_server.load(Ordering::Relaxed)
    }

    /// Swaps the packets with `empty`.
    pub fn swap(&self, empty: &mut QueuedPackets, of_all: &AtomicUsize) -> SendQueueState {
        debug_assert!(empty.is_empty());
        let mut waiting = self.lock();
        let (packets, state) = &mut *waiting;
        std::mem::swap(packets, empty);
        of_all.fetch_sub(empty.bytes.len(), Ordering::Relaxed);
        *state
    }

    /// Drops the packets, and refuses more.
    pub fn discard(&self, of_all: &AtomicUsize) {
        self.lock().1.is_closed = true;
        self.swap(&mut QueuedPackets::default(), of_all);
    }

    fn lock(&self) -> MutexGuard<'_, (QueuedPackets, SendQueueState)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> WebSettings {
        WebSettings {
            client_bytes_max: 100,
            unreliable_bytes_max: 50,
            outbound_bytes_max: 150,
            ..WebSettings::default()
        }
    }

    #[test]
    fn full_send_queue_drops_unreliable_and_marks_the_client() {
        let (line, of_all, limits) = (WebSendQueue::default(), AtomicUsize::new(0), limits());
        let push = |channel, length| line.push(channel, &vec![7; length], &of_all, &limits);
        assert!(push(Channel::Reliable, 40));
        assert!(!push(Channel::Unreliable, 20), "it is dropped");
        assert!(push(Channel::Reliable, 50));
        assert_eq!(of_all.load(Ordering::Relaxed), 90);
        let mut taken = QueuedPackets::default();
        assert_eq!(line.swap(&mut taken, &of_all), SendQueueState::default());
        let lengths = taken
            .drain()
            .map(|(channel, packet)| (channel, packet.len()));
        let reliable = [40, 50].map(|length| (Channel::Reliable, length));
        assert_eq!(Vec::from_iter(lengths), reliable);
        assert_eq!(of_all.load(Ordering::Relaxed), 0);
        // The same if other clients use all the room.
        of_all.store(140, Ordering::Relaxed);
        assert!(!push(Channel::Unreliable, 20));
        assert!(push(Channel::Reliable, 20));
        let state = line.swap(&mut taken, &of_all);
        assert!(state.is_full && taken.is_empty());
        assert_eq!(of_all.load(Ordering::Relaxed), 140);
    }

    #[test]
    fn discarded_send_queue_accepts_nothing() {
        let (line, of_all) = (WebSendQueue::default(), AtomicUsize::new(0));
        assert!(line.push(Channel::Reliable, &[1, 2], &of_all, &limits()));
        line.discard(&of_all);
        assert!(line.push(Channel::Reliable, &[1], &of_all, &limits()));
        let mut taken = QueuedPackets::default();
        assert!(line.swap(&mut taken, &of_all).is_closed && taken.is_empty());
        assert_eq!(of_all.load(Ordering::Relaxed), 0);
    }
}
