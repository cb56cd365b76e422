//! Requests about scenes, as calls of functions of the database.

use throng_store::PostgresSession;
use tokio_postgres::Row;

use super::{column, parameters, reply_of, run_at};
use crate::request::{ClusterReply, NodeEntry, SceneEntry, SceneReply, SceneRequest, SceneTable};
use crate::store::ClusterStoreError;

pub(super) fn execute_scene(
    session: &mut PostgresSession,
    request: &SceneRequest,
    at_ms: Option<i64>,
) -> Result<ClusterReply, ClusterStoreError> {
    let rows = match request {
        SceneRequest::Read => return read(session, at_ms),
        SceneRequest::Declare { run, scenes } => {
            let (node, run) = parameters(*run);
            let names = Vec::from_iter(scenes.iter().map(|scene| scene.name.as_str()));
            let specifications = scenes.iter().map(|scene| scene.specification.as_slice());
            let pinned_to = scenes.iter().map(|scene| scene.pinned_to.as_deref());
            let (specifications, pinned_to) =
                (Vec::from_iter(specifications), Vec::from_iter(pinned_to));
            session.query(
                "SELECT cluster_declare_scenes($1, $2, $3, $4, $5, $6)",
                &[&node, &run, &names, &specifications, &pinned_to, &at_ms],
            )?
        }
        SceneRequest::Claim { run, scene, epoch } => {
            let ((node, run), epoch) = (parameters(*run), *epoch as i64);
            session.query(
                "SELECT cluster_claim_scene($1, $2, $3, $4, $5)",
                &[&node, &run, scene, &epoch, &at_ms],
            )?
        }
        SceneRequest::GiveUp { run, scene, epoch } => {
            let ((node, run), epoch) = (parameters(*run), *epoch as i64);
            session.query(
                "SELECT cluster_give_up_scene($1, $2, $3, $4)",
                &[&node, &run, scene, &epoch],
            )?
        }
        SceneRequest::SetDraining { name, is_draining } => {
            session.query("SELECT cluster_set_draining($1, $2)", &[name, is_draining])?
        }
    };
    reply_of(&rows)
}

fn read(
    session: &mut PostgresSession,
    at_ms: Option<i64>,
) -> Result<ClusterReply, ClusterStoreError> {
    let rows = session.query(
        "SELECT _epoch, _name, _node, _run, _is_alive, _load, _is_draining, _specification, _pinned_to, _is_steady FROM cluster_read_scenes($1)",
        &[&at_ms],
    )?;
    let mut table = SceneTable::default();
    for row in &rows {
        let epoch: Option<i64> = column(row, 0)?;
        match epoch {
            None => table.nodes.push(node_at(row)?),
            Some(epoch) => table.scenes.push(scene_at(row, epoch as u64)?),
        }
    }
    Ok(ClusterReply::Scene(SceneReply::Table(table)))
}

fn node_at(row: &Row) -> Result<NodeEntry, ClusterStoreError> {
    let load: i64 = column(row, 5)?;
    Ok(NodeEntry {
        name: column(row, 1)?,
        run: run_at(row, 2)?,
        is_alive: column(row, 4)?,
        load: load as u32,
        is_draining: column(row, 6)?,
        is_steady: column(row, 9)?,
    })
}

fn scene_at(row: &Row, epoch: u64) -> Result<SceneEntry, ClusterStoreError> {
    let node: Option<i32> = column(row, 2)?;
    Ok(SceneEntry {
        name: column(row, 1)?,
        specification: column(row, 7)?,
        pinned_to: column(row, 8)?,
        owner: node.map(|_| run_at(row, 2)).transpose()?,
        epoch,
    })
}
