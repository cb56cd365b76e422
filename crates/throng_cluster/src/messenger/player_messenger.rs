//! The state machine of messages to players, without a clock or a socket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use throng_core::ids::PlayerId;

use super::locations::PlayerLocations;
use super::player_message::{BYTES_MAX, CarriedMessage, PLAYERS_MAX, PlayerMessage};
use super::settings::{MessengerSettings, MessengerStats};
use crate::bus::BusPeer;
use crate::ids::{ClusterNodeId, NodeRun};
use crate::request::{NodeEntry, PlayerEntry};

/// The time between a failed read and the next one, in milliseconds.
const RETRY_MS: u64 = 50;

/// An output of a messenger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessengerOutput {
    Bus(BusPeer, Vec<u8>),
    /// A read of the owners of players, with its number. The reply goes to [`PlayerMessenger::on_read`].
    Read(u64, Vec<PlayerId>),
}

/// A message for the game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessengerEvent {
    /// A message to players of this node.
    ToPlayers {
        /// The players, in ascending order.
        players: Vec<PlayerId>,
        /// The channel, a number of the game.
        channel: u16,
        /// The content.
        bytes: Arc<[u8]>,
    },
    /// An announcement to all nodes.
    ToAll {
        /// The channel, a number of the game.
        channel: u16,
        /// The content.
        bytes: Arc<[u8]>,
    },
}

#[derive(Clone, Debug)]
enum ArrivedMessage {
    /// With the node that has sent it, and the time until which it waits for its players.
    ToPlayers(PlayerMessage, ClusterNodeId, Option<u64>),
    ToAll(u16, Arc<[u8]>),
}

/// A read of rows that is pending.
#[derive(Clone, Debug)]
struct PendingRead {
    number: u64,
    players: BTreeSet<PlayerId>,
    sent_ms: u64,
}

/// The messages of a node to players of other nodes, and the messages that arrive here. It has no clock: all times are those of its caller, in
/// milliseconds of a monotonic clock.
#[derive(Clone, Debug)]
pub struct PlayerMessenger {
    own: ClusterNodeId,
    settings: MessengerSettings,
    locations: PlayerLocations,
    /// Messages that wait for a read of the rows of their players, with the times since which they wait.
    waiting: VecDeque<(PlayerMessage, u64)>,
    /// The players of all waiting messages.
    awaited: BTreeSet<PlayerId>,
    read: Option<PendingRead>,
    last_read: u64,
    next_read_ms: u64,
    outgoing: VecDeque<(BusPeer, Vec<u8>)>,
    arrived: VecDeque<ArrivedMessage>,
    stats: MessengerStats,
}

impl PlayerMessenger {
    /// The messenger of a node.
    #[must_use]
    pub fn new(own: ClusterNodeId, mut settings: MessengerSettings) -> Self {
        settings.bytes_max = settings.bytes_max.min(BYTES_MAX);
        settings.players_max = settings.players_max.min(PLAYERS_MAX);
        Self {
            own,
            settings,
            locations: PlayerLocations::new(settings.locations_max),
            waiting: VecDeque::new(),
            awaited: BTreeSet::new(),
            read: None,
            last_read: 0,
            next_read_ms: 0,
            outgoing: VecDeque::new(),
            arrived: VecDeque::new(),
            stats: MessengerStats::default(),
        }
    }

    /// Its counters.
    #[must_use]
    pub const fn stats(&self) -> MessengerStats {
        self.stats
    }

    /// The cached locations of players.
    #[must_use]
    pub const fn locations(&self) -> &PlayerLocations {
        &self.locations
    }

    /// Notes that a player has moved to another node.
    pub fn note_location(&mut self, player: PlayerId, run: NodeRun) {
        self.locations.note(player, run);
    }

    /// Notes that a player of this node has moved to another one. Messages that waited for it here follow it. O(messages that wait).
    pub fn note_departure(&mut self, player: PlayerId, run: NodeRun) {
        self.note_location(player, run);
        for arrived in std::mem::take(&mut self.arrived) {
            let ArrivedMessage::ToPlayers(mut message, from, Some(until_ms)) = arrived else {
                self.arrived.push_back(arrived);
                continue;
            };
            if let Ok(at) = message.players.binary_search(&player) {
                message.players.remove(at);
                let own = message.to(vec![player]);
                self.push_arrived(ArrivedMessage::ToPlayers(own, from, Some(0)));
            }
            if !message.players.is_empty() {
                self.push_arrived(ArrivedMessage::ToPlayers(message, from, Some(until_ms)));
            }
        }
    }

    /// Whether a message is within the limits. Counts a message that is not.
    pub fn accepts(&mut self, players: usize, bytes: usize) -> bool {
        let fits = players <= self.settings.players_max && bytes <= self.settings.bytes_max;
        self.stats.too_large += u64::from(!fits);
        fits
    }

    /// Sends a message to players of other nodes. `nodes` is the newest list of nodes. O(players · log n).
    pub fn send(
        &mut self,
        mut players: Vec<PlayerId>,
        channel: u16,
        bytes: &[u8],
        now_ms: u64,
        nodes: &[NodeEntry],
    ) {
        players.sort_unstable();
        players.dedup();
        if players.is_empty() || !self.accepts(players.len(), bytes.len()) {
            return;
        }
        let message = PlayerMessage {
            players: Vec::new(),
            channel,
            bytes: bytes.into(),
            sends: 0,
        };
        let mut by_node = BTreeMap::<ClusterNodeId, Vec<PlayerId>>::new();
        let mut unknown = Vec::new();
        for player in players {
            let run = self.locations.get(player);
            let run = run.filter(|run| run.node != self.own && !is_dead(*run, nodes));
            // A message must not overtake an earlier one that waits for a read.
            match run.filter(|_| !self.awaited.contains(&player)) {
                Some(run) => by_node.entry(run.node).or_default().push(player),
                None => unknown.push(player),
            }
        }
        for (node, players) in by_node {
            self.send_to(node, &CarriedMessage::ToPlayers(message.to(players)));
        }
        self.enqueue(message.to(unknown), now_ms);
    }

    /// Sends an announcement to all other nodes.
    pub fn announce(&mut self, channel: u16, bytes: &[u8]) {
        if !self.accepts(0, bytes.len()) {
            return;
        }
        if self.outgoing.len() >= self.settings.waiting_max {
            self.stats.full += 1;
            return;
        }
        let carried = CarriedMessage::ToAll(channel, bytes.into()).to_bytes();
        self.outgoing.push_back((BusPeer::All, carried));
        self.stats.announced += 1;
    }

    fn send_to(&mut self, node: ClusterNodeId, carried: &CarriedMessage) {
        if self.outgoing.len() >= self.settings.waiting_max {
            self.stats.full += 1;
            return;
        }
        match carried {
            CarriedMessage::Returned(_) => self.stats.returned += 1,
            _ => self.stats.sent += 1,
        }
        let bytes = carried.to_bytes();
        self.outgoing.push_back((BusPeer::Node(node), bytes));
    }

    /// Makes a message wait for a read of the rows of its players.
    fn enqueue(&mut self, message: PlayerMessage, now_ms: u64) {
        if message.players.is_empty() {
            return;
        }
        if self.waiting.len() >= self.settings.waiting_max {
            self.stats.full += 1;
            return;
        }
        self.awaited.extend(&message.players);
        self.waiting.push_back((message, now_ms));
    }

    /// Computes `awaited` again, after waiting messages were removed.
    fn collect_awaited(&mut self) {
        let waiting = self.waiting.iter();
        let players = waiting.flat_map(|(message, _)| message.players.iter().copied());
        self.awaited = players.collect();
    }

    fn push_arrived(&mut self, message: ArrivedMessage) {
        if self.arrived.len() >= self.settings.waiting_max {
            self.stats.full += 1;
            return;
        }
        self.arrived.push_back(message);
    }

    /// Handles a message of the bus. `false` if it is not one of a messenger. O(bytes).
    pub fn receive(&mut self, from: BusPeer, bytes: &[u8], now_ms: u64) -> bool {
        let BusPeer::Node(from) = from else {
            return false;
        };
        match CarriedMessage::from_bytes(bytes) {
            None => return false,
            Some(CarriedMessage::ToPlayers(message)) => {
                self.push_arrived(ArrivedMessage::ToPlayers(message, from, None));
            }
            Some(CarriedMessage::ToAll(channel, bytes)) => {
                self.push_arrived(ArrivedMessage::ToAll(channel, bytes));
            }
            Some(CarriedMessage::Returned(message)) => {
                for player in &message.players {
                    let known = self.locations.get(*player);
                    if known.is_some_and(|run| run.node == from) {
                        self.locations.forget(*player);
                    }
                }
                self.send_again(message, now_ms);
            }
        }
        true
    }

    /// Queues a returned message for another read, unless it was sent too often.
    fn send_again(&mut self, message: PlayerMessage, now_ms: u64) {
        if message.sends >= self.settings.sends_max {
            self.stats.late += message.players.len() as u64;
        } else {
            self.enqueue(message, now_ms);
        }
    }

    /// The messages and reads to send now. Drops messages that have waited too long.
    pub(crate) fn poll(&mut self, now_ms: u64) -> Vec<MessengerOutput> {
        let outgoing = self.outgoing.drain(..);
        let mut outputs: Vec<MessengerOutput> = outgoing
            .map(|(to, bytes)| MessengerOutput::Bus(to, bytes))
            .collect();
        let timeout_ms = self.settings.read_timeout_ms;
        let is_overdue = |read: &mut PendingRead| now_ms >= read.sent_ms + timeout_ms;
        self.read.take_if(is_overdue);
        let mut late = 0;
        self.waiting.retain(|(message, since_ms)| {
            let is_late = now_ms >= since_ms + timeout_ms;
            late += u64::from(is_late) * message.players.len() as u64;
            !is_late
        });
        self.stats.late += late;
        if late > 0 {
            self.collect_awaited();
        }
        if self.read.is_none() && !self.waiting.is_empty() && now_ms >= self.next_read_ms {
            let waiting = self.waiting.iter();
            let all = waiting.flat_map(|(message, _)| message.players.iter().copied());
            let mut players = BTreeSet::new();
            for player in all {
                if players.len() >= self.settings.players_per_read.max(1) {
                    break;
                }
                players.insert(player);
            }
            self.last_read += 1;
            self.stats.reads += 1;
            let asked = players.iter().copied().collect();
            outputs.push(MessengerOutput::Read(self.last_read, asked));
            self.read = Some(PendingRead {
                number: self.last_read,
                players,
                sent_ms: now_ms,
            });
        }
        outputs
    }

    /// Handles the reply to a read; `None` if it failed.
    pub(crate) fn on_read(
        &mut self,
        number: u64,
        found: Option<&[PlayerEntry]>,
        now_ms: u64,
        nodes: &[NodeEntry],
    ) {
        let Some(read) = self.read.take_if(|read| read.number == number) else {
            return;
        };
        let Some(found) = found else {
            self.next_read_ms = now_ms + RETRY_MS;
            return;
        };
        let owners: BTreeMap<PlayerId, NodeRun> = found
            .iter()
            .filter_map(|entry| Some((entry.player, entry.owner?)))
            .collect();
        for (&player, &run) in &owners {
            self.locations.note(player, run);
        }
        for (mut message, since_ms) in std::mem::take(&mut self.waiting) {
            let (asked, rest): (Vec<_>, Vec<_>) = message
                .players
                .iter()
                .partition(|player| read.players.contains(player));
            if !rest.is_empty() {
                self.waiting.push_back((message.to(rest), since_ms));
            }
            message.sends += 1;
            let mut by_node = BTreeMap::<ClusterNodeId, Vec<PlayerId>>::new();
            for player in asked {
                match owners.get(&player) {
                    None => self.stats.offline += 1,
                    Some(run) if is_dead(*run, nodes) => self.stats.dead += 1,
                    Some(run) => by_node.entry(run.node).or_default().push(player),
                }
            }
            for (node, players) in by_node {
                let message = message.to(players);
                if node == self.own {
                    // They are about to arrive here.
                    self.push_arrived(ArrivedMessage::ToPlayers(message, node, None));
                } else {
                    self.send_to(node, &CarriedMessage::ToPlayers(message));
                }
            }
        }
        self.collect_awaited();
    }

    /// The messages for players of this node, in order of arrival. Call it once per tick. Messages for other players wait for them, or return to
    /// the sender.
    pub fn deliver(
        &mut self,
        now_ms: u64,
        is_here: impl Fn(PlayerId) -> bool,
    ) -> Vec<MessengerEvent> {
        let mut events = Vec::new();
        for arrived in std::mem::take(&mut self.arrived) {
            let (message, from, until_ms) = match arrived {
                ArrivedMessage::ToAll(channel, bytes) => {
                    events.push(MessengerEvent::ToAll { channel, bytes });
                    continue;
                }
                ArrivedMessage::ToPlayers(message, from, until_ms) => (message, from, until_ms),
            };
            let (here, missing): (Vec<_>, Vec<_>) =
                message.players.iter().partition(|player| is_here(**player));
            if !missing.is_empty() {
                self.on_missing(message.to(missing), from, until_ms, now_ms);
            }
            if !here.is_empty() {
                self.stats.delivered += here.len() as u64;
                events.push(MessengerEvent::ToPlayers {
                    players: here,
                    channel: message.channel,
                    bytes: message.bytes,
                });
            }
        }
        events
    }

    /// Handles a message whose players are not on this node.
    fn on_missing(
        &mut self,
        message: PlayerMessage,
        from: ClusterNodeId,
        until_ms: Option<u64>,
        now_ms: u64,
    ) {
        let until_ms = until_ms.unwrap_or(now_ms + self.settings.hold_ms);
        if message.sends > 0 && now_ms < until_ms {
            // By their rows, they are about to arrive.
            self.push_arrived(ArrivedMessage::ToPlayers(message, from, Some(until_ms)));
        } else if from == self.own {
            self.send_again(message, now_ms);
        } else {
            self.send_to(from, &CarriedMessage::Returned(message));
        }
    }
}

/// Whether a run is late, dead or followed by a newer run, by the newest list of nodes. A run that is newer than the list is not.
fn is_dead(run: NodeRun, nodes: &[NodeEntry]) -> bool {
    let entry = nodes.iter().find(|entry| entry.run.node == run.node);
    entry.is_some_and(|entry| {
        entry.run.run > run.run || (entry.run.run == run.run && !entry.is_alive)
    })
}

#[cfg(test)]
mod tests;
