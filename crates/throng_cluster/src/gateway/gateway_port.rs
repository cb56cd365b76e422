//! The node's end of the links: its clients at gateways, as a transport.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use throng_net::ConnectionHandler;
use throng_net::inbox::DisconnectReason;
use throng_net::outbox::PacketSink;
use throng_protocol::wire::{Channel, ClientId, CloseReason};

use super::counted_times::CountedTimes;
use super::moved_session::MovedSession;
use super::relayed_message::RelayedMessage;
use crate::bus::{BusPeer, BusRelay};
use crate::ids::ClusterNodeId;
use crate::link::{LinkClient, LinkEvent, LinkSet, LinkSettings, LinkStats};

/// Maximum number of resume tokens that wait for the tick, or for the thread of the node. Further ones are dropped.
const MOVED_SESSIONS_MAX: usize = 4_096;

/// Counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayPortStats {
    /// Clients that have connected at a gateway.
    pub connected: u64,
    /// Clients that the server of this node refused.
    pub refused: u64,
    /// Clients closed because too much waited for them.
    pub behind: u64,
    /// Clients lost with the link to their gateway.
    pub lost: u64,
    /// Messages of gateways that could not be read, or that do not fit the state of their client.
    pub unreadable: u64,
    /// Resume tokens dropped because too many waited. Their clients log in again if they lose their connection during the hand-off.
    pub tokens_dropped: u64,
}

/// The clients of a node at gateways. Give it to [`NodeDriver::set_relay`](crate::NodeDriver::set_relay), and its [`sink`](Self::sink) to
/// the outbox. Clones share the port.
#[derive(Clone)]
pub struct GatewayPort(Arc<Mutex<PortState>>);

impl std::fmt::Debug for GatewayPort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("GatewayPort")
            .finish_non_exhaustive()
    }
}

/// The upper bounds of the times of inputs.
const INPUT_TIMES_MS: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/// A client by its gateway and its number there.
type RemoteClient = (BusPeer, LinkClient);

struct PortState {
    links: LinkSet,
    handler: Arc<dyn ConnectionHandler>,
    clients: BTreeMap<RemoteClient, ClientId>,
    homes: BTreeMap<ClientId, RemoteClient>,
    buffer: Vec<u8>,
    waker: Option<Waker>,
    /// Sessions that move to other nodes, and those that have come from others.
    leaving: Vec<(ClusterNodeId, MovedSession)>,
    arrived: Vec<MovedSession>,
    input_times: CountedTimes,
    stats: GatewayPortStats,
}

impl GatewayPort {
    /// The port of a node. `run` is the number of its [run](crate::NodeRun::run) when its process started. `handler` is the server for the
    /// clients.
    #[must_use]
    pub fn new(run: u64, settings: LinkSettings, handler: Arc<dyn ConnectionHandler>) -> Self {
        Self(Arc::new(Mutex::new(PortState {
            links: LinkSet::new(run, settings),
            handler,
            clients: BTreeMap::new(),
            homes: BTreeMap::new(),
            buffer: Vec::new(),
            waker: None,
            leaving: Vec::new(),
            arrived: Vec::new(),
            input_times: CountedTimes::new(INPUT_TIMES_MS),
            stats: GatewayPortStats::default(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, PortState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A sink for the outbox of the node. Packets for clients that are not at a gateway go to `others`.
    #[must_use]
    pub fn sink(&self, others: Option<Box<dyn PacketSink>>) -> GatewaySink {
        GatewaySink {
            port: self.clone(),
            gathered: Vec::new(),
            bytes: Vec::new(),
            others,
        }
    }

    /// Whether a client is at a gateway. O(log clients).
    #[must_use]
    pub fn has_client(&self, client: ClientId) -> bool {
        self.state().homes.contains_key(&client)
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> GatewayPortStats {
        self.state().stats
    }

    /// Sends the resume tokens of sessions to the nodes that get their players. They may be lost.
    #[cfg(feature = "server")]
    pub(crate) fn send_sessions(&self, sessions: &[(ClusterNodeId, MovedSession)]) {
        let mut state = self.state();
        let room = MOVED_SESSIONS_MAX.saturating_sub(state.leaving.len());
        let sent = sessions.len().min(room);
        state.leaving.extend_from_slice(&sessions[..sent]);
        state.stats.tokens_dropped += (sessions.len() - sent) as u64;
        let waker = state.waker.clone();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the resume tokens that other nodes have sent.
    #[cfg(feature = "server")]
    pub(crate) fn take_sessions(&self) -> Vec<MovedSession> {
        std::mem::take(&mut self.state().arrived)
    }

    /// How long the inputs of clients took from their gateways to this node.
    #[must_use]
    pub fn input_times(&self) -> CountedTimes {
        self.state().input_times
    }

    /// Counters of its links.
    #[must_use]
    pub fn link_stats(&self) -> LinkStats {
        self.state().links.stats()
    }
}

impl BusRelay for GatewayPort {
    fn receive(&mut self, now_ms: u64, from: BusPeer, bytes: &[u8]) -> bool {
        let mut state = self.state();
        if let Some(session) = MovedSession::from_bytes(bytes) {
            state.on_moved_session(from, session);
            return true;
        }
        let is_piece = state.links.receive(now_ms, from, bytes);
        while let Some(event) = state.links.next_event() {
            state.on_link(event);
        }
        is_piece
    }

    fn poll(&mut self, now_ms: u64) -> Vec<(BusPeer, Vec<u8>)> {
        let mut pieces = Vec::new();
        let mut state = self.state();
        state
            .links
            .poll(now_ms, |peer, piece| pieces.push((peer, piece)));
        while let Some(event) = state.links.next_event() {
            state.on_link(event);
        }
        let leaving = state.leaving.drain(..);
        pieces.extend(leaving.map(|(node, session)| (BusPeer::Node(node), session.to_bytes())));
        pieces
    }

    fn client_counts(&self) -> BTreeMap<BusPeer, u32> {
        let mut counts = BTreeMap::new();
        for (gateway, _) in self.state().clients.keys() {
            *counts.entry(*gateway).or_default() += 1;
        }
        counts
    }

    fn set_waker(&mut self, waker: Waker) {
        self.state().waker = Some(waker);
    }
}

impl PortState {
    fn on_moved_session(&mut self, from: BusPeer, session: MovedSession) {
        if !matches!(from, BusPeer::Node(_)) {
            self.stats.unreadable += 1;
        } else if self.arrived.len() >= MOVED_SESSIONS_MAX {
            self.stats.tokens_dropped += 1;
        } else {
            self.arrived.push(session);
        }
    }

    fn on_link(&mut self, event: LinkEvent) {
        let (remote, waited_ms, bytes) = match event {
            LinkEvent::Linked { .. } => return,
            LinkEvent::Lost { peer } => return self.lose(peer),
            LinkEvent::Message {
                peer,
                client,
                waited_ms,
                bytes,
            } => ((peer, client), waited_ms, bytes),
        };
        let known = self.clients.get(&remote).copied();
        match (RelayedMessage::read(&bytes), known) {
            (Some(RelayedMessage::Connected(info)), None) => {
                if let Some(client) = self.handler.connect(info) {
                    self.stats.connected += 1;
                    self.clients.insert(remote, client);
                    self.homes.insert(client, remote);
                } else {
                    self.stats.refused += 1;
                    self.close_remote(remote, CloseReason::Full);
                }
            }
            (Some(RelayedMessage::Input(message)), Some(client)) => {
                let round_trip_ms = self.links.round_trip_ms(remote.0).unwrap_or(0);
                self.input_times
                    .add(u64::from(waited_ms) + round_trip_ms / 2);
                self.handler.receive(client, message);
            }
            (Some(RelayedMessage::Disconnected(reason)), Some(client)) => {
                self.forget(client);
                self.links.forget(remote.0, remote.1);
                self.handler.disconnect(client, reason);
            }
            // This node has closed the client.
            (Some(RelayedMessage::Input(_) | RelayedMessage::Disconnected(_)), None) => {}
            _ => self.stats.unreadable += 1,
        }
    }

    /// Disconnects all clients of a gateway whose link is lost.
    fn lose(&mut self, gateway: BusPeer) {
        let lost = self
            .clients
            .iter()
            .filter(|((peer, _), _)| *peer == gateway);
        let lost: Vec<ClientId> = lost.map(|(_, client)| *client).collect();
        self.stats.lost += lost.len() as u64;
        for client in lost {
            self.forget(client);
            self.handler.disconnect(client, DisconnectReason::Lost);
        }
    }

    fn forget(&mut self, client: ClientId) -> Option<RemoteClient> {
        let remote = self.homes.remove(&client)?;
        self.clients.remove(&remote);
        Some(remote)
    }

    fn close_remote(&mut self, (peer, client): RemoteClient, reason: CloseReason) {
        RelayedMessage::Close(reason).write(&mut self.buffer);
        self.links.push_last(peer, client, &self.buffer);
    }

    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        let Some(&remote) = self.homes.get(&client) else {
            return;
        };
        let (peer, link_client) = remote;
        RelayedMessage::Packet(channel, packet).write(&mut self.buffer);
        if channel == Channel::Unreliable {
            self.links.push_unreliable(peer, link_client, &self.buffer);
        } else if let Err(error) = self.links.push(peer, link_client, &self.buffer) {
            tracing::debug!(%error, "client closed");
            self.stats.behind += 1;
            self.links.forget(peer, link_client);
            self.close_remote(remote, CloseReason::SlowConsumer);
            self.forget(client);
            self.handler.disconnect(client, DisconnectReason::Lost);
        }
    }
}

/// A packet for a client, or the end of its connection.
enum GatheredPacket {
    Packet(Channel, usize),
    Close(CloseReason),
}

/// The sink of a node for its clients at gateways. It takes the lock of the port once per flush.
pub struct GatewaySink {
    port: GatewayPort,
    gathered: Vec<(ClientId, GatheredPacket)>,
    bytes: Vec<u8>,
    others: Option<Box<dyn PacketSink>>,
}

impl std::fmt::Debug for GatewaySink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("GatewaySink")
            .finish_non_exhaustive()
    }
}

impl PacketSink for GatewaySink {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        let packet = GatheredPacket::Packet(channel, packet.len());
        self.gathered.push((client, packet));
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        self.gathered.push((client, GatheredPacket::Close(reason)));
    }

    fn flush(&mut self) {
        let Self {
            port,
            gathered,
            bytes,
            others,
        } = self;
        let mut state = port.state();
        let mut rest = &bytes[..];
        for (client, packet) in gathered.drain(..) {
            let is_here = state.homes.contains_key(&client);
            match packet {
                GatheredPacket::Packet(channel, length) => {
                    let (packet, after) = rest.split_at(length);
                    rest = after;
                    if is_here {
                        state.deliver(client, channel, packet);
                    } else if let Some(others) = others {
                        others.deliver(client, channel, packet);
                    }
                }
                GatheredPacket::Close(reason) => {
                    if let Some(remote) = state.forget(client) {
                        state.close_remote(remote, reason);
                    } else if let Some(others) = others {
                        others.close(client, reason);
                    }
                }
            }
        }
        let waker = state.waker.clone();
        drop(state);
        bytes.clear();
        if let Some(waker) = waker {
            waker.wake();
        }
        if let Some(others) = others {
            others.flush();
        }
    }

    fn errors(&self) -> u64 {
        let behind = self.port.state().stats.behind;
        behind + self.others.as_ref().map_or(0, |others| others.errors())
    }
}
