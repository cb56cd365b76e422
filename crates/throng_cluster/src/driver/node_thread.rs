//! The thread of a node.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use throng_core::clock::Stopwatch;

use super::lanes::{LaneCaller, LaneReply, StoreLanes};
use super::matches::DrivenMatches;
use super::record_reads::RecordReads;
use crate::bus::{BusEvent, BusMessage, BusPeer, BusRelay, MessageBus};
use crate::groups::GroupDirectory;
use crate::ids::NodeRun;
use crate::matcher::MatchOutput;
use crate::messenger::{MessengerOutput, PlayerMessenger};
use crate::node::{ClusterNode, NodeOutput, RequestId};
use crate::party_values::PartyExchange;
use crate::presence::{KnownPeer, PeerChange, PeerDirectory};
use crate::request::{ClusterReply, ClusterRequest, GatewayClients, NodeEntry};

/// How long the thread sleeps if nothing arrives.
const IDLE: Duration = Duration::from_millis(10);

/// Counters of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverStats {
    /// Requests given to the store.
    pub requests: u64,
    /// Requests that were not executed, for example because the store was away, or because they have waited for too long.
    pub not_executed: u64,
    /// Requests with an unknown outcome.
    pub unknown: u64,
    /// Messages of the bus that a node cannot read.
    pub unreadable: u64,
}

/// The state that the thread and the tick share, under a lock.
pub(super) struct DriverState {
    pub node: ClusterNode,
    pub bus: MessageBus,
    pub directory: PeerDirectory,
    pub relay: Option<Box<dyn BusRelay>>,
    pub messenger: PlayerMessenger,
    pub records: RecordReads,
    pub nodes: Vec<NodeEntry>,
    /// When the nodes are read next.
    pub next_nodes_ms: u64,
    pub matches: Option<DrivenMatches>,
    pub groups: GroupDirectory,
    pub party_values: PartyExchange,
    pub stats: DriverStats,
}

/// The data that the handle and the thread share.
pub(super) struct SharedDriver {
    pub state: Mutex<DriverState>,
    pub clock: Stopwatch,
    pub nodes_interval: Duration,
    /// The thread has to end.
    pub ends: AtomicBool,
    /// The thread has to end the run, too.
    pub ends_run: AtomicBool,
}

impl SharedDriver {
    pub fn state(&self) -> MutexGuard<'_, DriverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the driver started.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Runs until the handle is dropped or stopped, or another process runs as this node.
pub(super) fn run(shared: &Arc<SharedDriver>, lanes: &StoreLanes) {
    let nodes_interval_ms = u64::try_from(shared.nodes_interval.as_millis()).unwrap_or(u64::MAX);
    let mut is_reading_nodes = false;
    while !shared.ends.load(Ordering::Acquire) {
        let mut state = shared.state();
        let now_ms = shared.now_ms();
        while let Some(lane_reply) = lanes.next_reply() {
            is_reading_nodes &= lane_reply.caller != LaneCaller::Nodes;
            state.on_reply(lane_reply, now_ms, lanes);
        }
        while let Some(event) = state.bus.receive() {
            state.on_bus(event, now_ms);
        }
        if state.node.is_superseded() {
            tracing::error!("node stopped: another process runs with its name");
            return;
        }
        state.update_report(now_ms);
        for output in state.node.poll(now_ms) {
            state.dispatch(now_ms, output, lanes);
        }
        state.poll_presence(now_ms);
        state.poll_matches(now_ms, lanes);
        state.poll_groups(now_ms, lanes);
        state.poll_relay(now_ms);
        state.poll_messages(now_ms, lanes);
        state.send_party_values();
        if now_ms >= state.next_nodes_ms && !is_reading_nodes {
            state.next_nodes_ms = now_ms + nodes_interval_ms;
            is_reading_nodes = true;
            lanes.send(LaneCaller::Nodes, ClusterRequest::ReadNodes);
        } else if now_ms >= state.next_nodes_ms + 10 * nodes_interval_ms {
            // The thread of the lane has panicked.
            is_reading_nodes = false;
        }
        drop(state);
        thread::park_timeout(IDLE);
    }
    if shared.ends_run.load(Ordering::Acquire) {
        let mut state = shared.state();
        let last = state.directory.end();
        state.broadcast(&last);
        let run = state.node.run();
        drop(state);
        lanes.send(LaneCaller::Nodes, ClusterRequest::EndRun { run });
    }
}

impl DriverState {
    /// Reads the rows soon: another node has sent a wake-up, or one may be missing.
    fn on_wake(&mut self, now_ms: u64) {
        self.node.on_wake(now_ms);
        self.groups.on_wake(now_ms);
        if let Some(matches) = &mut self.matches {
            matches.node.on_wake(now_ms);
        }
    }

    fn poll_matches(&mut self, now_ms: u64, lanes: &StoreLanes) {
        let run = self.node.is_valid(now_ms).then(|| self.node.run());
        let matches = self.matches.as_mut();
        let outputs = matches.map(|matches| matches.poll(now_ms, run, &self.nodes));
        self.dispatch_matches(outputs.unwrap_or_default(), lanes);
    }

    /// Handles a reply about matches; `None`: the outcome of the request is unknown.
    fn on_match_reply(
        &mut self,
        now_ms: u64,
        id: RequestId,
        reply: Option<ClusterReply>,
        lanes: &StoreLanes,
    ) {
        let matches = self.matches.as_mut();
        let outputs = matches.map(|matches| matches.on_reply(now_ms, id, reply));
        self.dispatch_matches(outputs.unwrap_or_default(), lanes);
    }

    fn dispatch_matches(&mut self, outputs: Vec<MatchOutput>, lanes: &StoreLanes) {
        for output in outputs {
            match output {
                MatchOutput::Store(id, request) => {
                    self.stats.requests += 1;
                    lanes.send(LaneCaller::Matches(id), ClusterRequest::Match(request));
                }
                MatchOutput::Wake(node) => self.send(BusPeer::Node(node), &BusMessage::Wake),
                // Kept for the tick.
                _ => {}
            }
        }
    }

    fn on_reply(
        &mut self,
        LaneReply { caller, reply }: LaneReply,
        now_ms: u64,
        lanes: &StoreLanes,
    ) {
        match reply {
            Some(ClusterReply::Away) => self.stats.not_executed += 1,
            Some(_) => {}
            None => self.stats.unknown += 1,
        }
        let players = |reply| match reply {
            Some(ClusterReply::Players(players)) => Some(players),
            _ => None,
        };
        match (caller, reply) {
            (LaneCaller::Node(id), Some(reply)) => {
                for output in self.node.on_reply(now_ms, id, reply) {
                    self.dispatch(now_ms, output, lanes);
                }
            }
            (LaneCaller::Node(id), None) => self.node.on_lost_reply(id),
            (LaneCaller::Nodes, Some(ClusterReply::Nodes(nodes))) => self.nodes = nodes,
            (LaneCaller::Nodes, _) => {}
            (LaneCaller::Matches(id), reply) => self.on_match_reply(now_ms, id, reply, lanes),
            (LaneCaller::Messenger(number), reply) => {
                let found = players(reply);
                self.messenger
                    .on_read(number, found.as_deref(), now_ms, &self.nodes);
            }
            (LaneCaller::Groups(number), reply) => {
                self.on_group_reply(number, reply, now_ms, lanes)
            }
            (LaneCaller::Records(number), reply) => self.records.on_reply(number, players(reply)),
        }
    }

    /// Sends the messages of the messenger, and the reads of the messenger and the tick.
    fn poll_messages(&mut self, now_ms: u64, lanes: &StoreLanes) {
        for output in self.messenger.poll(now_ms) {
            match output {
                MessengerOutput::Bus(to, bytes) => {
                    if let Err(error) = self.bus.send(to, &bytes) {
                        tracing::debug!(%error, "message to players not sent");
                    }
                }
                MessengerOutput::Read(number, players) => {
                    let request = ClusterRequest::ReadPlayers {
                        players,
                        with_records: false,
                    };
                    lanes.send(LaneCaller::Messenger(number), request);
                }
            }
        }
        if let Some((number, players)) = self.records.poll(now_ms) {
            let request = ClusterRequest::ReadPlayers {
                players,
                with_records: true,
            };
            lanes.send(LaneCaller::Records(number), request);
        }
    }

    fn dispatch(&mut self, now_ms: u64, output: NodeOutput, lanes: &StoreLanes) {
        let (to, message) = match output {
            NodeOutput::Store(id, request) => {
                self.stats.requests += 1;
                return lanes.send(LaneCaller::Node(id), request);
            }
            NodeOutput::Arrivals(node, arrivals) => {
                (BusPeer::Node(node), BusMessage::Arrivals(arrivals))
            }
            NodeOutput::FreeScene(node) => (BusPeer::Node(node), BusMessage::ReadScenes),
            NodeOutput::ReadNodes => {
                self.next_nodes_ms = 0;
                return;
            }
            NodeOutput::NodeDeath => {
                if let Some(matches) = &mut self.matches {
                    matches.node.on_node_death();
                }
                return;
            }
            NodeOutput::Adopted => {
                if let Some(matches) = &mut self.matches {
                    matches.node.on_adopted(now_ms);
                }
                return;
            }
            NodeOutput::Echo(number) => {
                if let Err(error) = self.bus.send_echo(number) {
                    tracing::debug!(%error, "echo not sent");
                }
                return;
            }
            NodeOutput::Probe(node, number) => {
                return self.bus.probe(BusPeer::Node(node), number);
            }
            NodeOutput::Route {
                gateway,
                route,
                frozen_ms,
            } => (
                BusPeer::Gateway(gateway),
                BusMessage::Route { route, frozen_ms },
            ),
        };
        self.send(to, &message);
    }

    fn send(&mut self, to: BusPeer, message: &BusMessage) {
        if let Err(error) = self.bus.send(to, &message.to_bytes()) {
            // Receivers of hints also read by time, and routes are repeated.
            tracing::debug!(%error, "bus message not sent");
        }
    }

    /// Broadcasts the presence of the node, and adds or removes gateways by theirs.
    fn poll_presence(&mut self, now_ms: u64) {
        let (load, is_draining) = (self.node.load(), self.node.is_draining());
        self.directory.set_load(load, is_draining);
        if let Some(presence) = self.directory.poll(now_ms) {
            self.broadcast(&presence);
        }
        while let Some(change) = self.directory.next_change() {
            match change {
                PeerChange::Appeared(BusPeer::Gateway(gateway)) => self.node.add_gateway(gateway),
                PeerChange::Gone(BusPeer::Gateway(gateway)) => self.node.remove_gateway(gateway),
                _ => {}
            }
        }
    }

    /// Counts the clients of gateways, before the node reports them.
    fn update_report(&mut self, now_ms: u64) {
        if !self.node.is_report_due(now_ms) {
            return;
        }
        let relay = self.relay.as_ref();
        let routed = relay.map(|relay| relay.client_counts());
        let routed = routed.unwrap_or_default();
        let peers = self.directory.peers();
        let gateways = peers.filter(|(peer, _)| matches!(peer, BusPeer::Gateway(_)));
        let counted = gateways.map(|(peer, KnownPeer { presence, .. })| GatewayClients {
            gateway: presence.name.clone(),
            connected: presence.load,
            routed: routed.get(&peer).copied().unwrap_or(0),
        });
        self.node.set_gateway_clients(counted);
    }

    fn broadcast(&mut self, bytes: &[u8]) {
        if let Err(error) = self.bus.send(BusPeer::All, bytes) {
            tracing::debug!(%error, "presence not sent");
        }
    }

    /// Sends the messages of the relay.
    fn poll_relay(&mut self, now_ms: u64) {
        let Some(relay) = &mut self.relay else {
            return;
        };
        for (peer, bytes) in relay.poll(now_ms) {
            if let Err(error) = self.bus.send(peer, &bytes) {
                tracing::debug!(%error, "bus message not sent");
            }
        }
    }

    fn on_bus(&mut self, event: BusEvent, now_ms: u64) {
        let (from, bytes) = match event {
            BusEvent::Message { from, run, bytes } => {
                if self.directory.receive(now_ms, (from, run), &bytes) {
                    return;
                }
                (from, bytes)
            }
            // A missing message may have been a wake-up.
            BusEvent::Gap { .. } | BusEvent::Slow { .. } => return self.on_wake(now_ms),
            BusEvent::Connected => {
                self.node.on_bus_connected(now_ms);
                return self.on_wake(now_ms);
            }
            BusEvent::Echo { number } => return self.node.on_echo(now_ms, number),
            BusEvent::Unreachable { peer, number } => {
                if let BusPeer::Node(node) = peer {
                    self.node.on_unreachable(now_ms, node, number);
                }
                return;
            }
            BusEvent::Disconnected => {
                return tracing::warn!("bus disconnected; connecting again");
            }
            BusEvent::Refused(refusal) => return self.directory.on_refused(refusal),
        };
        if let Some(relay) = &mut self.relay
            && relay.receive(now_ms, from, &bytes)
        {
            return;
        }
        if self.messenger.receive(from, &bytes, now_ms)
            || self.receive_hint(from, &bytes)
            || self.party_values.receive(from, &bytes)
        {
            return;
        }
        match (BusMessage::from_bytes(&bytes), from) {
            (Some(BusMessage::Wake), _) => self.on_wake(now_ms),
            (Some(BusMessage::Arrivals(arrivals)), _) => self.node.on_arrivals(now_ms, &arrivals),
            (Some(BusMessage::ReadScenes), _) => self.node.on_free_scene(),
            (Some(BusMessage::RouteAcknowledged { player, epoch }), BusPeer::Gateway(gateway)) => {
                self.node.on_route_acknowledged(gateway, player, epoch)
            }
            _ => {
                self.stats.unreadable += 1;
                tracing::debug!(%from, "bus message not read: it is none for a node");
            }
        }
    }

    /// The run of a living node with this name.
    pub fn node_named(&self, name: &str) -> Option<NodeRun> {
        // The list of scenes may contain a node that is newer than the list of nodes.
        let mut nodes = self.nodes.iter().chain(&self.node.scene_table().nodes);
        let entry = nodes.find(|entry| entry.name == name && entry.is_alive)?;
        Some(entry.run)
    }
}
