//! The queue itself, without the ECS.

use std::collections::{BTreeMap, VecDeque};

use arrayvec::ArrayVec;
use thiserror::Error;

use crate::wire::ClientId;

/// The longest message a client may send, in bytes; the longest of the format has 12.
pub const MESSAGE_BYTES_MAX: usize = 32;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxLimits {
    /// Messages in all.
    pub backlog_max: usize,
    /// Messages of one client.
    pub client_backlog_max: u32,
}

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// Longer than [`MESSAGE_BYTES_MAX`].
    #[error("a message of {0} bytes: at most {MESSAGE_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// The queue is full.
    #[error("the inbox is full: {0} messages wait")]
    Full(usize),
    /// This client has too much waiting.
    #[error("client {} has {waiting} messages waiting already", client.0)]
    ClientFull {
        /// Which client.
        client: ClientId,
        /// How many of its messages wait.
        waiting: u32,
    },
}

/// A message as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundMessage {
    /// Whose.
    pub client: ClientId,
    /// The tick during or after which it came.
    pub tick: u64,
    /// Its bytes.
    pub bytes: ArrayVec<u8, MESSAGE_BYTES_MAX>,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxCounters {
    /// Messages offered.
    pub received: u64,
    /// Messages handed to the simulation.
    pub handled: u64,
    /// Messages not accepted.
    pub refused: u64,
    /// The most that ever waited.
    pub max_backlog: usize,
    /// The longest that a message waited beyond the tick after it came, in ticks.
    pub max_lag_ticks: u64,
}

/// Messages that wait for the tick, oldest first.
#[derive(Clone, Debug, Default)]
pub struct MessageQueue {
    waiting: VecDeque<InboundMessage>,
    by_client: BTreeMap<ClientId, u32>,
    counters: InboxCounters,
}

impl MessageQueue {
    /// Accepts a message, or says why not. O(log clients).
    ///
    /// # Errors
    /// [`Refused`]; the queue is unchanged then, but for its counters.
    pub fn offer(
        &mut self,
        limits: InboxLimits,
        client: ClientId,
        tick: u64,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        self.counters.received += 1;
        let accepted = self.accept(limits, client, tick, bytes);
        if accepted.is_err() {
            self.counters.refused += 1;
        }
        accepted
    }

    fn accept(
        &mut self,
        limits: InboxLimits,
        client: ClientId,
        tick: u64,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        let bytes = bytes
            .try_into()
            .map_err(|_| Refused::TooLong(bytes.len()))?;
        if self.waiting.len() >= limits.backlog_max {
            return Err(Refused::Full(self.waiting.len()));
        }
        let waiting = self.by_client.entry(client).or_default();
        if *waiting >= limits.client_backlog_max {
            return Err(Refused::ClientFull {
                client,
                waiting: *waiting,
            });
        }
        *waiting += 1;
        self.waiting.push_back(InboundMessage {
            client,
            tick,
            bytes,
        });
        self.counters.max_backlog = self.counters.max_backlog.max(self.waiting.len());
        Ok(())
    }

    /// Takes the oldest message, at tick `now`.
    pub fn take(&mut self, now: u64) -> Option<InboundMessage> {
        let message = self.waiting.pop_front()?;
        if let Some(waiting) = self.by_client.get_mut(&message.client) {
            *waiting -= 1;
            if *waiting == 0 {
                self.by_client.remove(&message.client);
            }
        }
        self.counters.handled += 1;
        self.counters.max_lag_ticks = self
            .counters
            .max_lag_ticks
            .max(now.saturating_sub(message.tick + 1));
        Some(message)
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The messages that wait, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &InboundMessage> {
        self.waiting.iter()
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> InboxCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: InboxLimits = InboxLimits {
        backlog_max: 10,
        client_backlog_max: 4,
    };

    #[test]
    fn one_client_cannot_fill_the_queue() {
        let mut queue = MessageQueue::default();
        let sent = (0..8)
            .filter(|_| queue.offer(LIMITS, ClientId(1), 0, &[2]).is_ok())
            .count();
        assert_eq!(sent, 4);
        assert!(queue.offer(LIMITS, ClientId(2), 0, &[2]).is_ok());
        assert_eq!(queue.counters().refused, 4);
    }

    #[test]
    fn a_long_message_is_refused() {
        let mut queue = MessageQueue::default();
        assert_eq!(
            queue.offer(LIMITS, ClientId(1), 0, &[0; 33]),
            Err(Refused::TooLong(33))
        );
        assert!(queue.is_empty());
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn what_is_accepted_comes_out_once_in_order(script in prop::collection::vec((0..4u32, any::<bool>()), 0..200)) {
            let mut queue = MessageQueue::default();
            let mut model = VecDeque::new();
            for (step, (client, take)) in script.into_iter().enumerate() {
                if take {
                    let got = queue.take(step as u64).map(|m| (m.client.0, m.tick));
                    prop_assert_eq!(got, model.pop_front());
                } else if queue.offer(LIMITS, ClientId(client), step as u64, &[2]).is_ok() {
                    model.push_back((client, step as u64));
                    prop_assert!(model.len() <= 10);
                    prop_assert!(model.iter().filter(|&&(c, _)| c == client).count() <= 4);
                } else {
                    let own = model.iter().filter(|&&(c, _)| c == client).count();
                    prop_assert!(model.len() == 10 || own == 4);
                }
            }
            let counters = queue.counters();
            prop_assert_eq!(counters.received, counters.handled + counters.refused + queue.len() as u64);
        }
    }
}
