//! What waits for a shard: written by the receiver and by the server's tick, taken by the shard's thread, all of it at once.
//!
//! The two sides swap whole buffers under a lock, which is so held for a copy of a few datagrams at most and never over a system call.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::FixedState;
use indexmap::IndexSet;
use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{Channel, ClientId};

use crate::handshake::AcceptedClient;

/// What a server wants of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutboundKind {
    /// That a packet is sent.
    Packet(Channel),
    /// That it ends, once everything before is through.
    Close(CloseReason),
}

/// Items, and the bytes of all of them in one piece.
#[derive(Debug)]
pub(super) struct PackedItems<T> {
    pub bytes: Vec<u8>,
    items: Vec<(T, usize)>,
}

impl<T> Default for PackedItems<T> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            items: Vec::new(),
        }
    }
}

impl<T: Copy> PackedItems<T> {
    pub fn push(&mut self, item: T, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.items.push((item, self.bytes.len()));
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items, and where their bytes lie.
    pub fn ranges(&self) -> impl Iterator<Item = (T, Range<usize>)> {
        let mut start = 0;
        self.items.iter().map(move |&(item, end)| {
            let place = start..end;
            start = end;
            (item, place)
        })
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }
}

/// Packets of a server, and who is closed.
pub(super) type Outbound = PackedItems<(ClientId, OutboundKind)>;

/// What waits for a shard.
#[derive(Debug, Default)]
pub(super) struct ShardWork {
    /// Connections that begin.
    pub accepted: Vec<(ClientId, Box<AcceptedClient>)>,
    /// Connections that are over, since their client has another one.
    pub replaced: Vec<ClientId>,
    /// Datagrams of clients, and where they came from.
    pub inbound: PackedItems<(ClientId, SocketAddr)>,
    /// Packets for them.
    pub outbound: Outbound,
    /// Clients for whom there was no room.
    pub slow_consumers: IndexSet<ClientId, FixedState>,
    /// All connections are to be closed.
    pub is_stopping: bool,
}

impl ShardWork {
    fn is_empty(&self) -> bool {
        self.accepted.is_empty()
            && self.replaced.is_empty()
            && self.inbound.is_empty()
            && self.outbound.is_empty()
            && self.slow_consumers.is_empty()
    }

    /// Forgets everything but that it is to stop.
    pub fn clear(&mut self) {
        self.accepted.clear();
        self.replaced.clear();
        self.inbound.clear();
        self.outbound.clear();
        self.slow_consumers.clear();
    }

    /// Takes packets of the server, as far as there is room; gives how many were dropped.
    pub fn move_outbound(&mut self, packets: &mut Outbound, bytes_max: usize) -> u64 {
        if self.outbound.is_empty() && packets.bytes.len() <= bytes_max {
            std::mem::swap(&mut self.outbound, packets);
            return 0;
        }
        let mut dropped = 0;
        for ((client, kind), place) in packets.ranges() {
            // Nothing may follow a dropped reliable packet: the client would see a gap.
            if self.slow_consumers.contains(&client) {
                dropped += 1;
                continue;
            }
            let bytes = &packets.bytes[place];
            let fits = self.outbound.bytes.len() + bytes.len() <= bytes_max;
            match kind {
                _ if fits => self.outbound.push((client, kind), bytes),
                OutboundKind::Packet(Channel::Reliable) => {
                    dropped += 1;
                    self.slow_consumers.insert(client);
                }
                OutboundKind::Packet(Channel::Unreliable) => dropped += 1,
                OutboundKind::Close(_) => self.outbound.push((client, kind), &[]),
            }
        }
        packets.clear();
        dropped
    }
}

/// Where it waits.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    state: Mutex<MailboxState>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct MailboxState {
    work: ShardWork,
    /// The thread sleeps until something comes.
    is_asleep: bool,
}

impl Mailbox {
    /// Puts something in, and wakes the thread if it sleeps.
    pub fn update<R>(&self, put: impl FnOnce(&mut ShardWork) -> R) -> R {
        let mut state = self.lock();
        let result = put(&mut state.work);
        let is_asleep = std::mem::take(&mut state.is_asleep);
        drop(state);
        if is_asleep {
            self.filled.notify_one();
        }
        result
    }

    /// Puts something in, of which the thread hears by [`wake_if_filled`](Self::wake_if_filled): so it is woken once for many.
    pub fn update_quietly<R>(&self, put: impl FnOnce(&mut ShardWork) -> R) -> R {
        put(&mut self.lock().work)
    }

    /// Wakes the thread if it sleeps and something is there.
    pub fn wake_if_filled(&self) {
        let mut state = self.lock();
        if !state.is_asleep || state.work.is_empty() {
            return;
        }
        state.is_asleep = false;
        drop(state);
        self.filled.notify_one();
    }

    /// Swaps what waits with `empty`; sleeps until there is something, but no longer than this.
    pub fn wait(&self, empty: &mut ShardWork, patience: Duration) {
        let mut state = self.lock();
        if state.work.is_empty() && state.work.is_stopping == empty.is_stopping {
            state.is_asleep = true;
            let waited = self.filled.wait_timeout(state, patience);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            state.is_asleep = false;
        }
        let is_stopping = state.work.is_stopping;
        std::mem::swap(&mut state.work, empty);
        state.work.is_stopping = is_stopping;
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_mailbox_drops_unreliable_and_marks_slow_consumers() {
        let mut work = ShardWork::default();
        let mut packets = Outbound::default();
        let reliable = OutboundKind::Packet(Channel::Reliable);
        let close = OutboundKind::Close(CloseReason::Ended);
        packets.push((ClientId(1), reliable), &[1; 60]);
        assert_eq!(work.move_outbound(&mut packets, 100), 0);
        packets.push(
            (ClientId(2), OutboundKind::Packet(Channel::Unreliable)),
            &[2; 60],
        );
        packets.push((ClientId(3), reliable), &[3; 60]);
        // It would fit, but comes behind a gap.
        packets.push((ClientId(3), reliable), &[3; 1]);
        packets.push((ClientId(4), reliable), &[4; 40]);
        packets.push((ClientId(4), close), &[]);
        assert_eq!(work.move_outbound(&mut packets, 100), 3);
        assert_eq!(
            (packets.is_empty(), Vec::from_iter(work.slow_consumers)),
            (true, vec![ClientId(3)])
        );
        let kept: Vec<_> = work
            .outbound
            .ranges()
            .map(|(item, place)| (item, place.len()))
            .collect();
        assert_eq!(
            kept,
            [
                ((ClientId(1), reliable), 60),
                ((ClientId(4), reliable), 40),
                ((ClientId(4), close), 0)
            ]
        );
    }

    #[test]
    fn mailbox_keeps_order_and_the_stop_flag() {
        let mailbox = Mailbox::default();
        let from = SocketAddr::from(([127, 0, 0, 1], 7_000));
        mailbox.update(|work| work.inbound.push((ClientId(1), from), b"first"));
        mailbox.update(|work| work.inbound.push((ClientId(2), from), b"second"));
        let mut work = ShardWork::default();
        mailbox.wait(&mut work, Duration::ZERO);
        let all: Vec<&[u8]> = work
            .inbound
            .ranges()
            .map(|(_, place)| &work.inbound.bytes[place])
            .collect();
        assert_eq!(all, [&b"first"[..], b"second"]);
        mailbox.update(|work| work.is_stopping = true);
        for _ in 0..2 {
            work.clear();
            mailbox.wait(&mut work, Duration::ZERO);
            assert!(work.is_stopping && work.inbound.is_empty());
        }
    }
}
