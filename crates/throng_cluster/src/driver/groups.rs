//! Drives the groups of the players of the node.

use super::lanes::{LaneCaller, StoreLanes};
use super::node_thread::DriverState;
use crate::bus::BusPeer;
use crate::groups::GroupOutput;
use crate::request::{ClusterReply, ClusterRequest, GroupReply};

impl DriverState {
    pub(super) fn poll_groups(&mut self, now_ms: u64, lanes: &StoreLanes) {
        let run = self.node.is_valid(now_ms).then(|| self.node.run());
        let outputs = self.groups.poll(now_ms, run);
        self.dispatch_groups(outputs, lanes);
    }

    /// Handles a reply about groups; `None`: the outcome of the request is unknown.
    pub(super) fn on_group_reply(
        &mut self,
        number: u64,
        reply: Option<ClusterReply>,
        now_ms: u64,
        lanes: &StoreLanes,
    ) {
        let reply = match reply {
            Some(ClusterReply::Group(reply)) => Some(reply),
            _ => None,
        };
        if let Some(GroupReply::Groups { groups, .. }) = &reply {
            // The members are likely to get messages.
            let own = self.node.run().node;
            for member in groups.iter().flat_map(|group| &group.members) {
                if let Some(run) = member.owner.filter(|run| run.node != own) {
                    self.messenger.note_location(member.player, run);
                }
            }
        }
        let outputs = self.groups.on_reply(now_ms, number, reply);
        self.dispatch_groups(outputs, lanes);
    }

    /// Handles a hint that groups have changed. `false` if it is none.
    pub(super) fn receive_hint(&mut self, from: BusPeer, bytes: &[u8]) -> bool {
        matches!(from, BusPeer::Node(_)) && self.groups.receive(bytes)
    }

    /// Sends the attributes of party members.
    pub(super) fn send_party_values(&mut self) {
        for (node, bytes) in self.party_values.take_outgoing() {
            if let Err(error) = self.bus.send(BusPeer::Node(node), &bytes) {
                // The other node notices the gap.
                tracing::debug!(%error, "attributes of party members not sent");
            }
        }
    }

    fn dispatch_groups(&mut self, outputs: Vec<GroupOutput>, lanes: &StoreLanes) {
        for output in outputs {
            match output {
                GroupOutput::Store(number, request) => {
                    self.stats.requests += 1;
                    lanes.send(LaneCaller::Groups(number), ClusterRequest::Group(request));
                }
                GroupOutput::Hint(bytes) => {
                    let own = self.node.run().node;
                    let others = self.nodes.iter().filter(|entry| entry.is_alive);
                    for entry in others.filter(|entry| entry.run.node != own) {
                        if let Err(error) = self.bus.send(BusPeer::Node(entry.run.node), &bytes) {
                            // The other nodes also read changes by time.
                            tracing::debug!(%error, "hint about groups not sent");
                        }
                    }
                }
            }
        }
    }
}
