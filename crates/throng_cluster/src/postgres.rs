//! Rows on a Postgres server.
//!
//! The tables, such as `cluster_node`, `cluster_player` and `cluster_scene`, are in the schema of the player store. `throng db migrate` creates
//! them. Each request is one statement, so one round trip, and most requests call a function of the database. A process that dies during a
//! request leaves no rows locked.
//!
//! Assumption: the clock of the server does not jump ahead by more than 50 ms (a clock that is adjusted slowly is fine, and so is one
//! that is set back). If it does, nodes count as late while they still simulate, and others may declare them dead.

mod groups;
mod matches;
mod overview;
mod players;
mod reports;
mod scenes;

use std::time::Duration;

use throng_core::ids::PlayerId;
use throng_store::{PostgresSession, PostgresSource, SessionError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use self::players::read_players;
use self::scenes::execute_scene;
use crate::ids::{ClusterNodeId, ClusterRecord, NodeRun};
use crate::request::{
    Arrival, ClusterReply, ClusterRequest, ClusterSave, NODE_LATE_AFTER_MS, NODE_QUIET_AFTER_MS,
    NODE_STEADY_AFTER_MS, NODE_STEADY_GAP_MS, NODE_STEADY_UNHEARD_MS, NODE_UNHEARD_AFTER_MS,
    NodeEntry, QuietNode, RUNS_PER_PROCESS, RefusedWrite,
};
use crate::store::{ClusterStore, ClusterStoreError};

pub use overview::{
    ClusterOverview, HandOffOverview, MatchCounts, NodeOverview, PlayerOverview, SceneOverview,
};

/// Rows on a Postgres server: one connection, opened with the first request and again after it was lost.
#[derive(Debug)]
pub struct PostgresRows {
    source: PostgresSource,
    session: Option<PostgresSession>,
}

/// The players of a save as columns.
#[derive(Debug, Default)]
struct SaveColumns {
    players: Vec<i64>,
    epochs: Vec<i64>,
    revisions: Vec<i64>,
    records: Vec<Vec<u8>>,
}

impl SaveColumns {
    fn new<'s>(saves: impl IntoIterator<Item = &'s ClusterSave>) -> Self {
        let mut columns = Self::default();
        for save in saves {
            columns.players.push(save.player.0 as i64);
            columns.epochs.push(save.epoch as i64);
            columns.revisions.push(save.record.revision as i64);
            columns.records.push(save.record.bytes.clone());
        }
        columns
    }

    /// The columns as parameters of a statement, in the order of the functions of the schema.
    fn parameters(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.players, &self.epochs, &self.revisions, &self.records]
    }
}

impl PostgresRows {
    /// The rows in the schema of a player store. If a request takes longer than `timeout`, its connection is closed, and the outcome is
    /// unknown. The server ends the statement after twice that time.
    #[must_use]
    pub fn new(source: &PostgresSource, timeout: Duration) -> Self {
        Self {
            source: source.clone().with_fixed_call_timeout(timeout),
            session: None,
        }
    }

    /// Connects, if it is not connected. Otherwise, the first request connects.
    ///
    /// # Errors
    /// [`ClusterStoreError::NotExecuted`], if the server cannot be reached, or its tables are missing or those of another version.
    pub fn connect(&mut self) -> Result<(), ClusterStoreError> {
        if self
            .session
            .as_ref()
            .is_some_and(PostgresSession::is_connected)
        {
            return Ok(());
        }
        self.session = None;
        let session = self.source.open_session();
        let mut session =
            session.map_err(|error| ClusterStoreError::NotExecuted(error.to_string()))?;
        let rows = session
            .query(
                "SELECT ARRAY[cluster_late_after_ms(), cluster_steady_after_ms(), cluster_quiet_after_ms(), cluster_unheard_after_ms(),
                    cluster_steady_unheard_ms(), cluster_steady_gap_ms()]",
                &[],
            )
            .map_err(ClusterStoreError::from)?;
        let found: Vec<i64> = column(first(&rows)?, 0)?;
        let expected = [
            NODE_LATE_AFTER_MS,
            NODE_STEADY_AFTER_MS,
            NODE_QUIET_AFTER_MS,
            NODE_UNHEARD_AFTER_MS,
            NODE_STEADY_UNHEARD_MS,
            NODE_STEADY_GAP_MS,
        ];
        let expected = expected.map(|time_ms| time_ms as i64);
        if found != expected {
            let cause = format!(
                "the times in ms after which nodes are late, steady, quiet, unheard, and steady for unheard ones, and of a gap, are {found:?} here, expected \
                 {expected:?}: the tables are those of another version"
            );
            return Err(ClusterStoreError::NotExecuted(cause));
        }
        self.session = Some(session);
        Ok(())
    }

    /// Like [`execute`](ClusterStore::execute), with a given time in milliseconds instead of the server's: for tests.
    ///
    /// # Errors
    /// Those of [`execute`](ClusterStore::execute).
    pub fn execute_at(
        &mut self,
        request: &ClusterRequest,
        at_ms: Option<u64>,
    ) -> Result<ClusterReply, ClusterStoreError> {
        let session = self.session()?;
        let reply = execute(session, request, at_ms.map(|at_ms| at_ms as i64));
        if reply.is_err() && !session.is_connected() {
            self.session = None;
        }
        reply
    }

    /// The connection. Opens one if there is none.
    fn session(&mut self) -> Result<&mut PostgresSession, ClusterStoreError> {
        self.connect()?;
        let missing = || ClusterStoreError::NotExecuted("no connection".to_owned());
        self.session.as_mut().ok_or_else(missing)
    }
}

impl ClusterStore for PostgresRows {
    fn execute(&mut self, request: &ClusterRequest) -> Result<ClusterReply, ClusterStoreError> {
        self.execute_at(request, None)
    }
}

impl From<SessionError> for ClusterStoreError {
    fn from(error: SessionError) -> Self {
        let cause = error.error.to_string();
        if error.is_outcome_unknown {
            Self::Unknown(cause)
        } else {
            Self::NotExecuted(cause)
        }
    }
}

/// A run as parameters of a function.
const fn parameters(run: NodeRun) -> (i32, i64) {
    (run.node.0 as i32, run.run as i64)
}

fn execute(
    session: &mut PostgresSession,
    request: &ClusterRequest,
    at_ms: Option<i64>,
) -> Result<ClusterReply, ClusterStoreError> {
    match request {
        ClusterRequest::StartRun { name } => start_run(session, name, at_ms),
        ClusterRequest::ReadNodes => read_nodes(session, at_ms),
        ClusterRequest::ReadPlayers {
            players,
            with_records,
        } => read_players(session, players, *with_records),
        ClusterRequest::ReadArrivals { run } => read_arrivals(session, *run),
        ClusterRequest::Adopt { run, arrivals } => adopt(session, *run, arrivals),
        ClusterRequest::ClaimLate {
            run,
            players_max,
            unheard,
        } => claim_late(session, *run, *players_max, unheard, at_ms),
        ClusterRequest::Scene(request) => execute_scene(session, request, at_ms),
        ClusterRequest::Save { run, saves } => {
            let ((node, run), saves) = (parameters(*run), SaveColumns::new(saves));
            let [players, epochs, revisions, records] = saves.parameters();
            let rows = session.query(
                "SELECT cluster_save($1, $2, $3, $4, $5, $6)",
                &[&node, &run, players, epochs, revisions, records],
            )?;
            reply_of(&rows)
        }
        ClusterRequest::HandOff {
            run,
            players,
            to,
            saves,
        } => {
            let ((node, run), (to_node, to_run)) = (parameters(*run), parameters(*to));
            let given = players.len() as i64;
            let saves = SaveColumns::new(saves.iter().chain(players));
            let [players, epochs, revisions, records] = saves.parameters();
            let rows = session.query(
                "SELECT cluster_hand_off($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                &[
                    &node, &run, players, epochs, revisions, records, &given, &to_node, &to_run,
                    &at_ms,
                ],
            )?;
            reply_of(&rows)
        }
        ClusterRequest::Release { run, player, saves } => {
            let (node, run) = parameters(*run);
            let saves = SaveColumns::new(saves.iter().chain([player]));
            let [players, epochs, revisions, records] = saves.parameters();
            let rows = session.query(
                "SELECT cluster_release($1, $2, $3, $4, $5, $6)",
                &[&node, &run, players, epochs, revisions, records],
            )?;
            reply_of(&rows)
        }
        ClusterRequest::Match(request) => {
            matches::execute(session, request, at_ms).map(ClusterReply::Match)
        }
        ClusterRequest::Group(request) => {
            groups::execute(session, request, at_ms).map(ClusterReply::Group)
        }
        ClusterRequest::Report(request) => reports::execute(session, request, at_ms),
        other => execute_small(session, other, at_ms),
    }
}

/// Executes a request of a few numbers whose reply is `Done` or `Refused`.
fn execute_small(
    session: &mut PostgresSession,
    request: &ClusterRequest,
    at_ms: Option<i64>,
) -> Result<ClusterReply, ClusterStoreError> {
    let rows = match request {
        ClusterRequest::Heartbeat { run, load } => {
            let ((node, run), load) = (parameters(*run), i64::from(*load));
            session.query(
                "SELECT cluster_heartbeat($1, $2, $3, $4)",
                &[&node, &run, &load, &at_ms],
            )?
        }
        ClusterRequest::EndRun { run } => {
            let (node, run) = parameters(*run);
            session.query("SELECT cluster_end_run($1, $2)", &[&node, &run])?
        }
        ClusterRequest::RaiseEpoch { run, player, epoch } => {
            let ((node, run), player, epoch) = (parameters(*run), player.0 as i64, *epoch as i64);
            session.query(
                "SELECT cluster_raise_epoch($1, $2, $3, $4)",
                &[&node, &run, &player, &epoch],
            )?
        }
        ClusterRequest::TakeBack { run, player, epoch } => {
            let ((node, run), player, epoch) = (parameters(*run), player.0 as i64, *epoch as i64);
            session.query(
                "SELECT cluster_take_back($1, $2, $3, $4, $5)",
                &[&node, &run, &player, &epoch, &at_ms],
            )?
        }
        ClusterRequest::LogIn { run, player, epoch } => {
            let ((node, run), player, epoch) = (parameters(*run), player.0 as i64, *epoch as i64);
            session.query(
                "SELECT cluster_log_in($1, $2, $3, $4, $5)",
                &[&node, &run, &player, &epoch, &at_ms],
            )?
        }
        _ => {
            let cause = format!("{request:?} is no request with a few numbers");
            return Err(ClusterStoreError::NotExecuted(cause));
        }
    };
    reply_of(&rows)
}

fn start_run(
    session: &mut PostgresSession,
    name: &str,
    at_ms: Option<i64>,
) -> Result<ClusterReply, ClusterStoreError> {
    let rows = session.query(
        "SELECT _code, _node, _run FROM cluster_start_run($1, $2, $3)",
        &[&name, &(RUNS_PER_PROCESS as i64), &at_ms],
    )?;
    if let ClusterReply::Refused(refused) = reply_of(&rows)? {
        return Ok(ClusterReply::Refused(refused));
    }
    Ok(ClusterReply::Started(run_at(first(&rows)?, 1)?))
}

fn read_nodes(
    session: &mut PostgresSession,
    at_ms: Option<i64>,
) -> Result<ClusterReply, ClusterStoreError> {
    let rows = session.query(
        "SELECT name, NOT is_dead AND NOT cluster_is_late(heartbeat_ms, $1), node, run, load, is_draining, cluster_is_steady(node, $1)
            FROM cluster_node ORDER BY node",
        &[&at_ms],
    )?;
    let nodes = rows.iter().map(|row| {
        let load: i64 = column(row, 4)?;
        Ok(NodeEntry {
            name: column(row, 0)?,
            is_alive: column(row, 1)?,
            run: run_at(row, 2)?,
            load: load as u32,
            is_draining: column(row, 5)?,
            is_steady: column(row, 6)?,
        })
    });
    Ok(ClusterReply::Nodes(
        nodes.collect::<Result<_, ClusterStoreError>>()?,
    ))
}

fn read_arrivals(
    session: &mut PostgresSession,
    run: NodeRun,
) -> Result<ClusterReply, ClusterStoreError> {
    let (node, run) = parameters(run);
    let rows = session.query(
        "SELECT player, epoch FROM cluster_player WHERE node = $1 AND run = $2 AND NOT is_adopted
            ORDER BY player < 0, player",
        &[&node, &run],
    )?;
    let arrivals = rows.iter().map(arrival_at);
    Ok(ClusterReply::Arrivals(
        arrivals.collect::<Result<_, ClusterStoreError>>()?,
    ))
}

fn adopt(
    session: &mut PostgresSession,
    run: NodeRun,
    arrivals: &[Arrival],
) -> Result<ClusterReply, ClusterStoreError> {
    let (node, run) = parameters(run);
    let players = arrivals.iter().map(|arrival| arrival.player.0 as i64);
    let epochs = arrivals.iter().map(|arrival| arrival.epoch as i64);
    let rows = session.query(
        "SELECT _player, _epoch, _revision, _record FROM cluster_adopt($1, $2, $3, $4)",
        &[
            &node,
            &run,
            &Vec::from_iter(players),
            &Vec::from_iter(epochs),
        ],
    )?;
    let adopted = rows.iter().map(|row| {
        let revision: i64 = column(row, 2)?;
        let record = ClusterRecord {
            revision: revision as u64,
            bytes: column(row, 3)?,
        };
        Ok((arrival_at(row)?, record))
    });
    Ok(ClusterReply::Adopted(
        adopted.collect::<Result<_, ClusterStoreError>>()?,
    ))
}

fn claim_late(
    session: &mut PostgresSession,
    run: NodeRun,
    players_max: usize,
    unheard: &[QuietNode],
    at_ms: Option<i64>,
) -> Result<ClusterReply, ClusterStoreError> {
    let (node, run) = parameters(run);
    let (nodes, runs): (Vec<i32>, Vec<i64>) =
        unheard.iter().map(|quiet| parameters(quiet.run)).unzip();
    let heartbeats = unheard.iter().map(|quiet| quiet.heartbeat_ms as i64);
    let heartbeats: Vec<i64> = heartbeats.collect();
    let players_max = players_max as i64;
    let rows = session.query(
        "SELECT _code, _players, _epochs, _quiet_nodes, _quiet_runs, _quiet_heartbeats
            FROM cluster_claim_players($1, $2, $3, $4, $5, $6, $7)",
        &[
            &node,
            &run,
            &players_max,
            &nodes,
            &runs,
            &heartbeats,
            &at_ms,
        ],
    )?;
    if let refused @ ClusterReply::Refused(_) = reply_of(&rows)? {
        return Ok(refused);
    }
    let row = first(&rows)?;
    let (players, epochs): (Vec<i64>, Vec<i64>) = (column(row, 1)?, column(row, 2)?);
    let arrivals = players.into_iter().zip(epochs);
    let arrivals = arrivals.map(|(player, epoch)| Arrival {
        player: PlayerId(player as u64),
        epoch: epoch as u64,
    });
    let (nodes, runs): (Vec<i32>, Vec<i64>) = (column(row, 3)?, column(row, 4)?);
    let heartbeats: Vec<i64> = column(row, 5)?;
    let quiet = nodes.into_iter().zip(runs).zip(heartbeats);
    let quiet = quiet.map(|((node, run), heartbeat_ms)| QuietNode {
        run: NodeRun {
            node: ClusterNodeId(node as u32),
            run: run as u64,
        },
        heartbeat_ms: heartbeat_ms as u64,
    });
    Ok(ClusterReply::Claimed {
        arrivals: arrivals.collect(),
        quiet: quiet.collect(),
    })
}

/// The player and the epoch in the first two columns.
fn arrival_at(row: &Row) -> Result<Arrival, ClusterStoreError> {
    let (player, epoch): (i64, i64) = (column(row, 0)?, column(row, 1)?);
    Ok(Arrival {
        player: PlayerId(player as u64),
        epoch: epoch as u64,
    })
}

/// Converts the result of a function.
fn reply_of(rows: &[Row]) -> Result<ClusterReply, ClusterStoreError> {
    let code: i32 = column(first(rows)?, 0)?;
    Ok(ClusterReply::Refused(match code {
        0 => return Ok(ClusterReply::Done),
        1 => RefusedWrite::NotOwner,
        2 => RefusedWrite::TargetLate,
        3 => RefusedWrite::OlderState,
        4 => RefusedWrite::RunEnded,
        5 => RefusedWrite::NotLate,
        6 => RefusedWrite::NewerRun,
        7 => RefusedWrite::NodeRuns,
        20 => RefusedWrite::NodeDrains,
        21 => RefusedWrite::UnknownNode,
        _ => return Err(foreign(&format!("result {code}"))),
    }))
}

fn first(rows: &[Row]) -> Result<&Row, ClusterStoreError> {
    rows.first().ok_or_else(|| foreign(&"no row"))
}

fn column<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    nth: usize,
) -> Result<T, ClusterStoreError> {
    row.try_get(nth).map_err(|error| foreign(&error))
}

/// The run in a column and the next one.
fn run_at(row: &Row, nth: usize) -> Result<NodeRun, ClusterStoreError> {
    let (node, run): (i32, i64) = (column(row, nth)?, column(row, nth + 1)?);
    Ok(NodeRun {
        node: ClusterNodeId(node as u32),
        run: run as u64,
    })
}

/// The error for an unexpected reply of a function. What the function did is unknown.
fn foreign(found: &dyn std::fmt::Display) -> ClusterStoreError {
    ClusterStoreError::Unknown(format!(
        "the database replied {found}; its functions are those of another version"
    ))
}
