//! One end of the bus: it numbers and authenticates what it sends, and checks what it receives.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::task::Waker;

use thiserror::Error;

use super::frame::{BusRefusal, ClusterKey, FrameHeader, MESSAGE_BYTES_MAX, open, seal};
use super::{BusFull, BusPeer, BusSignal, BusTransport};

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BusSendError {
    /// The queue is full. The receiver will notice the gap.
    #[error("bus message to {0} dropped: the queue is full")]
    Full(BusPeer),
    /// The message is too long.
    #[error("bus message of {found} bytes is too long: expected at most {MESSAGE_BYTES_MAX}")]
    TooLong {
        /// Its length in bytes.
        found: usize,
    },
}

/// An event at an end of the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusEvent {
    /// A message.
    Message {
        /// Its sender.
        from: BusPeer,
        /// The run of the sender.
        run: u64,
        /// Its contents.
        bytes: Vec<u8>,
    },
    /// Messages of a sender are missing: read the rows that they may have been about. The next event is a message of that sender.
    Gap {
        /// The sender.
        from: BusPeer,
        /// The number of missing messages.
        missing: u64,
    },
    /// Bytes that are not a message for this receiver.
    Refused(BusRefusal),
    /// The bus is connected. Messages that were sent before may be missing.
    Connected,
    /// The bus is not connected.
    Disconnected,
    /// An echo of this peer has returned.
    Echo {
        /// Its number.
        number: u64,
    },
    /// The reply to a probe: the peer is not connected to the bus. It is not authenticated.
    Unreachable {
        /// The peer.
        peer: BusPeer,
        /// The number of the probe.
        number: u64,
    },
    /// This receiver is too slow: messages were dropped.
    Slow {
        /// Their number.
        dropped: u64,
    },
}

/// Counters of an end of the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusStats {
    /// Messages given to the transport.
    pub sent: u64,
    /// Messages not sent because the queue was full.
    pub not_sent: u64,
    /// Messages received.
    pub received: u64,
    /// Messages that never arrived: gaps in the sequence numbers.
    pub missing: u64,
    /// Messages dropped here because they were not taken in time.
    pub dropped: u64,
    /// Messages of another version.
    pub other_versions: u64,
    /// Messages with a wrong authenticator.
    pub forged: u64,
    /// Messages refused for other reasons.
    pub refused: u64,
    /// Lost connections.
    pub disconnects: u64,
}

/// The sequence numbers of the newest messages of a sender: to this peer, and to all.
#[derive(Clone, Copy, Debug)]
struct NewestMessage {
    run: u64,
    own: u64,
    /// 0 before the first, which is never reported as a gap: messages to all that were sent before this receiver started are not missing.
    to_all: u64,
}

/// One end of the bus. It has neither clock nor socket.
pub struct MessageBus {
    transport: Box<dyn BusTransport>,
    key: ClusterKey,
    own: BusPeer,
    run: u64,
    sent: BTreeMap<BusPeer, u64>,
    received: BTreeMap<BusPeer, NewestMessage>,
    events: VecDeque<BusEvent>,
    stats: BusStats,
}

impl std::fmt::Debug for MessageBus {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("MessageBus")
            .field("own", &self.own)
            .field("run", &self.run)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl MessageBus {
    /// The end of a peer. `run` has to be higher than that of each earlier process of the peer. A node uses its first
    /// [`NodeRun::run`](crate::NodeRun::run), a gateway for example the time of its start.
    #[must_use]
    pub fn new(transport: Box<dyn BusTransport>, key: ClusterKey, own: BusPeer, run: u64) -> Self {
        Self {
            transport,
            key,
            own,
            run,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            events: VecDeque::new(),
            stats: BusStats::default(),
        }
    }

    /// The peer at this end.
    #[must_use]
    pub const fn own(&self) -> BusPeer {
        self.own
    }

    /// Its counters.
    #[must_use]
    pub const fn stats(&self) -> BusStats {
        self.stats
    }

    /// Sets the task or thread to wake when something has arrived.
    pub fn set_waker(&mut self, waker: Waker) {
        self.transport.set_waker(waker);
    }

    /// Sends a message to a peer, or to [`BusPeer::All`] except this one. Success does not mean that it arrives. O(bytes).
    ///
    /// # Errors
    /// [`BusSendError`]; nothing was sent.
    pub fn send(&mut self, to: BusPeer, message: &[u8]) -> Result<(), BusSendError> {
        if message.len() > MESSAGE_BYTES_MAX {
            let found = message.len();
            return Err(BusSendError::TooLong { found });
        }
        let sequence = self.sent.entry(to).or_insert(0);
        // Count a message that is not sent, too, so that the receiver notices the gap.
        *sequence += 1;
        let header = FrameHeader {
            from: self.own,
            run: self.run,
            to,
            sequence: *sequence,
        };
        let sent = self.transport.publish(to, seal(&self.key, header, message));
        match sent {
            Ok(()) => {
                self.stats.sent += 1;
                Ok(())
            }
            Err(BusFull) => {
                self.stats.not_sent += 1;
                Err(BusSendError::Full(to))
            }
        }
    }

    /// Sends an echo: a message to this peer itself. When it arrives, it is a [`BusEvent::Echo`].
    ///
    /// # Errors
    /// [`BusSendError::Full`]; nothing was sent.
    pub fn send_echo(&mut self, number: u64) -> Result<(), BusSendError> {
        self.send(self.own, &number.to_le_bytes())
    }

    /// Asks the bus whether a peer is connected. If it is not, a [`BusEvent::Unreachable`] arrives with this number; if it is, nothing. Both
    /// may be lost.
    pub fn probe(&mut self, peer: BusPeer, number: u64) {
        self.transport.probe(peer, number);
    }

    /// The next event, if there is one. O(bytes).
    pub fn receive(&mut self) -> Option<BusEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        match self.transport.receive()? {
            BusSignal::Message(bytes) => self.check(&bytes),
            BusSignal::Connected => self.events.push_back(BusEvent::Connected),
            BusSignal::Disconnected => {
                self.stats.disconnects += 1;
                self.events.push_back(BusEvent::Disconnected);
            }
            BusSignal::Unreachable(peer, number) => {
                let event = BusEvent::Unreachable { peer, number };
                self.events.push_back(event);
            }
            BusSignal::Dropped(dropped) => {
                self.stats.dropped += dropped;
                self.events.push_back(BusEvent::Slow { dropped });
            }
        }
        self.events.pop_front()
    }

    /// Checks received bytes, and queues the events.
    fn check(&mut self, bytes: &[u8]) {
        let opened = open(&self.key, bytes);
        if let Ok((header, bytes)) = opened
            && (header.from, header.run) == (self.own, self.run)
        {
            // What this peer has sent to all, including itself, is skipped.
            if header.to == self.own
                && let Ok(number) = bytes.try_into()
            {
                let number = u64::from_le_bytes(number);
                self.events.push_back(BusEvent::Echo { number });
            }
            return;
        }
        let checked =
            opened.and_then(|(header, message)| Ok((self.follow(header)?, header, message)));
        match checked {
            Ok((missing, FrameHeader { from, run, .. }, message)) => {
                self.stats.received += 1;
                if missing > 0 {
                    self.stats.missing += missing;
                    self.events.push_back(BusEvent::Gap { from, missing });
                }
                let bytes = message.to_vec();
                self.events
                    .push_back(BusEvent::Message { from, run, bytes });
            }
            Err(refusal) => {
                let counter = match refusal {
                    BusRefusal::Version { .. } => &mut self.stats.other_versions,
                    BusRefusal::Forged => &mut self.stats.forged,
                    _ => &mut self.stats.refused,
                };
                *counter += 1;
                self.events.push_back(BusEvent::Refused(refusal));
            }
        }
    }

    /// Checks the order of an authentic message. Returns the number of missing messages before it.
    fn follow(&mut self, header: FrameHeader) -> Result<u64, BusRefusal> {
        let FrameHeader {
            from,
            run,
            to,
            sequence,
        } = header;
        if to != self.own && to != BusPeer::All {
            return Err(BusRefusal::WrongReceiver(to));
        }
        let new = NewestMessage {
            run,
            own: 0,
            to_all: 0,
        };
        let newest = self.received.entry(from).or_insert(new);
        if run < newest.run {
            return Err(BusRefusal::FormerRun(from));
        }
        if run > newest.run {
            *newest = new;
        }
        let is_to_all = to == BusPeer::All;
        let last = if is_to_all {
            &mut newest.to_all
        } else {
            &mut newest.own
        };
        if sequence <= *last {
            return Err(BusRefusal::Late(from));
        }
        let missing = sequence - *last - 1;
        let is_first_to_all = is_to_all && *last == 0;
        *last = sequence;
        Ok(if is_first_to_all { 0 } else { missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::LocalBus;
    use crate::ids::ClusterNodeId;

    const A: BusPeer = BusPeer::Node(ClusterNodeId(1));
    const B: BusPeer = BusPeer::Node(ClusterNodeId(2));

    fn end_with(bus: &LocalBus, own: BusPeer, run: u64, key: u8) -> MessageBus {
        let transport = Box::new(bus.join(own));
        let mut end = MessageBus::new(transport, ClusterKey::new(&[key; 32]), own, run);
        assert_eq!(end.receive(), Some(BusEvent::Connected));
        end
    }

    fn all(end: &mut MessageBus) -> Vec<BusEvent> {
        std::iter::from_fn(|| end.receive()).collect()
    }

    fn message(run: u64, byte: u8) -> BusEvent {
        BusEvent::Message {
            from: A,
            run,
            bytes: vec![byte],
        }
    }

    /// A transport that keeps what is published.
    #[derive(Default)]
    struct Tap(std::sync::Arc<std::sync::Mutex<Vec<Vec<u8>>>>);

    impl BusTransport for Tap {
        fn publish(&mut self, _: BusPeer, bytes: Vec<u8>) -> Result<(), BusFull> {
            self.0.lock().unwrap().push(bytes);
            Ok(())
        }

        fn probe(&mut self, _: BusPeer, _: u64) {}

        fn receive(&mut self) -> Option<BusSignal> {
            None
        }

        fn set_waker(&mut self, _: Waker) {}
    }

    /// What the peer A publishes for B in a run.
    fn published(run: u64, count: u8) -> Vec<Vec<u8>> {
        let tap = Tap::default();
        let bytes = tap.0.clone();
        let mut end = MessageBus::new(Box::new(tap), ClusterKey::new(&[7; 32]), A, run);
        (0..count).for_each(|nth| end.send(B, &[nth]).unwrap());
        std::mem::take(&mut bytes.lock().unwrap())
    }

    #[test]
    fn lost_repeated_and_late_messages_are_noticed() {
        let bus = LocalBus::default();
        let mut other = bus.join(A);
        let mut end = end_with(&bus, B, 1, 7);
        let sent = published(5, 6);
        for nth in [0, 2, 1, 2, 5] {
            other.publish(B, sent[nth].clone()).unwrap();
        }
        let expected = [
            message(5, 0),
            BusEvent::Gap {
                from: A,
                missing: 1,
            },
            message(5, 2),
            BusEvent::Refused(BusRefusal::Late(A)),
            BusEvent::Refused(BusRefusal::Late(A)),
            BusEvent::Gap {
                from: A,
                missing: 2,
            },
            message(5, 5),
        ];
        assert_eq!(all(&mut end), expected);
        let stats = end.stats();
        assert_eq!((stats.received, stats.missing, stats.refused), (3, 3, 2));
    }

    #[test]
    fn restarted_sender_begins_again_and_its_former_run_ends() {
        let bus = LocalBus::default();
        let mut other = bus.join(A);
        let mut end = end_with(&bus, B, 1, 7);
        let (former, next) = (published(5, 3), published(6, 2));
        for bytes in [&former[0], &next[0], &former[1], &next[1]] {
            other.publish(B, bytes.clone()).unwrap();
        }
        let expected = [
            message(5, 0),
            message(6, 0),
            BusEvent::Refused(BusRefusal::FormerRun(A)),
            message(6, 1),
        ];
        assert_eq!(all(&mut end), expected);
        // A receiver that has restarted does not know what it has missed.
        let mut restarted = end_with(&bus, B, 2, 7);
        other.publish(B, next[1].clone()).unwrap();
        let gap = BusEvent::Gap {
            from: A,
            missing: 1,
        };
        assert_eq!(all(&mut restarted), [gap, message(6, 1)]);
    }

    #[test]
    fn foreign_and_forged_messages_are_refused_and_counted() {
        let bus = LocalBus::default();
        let mut end = end_with(&bus, B, 1, 7);
        let mut stranger = end_with(&bus, A, 5, 8);
        stranger.send(B, b"forged").unwrap();
        let mut bytes = published(5, 1).remove(0);
        let mut other = bus.join(A);
        bytes[4] = 9;
        other.publish(B, bytes).unwrap();
        other.publish(B, b"hello".to_vec()).unwrap();
        let c = BusPeer::Node(ClusterNodeId(3));
        let mut third = end_with(&bus, c, 1, 7);
        other.publish(c, published(5, 1).remove(0)).unwrap();
        let refused = [
            BusRefusal::Forged,
            BusRefusal::Version { found: 9 },
            BusRefusal::Malformed(5),
        ];
        assert_eq!(all(&mut end), refused.map(BusEvent::Refused));
        let expected = BusEvent::Refused(BusRefusal::WrongReceiver(B));
        assert_eq!(all(&mut third), [expected]);
        let stats = end.stats();
        let counted = (
            stats.forged,
            stats.other_versions,
            stats.refused,
            stats.received,
        );
        assert_eq!(counted, (1, 1, 1, 0));
        // None of them counts as a message of A.
        other.publish(B, published(5, 1).remove(0)).unwrap();
        assert_eq!(all(&mut end), [message(5, 0)]);
    }

    #[test]
    fn message_to_all_reaches_each_other_peer_once_and_in_order() {
        let bus = LocalBus::default();
        let mut sender = end_with(&bus, A, 5, 7);
        sender.send(BusPeer::All, &[0]).unwrap();
        let mut others = [1, 2, 3].map(|node| {
            let own = BusPeer::Gateway(crate::ids::GatewayId(node));
            end_with(&bus, own, 1, 7)
        });
        sender.send(BusPeer::All, &[1]).unwrap();
        // Messages to one peer are numbered on their own.
        sender.send(others[0].own(), &[2]).unwrap();
        sender.send(BusPeer::All, &[3]).unwrap();
        let expected = [vec![1, 2, 3], vec![1, 3], vec![1, 3]];
        for (end, bytes) in others.iter_mut().zip(expected) {
            let received: Vec<BusEvent> = bytes.into_iter().map(|byte| message(5, byte)).collect();
            assert_eq!(all(end), received);
        }
        assert_eq!(all(&mut sender), []);
        // What is recorded and sent again is refused, and what is missing is noticed.
        let tap = Tap::default();
        let recorded = tap.0.clone();
        let key = ClusterKey::new(&[7; 32]);
        let mut restarted = MessageBus::new(Box::new(tap), key, A, 6);
        for byte in [4, 5, 6] {
            restarted.send(BusPeer::All, &[byte]).unwrap();
        }
        let recorded = std::mem::take(&mut *recorded.lock().unwrap());
        let mut other = bus.join(BusPeer::Node(ClusterNodeId(9)));
        for nth in [0, 2, 2, 1] {
            other.publish(B, recorded[nth].clone()).unwrap();
            other.publish(BusPeer::All, recorded[nth].clone()).unwrap();
        }
        let gap = BusEvent::Gap {
            from: A,
            missing: 1,
        };
        let late = BusEvent::Refused(BusRefusal::Late(A));
        let expected = [message(6, 4), gap, message(6, 6), late.clone(), late];
        assert_eq!(all(&mut others[1]), expected);
    }

    #[test]
    fn own_message_to_all_is_skipped_unless_of_a_newer_process() {
        let bus = LocalBus::default();
        let mut older = end_with(&bus, A, 5, 7);
        let mut newer = end_with(&bus, A, 6, 7);
        let mut echo = bus.join(B);
        let tap = Tap::default();
        let recorded = tap.0.clone();
        let key = ClusterKey::new(&[7; 32]);
        let mut end = MessageBus::new(Box::new(tap), key, A, 5);
        end.send(BusPeer::All, &[1]).unwrap();
        let own = recorded.lock().unwrap().remove(0);
        echo.publish(BusPeer::All, own).unwrap();
        assert_eq!(all(&mut older), []);
        assert_eq!(all(&mut newer), [message(5, 1)]);
        newer.send(BusPeer::All, &[2]).unwrap();
        assert_eq!(all(&mut older), [message(6, 2)]);
        assert_eq!(older.stats().refused, 0);
    }

    #[test]
    fn slow_receiver_learns_what_it_lost_and_blocks_nobody() {
        let bus = LocalBus::default();
        let mut slow = end_with(&bus, B, 1, 7);
        let mut end = end_with(&bus, A, 5, 7);
        let fits = super::super::inbox::WAITING_MESSAGES_MAX as u64;
        (0..fits + 10).for_each(|_| end.send(B, &[1]).unwrap());
        let first = slow.receive();
        assert_eq!(first, Some(BusEvent::Slow { dropped: 10 }));
        assert_eq!(all(&mut slow).len() as u64, fits);
        end.send(B, &[1]).unwrap();
        let gap = BusEvent::Gap {
            from: A,
            missing: 10,
        };
        assert_eq!(all(&mut slow), [gap, message(5, 1)]);
        let too_long = end.send(B, &vec![0; MESSAGE_BYTES_MAX + 1]);
        let found = MESSAGE_BYTES_MAX + 1;
        assert_eq!(too_long, Err(BusSendError::TooLong { found }));
    }
}
