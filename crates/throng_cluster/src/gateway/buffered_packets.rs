//! Packets for clients, until the lock of the gateway is released.

use throng_net::outbox::PacketSink;
use throng_protocol::wire::{Channel, ClientId, CloseReason};

/// A call of a sink.
#[derive(Clone, Copy, Debug)]
enum BufferedCall {
    /// A packet, and its length.
    Deliver(ClientId, Channel, usize),
    Close(ClientId, CloseReason),
}

/// Calls of a sink, in order.
#[derive(Debug, Default)]
pub(super) struct BufferedPackets {
    calls: Vec<BufferedCall>,
    /// The packets, one after the other.
    bytes: Vec<u8>,
}

impl BufferedPackets {
    /// Passes all calls on and removes them.
    pub fn pass_on(&mut self, sink: &mut dyn PacketSink) {
        let mut rest = &*self.bytes;
        for call in self.calls.drain(..) {
            match call {
                BufferedCall::Deliver(client, channel, length) => {
                    let (packet, after) = rest.split_at(length);
                    rest = after;
                    sink.deliver(client, channel, packet);
                }
                BufferedCall::Close(client, reason) => sink.close(client, reason),
            }
        }
        sink.flush();
        self.bytes.clear();
    }
}

impl PacketSink for BufferedPackets {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        let call = BufferedCall::Deliver(client, channel, packet.len());
        self.calls.push(call);
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        self.calls.push(BufferedCall::Close(client, reason));
    }
}

#[cfg(test)]
mod tests {
    use throng_net::outbox::MemorySink;

    use super::*;

    #[test]
    fn calls_are_passed_on_once_and_in_order() {
        let (one, two) = (ClientId(1), ClientId(2));
        let mut buffer = BufferedPackets::default();
        let sink = MemorySink::default();
        for round in 0..2 {
            buffer.deliver(one, Channel::Reliable, &[round, 1]);
            buffer.deliver(two, Channel::Unreliable, &[round]);
            buffer.close(one, CloseReason::Lost);
            buffer.pass_on(&mut sink.clone());
            let delivered = sink.take();
            let packets: Vec<(ClientId, Vec<u8>)> = delivered
                .packets
                .iter()
                .map(|(client, packet)| (client, packet.to_vec()))
                .collect();
            assert_eq!(packets, [(one, vec![round, 1]), (two, vec![round])]);
            assert_eq!(delivered.closed, [(one, CloseReason::Lost)]);
        }
        buffer.pass_on(&mut sink.clone());
        assert_eq!(sink.take().packets.iter().count(), 0);
    }
}
