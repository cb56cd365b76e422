//! The scenes of a node, and the nodes of the other scenes.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use throng_core::ids::PlayerId;

use super::cluster_players::ClusterPlayers;
use super::collect::PlayerMove;
use crate::ids::NodeRun;
use crate::request::{SceneEntry, SceneTable};

/// This node has to run a scene: the game opens it. The state of the scene itself, such as that of NPCs, starts again from the specification,
/// unless the game transfers it by other means. If a former copy of the scene is still open on this node, the game moves its players into the new
/// one.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::SceneAssigned;
///
/// fn open_scenes(mut assigned: MessageReader<SceneAssigned>) {
///     for scene in assigned.read() {
///         println!("{} opens with a specification of {} bytes", scene.name, scene.specification.len());
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct SceneAssigned {
    /// Its name.
    pub name: String,
    /// What the game needs to open it.
    pub specification: Vec<u8>,
    /// Counts the changes of its owner.
    pub epoch: u64,
}

/// This node does not run a scene any more.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::SceneRemoved;
///
/// fn close_scenes(mut removed: MessageReader<SceneRemoved>) {
///     for scene in removed.read() {
///         match scene.new_owner {
///             Some(run) => println!("{}: players go to node {}, then it closes", scene.name, run.node.0),
///             None => println!("{} closes at once", scene.name),
///         }
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct SceneRemoved {
    /// Its name.
    pub name: String,
    /// The run that runs it now. The players in it go on here until each of them has been handed off with [`PlayerMove::to_scene`]. Then the game
    /// closes its copy. `None`: the game closes its copy at once. Either the run of this node has ended, and its players have left; or other
    /// nodes have run the scene in the meantime, and it is assigned to this node again in the same tick.
    pub new_owner: Option<NodeRun>,
}

/// The place of a scene in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenePlace<'s> {
    /// On this node.
    Here,
    /// On another node, with this name.
    Elsewhere(&'s str),
    /// On no node now, or the scene is unknown. A known scene is claimed within seconds, or as soon as a node may run it.
    Nowhere,
}

/// A scene that is open in the game.
#[derive(Clone, Copy, Debug)]
struct OpenScene {
    epoch: u64,
    /// The node gives it up, and no other node runs it yet.
    is_leaving: bool,
}

/// The scenes of this node and the nodes of the others, by the last list of the store. It changes in [`ClusterSystems::Scenes`](super::ClusterSystems).
#[derive(Resource, Debug, Default)]
pub struct ClusterScenes {
    table: SceneTable,
    own: Option<NodeRun>,
    is_draining: bool,
    is_paused: bool,
    open: BTreeMap<String, OpenScene>,
    /// The revision of the node's list, its run, and whether it is valid.
    known: Option<(u64, NodeRun, bool)>,
}

impl ClusterScenes {
    /// The scenes that this node runs, by name. Scenes that it gives up are not among them, and while the node [pauses](Self::is_paused), there
    /// are none. O(scenes of the cluster).
    pub fn running(&self) -> impl Iterator<Item = &SceneEntry> {
        let scenes = self.table.scenes.iter();
        scenes.filter(|entry| self.is_running(&entry.name))
    }

    /// The place of a scene. O(log n).
    #[must_use]
    pub fn place(&self, name: &str) -> ScenePlace<'_> {
        if self.is_running(name) {
            return ScenePlace::Here;
        }
        let owner = self.table.alive_owner(name);
        let owner = owner.filter(|owner| Some(*owner) != self.own);
        let node = owner.and_then(|owner| self.table.alive_node(owner));
        node.map_or(ScenePlace::Nowhere, |node| {
            ScenePlace::Elsewhere(&node.name)
        })
    }

    /// All nodes and scenes.
    #[must_use]
    pub const fn table(&self) -> &SceneTable {
        &self.table
    }

    /// Whether this node drains. When its scenes and players are gone, it may be stopped.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Whether this node pauses, because its heartbeats do not reach the store. Its players are frozen. Its scenes stay open, but the game must
    /// not simulate them. When a heartbeat succeeds, they go on. If the node was declared dead, they are removed.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.is_paused
    }

    fn is_running(&self, name: &str) -> bool {
        let open = self.open.get(name);
        !self.is_paused && open.is_some_and(|open| !open.is_leaving)
    }

    /// Compares the scenes that the node runs, with their epochs, with those that are open in the game. O(n · log(n)).
    fn follow(
        &mut self,
        own: Option<NodeRun>,
        running: &BTreeMap<String, u64>,
    ) -> (Vec<SceneRemoved>, Vec<SceneAssigned>) {
        // An earlier run has lost its scenes.
        let is_lost = self.own != own || own.is_none();
        self.own = own;
        let (mut removed, mut assigned) = (Vec::new(), Vec::new());
        let table = &self.table;
        self.open.retain(|name, open| {
            let new_owner = match running.get(name) {
                _ if is_lost => None,
                // Two more: this node has given it up and claimed it again. With another difference, other nodes have run it meanwhile.
                Some(&epoch) if epoch == open.epoch || epoch == open.epoch + 2 => {
                    (open.epoch, open.is_leaving) = (epoch, false);
                    return true;
                }
                Some(_) => None,
                None => {
                    let owner = table.alive_owner(name).filter(|owner| Some(*owner) != own);
                    if owner.is_none() {
                        open.is_leaving = true;
                        return true;
                    }
                    owner
                }
            };
            let name = name.clone();
            removed.push(SceneRemoved { name, new_owner });
            false
        });
        for (name, &epoch) in running {
            if let Some(entry) = table.scene(name).filter(|_| !self.open.contains_key(name)) {
                assigned.push(SceneAssigned {
                    name: name.clone(),
                    specification: entry.specification.clone(),
                    epoch,
                });
                let is_leaving = false;
                self.open
                    .insert(name.clone(), OpenScene { epoch, is_leaving });
            }
        }
        (removed, assigned)
    }
}

impl PlayerMove {
    /// A move to the node that runs a scene; `None` if that is this node, or no node. Send it again in a later tick if the player is still here
    /// and not frozen: the move may have failed.
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// use throng_cluster::{ClusterPlayer, ClusterScenes, FrozenPlayer, PlayerMove};
    ///
    /// #[derive(Component)]
    /// struct InScene(String);
    ///
    /// /// Players go where their scenes run: after a portal, a drain, or an arrival at a node that has claimed only them.
    /// fn follow_scenes(
    ///     players: Query<(&ClusterPlayer, &InScene), Without<FrozenPlayer>>,
    ///     scenes: Res<ClusterScenes>,
    ///     mut moves: MessageWriter<PlayerMove>,
    /// ) {
    ///     for (player, scene) in &players {
    ///         moves.write_batch(PlayerMove::to_scene(&scenes, player.0, &scene.0));
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn to_scene(scenes: &ClusterScenes, player: PlayerId, scene: &str) -> Option<Self> {
        let ScenePlace::Elsewhere(to) = scenes.place(scene) else {
            return None;
        };
        let to = to.to_owned();
        Some(Self { player, to })
    }
}

/// Copies the list of scenes from the node, and sends messages about the changes.
pub(super) fn follow_scenes(
    players: Res<ClusterPlayers>,
    mut scenes: ResMut<ClusterScenes>,
    mut removed: MessageWriter<SceneRemoved>,
    mut assigned: MessageWriter<SceneAssigned>,
) {
    let news = players.driver.as_ref().map(|driver| {
        driver.with_node(|node, now_ms| {
            let key = (node.scene_revision(), node.run(), node.is_valid(now_ms));
            if scenes.known == Some(key) {
                return None;
            }
            let running = node.scenes(now_ms);
            let running = running.map(|entry| (entry.name.clone(), entry.epoch));
            Some((key, node.scene_table().clone(), running.collect()))
        })
    });
    let (known, table, running) = match news {
        Some(None) => return,
        Some(Some((key, table, running))) => (Some(key), table, running),
        None if scenes.known.is_none() => return,
        None => (None, SceneTable::default(), BTreeMap::new()),
    };
    let own = known.map(|(_, run, _)| run);
    let mut nodes = table.nodes.iter();
    let node = known.and_then(|(_, run, _)| nodes.find(|entry| entry.run.node == run.node));
    scenes.is_draining = node.is_some_and(|entry| entry.is_draining);
    (scenes.known, scenes.table) = (known, table);
    scenes.is_paused = known.is_some_and(|(.., is_valid)| !is_valid);
    if scenes.is_paused && scenes.own == own {
        return;
    }
    let (closed, opened) = scenes.follow(own, &running);
    removed.write_batch(closed);
    assigned.write_batch(opened);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClusterNodeId;
    use crate::request::NodeEntry;

    const OWN: NodeRun = NodeRun {
        node: ClusterNodeId(0),
        run: 5,
    };
    const OTHER: NodeRun = NodeRun {
        node: ClusterNodeId(1),
        run: 9,
    };

    /// The scene `s` has this owner and epoch. Returns what was removed and assigned.
    fn change(
        scenes: &mut ClusterScenes,
        own: Option<NodeRun>,
        owner: Option<NodeRun>,
        epoch: u64,
    ) -> (Vec<Option<NodeRun>>, Vec<u64>) {
        let node = |run: NodeRun| NodeEntry {
            name: format!("n{}", run.node.0),
            run,
            is_alive: true,
            is_steady: true,
            load: 0,
            is_draining: false,
        };
        scenes.table.nodes = vec![node(own.unwrap_or(OWN)), node(OTHER)];
        scenes.table.scenes = vec![SceneEntry {
            name: "s".to_owned(),
            specification: vec![7],
            pinned_to: None,
            owner,
            epoch,
        }];
        let is_own = own.is_some() && owner == own;
        let running = is_own.then(|| ("s".to_owned(), epoch));
        let (removed, assigned) = scenes.follow(own, &running.into_iter().collect());
        assert!(assigned.iter().all(|scene| scene.specification == [7]));
        let removed = removed.into_iter().map(|scene| scene.new_owner);
        let assigned = assigned.into_iter().map(|scene| scene.epoch);
        (removed.collect(), assigned.collect())
    }

    #[test]
    fn scene_is_removed_when_its_new_owner_is_known() {
        let mut scenes = ClusterScenes::default();
        let (own, none) = (Some(OWN), (vec![], vec![]));
        assert_eq!(change(&mut scenes, own, None, 0), none);
        assert_eq!(scenes.place("s"), ScenePlace::Nowhere);
        assert_eq!(change(&mut scenes, own, own, 1), (vec![], vec![1]));
        assert_eq!(scenes.place("s"), ScenePlace::Here);
        assert_eq!(scenes.place("unknown"), ScenePlace::Nowhere);
        assert_eq!(scenes.running().count(), 1);
        // Given up, and not claimed yet: the game keeps its copy.
        assert_eq!(change(&mut scenes, own, None, 2), none);
        assert_eq!(scenes.place("s"), ScenePlace::Nowhere);
        assert_eq!(scenes.running().count(), 0);
        let given = change(&mut scenes, own, Some(OTHER), 3);
        assert_eq!(given, (vec![Some(OTHER)], vec![]));
        assert_eq!(scenes.place("s"), ScenePlace::Elsewhere("n1"));
        let to = PlayerMove::to_scene(&scenes, PlayerId(7), "s").map(|it| it.to);
        assert_eq!(to.as_deref(), Some("n1"));
        assert_eq!(change(&mut scenes, own, Some(OTHER), 3), none);
    }

    #[test]
    fn copy_stays_open_if_no_other_node_had_the_scene() {
        for (epoch, expected) in [(3, (vec![], vec![])), (5, (vec![None], vec![5]))] {
            let mut scenes = ClusterScenes::default();
            let own = Some(OWN);
            change(&mut scenes, own, own, 1);
            change(&mut scenes, own, None, 2);
            assert_eq!(change(&mut scenes, own, own, epoch), expected);
            assert_eq!(scenes.place("s"), ScenePlace::Here);
        }
    }

    #[test]
    fn end_of_a_run_removes_all_scenes_at_once() {
        for (own, owner) in [
            (None, Some(OWN)),
            (Some(NodeRun { run: 6, ..OWN }), Some(OWN)),
            (None, Some(OTHER)),
        ] {
            let mut scenes = ClusterScenes::default();
            change(&mut scenes, Some(OWN), Some(OWN), 1);
            let lost = change(&mut scenes, own, owner, 1);
            assert_eq!(lost, (vec![None], vec![]), "{own:?}");
        }
    }
}
