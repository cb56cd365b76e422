//! The packets of a whole batch, put together by several threads.
//!
//! ```text
//! lines ─┬─ the first share ──▶ PacketWriter ─────────────────────────▶ Sink
//!        └─ each other share ─▶ PacketWriter of its own ─▶ HeldPackets ─▶ Sink, when those before it are through
//! ```
//! A share is of consecutive lines, and its packets wait for those of the shares before: so the sink gets what one thread would have
//! handed it, in the same order. Shares lie as the parts do that the workers wrote, whose caches have what they read here.
//!
//! Invariant: who assembles, and how many do, changes nothing that a sink is told.
//!
//! Cost: of two threads somewhat more than half of one's; one copy more of what others than the first put together.

use std::iter;
use std::ops::Range;

use super::assemble::{Assembler, ClientNumbers, place_of};
use super::batch::{Batch, BatchPart, LineHead};
use super::sink::Sink;
use crate::memory::MemoryUse;
use crate::sim::Spread;
use crate::wire::{Channel, ClientId, CloseReason, PacketTotals, PacketWriter};

/// The fewest lines that are worth a share.
const LINES_MIN: usize = if cfg!(test) { 2 } else { 256 };

/// What a share is put together with.
#[derive(Clone, Debug, Default)]
pub(super) struct ShareScratch {
    writer: PacketWriter,
    packets: HeldPackets,
}

/// Packets that wait for those before them, and who is closed behind which of them.
#[derive(Clone, Debug, Default)]
struct HeldPackets {
    bytes: Vec<u8>,
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

impl Sink for HeldPackets {
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

impl HeldPackets {
    /// Hands everything to the sink that it is for.
    fn pass_on(&mut self, sink: &mut dyn Sink) {
        let mut rest = &self.bytes[..];
        for &(client, delivery) in &self.calls {
            match delivery {
                SinkCall::Packet { channel, length } => {
                    let (packet, behind) = rest.split_at(usize::from(length));
                    sink.deliver(client, channel, packet);
                    rest = behind;
                }
                SinkCall::Close(reason) => sink.close(client, reason),
            }
        }
        give_back_half(&mut self.bytes);
        give_back_half(&mut self.calls);
        self.bytes.clear();
        self.calls.clear();
    }
}

/// What was taken for a burst is given back, with room for somewhat more than this tick needed.
fn give_back_half<T>(buffer: &mut Vec<T>) {
    if buffer.capacity() > 2 * buffer.len() {
        buffer.shrink_to(buffer.len() + buffer.len() / 4);
    }
}

/// Consecutive lines of a batch, and what their packets are made with.
struct Share<'a> {
    /// Their numbers in the batch.
    lines: Range<usize>,
    /// Of the lines' clients, and maybe of others between them.
    numbers: &'a mut [ClientNumbers],
    writer: &'a mut PacketWriter,
    sink: &'a mut dyn Sink,
    written: PacketTotals,
}

impl Share<'_> {
    fn assemble(&mut self, batch: &Batch) {
        // Shares lie side by side: what changes line by line stays out of them.
        let (mut next, mut written) = (0, PacketTotals::default());
        for line in batch.lines_in(self.lines.clone()) {
            let Ok(place) = place_of(self.numbers, next, line.head.client) else {
                debug_assert!(false, "all clients were met before");
                continue;
            };
            next = place + 1;
            written.add(self.numbers[place].write(
                self.writer,
                batch.tick,
                line.head,
                line.messages(&batch.shared),
                self.sink,
            ));
        }
        self.written = written;
    }
}

impl Assembler {
    /// Hands the packets of all lines to the sink, in their order. O(bytes), and O(clients) for each that is new or closed.
    pub fn batch(
        &mut self,
        batch: &Batch,
        spread: impl Spread,
        sink: &mut dyn Sink,
    ) -> PacketTotals {
        let lines = batch.len();
        let shares = spread.hands().min(lines / LINES_MIN);
        let mut written = PacketTotals::default();
        if shares <= 1 || !self.meet_all(batch) {
            for line in batch.lines_in(0..lines) {
                written.add(self.line(batch.tick, line, &batch.shared, sink));
            }
            return written;
        }
        let mut sharing = self.share_out(batch, (lines, shares), sink);
        spread.for_each_in_turn(&mut sharing, |share| {
            share.assemble(batch);
        });
        for share in sharing {
            written.add(share.written);
        }
        for other in &mut self.others {
            other.packets.pass_on(sink);
        }
        let closed = heads(batch).filter(|head| head.close.is_some());
        closed.for_each(|head| self.remove(head.client));
        written
    }

    /// Has numbers of all the batch's clients, and says whether these ascend.
    fn meet_all(&mut self, batch: &Batch) -> bool {
        let mut before = None;
        heads(batch).all(|head| {
            self.place(head.client);
            before.replace(head.client) < Some(head.client)
        })
    }

    /// As many shares of so many lines, of clients that ascend and have numbers.
    fn share_out<'a>(
        &'a mut self,
        batch: &'a Batch,
        (lines, shares): (usize, usize),
        sink: &'a mut dyn Sink,
    ) -> Vec<Share<'a>> {
        let mtu_bytes = self.writer.mtu_bytes();
        self.others.resize_with(shares - 1, ShareScratch::default);
        let others = self.others.iter_mut().map(|other| {
            other.writer.set_mtu_bytes(mtu_bytes);
            (&mut other.writer, &mut other.packets as &mut dyn Sink)
        });
        let mut numbers = &mut self.clients[..];
        let makers = iter::once((&mut self.writer, sink)).chain(others);
        let share = |(nth, (writer, sink))| {
            let [start, end] = [nth, nth + 1].map(|nth| nth * lines / shares);
            let behind = batch.lines_in(end..end + 1).next();
            let behind = behind.map_or(numbers.len(), |line| {
                numbers.partition_point(|known| known.client < line.head.client)
            });
            let own;
            (own, numbers) = std::mem::take(&mut numbers).split_at_mut(behind);
            Share {
                lines: start..end,
                numbers: own,
                writer,
                sink,
                written: PacketTotals::default(),
            }
        };
        makers.enumerate().map(share).collect()
    }
}

fn heads(batch: &Batch) -> impl Iterator<Item = LineHead> {
    batch.parts.iter().flat_map(BatchPart::heads)
}

impl MemoryUse for ShareScratch {
    fn heap_bytes(&self) -> usize {
        let HeldPackets { bytes, calls } = &self.packets;
        self.writer.heap_bytes() + bytes.heap_bytes() + calls.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sim::{Inline, Workers};

    /// Everything that a sink is told, in order.
    #[derive(Debug, Default, PartialEq)]
    struct Told(Vec<(ClientId, Option<Channel>, Vec<u8>)>);

    impl Sink for Told {
        fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
            self.0.push((client, Some(channel), packet.to_vec()));
        }

        fn close(&mut self, client: ClientId, reason: CloseReason) {
            self.0.push((client, None, vec![reason.number()]));
        }
    }

    /// A client's line: how many messages of both channels, of how many bytes, and whether it is the last.
    type Line = (u32, [usize; 2], usize, bool);

    fn batch(tick: u64, parts: &[Vec<Line>], ascends: bool) -> Batch {
        let mut batch = Batch {
            tick,
            ..Batch::default()
        };
        let shared = batch.share(|bytes| bytes.extend([20; 30]));
        let mut before = 0;
        for (nth, lines) in parts.iter().enumerate() {
            for &(more, [reliable, unreliable], bytes, closes) in lines {
                let client = if ascends { before + more } else { more };
                before = client;
                let part = batch.part(nth);
                part.begin(ClientId(client), 1, 0);
                (0..reliable).for_each(|_| part.reliable(shared));
                part.write_reliable(|own| own.resize(own.len() + bytes, 21));
                (0..unreliable).for_each(|_| part.unreliable(shared));
                if closes {
                    part.close(CloseReason::Ended);
                }
            }
        }
        batch.finish();
        batch
    }

    fn lines() -> impl Strategy<Value = Vec<Line>> {
        let line = (
            1u32..4,
            [0usize..60, 0usize..60],
            0usize..2_000,
            prop::bool::weighted(0.1),
        );
        prop::collection::vec(line, 0..9)
    }

    proptest! {
        #![proptest_config(draws!())]

        /// The model is the same done line by line, on one thread.
        #[test]
        fn any_number_of_threads_hands_over_what_one_does(
            ticks in prop::collection::vec((prop::collection::vec(lines(), 0..5), prop::bool::weighted(0.9)), 1..5),
            workers in 2usize..5,
        ) {
            let [mut alone, mut together] = [Assembler::new(500), Assembler::new(500)];
            for (tick, (parts, ascends)) in (1..).zip(ticks) {
                let batch = batch(tick, &parts, ascends);
                let [mut expected, mut found] = [Told::default(), Told::default()];
                let written = alone.batch(&batch, Inline, &mut expected);
                let found_written = together.batch(&batch, Workers::with_pool(workers), &mut found);
                prop_assert_eq!(found, expected);
                prop_assert_eq!(found_written, written);
                prop_assert_eq!(together.clients(), alone.clients());
            }
        }
    }

    #[test]
    fn what_a_burst_took_is_given_back() {
        let mut assembler = Assembler::default();
        let mut held = |bytes: usize| {
            let parts = [vec![(1, [1, 0], bytes, false); 8]];
            let batch = batch(1, &parts, true);
            assembler.batch(&batch, Workers::with_pool(2), &mut Told::default());
            assembler.others[0].packets.bytes.capacity()
        };
        assert_eq!(held(100), held(100));
        assert!(held(1_000) > 4_000);
        held(100);
        assert!(held(100) < 1_500);
    }
}
