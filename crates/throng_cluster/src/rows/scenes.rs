//! The rows of scenes, in memory.

use std::collections::BTreeMap;

use super::ClusterRows;
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

    /// The owner of a scene, dead or alive.
    pub fn owner(&self, name: &str) -> Option<NodeRun> {
        self.0.get(name).and_then(|row| row.owner)
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

    /// The scene with this name and epoch.
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
            self.declare_dead(run, owner.node, now_ms);
            if !self.is_dead(owner) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ClusterRequest;

    /// Two nodes that have just started, and a scene without an owner.
    fn two_nodes() -> (ClusterRows, [NodeRun; 2]) {
        let mut rows = ClusterRows::default();
        let runs = ["n1", "n2"].map(|name| start(&mut rows, name, 0));
        let scene = declared("town", &[1]);
        let (run, scenes) = (runs[0], vec![scene]);
        let done = execute(&mut rows, SceneRequest::Declare { run, scenes }, 0);
        assert_eq!(done, ClusterReply::Done);
        (rows, runs)
    }

    fn start(rows: &mut ClusterRows, name: &str, now_ms: u64) -> NodeRun {
        let name = name.to_owned();
        match rows.execute(ClusterRequest::StartRun { name }, now_ms) {
            ClusterReply::Started(run) => run,
            other => panic!("{other:?}"),
        }
    }

    fn declared(name: &str, specification: &[u8]) -> SceneDeclaration {
        SceneDeclaration {
            name: name.to_owned(),
            specification: specification.to_vec(),
            pinned_to: None,
        }
    }

    fn execute(rows: &mut ClusterRows, request: SceneRequest, now_ms: u64) -> ClusterReply {
        rows.execute(ClusterRequest::Scene(request), now_ms)
    }

    fn claim(rows: &mut ClusterRows, run: NodeRun, epoch: u64, now_ms: u64) -> ClusterReply {
        let scene = "town".to_owned();
        execute(rows, SceneRequest::Claim { run, scene, epoch }, now_ms)
    }

    fn town(rows: &ClusterRows) -> (Option<NodeRun>, u64) {
        let table = rows.scene_table(0);
        let scene = table.scene("town").expect("it was declared");
        (scene.owner, scene.epoch)
    }

    fn heartbeat(rows: &mut ClusterRows, run: NodeRun, now_ms: u64) -> ClusterReply {
        rows.execute(ClusterRequest::Heartbeat { run, load: 7 }, now_ms)
    }

    #[test]
    fn scene_of_a_node_that_is_alive_is_refused() {
        let (mut rows, [one, other]) = two_nodes();
        assert_eq!(claim(&mut rows, one, 0, 10), ClusterReply::Done);
        assert_eq!(town(&rows), (Some(one), 1));
        for (at_ms, epoch, refused) in [
            (20, 0, RefusedWrite::NotOwner),
            (20, 2, RefusedWrite::NotOwner),
            (1_500, 1, RefusedWrite::NotLate),
        ] {
            heartbeat(&mut rows, other, at_ms);
            let reply = claim(&mut rows, other, epoch, at_ms);
            assert_eq!(reply, ClusterReply::Refused(refused), "{at_ms} ms, {epoch}");
        }
        assert_eq!(town(&rows), (Some(one), 1));
    }

    #[test]
    fn owner_whose_scene_was_claimed_stays_dead() {
        let (mut rows, [one, other]) = two_nodes();
        claim(&mut rows, one, 0, 10);
        for at_ms in [1_000, 2_000, 3_000] {
            heartbeat(&mut rows, other, at_ms);
            // It has to be steady first.
            let early = claim(&mut rows, other, 1, at_ms);
            assert_eq!(early, ClusterReply::Refused(RefusedWrite::NotLate));
        }
        assert_eq!(claim(&mut rows, other, 1, 3_001), ClusterReply::Done);
        assert_eq!(town(&rows), (Some(other), 2));
        let late = heartbeat(&mut rows, one, 3_002);
        assert_eq!(late, ClusterReply::Refused(RefusedWrite::RunEnded));
        let late = claim(&mut rows, one, 2, 3_003);
        assert_eq!(late, ClusterReply::Refused(RefusedWrite::RunEnded));
    }

    #[test]
    fn scene_of_an_earlier_run_is_free() {
        let (mut rows, [one, other]) = two_nodes();
        claim(&mut rows, one, 0, 10);
        let next = NodeRun {
            run: one.run + 1,
            ..one
        };
        heartbeat(&mut rows, next, 20);
        assert_eq!(rows.scene_table(20).alive_owner("town"), None);
        assert_eq!(claim(&mut rows, other, 1, 30), ClusterReply::Done);
    }

    #[test]
    fn scene_that_was_given_up_is_free_at_once() {
        let (mut rows, [one, other]) = two_nodes();
        claim(&mut rows, one, 0, 10);
        let scene = || "town".to_owned();
        let give_up = |rows: &mut ClusterRows, run, epoch| {
            let scene = scene();
            execute(rows, SceneRequest::GiveUp { run, scene, epoch }, 20)
        };
        for (run, epoch) in [(other, 1), (one, 0), (one, 2)] {
            let refused = give_up(&mut rows, run, epoch);
            assert_eq!(refused, ClusterReply::Refused(RefusedWrite::NotOwner));
        }
        assert_eq!(give_up(&mut rows, one, 1), ClusterReply::Done);
        assert_eq!(town(&rows), (None, 2));
        let again = give_up(&mut rows, one, 1);
        assert_eq!(again, ClusterReply::Refused(RefusedWrite::NotOwner));
        assert_eq!(claim(&mut rows, other, 2, 20), ClusterReply::Done);
        assert_eq!(town(&rows), (Some(other), 3));
    }

    #[test]
    fn draining_node_claims_nothing_until_its_next_process() {
        let (mut rows, [one, _]) = two_nodes();
        let set = |rows: &mut ClusterRows, name: &str| {
            let (name, is_draining) = (name.to_owned(), true);
            execute(rows, SceneRequest::SetDraining { name, is_draining }, 10)
        };
        let unknown = set(&mut rows, "n3");
        assert_eq!(unknown, ClusterReply::Refused(RefusedWrite::UnknownNode));
        assert_eq!(set(&mut rows, "n1"), ClusterReply::Done);
        heartbeat(&mut rows, one, 20);
        let refused = claim(&mut rows, one, 0, 20);
        assert_eq!(refused, ClusterReply::Refused(RefusedWrite::NodeDrains));
        let shown = |rows: &ClusterRows| {
            let node = rows.scene_table(20).nodes.remove(0);
            (node.load, node.is_draining)
        };
        assert_eq!(shown(&rows), (7, true));
        rows.execute(ClusterRequest::EndRun { run: one }, 30);
        let next = start(&mut rows, "n1", 40);
        assert_eq!(shown(&rows), (0, false));
        assert_eq!(claim(&mut rows, next, 0, 40), ClusterReply::Done);
    }

    #[test]
    fn known_scene_keeps_its_specification_and_owner() {
        let (mut rows, [one, other]) = two_nodes();
        claim(&mut rows, one, 0, 10);
        let scenes = vec![declared("town", &[2]), declared("cave", &[3])];
        let declare = SceneRequest::Declare { run: other, scenes };
        assert_eq!(execute(&mut rows, declare, 20), ClusterReply::Done);
        let table = rows.scene_table(20);
        let found = table.scenes.iter();
        let found: Vec<_> = found
            .map(|scene| (&*scene.name, &scene.specification[..], scene.owner))
            .collect();
        assert_eq!(
            found,
            [("cave", &[3][..], None), ("town", &[1][..], Some(one))]
        );
    }
}
