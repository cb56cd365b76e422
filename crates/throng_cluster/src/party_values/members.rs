//! The members of parties: those here, where the others are, and the values that were received of them.

use std::collections::BTreeMap;

use throng_core::ids::{PartyId, PlayerId};

use super::party_message::{MemberStatus, MemberValues};
use crate::ids::ClusterNodeId;

/// A member on this node whose party has members elsewhere.
#[derive(Clone, Debug)]
pub(super) struct OwnMember {
    pub party: PartyId,
    pub epoch: u64,
    pub kind: u16,
    /// The number of the values; each state of a member of this node has another one.
    pub number: u32,
    /// The node that it is about to move to.
    pub moves_to: Option<ClusterNodeId>,
    /// Each with the tick in which the member had it.
    pub values: BTreeMap<u16, (Vec<u8>, u64)>,
    /// The values that changed in this tick, by number of the attribute.
    pub changes: BTreeMap<u16, Option<Vec<u8>>>,
    /// Whether values or the kind changed in this tick.
    pub is_changed: bool,
    /// The nodes that get its values, in ascending order.
    pub listeners: Vec<ClusterNodeId>,
    /// The last tick in which it was here.
    pub tick: u64,
}

impl OwnMember {
    pub fn status(&self, player: PlayerId) -> MemberStatus {
        MemberStatus {
            party: self.party,
            player,
            epoch: self.epoch,
            number: self.number,
        }
    }

    /// All its values.
    pub fn full(&self, player: PlayerId) -> MemberValues {
        let values = self.values.iter();
        let values = values.map(|(id, (value, _))| (*id, Some(value.clone())));
        MemberValues {
            status: self.status(player),
            base: None,
            kind: self.kind,
            values: values.collect(),
        }
    }

    /// The changes of this tick.
    pub fn change(&self, player: PlayerId, base: u32) -> MemberValues {
        let values = self.changes.iter();
        MemberValues {
            status: self.status(player),
            base: Some(base),
            kind: self.kind,
            values: values.map(|(id, value)| (*id, value.clone())).collect(),
        }
    }

    /// The member after it has moved to another node, whose values are requested.
    pub fn into_received(
        self,
        node: ClusterNodeId,
        player: PlayerId,
        now_ms: u64,
    ) -> ReceivedMember {
        let status = self.status(player);
        let values = self.values.into_iter();
        ReceivedMember {
            kind: self.kind,
            values: values.map(|(id, (value, _))| (id, value)).collect(),
            has_values: true,
            requested_ms: None,
            ..ReceivedMember::new(node, &status, now_ms)
        }
    }

    /// Compares its kind and values with the current ones, and notes the changes.
    pub fn set_values<'a>(
        &mut self,
        kind: u16,
        current: impl Iterator<Item = (u16, &'a [u8])>,
        tick: u64,
    ) {
        let had_kind = std::mem::replace(&mut self.kind, kind);
        for (id, value) in current {
            match self.values.get_mut(&id) {
                Some((known, seen)) if known == value => *seen = tick,
                _ => {
                    self.values.insert(id, (value.to_vec(), tick));
                    self.changes.insert(id, Some(value.to_vec()));
                }
            }
        }
        let changes = &mut self.changes;
        self.values.retain(|id, (_, seen)| {
            let is_current = *seen == tick;
            if !is_current {
                changes.insert(*id, None);
            }
            is_current
        });
        self.is_changed = had_kind != kind || !self.changes.is_empty();
    }
}

/// Where a member is that is not on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberLocation {
    pub node: ClusterNodeId,
    /// The highest known epoch of the player; 0 if only its row was read.
    pub epoch: u64,
    /// When its node last sent its status, and so listens to the other members.
    pub heard_ms: Option<u64>,
}

impl MemberLocation {
    pub fn listens(&self, now_ms: u64, expire_ms: u64) -> bool {
        self.heard_ms
            .is_some_and(|heard| now_ms < heard + expire_ms)
    }
}

/// A member on another node, as its node has described it.
#[derive(Clone, Debug)]
pub(super) struct ReceivedMember {
    pub node: ClusterNodeId,
    pub party: PartyId,
    pub epoch: u64,
    /// The number of the values; `None` while all values are needed.
    pub number: Option<u32>,
    pub kind: u16,
    pub values: BTreeMap<u16, Vec<u8>>,
    /// Whether values were received; those of an earlier node count.
    pub has_values: bool,
    /// When its node last sent something about it.
    pub confirmed_ms: u64,
    /// When its values were last requested, or expected without a request; `None`: request them now.
    pub requested_ms: Option<u64>,
}

impl ReceivedMember {
    /// A member without values. They usually follow without a request.
    pub fn new(node: ClusterNodeId, status: &MemberStatus, now_ms: u64) -> Self {
        Self {
            node,
            party: status.party,
            epoch: status.epoch,
            number: None,
            kind: 0,
            values: BTreeMap::new(),
            has_values: false,
            confirmed_ms: now_ms,
            requested_ms: Some(now_ms),
        }
    }

    /// Notes that a node has sent something about it. `false` if that is outdated.
    pub fn confirm(&mut self, node: ClusterNodeId, status: &MemberStatus, now_ms: u64) -> bool {
        if self.epoch > status.epoch {
            return false;
        }
        if self.epoch < status.epoch {
            // It has moved. Its values stay until those of its new node arrive.
            (self.epoch, self.number) = (status.epoch, None);
            self.requested_ms = Some(now_ms);
        }
        (self.node, self.party, self.confirmed_ms) = (node, status.party, now_ms);
        true
    }

    /// Notes that a message is missing, so that all values are requested; `false` if that was known.
    pub fn note_gap(&mut self) -> bool {
        let is_new = self.number.take().is_some();
        if is_new {
            self.requested_ms = None;
        }
        is_new
    }

    /// Applies received values; `false` if they do not follow the known ones.
    pub fn apply(&mut self, received: MemberValues) -> bool {
        if received.base.is_some_and(|base| self.number != Some(base)) {
            return false;
        }
        if received.base.is_none() {
            self.values.clear();
        }
        for (id, value) in received.values {
            match value {
                Some(value) => _ = self.values.insert(id, value),
                None => _ = self.values.remove(&id),
            }
        }
        (self.kind, self.has_values) = (received.kind, true);
        self.number = Some(received.status.number);
        true
    }
}
