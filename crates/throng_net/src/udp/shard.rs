//! A shard: the thread that owns the connections of its clients, and encrypts and sends their packets.
//!
//! Each round handles new and ended connections, received datagrams, the server's packets, then connections with a pending timer; at the
//! end it sends everything that was encrypted. A client for which the tick had packets is flushed once for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use throng_core::clock::unix_ms;
use throng_protocol::wire::{ClientId, CloseReason};

use super::handler::SharedIntake;
use super::mailbox::{OutboundKind, PackedItems, ShardWork};
use super::settings::UdpCounters;
use super::shared::{ShardStats, UdpShared};
use crate::connection::{DatagramResult, ServerConnection};
use crate::connection_stats::CONNECTION_STATS_US;
use crate::handshake::ClientReturns;
use crate::inbox::DisconnectReason;

/// Time between two checks of all connections, while there are any.
const POLL_US: u64 = 10_000;

/// A pause of this length between two checks means that the machine was stalled, not the clients. Then no connection times out for the same
/// time again, so that datagrams in the socket buffer are received first.
const STALL_US: u64 = 500_000;

/// How long a shard without clients sleeps.
const IDLE: Duration = Duration::from_millis(200);

/// The counter for an ended connection.
type CounterOf = fn(&UdpCounters) -> &AtomicU64;

/// The thread.
pub(super) struct ShardWorker {
    nth: usize,
    shared: Arc<UdpShared>,
    transport: SharedIntake,
    returns: ClientReturns,
    connections: IndexMap<ClientId, ServerConnection, FixedState>,
    work: ShardWork,
    sending: SendBuffers,
    touched: Vec<ClientId>,
    ended: Vec<(ClientId, DisconnectReason)>,
    polled_us: u64,
    measured_us: u64,
    /// The figures published last, and a spare buffer for the next.
    stats: [ShardStats; 2],
    /// No connection times out before this time.
    grace_until_us: u64,
}

/// Encrypted datagrams, and spare buffers.
#[derive(Default)]
struct SendBuffers {
    datagrams: PackedItems<std::net::SocketAddr>,
    packet: Vec<u8>,
    sealed: Vec<u8>,
}

impl SendBuffers {
    fn flush(&mut self, connection: &mut ServerConnection, now_us: u64) {
        let Self {
            datagrams,
            packet,
            sealed,
        } = self;
        let address = connection.address;
        connection.flush(now_us, (packet, sealed), |sealed| {
            datagrams.push(address, sealed);
        });
    }
}

impl ShardWorker {
    pub fn new(
        nth: usize,
        shared: Arc<UdpShared>,
        transport: SharedIntake,
        returns: ClientReturns,
    ) -> Self {
        Self {
            nth,
            shared,
            transport,
            returns,
            connections: IndexMap::default(),
            work: ShardWork::default(),
            sending: SendBuffers::default(),
            touched: Vec::new(),
            ended: Vec::new(),
            polled_us: 0,
            measured_us: 0,
            stats: Default::default(),
            grace_until_us: 0,
        }
    }

    /// Runs until it has to stop and no connection is left.
    pub fn run(mut self) {
        let shared = self.shared.clone();
        loop {
            let patience = if self.connections.is_empty() {
                IDLE
            } else {
                let until_us = (self.polled_us + POLL_US).saturating_sub(shared.now_us());
                Duration::from_micros(until_us)
            };
            shared.mailboxes[self.nth].wait(&mut self.work, patience);
            let now_us = shared.now_us();
            self.accept_clients(now_us);
            self.handle_inbound(now_us);
            self.handle_outbound(now_us);
            if now_us >= self.polled_us + POLL_US {
                if now_us - self.polled_us >= STALL_US {
                    self.grace_until_us = now_us + STALL_US;
                }
                self.polled_us = now_us;
                self.poll(now_us);
                if now_us >= self.measured_us + CONNECTION_STATS_US {
                    self.measure(now_us);
                }
            }
            self.send_all();
            self.work.clear();
            if self.work.is_stopping {
                if self.connections.is_empty() {
                    return;
                }
                for connection in self.connections.values_mut() {
                    connection.close_reason.get_or_insert(CloseReason::Stopping);
                    connection.endpoint.close(now_us);
                }
            }
        }
    }

    fn accept_clients(&mut self, now_us: u64) {
        let limits = self.shared.settings.limits();
        for (client, admitted) in self.work.accepted.drain(..) {
            let mut connection = ServerConnection::new(client, *admitted, limits, now_us);
            self.sending.flush(&mut connection, now_us);
            self.connections.insert(client, connection);
            UdpCounters::one(&self.shared.counters.clients);
        }
        // The client now at that address has other keys and could not decrypt a disconnect packet.
        for client in std::mem::take(&mut self.work.replaced) {
            self.end(client, DisconnectReason::Lost, |counters| {
                &counters.replaced
            });
        }
    }

    fn handle_inbound(&mut self, now_us: u64) {
        let mut inbound = std::mem::take(&mut self.work.inbound);
        let counters = &self.shared.counters;
        let mut datagrams = std::mem::take(&mut inbound.bytes);
        for ((client, from), place) in inbound.ranges() {
            let Some(connection) = self.connections.get_mut(&client) else {
                UdpCounters::one(&counters.after_end);
                continue;
            };
            let transport = &self.transport;
            let datagram = (from, &mut datagrams[place]);
            let (before, was_confirmed) = (connection.address, connection.is_confirmed);
            let taken = connection.receive(now_us, datagram, |message| {
                // The handler counts refused messages; there is nothing else to do.
                transport.receive(client, message);
            });
            if connection.is_confirmed && !was_confirmed {
                self.returns.confirm_connection(connection.token);
            }
            UdpCounters::one(match taken {
                DatagramResult::Refused | DatagramResult::Ended(DisconnectReason::Lost) => {
                    &counters.refused
                }
                _ => &counters.client_datagrams,
            });
            match taken {
                DatagramResult::Refused => {}
                DatagramResult::Accepted if from == before => {}
                DatagramResult::Accepted => {
                    let sealed = &mut self.sending.sealed;
                    if connection.challenge(from, sealed) {
                        self.sending.datagrams.push(from, sealed);
                    }
                }
                DatagramResult::Moved => {
                    UdpCounters::one(&counters.moved);
                    self.shared.notify_moved(before, from, client);
                    // Sends the keep-alive packet at once.
                    self.sending.flush(connection, now_us);
                }
                DatagramResult::Ended(reason) => self.ended.push((client, reason)),
            }
        }
        inbound.bytes = datagrams;
        self.work.inbound = inbound;
        self.end_connections(|counters| &counters.left);
    }

    fn handle_outbound(&mut self, now_us: u64) {
        let outbound = std::mem::take(&mut self.work.outbound);
        let mut behind = std::mem::take(&mut self.work.slow_consumers);
        for ((client, kind), place) in outbound.ranges() {
            let Some(connection) = self.connections.get_mut(&client) else {
                continue;
            };
            match kind {
                OutboundKind::Packet(channel) => {
                    let was_touched = connection.endpoint.is_touched;
                    if !connection.endpoint.push(channel, &outbound.bytes[place]) {
                        behind.insert(client);
                    }
                    if connection.endpoint.is_touched && !was_touched {
                        self.touched.push(client);
                    }
                }
                OutboundKind::Close(reason) => {
                    connection.close_reason.get_or_insert(reason);
                    // It cannot return while its last packets are sent.
                    let closed = DisconnectReason::Closed;
                    self.returns
                        .end_connection(connection.token, closed, unix_ms() / 1_000);
                    connection.endpoint.close(now_us);
                }
            }
        }
        for client in self.touched.drain(..) {
            if let Some(connection) = self.connections.get_mut(&client) {
                self.sending.flush(connection, now_us);
            }
        }
        for client in behind.drain(..) {
            if let Some(connection) = self.connections.get_mut(&client) {
                connection.close_reason = Some(CloseReason::SlowConsumer);
            }
            self.end(client, DisconnectReason::Lost, |counters| {
                &counters.slow_consumers
            });
        }
        self.work.outbound = outbound;
        self.work.slow_consumers = behind;
    }

    /// Publishes the figures of all connections.
    fn measure(&mut self, now_us: u64) {
        let elapsed_us = now_us - std::mem::replace(&mut self.measured_us, now_us);
        let [last, next] = &mut self.stats;
        next.clear();
        next.extend(self.connections.iter().map(|(&client, connection)| {
            let endpoint = &connection.endpoint;
            let measured = (
                endpoint.round_trip_us(),
                endpoint.stats().bytes_sent,
                endpoint.loss(),
            );
            let before = last.get(&client).copied().unwrap_or_default();
            (client, before.next(elapsed_us, measured))
        }));
        last.clone_from(next);
        self.shared.swap_stats(self.nth, next);
    }

    /// Flushes the connections that were not flushed for a while, and ends those that are over.
    fn poll(&mut self, now_us: u64) {
        let flush_us = self.shared.settings.flush_us;
        let mut over = std::mem::take(&mut self.ended);
        for (&client, connection) in &mut self.connections {
            let end = connection.endpoint.end_reason(now_us);
            let is_spared = |reason: &DisconnectReason| {
                *reason == DisconnectReason::Lost && now_us < self.grace_until_us
            };
            if let Some(reason) = end.filter(|reason| !is_spared(reason)) {
                over.push((client, reason));
            } else if now_us.saturating_sub(connection.endpoint.flushed_us) >= flush_us {
                self.sending.flush(connection, now_us);
            }
        }
        self.ended = over;
        self.end_connections(|counters| &counters.closed);
    }

    /// Ends the connections that are over. Those that were not lost count as `not_lost`.
    fn end_connections(&mut self, not_lost: CounterOf) {
        let mut over = std::mem::take(&mut self.ended);
        for (client, reason) in over.drain(..) {
            match reason {
                DisconnectReason::Closed | DisconnectReason::Moved => {
                    self.end(client, reason, not_lost);
                }
                DisconnectReason::Lost => self.end(client, reason, |counters| &counters.lost),
            }
        }
        self.ended = over;
    }

    /// Ends a connection and notifies both sides. Does nothing if it has ended already.
    fn end(&mut self, client: ClientId, reason: DisconnectReason, counter: CounterOf) {
        let Some(mut connection) = self.connections.swap_remove(&client) else {
            return;
        };
        let (address, stats) = (connection.address, *connection.endpoint.stats());
        let SendBuffers {
            datagrams, sealed, ..
        } = &mut self.sending;
        let why = connection.close_reason.unwrap_or(match reason {
            DisconnectReason::Closed | DisconnectReason::Moved => CloseReason::Ended,
            DisconnectReason::Lost => CloseReason::Lost,
        });
        connection.send_disconnect(why, sealed, |sealed| datagrams.push(address, sealed));
        let counters = &self.shared.counters;
        UdpCounters::one(counter(counters));
        counters.clients.fetch_sub(1, Ordering::Relaxed);
        UdpCounters::add(&counters.packets_lost, stats.packets_lost);
        UdpCounters::add(&counters.packets_sent, stats.packets_sent);
        self.transport.disconnect(client, reason);
        self.returns
            .end_connection(connection.token, reason, unix_ms() / 1_000);
        self.shared.notify_gone(address, client);
    }

    fn send_all(&mut self) {
        let datagrams = &mut self.sending.datagrams;
        let sealed = datagrams.ranges();
        self.shared
            .send_all(sealed.map(|(to, place)| (to, &datagrams.bytes[place])));
        datagrams.clear();
    }
}
