//! The rows of groups, in memory.

use std::collections::{BTreeMap, BTreeSet};

use throng_core::ids::PlayerId;

use super::ClusterRows;
use crate::ids::NodeRun;
use crate::request::{
    GroupChange, GroupEntry, GroupId, GroupKind, GroupMember, GroupReply, GroupRequest,
    PlayerGroup, RefusedGroup,
};

/// The row of a player and a kind. It stays when the player leaves its group.
#[derive(Clone, Copy, Debug, Default)]
struct PlayerGroupRow {
    group: Option<GroupId>,
    revision: u64,
    /// The revision that the last change has replaced: with it, that change is repeated.
    replaced: u64,
    is_founder: bool,
}

/// The rows of groups. All changes have consecutive revisions.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupRows {
    /// The revisions of the groups.
    groups: BTreeMap<GroupId, u64>,
    players: BTreeMap<(PlayerId, GroupKind), PlayerGroupRow>,
    /// The members with the revisions with which they have joined.
    members: BTreeSet<(GroupId, u64, PlayerId)>,
    last_revision: u64,
    last_id: u32,
}

impl ClusterRows {
    pub(super) fn execute_group(&mut self, request: GroupRequest, now_ms: u64) -> GroupReply {
        match request {
            GroupRequest::Change { run, .. } if !self.is_alive(run, now_ms) => {
                GroupReply::Refused(RefusedGroup::RunEnded)
            }
            GroupRequest::Change {
                player,
                change,
                revision,
                ..
            } => match self.groups.change(player, change, revision) {
                Ok((changed, others)) => GroupReply::Changed(changed, others),
                Err(refused) => GroupReply::Refused(refused),
            },
            GroupRequest::Read { players } => self.read_groups(&players),
            GroupRequest::ReadChanged {
                run,
                after,
                changes_max,
            } => self.read_changed_groups(run, after, changes_max),
        }
    }

    /// The members of all groups, in the order in which they joined. By ascending id of the group.
    #[must_use]
    pub fn groups(&self) -> BTreeMap<GroupId, Vec<PlayerId>> {
        let groups = self.groups.groups.keys();
        groups
            .map(|&group| (group, self.groups.members_of(group).collect()))
            .collect()
    }

    /// The group of a player.
    #[must_use]
    pub fn group_of(&self, player: PlayerId, kind: GroupKind) -> PlayerGroup {
        let row = self.groups.players.get(&(player, kind));
        let PlayerGroupRow {
            group, revision, ..
        } = row.copied().unwrap_or_default();
        PlayerGroup {
            player,
            kind,
            group,
            revision,
        }
    }

    fn read_groups(&self, wanted: &[PlayerId]) -> GroupReply {
        let keys = wanted
            .iter()
            .flat_map(|&player| GroupKind::ALL.map(|kind| (player, kind)));
        let players: Vec<PlayerGroup> = keys
            .filter(|key| self.groups.players.contains_key(key))
            .map(|(player, kind)| self.group_of(player, kind))
            .collect();
        let ids: BTreeSet<GroupId> = players.iter().filter_map(|entry| entry.group).collect();
        let groups = ids.into_iter().map(|id| GroupEntry {
            id,
            revision: self.groups.groups.get(&id).copied().unwrap_or_default(),
            members: self
                .groups
                .members_of(id)
                .map(|player| GroupMember {
                    player,
                    revision: self.group_of(player, id.kind).revision,
                    owner: self.players.get(&player).and_then(|row| row.owner),
                })
                .collect(),
        });
        let groups = groups.collect();
        GroupReply::Groups { players, groups }
    }

    fn read_changed_groups(
        &self,
        run: NodeRun,
        after: Option<u64>,
        changes_max: u64,
    ) -> GroupReply {
        let newest = self.groups.last_revision;
        let after = after.unwrap_or(newest);
        let revision = newest.min(after.saturating_add(changes_max));
        let is_new = |at: u64| at > after && at <= revision;
        let own = self.groups.players.iter().filter(|((player, _), row)| {
            let group = row.group.and_then(|group| self.groups.groups.get(&group));
            let is_changed = is_new(row.revision) || group.is_some_and(|at| is_new(*at));
            let owner = self.players.get(player).and_then(|row| row.owner);
            is_changed && owner == Some(run)
        });
        let players: BTreeSet<PlayerId> = own.map(|((player, _), _)| *player).collect();
        let players = players.into_iter().collect();
        GroupReply::ChangedPlayers { players, revision }
    }
}

impl GroupRows {
    fn members_of(&self, group: GroupId) -> impl Iterator<Item = PlayerId> {
        let first = (group, 0, PlayerId(0));
        let last = (group, u64::MAX, PlayerId(u64::MAX));
        self.members.range(first..=last).map(|(.., player)| *player)
    }

    /// Changes the group of a player. Returns the other members of the group that it has joined or left.
    fn change(
        &mut self,
        player: PlayerId,
        change: GroupChange,
        revision: u64,
    ) -> Result<(PlayerGroup, Vec<PlayerId>), RefusedGroup> {
        let kind = change.kind();
        let key = (player, kind);
        let row = self.players.get(&key).copied().unwrap_or_default();
        if row.revision != revision {
            let is_same = match change {
                GroupChange::Create(_) => row.group.is_some() && row.is_founder,
                GroupChange::Join(group) => row.group == Some(group) && !row.is_founder,
                GroupChange::Leave(_) => row.group.is_none(),
            };
            // The request was executed before, and nothing has changed since then.
            let is_repeated = row.revision > 0 && row.replaced == revision && is_same;
            let known = PlayerGroup {
                player,
                kind,
                group: row.group,
                revision: row.revision,
            };
            return is_repeated
                .then_some((known, Vec::new()))
                .ok_or(RefusedGroup::OtherRevision);
        }
        let group = match change {
            GroupChange::Leave(_) => None,
            _ if row.group.is_some() => return Err(RefusedGroup::InGroup),
            GroupChange::Create(kind) => Some(self.next_id(kind)),
            GroupChange::Join(group) if !self.groups.contains_key(&group) => {
                return Err(RefusedGroup::NoGroup);
            }
            GroupChange::Join(group) if self.members_of(group).count() >= kind.members_max() => {
                return Err(RefusedGroup::Full);
            }
            GroupChange::Join(group) => Some(group),
        };
        self.last_revision += 1;
        let at = self.last_revision;
        if let Some(left) = row.group {
            self.members.remove(&(left, row.revision, player));
        }
        if let Some(joined) = group {
            self.members.insert((joined, at, player));
        }
        let changed = group.or(row.group);
        let others = changed.into_iter().flat_map(|group| self.members_of(group));
        let mut others: Vec<PlayerId> = others.filter(|member| *member != player).collect();
        others.sort_unstable();
        if let Some(changed) = changed {
            self.groups.insert(changed, at);
            if group.is_none() && others.is_empty() {
                self.groups.remove(&changed);
            }
        }
        let row = PlayerGroupRow {
            group,
            revision: at,
            replaced: revision,
            is_founder: matches!(change, GroupChange::Create(_)),
        };
        self.players.insert(key, row);
        let entry = PlayerGroup {
            player,
            kind,
            group,
            revision: at,
        };
        Ok((entry, others))
    }

    /// The next id of a group. 0 and `u32::MAX` mean "none" elsewhere.
    fn next_id(&mut self, kind: GroupKind) -> GroupId {
        loop {
            self.last_id = self.last_id % (u32::MAX - 1) + 1;
            let id = self.last_id;
            let id = GroupId { kind, id };
            if !self.groups.contains_key(&id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests;
