//! Recent messages to all clients on the reliable channel, for connections that are lost.
//!
//! ```text
//! updates of each worker ──▶ SentPart ─┐  appended in parallel
//! shared messages ─────────────────────┴─▶ SentLog: one SentTick per tick, as far back as messages may be in flight
//! ```
//! A message to many clients is stored once, with one or two bytes per receiver; a message without receivers is not stored. The messages
//! of a single client are searched only when its connection is lost or resumed, which is rare: one search per tick, and a scan of the
//! updates of the few clients next to it.
//!
//! Cost: a few bytes appended per message sent; a few allocations per tick, independent of the number of messages.

use std::collections::VecDeque;

use fixedbitset::FixedBitSet;

use crate::memory::{MemoryUse, clear_and_shrink};
use crate::outbox::{ClientUpdate, MessageSpan};
use crate::sim::ParallelExecutor;
use crate::wire::{ClientId, ServerMessage, WireReader, write_varint};

/// Set in the index of a message to one client only.
const PRIVATE: u32 = 1 << 31;

/// The size of the length in front of such a message.
const LENGTH_BYTES: usize = size_of::<u32>();

/// The end of a client's update among the messages of its part.
#[derive(Clone, Copy, Debug)]
struct SentUpdate {
    client: ClientId,
    end: u32,
}

/// An announcement, and the position after it in its client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentAnnouncement {
    /// The receiver.
    pub client: ClientId,
    /// The position.
    pub end: u32,
}

/// The messages to one worker's clients in a tick.
#[derive(Debug, Default, MemoryUse)]
pub struct SentPart {
    /// By ascending client.
    updates: Vec<SentUpdate>,
    /// Each message: its offset among the shared ones, or among the private ones.
    messages: Vec<u32>,
    /// The private messages, each after its length.
    private: Vec<u8>,
    announcements: Vec<SentAnnouncement>,
    /// The updates in the format of [`SentTick`], without the offset at which they begin there.
    written: Vec<u8>,
    blocks: Vec<UpdateBlock>,
}

impl SentPart {
    /// Adds the update of a client that was sent `bytes_before` bytes before, and returns the new total.
    pub fn append(&mut self, line: ClientUpdate, shared: &[u8], bytes_before: u32) -> u32 {
        let client = line.header.client;
        let mut end = bytes_before;
        for &span in line.reliable {
            end = end.wrapping_add(span.len() as u32);
            let bytes = span.bytes(shared, line.private);
            self.messages.push(self.index_of(span));
            if span.is_private() {
                self.private.extend((bytes.len() as u32).to_le_bytes());
                self.private.extend_from_slice(bytes);
            }
            let is_announce = bytes
                .first()
                .copied()
                .is_some_and(ServerMessage::is_announce);
            if is_announce {
                self.announcements.push(SentAnnouncement { client, end });
            }
        }
        let all = self.messages.len() as u32;
        if self.updates.last().map_or(0, |line| line.end) < all {
            self.updates.push(SentUpdate { client, end: all });
        }
        end.wrapping_sub(bytes_before)
    }

    fn index_of(&self, span: MessageSpan) -> u32 {
        if span.is_private() {
            self.private.len() as u32 | PRIVATE
        } else {
            span.start()
        }
    }

    fn clear(&mut self) {
        clear_and_shrink(&mut self.updates);
        clear_and_shrink(&mut self.messages);
        clear_and_shrink(&mut self.private);
        clear_and_shrink(&mut self.announcements);
        clear_and_shrink(&mut self.written);
        clear_and_shrink(&mut self.blocks);
    }

    /// Writes the updates, whose clients come after those of earlier parts. `own_before` bytes of private messages come before
    /// this part's.
    fn write_updates(&mut self, own_before: u64, sent_indexes: &SentIndexes) {
        let (mut before, mut start) = (ClientId(0), 0);
        for (nth, &SentUpdate { client, end }) in self.updates.iter().enumerate() {
            if nth % UPDATES_PER_BLOCK == 0 {
                let start = self.written.len() as u32;
                self.blocks.push(UpdateBlock { client, start });
                before = client;
            }
            let messages = &self.messages[start..end as usize];
            let more = client.0.wrapping_sub(before.0);
            write_update_header(&mut self.written, more, messages.len());
            for &place in messages {
                let number = match place & PRIVATE {
                    0 => u64::from(sent_indexes.rank(place)) << 1,
                    _ => (u64::from(place & !PRIVATE) + own_before) << 1 | 1,
                };
                write_varint(&mut self.written, number);
            }
            (before, start) = (client, end as usize);
        }
    }
}

/// The number of clients per block: the block is found by search, the client by reading on.
const UPDATES_PER_BLOCK: usize = if cfg!(test) { 3 } else { 32 };

/// The start of the updates of some clients.
#[derive(Clone, Copy, Debug)]
struct UpdateBlock {
    /// The first of them.
    client: ClientId,
    start: u32,
}

/// The messages sent in one tick.
#[derive(Debug, Default, MemoryUse)]
struct SentTick {
    tick: u64,
    /// The messages with possibly several receivers, and the end of each.
    shared: Vec<u8>,
    ends: Vec<u32>,
    /// Private messages, each after its length.
    private: Vec<u8>,
    /// By ascending client, each a header and for each message a varint: twice its number among the shared ones, or twice its offset
    /// among the private ones plus one.
    updates: Vec<u8>,
    blocks: Vec<UpdateBlock>,
    announcements: Vec<SentAnnouncement>,
}

impl SentTick {
    /// Stores the messages of a tick. Shared messages without receivers are not stored.
    fn set(
        &mut self,
        parts: &mut [&mut SentPart],
        (shared, starts): (&[u8], &[u32]),
        sent_indexes: &mut SentIndexes,
        spread: impl ParallelExecutor,
    ) {
        self.clear();
        let of_all = parts.iter().flat_map(|part| part.messages.iter().copied());
        sent_indexes.set(of_all.filter(|&place| place & PRIVATE == 0), shared.len());
        let behind = starts.iter().skip(1).copied();
        for (&start, end) in starts.iter().zip(behind.chain([shared.len() as u32])) {
            // An empty message begins where another one does.
            if end > start && sent_indexes.indexes.contains(start as usize) {
                self.shared
                    .extend_from_slice(&shared[start as usize..end as usize]);
                self.ends.push(self.shared.len() as u32);
            }
        }
        let (mut own_before, mut unwritten) = (0, Vec::with_capacity(parts.len()));
        for part in &mut *parts {
            let own = part.private.len();
            unwritten.push((own_before, part));
            own_before += own;
        }
        spread.for_each_item(&mut unwritten, |(own_before, part)| {
            part.write_updates(*own_before as u64, sent_indexes);
        });
        for part in parts {
            let start = self.updates.len() as u32;
            let moved = |block: &UpdateBlock| UpdateBlock {
                start: block.start + start,
                ..*block
            };
            self.blocks.extend(part.blocks.iter().map(moved));
            self.updates.extend_from_slice(&part.written);
            self.private.extend_from_slice(&part.private);
            self.announcements.extend_from_slice(&part.announcements);
        }
        shrink(&mut self.shared);
        shrink(&mut self.ends);
        shrink(&mut self.private);
        shrink(&mut self.updates);
        shrink(&mut self.blocks);
        shrink(&mut self.announcements);
    }

    fn clear(&mut self) {
        self.shared.clear();
        self.ends.clear();
        self.private.clear();
        self.updates.clear();
        self.blocks.clear();
        self.announcements.clear();
    }

    /// The messages of a client, as coded in its update.
    fn messages_of(&self, client: ClientId) -> Vec<u64> {
        let behind = self.blocks.partition_point(|block| block.client <= client);
        let Some(block) = behind.checked_sub(1).map(|nth| self.blocks[nth]) else {
            return Vec::new();
        };
        let end = self.blocks.get(behind);
        let end = end.map_or(self.updates.len(), |block| block.start as usize);
        let mut lines = WireReader::new(&self.updates[block.start as usize..end]);
        let mut at = block.client.0;
        while let Some((more, count)) = read_update_header(&mut lines) {
            at = at.wrapping_add(more);
            let numbers = (0..count).map_while(|_| lines.varint_u64().ok());
            if at == client.0 {
                return numbers.collect();
            }
            numbers.for_each(drop);
        }
        Vec::new()
    }

    /// A message by its code in an update; empty if there is none.
    fn message(&self, number: u64) -> &[u8] {
        let place = (number >> 1) as usize;
        if number & 1 == 0 {
            let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
            return &self.shared[start as usize..self.ends[place] as usize];
        }
        let own = self.private.get(place..);
        let own = own.and_then(|own| own.split_first_chunk::<LENGTH_BYTES>());
        let message =
            own.and_then(|(length, rest)| rest.get(..u32::from_le_bytes(*length) as usize));
        message.unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        self.shared.len()
            + size_of_val(&*self.ends)
            + self.private.len()
            + self.updates.len()
            + size_of_val(&*self.blocks)
            + size_of_val(&*self.announcements)
    }
}

/// An update with fewer messages has their number in the low bits of its header's first varint; others write the excess after it.
const COUNT_MAX: u64 = 15;
const COUNT_BITS: u32 = 4;

/// Writes the header of an update: the difference of its client's id to the one before in its block, and the number of
/// messages. Usually one byte.
fn write_update_header(lines: &mut Vec<u8>, more: u32, count: usize) {
    let low = COUNT_MAX.min(count as u64);
    write_varint(lines, u64::from(more) << COUNT_BITS | low);
    if low == COUNT_MAX {
        write_varint(lines, count as u64 - COUNT_MAX);
    }
}

fn read_update_header(lines: &mut WireReader) -> Option<(u32, u64)> {
    let head = lines.varint_u64().ok()?;
    let mut count = head & COUNT_MAX;
    if count == COUNT_MAX {
        count += lines.varint_u64().ok()?;
    }
    Some(((head >> COUNT_BITS) as u32, count))
}

/// The messages of a tick that were sent, by their offset.
#[derive(Debug, Default, MemoryUse)]
struct SentIndexes {
    indexes: FixedBitSet,
    /// The number of set bits before each block.
    before: Vec<u32>,
}

impl SentIndexes {
    /// Sets offsets below `end`, in any order.
    fn set(&mut self, places: impl Iterator<Item = u32>, end: usize) {
        self.indexes.clear();
        self.indexes.grow(end);
        for place in places {
            self.indexes.insert(place as usize);
        }
        self.before.clear();
        let mut count = 0;
        self.before
            .extend(self.indexes.as_slice().iter().map(|block| {
                let before = count;
                count += block.count_ones();
                before
            }));
    }

    /// The number of offsets before this one.
    fn rank(&self, place: u32) -> u32 {
        let (nth, bit) = (place / usize::BITS, place % usize::BITS);
        let block = self.indexes.as_slice()[nth as usize];
        self.before[nth as usize] + (block & ((1 << bit) - 1)).count_ones()
    }
}

/// Recent messages, oldest first.
#[derive(Debug, Default, MemoryUse)]
pub struct SentLog {
    #[memory(each)]
    ticks: VecDeque<SentTick>,
    bytes: usize,
    /// A dropped tick, whose memory is reused for the next one.
    spare: SentTick,
    sent: SentIndexes,
}

impl SentLog {
    /// Adds a tick: the shared messages and their offsets, and the messages of each client, in parts of
    /// ascending clients, which are emptied.
    pub fn push<'a>(
        &mut self,
        tick: u64,
        (shared, starts): (&[u8], &[u32]),
        parts: impl Iterator<Item = &'a mut SentPart>,
        spread: impl ParallelExecutor,
    ) {
        let mut parts: Vec<_> = parts.collect();
        let mut added = std::mem::take(&mut self.spare);
        added.tick = tick;
        added.set(&mut parts, (shared, starts), &mut self.sent, spread);
        parts.into_iter().for_each(SentPart::clear);
        self.bytes += added.bytes();
        self.ticks.push_back(added);
    }

    /// Drops the ticks before `from`, and the oldest of those after it while all take more than `bytes_max`; returns the
    /// announcements in the dropped ticks.
    pub fn trim(
        &mut self,
        from: u64,
        bytes_max: usize,
        mut forgotten: impl FnMut(SentAnnouncement),
    ) {
        while let Some(oldest) = self.ticks.front()
            && (oldest.tick < from || self.bytes > bytes_max)
        {
            self.bytes -= oldest.bytes();
            oldest
                .announcements
                .iter()
                .copied()
                .for_each(&mut forgotten);
            self.spare = self.ticks.pop_front().unwrap_or_default();
        }
    }

    /// The messages to a client in the ticks from `since` on, each with its tick, oldest first. O(ticks × log clients).
    pub fn messages_of(
        &self,
        client: ClientId,
        since: u64,
    ) -> impl DoubleEndedIterator<Item = (u64, &[u8])> {
        let first = self.ticks.partition_point(|sent| sent.tick < since);
        let ticks = self.ticks.range(first..);
        ticks.flat_map(move |sent| {
            let messages = sent.messages_of(client).into_iter();
            messages.map(move |number| (sent.tick, sent.message(number)))
        })
    }
}

/// Shrinks a buffer to what it needs: there are a hundred of each.
fn shrink<T>(buffer: &mut Vec<T>) {
    let length = buffer.len();
    if buffer.capacity() > length + length / 8 + SPARE_MAX {
        buffer.shrink_to(length + length / 16);
    }
}

const SPARE_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::outbox::{BatchPart, OutgoingBatch};
    use crate::sim::Workers;
    use crate::wire::write_announce;

    /// The messages to each client in a tick: shared ones by number, or its own.
    type Updates = Vec<(u8, Vec<Option<u8>>)>;

    fn updates() -> impl Strategy<Value = Updates> {
        let messages = prop::collection::vec(prop::option::of(0..6_u8), 0..4);
        prop::collection::vec((0..9_u8, messages), 0..8)
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn recently_sent_messages_are_found_per_client(
            ticks in prop::collection::vec(updates(), 1..12),
            workers in 1..4_usize,
            kept in 1..6_u64,
            since in 0..12_u64,
        ) {
            let (mut log, mut forgotten) = (SentLog::default(), Vec::new());
            let mut model: BTreeMap<u8, Vec<(u64, Vec<u8>)>> = BTreeMap::new();
            let (mut ends, mut announced) = (BTreeMap::new(), Vec::new());
            for (tick, mut updates) in (0..).zip(ticks) {
                updates.sort_by_key(|&(client, _)| client);
                updates.dedup_by_key(|&mut (client, _)| client);
                let mut batch = OutgoingBatch::default();
                let spans: Vec<_> = (0..6_u8)
                    .map(|nth| {
                        batch.push_shared(|_| ());
                        batch.push_shared(|bytes| match nth {
                            0 => write_announce(bytes, None, b"!"),
                            nth => bytes.extend(vec![40 + nth; usize::from(nth)]),
                        })
                    })
                    .collect();
                let mut parts: Vec<SentPart> = Vec::new();
                parts.resize_with(workers, SentPart::default);
                let a_worker = updates.len().div_ceil(workers).max(1);
                for (nth, (client, messages)) in updates.iter().enumerate() {
                    let mut of_worker = BatchPart::default();
                    of_worker.begin_client(ClientId(u32::from(*client)), 0, 0);
                    let mut end = *ends.entry(*client).or_insert(0_u32);
                    for message in messages {
                        let bytes = match message {
                            Some(nth) => {
                                of_worker.reliable(spans[usize::from(*nth)]);
                                spans[usize::from(*nth)].bytes(&batch.shared, &[]).to_vec()
                            }
                            None => {
                                let own = [60, *client, tick as u8];
                                of_worker.write_reliable(|bytes| bytes.extend(own));
                                own.to_vec()
                            }
                        };
                        end += bytes.len() as u32;
                        if *message == Some(0) {
                            announced.push((tick, SentAnnouncement { client: ClientId(u32::from(*client)), end }));
                        }
                        model.entry(*client).or_default().push((tick, bytes));
                    }
                    of_worker.end_client();
                    if let Some(line) = of_worker.update(0) {
                        let bytes = parts[nth / a_worker].append(line, &batch.shared, ends[client]);
                        prop_assert_eq!(ends[client] + bytes, end);
                    }
                    ends.insert(*client, end);
                }
                let spread = Workers::with_pool(2);
                log.push(tick, (&batch.shared, &batch.shared_starts), parts.iter_mut(), spread);
                log.trim((tick + 1).saturating_sub(kept), usize::MAX, |announce| forgotten.push(announce));
                let oldest = (tick + 1).saturating_sub(kept).max(since);
                for client in 0..9 {
                    let expected = model.get(&client).into_iter().flatten();
                    let expected = expected.filter(|&&(at, _)| at >= oldest);
                    let found = log.messages_of(ClientId(u32::from(client)), since);
                    prop_assert!(found.eq(expected.map(|(at, bytes)| (*at, &**bytes))), "{client} at {tick}");
                }
                let gone = announced.iter().filter(|&&(at, _)| at + kept <= tick);
                prop_assert!(forgotten.iter().eq(gone.map(|(_, announce)| announce)));
            }
            let all_have_receivers = log.ticks.iter().all(|sent| {
                let counts = (0..9).map(|client| sent.messages_of(ClientId(client)).len());
                sent.ends.len() <= counts.sum()
            });
            prop_assert!(all_have_receivers, "messages without a receiver are not stored");
            log.trim(u64::MAX, 0, |_| ());
            prop_assert!(log.ticks.is_empty() && log.bytes == 0);
        }
    }
}
