//! Reads of the rows for operators.

use throng_core::ids::PlayerId;
use tokio_postgres::Row;

use super::{PostgresRows, column, first, reports, run_at};
use crate::ids::{ClusterRecord, NodeRun};
use crate::request::{GatewayOverview, ReportTable};
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
    /// Whether it has ended, or others have declared it dead. Otherwise it is late if it is not alive.
    pub is_dead: bool,
    /// The age of its heartbeat by the clock of the server, in milliseconds.
    pub heartbeat_age_ms: u64,
    /// The load of its last heartbeat.
    pub load: u64,
    /// Whether it drains: it gives up its scenes, and claims neither scenes nor players of dead nodes.
    pub is_draining: bool,
    /// The players that its newest run owns, adopted or not.
    pub players: u64,
    /// The scenes that its newest run owns.
    pub scenes: u64,
}

/// The row of a scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SceneOverview {
    /// Its name.
    pub name: String,
    /// The name of the node that owns it, dead or alive.
    pub node: Option<String>,
    /// Whether it runs: the run that owns it is alive.
    pub is_running: bool,
    /// The name of the node that runs it while that node is alive.
    pub pinned_to: Option<String>,
    /// The number of changes of its owner.
    pub epoch: u64,
    /// The number of players in it, as its node has reported within the last seconds; `None` if it does not run, or its node does not report
    /// them.
    pub players: Option<u32>,
}

/// A player whose new owner has not adopted it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOffOverview {
    /// The player.
    pub player: PlayerId,
    /// The name of the node that owned it before, dead or alive.
    pub from: String,
    /// The name of the node that has to adopt it.
    pub to: String,
    /// Whether the run that has to adopt it is alive.
    pub is_target_alive: bool,
    /// Time since its owner changed, by the clock of the server, in milliseconds.
    pub age_ms: u64,
}

/// The numbers of tickets and matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchCounts {
    /// Tickets that wait for a match.
    pub waiting_tickets: u64,
    /// Tickets that are in a match.
    pub matched_tickets: u64,
    /// Matches that their nodes have not opened yet.
    pub formed_matches: u64,
    /// Open matches.
    pub ready_matches: u64,
    /// Players on the way to the node of their match, or home.
    pub travelling_players: u64,
}

/// What an operator sees of a cluster: lists of limited lengths, and the numbers of all rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterOverview {
    /// Nodes: those that are alive first, by name, then the others by the age of their heartbeats.
    pub nodes: Vec<NodeOverview>,
    /// The number of all nodes.
    pub nodes_total: u64,
    /// Scenes: those that do not run first, then by name.
    pub scenes: Vec<SceneOverview>,
    /// The number of all scenes.
    pub scenes_total: u64,
    /// Gateways that living nodes have reported within the last seconds, by name.
    pub gateways: Vec<GatewayOverview>,
    /// The number of all these gateways.
    pub gateways_total: u64,
    /// Players that go from one node to another, the longest first.
    pub hand_offs: Vec<HandOffOverview>,
    /// The number of all players that go from one node to another.
    pub hand_offs_total: u64,
    /// Players that log in: a node owns them, and has not adopted them yet.
    pub logins: u64,
    /// Tickets and matches.
    pub matches: MatchCounts,
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

const NODES: &str = "SELECT name, node, run, cluster_is_alive(node, run, NULL),
        greatest(cluster_now_ms(NULL) - heartbeat_ms, 0), load, is_draining, is_dead,
        (SELECT count(*) FROM cluster_player p WHERE p.node = n.node AND p.run = n.run),
        (SELECT count(*) FROM cluster_scene s WHERE s.node = n.node AND s.run = n.run)
    FROM cluster_node n
    ORDER BY 4 DESC, CASE WHEN NOT cluster_is_alive(node, run, NULL) THEN -heartbeat_ms END, name LIMIT $1";

const SCENES: &str = "SELECT s.name, n.name, coalesce(cluster_is_alive(s.node, s.run, NULL), FALSE), s.pinned_to, s.epoch,
        s.node, s.run
    FROM cluster_scene s LEFT JOIN cluster_node n ON n.node = s.node ORDER BY 3, 1 LIMIT $1";

const HAND_OFFS: &str = "SELECT p.player, before.name, after.name, cluster_is_alive(p.node, p.run, NULL),
        greatest(cluster_now_ms(NULL) - p.given_ms, 0)
    FROM cluster_player p JOIN cluster_node before ON before.node = p.given_by JOIN cluster_node after ON after.node = p.node
    WHERE p.node IS NOT NULL AND NOT p.is_adopted ORDER BY p.given_ms, p.player < 0, p.player LIMIT $1";

/// `state < 2` selects the index of open matches.
const COUNTS: &str = "SELECT (SELECT count(*) FROM cluster_node), (SELECT count(*) FROM cluster_scene),
        (SELECT count(*) FROM cluster_player WHERE node IS NOT NULL AND NOT is_adopted AND given_by IS NOT NULL),
        (SELECT count(*) FROM cluster_player WHERE node IS NOT NULL AND NOT is_adopted AND given_by IS NULL),
        (SELECT count(*) FROM cluster_ticket WHERE match_epoch IS NULL AND NOT is_gone),
        (SELECT count(*) FROM cluster_ticket WHERE match_epoch IS NOT NULL AND NOT is_gone),
        (SELECT count(*) FROM cluster_match WHERE state < 2 AND state = 0),
        (SELECT count(*) FROM cluster_match WHERE state < 2 AND state = 1),
        (SELECT count(*) FROM cluster_match_player WHERE is_travelling)";

fn node_of(row: &Row) -> Result<NodeOverview, ClusterStoreError> {
    let (age_ms, load): (i64, i64) = (column(row, 4)?, column(row, 5)?);
    let (players, scenes): (i64, i64) = (column(row, 8)?, column(row, 9)?);
    Ok(NodeOverview {
        name: column(row, 0)?,
        run: run_at(row, 1)?,
        is_alive: column(row, 3)?,
        is_dead: column(row, 7)?,
        heartbeat_age_ms: age_ms as u64,
        load: load as u64,
        is_draining: column(row, 6)?,
        players: players as u64,
        scenes: scenes as u64,
    })
}

fn scene_of(row: &Row, reports: &ReportTable) -> Result<SceneOverview, ClusterStoreError> {
    let (name, epoch): (String, i64) = (column(row, 0)?, column(row, 4)?);
    let node: Option<i32> = column(row, 5)?;
    let owner = node.map(|_| run_at(row, 5)).transpose()?;
    Ok(SceneOverview {
        players: owner.and_then(|owner| reports.scene_players(owner, &name)),
        name,
        node: column(row, 1)?,
        is_running: column(row, 2)?,
        pinned_to: column(row, 3)?,
        epoch: epoch as u64,
    })
}

fn hand_off_of(row: &Row) -> Result<HandOffOverview, ClusterStoreError> {
    let (player, age_ms): (i64, i64) = (column(row, 0)?, column(row, 4)?);
    Ok(HandOffOverview {
        player: PlayerId(player as u64),
        from: column(row, 1)?,
        to: column(row, 2)?,
        is_target_alive: column(row, 3)?,
        age_ms: age_ms as u64,
    })
}

impl PostgresRows {
    /// All nodes, by ascending name. O(nodes + players).
    ///
    /// # Errors
    /// [`ClusterStoreError`].
    pub fn read_node_overview(&mut self) -> Result<Vec<NodeOverview>, ClusterStoreError> {
        let rows = self.session()?.query(NODES, &[&None::<i64>])?;
        let nodes = rows.iter().map(node_of);
        let mut nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        nodes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(nodes)
    }

    /// Nodes, scenes, gateways, hand-offs in flight, tickets and matches; `rows_max` of each list. A few statements, each with its own view of the rows:
    /// a number can differ from a list. O(nodes + scenes + players + tickets + open matches + what nodes
    /// report).
    ///
    /// # Errors
    /// [`ClusterStoreError`].
    pub fn read_cluster_overview(
        &mut self,
        rows_max: usize,
    ) -> Result<ClusterOverview, ClusterStoreError> {
        let session = self.session()?;
        let rows_max = i64::try_from(rows_max).unwrap_or(i64::MAX);
        let nodes = session.query(NODES, &[&rows_max])?;
        let scenes = session.query(SCENES, &[&rows_max])?;
        let hand_offs = session.query(HAND_OFFS, &[&rows_max])?;
        let counts = session.query(COUNTS, &[])?;
        let reports = reports::read(session, None)?;
        let mut gateways = reports.gateways();
        let gateways_total = gateways.len() as u64;
        gateways.truncate(usize::try_from(rows_max).unwrap_or(usize::MAX));
        let counts = first(&counts)?;
        let count = |nth| -> Result<u64, ClusterStoreError> {
            let count: i64 = column(counts, nth)?;
            Ok(count as u64)
        };
        Ok(ClusterOverview {
            nodes: nodes.iter().map(node_of).collect::<Result<_, _>>()?,
            scenes: scenes
                .iter()
                .map(|row| scene_of(row, &reports))
                .collect::<Result<_, _>>()?,
            gateways,
            gateways_total,
            hand_offs: hand_offs
                .iter()
                .map(hand_off_of)
                .collect::<Result<_, _>>()?,
            nodes_total: count(0)?,
            scenes_total: count(1)?,
            hand_offs_total: count(2)?,
            logins: count(3)?,
            matches: MatchCounts {
                waiting_tickets: count(4)?,
                matched_tickets: count(5)?,
                formed_matches: count(6)?,
                ready_matches: count(7)?,
                travelling_players: count(8)?,
            },
        })
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
