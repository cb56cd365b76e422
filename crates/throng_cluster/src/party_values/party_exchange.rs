//! The state machine of party members on other nodes, without a clock or a socket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use throng_core::ids::{PartyId, PlayerId};

use super::members::{MemberLocation, OwnMember, ReceivedMember};
use super::party_message::{InvalidPartyMessage, MemberStatus, MemberValues, PartyMessage};
use super::settings::{PartyValueSettings, PartyValueStats};
use crate::bus::BusPeer;
use crate::ids::ClusterNodeId;
use crate::request::GroupMember;

/// A player of this node that is in a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberHere {
    /// The player.
    pub player: PlayerId,
    /// Its party.
    pub party: PartyId,
    /// The epoch with which it has arrived on this node.
    pub epoch: u64,
    /// The kind of its object.
    pub kind: u16,
    /// The node that it is about to move to.
    pub moves_to: Option<ClusterNodeId>,
}

/// What is sent to a node in a tick. Values go before statuses: the status of values that are not there yet would look like a lost message.
#[derive(Debug, Default)]
struct NodeMessages {
    gone: Vec<(PlayerId, u64)>,
    values: Vec<MemberValues>,
    statuses: Vec<MemberStatus>,
    requests: Vec<PlayerId>,
}

/// Attributes of party members on other nodes. It has no clock: all times are those of its caller, in milliseconds of a monotonic clock.
///
/// Per tick: [`begin_tick`](Self::begin_tick), [`take_changed`](Self::take_changed), [`publish`](Self::publish) for each of
/// [`shared_members`](Self::shared_members), [`end_tick`](Self::end_tick).
#[derive(Clone, Debug)]
pub struct PartyExchange {
    own_node: ClusterNodeId,
    settings: PartyValueSettings,
    /// The parties with a member on this node, by their rows.
    parties: BTreeMap<PartyId, Vec<PlayerId>>,
    party_of: BTreeMap<PlayerId, PartyId>,
    own: BTreeMap<PlayerId, OwnMember>,
    /// The players to publish, with the version of the players on this node that they were found for.
    shared: (Option<u64>, Vec<(PlayerId, PartyId)>),
    locations: BTreeMap<PlayerId, MemberLocation>,
    received: BTreeMap<PlayerId, ReceivedMember>,
    changed: BTreeSet<PlayerId>,
    /// Parties whose statuses are sent in this tick.
    due_parties: BTreeSet<PartyId>,
    /// Members that are sent in full, by node.
    to_send: BTreeSet<(ClusterNodeId, PlayerId)>,
    arrived: VecDeque<(ClusterNodeId, PartyMessage)>,
    /// Members that have left since the last tick, and the nodes to notify.
    left: Vec<(ClusterNodeId, PlayerId, u64)>,
    outgoing: Vec<(ClusterNodeId, Vec<u8>)>,
    outgoing_bytes: usize,
    next_status_ms: u64,
    /// The time of the tick.
    now_ms: u64,
    last_number: u32,
    tick: u64,
    stats: PartyValueStats,
}

impl PartyExchange {
    /// That of a node without parties.
    #[must_use]
    pub fn new(own_node: ClusterNodeId, settings: PartyValueSettings) -> Self {
        Self {
            own_node,
            settings,
            parties: BTreeMap::new(),
            party_of: BTreeMap::new(),
            own: BTreeMap::new(),
            shared: (None, Vec::new()),
            locations: BTreeMap::new(),
            received: BTreeMap::new(),
            changed: BTreeSet::new(),
            due_parties: BTreeSet::new(),
            to_send: BTreeSet::new(),
            arrived: VecDeque::new(),
            left: Vec::new(),
            outgoing: Vec::new(),
            outgoing_bytes: 0,
            next_status_ms: 0,
            now_ms: 0,
            last_number: 0,
            tick: 0,
            stats: PartyValueStats::default(),
        }
    }

    /// Its counters.
    #[must_use]
    pub const fn stats(&self) -> PartyValueStats {
        self.stats
    }

    /// Sets the members of a party with a member on this node, as they were read; without members, the party has none here any more.
    pub fn set_party(&mut self, party: PartyId, members: &[GroupMember]) {
        for player in self.parties.remove(&party).unwrap_or_default() {
            if self.party_of.get(&player) == Some(&party) {
                self.party_of.remove(&player);
            }
        }
        self.shared.0 = None;
        if members.is_empty() {
            return;
        }
        for member in members {
            self.party_of.insert(member.player, party);
            self.note_owner(member);
        }
        let players = members.iter().map(|member| member.player);
        self.parties.insert(party, players.collect());
        self.due_parties.insert(party);
    }

    /// Notes the node of a member by its row. If it was outdated, the node of the member corrects it with its next status.
    fn note_owner(&mut self, member: &GroupMember) {
        let node = member.owner.map(|run| run.node);
        let Some(node) = node.filter(|node| *node != self.own_node) else {
            self.locations.remove(&member.player);
            return;
        };
        let known = self.locations.get(&member.player);
        if known.is_none_or(|known| known.node != node) {
            let location = MemberLocation {
                node,
                epoch: known.map_or(0, |known| known.epoch),
                heard_ms: None,
            };
            self.locations.insert(member.player, location);
        }
    }

    /// Handles a message of the bus. `false` if it is not about party members.
    pub fn receive(&mut self, from: BusPeer, bytes: &[u8]) -> bool {
        let BusPeer::Node(from) = from else {
            return false;
        };
        match PartyMessage::from_bytes(bytes) {
            None => return false,
            Some(Err(InvalidPartyMessage::Version)) => self.stats.other_versions += 1,
            Some(Err(InvalidPartyMessage::Malformed)) => self.stats.malformed += 1,
            Some(Ok(_)) if self.arrived.len() >= self.settings.waiting_max => {
                self.stats.dropped += 1;
            }
            Some(Ok(message)) => {
                self.stats.received += 1;
                self.arrived.push_back((from, message));
            }
        }
        true
    }

    /// Handles the messages that have arrived. Call it after the players and parties of the tick are known. O(messages + members elsewhere).
    pub fn begin_tick(&mut self, now_ms: u64, is_here: impl Fn(PlayerId) -> bool) {
        self.tick += 1;
        self.now_ms = now_ms;
        let party_of = &self.party_of;
        let is_member =
            |player: &PlayerId| party_of.get(player).copied().filter(|_| !is_here(*player));
        self.locations
            .retain(|player, _| is_member(player).is_some());
        let (changed, expired) = (&mut self.changed, &mut self.stats.expired);
        let expire_ms = self.settings.expire_ms;
        self.received.retain(|player, member| {
            let is_wanted = is_member(player) == Some(member.party);
            let is_expired = now_ms >= member.confirmed_ms + expire_ms;
            if is_wanted && is_expired {
                *expired += 1;
            }
            if !is_wanted || is_expired {
                changed.insert(*player);
            }
            is_wanted && !is_expired
        });
        for (from, message) in std::mem::take(&mut self.arrived) {
            match message {
                PartyMessage::Status(all) => {
                    for status in all {
                        self.on_status(from, &status, &is_here);
                    }
                }
                PartyMessage::Values(all) => {
                    for values in all {
                        self.on_values(from, values, &is_here);
                    }
                }
                PartyMessage::Request(players) => {
                    let own = players
                        .iter()
                        .filter(|player| self.own.contains_key(player));
                    self.to_send.extend(own.map(|player| (from, *player)));
                }
                PartyMessage::Gone(all) => {
                    for (player, epoch) in all {
                        self.on_gone(player, epoch);
                    }
                }
            }
        }
    }

    /// Notes that a member is on a node, which listens. `false` if the player is in no party of this node or is here, or if that is outdated.
    fn note_location(
        &mut self,
        from: ClusterNodeId,
        status: &MemberStatus,
        is_here: impl Fn(PlayerId) -> bool,
    ) -> bool {
        let &MemberStatus {
            party,
            player,
            epoch,
            ..
        } = status;
        if self.party_of.get(&player) != Some(&party) || is_here(player) {
            self.stats.unwanted += 1;
            return false;
        }
        let now_ms = self.now_ms;
        let known = self.locations.get(&player);
        if known.is_some_and(|known| known.epoch > epoch) {
            return false;
        }
        let expire_ms = self.settings.expire_ms;
        let listened = known.is_some_and(|known| {
            (known.node, known.epoch) == (from, epoch) && known.listens(now_ms, expire_ms)
        });
        let location = MemberLocation {
            node: from,
            epoch,
            heard_ms: Some(now_ms),
        };
        self.locations.insert(player, location);
        if !listened {
            self.due_parties.insert(party);
            let members = self.parties.get(&party).into_iter().flatten();
            let own = members.filter(|member| self.own.contains_key(member));
            self.to_send.extend(own.map(|member| (from, *member)));
        }
        true
    }

    fn on_status(
        &mut self,
        from: ClusterNodeId,
        status: &MemberStatus,
        is_here: impl Fn(PlayerId) -> bool,
    ) {
        if !self.note_location(from, status, is_here) {
            return;
        }
        let now_ms = self.now_ms;
        let new = || ReceivedMember::new(from, status, now_ms);
        let member = self.received.entry(status.player).or_insert_with(new);
        if member.confirm(from, status, now_ms)
            && member.number.is_some_and(|number| number != status.number)
            && member.note_gap()
        {
            self.stats.gaps += 1;
        }
    }

    fn on_values(
        &mut self,
        from: ClusterNodeId,
        values: MemberValues,
        is_here: impl Fn(PlayerId) -> bool,
    ) {
        let status = values.status;
        if !self.note_location(from, &status, is_here) {
            return;
        }
        let now_ms = self.now_ms;
        let new = || ReceivedMember::new(from, &status, now_ms);
        let member = self.received.entry(status.player).or_insert_with(new);
        if !member.confirm(from, &status, now_ms) {
            return;
        }
        if member.apply(values) {
            self.changed.insert(status.player);
        } else if member.note_gap() {
            self.stats.gaps += 1;
        }
    }

    fn on_gone(&mut self, player: PlayerId, epoch: u64) {
        let location = self.locations.get(&player);
        if location.is_some_and(|location| location.epoch <= epoch) {
            self.locations.remove(&player);
        }
        let member = self.received.get(&player);
        if member.is_some_and(|member| member.epoch <= epoch) {
            self.received.remove(&player);
            self.changed.insert(player);
        }
    }

    /// Takes the members elsewhere that have changed, in ascending order.
    pub fn take_changed(&mut self) -> BTreeSet<PlayerId> {
        std::mem::take(&mut self.changed)
    }

    /// Counts all members elsewhere as changed: who has taken the changes before has dropped them.
    pub fn set_all_changed(&mut self) {
        self.changed.extend(self.received.keys());
    }

    /// A member elsewhere: its party, the kind of its object, and its values by ascending number. `None` if it is not known.
    #[must_use]
    pub fn member(
        &self,
        player: PlayerId,
    ) -> Option<(PartyId, u16, impl Iterator<Item = (u16, &[u8])>)> {
        let member = self.received.get(&player).filter(|it| it.has_values)?;
        let values = member.values.iter();
        let values = values.map(|(id, value)| (*id, value.as_slice()));
        Some((member.party, member.kind, values))
    }

    /// The players of this node that are in a party with members elsewhere. `version` changes with the players of this node. O(1) if neither
    /// they nor the parties have changed.
    pub fn shared_members(
        &mut self,
        version: u64,
        is_here: impl Fn(PlayerId) -> bool,
    ) -> &[(PlayerId, PartyId)] {
        let (found_for, shared) = &mut self.shared;
        if *found_for != Some(version) {
            *found_for = Some(version);
            shared.clear();
            for (&party, members) in &self.parties {
                let here = members.iter().copied().filter(|member| is_here(*member));
                let here: Vec<PlayerId> = here.collect();
                if here.len() < members.len() {
                    shared.extend(here.into_iter().map(|player| (player, party)));
                }
            }
            shared.sort_unstable();
        }
        shared
    }

    /// Publishes the current values of a member: number of each attribute and its encoded value. A member that is not published in a tick has left.
    /// O(values · log n).
    pub fn publish<'a>(
        &mut self,
        member: MemberHere,
        values: impl Iterator<Item = (u16, &'a [u8])>,
    ) {
        let MemberHere {
            player,
            party,
            epoch,
            kind,
            moves_to,
        } = member;
        let known = self.own.get(&player);
        let is_new = known.is_none_or(|known| (known.party, known.epoch) != (party, epoch));
        if is_new {
            self.leave(player);
            self.due_parties.insert(party);
            self.last_number = self.last_number.wrapping_add(1);
        }
        let (number, tick) = (self.last_number, self.tick);
        let own = self.own.entry(player).or_insert_with(|| OwnMember {
            party,
            epoch,
            kind,
            number,
            moves_to,
            values: BTreeMap::new(),
            changes: BTreeMap::new(),
            is_changed: false,
            listeners: Vec::new(),
            tick,
        });
        (own.moves_to, own.tick) = (moves_to, tick);
        own.set_values(kind, values, tick);
        if is_new {
            // Nodes that listen get all values.
            own.changes.clear();
            own.is_changed = false;
            self.locations.remove(&player);
            self.received.remove(&player);
            let mut nodes = Vec::new();
            self.find_nodes(party, true, &mut nodes);
            self.to_send
                .extend(nodes.into_iter().map(|node| (node, player)));
        }
    }

    /// Finds the nodes with other members of a party, in ascending order: all, or those that listen.
    fn find_nodes(&self, party: PartyId, listening: bool, nodes: &mut Vec<ClusterNodeId>) {
        let members = self.parties.get(&party).into_iter().flatten();
        let locations = members.filter_map(|member| self.locations.get(member));
        let expire_ms = self.settings.expire_ms;
        let found = locations.filter(|it| !listening || it.listens(self.now_ms, expire_ms));
        nodes.clear();
        nodes.extend(found.map(|location| location.node));
        nodes.sort_unstable();
        nodes.dedup();
    }

    /// Removes a member of this node.
    fn leave(&mut self, player: PlayerId) {
        let Some(own) = self.own.remove(&player) else {
            return;
        };
        let is_member = self.party_of.get(&player) == Some(&own.party);
        match own.moves_to {
            Some(node) if is_member => {
                // Clients keep its values until its new node sends them.
                let location = MemberLocation {
                    node,
                    epoch: own.epoch,
                    heard_ms: None,
                };
                self.locations.insert(player, location);
                self.due_parties.insert(own.party);
                let member = own.into_received(node, player, self.now_ms);
                self.received.insert(player, member);
                self.changed.insert(player);
            }
            Some(_) => {}
            None => {
                let nodes = own.listeners.into_iter();
                self.left
                    .extend(nodes.map(|node| (node, player, own.epoch)));
            }
        }
    }

    /// Queues the messages of the tick. `is_alive` is whether a node is alive as far as is known. O(members here).
    pub fn end_tick(&mut self, is_alive: impl Fn(ClusterNodeId) -> bool) {
        let tick = self.tick;
        let absent = self.own.iter().filter(|(_, own)| own.tick != tick);
        for player in absent.map(|(player, _)| *player).collect::<Vec<_>>() {
            self.leave(player);
        }
        let mut messages: BTreeMap<ClusterNodeId, NodeMessages> = BTreeMap::new();
        for (node, player, epoch) in self.left.drain(..) {
            messages.entry(node).or_default().gone.push((player, epoch));
        }
        self.collect_values(&mut messages);
        self.collect_statuses(is_alive, &mut messages);
        self.collect_requests(&mut messages);
        for (node, messages) in messages {
            let NodeMessages {
                gone,
                values,
                statuses,
                requests,
            } = messages;
            let all = [
                PartyMessage::Gone(gone),
                PartyMessage::Values(values),
                PartyMessage::Status(statuses),
                PartyMessage::Request(requests),
            ];
            let all = all.iter().flat_map(PartyMessage::to_messages);
            all.for_each(|bytes| self.enqueue(node, bytes));
        }
    }

    /// The changes of this tick for nodes that listen, and the members to send in full.
    fn collect_values(&mut self, messages: &mut BTreeMap<ClusterNodeId, NodeMessages>) {
        let mut full = BTreeSet::new();
        while full.len() < self.settings.full_per_tick_max.max(1)
            && let Some(pair) = self.to_send.pop_first()
        {
            full.insert(pair);
        }
        let mut all = std::mem::take(&mut self.own);
        for (&player, own) in &mut all {
            self.find_nodes(own.party, true, &mut own.listeners);
            if !std::mem::take(&mut own.is_changed) {
                continue;
            }
            let base = own.number;
            self.last_number = self.last_number.wrapping_add(1);
            own.number = self.last_number;
            for &node in &own.listeners {
                // The change is in the full values, and would not follow them.
                if !full.contains(&(node, player)) {
                    let change = own.change(player, base);
                    messages.entry(node).or_default().values.push(change);
                    self.stats.changes += 1;
                }
            }
            own.changes.clear();
        }
        self.own = all;
        for (node, player) in full {
            if let Some(own) = self.own.get(&player) {
                let values = own.full(player);
                messages.entry(node).or_default().values.push(values);
                self.stats.full += 1;
            }
        }
    }

    /// The statuses of the members of parties that have changed, and of all from time to time.
    fn collect_statuses(
        &mut self,
        is_alive: impl Fn(ClusterNodeId) -> bool,
        messages: &mut BTreeMap<ClusterNodeId, NodeMessages>,
    ) {
        let due = std::mem::take(&mut self.due_parties);
        let are_all_due = self.now_ms >= self.next_status_ms;
        if are_all_due {
            self.next_status_ms = self.now_ms + self.settings.status_interval_ms;
        }
        let mut nodes = Vec::new();
        for (&player, own) in &self.own {
            if !are_all_due && !due.contains(&own.party) {
                continue;
            }
            self.find_nodes(own.party, false, &mut nodes);
            for &node in nodes.iter().filter(|node| is_alive(**node)) {
                let statuses = &mut messages.entry(node).or_default().statuses;
                statuses.push(own.status(player));
                self.stats.statuses += 1;
            }
        }
    }

    /// Requests for the members elsewhere whose values are missing.
    fn collect_requests(&mut self, messages: &mut BTreeMap<ClusterNodeId, NodeMessages>) {
        let (now_ms, interval_ms) = (self.now_ms, self.settings.request_interval_ms);
        let missing = self.received.iter_mut().filter(|(_, member)| {
            let is_due = |at: u64| now_ms >= at + interval_ms;
            member.number.is_none() && member.requested_ms.is_none_or(is_due)
        });
        for (player, member) in missing.take(self.settings.full_per_tick_max.max(1)) {
            member.requested_ms = Some(now_ms);
            let requests = &mut messages.entry(member.node).or_default().requests;
            requests.push(*player);
            self.stats.requests += 1;
        }
    }

    /// Queues a message for the bus.
    fn enqueue(&mut self, node: ClusterNodeId, bytes: Vec<u8>) {
        if self.outgoing_bytes + bytes.len() > self.settings.outgoing_bytes_max {
            self.stats.dropped += 1;
            return;
        }
        self.stats.sent += 1;
        self.outgoing_bytes += bytes.len();
        self.outgoing.push((node, bytes));
    }

    /// Takes the messages for other nodes.
    pub fn take_outgoing(&mut self) -> Vec<(ClusterNodeId, Vec<u8>)> {
        self.outgoing_bytes = 0;
        std::mem::take(&mut self.outgoing)
    }
}

#[cfg(test)]
mod tests;
