//! Reads of the rows for operators.

use throng_core::ids::PlayerId;

use super::{PostgresRows, column, run_at};
use crate::ids::{ClusterRecord, NodeRun};
use crate::store::ClusterStoreError;

/// The row of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOverview {
    /// Its name.
    pub name: String,
    /// Its newest run.
    pub run: NodeRun,
    /// Whether it is alive: it has not ended, and its heartbeat is in time.
    pub is_alive: bool,
    /// The age of its heartbeat by the clock of the server, in milliseconds.
    pub heartbeat_age_ms: u64,
    /// The load of its last heartbeat.
    pub load: u64,
    /// Whether it drains: it gives up its scenes, and claims neither scenes nor players of dead nodes.
    pub is_draining: bool,
    /// The players that its newest run owns, adopted or not.
    pub players: u64,
}

/// The row of a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerOverview {
    /// The player.
    pub player: PlayerId,
    /// Whether a node owns it, dead or alive.
    pub is_owned: bool,
    /// Its record.
    pub record: ClusterRecord,
}

impl PostgresRows {
    /// All nodes, by ascending name. O(nodes + players).
    ///
    /// # Errors
    /// [`ClusterStoreError`].
    pub fn read_node_overview(&mut self) -> Result<Vec<NodeOverview>, ClusterStoreError> {
        let rows = self.session()?.query(
            "SELECT name, node, run, cluster_is_alive(node, run, NULL), greatest(cluster_now_ms(NULL) - heartbeat_ms, 0),
                (SELECT count(*) FROM cluster_player p WHERE p.node = n.node AND p.run = n.run), load, is_draining
             FROM cluster_node n ORDER BY name",
            &[],
        )?;
        let node = |row| -> Result<NodeOverview, ClusterStoreError> {
            let (age_ms, players): (i64, i64) = (column(row, 4)?, column(row, 5)?);
            let load: i64 = column(row, 6)?;
            Ok(NodeOverview {
                name: column(row, 0)?,
                run: run_at(row, 1)?,
                is_alive: column(row, 3)?,
                heartbeat_age_ms: age_ms as u64,
                load: load as u64,
                is_draining: column(row, 7)?,
                players: players as u64,
            })
        };
        rows.iter().map(node).collect()
    }

    /// All players with their records, by ascending id. For checks, not for play: O(players and their bytes).
    ///
    /// # Errors
    /// [`ClusterStoreError`].
    pub fn read_player_overview(&mut self) -> Result<Vec<PlayerOverview>, ClusterStoreError> {
        let rows = self.session()?.query(
            "SELECT player, node IS NOT NULL, revision, record FROM cluster_player ORDER BY player < 0, player",
            &[],
        )?;
        let player = |row| -> Result<PlayerOverview, ClusterStoreError> {
            let (player, revision): (i64, i64) = (column(row, 0)?, column(row, 2)?);
            Ok(PlayerOverview {
                player: PlayerId(player as u64),
                is_owned: column(row, 1)?,
                record: ClusterRecord {
                    revision: revision as u64,
                    bytes: column(row, 3)?,
                },
            })
        };
        rows.iter().map(player).collect()
    }
}
