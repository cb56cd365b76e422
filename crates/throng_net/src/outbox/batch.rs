//! The changes of one tick: messages, each encoded once, and the list of messages of each client.
//!
//! An [`OutgoingBatch`] contains the messages that many clients receive, and a [`BatchPart`] for each worker that decides who receives
//! which. A part has one update per client: its spans of the reliable channel, then those of the unreliable one. A span names one message,
//! or several adjacent ones that stay together in a packet. It refers to the batch's shared bytes or to the private bytes of its update.
//!
//! Cost: 8 bytes per span; no allocation after warm-up.

use std::ops::Range;

use throng_core::memory::{MemoryUse, clear_and_shrink};
use throng_protocol::wire::{Channel, ClientId, CloseReason};

/// Set in the start of a span that refers to private bytes.
const PRIVATE: u32 = 1 << 31;

/// Bytes of an encoded span.
pub(super) const SPAN_BYTES: usize = 8;

/// The location of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSpan {
    start: u32,
    length: u32,
}

impl MessageSpan {
    /// Bytes `start..end` of a batch's shared messages. Both are below 2 GiB.
    #[inline]
    #[must_use]
    pub const fn shared(start: usize, end: usize) -> Self {
        debug_assert!(
            start <= end && end < PRIVATE as usize,
            "shared bytes are below 2 GiB"
        );
        Self {
            start: start as u32,
            length: (end - start) as u32,
        }
    }

    #[inline]
    pub(super) const fn private(start: usize, end: usize) -> Self {
        let span = Self::shared(start, end);
        Self {
            start: span.start | PRIVATE,
            ..span
        }
    }

    /// Its length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.length as usize
    }

    /// Whether it refers to the private bytes of its update.
    #[inline]
    #[must_use]
    pub const fn is_private(self) -> bool {
        self.start & PRIVATE != 0
    }

    /// Start offset, in the shared or private bytes.
    #[inline]
    #[must_use]
    pub const fn start(self) -> u32 {
        self.start & !PRIVATE
    }

    /// Whether it has no bytes, and so is no message.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.length == 0
    }

    /// Its bytes; empty if it exceeds the buffer.
    #[inline]
    #[must_use]
    pub fn bytes<'a>(self, shared: &'a [u8], own: &'a [u8]) -> &'a [u8] {
        let all = if self.is_private() { own } else { shared };
        let start = self.start() as usize;
        all.get(start..start + self.length as usize)
            .unwrap_or_default()
    }

    /// Encodes the span.
    #[inline]
    pub(super) const fn to_bytes(self) -> [u8; SPAN_BYTES] {
        let [s0, s1, s2, s3] = self.start.to_le_bytes();
        let [l0, l1, l2, l3] = self.length.to_le_bytes();
        [s0, s1, s2, s3, l0, l1, l2, l3]
    }

    /// Decodes a span.
    #[inline]
    pub(super) const fn from_bytes([s0, s1, s2, s3, l0, l1, l2, l3]: [u8; SPAN_BYTES]) -> Self {
        Self {
            start: u32::from_le_bytes([s0, s1, s2, s3]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
        }
    }
}

/// The header of a client update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientUpdateHeader {
    /// The client that receives it.
    pub client: ClientId,
    /// Counts scene changes and resumes of the client.
    pub epoch: u8,
    /// The last input of the client that was handled.
    pub input: u16,
    /// This update is the client's last, for this reason.
    pub close: Option<CloseReason>,
}

/// A stored update, as the end offsets of its spans and private bytes.
#[derive(Clone, Copy, Debug)]
struct StoredUpdate {
    header: ClientUpdateHeader,
    offsets: UpdateOffsets,
}

#[derive(Clone, Copy, Debug, Default)]
struct UpdateOffsets {
    reliable: u32,
    unreliable: u32,
    bytes: u32,
}

/// The update of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientUpdate<'a> {
    /// The header.
    pub header: ClientUpdateHeader,
    /// Messages of the reliable channel, in order.
    pub reliable: &'a [MessageSpan],
    /// Messages of the unreliable channel, in order.
    pub unreliable: &'a [MessageSpan],
    /// Private bytes of the update.
    pub private: &'a [u8],
}

impl<'a> ClientUpdate<'a> {
    /// The bytes of its messages, by channel.
    #[inline]
    pub(super) fn messages(
        self,
        shared: &'a [u8],
    ) -> (
        impl Iterator<Item = &'a [u8]>,
        impl Iterator<Item = &'a [u8]>,
    ) {
        let of = move |spans: &'a [MessageSpan]| {
            spans
                .iter()
                .map(move |span| span.bytes(shared, self.private))
        };
        (of(self.reliable), of(self.unreliable))
    }
}

/// The updates that one worker has written.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct BatchPart {
    bytes: Vec<u8>,
    /// By channel.
    spans: [Vec<MessageSpan>; 2],
    updates: Vec<StoredUpdate>,
    /// Whether the last update is not finished.
    is_open: bool,
    /// End offsets of the last finished update.
    offsets: UpdateOffsets,
}

impl BatchPart {
    /// Starts the update of a client, and finishes the one before. At most one update per client and tick. Clients should ascend within a
    /// part and from part to part; other orders work, but are slower.
    pub fn begin_client(&mut self, client: ClientId, epoch: u8, input: u16) {
        self.end_client();
        let head = ClientUpdateHeader {
            client,
            epoch,
            input,
            close: None,
        };
        let ends = self.offsets;
        self.updates.push(StoredUpdate {
            header: head,
            offsets: ends,
        });
        self.is_open = true;
    }

    /// Adds a shared message on the reliable channel.
    #[inline]
    pub fn reliable(&mut self, span: MessageSpan) {
        self.push(Channel::Reliable, span);
    }

    /// Adds a shared message on the unreliable channel.
    #[inline]
    pub fn unreliable(&mut self, span: MessageSpan) {
        self.push(Channel::Unreliable, span);
    }

    /// Adds a shared message on a channel.
    #[inline]
    pub fn push(&mut self, channel: Channel, span: MessageSpan) {
        debug_assert!(self.is_open, "a line is begun");
        if !span.is_empty() {
            self.spans[channel as usize].push(span);
        }
    }

    /// Adds a private message on the reliable channel. `write` appends it. Returns its length.
    #[inline]
    pub fn write_reliable(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let span = self.write_private(write);
        self.reliable(span);
        span.len()
    }

    /// Adds a private message on the unreliable channel. `write` appends it. Returns its length.
    #[inline]
    pub fn write_unreliable(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let span = self.write_private(write);
        self.unreliable(span);
        span.len()
    }

    /// Writes a private message without adding it to a channel.
    #[inline]
    pub fn write_private(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> MessageSpan {
        let start = self.bytes.len();
        write(&mut self.bytes);
        debug_assert!(self.bytes.len() >= start, "a message only appends");
        let base = self.offsets.bytes as usize;
        MessageSpan::private(start - base, self.bytes.len() - base)
    }

    /// Makes this update the client's last.
    pub fn close(&mut self, reason: CloseReason) {
        let open = self.updates.last_mut().filter(|_| self.is_open);
        if let Some(line) = open {
            line.header.close = Some(reason);
        }
    }

    /// Finishes the update; removes it if it is empty.
    pub fn end_client(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let (before, ends) = (self.offsets, self.written_offsets());
        let says = ends.reliable > before.reliable || ends.unreliable > before.unreliable;
        let line = self.updates.last_mut();
        match line.filter(|line| says || line.header.close.is_some()) {
            Some(line) => (line.offsets, self.offsets) = (ends, ends),
            None => {
                self.updates.pop();
                self.bytes.truncate(before.bytes as usize);
            }
        }
    }

    /// Removes the last update, which must be finished.
    pub fn drop_last(&mut self) {
        debug_assert!(!self.is_open, "the line has ended");
        self.updates.pop();
        self.offsets = self
            .updates
            .last()
            .map_or_else(UpdateOffsets::default, |line| line.offsets);
        let UpdateOffsets {
            reliable,
            unreliable,
            bytes,
        } = self.offsets;
        self.spans[0].truncate(reliable as usize);
        self.spans[1].truncate(unreliable as usize);
        self.bytes.truncate(bytes as usize);
    }

    /// End offsets of everything written.
    const fn written_offsets(&self) -> UpdateOffsets {
        UpdateOffsets {
            reliable: self.spans[0].len() as u32,
            unreliable: self.spans[1].len() as u32,
            bytes: self.bytes.len() as u32,
        }
    }

    /// Number of finished updates.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.updates.len() - self.is_open as usize
    }

    /// Whether there is no finished update.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Update number `nth`, if it exists.
    #[inline]
    #[must_use]
    pub fn update(&self, nth: usize) -> Option<ClientUpdate<'_>> {
        let line = self.updates[..self.len()].get(nth)?;
        let before = match nth.checked_sub(1) {
            Some(before) => self.updates[before].offsets,
            None => UpdateOffsets::default(),
        };
        let range = |start: u32, end: u32| start as usize..end as usize;
        Some(ClientUpdate {
            header: line.header,
            reliable: &self.spans[0][range(before.reliable, line.offsets.reliable)],
            unreliable: &self.spans[1][range(before.unreliable, line.offsets.unreliable)],
            private: &self.bytes[range(before.bytes, line.offsets.bytes)],
        })
    }

    /// The updates, in the order of writing.
    pub fn updates(&self) -> impl Iterator<Item = ClientUpdate<'_>> {
        (0..self.len()).filter_map(|nth| self.update(nth))
    }

    /// The headers of the updates.
    pub(super) fn headers(&self) -> impl Iterator<Item = ClientUpdateHeader> {
        self.updates[..self.len()].iter().map(|line| line.header)
    }

    /// Removes all updates. Keeps the buffers, except those that a burst has enlarged.
    pub fn clear(&mut self) {
        clear_and_shrink(&mut self.bytes);
        self.spans.iter_mut().for_each(clear_and_shrink);
        clear_and_shrink(&mut self.updates);
        (self.is_open, self.offsets) = (false, UpdateOffsets::default());
    }
}

/// The changes of one tick.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct OutgoingBatch {
    /// The tick.
    pub tick: u64,
    /// Messages that many clients receive, each stored once.
    pub shared: Vec<u8>,
    /// Start offset of each of them, ascending.
    pub shared_starts: Vec<u32>,
    /// Who receives which: one part per worker.
    #[memory(each)]
    pub parts: Vec<BatchPart>,
}

impl OutgoingBatch {
    /// Appends a shared message that `write` writes, and returns its span.
    pub fn push_shared(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> MessageSpan {
        let start = self.shared.len();
        self.shared_starts.push(start as u32);
        write(&mut self.shared);
        debug_assert!(self.shared.len() >= start, "a message only appends");
        MessageSpan::shared(start, self.shared.len())
    }

    /// The part with this number; created if there are fewer.
    pub fn part(&mut self, nth: usize) -> &mut BatchPart {
        if self.parts.len() <= nth {
            self.parts.resize_with(nth + 1, BatchPart::default);
        }
        &mut self.parts[nth]
    }

    /// Finishes the updates that are still open.
    pub fn finish(&mut self) {
        self.parts.iter_mut().for_each(BatchPart::end_client);
    }

    /// Number of updates in all parts.
    pub fn len(&self) -> usize {
        self.parts.iter().map(BatchPart::len).sum()
    }

    /// The updates with these numbers, counted from the first part to the last.
    pub fn updates_in(&self, range: Range<usize>) -> impl Iterator<Item = ClientUpdate<'_>> {
        let mut before = 0;
        self.parts.iter().flat_map(move |part| {
            let [start, end] = [range.start, range.end]
                .map(|nth: usize| nth.saturating_sub(before).min(part.len()));
            before += part.len();
            (start..end).filter_map(|nth| part.update(nth))
        })
    }

    /// Whether no part has an update.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(BatchPart::is_empty)
    }

    /// Removes all messages and updates. Keeps the buffers, except those that a burst has enlarged.
    pub fn clear(&mut self) {
        clear_and_shrink(&mut self.shared);
        clear_and_shrink(&mut self.shared_starts);
        self.parts.iter_mut().for_each(BatchPart::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: ClientUpdate, spans: &[MessageSpan], shared: &[u8]) -> Vec<u8> {
        let bytes = spans
            .iter()
            .flat_map(|span| span.bytes(shared, line.private));
        bytes.copied().collect()
    }

    #[test]
    fn client_updates_keep_message_order_by_channel() {
        let mut batch = OutgoingBatch::default();
        let both = batch.push_shared(|bytes| bytes.extend(b"both"));
        let late = batch.push_shared(|bytes| bytes.extend(b"late"));
        let shared = batch.shared.clone();
        let part = batch.part(0);
        part.begin_client(ClientId(3), 1, 2);
        part.unreliable(late);
        part.write_reliable(|bytes| bytes.extend(b"mine,"));
        part.reliable(both);
        part.write_unreliable(|bytes| bytes.extend(b",own"));
        part.begin_client(ClientId(4), 0, 0);
        part.begin_client(ClientId(5), 9, 8);
        part.write_reliable(|bytes| bytes.extend(b"yours,"));
        part.reliable(both);
        part.close(CloseReason::Replaced);
        part.end_client();
        assert_eq!(part.len(), 2);
        let [first, second] = [0, 1].map(|nth| part.update(nth).unwrap());
        assert_eq!(
            first.header,
            ClientUpdateHeader {
                client: ClientId(3),
                epoch: 1,
                input: 2,
                close: None
            }
        );
        assert_eq!(text(first, first.reliable, &shared), b"mine,both");
        assert_eq!(text(first, first.unreliable, &shared), b"late,own");
        assert_eq!(second.header.client, ClientId(5));
        assert_eq!(second.header.close, Some(CloseReason::Replaced));
        assert_eq!(text(second, second.reliable, &shared), b"yours,both");
        assert!(second.unreliable.is_empty() && part.update(2).is_none());
        batch.clear();
        assert!(batch.is_empty() && batch.parts[0].updates().next().is_none());
    }

    #[test]
    fn empty_update_is_dropped_unless_it_closes_the_client() {
        let mut part = BatchPart::default();
        part.begin_client(ClientId(1), 0, 0);
        part.write_reliable(|_| ());
        part.reliable(MessageSpan::shared(5, 5));
        part.end_client();
        assert!(part.is_empty());
        part.begin_client(ClientId(1), 0, 0);
        part.close(CloseReason::SlowConsumer);
        part.end_client();
        part.end_client();
        assert_eq!(part.len(), 1);
    }

    #[test]
    fn span_out_of_range_is_empty() {
        assert!(MessageSpan::shared(1, 5).bytes(&[1, 2, 3], &[]).is_empty());
        assert_eq!(
            MessageSpan::private(0, 2).bytes(&[1, 2, 3], &[7, 8]),
            [7, 8]
        );
        let span = MessageSpan::private(4, 9);
        assert_eq!(MessageSpan::from_bytes(span.to_bytes()), span);
    }
}
