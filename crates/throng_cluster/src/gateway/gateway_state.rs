//! The state that the endpoints and the thread of a gateway share.

use std::collections::{BTreeMap, BTreeSet};

use throng_core::ids::PlayerId;
use throng_net::inbox::{ConnectionInfo, DisconnectReason};
use throng_net::outbox::PacketSink;
use throng_protocol::wire::{Channel, ClientId, CloseReason};

use super::counted_times::CountedTimes;
use super::gateway_client::{ClientHome, GatewayClient, KeptLimits};
use super::gateway_settings::GatewaySettings;
use super::login_nodes::LoginNodes;
use super::node_clients::NodeClients;
use super::packet_numbers::{begins_scene, is_welcome};
use super::relayed_message::RelayedMessage;
use crate::bus::{BusEvent, BusMessage, BusPeer, MessageBus};
use crate::link::{LinkClient, LinkEvent, LinkSet};
use crate::messenger::is_announcement;
use crate::routes::PlayerRoutes;

/// The upper bounds of the times of hand-offs.
const HAND_OFF_TIMES_MS: [u64; 10] = [25, 50, 75, 100, 125, 150, 200, 300, 500, 1_000];

/// Counters of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayStats {
    /// Clients that have connected.
    pub connected: u64,
    /// Clients refused because no node is linked, their token names no player, or the gateway closes.
    pub refused: u64,
    /// Clients replaced by a newer one of their player.
    pub replaced: u64,
    /// Take-overs: a client went to another node, or to the same one again.
    pub taken_over: u64,
    /// Clients closed because they had no node in time, or could not go to another one.
    pub lost: u64,
    /// Clients closed because too many of their messages wait.
    pub stuck: u64,
    /// Packets passed to clients.
    pub packets: u64,
    /// Messages of clients passed to nodes.
    pub inputs: u64,
    /// Messages of a node about a client that has left it.
    pub late: u64,
    /// Messages of nodes that could not be read.
    pub unreadable: u64,
}

/// The clients of a gateway.
pub(super) struct GatewayState {
    pub bus: MessageBus,
    pub links: LinkSet,
    pub stats: GatewayStats,
    pub hand_off_times: CountedTimes,
    pub nodes: LoginNodes,
    settings: GatewaySettings,
    pub routes: PlayerRoutes,
    /// Whether the gateway accepts no more clients.
    is_closing: bool,
    clients: BTreeMap<ClientId, GatewayClient>,
    /// The newest client of each player.
    by_player: BTreeMap<PlayerId, ClientId>,
    /// The clients with a node, by their numbers there. Each number is used for one stay at one node.
    at_nodes: NodeClients,
    /// The clients without a node.
    waiting: BTreeSet<ClientId>,
    closing: Vec<(ClientId, CloseReason)>,
    last_client: u32,
    last_link_client: u32,
    /// The time of the last step.
    now_ms: u64,
    buffer: Vec<u8>,
}

impl GatewayState {
    pub fn new(
        bus: MessageBus,
        links: LinkSet,
        nodes: LoginNodes,
        settings: GatewaySettings,
    ) -> Self {
        Self {
            bus,
            links,
            stats: GatewayStats {
                connected: 0,
                refused: 0,
                replaced: 0,
                taken_over: 0,
                lost: 0,
                stuck: 0,
                packets: 0,
                inputs: 0,
                late: 0,
                unreadable: 0,
            },
            hand_off_times: CountedTimes::new(HAND_OFF_TIMES_MS),
            nodes,
            is_closing: false,
            settings,
            routes: PlayerRoutes::new(),
            clients: BTreeMap::new(),
            by_player: BTreeMap::new(),
            at_nodes: NodeClients::default(),
            waiting: BTreeSet::new(),
            closing: Vec::new(),
            last_client: 0,
            last_link_client: 0,
            now_ms: 0,
            buffer: Vec::new(),
        }
    }

    /// The node of a player's route.
    fn route_of(&self, player: PlayerId) -> Option<BusPeer> {
        let route = self.routes.get(player)?;
        Some(BusPeer::Node(route.node))
    }

    /// The node for a client that is not logged in: the linked node of its player's route, or the linked node for logins with the fewest clients.
    /// O(nodes · log clients).
    fn node_for_login(&self, player: PlayerId) -> Option<BusPeer> {
        let route = self.route_of(player);
        if let Some(node) = route.filter(|node| self.links.is_linked(*node)) {
            return Some(node);
        }
        let nodes = self.nodes.open().into_iter().map(BusPeer::Node);
        let linked = nodes.filter(|node| self.links.is_linked(*node));
        let fewest = linked.min_by_key(|node| self.at_nodes.count(*node));
        // Without any linked node for logins, wait for the node of the route.
        fewest.or(route)
    }

    const fn limits(&self) -> KeptLimits {
        KeptLimits {
            messages_max: self.settings.waiting_messages_max,
            bytes_max: self.settings.waiting_bytes_max,
        }
    }

    /// Accepts a client, and gives it to a node. O(nodes · log clients).
    pub fn connect(&mut self, info: ConnectionInfo) -> Option<ClientId> {
        let client = if self.is_closing {
            None
        } else {
            self.admit(info)
        };
        match client {
            Some(client) => {
                self.stats.connected += 1;
                self.find_node(client);
            }
            None => self.stats.refused += 1,
        }
        client
    }

    fn admit(&mut self, info: ConnectionInfo) -> Option<ClientId> {
        let Some(player) = info.claims.player else {
            tracing::warn!(address = ?info.address, "client refused: its token names no player");
            return None;
        };
        let Some(node) = self.node_for_login(player) else {
            tracing::debug!(player = player.0, "client refused: no node is linked");
            return None;
        };
        let client = ClientId(self.last_client.checked_add(1)?);
        self.last_client = client.0;
        if let Some(older) = self.by_player.insert(player, client) {
            // Lost, not closed: the node keeps the session, so that the newer client can resume it.
            self.end(older, DisconnectReason::Lost);
            self.closing.push((older, CloseReason::Replaced));
            self.stats.replaced += 1;
        }
        let home = self.waits_for(node);
        let new = GatewayClient::new(player, info, home);
        self.clients.insert(client, new);
        self.waiting.insert(client);
        Some(client)
    }

    const fn waits_for(&self, node: BusPeer) -> ClientHome {
        ClientHome::Waiting {
            node,
            until_ms: self.now_ms.saturating_add(self.settings.node_wait_ms),
        }
    }

    /// Gives a waiting client to its node, if that is linked. O(messages that the client has sent meanwhile + nodes · log clients).
    fn find_node(&mut self, client: ClientId) {
        let Some(waiting) = self.clients.get(&client) else {
            return;
        };
        let ClientHome::Waiting { node, .. } = waiting.home else {
            return;
        };
        let node = match self.route_of(waiting.player) {
            Some(route) if waiting.is_welcome || self.links.is_linked(route) => route,
            _ if !waiting.is_welcome && !self.links.is_linked(node) => {
                self.node_for_login(waiting.player).unwrap_or(node)
            }
            _ => node,
        };
        if !self.links.is_linked(node) {
            return self.links.greet(node);
        }
        let Some(number) = self.last_link_client.checked_add(1) else {
            return self.close(client, CloseReason::Full);
        };
        self.last_link_client = number;
        let link_client = LinkClient(number);
        let limits = self.limits();
        let Some(waiting) = self.clients.get_mut(&client) else {
            return;
        };
        let (info, messages) = waiting.begin_node();
        self.stats.taken_over += u64::from(info.continues.is_some());
        RelayedMessage::Connected(info).write(&mut self.buffer);
        let mut pushed = self.links.push(node, link_client, &self.buffer);
        for message in messages {
            RelayedMessage::Input(&message).write(&mut self.buffer);
            pushed = pushed.and_then(|()| self.links.push(node, link_client, &self.buffer));
            waiting.count_sent(&message, limits);
            self.stats.inputs += 1;
        }
        waiting.home = ClientHome::Node(node, link_client);
        self.waiting.remove(&client);
        self.at_nodes.insert(link_client, client, node);
        if pushed.is_err() {
            self.stats.stuck += 1;
            self.close(client, CloseReason::Lost);
        }
    }

    /// Passes a message of a client to its node, or keeps it for the next one. The time says how long it waits here.
    pub fn receive(&mut self, now_ms: u64, client: ClientId, message: &[u8]) {
        let limits = self.limits();
        let Some(sender) = self.clients.get_mut(&client) else {
            return;
        };
        let is_taken = match sender.home {
            ClientHome::Node(node, link_client) => {
                RelayedMessage::Input(message).write(&mut self.buffer);
                self.links.set_now_ms(node, now_ms);
                let pushed = self.links.push(node, link_client, &self.buffer);
                sender.count_sent(message, limits);
                self.stats.inputs += u64::from(pushed.is_ok());
                pushed.is_ok()
            }
            ClientHome::Waiting { .. } => sender.keep(message, limits),
        };
        if !is_taken {
            self.stats.stuck += 1;
            let reason = match self.clients.get(&client).map(|client| client.home) {
                Some(ClientHome::Waiting { .. }) => CloseReason::SlowConsumer,
                _ => CloseReason::Lost,
            };
            self.close(client, reason);
        }
    }

    /// Removes a client whose connection has ended.
    pub fn end(&mut self, client: ClientId, reason: DisconnectReason) {
        if let Some(ended) = self.remove(client)
            && let ClientHome::Node(node, link_client) = ended.home
        {
            self.leave_node((node, link_client), reason);
        }
    }

    /// Closes all clients, and accepts no more.
    pub fn close_all(&mut self, reason: CloseReason) {
        self.is_closing = true;
        let clients: Vec<ClientId> = self.clients.keys().copied().collect();
        for client in clients {
            // The nodes keep the sessions, so that clients can resume them at another gateway.
            self.close(client, reason);
        }
        let last = self.nodes.directory.end();
        let _ = self.bus.send(BusPeer::All, &last);
    }

    /// Whether all closes were passed to the endpoints and sent to the nodes.
    pub fn is_closed(&self) -> bool {
        self.is_closing && self.closing.is_empty()
    }

    pub fn client_count(&self) -> usize {
        self.clients.len()
    }

    /// Closes a client from this side.
    fn close(&mut self, client: ClientId, reason: CloseReason) {
        self.end(client, DisconnectReason::Lost);
        self.closing.push((client, reason));
    }

    fn remove(&mut self, client: ClientId) -> Option<GatewayClient> {
        let removed = self.clients.remove(&client)?;
        self.waiting.remove(&client);
        if self.by_player.get(&removed.player) == Some(&client) {
            self.by_player.remove(&removed.player);
        }
        if let ClientHome::Node(_, link_client) = removed.home {
            self.at_nodes.remove(link_client);
        }
        Some(removed)
    }

    fn leave_node(&mut self, (node, link_client): (BusPeer, LinkClient), reason: DisconnectReason) {
        RelayedMessage::Disconnected(reason).write(&mut self.buffer);
        self.links.push_last(node, link_client, &self.buffer);
    }

    /// Handles received messages, and sends what is due.
    pub fn step(&mut self, now_ms: u64, sink: &mut dyn PacketSink) {
        self.now_ms = now_ms;
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
                // Links detect and repeat missing messages.
                BusEvent::Gap { .. }
                | BusEvent::Connected
                | BusEvent::Slow { .. }
                | BusEvent::Echo { .. }
                | BusEvent::Unreachable { .. } => {}
            }
        }
        while let Some(event) = self.links.next_event() {
            self.on_link(event, sink);
        }
        self.find_nodes();
        for (client, reason) in self.closing.drain(..) {
            sink.close(client, reason);
        }
        sink.flush();
        self.follow_presence(now_ms);
        let bus = &mut self.bus;
        self.links.poll(now_ms, |peer, piece| {
            // A piece that is not sent is repeated.
            let _ = bus.send(peer, &piece);
        });
    }

    /// Broadcasts the presence of this gateway, and greets all known nodes.
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

    /// Finds nodes for the waiting clients, and closes those that wait for too long.
    fn find_nodes(&mut self) {
        for client in self.waiting.clone() {
            self.find_node(client);
            let home = self.clients.get(&client).map(|client| client.home);
            if let Some(ClientHome::Waiting { until_ms, .. }) = home
                && self.now_ms >= until_ms
            {
                self.stats.lost += 1;
                self.close(client, CloseReason::Lost);
            }
        }
    }

    fn on_bus_message(&mut self, from: BusPeer, bytes: &[u8]) {
        let Some(BusMessage::Route { route, frozen_ms }) = BusMessage::from_bytes(bytes) else {
            // Announcements to players are sent to all peers, but are only for nodes.
            self.stats.unreadable += u64::from(!is_announcement(bytes));
            return;
        };
        let (player, epoch) = (route.player, self.routes.on_route(route));
        self.links.greet(BusPeer::Node(route.node));
        let known = BusMessage::RouteAcknowledged { player, epoch };
        // If it is lost, the node sends the route again.
        let _ = self.bus.send(from, &known.to_bytes());
        if let Some(&client) = self.by_player.get(&player) {
            self.follow_route(client);
            let frozen_ms = frozen_ms.map(|ms| self.now_ms.saturating_sub(ms.into()));
            if let Some(client) = self.clients.get_mut(&client)
                && let Some(ms) = client.hand_offs.on_route(route.epoch, frozen_ms)
            {
                self.hand_off_times.add(ms);
            }
        }
    }

    /// Moves a client to another node if its player is there now.
    fn follow_route(&mut self, client: ClientId) {
        let Some(moving) = self.clients.get(&client) else {
            return;
        };
        let to = self.route_of(moving.player);
        if let ClientHome::Node(node, link_client) = moving.home
            && let Some(to) = to.filter(|to| *to != node)
        {
            self.leave_node((node, link_client), DisconnectReason::Moved);
            self.wait_for(client, to);
            self.find_node(client);
        }
    }

    /// Moves the clients whose players are at a node that has just been linked. They may have begun at another one, which knows the sessions
    /// of players that have left. O(clients · log clients).
    fn follow_routes_to(&mut self, peer: BusPeer) {
        let elsewhere = self.clients.iter().filter(|(_, client)| {
            let is_at_node = matches!(client.home, ClientHome::Node(node, _) if node != peer);
            is_at_node && self.route_of(client.player) == Some(peer)
        });
        let elsewhere: Vec<ClientId> = elsewhere.map(|(client, _)| *client).collect();
        for client in elsewhere {
            self.follow_route(client);
        }
    }

    /// Makes a client wait for a node, which is known or probable.
    fn wait_for(&mut self, client: ClientId, node: BusPeer) {
        let home = self.waits_for(node);
        let Some(waiting) = self.clients.get_mut(&client) else {
            return;
        };
        waiting.hand_offs.leave_node();
        if let ClientHome::Node(_, link_client) = std::mem::replace(&mut waiting.home, home) {
            self.at_nodes.remove(link_client);
        }
        self.waiting.insert(client);
        if !waiting.can_move() {
            self.stats.lost += 1;
            self.close(client, CloseReason::Lost);
        }
    }

    fn on_link(&mut self, event: LinkEvent, sink: &mut dyn PacketSink) {
        match event {
            LinkEvent::Linked { peer } => self.follow_routes_to(peer),
            LinkEvent::Lost { peer } => {
                let of_peer = |home| matches!(home, ClientHome::Node(node, _) if node == peer);
                let clients = self.clients.iter();
                let lost = clients.filter(|(_, client)| of_peer(client.home));
                let lost: Vec<ClientId> = lost.map(|(client, _)| *client).collect();
                for client in lost {
                    self.wait_for(client, peer);
                }
            }
            LinkEvent::Message {
                peer,
                client,
                bytes,
                ..
            } => self.on_node_message((peer, client), bytes, sink),
        }
    }

    fn on_node_message(
        &mut self,
        (peer, link_client): (BusPeer, LinkClient),
        mut bytes: Vec<u8>,
        sink: &mut dyn PacketSink,
    ) {
        let client = self.at_nodes.get(link_client);
        let Some((client, receiver)) =
            client.and_then(|client| Some((client, self.clients.get_mut(&client)?)))
        else {
            // Packets may arrive after the client has left the node.
            self.stats.late += 1;
            return;
        };
        if receiver.home != ClientHome::Node(peer, link_client) {
            self.stats.unreadable += 1;
            return;
        }
        match RelayedMessage::read(&bytes) {
            Some(RelayedMessage::Packet(channel, packet)) => {
                if channel == Channel::Reliable && !receiver.is_welcome && is_welcome(packet) {
                    receiver.welcome();
                }
                if channel == Channel::Reliable
                    && receiver.hand_offs.waits_for_scene()
                    && begins_scene(packet)
                    && let Some(ms) = receiver.hand_offs.on_scene(self.now_ms)
                {
                    self.hand_off_times.add(ms);
                }
                let kind_bytes = bytes.len() - packet.len();
                let packet = &mut bytes[kind_bytes..];
                if receiver.numbers.translate(packet) {
                    self.stats.packets += 1;
                    sink.deliver(client, channel, packet);
                }
            }
            Some(RelayedMessage::Close(reason)) => {
                self.remove(client);
                self.links.forget(peer, link_client);
                sink.close(client, reason);
            }
            _ => self.stats.unreadable += 1,
        }
    }
}

#[cfg(test)]
mod tests;
