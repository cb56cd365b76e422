//! The groups of the players of a node, as they were read.

use std::collections::{BTreeMap, BTreeSet};

use throng_core::ids::PlayerId;

use super::group_event::GroupEvent;
use crate::request::{GroupEntry, GroupId, GroupKind, PlayerGroup};

/// The run of the node, and the epoch, with which a player has arrived.
type PlayerArrival = (u64, u64);

/// A player of the node.
#[derive(Clone, Copy, Debug, Default)]
struct KnownPlayer {
    arrival: PlayerArrival,
    is_read: bool,
    groups: GroupOfEachKind,
}

/// The group and the revision of each kind.
type GroupOfEachKind = [(Option<GroupId>, u64); GroupKind::ALL.len()];

/// The players of the node, and their groups.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownGroups {
    players: BTreeMap<PlayerId, KnownPlayer>,
    groups: BTreeMap<GroupId, GroupEntry>,
    changed_players: BTreeSet<(PlayerId, GroupKind)>,
    changed_groups: BTreeSet<GroupId>,
}

impl KnownGroups {
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.players.keys().copied()
    }

    pub fn is_here(&self, player: PlayerId) -> bool {
        self.players.contains_key(&player)
    }

    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Sets the players of the node, in ascending order. Returns those that have arrived. A player that has left and come back since the last
    /// call is in its groups again: its new object has no component yet. O(n) if nothing changes.
    pub fn set_players(
        &mut self,
        present: impl Iterator<Item = (PlayerId, PlayerArrival)> + Clone,
    ) -> Vec<PlayerId> {
        let known = self.players.iter();
        let known = known.map(|(player, known)| (*player, known.arrival));
        if known.eq(present.clone()) {
            return Vec::new();
        }
        let present: BTreeMap<PlayerId, PlayerArrival> = present.collect();
        let changed = &mut self.changed_players;
        self.players.retain(|player, known| {
            let stay = present.get(player);
            if stay != Some(&known.arrival) {
                changed.extend(GroupKind::ALL.map(|kind| (*player, kind)));
            }
            stay.is_some()
        });
        let mut arrived = Vec::new();
        for (player, arrival) in present {
            let known = self.players.entry(player).or_default();
            if known.arrival != arrival {
                known.arrival = arrival;
                arrived.push(player);
            }
        }
        self.drop_groups();
        arrived
    }

    /// The revision with which a player can be changed. `None` for a player of another node that is in no known group, and before the first
    /// read.
    pub fn revision(&self, player: PlayerId, kind: GroupKind) -> Option<u64> {
        if let Some(known) = self.players.get(&player) {
            return known.is_read.then_some(known.groups[kind as usize].1);
        }
        let of_kind = self.groups.iter().filter(|(id, _)| id.kind == kind);
        let mut members = of_kind.flat_map(|(_, entry)| &entry.members);
        let member = members.find(|member| member.player == player)?;
        Some(member.revision)
    }

    /// Applies the group of a player.
    pub fn set_player(&mut self, new: PlayerGroup) {
        let Some(known) = self.players.get_mut(&new.player) else {
            return;
        };
        let own = &mut known.groups[new.kind as usize];
        if new.revision >= own.1 {
            if own.0 != new.group {
                self.changed_players.insert((new.player, new.kind));
            }
            *own = (new.group, new.revision);
        }
    }

    /// Applies a read of these players.
    pub fn on_read(
        &mut self,
        asked: &[PlayerId],
        players: &[PlayerGroup],
        groups: Vec<GroupEntry>,
    ) {
        for player in players {
            self.set_player(*player);
        }
        for player in asked {
            if let Some(known) = self.players.get_mut(player) {
                known.is_read = true;
            }
        }
        for entry in groups {
            let known = self.groups.get(&entry.id);
            if known.is_some_and(|known| known.revision > entry.revision) {
                continue;
            }
            if known.is_none_or(|known| known.revision < entry.revision) {
                self.changed_groups.insert(entry.id);
            }
            self.groups.insert(entry.id, entry);
        }
        self.drop_groups();
    }

    /// Drops the groups without a player of the node.
    fn drop_groups(&mut self) {
        let own = self.players.values().flat_map(|known| known.groups);
        let own: BTreeSet<GroupId> = own.filter_map(|(group, _)| group).collect();
        let changed = &mut self.changed_groups;
        self.groups.retain(|id, _| {
            let stays = own.contains(id);
            if !stays {
                changed.insert(*id);
            }
            stays
        });
    }

    /// Takes the changes since the last call.
    pub fn take_events(&mut self) -> Vec<GroupEvent> {
        let players = std::mem::take(&mut self.changed_players).into_iter();
        let players = players.map(|(player, kind)| GroupEvent::Player {
            player,
            kind,
            group: self
                .players
                .get(&player)
                .and_then(|known| known.groups[kind as usize].0),
        });
        let groups = std::mem::take(&mut self.changed_groups).into_iter();
        let groups = groups.map(|id| {
            let entry = self.groups.get(&id);
            let members = entry.map_or_else(Vec::new, |entry| entry.members.clone());
            GroupEvent::Members(id, members)
        });
        players.chain(groups).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::GroupMember;

    const PARTY: GroupId = GroupId {
        kind: GroupKind::Party,
        id: 3,
    };

    fn read(known: &mut KnownGroups, group: Option<GroupId>, revision: u64, members: u64) {
        let player = PlayerId(1);
        let entry = PlayerGroup {
            player,
            kind: GroupKind::Party,
            group,
            revision,
        };
        let members = (1..=members).map(|player| GroupMember {
            player: PlayerId(player),
            revision,
            owner: None,
        });
        let groups = vec![GroupEntry {
            id: PARTY,
            revision,
            members: members.collect(),
        }];
        known.on_read(&[player], &[entry], groups);
    }

    #[test]
    fn older_rows_do_not_replace_newer_ones() {
        let mut known = KnownGroups::default();
        let arrived = known.set_players([(PlayerId(1), (1, 1))].into_iter());
        assert_eq!(arrived, [PlayerId(1)]);
        assert_eq!(known.revision(PlayerId(1), GroupKind::Party), None);
        read(&mut known, Some(PARTY), 5, 2);
        assert_eq!(known.take_events().len(), 2);
        read(&mut known, None, 4, 1);
        assert_eq!(known.take_events(), []);
        assert_eq!(known.revision(PlayerId(1), GroupKind::Party), Some(5));
        // The second player is on another node.
        assert_eq!(known.revision(PlayerId(2), GroupKind::Party), Some(5));
        assert_eq!(known.revision(PlayerId(2), GroupKind::Guild), None);
        assert_eq!(known.set_players([].into_iter()), []);
        let gone = GroupEvent::Members(PARTY, Vec::new());
        assert!(known.take_events().contains(&gone));
    }

    #[test]
    fn player_that_comes_back_at_once_is_in_its_group_again() {
        let mut known = KnownGroups::default();
        known.set_players([(PlayerId(1), (1, 1))].into_iter());
        read(&mut known, Some(PARTY), 5, 2);
        known.take_events();
        assert_eq!(known.set_players([(PlayerId(1), (1, 1))].into_iter()), []);
        assert_eq!(known.take_events(), []);
        // Also with the same epoch, in a new run of the node.
        for arrival in [(1, 3), (2, 3)] {
            let arrived = known.set_players([(PlayerId(1), arrival)].into_iter());
            assert_eq!(arrived, [PlayerId(1)]);
            let event = GroupEvent::Player {
                player: PlayerId(1),
                kind: GroupKind::Party,
                group: Some(PARTY),
            };
            assert!(known.take_events().contains(&event));
        }
    }
}
