//! Packets that wait until those before them have reached the sink.

use throng_core::memory::{MemoryUse, clear_and_shrink};
use throng_protocol::wire::{Channel, ClientId, CloseReason, PacketWriter};

use super::sink::PacketSink;

/// Bytes of packets that a share may hold before it stops.
pub(super) const DEFERRED_BYTES_MAX: u64 = if cfg!(test) { 3_000 } else { 1 << 20 };

/// What a share is put together with. Each has lines of memory of its own, as it is written to packet by packet.
#[derive(Clone, Debug, Default, MemoryUse)]
#[repr(align(128))]
pub(super) struct AssemblyScratch {
    pub(super) writer: PacketWriter,
    pub(super) packets: DeferredPackets,
}

/// Packets that wait for those before them, and who is closed behind which of them.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(super) struct DeferredPackets {
    pub(super) bytes: Vec<u8>,
    calls: Vec<(ClientId, SinkCall)>,
}

/// What a sink is told.
#[derive(Clone, Copy, Debug)]
enum SinkCall {
    /// A packet of so many bytes, behind those before.
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
            // To double would be more than all else that the outbox holds.
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
    /// Forgets everything and keeps the buffers.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.calls.clear();
    }

    /// Hands everything to the sink that it is for.
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
