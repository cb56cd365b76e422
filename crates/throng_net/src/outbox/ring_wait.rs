//! How a sender thread and the tick's thread meet: the thread sleeps while the ring is empty, is woken when there is
//! something, and ends when the writer is gone and everything was taken.
//!
//! This file is also checked under every interleaving of two threads, by the package in tests/loom, which puts other
//! synchronisation primitives in the place of `sync` and a plain queue in that of the ring.

use super::ring::RingReader;
use super::sync::{AtomicU64, Ordering, park};

/// Gives `each` the messages until the writer is gone and nothing is left; `None` when the ring was emptied, before `taken`
/// says so.
pub(super) fn drain_until_abandoned(
    mut reader: RingReader,
    taken: &AtomicU64,
    mut each: impl FnMut(Option<&[u8]>),
) {
    let mut count = 0;
    loop {
        // Asked before looking: what was committed before the writer went is seen by that look.
        let is_last_look = reader.is_abandoned();
        let before = count;
        // One at a time, so that its room is free as early as can be.
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
            // Whoever commits wakes this thread after that; so a commit since the look above ends this sleep at once.
            park();
        }
    }
}

/// Whether the first `pushed` messages were taken and what came of them was written out.
pub(super) fn is_taken(taken: &AtomicU64, pushed: u64) -> bool {
    taken.load(Ordering::Acquire) >= pushed
}
