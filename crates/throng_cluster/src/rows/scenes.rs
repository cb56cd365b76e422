//! The rows of scenes, in memory.

use std::collections::BTreeMap;

use super::{ClusterRows, is_late};
use crate::ids::NodeRun;
use crate::request::{
    ClusterReply, RefusedWrite, SceneDeclaration, SceneEntry, SceneReply, SceneRequest, SceneTable,
};

#[derive(Clone, Debug, Default)]
struct SceneRow {
    specification: Vec<u8>,
    pinned_to: Option<String>,
    owner: Option<NodeRun>,
    epoch: u64,
}

/// The scenes, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct SceneRows(BTreeMap<String, SceneRow>);

impl SceneRows {
    fn declare(&mut self, scenes: Vec<SceneDeclaration>) {
        for scene in scenes {
            self.0.entry(scene.name).or_insert_with(|| SceneRow {
                specification: scene.specification,
                pinned_to: scene.pinned_to,
                ..SceneRow::default()
            });
        }
    }

    fn entries(&self) -> Vec<SceneEntry> {
        let entries = self.0.iter().map(|(name, row)| SceneEntry {
            name: name.clone(),
            specification: row.specification.clone(),
            pinned_to: row.pinned_to.clone(),
            owner: row.owner,
            epoch: row.epoch,
        });
        entries.collect()
    }

    /// The scene, if this is its epoch.
    fn get_mut_at(&mut self, name: &str, epoch: u64) -> Result<&mut SceneRow, RefusedWrite> {
        let row = self.0.get_mut(name).filter(|row| row.epoch == epoch);
        row.ok_or(RefusedWrite::NotOwner)
    }
}

impl ClusterRows {
    /// All nodes and scenes at this time.
    #[must_use]
    pub fn scene_table(&self, now_ms: u64) -> SceneTable {
        SceneTable {
            nodes: self.nodes(now_ms),
            scenes: self.scenes.entries(),
        }
    }

    pub(super) fn execute_scene(&mut self, request: SceneRequest, now_ms: u64) -> ClusterReply {
        let result = match request {
            SceneRequest::Declare { run, scenes } => self.declare(run, scenes, now_ms),
            SceneRequest::Read => {
                let table = self.scene_table(now_ms);
                return ClusterReply::Scene(SceneReply::Table(table));
            }
            SceneRequest::Claim { run, scene, epoch } => {
                self.claim_scene(run, &scene, epoch, now_ms)
            }
            SceneRequest::GiveUp { run, scene, epoch } => self.give_up(run, &scene, epoch),
            SceneRequest::SetDraining { name, is_draining } => {
                self.set_draining(&name, is_draining)
            }
        };
        result.map_or_else(ClusterReply::Refused, |()| ClusterReply::Done)
    }

    fn declare(
        &mut self,
        run: NodeRun,
        scenes: Vec<SceneDeclaration>,
        now_ms: u64,
    ) -> Result<(), RefusedWrite> {
        if !self.is_alive(run, now_ms) {
            return Err(RefusedWrite::RunEnded);
        }
        self.scenes.declare(scenes);
        Ok(())
    }

    fn claim_scene(
        &mut self,
        run: NodeRun,
        scene: &str,
        epoch: u64,
        now_ms: u64,
    ) -> Result<(), RefusedWrite> {
        if !self.is_alive(run, now_ms) {
            return Err(RefusedWrite::RunEnded);
        }
        let own = self.nodes.get(&run.node);
        if own.is_some_and(|row| row.is_draining) {
            return Err(RefusedWrite::NodeDrains);
        }
        let owner = self.scenes.get_mut_at(scene, epoch)?.owner;
        if let Some(owner) = owner {
            if let Some(row) = self.nodes.get_mut(&owner.node) {
                // Its heartbeats are refused from now on: it stays dead, whatever arrives late.
                row.is_dead |= is_late(row, now_ms);
            }
            if self.is_alive(owner, now_ms) {
                return Err(RefusedWrite::NotLate);
            }
        }
        let row = self.scenes.get_mut_at(scene, epoch)?;
        (row.owner, row.epoch) = (Some(run), epoch + 1);
        Ok(())
    }

    fn give_up(&mut self, run: NodeRun, scene: &str, epoch: u64) -> Result<(), RefusedWrite> {
        let row = self.scenes.get_mut_at(scene, epoch)?;
        if row.owner != Some(run) {
            return Err(RefusedWrite::NotOwner);
        }
        (row.owner, row.epoch) = (None, epoch + 1);
        Ok(())
    }

    fn set_draining(&mut self, name: &str, is_draining: bool) -> Result<(), RefusedWrite> {
        let row = self.nodes.values_mut().find(|row| row.name == name);
        row.map(|row| row.is_draining = is_draining)
            .ok_or(RefusedWrite::UnknownNode)
    }
}
