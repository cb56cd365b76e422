//! The mailbox of a shard: the receiver and the server's tick write to it, and the shard's thread takes everything at once.
//!
//! The two sides swap whole buffers under a lock, so the lock is held for a copy of a few datagrams at most, and never during a system
//! call.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::FixedState;
use indexmap::IndexSet;
use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{Channel, ClientId};

use crate::handshake::AcceptedClient;

/// A request of the server for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutboundKind {
    /// Send a packet.
    Packet(Channel),
    /// Close the connection after everything before was sent.
    Close(CloseReason),
}

/// Items, and the bytes of all of them in one buffer.
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

    /// The items, and the ranges of their bytes.
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

/// Packets of the server, and requests to close.
pub(super) type Outbound = PackedItems<(ClientId, OutboundKind)>;

/// Work that waits for a shard.
#[derive(Debug, Default)]
pub(super) struct ShardWork {
    /// New connections.
    pub accepted: Vec<(ClientId, Box<AcceptedClient>)>,
    /// Connections that end, because their client has a new one.
    pub replaced: Vec<ClientId>,
    /// Datagrams of clients, with their source addresses.
    pub inbound: PackedItems<(ClientId, SocketAddr)>,
    /// Packets to clients.
    pub outbound: Outbound,
    /// Clients whose packets did not fit.
    pub slow_consumers: IndexSet<ClientId, FixedState>,
    /// All connections have to be closed.
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

    /// Removes everything except `is_stopping`.
    pub fn clear(&mut self) {
        self.accepted.clear();
        self.replaced.clear();
        self.inbound.clear();
        self.outbound.clear();
        self.slow_consumers.clear();
    }

    /// Takes packets of the server while there is room. Returns the number dropped.
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

/// The shared side of a mailbox.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    state: Mutex<MailboxState>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct MailboxState {
    work: ShardWork,
    /// The thread sleeps until there is work.
    is_asleep: bool,
}

impl Mailbox {
    /// Adds work, and wakes the thread if it sleeps.
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

    /// Adds work without waking the thread; [`wake_if_filled`](Self::wake_if_filled) then wakes it once for many additions.
    pub fn update_quietly<R>(&self, put: impl FnOnce(&mut ShardWork) -> R) -> R {
        put(&mut self.lock().work)
    }

    /// Wakes the thread if it sleeps and there is work.
    pub fn wake_if_filled(&self) {
        let mut state = self.lock();
        if !state.is_asleep || state.work.is_empty() {
            return;
        }
        state.is_asleep = false;
        drop(state);
        self.filled.notify_one();
    }

    /// Swaps the work with `empty`. Sleeps until there is some, at most for `patience`.
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
        // It would fit, but would follow a gap.
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
