//! Where packets go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_core::memory::MemoryUse;
use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{Channel, ClientId};

/// Takes packets as they leave the server.
///
/// With sender threads it is called there, otherwise in the tick, by one thread after another. It does not panic: what goes wrong is counted.
pub trait PacketSink: Send + Sync {
    /// Takes one packet for one client. Must not block.
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]);

    /// Nothing more comes for this client.
    fn close(&mut self, client: ClientId, reason: CloseReason) {
        let _ = (client, reason);
    }

    /// There is nothing more to deliver for now: a good time to write out what was gathered.
    fn flush(&mut self) {}

    /// How many packets could not be passed on so far.
    fn errors(&self) -> u64 {
        0
    }
}

/// Counts and forgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountingSink {
    /// Packets that were delivered.
    pub packets: u64,
    /// The bytes of those packets, headers included.
    pub bytes: u64,
}

impl PacketSink for CountingSink {
    #[inline]
    fn deliver(&mut self, _client: ClientId, _channel: Channel, packet: &[u8]) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
    }
}

/// Packets side by side in one buffer.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct PacketBuffer {
    bytes: Vec<u8>,
    ends: Vec<(ClientId, usize)>,
}

impl PacketBuffer {
    /// Appends a frame that `write` writes; a frame of no bytes is none.
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

    /// Forgets all frames and keeps the buffers.
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

/// Keeps packets in memory, for whoever has a clone of it.
#[derive(Clone, Debug, Default)]
pub struct MemorySink {
    delivered: Arc<Mutex<DeliveredPackets>>,
}

/// What a [`MemorySink`] has.
#[derive(Clone, Debug, Default)]
pub struct DeliveredPackets {
    /// The packets, in the order of their delivery.
    pub packets: PacketBuffer,
    /// Who was closed, and why.
    pub closed: Vec<(ClientId, CloseReason)>,
}

impl DeliveredPackets {
    /// Forgets everything and keeps the buffers.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.closed.clear();
    }
}

impl MemorySink {
    /// What was kept, to look at; deliveries wait as long.
    pub fn delivered(&self) -> MutexGuard<'_, DeliveredPackets> {
        self.delivered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what was delivered since the last time.
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

/// One sink for several threads, each of which has a clone; a lock guards it.
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
