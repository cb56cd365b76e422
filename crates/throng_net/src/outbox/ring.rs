//! A lock-free ring of bytes from one thread to another, for messages of any length, committed in batches.
//!
//! The ring is that of `rtrb`, with one producer and one consumer of bytes. This file adds the framing: a message is its length (4 bytes,
//! little endian) and its bytes, which may wrap around the ring's end. [`RingWriter::push`] gathers messages; [`RingWriter::commit`] copies
//! them into the ring and makes all of them visible with one store. The reader reads a message in place, except one that wraps, which is
//! copied.
//!
//! Invariants: messages are read completely, once, in the order of pushing. Uncommitted messages are not visible. A message that does not
//! fit is refused, and nothing of it is written. Neither side ever waits. Cost: two copies per message, no allocation after warm-up; bench
//! `outbox::ring`.
//!
//! Copies avoid `rep movsb`, which C libraries use from 2 to 4 KiB on: on AMD's Zen its speed falls from 100 to 3 GB/s if the destination
//! is a few bytes after the source within a page (glibc bug 30994). Because of the length before each message, large messages regularly
//! meet this condition.

use rtrb::chunks::WriteChunk;
use rtrb::{Consumer, Producer, RingBuffer};
use throng_core::memory::MemoryUse;

/// Bytes before a message: its length.
pub const FRAMING_BYTES: usize = 4;

/// Bytes per copy if `rep movsb` would be slow: fewer than the minimum for which C libraries use it.
const COPY_BYTES_MAX: usize = 1_024;

/// The distance within a page below which it is slow.
const ALIASED_BYTES: usize = 64;

const PAGE_BYTES: usize = 4_096;

/// A ring of `bytes` bytes, including framing; it has room for at least one message of one byte.
#[must_use]
pub fn ring(bytes: usize) -> (RingWriter, RingReader) {
    let capacity = bytes.clamp(FRAMING_BYTES + 1, u32::MAX as usize);
    let (producer, consumer) = RingBuffer::new(capacity);
    let writer = RingWriter {
        producer,
        gathered: Vec::new(),
        capacity,
    };
    let reader = RingReader {
        consumer,
        wrapped: Vec::new(),
    };
    (writer, reader)
}

/// The ring does not have enough room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingFull;

/// The writing side.
#[derive(Debug)]
pub struct RingWriter {
    producer: Producer<u8>,
    /// Uncommitted messages, framed.
    gathered: Vec<u8>,
    capacity: usize,
}

impl RingWriter {
    /// Gathers a message, which becomes visible with the next [`commit`](Self::commit).
    ///
    /// # Errors
    /// [`RingFull`] if there is no room for it next to the bytes that the reader has not taken yet.
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), RingFull> {
        let wanted = self.gathered.len() + FRAMING_BYTES + message.len();
        // The cached free space may be too low, so the reader's position is loaded only if that matters.
        if wanted > self.producer.cached_slots() && wanted > self.producer.slots() {
            return Err(RingFull);
        }
        self.gathered
            .extend_from_slice(&(message.len() as u32).to_le_bytes());
        extend_in_chunks(&mut self.gathered, message);
        Ok(())
    }

    /// Makes all gathered messages visible, with one store.
    #[inline]
    pub fn commit(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        // Room was reserved when they were gathered, and the reader only adds room.
        let chunk = self.producer.write_chunk_uninit(self.gathered.len());
        debug_assert!(chunk.is_ok(), "there is room for what was gathered");
        let Ok(mut chunk) = chunk else {
            return;
        };
        let (first, second) = chunk.as_mut_slices();
        let (head, tail) = self.gathered.split_at(first.len());
        let is_slow = copies_slowly(head, first.as_ptr().addr())
            || copies_slowly(tail, second.as_ptr().addr());
        if is_slow {
            // Copied in chunks, which need initialized memory: it is zeroed first, in a small part of the time of the slow copy.
            let mut chunk = WriteChunk::from(chunk);
            let (first, second) = chunk.as_mut_slices();
            copy_in_chunks(head, first);
            copy_in_chunks(tail, second);
            chunk.commit_all();
        } else {
            let copied = self.producer.push_entire_slice(&self.gathered);
            debug_assert!(copied.is_ok(), "there is room for what was gathered");
        }
        self.gathered.clear();
    }

    /// Its size in bytes.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Gathered, uncommitted bytes, including framing.
    #[must_use]
    pub const fn gathered_bytes(&self) -> usize {
        self.gathered.len()
    }

    /// Whether a message of this length fits into an empty ring.
    #[must_use]
    pub const fn can_fit(&self, bytes: usize) -> bool {
        bytes <= self.capacity - FRAMING_BYTES
    }

    /// Bytes that are committed or gathered and not taken yet, including framing.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.capacity - self.producer.slots() + self.gathered.len()
    }

    /// Whether the reader is gone, so that nothing takes what is pushed.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.producer.is_abandoned()
    }
}

/// The reading side.
#[derive(Debug)]
pub struct RingReader {
    consumer: Consumer<u8>,
    /// A contiguous copy of the message that wraps around the ring's end.
    wrapped: Vec<u8>,
}

impl RingReader {
    /// Passes the visible messages to `take` in order, until at least `bytes_min` bytes were passed or none is left. Frees their room at
    /// once, and returns their number. With 0 for `bytes_min` it reads one message.
    pub fn read(&mut self, bytes_min: usize, mut take: impl FnMut(&[u8])) -> usize {
        let visible = self.consumer.slots();
        let Ok(chunk) = self.consumer.read_chunk(visible) else {
            return 0;
        };
        let (first, second) = chunk.as_slices();
        let (mut at, mut count) = (0, 0);
        while let Some(length) = length_at(first, second, at) {
            let start = at + FRAMING_BYTES;
            let end = start + length;
            if end <= first.len() {
                take(&first[start..end]);
            } else if start >= first.len() {
                let (start, end) = (start - first.len(), end - first.len());
                take(&second[start..end]);
            } else {
                self.wrapped.clear();
                extend_in_chunks(&mut self.wrapped, &first[start..]);
                extend_in_chunks(&mut self.wrapped, &second[..end - first.len()]);
                take(&self.wrapped);
            }
            at = end;
            count += 1;
            if at >= bytes_min {
                break;
            }
        }
        chunk.commit(at);
        count
    }

    /// Whether the writer is gone. Each later [`read`](Self::read) sees what it committed before.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.consumer.is_abandoned()
    }
}

/// The message length at offset `at` of the two slices, unless they end there. Only complete messages are committed.
#[inline]
fn length_at(first: &[u8], second: &[u8], at: usize) -> Option<usize> {
    if let Some(bytes) = first.get(at..at + FRAMING_BYTES) {
        return bytes
            .try_into()
            .ok()
            .map(|bytes| u32::from_le_bytes(bytes) as usize);
    }
    let mut length = [0; FRAMING_BYTES];
    for (nth, byte) in length.iter_mut().enumerate() {
        let at = at + nth;
        *byte = *first.get(at).or_else(|| second.get(at - first.len()))?;
    }
    Some(u32::from_le_bytes(length) as usize)
}

/// Whether copying these bytes to an address in one call would be slow.
fn copies_slowly(from: &[u8], to: usize) -> bool {
    let ahead = to.wrapping_sub(from.as_ptr().addr()) % PAGE_BYTES;
    from.len() > COPY_BYTES_MAX && (1..ALIASED_BYTES).contains(&ahead)
}

fn copy_in_chunks(from: &[u8], to: &mut [u8]) {
    let pieces = from.chunks(COPY_BYTES_MAX);
    for (from, to) in pieces.zip(to.chunks_mut(COPY_BYTES_MAX)) {
        to.copy_from_slice(from);
    }
}

#[inline]
fn extend_in_chunks(to: &mut Vec<u8>, from: &[u8]) {
    to.reserve(from.len());
    for piece in from.chunks(COPY_BYTES_MAX) {
        to.extend_from_slice(piece);
    }
}

impl MemoryUse for RingWriter {
    fn heap_bytes(&self) -> usize {
        self.capacity + self.gathered.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use proptest::prelude::*;

    fn read_all(reader: &mut RingReader) -> Vec<Vec<u8>> {
        let mut read = Vec::new();
        reader.read(usize::MAX, |message| read.push(message.to_vec()));
        read
    }

    #[test]
    fn message_is_whole_wherever_the_ring_wraps() {
        for capacity in 24..64 {
            for offset in 0..capacity {
                let (mut writer, mut reader) = ring(capacity);
                // Moves the ring's end to every byte of the two messages and their lengths.
                for _ in 0..offset / FRAMING_BYTES {
                    writer.push(&[]).unwrap();
                    writer.commit();
                    assert_eq!(read_all(&mut reader), [Vec::<u8>::new()]);
                }
                let rest: Vec<u8> = vec![1; offset % FRAMING_BYTES];
                writer.push(&rest).unwrap();
                writer.commit();
                assert_eq!(read_all(&mut reader), [rest]);
                let (a, b): (Vec<u8>, Vec<u8>) = ((0..7).collect(), (100..109).collect());
                writer.push(&a).unwrap();
                writer.push(&b).unwrap();
                assert!(read_all(&mut reader).is_empty(), "not committed yet");
                writer.commit();
                assert_eq!(read_all(&mut reader), [a, b]);
            }
        }
    }

    #[test]
    fn large_messages_are_whole_at_any_page_offset() {
        // With its own length for each message, and one more per lap, the copies meet every distance within a page.
        let (mut writer, mut reader) = ring(3 * PAGE_BYTES + 7);
        let length = |nth: usize| PAGE_BYTES - FRAMING_BYTES + nth % 3;
        let bytes = |nth: usize| (0..length(nth)).map(move |at| (at * 7 + nth) as u8);
        let mut slow = 0;
        for nth in 0..3 * PAGE_BYTES {
            let message: Vec<u8> = bytes(nth).collect();
            writer.push(&message).unwrap();
            let to = writer.producer.write_chunk_uninit(writer.gathered.len());
            let to = to.unwrap().as_mut_slices().0.as_ptr().addr();
            slow += usize::from(copies_slowly(&writer.gathered, to));
            writer.commit();
            let taken = reader.read(0, |read| assert!(read == message, "{nth}"));
            assert_eq!((taken, writer.used_bytes()), (1, 0));
        }
        assert!(slow > 50 && slow < 3 * PAGE_BYTES / 10, "{slow}");
    }

    #[test]
    fn copy_is_slow_only_just_past_its_source_page_offset() {
        let from = [0; COPY_BYTES_MAX + 1];
        let at = from.as_ptr().addr();
        for pages in [0, 1, 9] {
            let to = at + pages * PAGE_BYTES;
            assert!(!copies_slowly(&from, to) && !copies_slowly(&from, to - 1));
            assert!(copies_slowly(&from, to + 1) && copies_slowly(&from, to + 63));
            assert!(!copies_slowly(&from, to + 64));
            assert!(!copies_slowly(&from[1..], to + 2), "a small one never is");
        }
    }

    #[test]
    fn unfitting_message_is_refused_and_others_are_kept() {
        let (mut writer, mut reader) = ring(20);
        assert!(writer.can_fit(16) && !writer.can_fit(17));
        assert_eq!(writer.push(&[0; 17]), Err(RingFull));
        assert_eq!(writer.push(&[1; 10]), Ok(()));
        assert_eq!(writer.push(&[2; 3]), Err(RingFull));
        assert_eq!(writer.push(&[2; 2]), Ok(()));
        assert_eq!(writer.used_bytes(), 20);
        writer.commit();
        assert_eq!(writer.push(&[]), Err(RingFull));
        assert_eq!(reader.read(0, |message| assert_eq!(message, [1; 10])), 1);
        assert_eq!(writer.push(&[3; 10]), Ok(()));
        writer.commit();
        assert_eq!(read_all(&mut reader), [vec![2; 2], vec![3; 10]]);
        assert_eq!(writer.used_bytes(), 0);
    }

    #[test]
    fn committed_messages_outlive_their_writer() {
        let (mut writer, mut reader) = ring(100);
        writer.push(b"last").unwrap();
        writer.commit();
        writer.push(b"never committed").unwrap();
        drop(writer);
        assert!(reader.is_abandoned());
        assert_eq!(read_all(&mut reader), [b"last"]);
    }

    /// An operation on the ring and its model.
    #[derive(Clone, Debug)]
    enum RingStep {
        Push(usize),
        Commit,
        Read(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<RingStep>> {
        let step = prop_oneof![
            4 => (0..40_usize).prop_map(RingStep::Push),
            1 => (40..200_usize).prop_map(RingStep::Push),
            2 => Just(RingStep::Commit),
            2 => (0..120_usize).prop_map(RingStep::Read),
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn the_ring_is_a_bounded_queue_of_messages(capacity in 5..150_usize, steps in steps()) {
            let (mut writer, mut reader) = ring(capacity);
            let mut gathered: Vec<Vec<u8>> = Vec::new();
            let mut visible: VecDeque<Vec<u8>> = VecDeque::new();
            for (seed, step) in steps.into_iter().enumerate() {
                let size = |message: &Vec<u8>| FRAMING_BYTES + message.len();
                let used: usize = gathered.iter().chain(&visible).map(size).sum();
                prop_assert_eq!(writer.used_bytes(), used);
                match step {
                    RingStep::Push(length) => {
                        let message: Vec<u8> = (0..length).map(|nth| (nth * 7 + seed) as u8).collect();
                        let fits = used + FRAMING_BYTES + length <= capacity;
                        prop_assert_eq!(writer.push(&message).is_ok(), fits);
                        if fits {
                            gathered.push(message);
                        }
                    }
                    RingStep::Commit => {
                        writer.commit();
                        visible.extend(gathered.drain(..));
                    }
                    RingStep::Read(bytes_min) => {
                        let mut read = Vec::new();
                        let count = reader.read(bytes_min, |message| read.push(message.to_vec()));
                        prop_assert_eq!(count, read.len());
                        let expected: Vec<Vec<u8>> = visible.drain(..count).collect();
                        let bytes: usize = expected.iter().map(size).sum();
                        prop_assert!(visible.is_empty() || bytes >= bytes_min && count > 0);
                        prop_assert_eq!(read, expected);
                    }
                }
            }
        }
    }

    #[test]
    fn two_threads_pass_every_message_in_order() {
        let (mut writer, mut reader) = ring(4_096);
        let length = |nth: u32| (nth.wrapping_mul(2_654_435_761) >> 16) as usize % 700;
        let sender = std::thread::spawn(move || {
            for nth in 0..4_000_u32 {
                let message = vec![nth as u8; length(nth)];
                while writer.push(&message).is_err() {
                    writer.commit();
                    std::thread::yield_now();
                }
                if nth % 7 == 0 {
                    writer.commit();
                }
            }
            writer.commit();
        });
        let mut next = 0;
        while next < 4_000 {
            let taken = reader.read(1_000, |message| {
                assert!(message.len() == length(next) && message.iter().all(|&b| b == next as u8));
                next += 1;
            });
            if taken == 0 {
                std::thread::yield_now();
            }
        }
        sender.join().unwrap();
    }
}
