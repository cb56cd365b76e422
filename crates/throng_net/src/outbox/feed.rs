//! The tick's side of a shard: moves its clients' updates into the ring. Updates that do not fit wait or are dropped. Never blocks.
//!
//! ```text
//! OutgoingBatch ─▶ fits: shared bytes and updates ──────────────────────────────────────▶ ring
//!       └▶ does not fit: unreliable messages are dropped and counted,               ▲
//!                        reliable ones ─▶ spill, bounded per client and in total ───┘ first, next time
//! ```
//!
//! A client that would exceed its bound is closed with the reason [`CloseReason::SlowConsumer`]. If all clients together exceed the total
//! bound, the client with the most waiting bytes is closed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use throng_core::memory::{MemoryUse, heap_bytes_of};
use throng_protocol::wire::ClientId;
use throng_protocol::wire::CloseReason;

use super::batch::{ClientUpdate, ClientUpdateHeader, OutgoingBatch};
use super::frame::{
    UPDATE_HEADER_BYTES, begin_updates, write_reliable, write_shared, write_update,
};
use super::ring::{RingFull, RingWriter};

/// Closed clients that are stored, so that later updates for them are not sent. Above it, the lowest id is removed.
const CLOSED_MAX: usize = 1 << 16;

/// Number of gathered bytes that are committed before the tick's end.
const COMMIT_BYTES: usize = 1 << 18;

/// Limits of what waits for room in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillLimits {
    /// For one client, in bytes.
    pub client_bytes_max: usize,
    /// For all clients of the shard, in bytes.
    pub bytes_max: usize,
}

/// Counters of a feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedCounters {
    /// Ticks in which the ring did not have room for everything at once.
    pub stalls: u64,
    /// Unreliable messages dropped in these ticks.
    pub dropped: u64,
    /// Reliable messages that had to wait.
    pub spilled: u64,
    /// Reliable messages that do not fit into an empty ring, and messages for clients that were closed before.
    pub refused: u64,
    /// Clients closed as slow consumers.
    pub disconnected: u64,
    /// The most bytes in the ring at a time.
    pub ring_high_water_bytes: usize,
}

impl FeedCounters {
    /// Adds the counters of another feed.
    pub fn add(&mut self, other: Self) {
        self.stalls += other.stalls;
        self.dropped += other.dropped;
        self.spilled += other.spilled;
        self.refused += other.refused;
        self.disconnected += other.disconnected;
        let most = &mut self.ring_high_water_bytes;
        *most = other.ring_high_water_bytes.max(*most);
    }
}

/// The tick's side of a shard.
#[derive(Debug)]
pub(super) struct Feed {
    writer: RingWriter,
    limits: SpillLimits,
    spill: Spill,
    /// Clients closed here, for which there may still be updates.
    closed: BTreeSet<ClientId>,
    /// Clients closed here, not reported yet.
    pub disconnected: Vec<ClientId>,
    pub counters: FeedCounters,
    /// Messages pushed into the ring.
    pub pushed: u64,
    /// The updates of the tick for this shard: part and number.
    updates: Vec<(u32, u32)>,
    frame: Vec<u8>,
    /// Whether the ring refused something in this tick.
    stalled: bool,
}

impl Feed {
    pub fn new(writer: RingWriter, limits: SpillLimits) -> Self {
        Self {
            writer,
            limits,
            spill: Spill::default(),
            closed: BTreeSet::new(),
            disconnected: Vec::new(),
            counters: FeedCounters::default(),
            pushed: 0,
            updates: Vec::new(),
            frame: Vec::new(),
            stalled: false,
        }
    }

    /// Pushes the updates of the shard's clients. O(shared bytes + bytes of the updates).
    pub fn push_batch(&mut self, batch: &OutgoingBatch, is_mine: impl Fn(ClientId) -> bool) {
        self.stalled = !self.retry();
        self.find_updates(batch, is_mine);
        let sent = if self.stalled {
            0
        } else {
            self.push_updates(batch)
        };
        self.stalled |= sent < self.updates.len();
        let mine = std::mem::take(&mut self.updates);
        for line in mine[sent..]
            .iter()
            .filter_map(|&place| update_at(batch, place))
        {
            self.counters.dropped += line.unreliable.len() as u64;
            self.spill_update(batch, line);
        }
        self.updates = mine;
        self.finish();
    }

    /// Commits what was pushed, and updates the counters.
    pub fn finish(&mut self) {
        // There may be room for the reliable messages alone.
        self.retry();
        self.counters.stalls += u64::from(std::mem::take(&mut self.stalled));
        let used = self.writer.used_bytes();
        let most = &mut self.counters.ring_high_water_bytes;
        *most = used.max(*most);
        self.writer.commit();
    }

    /// Moves waiting frames into the ring while they fit. Returns whether none is left.
    pub fn retry(&mut self) -> bool {
        while let Some((client, frame)) = self.spill.frames.front() {
            if self.writer.push(frame).is_err() {
                return false;
            }
            self.pushed += 1;
            let (client, bytes) = (*client, frame.len());
            self.spill.frames.pop_front();
            self.spill.release(client, bytes);
        }
        true
    }

    /// Bytes that wait for room.
    pub const fn waiting_bytes(&self) -> usize {
        self.spill.bytes
    }

    /// Whether the reader of the ring is gone.
    pub fn is_abandoned(&self) -> bool {
        self.writer.is_abandoned()
    }

    /// Finds the updates of this shard's clients, except clients closed here.
    fn find_updates(&mut self, batch: &OutgoingBatch, is_mine: impl Fn(ClientId) -> bool) {
        self.updates.clear();
        for (lines, part) in batch.parts.iter().zip(0..) {
            for (head, nth) in lines.headers().zip(0..) {
                if !is_mine(head.client) {
                    continue;
                }
                if self.closed.is_empty() || !self.closed.contains(&head.client) {
                    self.updates.push((part, nth));
                } else {
                    self.counters.refused += 1;
                    if head.close.is_some() {
                        self.closed.remove(&head.client);
                    }
                }
            }
        }
    }

    /// Pushes shared bytes and updates into the ring until one does not fit. Returns the number of updates that did.
    fn push_updates(&mut self, batch: &OutgoingBatch) -> usize {
        if self.updates.is_empty() {
            return 0;
        }
        write_shared(&mut self.frame, &batch.shared);
        if self.push_frame().is_err() {
            return 0;
        }
        let enough = self.writer.capacity() / 16;
        let mut sent = 0;
        begin_updates(&mut self.frame, batch.tick);
        for nth in 0..self.updates.len() {
            if let Some(line) = update_at(batch, self.updates[nth]) {
                write_update(&mut self.frame, line);
            }
            if self.frame.len() >= enough || nth + 1 == self.updates.len() {
                if self.push_frame().is_err() {
                    break;
                }
                sent = nth + 1;
                begin_updates(&mut self.frame, batch.tick);
            }
        }
        sent
    }

    fn push_frame(&mut self) -> Result<(), RingFull> {
        self.writer.push(&self.frame)?;
        self.pushed += 1;
        if self.writer.gathered_bytes() >= COMMIT_BYTES {
            self.writer.commit();
        }
        Ok(())
    }

    /// Stores the reliable messages of an update, in frames that fit into the ring.
    fn spill_update(&mut self, batch: &OutgoingBatch, line: ClientUpdate) {
        let client = line.header.client;
        let enough = self.writer.capacity() / 16;
        let mut messages: Vec<&[u8]> = Vec::new();
        let mut bytes = 0;
        let mut spans = line.reliable.iter().peekable();
        loop {
            let next = spans
                .next()
                .map(|span| span.bytes(&batch.shared, line.private));
            if let Some(message) = next {
                if !self.writer.can_fit(message.len() + 2 * UPDATE_HEADER_BYTES) {
                    self.counters.refused += 1;
                } else {
                    messages.push(message);
                    bytes += message.len();
                }
            }
            let last = spans.peek().is_none();
            if !last && bytes + spans.peek().map_or(0, |span| span.len()) < enough {
                continue;
            }
            let close = line.header.close.filter(|_| last);
            if !messages.is_empty() || close.is_some() {
                self.counters.spilled += messages.len() as u64;
                begin_updates(&mut self.frame, batch.tick);
                write_reliable(
                    &mut self.frame,
                    ClientUpdateHeader {
                        close,
                        ..line.header
                    },
                    &messages,
                );
                if !self.spill_frame(client) {
                    return;
                }
            }
            if last {
                return;
            }
            messages.clear();
            bytes = 0;
        }
    }

    /// Stores the current frame for a client; `false` if that closes the client.
    fn spill_frame(&mut self, client: ClientId) -> bool {
        let bytes = self.frame.len();
        if self.spill.client_bytes(client) + bytes > self.limits.client_bytes_max {
            self.disconnect(client);
            return false;
        }
        while self.spill.bytes + bytes > self.limits.bytes_max {
            let (most, waiting) = self.spill.largest_client();
            let least = waiting < self.spill.client_bytes(client) + bytes;
            if most == client || least || self.closed.contains(&most) {
                self.disconnect(client);
                return false;
            }
            self.disconnect(most);
        }
        self.spill.push(client, &self.frame);
        true
    }

    /// Closes a client and drops what waits for it.
    fn disconnect(&mut self, client: ClientId) {
        self.counters.disconnected += 1;
        self.disconnected.push(client);
        self.spill.drop_client(client);
        if self.closed.len() >= CLOSED_MAX {
            self.closed.pop_first();
        }
        self.closed.insert(client);
        let head = ClientUpdateHeader {
            client,
            epoch: 0,
            input: 0,
            close: Some(CloseReason::SlowConsumer),
        };
        let mut frame = Vec::new();
        begin_updates(&mut frame, 0);
        write_reliable(&mut frame, head, &[]);
        self.spill.push(client, &frame);
    }
}

fn update_at(batch: &OutgoingBatch, (part, nth): (u32, u32)) -> Option<ClientUpdate<'_>> {
    batch.parts.get(part as usize)?.update(nth as usize)
}

/// Frames that wait for room, oldest first.
#[derive(Debug, Default)]
struct Spill {
    frames: VecDeque<(ClientId, Vec<u8>)>,
    /// Waiting bytes per client, if any.
    clients: BTreeMap<ClientId, usize>,
    bytes: usize,
}

impl Spill {
    fn client_bytes(&self, client: ClientId) -> usize {
        self.clients.get(&client).copied().unwrap_or_default()
    }

    fn push(&mut self, client: ClientId, frame: &[u8]) {
        self.frames.push_back((client, frame.to_vec()));
        *self.clients.entry(client).or_default() += frame.len();
        self.bytes += frame.len();
    }

    /// Subtracts bytes of a client that no longer wait.
    fn release(&mut self, client: ClientId, bytes: usize) {
        self.bytes -= bytes;
        if let Some(of_client) = self.clients.get_mut(&client) {
            *of_client -= bytes;
            if *of_client == 0 {
                self.clients.remove(&client);
            }
        }
    }

    fn drop_client(&mut self, client: ClientId) {
        self.frames.retain(|&(of, _)| of != client);
        self.bytes -= self.clients.remove(&client).unwrap_or_default();
    }

    /// The client with the most waiting bytes (the lowest id of several), and these bytes.
    fn largest_client(&self) -> (ClientId, usize) {
        let most = self.clients.iter().rev().max_by_key(|&(_, &bytes)| bytes);
        most.map_or((ClientId(0), 0), |(&client, &bytes)| (client, bytes))
    }
}

impl MemoryUse for Feed {
    fn heap_bytes(&self) -> usize {
        let waiting = self.spill.frames.iter().map(|(_, bytes)| bytes);
        heap_bytes_of(waiting)
            + self.spill.frames.heap_bytes()
            + self.writer.heap_bytes()
            + self.closed.heap_bytes()
            + self.disconnected.heap_bytes()
            + self.updates.heap_bytes()
            + self.frame.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::frame::{Frame, FrameUpdate};
    use crate::outbox::ring::{RingReader, ring};
    use proptest::prelude::*;

    fn feed(ring_bytes: usize, limits: SpillLimits) -> (Feed, RingReader) {
        let (writer, reader) = ring(ring_bytes);
        (Feed::new(writer, limits), reader)
    }

    const ROOMY: SpillLimits = SpillLimits {
        client_bytes_max: 1 << 20,
        bytes_max: 1 << 20,
    };

    /// What arrived through the ring for a client: its messages by channel, and its close reason.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Came {
        reliable: Vec<Vec<u8>>,
        unreliable: Vec<Vec<u8>>,
        closed: Option<CloseReason>,
    }

    /// A sender thread that does not assemble packets.
    #[derive(Default)]
    struct Taker {
        shared: Vec<u8>,
        clients: BTreeMap<u32, Came>,
    }

    impl Taker {
        fn receive(&mut self, reader: &mut RingReader, frames: usize) {
            for _ in 0..frames {
                reader.read(0, |frame| match Frame::read(frame).unwrap() {
                    Frame::Shared(bytes) => self.shared = bytes.to_vec(),
                    Frame::Updates { mut lines, .. } => {
                        while let Some(line) = FrameUpdate::read(&mut lines) {
                            let came = self.clients.entry(line.header.client.0).or_default();
                            let shared = &self.shared;
                            came.reliable
                                .extend(line.reliable(shared).map(<[u8]>::to_vec));
                            came.unreliable
                                .extend(line.unreliable(shared).map(<[u8]>::to_vec));
                            came.closed = came.closed.or(line.header.close);
                        }
                    }
                });
            }
        }
    }

    /// A batch: for each client, a private reliable message of this length, and a shared one on both channels.
    fn batch(tick: u64, lines: &[(u32, usize)]) -> OutgoingBatch {
        let mut batch = OutgoingBatch {
            tick,
            ..OutgoingBatch::default()
        };
        let all = batch.push_shared(|bytes| bytes.extend([tick as u8; 5]));
        for &(client, length) in lines {
            let part = batch.part(client as usize % 2);
            part.begin_client(ClientId(client), 1, 2);
            part.write_reliable(|bytes| bytes.resize(bytes.len() + length, tick as u8));
            part.reliable(all);
            part.unreliable(all);
            part.end_client();
        }
        batch
    }

    #[test]
    fn shard_receives_only_its_clients_updates() {
        let (mut feed, mut reader) = feed(1 << 16, ROOMY);
        feed.push_batch(&batch(9, &[(1, 3), (2, 4), (3, 5)]), |client| {
            client.0 % 2 == 1
        });
        let mut taker = Taker::default();
        taker.receive(&mut reader, 10);
        assert_eq!(taker.clients.keys().copied().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(taker.clients[&3].reliable, [vec![9; 5], vec![9; 5]]);
        assert_eq!(taker.clients[&1].unreliable, [[9; 5]]);
        assert_eq!(feed.counters.stalls, 0);
        assert!(feed.counters.ring_high_water_bytes > 0);
    }

    #[test]
    fn full_ring_drops_unreliable_and_keeps_reliable_in_order() {
        let (mut feed, mut reader) = feed(600, ROOMY);
        let sent = 1..=20;
        for tick in sent.clone() {
            feed.push_batch(&batch(tick, &[(1, 40)]), |_| true);
        }
        assert!(feed.counters.stalls > 0 && feed.counters.spilled > 0);
        let mut taker = Taker::default();
        while feed.waiting_bytes() > 0 {
            taker.receive(&mut reader, 1);
            feed.finish();
        }
        taker.receive(&mut reader, 100);
        let came = &taker.clients[&1];
        let expected: Vec<Vec<u8>> = sent
            .flat_map(|tick| [vec![tick as u8; 40], vec![tick as u8; 5]])
            .collect();
        assert_eq!(came.reliable, expected);
        assert_eq!(came.unreliable.len() as u64 + feed.counters.dropped, 20);
        assert!(feed.disconnected.is_empty());
    }

    #[test]
    fn client_over_its_spill_limit_alone_is_closed() {
        let limits = SpillLimits {
            client_bytes_max: 400,
            bytes_max: 1 << 20,
        };
        let (mut feed, mut reader) = feed(300, limits);
        for tick in 1..10 {
            feed.push_batch(&batch(tick, &[(1, 100), (2, 1)]), |_| true);
        }
        assert_eq!(feed.disconnected, [ClientId(1)]);
        assert!(feed.counters.refused > 0, "later lines of a closed client");
        let mut taker = Taker::default();
        while feed.waiting_bytes() > 0 {
            taker.receive(&mut reader, 1);
            feed.finish();
        }
        taker.receive(&mut reader, 100);
        assert_eq!(taker.clients[&1].closed, Some(CloseReason::SlowConsumer));
        assert_eq!(taker.clients[&2].closed, None);
        assert_eq!(taker.clients[&2].reliable.len(), 18);
    }

    #[test]
    fn total_spill_limit_closes_the_client_with_most_bytes() {
        let limits = SpillLimits {
            client_bytes_max: 1 << 20,
            bytes_max: 2_000,
        };
        let (mut feed, _reader) = feed(300, limits);
        for tick in 1..20 {
            feed.push_batch(&batch(tick, &[(1, 20), (2, 120), (3, 20)]), |_| true);
            assert!(feed.waiting_bytes() <= 2_000 + 3 * 40);
        }
        assert_eq!(feed.disconnected[0], ClientId(2));
    }

    #[test]
    fn message_larger_than_the_ring_is_refused() {
        let (mut feed, mut reader) = feed(300, ROOMY);
        feed.push_batch(&batch(1, &[(1, 400)]), |_| true);
        assert_eq!(feed.counters.refused, 1);
        let mut taker = Taker::default();
        taker.receive(&mut reader, 10);
        assert_eq!(taker.clients[&1].reliable, [[1; 5]]);
    }

    #[test]
    fn messages_near_the_ring_size_arrive_or_are_refused() {
        let mut refused = 0;
        for length in 230..310 {
            let (mut feed, mut reader) = feed(300, ROOMY);
            feed.push_batch(&batch(1, &[(1, length)]), |_| true);
            let mut taker = Taker::default();
            for _ in 0..4 {
                taker.receive(&mut reader, 10);
                feed.finish();
            }
            assert_eq!(feed.waiting_bytes(), 0, "{length} bytes wait for good");
            let came = taker.clients[&1].reliable.len() as u64;
            assert_eq!(came + feed.counters.refused, 2, "{length} bytes");
            refused += feed.counters.refused;
        }
        assert!((10..60).contains(&refused), "{refused}");
    }

    proptest! {
        #![proptest_config(draws!())]

        /// For any size of the ring and pace of the reader: reliable messages arrive completely and in order, or their client is closed.
        #[test]
        fn reliable_messages_arrive_unless_their_client_is_closed(
            ring_bytes in 200..2_000_usize,
            client_bytes_max in 100..3_000_usize,
            bytes_max in 100..6_000_usize,
            ticks in prop::collection::vec(
                (prop::collection::vec((1..6_u32, 1..60_usize), 0..5), 0..6_usize), 1..40),
        ) {
            let (mut feed, mut reader) = feed(ring_bytes, SpillLimits { client_bytes_max, bytes_max });
            let mut taker = Taker::default();
            let mut sent: BTreeMap<u32, Came> = BTreeMap::new();
            let mut unreliable = 0;
            for ((mut lines, frames), tick) in ticks.into_iter().zip(1..) {
                lines.sort_unstable();
                lines.dedup_by_key(|line| line.0);
                let batch = batch(tick, &lines);
                for (client, length) in lines {
                    let sent = sent.entry(client).or_default();
                    sent.reliable.extend([vec![tick as u8; length], vec![tick as u8; 5]]);
                    unreliable += 1;
                }
                feed.push_batch(&batch, |_| true);
                prop_assert!(feed.waiting_bytes() <= bytes_max + 5 * 40);
                taker.receive(&mut reader, frames);
            }
            while feed.waiting_bytes() > 0 {
                taker.receive(&mut reader, 1);
                feed.finish();
            }
            taker.receive(&mut reader, 1_000);
            let mut came_unreliable = 0;
            for (client, sent) in &sent {
                let came = taker.clients.get(client).cloned().unwrap_or_default();
                let is_closed = feed.disconnected.contains(&ClientId(*client));
                prop_assert_eq!(came.closed.is_some(), is_closed);
                if !is_closed {
                    prop_assert_eq!(&came.reliable, &sent.reliable);
                }
                came_unreliable += came.unreliable.len() as u64;
            }
            prop_assert!(came_unreliable + feed.counters.dropped + feed.counters.refused >= unreliable);
        }
    }
}
