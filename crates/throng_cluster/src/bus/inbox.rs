//! The queue of received messages of a transport.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::BusSignal;

/// Maximum number of waiting messages, and of their bytes. At the limit, new messages are dropped and counted.
pub(super) const WAITING_MESSAGES_MAX: usize = 8_192;
pub(super) const WAITING_BYTES_MAX: usize = 32 * 1_024 * 1_024;

/// The received signals. Clones share the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct BusInbox(Arc<Mutex<WaitingSignals>>);

#[derive(Debug, Default)]
struct WaitingSignals {
    signals: VecDeque<BusSignal>,
    bytes: usize,
    dropped: u64,
    waker: Option<Waker>,
}

impl BusInbox {
    fn waiting(&self) -> MutexGuard<'_, WaitingSignals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a signal. A message for which there is no room is dropped and counted.
    pub fn push(&self, signal: BusSignal) {
        let mut waiting = self.waiting();
        if let BusSignal::Message(bytes) = &signal {
            let is_full = waiting.signals.len() >= WAITING_MESSAGES_MAX
                || waiting.bytes + bytes.len() > WAITING_BYTES_MAX;
            if is_full {
                waiting.dropped += 1;
                return;
            }
            waiting.bytes += bytes.len();
        } else if let BusSignal::Unreachable(..) = &signal {
            if waiting.signals.len() >= WAITING_MESSAGES_MAX {
                return;
            }
        } else if waiting.signals.back() == Some(&signal) {
            return;
        }
        waiting.signals.push_back(signal);
        if let Some(waker) = waiting.waker.clone() {
            drop(waiting);
            waker.wake();
        }
    }

    /// Counts messages that the client library has dropped.
    #[cfg(feature = "nats")]
    pub fn add_dropped(&self, count: u64) {
        self.waiting().dropped += count;
    }

    /// The next signal. Dropped messages are reported first.
    pub fn pop(&self) -> Option<BusSignal> {
        let mut waiting = self.waiting();
        if waiting.dropped > 0 {
            return Some(BusSignal::Dropped(std::mem::take(&mut waiting.dropped)));
        }
        let signal = waiting.signals.pop_front()?;
        if let BusSignal::Message(bytes) = &signal {
            waiting.bytes -= bytes.len();
        }
        Some(signal)
    }

    pub fn set_waker(&self, waker: Waker) {
        self.waiting().waker = Some(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_inbox_drops_the_newest_and_says_how_many() {
        for (length, fits) in [
            (1, WAITING_MESSAGES_MAX),
            (1_024 * 1_024, WAITING_BYTES_MAX / 1_024 / 1_024),
        ] {
            let inbox = BusInbox::default();
            for nth in 0..fits + 3 {
                inbox.push(BusSignal::Message(vec![nth as u8; length]));
            }
            inbox.push(BusSignal::Disconnected);
            inbox.push(BusSignal::Disconnected);
            assert_eq!(inbox.pop(), Some(BusSignal::Dropped(3)));
            assert_eq!(inbox.pop(), Some(BusSignal::Message(vec![0; length])));
            let rest: Vec<BusSignal> = std::iter::from_fn(|| inbox.pop()).collect();
            assert_eq!(rest.len(), fits);
            assert_eq!(rest.last(), Some(&BusSignal::Disconnected));
            // There is room again.
            inbox.push(BusSignal::Message(vec![9; length]));
            assert_eq!(inbox.pop(), Some(BusSignal::Message(vec![9; length])));
            assert_eq!(inbox.pop(), None);
        }
    }
}
