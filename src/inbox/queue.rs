//! The queue itself, without the ECS.

use std::collections::btree_map::Entry;
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
        /// The client that sent the message.
        client: ClientId,
        /// How many of its messages wait.
        waiting: u32,
    },
}

/// A message as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundMessage {
    /// The client that sent it.
    pub client: ClientId,
    /// The tick during or after which it came.
    pub tick: u64,
    /// The message as the client sent it, not decoded.
    pub bytes: ArrayVec<u8, MESSAGE_BYTES_MAX>,
    /// Which of its client's messages it is, from 1 on and modulo 65,536: all that came count, refused ones too. When it is
    /// taken and no other of its client waits, the last that came.
    pub number: u16,
}

/// What became of messages since the queue was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxCounters {
    /// Messages offered, refused ones included.
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

/// Clients whose messages are counted, at most; of further ones all are refused.
const CLIENTS_MAX: usize = 1 << 20;

/// What of a client came and waits. Kept until the client is forgotten.
#[derive(Clone, Copy, Debug, Default)]
struct ClientBacklog {
    /// How many wait.
    waiting: u32,
    /// How many came, modulo 65,536.
    came: u16,
    /// Whether it stands in the list of those of which one was refused.
    is_listed: bool,
    /// Its connection ended.
    is_gone: bool,
}

/// Messages that wait for the tick, oldest first.
#[derive(Clone, Debug, Default)]
pub struct MessageQueue {
    waiting: VecDeque<InboundMessage>,
    by_client: BTreeMap<ClientId, ClientBacklog>,
    /// Clients of which a message was refused while none waited.
    refused: Vec<ClientId>,
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
        let known = self.by_client.len();
        let backlog = match self.by_client.entry(client) {
            Entry::Occupied(backlog) => backlog.into_mut(),
            Entry::Vacant(place) if known < CLIENTS_MAX => place.insert(ClientBacklog::default()),
            Entry::Vacant(_) => return Err(Refused::Full(self.waiting.len())),
        };
        backlog.came = backlog.came.wrapping_add(1);
        let bytes = match bytes.try_into() {
            Err(_) => Err(Refused::TooLong(bytes.len())),
            Ok(_) if self.waiting.len() >= limits.backlog_max => {
                Err(Refused::Full(self.waiting.len()))
            }
            Ok(_) if backlog.waiting >= limits.client_backlog_max => Err(Refused::ClientFull {
                client,
                waiting: backlog.waiting,
            }),
            Ok(bytes) => Ok(bytes),
        };
        if bytes.is_err() && backlog.waiting == 0 && !backlog.is_listed {
            backlog.is_listed = true;
            self.refused.push(client);
        }
        backlog.waiting += u32::from(bytes.is_ok());
        self.waiting.push_back(InboundMessage {
            client,
            tick,
            bytes: bytes?,
            number: backlog.came,
        });
        self.counters.max_backlog = self.counters.max_backlog.max(self.waiting.len());
        Ok(())
    }

    /// Takes the oldest message, at tick `now`.
    pub fn take(&mut self, now: u64) -> Option<InboundMessage> {
        let mut message = self.waiting.pop_front()?;
        if let Some(backlog) = self.by_client.get_mut(&message.client) {
            backlog.waiting -= 1;
            if backlog.waiting == 0 {
                message.number = backlog.came;
                if backlog.is_gone {
                    self.by_client.remove(&message.client);
                }
            }
        }
        self.counters.handled += 1;
        self.counters.max_lag_ticks = self
            .counters
            .max_lag_ticks
            .max(now.saturating_sub(message.tick + 1));
        Some(message)
    }

    /// Takes a client of which a message was refused while none of it waited, with the number of the last that came: since
    /// that it has nothing to wait for. None when there is none.
    pub fn take_refused(&mut self) -> Option<(ClientId, u16)> {
        while let Some(client) = self.refused.pop() {
            let Some(backlog) = self.by_client.get_mut(&client) else {
                continue;
            };
            backlog.is_listed = false;
            if backlog.waiting == 0 {
                return Some((client, backlog.came));
            }
        }
        None
    }

    /// A client's connection ended: its messages are counted no more. What waits is still handled.
    pub fn forget(&mut self, client: ClientId) {
        if let Some(backlog) = self.by_client.get_mut(&client) {
            backlog.is_gone = true;
            if backlog.waiting == 0 {
                self.by_client.remove(&client);
            }
        }
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

    /// What became of messages so far.
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

    #[test]
    fn every_message_that_came_counts_at_its_place_also_when_it_is_refused() {
        let mut queue = MessageQueue::default();
        let client = ClientId(1);
        let mut offer = |bytes: &[u8]| queue.offer(LIMITS, client, 0, bytes).is_ok();
        assert!(offer(&[2]) && !offer(&[0; 33]));
        assert!((0..3).all(|_| offer(&[2])) && !offer(&[2]));
        let numbers = std::iter::from_fn(|| Some(queue.take(1)?.number));
        // The second and the last were refused; the last counts with the one before it, since nothing else waits.
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 3, 4, 6]);
        assert!(queue.offer(LIMITS, client, 0, &[0; 33]).is_err());
        assert_eq!(queue.take_refused(), Some((client, 7)));
        assert_eq!(queue.take_refused(), None);
    }

    #[test]
    fn who_is_gone_is_forgotten_once_nothing_of_it_waits() {
        let mut queue = MessageQueue::default();
        let (one, other) = (ClientId(1), ClientId(2));
        assert!(queue.offer(LIMITS, one, 0, &[2]).is_ok());
        assert!(queue.offer(LIMITS, other, 0, &[0; 33]).is_err());
        queue.forget(one);
        queue.forget(other);
        assert_eq!(queue.take(1).map(|message| message.number), Some(1));
        assert!(queue.by_client.is_empty() && queue.take_refused().is_none());
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
