//! Assembles packets from the updates of clients. No ECS: spans in, packets out.
//!
//! An assembler stores the sequence numbers of its clients' channels: one assembler for all clients, or one per shard. Several threads can
//! assemble a whole batch: see `parallel_assembly`.

use throng_core::memory::MemoryUse;
use throng_protocol::wire::{
    Channel, ChannelState, ClientId, PacketHeader, PacketTotals, PacketWriter,
};

use super::batch::{ClientUpdate, ClientUpdateHeader};
use super::deferred_packets::AssemblyScratch;
use super::sink::PacketSink;

/// The sequence numbers of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientSequences {
    pub(super) client: ClientId,
    reliable: ChannelState,
    unreliable: ChannelState,
}

impl ClientSequences {
    fn new(client: ClientId) -> Self {
        Self {
            client,
            reliable: ChannelState::default(),
            unreliable: ChannelState::default(),
        }
    }

    /// Passes the packets of both channels to the sink, and closes the client there if its update does.
    #[inline]
    pub(super) fn write<'m>(
        &mut self,
        writer: &mut PacketWriter,
        tick: u64,
        head: ClientUpdateHeader,
        (reliable, unreliable): (
            impl Iterator<Item = &'m [u8]>,
            impl Iterator<Item = &'m [u8]>,
        ),
        sink: &mut dyn PacketSink,
    ) -> PacketTotals {
        let client = head.client;
        let mut header = PacketHeader {
            channel: Channel::Reliable,
            epoch: head.epoch,
            sequence: 0,
            tick: tick as u16,
            input: head.input,
        };
        let mut written = writer.write(header, &mut self.reliable, reliable, |packet| {
            sink.deliver(client, Channel::Reliable, packet);
        });
        header.channel = Channel::Unreliable;
        written.add(
            writer.write(header, &mut self.unreliable, unreliable, |packet| {
                sink.deliver(client, Channel::Unreliable, packet);
            }),
        );
        if let Some(reason) = head.close {
            sink.close(client, reason);
        }
        written
    }
}

/// Index of a client's sequence numbers, usually `next`, or the index at which to insert them.
#[inline]
pub(super) fn index_of(
    clients: &[ClientSequences],
    next: usize,
    client: ClientId,
) -> Result<usize, usize> {
    if clients
        .get(next)
        .is_some_and(|known| known.client == client)
    {
        return Ok(next);
    }
    clients.binary_search_by_key(&client, |known| known.client)
}

/// Assembles packets.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Assembler {
    pub(super) writer: PacketWriter,
    /// In ascending order of client.
    pub(super) clients: Vec<ClientSequences>,
    /// Index after the client of the last update, which is usually the index of the next one.
    next_index: usize,
    /// Scratch of the other threads.
    #[memory(each)]
    pub(super) worker_scratch: Vec<AssemblyScratch>,
}

impl Assembler {
    /// With packets of at most `mtu_bytes`.
    #[must_use]
    pub fn new(mtu_bytes: usize) -> Self {
        Self {
            writer: PacketWriter::new(mtu_bytes),
            ..Self::default()
        }
    }

    /// Changes the maximum length of packets.
    pub fn set_mtu_bytes(&mut self, mtu_bytes: usize) {
        self.writer.set_mtu_bytes(mtu_bytes);
    }

    /// Passes the packets of an update to the sink: those of the reliable channel, then the others. O(bytes), and O(log clients) if clients
    /// do not ascend from update to update.
    pub fn write_update(
        &mut self,
        tick: u64,
        line: ClientUpdate,
        shared: &[u8],
        sink: &mut dyn PacketSink,
    ) -> PacketTotals {
        let (reliable, unreliable) = line.messages(shared);
        self.write_messages(tick, line.header, reliable, unreliable, sink)
    }

    /// The same for messages from any buffers.
    pub fn write_messages<'m>(
        &mut self,
        tick: u64,
        head: ClientUpdateHeader,
        reliable: impl Iterator<Item = &'m [u8]>,
        unreliable: impl Iterator<Item = &'m [u8]>,
        sink: &mut dyn PacketSink,
    ) -> PacketTotals {
        let place = self.index_or_insert(head.client);
        let numbers = &mut self.clients[place];
        let written = numbers.write(&mut self.writer, tick, head, (reliable, unreliable), sink);
        if head.close.is_some() {
            self.clients.remove(place);
            self.next_index = place;
        }
        written
    }

    /// Index of a client's sequence numbers, which start at 0 for a new client.
    #[inline]
    pub(super) fn index_or_insert(&mut self, client: ClientId) -> usize {
        let found = index_of(&self.clients, self.next_index, client);
        let place = found.unwrap_or_else(|place| {
            self.clients.insert(place, ClientSequences::new(client));
            place
        });
        self.next_index = place + 1;
        place
    }

    /// Removes a client.
    pub(super) fn remove(&mut self, client: ClientId) {
        if let Ok(place) = index_of(&self.clients, self.next_index, client) {
            self.clients.remove(place);
        }
        self.next_index = 0;
    }

    /// Number of clients with sequence numbers.
    #[must_use]
    pub const fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Moves the clients of another assembler into this one. They must not have any client in common.
    pub(super) fn absorb(&mut self, other: Self) {
        self.clients.extend(other.clients);
        self.clients.sort_unstable_by_key(|known| known.client);
        self.next_index = 0;
    }

    /// Moves the clients of a shard to a new assembler with packets of at most `mtu_bytes`.
    pub(super) fn split_off(
        &mut self,
        mtu_bytes: usize,
        of_shard: impl Fn(ClientId) -> bool,
    ) -> Self {
        let mut shard = Self::new(mtu_bytes);
        shard.clients = self
            .clients
            .extract_if(.., |known| of_shard(known.client))
            .collect();
        self.next_index = 0;
        shard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::batch::OutgoingBatch;
    use crate::outbox::sink::PacketBuffer;
    use throng_protocol::wire::CloseReason;
    use throng_protocol::wire::{Reassembler, WireReader};

    /// Sends a batch and returns the sequence numbers in the headers, by client and channel.
    fn sequences(assembler: &mut Assembler, batch: &OutgoingBatch) -> Vec<(u32, Channel, u16)> {
        let mut frames = PacketBuffer::default();
        for part in &batch.parts {
            for line in part.updates() {
                assembler.write_update(batch.tick, line, &batch.shared, &mut frames);
            }
        }
        let head = |(client, packet): (ClientId, &[u8])| {
            let header = PacketHeader::read(&mut WireReader::new(packet)).unwrap();
            (client.0, header.channel, header.sequence)
        };
        frames.iter().map(head).collect()
    }

    fn batch(clients: &[u32], close: Option<CloseReason>) -> OutgoingBatch {
        let mut batch = OutgoingBatch::default();
        for &client in clients {
            let part = batch.part(0);
            part.begin_client(ClientId(client), 1, 0);
            part.write_reliable(|bytes| bytes.extend([20; 30]));
            part.write_unreliable(|bytes| bytes.extend([21; 30]));
            if let Some(reason) = close {
                part.close(reason);
            }
            part.end_client();
        }
        batch
    }

    #[test]
    fn packet_sequences_are_per_client_and_channel_in_any_order() {
        let mut assembler = Assembler::default();
        for round in 0..3 {
            for clients in [[2, 5, 9], [9, 5, 2]] {
                let found = sequences(&mut assembler, &batch(&clients, None));
                let number = if clients[0] == 2 {
                    2 * round
                } else {
                    2 * round + 1
                };
                let expected: Vec<_> = clients
                    .iter()
                    .flat_map(|&client| {
                        [Channel::Reliable, Channel::Unreliable]
                            .map(|channel| (client, channel, number))
                    })
                    .collect();
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn closed_client_is_removed() {
        let mut assembler = Assembler::default();
        sequences(&mut assembler, &batch(&[1, 2, 3], None));
        sequences(&mut assembler, &batch(&[2], Some(CloseReason::Ended)));
        assert_eq!(assembler.clients(), 2);
        let found = sequences(&mut assembler, &batch(&[1, 2, 3], None));
        let first: Vec<u16> = found
            .iter()
            .step_by(2)
            .map(|&(.., number)| number)
            .collect();
        assert_eq!(first, [1, 0, 1]);
    }

    #[test]
    fn clients_move_between_assemblers_with_their_sequences() {
        let mut all = Assembler::default();
        sequences(&mut all, &batch(&[1, 2, 3, 4], None));
        let mut even = all.split_off(1_200, |client| client.0 % 2 == 0);
        assert_eq!((all.clients(), even.clients()), (2, 2));
        assert_eq!(sequences(&mut even, &batch(&[4], None))[0].2, 1);
        all.absorb(even);
        let found = sequences(&mut all, &batch(&[1, 2, 3, 4], None));
        let first: Vec<u16> = found
            .iter()
            .step_by(2)
            .map(|&(.., number)| number)
            .collect();
        assert_eq!(first, [1, 1, 1, 2]);
    }

    #[test]
    fn a_long_message_between_short_ones_reads_back() {
        let mut batch = OutgoingBatch {
            tick: 70_000,
            ..OutgoingBatch::default()
        };
        let long: Vec<u8> = (0..5_000_u32).map(|n| 20 + (n % 200) as u8).collect();
        let short = batch.push_shared(|bytes| bytes.extend([30; 20]));
        let shared = batch.push_shared(|bytes| bytes.extend_from_slice(&long));
        let part = batch.part(0);
        part.begin_client(ClientId(1), 4, 9);
        part.reliable(short);
        part.reliable(shared);
        part.reliable(short);
        part.end_client();
        let mut frames = PacketBuffer::default();
        let line = batch.parts[0].update(0).unwrap();
        let written =
            Assembler::new(500).write_update(batch.tick, line, &batch.shared, &mut frames);
        assert_eq!((written.messages, written.too_long), (3, 0));
        let (mut reassembler, mut read) = (Reassembler::default(), Vec::new());
        for (_, packet) in frames.iter() {
            let received = reassembler.accept(packet).unwrap();
            assert_eq!((received.header.tick, received.header.input), (4_464, 9));
            read.extend_from_slice(received.messages);
        }
        assert_eq!(read, [&[30; 20][..], &long, &[30; 20]].concat());
    }
}
