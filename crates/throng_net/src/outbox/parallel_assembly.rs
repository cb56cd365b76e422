//! Assembles the packets of a whole batch on several threads.
//!
//! ```text
//! updates ─┬─ the first range ──▶ PacketWriter ────────────────────────────▶ PacketSink
//!          └─ each other range ─▶ its own PacketWriter ─▶ DeferredPackets ─▶ PacketSink, after the ranges before
//! ```
//!
//! A range contains consecutive updates, and its packets wait for those of the ranges before. So the sink receives the packets in the same
//! order as from one thread. Ranges match the parts that the workers wrote, whose caches contain the bytes. A thread stops when its
//! deferred packets reach their limit. The calling thread then assembles the rest of that range, and all updates of clients that do not
//! ascend. Closed clients are removed last.
//!
//! Invariant: the calls of the sink do not depend on the number of threads or on which thread assembles what.
//!
//! Cost: with two threads, slightly more than half the time of one; one more copy of the packets of all ranges except the first. Each of
//! these ranges stores at most 1 MiB plus one update.

use std::iter;
use std::ops::Range;

use throng_core::parallel::ParallelExecutor;
use throng_protocol::wire::{PacketTotals, PacketWriter};

use super::assemble::{Assembler, ClientSequences, index_of};
use super::batch::{BatchPart, ClientUpdateHeader, OutgoingBatch};
use super::deferred_packets::{AssemblyScratch, DEFERRED_BYTES_MAX};
use super::sink::PacketSink;

/// The minimum number of updates of a range.
const UPDATES_MIN: usize = if cfg!(test) { 2 } else { 256 };

/// Consecutive updates of a batch, and what their packets are assembled with.
struct AssemblyRange<'a> {
    /// Their numbers in the batch, except those that are done.
    remaining: Range<usize>,
    /// Of the updates' clients, and perhaps of clients between them.
    sequences: &'a mut [ClientSequences],
    writer: &'a mut PacketWriter,
    sink: &'a mut dyn PacketSink,
    bytes_max: u64,
    written: PacketTotals,
}

impl AssemblyRange<'_> {
    fn assemble(&mut self, batch: &OutgoingBatch) {
        // Ranges are adjacent in memory: values that change per update are kept out of them.
        let (mut next, mut done, mut written) = (0, 0, PacketTotals::default());
        for line in batch.updates_in(self.remaining.clone()) {
            if written.bytes >= self.bytes_max {
                break;
            }
            let Ok(place) = index_of(self.sequences, next, line.header.client) else {
                debug_assert!(false, "all clients were met before");
                break;
            };
            next = place + 1;
            done += 1;
            written.add(self.sequences[place].write(
                self.writer,
                batch.tick,
                line.header,
                line.messages(&batch.shared),
                self.sink,
            ));
        }
        self.remaining.start += done;
        self.written = written;
    }
}

impl Assembler {
    /// Passes the packets of all updates to the sink, in order. O(bytes), and O(clients) for each client that is new or closed.
    pub fn assemble_batch(
        &mut self,
        batch: &OutgoingBatch,
        spread: impl ParallelExecutor,
        sink: &mut dyn PacketSink,
    ) -> PacketTotals {
        let shares = spread.worker_count().min(batch.len() / UPDATES_MIN);
        let (mut shared_out, mut written) = (0, PacketTotals::default());
        if shares > 1 {
            shared_out = self.insert_ascending(batch);
            written.add(self.assemble_parallel(batch, (shared_out, shares), spread, sink));
        }
        written.add(self.assemble_range(batch, shared_out..batch.len(), sink));
        written
    }

    /// The same on the calling thread, for some of the updates.
    fn assemble_range(
        &mut self,
        batch: &OutgoingBatch,
        lines: Range<usize>,
        sink: &mut dyn PacketSink,
    ) -> PacketTotals {
        let mut written = PacketTotals::default();
        for line in batch.updates_in(lines) {
            written.add(self.write_update(batch.tick, line, &batch.shared, sink));
        }
        written
    }

    /// Inserts sequence numbers for the clients of the batch's first updates, as long as they ascend. Returns the number of these updates.
    fn insert_ascending(&mut self, batch: &OutgoingBatch) -> usize {
        let mut before = None;
        let ascending = headers(batch).take_while(|head| {
            let ascends = before.replace(head.client) < Some(head.client);
            if ascends {
                self.index_or_insert(head.client);
            }
            ascends
        });
        ascending.count()
    }

    /// Assembles the packets of this many first updates, whose clients ascend and have sequence numbers.
    fn assemble_parallel(
        &mut self,
        batch: &OutgoingBatch,
        (lines, shares): (usize, usize),
        spread: impl ParallelExecutor,
        sink: &mut dyn PacketSink,
    ) -> PacketTotals {
        let mut sharing = self.split_ranges(batch, (lines, shares), sink);
        spread.for_each_item(&mut sharing, |share| share.assemble(batch));
        let mut written = PacketTotals::default();
        let left = sharing.into_iter().map(|share| {
            written.add(share.written);
            share.remaining
        });
        let left: Vec<_> = left.collect();
        for (nth, left) in left.into_iter().enumerate() {
            if let Some(other) = nth.checked_sub(1) {
                self.worker_scratch[other].packets.send_to(sink);
            }
            written.add(self.assemble_range(batch, left, sink));
        }
        let closed = headers(batch)
            .take(lines)
            .filter(|head| head.close.is_some());
        closed.for_each(|head| self.remove(head.client));
        written
    }

    /// Splits the first `updates` updates into ranges.
    fn split_ranges<'a>(
        &'a mut self,
        batch: &'a OutgoingBatch,
        (lines, shares): (usize, usize),
        sink: &'a mut dyn PacketSink,
    ) -> Vec<AssemblyRange<'a>> {
        let mtu_bytes = self.writer.mtu_bytes();
        if self.worker_scratch.len() < shares - 1 {
            self.worker_scratch
                .resize_with(shares - 1, AssemblyScratch::default);
        }
        let others = self
            .worker_scratch
            .iter_mut()
            .take(shares - 1)
            .map(|other| {
                other.writer.set_mtu_bytes(mtu_bytes);
                // They are empty, unless a sink has panicked.
                other.packets.clear();
                let sink = &mut other.packets as &mut dyn PacketSink;
                (&mut other.writer, sink, DEFERRED_BYTES_MAX)
            });
        let mut numbers = &mut self.clients[..];
        let makers = iter::once((&mut self.writer, sink, u64::MAX)).chain(others);
        let share = |(nth, (writer, sink, bytes_max))| {
            let [start, end] = [nth, nth + 1].map(|nth| nth * lines / shares);
            let behind = batch.updates_in(end..lines.min(end + 1)).next();
            let behind = behind.map_or(numbers.len(), |line| {
                numbers.partition_point(|known| known.client < line.header.client)
            });
            let own;
            (own, numbers) = std::mem::take(&mut numbers).split_at_mut(behind);
            AssemblyRange {
                remaining: start..end,
                sequences: own,
                writer,
                sink,
                bytes_max,
                written: PacketTotals::default(),
            }
        };
        makers.enumerate().map(share).collect()
    }
}

fn headers(batch: &OutgoingBatch) -> impl Iterator<Item = ClientUpdateHeader> {
    batch.parts.iter().flat_map(BatchPart::headers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use throng_core::parallel::{InlineExecutor, ThreadExecutor};
    use throng_protocol::wire::{Channel, ClientId, CloseReason};

    /// All calls of a sink, in order.
    #[derive(Debug, Default, PartialEq)]
    struct Told(Vec<(ClientId, Option<Channel>, Vec<u8>)>);

    impl PacketSink for Told {
        fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
            self.0.push((client, Some(channel), packet.to_vec()));
        }

        fn close(&mut self, client: ClientId, reason: CloseReason) {
            self.0.push((client, None, vec![reason.number()]));
        }
    }

    /// The update of a client: number of messages of each channel, their length in bytes, and whether it is the last.
    type Line = (u32, [usize; 2], usize, bool);

    fn batch(tick: u64, parts: &[Vec<Line>], ascending: usize) -> OutgoingBatch {
        let mut batch = OutgoingBatch {
            tick,
            ..OutgoingBatch::default()
        };
        let shared = batch.push_shared(|bytes| bytes.extend([20; 30]));
        let mut before = 0;
        for (nth, lines) in parts.iter().enumerate() {
            for &(more, [reliable, unreliable], bytes, closes) in lines {
                let client = if nth < ascending { before + more } else { more };
                before = client;
                let part = batch.part(nth);
                part.begin_client(ClientId(client), 1, 0);
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

        /// The model assembles update by update on one thread.
        #[test]
        fn packets_are_the_same_for_any_number_of_threads(
            ticks in prop::collection::vec((prop::collection::vec(lines(), 0..5), 0usize..9), 1..5),
            workers in 2usize..5,
        ) {
            let [mut alone, mut together] = [Assembler::new(500), Assembler::new(500)];
            for (tick, (parts, ascending)) in (1..).zip(ticks) {
                let batch = batch(tick, &parts, ascending);
                let [mut expected, mut found] = [Told::default(), Told::default()];
                let written = alone.assemble_batch(&batch, InlineExecutor, &mut expected);
                let found_written = together.assemble_batch(&batch, ThreadExecutor::new(workers), &mut found);
                prop_assert_eq!(found, expected);
                prop_assert_eq!(found_written, written);
                prop_assert_eq!(together.clients(), alone.clients());
            }
        }
    }

    #[test]
    fn deferred_packets_stay_within_their_limit() {
        let mut assembler = Assembler::default();
        let batch = batch(1, &[vec![(1, [1, 0], 1_000, false); 40]], 1);
        let mut sink = Told::default();
        let written = assembler.assemble_batch(&batch, ThreadExecutor::new(2), &mut sink);
        assert_eq!((written.packets, sink.0.len()), (40, 40));
        let room = assembler.worker_scratch[0].packets.bytes.capacity();
        assert!(room as u64 <= DEFERRED_BYTES_MAX * 5 / 4 + 1_200, "{room}");
    }
}
