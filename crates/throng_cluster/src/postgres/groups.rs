//! Requests about groups, as calls of functions of the database.

use throng_core::ids::PlayerId;
use throng_store::PostgresSession;
use tokio_postgres::Row;

use super::{column, first, foreign, parameters, run_at};
use crate::ids::NodeRun;
use crate::request::{
    GroupChange, GroupEntry, GroupId, GroupKind, GroupMember, GroupReply, GroupRequest,
    PlayerGroup, RefusedGroup,
};
use crate::store::ClusterStoreError;

pub(super) fn execute(
    session: &mut PostgresSession,
    request: &GroupRequest,
    at_ms: Option<i64>,
) -> Result<GroupReply, ClusterStoreError> {
    match request {
        GroupRequest::Change {
            run,
            player,
            change,
            revision,
        } => change_group(session, (*run, *player), *change, *revision, at_ms),
        GroupRequest::Read { players } => read(session, players),
        GroupRequest::ReadChanged {
            run,
            after,
            changes_max,
        } => read_changed(session, *run, *after, *changes_max),
    }
}

fn change_group(
    session: &mut PostgresSession,
    (run, player): (NodeRun, PlayerId),
    change: GroupChange,
    revision: u64,
    at_ms: Option<i64>,
) -> Result<GroupReply, ClusterStoreError> {
    let ((node, run), kind) = (parameters(run), change.kind());
    let (change, id) = match change {
        GroupChange::Create(_) => (0_i32, None),
        GroupChange::Join(group) => (1, Some(i64::from(group.id))),
        GroupChange::Leave(_) => (2, None),
    };
    let members_max = kind.members_max() as i64;
    let rows = session.query(
        "SELECT _code, _group, _new, _others FROM cluster_change_group($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &[
            &node,
            &run,
            &(player.0 as i64),
            &number_of(kind),
            &change,
            &id,
            &(revision as i64),
            &members_max,
            &at_ms,
        ],
    )?;
    let row = first(&rows)?;
    let code: i32 = column(row, 0)?;
    Ok(GroupReply::Refused(match code {
        0 => {
            let (group, revision): (Option<i64>, i64) = (column(row, 1)?, column(row, 2)?);
            let changed = PlayerGroup {
                player,
                kind,
                group: group.map(|id| group_id(kind, id)).transpose()?,
                revision: revision as u64,
            };
            return Ok(GroupReply::Changed(changed, players_at(row, 3)?));
        }
        1 => RefusedGroup::RunEnded,
        2 => RefusedGroup::OtherRevision,
        3 => RefusedGroup::InGroup,
        4 => RefusedGroup::NoGroup,
        5 => RefusedGroup::Full,
        _ => return Err(foreign(&format!("result {code}"))),
    }))
}

fn read(
    session: &mut PostgresSession,
    players: &[PlayerId],
) -> Result<GroupReply, ClusterStoreError> {
    let wanted: Vec<i64> = players.iter().map(|player| player.0 as i64).collect();
    let rows = session.query(
        "SELECT _player, _kind, _id, _revision, _group_revision, _owner_node, _owner_run FROM cluster_read_groups($1)",
        &[&wanted],
    )?;
    let mut players = Vec::new();
    let mut groups: Vec<GroupEntry> = Vec::new();
    for row in &rows {
        let (player, kind): (i64, i32) = (column(row, 0)?, column(row, 1)?);
        let (player, kind) = (PlayerId(player as u64), kind_of(kind)?);
        let id: Option<i64> = column(row, 2)?;
        let id = id.map(|id| group_id(kind, id)).transpose()?;
        let (revision, of_group): (i64, Option<i64>) = (column(row, 3)?, column(row, 4)?);
        let revision = revision as u64;
        let (Some(id), Some(of_group)) = (id, of_group) else {
            players.push(PlayerGroup {
                player,
                kind,
                group: id,
                revision,
            });
            continue;
        };
        let node: Option<i32> = column(row, 5)?;
        let member = GroupMember {
            player,
            revision,
            owner: node.map(|_| run_at(row, 5)).transpose()?,
        };
        match groups.last_mut().filter(|group| group.id == id) {
            Some(group) => group.members.push(member),
            None => groups.push(GroupEntry {
                id,
                revision: of_group as u64,
                members: vec![member],
            }),
        }
    }
    Ok(GroupReply::Groups { players, groups })
}

fn read_changed(
    session: &mut PostgresSession,
    run: NodeRun,
    after: Option<u64>,
    changes_max: u64,
) -> Result<GroupReply, ClusterStoreError> {
    let ((node, run), after) = (parameters(run), after.map(|after| after as i64));
    let rows = session.query(
        "SELECT _players, _revision FROM cluster_read_changed_groups($1, $2, $3, $4)",
        &[&node, &run, &after, &(changes_max as i64)],
    )?;
    let row = first(&rows)?;
    let revision: i64 = column(row, 1)?;
    Ok(GroupReply::ChangedPlayers {
        players: players_at(row, 0)?,
        revision: revision as u64,
    })
}

fn players_at(row: &Row, nth: usize) -> Result<Vec<PlayerId>, ClusterStoreError> {
    let players: Vec<i64> = column(row, nth)?;
    let players = players.into_iter();
    Ok(players.map(|player| PlayerId(player as u64)).collect())
}

const fn number_of(kind: GroupKind) -> i32 {
    match kind {
        GroupKind::Party => 0,
        GroupKind::Guild => 1,
    }
}

fn kind_of(number: i32) -> Result<GroupKind, ClusterStoreError> {
    let mut kinds = GroupKind::ALL.into_iter();
    let kind = kinds.find(|kind| number_of(*kind) == number);
    kind.ok_or_else(|| foreign(&format!("kind {number} of a group")))
}

fn group_id(kind: GroupKind, id: i64) -> Result<GroupId, ClusterStoreError> {
    let id = u32::try_from(id).map_err(|_| foreign(&format!("id {id} of a group")))?;
    Ok(GroupId { kind, id })
}
