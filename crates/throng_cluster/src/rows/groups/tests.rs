//! Transactions about groups, at their limits.

use super::*;
use crate::ids::ClusterNodeId;
use crate::request::{ClusterReply, ClusterRequest};

const PARTY: GroupKind = GroupKind::Party;

struct GroupTestRows(ClusterRows, NodeRun);

impl GroupTestRows {
    fn new() -> Self {
        let mut rows = ClusterRows::default();
        let name = "n1".to_owned();
        match rows.execute(ClusterRequest::StartRun { name }, 0) {
            ClusterReply::Started(run) => Self(rows, run),
            other => panic!("{other:?}"),
        }
    }

    fn send(&mut self, request: GroupRequest) -> GroupReply {
        match self.0.execute(ClusterRequest::Group(request), 0) {
            ClusterReply::Group(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Changes the group of a player that was read with this revision.
    fn change_at(&mut self, player: u64, change: GroupChange, revision: u64) -> GroupReply {
        let (run, player) = (self.1, PlayerId(player));
        self.send(GroupRequest::Change {
            run,
            player,
            change,
            revision,
        })
    }

    fn change(&mut self, player: u64, change: GroupChange) -> GroupReply {
        let revision = self.0.group_of(PlayerId(player), change.kind()).revision;
        self.change_at(player, change, revision)
    }

    fn party_of(&mut self, player: u64) -> Option<GroupId> {
        self.0.group_of(PlayerId(player), PARTY).group
    }

    fn create(&mut self, player: u64, kind: GroupKind) -> GroupId {
        let reply = self.change(player, GroupChange::Create(kind));
        match reply {
            GroupReply::Changed(PlayerGroup { group, .. }, _) => group.expect("it is in one"),
            other => panic!("{other:?}"),
        }
    }

    fn changed(&mut self, after: u64, changes_max: u64) -> (Vec<u64>, u64) {
        let read = GroupRequest::ReadChanged {
            run: self.1,
            after: Some(after),
            changes_max,
        };
        match self.send(read) {
            GroupReply::ChangedPlayers { players, revision } => {
                (players.iter().map(|player| player.0).collect(), revision)
            }
            other => panic!("{other:?}"),
        }
    }

    fn log_in(&mut self, player: u64) {
        let (run, player, epoch) = (self.1, PlayerId(player), 0);
        self.0
            .execute(ClusterRequest::LogIn { run, player, epoch }, 0);
    }
}

const fn refused(refused: RefusedGroup) -> GroupReply {
    GroupReply::Refused(refused)
}

#[test]
fn member_over_the_maximum_is_refused_until_one_leaves() {
    let mut rows = GroupTestRows::new();
    let party = rows.create(1, PARTY);
    for player in 2..=5 {
        let reply = rows.change(player, GroupChange::Join(party));
        assert!(matches!(reply, GroupReply::Changed(..)), "{reply:?}");
    }
    let sixth = rows.change(6, GroupChange::Join(party));
    assert_eq!(sixth, refused(RefusedGroup::Full));
    rows.change(1, GroupChange::Leave(PARTY));
    rows.change(6, GroupChange::Join(party));
    // The second one is the leader now.
    let members = [2, 3, 4, 5, 6].map(PlayerId);
    assert_eq!(rows.0.groups()[&party], members);
    let guild = rows.create(1, GroupKind::Guild);
    assert_ne!(guild.id, party.id);
    let sixth = rows.change(6, GroupChange::Join(guild));
    assert!(matches!(sixth, GroupReply::Changed(..)), "{sixth:?}");
}

#[test]
fn player_is_in_one_group_and_an_empty_group_disappears() {
    let mut rows = GroupTestRows::new();
    let (one, other) = (rows.create(1, PARTY), rows.create(2, PARTY));
    for change in [GroupChange::Join(other), GroupChange::Create(PARTY)] {
        assert_eq!(rows.change(1, change), refused(RefusedGroup::InGroup));
    }
    assert_eq!(rows.party_of(1), Some(one));
    rows.change(1, GroupChange::Leave(PARTY));
    assert_eq!(rows.0.groups(), [(other, vec![PlayerId(2)])].into());
    let gone = rows.change(3, GroupChange::Join(one));
    assert_eq!(gone, refused(RefusedGroup::NoGroup));
}

#[test]
fn repeated_change_is_done_once_and_a_late_one_is_refused() {
    let mut rows = GroupTestRows::new();
    let first = rows.change_at(1, GroupChange::Create(PARTY), 0);
    assert_eq!(rows.change_at(1, GroupChange::Create(PARTY), 0), first);
    let party = rows.party_of(1).expect("it is in one");
    let join = GroupChange::Join(party);
    assert!(
        matches!(rows.change_at(2, join, 0), GroupReply::Changed(_, others) if others == [PlayerId(1)])
    );
    assert!(
        matches!(rows.change_at(2, join, 0), GroupReply::Changed(entry, _) if entry.revision == 2)
    );
    // It has not founded the party.
    let create = rows.change_at(2, GroupChange::Create(PARTY), 0);
    assert_eq!(create, refused(RefusedGroup::OtherRevision));
    let leave = GroupChange::Leave(PARTY);
    for _ in 0..2 {
        let left = rows.change_at(2, leave, 2);
        assert!(matches!(left, GroupReply::Changed(entry, _) if entry.group.is_none()));
    }
    // A request with an unknown outcome is executed late.
    assert_eq!(
        rows.change_at(2, join, 0),
        refused(RefusedGroup::OtherRevision)
    );
    assert_eq!(rows.0.groups(), [(party, vec![PlayerId(1)])].into());
    // Also when the player is in that group again.
    rows.change(2, join);
    assert_eq!(
        rows.change_at(2, join, 0),
        refused(RefusedGroup::OtherRevision)
    );
    // A player in no group that leaves: an earlier request cannot succeed after that.
    rows.change_at(3, leave, 0);
    assert_eq!(
        rows.change_at(3, join, 0),
        refused(RefusedGroup::OtherRevision)
    );
}

#[test]
fn run_that_has_ended_changes_nothing() {
    let mut rows = GroupTestRows::new();
    rows.1 = NodeRun {
        node: ClusterNodeId(7),
        run: 1,
    };
    let reply = rows.change(1, GroupChange::Create(PARTY));
    assert_eq!(reply, refused(RefusedGroup::RunEnded));
    assert!(rows.0.groups().is_empty());
}

#[test]
fn changed_players_are_those_of_the_caller_in_pages() {
    let mut rows = GroupTestRows::new();
    [1, 2].into_iter().for_each(|player| rows.log_in(player));
    let party = rows.create(1, PARTY);
    assert_eq!(rows.changed(0, 10), (vec![1], 1));
    // Another node owns the third player, but its change concerns the first one.
    rows.change(3, GroupChange::Join(party));
    assert_eq!(rows.changed(1, 10), (vec![1], 2));
    rows.create(2, GroupKind::Guild);
    rows.change(1, GroupChange::Leave(PARTY));
    assert_eq!(rows.changed(2, 1), (vec![2], 3));
    assert_eq!(rows.changed(3, 1), (vec![1], 4));
    assert_eq!(rows.changed(4, 1), (vec![], 4));
}

#[test]
fn ids_wrap_to_the_first_free_one() {
    let mut rows = GroupTestRows::new();
    rows.0.groups.last_id = u32::MAX - 2;
    let ids = [1, 2, 3].map(|player| rows.create(player, PARTY).id);
    assert_eq!(ids, [u32::MAX - 1, 1, 2]);
    rows.0.groups.last_id = u32::MAX - 2;
    assert_eq!(rows.create(4, PARTY).id, 3);
}
