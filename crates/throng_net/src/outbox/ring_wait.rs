//! Synchronization of a sender thread with the tick's thread. The sender thread sleeps while the ring is empty, is woken when it has
//! messages, and ends when the writer is gone and everything was taken.
//!
//! The package in tests/loom checks this file under every interleaving of two threads. It replaces the primitives in `sync`, and the ring
//! by a plain queue.

use super::ring::RingReader;
use super::sync::{AtomicU64, Ordering, park};

/// Passes the messages to `each` until the writer is gone and none is left. Passes `None` when the ring was emptied, before `taken` is
/// updated.
pub(super) fn drain_until_abandoned(
    mut reader: RingReader,
    taken: &AtomicU64,
    mut each: impl FnMut(Option<&[u8]>),
) {
    let mut count = 0;
    loop {
        // Loaded before reading: this read sees everything that the writer committed before it went.
        let is_last_look = reader.is_abandoned();
        let before = count;
        // One at a time, to free its room as early as possible.
        while reader.read(0, |message| each(Some(message))) > 0 {
            count += 1;
        }
        if count > before {
            each(None);
            taken.store(count, Ordering::Release);
        }
        if is_last_look {
            return;
        }
        if count == before {
            // A commit wakes this thread afterwards, so a commit since the read above ends this sleep at once.
            park();
        }
    }
}

/// Whether the first `pushed` messages were taken and their packets were flushed.
pub(super) fn is_taken(taken: &AtomicU64, pushed: u64) -> bool {
    taken.load(Ordering::Acquire) >= pushed
}
