//! State that the threads of a socket share.

use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foldhash::fast::FixedState;
use throng_core::clock::Stopwatch;
use throng_protocol::wire::ClientId;

use super::batch::send_all;
use super::mailbox::Mailbox;
use super::settings::{UdpCounters, UdpSettings};
use crate::connection_stats::ConnectionStats;

/// The connected clients.
pub(super) type ConnectedClients = HashSet<ClientId, FixedState>;

/// The figures of a shard's connections.
pub(super) type ShardStats = HashMap<ClientId, ConnectionStats, FixedState>;

/// A change that a shard reports to the receiver.
#[derive(Clone, Copy, Debug)]
pub(super) enum RouteChange {
    /// The connection of a client at this address has ended.
    Gone(SocketAddr, ClientId),
    /// A client has moved from the first address to the second.
    Moved(SocketAddr, SocketAddr, ClientId),
}

/// State that all threads of a socket share.
#[derive(Debug)]
pub(super) struct UdpShared {
    pub socket: UdpSocket,
    pub settings: UdpSettings,
    pub counters: UdpCounters,
    pub mailboxes: Vec<Mailbox>,
    /// The receiver has to stop.
    pub is_stopping: AtomicBool,
    clock: Stopwatch,
    clients: RwLock<ConnectedClients>,
    /// By shard.
    connection_stats: Vec<Mutex<ShardStats>>,
    route_changes: Mutex<Vec<RouteChange>>,
    route_changes_len: AtomicU32,
}

impl UdpShared {
    pub fn new(socket: UdpSocket, settings: UdpSettings) -> Self {
        let shards = settings.shards.clamp(1, 64);
        Self {
            socket,
            settings,
            counters: UdpCounters::default(),
            mailboxes: (0..shards).map(|_| Mailbox::default()).collect(),
            is_stopping: AtomicBool::new(false),
            clock: Stopwatch::start(),
            clients: RwLock::default(),
            connection_stats: (0..shards).map(|_| Mutex::default()).collect(),
            route_changes: Mutex::default(),
            route_changes_len: AtomicU32::new(0),
        }
    }

    /// Microseconds since the socket was opened.
    pub fn now_us(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The shard of a client.
    pub fn shard_of(&self, client: ClientId) -> usize {
        client.0 as usize % self.mailboxes.len()
    }

    pub fn mailbox_of(&self, client: ClientId) -> &Mailbox {
        &self.mailboxes[self.shard_of(client)]
    }

    /// Sends a datagram and counts it.
    pub fn send(&self, datagram: &[u8], to: SocketAddr) {
        self.send_all(std::iter::once((to, datagram)));
    }

    /// Sends datagrams and counts them.
    pub fn send_all<'a>(&self, datagrams: impl Iterator<Item = (SocketAddr, &'a [u8])>) {
        let counters = &self.counters;
        send_all(&self.socket, datagrams, |to, datagram, sent| match sent {
            Ok(()) => {
                UdpCounters::one(&counters.datagrams_out);
                UdpCounters::add(&counters.bytes_out, datagram.len() as u64);
            }
            Err(error) => {
                tracing::debug!(%error, address = %to, "sending a datagram failed");
                UdpCounters::one(&counters.send_errors);
            }
        });
    }

    /// The connected clients. While the lock is held, a client is either listed, with its connection sent to the shard, or not listed.
    pub fn clients(&self) -> RwLockReadGuard<'_, ConnectedClients> {
        self.clients.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn clients_mut(&self) -> RwLockWriteGuard<'_, ConnectedClients> {
        self.clients.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest figures of a shard's connections. Locked only for a lookup or a swap.
    fn shard_stats(&self, shard: usize) -> MutexGuard<'_, ShardStats> {
        let stats = self.connection_stats[shard].lock();
        stats.unwrap_or_else(PoisonError::into_inner)
    }

    /// The figures of a client's connection; `None` before the first measurement, and after its end.
    pub fn connection_stats(&self, client: ClientId) -> Option<ConnectionStats> {
        let stats = self.shard_stats(self.shard_of(client));
        stats.get(&client).copied()
    }

    /// Publishes the figures of a shard's connections; `stats` receives the previous ones.
    pub fn swap_stats(&self, shard: usize, stats: &mut ShardStats) {
        std::mem::swap(&mut *self.shard_stats(shard), stats);
    }

    /// Reports an ended connection to the receiver.
    pub fn notify_gone(&self, address: SocketAddr, client: ClientId) {
        self.clients_mut().remove(&client);
        self.push_change(RouteChange::Gone(address, client));
    }

    /// Reports a new address of a client to the receiver.
    pub fn notify_moved(&self, from: SocketAddr, to: SocketAddr, client: ClientId) {
        self.push_change(RouteChange::Moved(from, to, client));
    }

    fn push_change(&self, what: RouteChange) {
        let mut news = self.route_changes();
        news.push(what);
        self.route_changes_len
            .store(news.len() as u32, Ordering::Release);
    }

    /// Takes the changes reported since the last call.
    pub fn take_route_changes(&self, into: &mut Vec<RouteChange>) {
        if self.route_changes_len.load(Ordering::Acquire) > 0 {
            let mut news = self.route_changes();
            std::mem::swap(&mut *news, into);
            self.route_changes_len.store(0, Ordering::Release);
        }
    }

    fn route_changes(&self) -> MutexGuard<'_, Vec<RouteChange>> {
        self.route_changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
