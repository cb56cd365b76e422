//! A request about several players on any node.

use throng_core::ids::PlayerId;
use throng_store::PostgresSession;

use super::{column, run_at};
use crate::ids::ClusterRecord;
use crate::request::{ClusterReply, PlayerEntry};
use crate::store::ClusterStoreError;

pub(super) fn read_players(
    session: &mut PostgresSession,
    players: &[PlayerId],
    with_records: bool,
) -> Result<ClusterReply, ClusterStoreError> {
    let players: Vec<i64> = players.iter().map(|player| player.0 as i64).collect();
    let rows = session.query(
        "SELECT player, node, run, revision, CASE WHEN $2 THEN record END, epoch, is_adopted FROM cluster_player
            WHERE player = ANY($1) ORDER BY player < 0, player",
        &[&players, &with_records],
    )?;
    let entries = rows.iter().map(|row| {
        let (player, node): (i64, Option<i32>) = (column(row, 0)?, column(row, 1)?);
        let (revision, bytes): (i64, Option<Vec<u8>>) = (column(row, 3)?, column(row, 4)?);
        let epoch: i64 = column(row, 5)?;
        Ok(PlayerEntry {
            player: PlayerId(player as u64),
            owner: node.map(|_| run_at(row, 1)).transpose()?,
            epoch: epoch as u64,
            is_adopted: column(row, 6)?,
            record: bytes.map(|bytes| ClusterRecord {
                revision: revision as u64,
                bytes,
            }),
        })
    });
    let entries = entries.collect::<Result<_, ClusterStoreError>>()?;
    Ok(ClusterReply::Players(entries))
}
