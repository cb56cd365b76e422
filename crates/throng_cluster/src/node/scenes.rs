//! The scenes of a node: it claims free ones, and gives up those that should run elsewhere.
//!
//! ```text
//!  read nodes and scenes ─▶ free, and placed on this node ─▶ claim ─▶ runs here
//!                        ─▶ runs here, and should run elsewhere ─▶ give up ─▶ free
//! ```
//! A node runs the scenes that it owns by the rows that it has read last, without those that it gives up. A scene that it has begun to give up
//! never runs here again with the same epoch: the request may be executed after its timeout.
//!
//! A node gives up a scene for three reasons only, so scenes do not move back and forth:
//! - it drains;
//! - the scene is pinned to another node that has been available for [`scene_return_after_ms`](super::NodeSettings::scene_return_after_ms) in
//!   the same run;
//! - it has had the most load for [`scene_balance_after_ms`](super::NodeSettings::scene_balance_after_ms), and at least two scenes more than the
//!   node with the least load. Then it gives up as many as make the two equal, and waits as long again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::placement::Placement;
use super::requests::{RequestKind, RequestWork, SceneWork};
use super::{ClusterNode, NodeOutput, NodeSettings};
use crate::ids::{ClusterNodeId, NodeRun};
use crate::request::{
    ClusterReply, ClusterRequest, NodeEntry, SceneDeclaration, SceneEntry, SceneReply,
    SceneRequest, SceneTable,
};

/// What a node knows about scenes.
#[derive(Clone, Debug)]
pub(super) struct NodeScenes {
    pub load: u32,
    /// All nodes and scenes, as the store has sent them last.
    table: SceneTable,
    /// Counts the changes of what this node knows.
    revision: u64,
    undeclared: Vec<SceneDeclaration>,
    /// The drain or the end of a drain that the store does not know yet.
    draining: Option<bool>,
    /// Scenes that this node gives up, with the epochs with which it owns them.
    leaving: BTreeMap<String, u64>,
    /// Those of them whose request has not been sent since the last list.
    given_up: VecDeque<(String, u64)>,
    claims: VecDeque<(String, u64)>,
    /// Other nodes for which a scene is free. They get a hint.
    hints: BTreeSet<ClusterNodeId>,
    /// The time since which each run is known to be available.
    available_since_ms: BTreeMap<NodeRun, u64>,
    /// Since when this node has too much load.
    overloaded_since_ms: Option<u64>,
    /// When this run claims its first scenes.
    first_claim_ms: Option<u64>,
    /// When the last read was sent.
    read_ms: u64,
    next_read_ms: u64,
    next_write_ms: u64,
}

impl NodeScenes {
    pub const fn new() -> Self {
        Self {
            load: 0,
            table: SceneTable {
                nodes: Vec::new(),
                scenes: Vec::new(),
            },
            revision: 0,
            undeclared: Vec::new(),
            draining: None,
            leaving: BTreeMap::new(),
            given_up: VecDeque::new(),
            claims: VecDeque::new(),
            hints: BTreeSet::new(),
            available_since_ms: BTreeMap::new(),
            overloaded_since_ms: None,
            first_claim_ms: None,
            read_ms: 0,
            next_read_ms: 0,
            next_write_ms: 0,
        }
    }

    /// The run has ended: it owns no scenes any more.
    pub fn end_run(&mut self) {
        self.revision += 1;
        self.leaving.clear();
        self.given_up.clear();
        self.claims.clear();
        self.hints.clear();
        self.available_since_ms.clear();
        self.overloaded_since_ms = None;
        self.first_claim_ms = None;
        self.next_read_ms = 0;
    }

    fn node(&self, run: NodeRun) -> Option<&NodeEntry> {
        let mut nodes = self.table.nodes.iter();
        nodes.find(|entry| entry.run.node == run.node)
    }

    /// Whether a run owns a scene and does not give it up.
    fn is_running(&self, entry: &SceneEntry, run: NodeRun) -> bool {
        entry.owner == Some(run) && !self.leaving.contains_key(&entry.name)
    }

    /// Whether another living node runs a scene.
    fn others_run(&self, run: NodeRun) -> bool {
        let owners = self.table.scenes.iter().filter_map(|entry| entry.owner);
        let mut others = owners.filter(|owner| *owner != run);
        others.any(|owner| self.table.alive_node(owner).is_some())
    }

    /// Reads all nodes and scenes without the usual delay, at most once in `interval_ms`.
    pub fn read_soon(&mut self, interval_ms: u64) {
        self.next_read_ms = self.next_read_ms.min(self.read_ms + interval_ms);
    }

    /// Whether another node may get the scenes that this one gives up.
    pub fn has_other_node(&self, run: NodeRun) -> bool {
        let mut nodes = self.table.nodes.iter();
        nodes.any(|entry| entry.run.node != run.node && entry.is_available())
    }

    /// Applies a request of this node that has changed the owner of a scene.
    fn set_owner(&mut self, name: &str, epoch: u64, owner: Option<NodeRun>) {
        let mut scenes = self.table.scenes.iter_mut();
        let entry = scenes.find(|entry| entry.name == name && entry.epoch == epoch);
        if let Some(entry) = entry {
            (entry.owner, entry.epoch) = (owner, epoch + 1);
            self.revision += 1;
        }
    }

    fn set_table(&mut self, table: SceneTable, run: NodeRun, now_ms: u64) {
        if self.table != table {
            self.revision += 1;
            self.table = table;
        }
        let table = &self.table;
        // Scenes with another owner or epoch are given up.
        self.leaving.retain(|name, epoch| {
            let entry = table.scene(name);
            entry.is_some_and(|entry| entry.owner == Some(run) && entry.epoch == *epoch)
        });
        let available = table.nodes.iter().filter(|entry| entry.is_available());
        let since = available.map(|entry| {
            let known = self.available_since_ms.get(&entry.run);
            (entry.run, known.copied().unwrap_or(now_ms))
        });
        self.available_since_ms = since.collect();
    }

    /// The scenes that a node with too much load gives up: the first ones by name that are not pinned to an available node.
    fn surplus_scenes(
        &self,
        run: NodeRun,
        placement: &Placement<'_>,
    ) -> impl Iterator<Item = (String, u64)> {
        let scenes = self.table.scenes.iter();
        let movable = scenes.filter(move |entry| {
            let pinned = entry.pinned_to.as_deref();
            let is_pinned = pinned.is_some_and(|to| placement.available(to).is_some());
            entry.owner == Some(run) && !is_pinned
        });
        let surplus = movable.take(placement.surplus(run));
        surplus.map(|entry| (entry.name.clone(), entry.epoch))
    }

    /// Decides which scenes this node claims and gives up.
    fn decide(&mut self, run: NodeRun, settings: &NodeSettings, now_ms: u64) {
        let placement = Placement::new(&self.table, settings.scene_load);
        let own = self.node(run);
        let is_draining = own.is_some_and(|entry| entry.is_draining);
        let is_back = |name: &str| {
            let pinned = placement.available(name).filter(|to| *to != run);
            let since_ms = pinned.and_then(|to| self.available_since_ms.get(&to));
            since_ms.is_some_and(|since_ms| now_ms - since_ms >= settings.scene_return_after_ms)
        };
        let mut leaving = Vec::new();
        for entry in &self.table.scenes {
            let leaves = if is_draining {
                placement.target(None).is_some()
            } else {
                entry.pinned_to.as_deref().is_some_and(is_back)
            };
            if leaves && self.is_running(entry, run) {
                leaving.push((entry.name.clone(), entry.epoch));
            }
        }
        if placement.surplus(run) == 0 {
            self.overloaded_since_ms = None;
        } else if leaving.is_empty() && self.leaving.is_empty() {
            let since_ms = *self.overloaded_since_ms.get_or_insert(now_ms);
            if now_ms - since_ms >= settings.scene_balance_after_ms {
                self.overloaded_since_ms = None;
                leaving.extend(self.surplus_scenes(run, &placement));
            }
        }
        let placed = placement.place_free_scenes().into_iter();
        let (own, others): (Vec<_>, Vec<_>) = placed.partition(|(_, _, to)| *to == run);
        let claims = own.into_iter();
        self.claims = claims
            .map(|(name, epoch, _)| (name.to_owned(), epoch))
            .collect();
        self.hints = others.into_iter().map(|(_, _, to)| to.node).collect();
        if !leaving.is_empty() {
            self.revision += 1;
        }
        self.leaving.extend(leaving);
        let given_up = self.leaving.iter();
        self.given_up = given_up
            .map(|(name, epoch)| (name.clone(), *epoch))
            .collect();
    }
}

impl ClusterNode {
    /// Adds scenes that the cluster has to run, as soon as the store can be reached. Scenes that the store knows stay as they are.
    pub fn declare_scenes(&mut self, scenes: impl IntoIterator<Item = SceneDeclaration>) {
        self.scenes.undeclared.extend(scenes);
    }

    /// The scenes that this node runs now, by name. A scene that is given up is not among them.
    pub fn scenes(&self, now_ms: u64) -> impl Iterator<Item = &SceneEntry> {
        let scenes = self.scenes.table.scenes.iter();
        let scenes = scenes.filter(move |_| self.is_valid(now_ms));
        scenes.filter(|entry| self.scenes.is_running(entry, self.run))
    }

    /// The run that runs a scene, by the last list of the store; `None` if no living node runs it, and while this node gives it up.
    #[must_use]
    pub fn scene_owner(&self, name: &str, now_ms: u64) -> Option<NodeRun> {
        let owner = self.scenes.table.alive_owner(name)?;
        let is_here = || self.is_valid(now_ms) && !self.scenes.leaving.contains_key(name);
        (owner != self.run || is_here()).then_some(owner)
    }

    /// All nodes and scenes, as the store has sent them last.
    #[must_use]
    pub const fn scene_table(&self) -> &SceneTable {
        &self.scenes.table
    }

    /// Counts the changes of the scenes and of their owners.
    #[must_use]
    pub const fn scene_revision(&self) -> u64 {
        self.scenes.revision
    }

    /// Sets the load that the next heartbeat reports, in units of the game, such as players and objects. Scenes go to the nodes with the
    /// least load; each adds [`scene_load`](super::NodeSettings::scene_load).
    pub const fn set_load(&mut self, load: u32) {
        self.scenes.load = load;
    }

    /// Whether this node drains, by the last list of the store: it gives up its scenes and claims none.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        let own = self.scenes.node(self.run);
        own.is_some_and(|entry| entry.is_draining)
    }

    /// Starts or ends a drain of this node, as soon as the store can be reached. A new process of the node does not drain.
    pub const fn set_draining(&mut self, is_draining: bool) {
        self.scenes.draining = Some(is_draining);
    }

    /// Sends the next request about scenes. Only one is pending at a time, so a list contains all changes that were confirmed before.
    pub(super) fn poll_scenes(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        let hints = std::mem::take(&mut self.scenes.hints).into_iter();
        outputs.extend(hints.map(NodeOutput::FreeScene));
        if !self.requests.is_free(RequestKind::Scene, now_ms) {
            return;
        }
        let settle_ms = self.settings.scene_settle_ms;
        let (run, scenes) = (self.run, &mut self.scenes);
        let first_claim_ms = *scenes.first_claim_ms.get_or_insert(now_ms + settle_ms);
        let claims_now = now_ms >= first_claim_ms || scenes.others_run(run);
        let own = scenes.node(run).map(|entry| entry.name.clone());
        let is_due = now_ms >= scenes.next_write_ms;
        let (work, request) = if let Some((scene, epoch)) = scenes.given_up.pop_front() {
            let work = SceneWork::GiveUp(scene.clone(), epoch);
            (work, SceneRequest::GiveUp { run, scene, epoch })
        } else if claims_now && let Some((scene, epoch)) = scenes.claims.pop_front() {
            let work = SceneWork::Claim(scene.clone(), epoch);
            (work, SceneRequest::Claim { run, scene, epoch })
        } else if now_ms >= scenes.next_read_ms {
            scenes.read_ms = now_ms;
            scenes.next_read_ms = now_ms + self.settings.scene_read_interval_ms;
            (SceneWork::Read, SceneRequest::Read)
        } else if let Some(name) = own.filter(|_| is_due)
            && let Some(is_draining) = scenes.draining
        {
            let request = SceneRequest::SetDraining { name, is_draining };
            (SceneWork::SetDraining(is_draining), request)
        } else if !scenes.undeclared.is_empty() && is_due {
            // Last, so that late replies to it do not delay the scenes that are known.
            let scenes = scenes.undeclared.clone();
            let work = SceneWork::Declare(scenes.len());
            (work, SceneRequest::Declare { run, scenes })
        } else {
            return;
        };
        let request = ClusterRequest::Scene(request);
        self.send(RequestWork::Scene(work), request, now_ms, outputs);
    }

    pub(super) fn on_scene_reply(&mut self, now_ms: u64, work: SceneWork, reply: ClusterReply) {
        let (run, scenes) = (self.run, &mut self.scenes);
        match (work, reply) {
            (SceneWork::Read, ClusterReply::Scene(SceneReply::Table(table))) => {
                scenes.set_table(table, run, now_ms);
                let settings = &self.settings;
                scenes.decide(run, settings, now_ms);
                if !scenes.hints.is_empty() {
                    // Its new owner is soon in the list.
                    scenes.read_soon(settings.busy_read_interval_ms);
                }
            }
            (SceneWork::Claim(name, epoch), ClusterReply::Done) => {
                scenes.set_owner(&name, epoch, Some(run));
            }
            (SceneWork::GiveUp(name, epoch), ClusterReply::Done) => {
                scenes.set_owner(&name, epoch, None);
                scenes.leaving.remove(&name);
            }
            (SceneWork::Declare(count), ClusterReply::Done) => {
                scenes.undeclared.drain(..count);
                scenes.next_read_ms = now_ms;
            }
            (SceneWork::SetDraining(is_draining), ClusterReply::Done) => {
                // It may have been changed since the request was sent.
                scenes.draining.take_if(|wanted| *wanted == is_draining);
                scenes.next_read_ms = now_ms;
            }
            (SceneWork::Declare(_) | SceneWork::SetDraining(_), _) => {
                scenes.next_write_ms = now_ms + self.settings.busy_read_interval_ms;
            }
            // The next list shows the result.
            (SceneWork::Read | SceneWork::Claim(..) | SceneWork::GiveUp(..), _) => {}
        }
    }
}

#[cfg(test)]
mod tests;
