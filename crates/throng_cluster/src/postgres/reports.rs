//! Requests about reports of nodes, as calls of functions of the database.

use throng_store::PostgresSession;
use tokio_postgres::Row;

use super::{column, foreign, parameters, reply_of, run_at};
use crate::ids::NodeRun;
use crate::request::{
    ClusterReply, GatewayClients, NodeReport, REPORT_OLD_AFTER_MS, ReportEntry, ReportRequest,
    ReportTable, ScenePlayers,
};
use crate::store::ClusterStoreError;

pub(super) fn execute(
    session: &mut PostgresSession,
    request: &ReportRequest,
    at_ms: Option<i64>,
) -> Result<ClusterReply, ClusterStoreError> {
    match request {
        ReportRequest::Write { run, report } => write(session, *run, report, at_ms),
        ReportRequest::Read => read(session, at_ms).map(ClusterReply::Reports),
    }
}

fn write(
    session: &mut PostgresSession,
    run: NodeRun,
    NodeReport { scenes, gateways }: &NodeReport,
    at_ms: Option<i64>,
) -> Result<ClusterReply, ClusterStoreError> {
    let (node, run) = parameters(run);
    let names = Vec::from_iter(scenes.iter().map(|counted| counted.scene.as_str()));
    let players = Vec::from_iter(scenes.iter().map(|counted| i64::from(counted.players)));
    let of_gateways = Vec::from_iter(gateways.iter().map(|counted| counted.gateway.as_str()));
    let connected = gateways.iter().map(|counted| i64::from(counted.connected));
    let routed = gateways.iter().map(|counted| i64::from(counted.routed));
    let (connected, routed) = (Vec::from_iter(connected), Vec::from_iter(routed));
    let rows = session.query(
        "SELECT cluster_write_report($1, $2, $3, $4, $5, $6, $7, $8)",
        &[
            &node,
            &run,
            &names,
            &players,
            &of_gateways,
            &connected,
            &routed,
            &at_ms,
        ],
    )?;
    reply_of(&rows)
}

/// Reads the reports. O(nodes and what they report).
pub(super) fn read(
    session: &mut PostgresSession,
    at_ms: Option<i64>,
) -> Result<ReportTable, ClusterStoreError> {
    let rows = session.query(
        "SELECT _name, _node, _run, _scenes, _players, _gateways, _connected, _routed FROM cluster_read_reports($1, $2)",
        &[&(REPORT_OLD_AFTER_MS as i64), &at_ms],
    )?;
    let nodes = rows.iter().map(entry_at);
    let nodes = nodes.collect::<Result<_, _>>()?;
    Ok(ReportTable { nodes })
}

fn entry_at(row: &Row) -> Result<ReportEntry, ClusterStoreError> {
    let (scenes, players): (Vec<String>, Vec<i64>) = (column(row, 3)?, column(row, 4)?);
    let gateways: Vec<String> = column(row, 5)?;
    let (connected, routed): (Vec<i64>, Vec<i64>) = (column(row, 6)?, column(row, 7)?);
    let lengths = [players.len(), connected.len(), routed.len()];
    if lengths != [scenes.len(), gateways.len(), gateways.len()] {
        return Err(foreign(&"a report with arrays of different lengths"));
    }
    let scenes = scenes.into_iter().zip(players);
    let scenes = scenes.map(|(scene, players)| ScenePlayers {
        scene,
        players: players as u32,
    });
    let gateways = gateways.into_iter().zip(connected.into_iter().zip(routed));
    let gateways = gateways.map(|(gateway, (connected, routed))| GatewayClients {
        gateway,
        connected: connected as u32,
        routed: routed as u32,
    });
    Ok(ReportEntry {
        name: column(row, 0)?,
        run: run_at(row, 1)?,
        report: NodeReport {
            scenes: scenes.collect(),
            gateways: gateways.collect(),
        },
    })
}
