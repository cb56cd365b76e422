//! Packets that wait until earlier ones have reached the sink.

use throng_core::memory::{MemoryUse, clear_and_shrink};
use throng_protocol::wire::{Channel, ClientId, CloseReason, PacketWriter};

use super::sink::PacketSink;

/// Bytes of packets that a range may store before it stops.
pub(super) const DEFERRED_BYTES_MAX: u64 = if cfg!(test) { 3_000 } else { 1 << 20 };

/// Scratch of a range. Each has its own cache lines, because it is written to for every packet.
#[derive(Clone, Debug, Default, MemoryUse)]
#[repr(align(128))]
pub(super) struct AssemblyScratch {
    pub(super) writer: PacketWriter,
    pub(super) packets: DeferredPackets,
}

/// Deferred packets, and the clients to close between them.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(super) struct DeferredPackets {
    pub(super) bytes: Vec<u8>,
    calls: Vec<(ClientId, SinkCall)>,
}

/// A deferred call of the sink.
#[derive(Clone, Copy, Debug)]
enum SinkCall {
    /// A packet of this length, stored after the earlier ones.
    Packet {
        channel: Channel,
        length: u16,
    },
    Close(CloseReason),
}

impl PacketSink for DeferredPackets {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        let Ok(length) = u16::try_from(packet.len()) else {
            debug_assert!(false, "a packet is no longer than a datagram");
            return;
        };
        if self.bytes.capacity() - self.bytes.len() < packet.len() {
            // Doubling would allocate more than the rest of the outbox has.
            self.bytes
                .reserve_exact(self.bytes.len() / 4 + packet.len());
        }
        self.bytes.extend_from_slice(packet);
        self.calls
            .push((client, SinkCall::Packet { channel, length }));
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        self.calls.push((client, SinkCall::Close(reason)));
    }
}

impl DeferredPackets {
    /// Removes everything and keeps the buffers.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.calls.clear();
    }

    /// Passes everything to the sink.
    pub(super) fn send_to(&mut self, sink: &mut dyn PacketSink) {
        let mut rest = &self.bytes[..];
        for &(client, call) in &self.calls {
            match call {
                SinkCall::Packet { channel, length } => {
                    let (packet, behind) = rest.split_at(usize::from(length));
                    sink.deliver(client, channel, packet);
                    rest = behind;
                }
                SinkCall::Close(reason) => sink.close(client, reason),
            }
        }
        clear_and_shrink(&mut self.bytes);
        clear_and_shrink(&mut self.calls);
    }
}
