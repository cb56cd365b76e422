//! Sinks: where packets leave the outbox.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_core::memory::MemoryUse;
use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{Channel, ClientId};

/// Receives packets as they leave the server.
///
/// Sender threads call it if there are any; otherwise the tick does, from one thread at a time. It must not panic: errors are counted.
pub trait PacketSink: Send + Sync {
    /// Sends one packet to one client. Must not block.
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]);

    /// No more packets follow for this client.
    fn close(&mut self, client: ClientId, reason: CloseReason) {
        let _ = (client, reason);
    }

    /// Nothing else to deliver for now: write out what was gathered.
    fn flush(&mut self) {}

    /// Number of packets that could not be sent so far.
    fn errors(&self) -> u64 {
        0
    }
}

impl<S: PacketSink + ?Sized> PacketSink for Box<S> {
    #[inline]
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        (**self).deliver(client, channel, packet);
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        (**self).close(client, reason);
    }

    fn flush(&mut self) {
        (**self).flush();
    }

    fn errors(&self) -> u64 {
        (**self).errors()
    }
}

/// A sink that only counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountingSink {
    /// Packets delivered.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
}

impl PacketSink for CountingSink {
    #[inline]
    fn deliver(&mut self, _client: ClientId, _channel: Channel, packet: &[u8]) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
    }
}

/// Packets, contiguous in one buffer.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct PacketBuffer {
    bytes: Vec<u8>,
    ends: Vec<(ClientId, usize)>,
}

impl PacketBuffer {
    /// Appends a frame that `write` writes; an empty one is dropped.
    pub fn push(&mut self, client: ClientId, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        debug_assert!(self.bytes.len() >= start, "a frame only appends");
        if self.bytes.len() > start {
            self.ends.push((client, self.bytes.len()));
        }
    }

    /// The frames, in the order of pushing.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(client, end)| {
            let frame = &self.bytes[start..end];
            start = end;
            (client, frame)
        })
    }

    /// Removes all frames and keeps the buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl PacketSink for PacketBuffer {
    fn deliver(&mut self, client: ClientId, _channel: Channel, packet: &[u8]) {
        self.push(client, |bytes| bytes.extend_from_slice(packet));
    }
}

/// A sink that stores packets in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemorySink {
    delivered: Arc<Mutex<DeliveredPackets>>,
}

/// The contents of a [`MemorySink`].
#[derive(Clone, Debug, Default)]
pub struct DeliveredPackets {
    /// The packets, in the order of delivery.
    pub packets: PacketBuffer,
    /// Closed clients, with the reason.
    pub closed: Vec<(ClientId, CloseReason)>,
}

impl DeliveredPackets {
    /// Removes everything and keeps the buffers.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.closed.clear();
    }
}

impl MemorySink {
    /// The stored packets. Deliveries wait while the guard is held.
    pub fn delivered(&self) -> MutexGuard<'_, DeliveredPackets> {
        self.delivered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns what was delivered since the last call.
    #[must_use]
    pub fn take(&self) -> DeliveredPackets {
        std::mem::take(&mut *self.delivered())
    }
}

impl PacketSink for MemorySink {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        self.delivered().packets.deliver(client, channel, packet);
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        let mut kept = self
            .delivered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        kept.closed.push((client, reason));
    }
}

/// One sink that several threads share, each with a clone; a lock guards it.
#[derive(Clone)]
pub struct SharedSink(pub Arc<Mutex<Box<dyn PacketSink>>>);

impl SharedSink {
    fn with<R>(&self, work: impl FnOnce(&mut dyn PacketSink) -> R) -> R {
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut **sink)
    }
}

impl PacketSink for SharedSink {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        self.with(|sink| sink.deliver(client, channel, packet));
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        self.with(|sink| sink.close(client, reason));
    }

    fn flush(&mut self) {
        self.with(|sink| sink.flush());
    }

    fn errors(&self) -> u64 {
        self.with(|sink| sink.errors())
    }
}

impl MemoryUse for MemorySink {
    fn heap_bytes(&self) -> usize {
        let kept = self.delivered();
        kept.packets.heap_bytes() + kept.closed.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_their_order_and_bytes() {
        let mut frames = PacketBuffer::default();
        frames.push(ClientId(1), |bytes| bytes.extend([1, 2]));
        frames.push(ClientId(2), |_| ());
        frames.push(ClientId(3), |bytes| bytes.push(3));
        let all: Vec<(u32, Vec<u8>)> = frames
            .iter()
            .map(|(client, frame)| (client.0, frame.to_vec()))
            .collect();
        assert_eq!(all, [(1, vec![1, 2]), (3, vec![3])]);
    }
}
