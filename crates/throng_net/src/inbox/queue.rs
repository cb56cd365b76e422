//! The message queue: one queue per client, served in turn. No ECS.
//!
//! ```text
//! open ─▶ unauthenticated queue ── promote ─▶ player queue ── disconnect ─▶ reported once it is empty ── close ─▶ removed
//!         push: checks length, quota and backlog (a new input may replace the oldest stale one), or refuses
//!         pop: one message of each queue in turn; an unauthenticated one per PLAYERS_PER_UNAUTHENTICATED of players
//! ```
//!
//! Nothing waits for a client without a queue, and every queue has a limit; so a client that floods delays and displaces only its own
//! messages. The messages of one client keep their order.
//!
//! Cost: O(1) per message, except when a stale input is dropped: O(length of the client's queue). 48 bytes per waiting message, reused.

mod client_queue;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use thiserror::Error;
use throng_core::memory::MemoryUse;
use throng_protocol::wire::{CLIENT_MESSAGE_BYTES_MAX, ClientId, MessageClass};

use self::client_queue::{Backlog, ClientQueue};
use super::quota::{ClientQuota, QuotaBucket, QuotaPerTick};

/// Messages of players that are taken per message of an unauthenticated client, while both wait.
pub const PLAYERS_PER_UNAUTHENTICATED: u32 = 8;

/// Limits of the queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InboxLimits {
    /// Waiting messages in total.
    pub backlog_max: usize,
    /// Waiting messages of one client.
    pub client_backlog_max: u32,
    /// Waiting messages of one unauthenticated client.
    pub unauthenticated_client_backlog_max: u32,
    /// Waiting messages of all unauthenticated clients.
    pub unauthenticated_backlog_max: usize,
    /// How much one client may send.
    pub quota: ClientQuota,
    /// Length of a tick, in nanoseconds; quotas refill by it.
    pub tick_ns: u64,
}

impl Default for InboxLimits {
    fn default() -> Self {
        Self {
            backlog_max: 200_000,
            client_backlog_max: 64,
            unauthenticated_client_backlog_max: 4,
            unauthenticated_backlog_max: 50_000,
            quota: ClientQuota::default(),
            tick_ns: 50_000_000,
        }
    }
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// It is longer than [`CLIENT_MESSAGE_BYTES_MAX`].
    #[error("the message has {0} bytes, at most {CLIENT_MESSAGE_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// The total backlog is full.
    #[error("the inbox is full: {0} messages wait")]
    QueueFull(usize),
    /// The queue of this client is full.
    #[error("client {} already has {waiting} waiting messages", client.0)]
    ClientQueueFull {
        /// The client that sent the message.
        client: ClientId,
        /// How many of its messages wait.
        waiting: u32,
    },
    /// The client exceeds its quota.
    #[error("client {} exceeds its message quota", .0.0)]
    OverQuota(ClientId),
    /// There is no such client, it was closed, or its connection has ended.
    #[error("there is no client {}", .0.0)]
    UnknownClient(ClientId),
}

/// Why a transport ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DisconnectReason {
    /// The client closed it.
    Closed,
    /// Timeout, or malformed data.
    Lost,
    /// Another server process has taken the client over on the same connection. Only a gateway of a cluster reports it. The session ends at
    /// once.
    Moved,
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq, MemoryUse)]
pub struct InboundMessage {
    /// The client that sent it.
    pub client: ClientId,
    /// The tick during or after which it was received.
    pub tick: u64,
    /// The message as the client sent it, not decoded.
    pub bytes: SmallVec<[u8; 16]>,
    /// Number of the message among those of its client, from 1 on and modulo 65,536. All received messages count, also refused ones. When
    /// the message is taken and no other of its client waits, the number of the last one received.
    pub number: u16,
}

/// Counts of messages since the queue was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxCounters {
    /// Messages received, including refused ones.
    pub received: u64,
    /// Messages passed to the simulation.
    pub handled: u64,
    /// Messages refused, replaced by newer ones, or dropped with their client.
    pub refused: u64,
    /// Of the refused: those above a client's quota.
    pub over_quota: u64,
    /// Of the refused: inputs replaced by newer ones.
    pub stale: u64,
    /// Of the refused: those with an unknown client id.
    pub unknown_client: u64,
    /// Of the refused: those that waited when their client was closed.
    pub closed: u64,
    /// Clients detected as flooding.
    pub floods: u64,
    /// Clients closed because their *Login* or *Resume* found no room.
    pub shut_out: u64,
    /// The largest backlog so far.
    pub max_backlog: usize,
    /// The longest time that a message waited after the tick that followed its arrival, in ticks.
    pub max_lag_ticks: u64,
}

/// Bytes of a client's queue, without waiting messages.
pub const CLIENT_QUEUE_BYTES: usize = size_of::<ClientQueue>();

/// Messages that wait for the tick.
#[derive(Clone, Debug, MemoryUse)]
pub struct MessageQueue {
    limits: InboxLimits,
    quota: QuotaPerTick,
    tick: u64,
    client_queues: HashMap<ClientId, ClientQueue, FixedState>,
    backlog: Backlog,
    /// Clients with waiting messages, in the order in which they are served.
    players: VecDeque<ClientId>,
    unauthenticated: VecDeque<ClientId>,
    /// Players served since the last unauthenticated client.
    players_in_row: u32,
    /// Clients with a refused message while none waited.
    refused: Vec<ClientId>,
    ended: Vec<(ClientId, DisconnectReason)>,
    flooding: Vec<ClientId>,
    /// Clients whose *Login* or *Resume* found no room.
    shut_out: Vec<ClientId>,
    counters: InboxCounters,
}

impl Default for MessageQueue {
    fn default() -> Self {
        Self::new(InboxLimits::default())
    }
}

impl MessageQueue {
    /// An empty queue.
    #[must_use]
    pub fn new(limits: InboxLimits) -> Self {
        Self {
            limits,
            quota: QuotaPerTick::of(limits.quota, limits.tick_ns),
            tick: 0,
            client_queues: HashMap::default(),
            backlog: Backlog::default(),
            players: VecDeque::new(),
            unauthenticated: VecDeque::new(),
            players_in_row: 0,
            refused: Vec::new(),
            ended: Vec::new(),
            flooding: Vec::new(),
            shut_out: Vec::new(),
            counters: InboxCounters::default(),
        }
    }

    /// Starts a tick: sets the tick and limits of the messages that follow.
    pub fn begin_tick(&mut self, tick: u64, limits: InboxLimits) {
        if self.limits != limits {
            self.limits = limits;
            self.quota = QuotaPerTick::of(limits.quota, limits.tick_ns);
        }
        self.tick = tick;
    }

    /// Creates the queue of a new client.
    pub fn open(&mut self, client: ClientId) {
        let lane = ClientQueue::new(QuotaBucket::full(&self.quota, self.tick));
        let before = self.client_queues.insert(client, lane);
        debug_assert!(before.is_none(), "numbers of clients are not given twice");
    }

    /// Creates the queue of a player's client that another process has served until now. The numbers of its messages continue after
    /// `last_message`, the last one for that process. The messages wait until [`release`](Self::release).
    pub fn open_continued(&mut self, client: ClientId, last_message: u16) {
        self.open(client);
        if let Some(lane) = self.client_queues.get_mut(&client) {
            (lane.received, lane.is_player, lane.is_held) = (last_message, true, true);
        }
    }

    /// Lets the messages of a client be taken that waited since [`open_continued`](Self::open_continued).
    pub fn release(&mut self, client: ClientId) {
        if let Some(lane) = self.client_queues.get_mut(&client) {
            lane.is_held = false;
        }
        self.acknowledge(client);
    }

    /// Whether a client has no queue, or its connection has ended.
    #[must_use]
    pub fn has_ended(&self, client: ClientId) -> bool {
        let lane = self.client_queues.get(&client);
        lane.is_none_or(|lane| lane.ended.is_some())
    }

    /// The tick has handled the client's connection: its messages may be taken from now on.
    pub fn acknowledge(&mut self, client: ClientId) {
        let Some(lane) = self
            .client_queues
            .get_mut(&client)
            .filter(|lane| !lane.is_acknowledged && !lane.is_held)
        else {
            return;
        };
        self.backlog.subtract(lane, lane.waiting);
        lane.is_acknowledged = true;
        self.backlog.add(lane, lane.waiting);
        if lane.waiting > 0 {
            lane.is_scheduled = true;
            let ring = if lane.is_player {
                &mut self.players
            } else {
                &mut self.unauthenticated
            };
            ring.push_back(client);
        } else {
            self.ended.extend(lane.ended.map(|reason| (client, reason)));
        }
        if lane.is_flooding {
            self.flooding.push(client);
        }
        if lane.is_shut_out {
            self.shut_out.push(client);
        }
    }

    /// The client has logged in: its limit is higher, and it is served before unauthenticated clients.
    pub fn promote(&mut self, client: ClientId) {
        self.acknowledge(client);
        let Some(lane) = self
            .client_queues
            .get_mut(&client)
            .filter(|lane| !lane.is_player)
        else {
            return;
        };
        self.backlog.subtract(lane, lane.waiting);
        lane.is_player = true;
        self.backlog.add(lane, lane.waiting);
        // Its entry in the ring of unauthenticated clients is skipped later.
        if lane.is_scheduled {
            self.players.push_back(client);
        }
    }

    /// Its connection has ended: waiting messages are still handled, then [`take_ended`](Self::take_ended) reports it. No more messages are
    /// accepted.
    pub fn disconnect(&mut self, client: ClientId, reason: DisconnectReason) {
        let Some(lane) = self.client_queues.get_mut(&client) else {
            return;
        };
        if lane.ended.is_none() {
            lane.ended = Some(reason);
            if lane.waiting == 0 && lane.is_acknowledged {
                self.ended.push((client, reason));
            }
        }
    }

    /// Removes a client's queue with all waiting messages.
    pub fn close(&mut self, client: ClientId) {
        let Some(lane) = self.client_queues.remove(&client) else {
            return;
        };
        self.backlog.clear_client(&lane);
        self.counters.refused += u64::from(lane.waiting);
        self.counters.closed += u64::from(lane.waiting);
    }

    /// Accepts a message, or returns why not. O(1).
    ///
    /// # Errors
    /// [`ReceiveError`]; then the message is not stored.
    pub fn push(&mut self, client: ClientId, bytes: &[u8]) -> Result<(), ReceiveError> {
        self.counters.received += 1;
        let accepted = self.accept(client, bytes);
        if accepted.is_err() {
            self.counters.refused += 1;
        }
        accepted
    }

    fn accept(&mut self, client: ClientId, bytes: &[u8]) -> Result<(), ReceiveError> {
        let Some(lane) = self
            .client_queues
            .get_mut(&client)
            .filter(|lane| lane.ended.is_none())
        else {
            self.counters.unknown_client += 1;
            return Err(ReceiveError::UnknownClient(client));
        };
        lane.received = lane.received.wrapping_add(1);
        lane.quota.fill(&self.quota, self.tick);
        let room = if lane.is_shut_out {
            Err(ReceiveError::QueueFull(self.backlog.len()))
        } else if bytes.len() > CLIENT_MESSAGE_BYTES_MAX {
            Err(ReceiveError::TooLong(bytes.len()))
        } else if lane.is_flooding || !lane.quota.try_consume(bytes.len()) {
            self.counters.over_quota += 1;
            Err(ReceiveError::OverQuota(client))
        } else {
            self.backlog.make_room(&self.limits, lane, client, bytes)
        };
        match room {
            Ok(is_instead) => {
                self.counters.refused += u64::from(is_instead);
                self.counters.stale += u64::from(is_instead);
            }
            Err(reason) => {
                // A backlog of other clients is not this client's violation.
                let is_offence = !matches!(reason, ReceiveError::QueueFull(_));
                self.refuse(client, is_offence);
                if MessageClass::of(bytes) == MessageClass::Login {
                    self.shut_out(client, reason);
                }
                return Err(reason);
            }
        }
        let message = InboundMessage {
            client,
            tick: self.tick,
            bytes: SmallVec::from_slice(bytes),
            number: lane.received,
        };
        self.backlog.push(lane, message);
        if lane.is_acknowledged && !std::mem::replace(&mut lane.is_scheduled, true) {
            let ring = if lane.is_player {
                &mut self.players
            } else {
                &mut self.unauthenticated
            };
            ring.push_back(client);
        }
        self.counters.max_backlog = self.counters.max_backlog.max(self.backlog.len());
        Ok(())
    }

    /// Counts a refused message of this client.
    fn refuse(&mut self, client: ClientId, is_offence: bool) {
        let Some(lane) = self.client_queues.get_mut(&client) else {
            return;
        };
        if lane.waiting == 0 && !lane.is_in_refused && !lane.is_flooding {
            lane.is_in_refused = true;
            self.refused.push(client);
        }
        if is_offence && lane.quota.count_violation(&self.quota) && !lane.is_flooding {
            lane.is_flooding = true;
            self.counters.floods += 1;
            if lane.is_acknowledged {
                self.flooding.push(client);
            }
        }
    }

    /// A *Login* or *Resume* found no room: the transport has acknowledged it, so the client does not send it again, and its
    /// connection is closed with a reason, unless another one of its requests waits for a reply.
    fn shut_out(&mut self, client: ClientId, reason: ReceiveError) {
        let is_full = matches!(
            reason,
            ReceiveError::QueueFull(_) | ReceiveError::ClientQueueFull { .. }
        );
        let Some(lane) = self.client_queues.get_mut(&client) else {
            return;
        };
        let is_login =
            |message: &InboundMessage| MessageClass::of(&message.bytes) == MessageClass::Login;
        if !is_full
            || lane.is_player
            || lane.is_shut_out
            || self.backlog.messages(lane).any(is_login)
        {
            return;
        }
        lane.is_shut_out = true;
        self.counters.shut_out += 1;
        if lane.is_acknowledged {
            self.shut_out.push(client);
        }
    }

    /// Prefetches the next messages of this many players. All together they exceed the caches.
    pub fn prefetch(&self, count: usize) {
        let next = self.players.iter().take(count);
        next.filter_map(|client| self.client_queues.get(client))
            .for_each(|lane| self.backlog.prefetch(lane));
    }

    /// Takes the next message, at tick `now`: the oldest of the client whose turn it is.
    pub fn pop(&mut self, now: u64) -> Option<InboundMessage> {
        let has_players = self.backlog.has_players();
        let is_newcomers = self.backlog.has_unauthenticated()
            && (!has_players || self.players_in_row >= PLAYERS_PER_UNAUTHENTICATED);
        if !is_newcomers && !has_players {
            self.players.clear();
            self.unauthenticated.clear();
            return None;
        }
        self.players_in_row = if is_newcomers {
            0
        } else {
            self.players_in_row.saturating_add(1)
        };
        loop {
            let ring = if is_newcomers {
                &mut self.unauthenticated
            } else {
                &mut self.players
            };
            let client = ring.pop_front()?;
            let Some(lane) = self.client_queues.get_mut(&client) else {
                continue;
            };
            if lane.is_player == is_newcomers {
                continue;
            }
            let Some(mut message) = self.backlog.pop(lane) else {
                continue;
            };
            if lane.waiting == 0 {
                lane.is_scheduled = false;
                message.number = lane.received;
                self.ended.extend(lane.ended.map(|reason| (client, reason)));
            } else {
                ring.push_back(client);
            }
            self.counters.handled += 1;
            let lag = now.saturating_sub(message.tick + 1);
            self.counters.max_lag_ticks = self.counters.max_lag_ticks.max(lag);
            return Some(message);
        }
    }

    /// Takes the clients with a refused message while none waited, with the number of their last message. They wait for no other
    /// acknowledgement.
    pub fn take_refused(&mut self, into: &mut Vec<(ClientId, u16)>) {
        for client in self.refused.drain(..) {
            if let Some(lane) = self.client_queues.get_mut(&client) {
                lane.is_in_refused = false;
                if lane.waiting == 0 {
                    into.push((client, lane.received));
                }
            }
        }
    }

    /// Takes the clients whose connection has ended and that have no waiting messages.
    pub fn take_ended(&mut self, into: &mut Vec<(ClientId, DisconnectReason)>) {
        into.append(&mut self.ended);
    }

    /// Takes the clients detected as flooding. Their messages are not accepted any more.
    pub fn take_flooding(&mut self, into: &mut Vec<ClientId>) {
        into.append(&mut self.flooding);
    }

    /// Takes the clients whose *Login* or *Resume* found no room. Their messages are not accepted any more.
    pub fn take_shut_out(&mut self, into: &mut Vec<ClientId>) {
        into.append(&mut self.shut_out);
    }

    /// Number of waiting messages.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.backlog.len()
    }

    /// Whether no message waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.backlog.len() == 0
    }

    /// Number of clients with a queue.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.client_queues.len()
    }

    /// Whether a client has a queue and its connection has not ended.
    #[must_use]
    pub fn is_open(&self, client: ClientId) -> bool {
        self.client_queues
            .get(&client)
            .is_some_and(|lane| lane.ended.is_none())
    }

    /// The waiting messages of a client, oldest first.
    pub fn client_messages(&self, client: ClientId) -> impl Iterator<Item = &InboundMessage> {
        let lane = self.client_queues.get(&client);
        lane.into_iter()
            .flat_map(|lane| self.backlog.messages(lane))
    }

    /// The waiting messages, queue by queue in the order of turns.
    pub fn iter(&self) -> impl Iterator<Item = &InboundMessage> {
        let lane_of = |client: &ClientId, is_player: bool| {
            let lane = self.client_queues.get(client)?;
            (lane.is_player == is_player).then_some(lane)
        };
        let players = self.players.iter().filter_map(move |of| lane_of(of, true));
        let newcomers = self
            .unauthenticated
            .iter()
            .filter_map(move |of| lane_of(of, false));
        players
            .chain(newcomers)
            .flat_map(|lane| self.backlog.messages(lane))
    }

    /// Hashes all state that affects later ticks, except the messages, as words. Equal states give equal words.
    pub fn hash_state(&self, mut word: impl FnMut(u64)) {
        word(u64::from(self.players_in_row));
        for client in self
            .refused
            .iter()
            .chain(&self.flooding)
            .chain(&self.shut_out)
        {
            word(u64::from(client.0));
        }
        for (client, reason) in &self.ended {
            word(u64::from(client.0) << 1 | *reason as u64);
        }
        let mut sum = [0u64; 2];
        for (client, lane) in &self.client_queues {
            // The map has no order, so each entry is mixed separately and added.
            let mut mixed = u64::from(client.0) << 20
                | u64::from(lane.received) << 4
                | u64::from(lane.is_player) << 3
                | u64::from(lane.is_flooding) << 2
                | u64::from(lane.is_in_refused) << 1
                | u64::from(lane.ended.is_some())
                | lane.ended.map_or(0, |reason| reason as u64) << 62
                | u64::from(lane.is_shut_out) << 60
                | u64::from(lane.is_acknowledged) << 63;
            for word in lane.quota.words() {
                mixed = (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                mixed ^= mixed >> 29;
            }
            sum[0] = sum[0].wrapping_add(mixed);
            sum[1] ^= mixed.rotate_left((client.0 % 63) + 1);
        }
        sum.into_iter().for_each(word);
    }

    /// Counts of messages so far.
    #[must_use]
    pub const fn counters(&self) -> InboxCounters {
        self.counters
    }
}
