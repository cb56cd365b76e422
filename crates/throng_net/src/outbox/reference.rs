//! The ring, compared with queues of objects: the same messages in the same order.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, yield_now};

use crossbeam_queue::ArrayQueue;

use super::ring::{FRAMING_BYTES, ring};

/// A queue between two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// The ring of bytes; messages are committed in batches.
    Ring,
    /// `std::sync::mpsc::sync_channel` of `Vec<u8>`.
    SyncChannel,
    /// `crossbeam_queue::ArrayQueue` of `Vec<u8>`.
    ArrayQueue,
}

/// All kinds.
pub const QUEUE_KINDS: [QueueKind; 3] = [
    QueueKind::Ring,
    QueueKind::SyncChannel,
    QueueKind::ArrayQueue,
];

/// Size of the ring, and of the objects that fill the other queues.
const CAPACITY_BYTES: usize = 1 << 18;

/// Bytes after which the ring commits.
const COMMIT_BYTES: usize = 1 << 13;

/// A checksum of messages in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    #[inline]
    fn add(&mut self, message: &[u8]) {
        let (numbers, _) = message.as_chunks::<8>();
        let number = numbers
            .first()
            .map_or(0, |&bytes| u64::from_le_bytes(bytes));
        self.0 = self
            .0
            .wrapping_mul(31)
            .wrapping_add(number ^ message.len() as u64);
    }
}

/// Messages of one size, numbered.
struct Messages {
    message: Vec<u8>,
}

impl Messages {
    fn new(bytes: usize) -> Self {
        Self {
            message: vec![1; bytes.max(8)],
        }
    }

    #[inline]
    fn number(&mut self, number: u64) -> &[u8] {
        self.message[..8].copy_from_slice(&number.to_le_bytes());
        &self.message
    }
}

/// Number of messages of this length that fit.
fn capacity(bytes: usize) -> usize {
    (CAPACITY_BYTES / (bytes.max(8) + FRAMING_BYTES)).max(4)
}

fn ring_bytes(bytes: usize) -> usize {
    capacity(bytes) * (bytes.max(8) + FRAMING_BYTES)
}

/// Moves `count` messages of `bytes` bytes through one thread: a batch in, a batch out. Measures the cost of both ends without thread
/// switches.
#[must_use]
pub fn single_threaded(way: QueueKind, bytes: usize, count: u64) -> Sum {
    let (mut messages, mut sum) = (Messages::new(bytes), Sum::default());
    let batch = (COMMIT_BYTES / (bytes + FRAMING_BYTES)).clamp(1, capacity(bytes)) as u64;
    let batches = (0..count.div_ceil(batch)).map(|nth| nth * batch..count.min((nth + 1) * batch));
    match way {
        QueueKind::Ring => {
            let (mut writer, mut reader) = ring(ring_bytes(bytes));
            for batch in batches {
                for number in batch {
                    let pushed = writer.push(messages.number(number));
                    debug_assert!(pushed.is_ok(), "a batch fits");
                }
                writer.commit();
                reader.read(usize::MAX, |message| sum.add(message));
            }
        }
        QueueKind::SyncChannel => {
            let (sender, receiver) = sync_channel(capacity(bytes));
            for batch in batches {
                for number in batch.clone() {
                    let sent = sender.try_send(messages.number(number).to_vec());
                    debug_assert!(sent.is_ok(), "a batch fits");
                }
                receiver.try_iter().for_each(|message| sum.add(&message));
            }
        }
        QueueKind::ArrayQueue => {
            let queue = ArrayQueue::new(capacity(bytes));
            for batch in batches {
                for number in batch {
                    let pushed = queue.push(messages.number(number).to_vec());
                    debug_assert!(pushed.is_ok(), "a batch fits");
                }
                while let Some(message) = queue.pop() {
                    sum.add(&message);
                }
            }
        }
    }
    sum
}

/// Moves `count` messages of `bytes` bytes from one thread to another. Both yield when they cannot continue.
#[must_use]
pub fn between_threads(way: QueueKind, bytes: usize, count: u64) -> Sum {
    let mut messages = Messages::new(bytes);
    match way {
        QueueKind::Ring => {
            let (mut writer, mut reader) = ring(ring_bytes(bytes));
            thread::scope(|scope| {
                scope.spawn(move || {
                    let mut since = 0;
                    for number in 0..count {
                        while writer.push(messages.number(number)).is_err() {
                            writer.commit();
                            yield_now();
                        }
                        since += bytes + FRAMING_BYTES;
                        if since >= COMMIT_BYTES {
                            writer.commit();
                            since = 0;
                        }
                    }
                    writer.commit();
                });
                let (mut sum, mut came) = (Sum::default(), 0);
                while came < count {
                    match reader.read(COMMIT_BYTES, |message| sum.add(message)) {
                        0 => yield_now(),
                        taken => came += taken as u64,
                    }
                }
                sum
            })
        }
        QueueKind::SyncChannel => {
            let (sender, receiver) = sync_channel(capacity(bytes));
            thread::scope(|scope| {
                scope.spawn(move || {
                    for number in 0..count {
                        if sender.send(messages.number(number).to_vec()).is_err() {
                            return;
                        }
                    }
                });
                let mut sum = Sum::default();
                receiver
                    .iter()
                    .for_each(|message: Vec<u8>| sum.add(&message));
                sum
            })
        }
        QueueKind::ArrayQueue => {
            let queue = Arc::new(ArrayQueue::new(capacity(bytes)));
            let to = queue.clone();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for number in 0..count {
                        let mut message = messages.number(number).to_vec();
                        while let Err(refused) = to.push(message) {
                            message = refused;
                            yield_now();
                        }
                    }
                });
                let (mut sum, mut came) = (Sum::default(), 0);
                while came < count {
                    match queue.pop() {
                        None => yield_now(),
                        Some(message) => {
                            sum.add(&message);
                            came += 1;
                        }
                    }
                }
                sum
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_kinds_deliver_the_same_messages_in_order() {
        for bytes in [8, 64, 1_200, 200_000] {
            let count = 3_000_000 / (bytes as u64 + 1_000);
            let sums = QUEUE_KINDS.map(|way| single_threaded(way, bytes, count));
            assert!(
                sums.iter()
                    .all(|&sum| sum == sums[0] && sum != Sum::default())
            );
            assert_eq!(
                QUEUE_KINDS.map(|way| between_threads(way, bytes, count)),
                sums
            );
        }
    }
}
