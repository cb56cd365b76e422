//! What the endpoints and the thread of a gateway share.

use std::collections::BTreeMap;

use throng_net::inbox::{ConnectionInfo, DisconnectReason};
use throng_net::outbox::PacketSink;
use throng_protocol::wire::{ClientId, CloseReason};

use super::login_nodes::LoginNodes;
use super::relayed_message::RelayedMessage;
use crate::bus::{BusEvent, BusMessage, BusPeer, MessageBus};
use crate::link::{LinkClient, LinkEvent, LinkSet};
use crate::routes::PlayerRoutes;

/// Counters of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayStats {
    /// Clients that were given to a node.
    pub connected: u64,
    /// Clients that no node could take.
    pub refused: u64,
    /// Clients closed because their node is gone.
    pub lost: u64,
    /// Clients closed because their node does not take what they send.
    pub stuck: u64,
    /// Packets passed to clients.
    pub packets: u64,
    /// Messages of clients passed to nodes.
    pub inputs: u64,
    /// Messages of nodes that could not be read, or were for an unknown client.
    pub unreadable: u64,
}

/// The clients of a gateway.
pub(super) struct GatewayState {
    pub bus: MessageBus,
    pub links: LinkSet,
    pub stats: GatewayStats,
    pub nodes: LoginNodes,
    pub routes: PlayerRoutes,
    /// No client is accepted any more.
    is_closing: bool,
    /// The node of each client.
    clients: BTreeMap<ClientId, BusPeer>,
    closing: Vec<(ClientId, CloseReason)>,
    last_client: u32,
    buffer: Vec<u8>,
}

impl GatewayState {
    pub fn new(bus: MessageBus, links: LinkSet, nodes: LoginNodes) -> Self {
        Self {
            bus,
            links,
            stats: GatewayStats::default(),
            nodes,
            routes: PlayerRoutes::default(),
            is_closing: false,
            clients: BTreeMap::new(),
            closing: Vec::new(),
            last_client: 0,
            buffer: Vec::new(),
        }
    }

    /// The node for a new client: that of its player, or the one for logins with the fewest clients.
    fn node_for(&self, info: &ConnectionInfo) -> Option<BusPeer> {
        let route = info
            .claims
            .player
            .and_then(|player| self.routes.get(player));
        // Of a node that is gone, the player may be nobody's now.
        if let Some(route) = route
            && self.links.is_linked(BusPeer::Node(route.node))
        {
            return Some(BusPeer::Node(route.node));
        }
        let mut counts: BTreeMap<BusPeer, usize> = BTreeMap::new();
        for node in self.clients.values() {
            *counts.entry(*node).or_default() += 1;
        }
        let nodes = self.nodes.open().into_iter().map(BusPeer::Node);
        let linked = nodes.filter(|node| self.links.is_linked(*node));
        linked.min_by_key(|node| counts.get(node).copied().unwrap_or(0))
    }

    /// Gives a client to a node. O(clients).
    pub fn connect(&mut self, info: ConnectionInfo) -> Option<ClientId> {
        let node = self.node_for(&info).filter(|_| !self.is_closing);
        let client = node.and_then(|node| {
            let client = ClientId(self.last_client.checked_add(1)?);
            RelayedMessage::Connected(info).write(&mut self.buffer);
            let pushed = self.links.push(node, LinkClient(client.0), &self.buffer);
            pushed.ok()?;
            self.last_client = client.0;
            self.clients.insert(client, node);
            Some(client)
        });
        match client {
            Some(_) => self.stats.connected += 1,
            None => self.stats.refused += 1,
        }
        client
    }

    /// Passes on what a client has sent.
    pub fn receive(&mut self, client: ClientId, message: &[u8]) {
        let Some(&node) = self.clients.get(&client) else {
            return;
        };
        RelayedMessage::Input(message).write(&mut self.buffer);
        if self
            .links
            .push(node, LinkClient(client.0), &self.buffer)
            .is_ok()
        {
            self.stats.inputs += 1;
            return;
        }
        self.stats.stuck += 1;
        self.end(client, DisconnectReason::Lost);
        self.closing.push((client, CloseReason::Lost));
    }

    /// The connection of a client has ended.
    pub fn end(&mut self, client: ClientId, reason: DisconnectReason) {
        if let Some(node) = self.clients.remove(&client) {
            RelayedMessage::Disconnected(reason).write(&mut self.buffer);
            self.links
                .push_last(node, LinkClient(client.0), &self.buffer);
        }
    }

    /// Closes all clients, and accepts no more.
    pub fn close_all(&mut self, reason: CloseReason) {
        self.is_closing = true;
        let clients: Vec<ClientId> = self.clients.keys().copied().collect();
        for client in clients {
            // Not closed by the client: it may resume at another gateway.
            self.end(client, DisconnectReason::Lost);
            self.closing.push((client, reason));
        }
        let last = self.nodes.directory.end();
        let _ = self.bus.send(BusPeer::All, &last);
    }

    /// Whether all clients were closed, and all nodes know it.
    pub fn is_closed(&self) -> bool {
        self.is_closing && self.closing.is_empty()
    }

    pub fn client_count(&self) -> usize {
        self.clients.len()
    }

    /// Handles what has arrived, and sends what waits.
    pub fn step(&mut self, now_ms: u64, sink: &mut dyn PacketSink) {
        while let Some(event) = self.bus.receive() {
            match event {
                BusEvent::Message { from, run, bytes } => {
                    let directory = &mut self.nodes.directory;
                    if !directory.receive(now_ms, (from, run), &bytes)
                        && !self.links.receive(now_ms, from, &bytes)
                    {
                        self.on_bus_message(from, &bytes);
                    }
                }
                BusEvent::Refused(refusal) => self.nodes.directory.on_refused(refusal),
                BusEvent::Disconnected => tracing::warn!("bus disconnected; connecting again"),
                // Links notice what is missing.
                BusEvent::Gap { .. } | BusEvent::Connected | BusEvent::Slow { .. } => {}
            }
        }
        for (client, reason) in self.closing.drain(..) {
            sink.close(client, reason);
        }
        while let Some(event) = self.links.next_event() {
            self.on_link(event, sink);
        }
        sink.flush();
        self.follow_presence(now_ms);
        let bus = &mut self.bus;
        self.links.poll(now_ms, |peer, piece| {
            // What is not sent is repeated.
            let _ = bus.send(peer, &piece);
        });
    }

    /// Broadcasts the presence of this gateway, and greets all nodes.
    fn follow_presence(&mut self, now_ms: u64) {
        let load = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        self.nodes.directory.set_load(load, self.is_closing);
        if let Some(presence) = self.nodes.directory.poll(now_ms) {
            let _ = self.bus.send(BusPeer::All, &presence);
        }
        while self.nodes.directory.next_change().is_some() {}
        for node in self.nodes.all() {
            self.links.greet(BusPeer::Node(node));
        }
    }

    fn on_bus_message(&mut self, from: BusPeer, bytes: &[u8]) {
        let Some(BusMessage::Route(route)) = BusMessage::from_bytes(bytes) else {
            self.stats.unreadable += 1;
            return;
        };
        let (player, epoch) = (route.player, self.routes.on_route(route));
        self.links.greet(BusPeer::Node(route.node));
        let known = BusMessage::RouteAcknowledged { player, epoch };
        // If it is lost, the node sends the route again.
        let _ = self.bus.send(from, &known.to_bytes());
    }

    fn on_link(&mut self, event: LinkEvent, sink: &mut dyn PacketSink) {
        let (peer, link_client, bytes) = match event {
            LinkEvent::Linked { .. } => return,
            LinkEvent::Lost { peer } => {
                let mut lost = Vec::new();
                self.clients.retain(|client, node| {
                    let is_lost = *node == peer;
                    if is_lost {
                        lost.push(*client);
                    }
                    !is_lost
                });
                self.stats.lost += lost.len() as u64;
                for client in lost {
                    sink.close(client, CloseReason::Lost);
                }
                return;
            }
            LinkEvent::Message {
                peer,
                client,
                bytes,
            } => (peer, client, bytes),
        };
        let client = ClientId(link_client.0);
        // Of a client that has gone, packets may still be under way.
        if self.clients.get(&client) != Some(&peer) {
            return;
        }
        match RelayedMessage::read(&bytes) {
            Some(RelayedMessage::Packet(channel, packet)) => {
                self.stats.packets += 1;
                sink.deliver(client, channel, packet);
            }
            Some(RelayedMessage::Close(reason)) => {
                self.clients.remove(&client);
                self.links.forget(peer, link_client);
                sink.close(client, reason);
            }
            _ => self.stats.unreadable += 1,
        }
    }
}
