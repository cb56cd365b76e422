//! Requests about scenes and the nodes that run them.

use super::NodeEntry;
use crate::ids::NodeRun;

/// A scene that the nodes of a cluster have to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SceneDeclaration {
    /// Its name, unique in the cluster. It contains no zero byte.
    pub name: String,
    /// What the game needs to open the scene, as the game encodes it. All nodes read it with each list of scenes, so it should be short: the
    /// name of a file, or a few hundred bytes.
    pub specification: Vec<u8>,
    /// The name of the node that runs it while that node is alive; `None`: any node.
    pub pinned_to: Option<String>,
}

/// What the store knows about a scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SceneEntry {
    /// Its name.
    pub name: String,
    /// What the game needs to open it, from its first declaration.
    pub specification: Vec<u8>,
    /// The name of the node that runs it while that node is alive; `None`: any node.
    pub pinned_to: Option<String>,
    /// The run that owns it, which may have ended since then; `None` before the first claim, and after the owner has given it up.
    pub owner: Option<NodeRun>,
    /// Counts the changes of the owner.
    pub epoch: u64,
}

/// All nodes and all scenes, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SceneTable {
    /// The nodes, by ascending id.
    pub nodes: Vec<NodeEntry>,
    /// The scenes, by name (the order of its bytes).
    pub scenes: Vec<SceneEntry>,
}

impl SceneTable {
    /// A scene by its name. O(log n).
    #[must_use]
    pub fn scene(&self, name: &str) -> Option<&SceneEntry> {
        let find = |entry: &SceneEntry| entry.name.as_str().cmp(name);
        let at = self.scenes.binary_search_by(find).ok()?;
        self.scenes.get(at)
    }

    /// The node of a run that is alive. O(log n).
    #[must_use]
    pub fn alive_node(&self, run: NodeRun) -> Option<&NodeEntry> {
        let at = self
            .nodes
            .binary_search_by_key(&run.node, |entry| entry.run.node);
        let entry = self.nodes.get(at.ok()?)?;
        (entry.run == run && entry.is_alive).then_some(entry)
    }

    /// The run that owns a scene, if it is alive. O(log n).
    #[must_use]
    pub fn alive_owner(&self, name: &str) -> Option<NodeRun> {
        let owner = self.scene(name)?.owner?;
        self.alive_node(owner).map(|entry| entry.run)
    }
}

/// A request about scenes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SceneRequest {
    /// Adds the scenes that the store does not know, without an owner. Known ones stay as they are.
    Declare {
        /// The run that sends the request.
        run: NodeRun,
        /// The scenes.
        scenes: Vec<SceneDeclaration>,
    },
    /// Reads all nodes and all scenes.
    Read,
    /// Makes the caller the owner of a scene without an owner, or with a dead one. Before that, it declares the owner dead, if the owner is late
    /// and the heartbeats of the caller had no gap for [`NODE_STEADY_AFTER_MS`](crate::NODE_STEADY_AFTER_MS).
    Claim {
        /// The run that sends the request.
        run: NodeRun,
        /// The name of the scene.
        scene: String,
        /// The epoch that the caller has read.
        epoch: u64,
    },
    /// Ends the ownership of a scene: others may claim it at once.
    GiveUp {
        /// The run that sends the request.
        run: NodeRun,
        /// The name of the scene.
        scene: String,
        /// The epoch with which the caller owns it.
        epoch: u64,
    },
    /// Starts or ends the drain of a node: it gives up its scenes and claims none. A new process of the node does not drain.
    SetDraining {
        /// The name of the node.
        name: String,
        /// Whether it drains.
        is_draining: bool,
    },
}

/// The reply to a [`SceneRequest`] that reads something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SceneReply {
    /// The reply to [`SceneRequest::Read`].
    Table(SceneTable),
}
