//! The handle of a node for the tick.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use throng_core::clock::Stopwatch;
use throng_core::ids::PlayerId;

use super::lanes::StoreLanes;
use super::matches::DrivenMatches;
use super::node_thread::{DriverState, DriverStats, SharedDriver, run};
use super::record_reads::RecordReads;
use super::start::{DriverSettings, DriverStartError, start_run};
use crate::bus::{BusPeer, BusRelay, BusStats, MessageBus};
use crate::groups::GroupDirectory;
use crate::ids::NodeRun;
use crate::matcher::{MatchNode, MatchOutput};
use crate::messenger::PlayerMessenger;
use crate::node::ClusterNode;
use crate::party_values::PartyExchange;
use crate::presence::{KnownPeer, PeerDirectory, PeerPresence};
use crate::request::{NodeEntry, SceneDeclaration, SceneEntry};
use crate::store::ClusterStore;

/// A node that runs, with its threads. Dropping it ends its thread without an end of the run, as a crash does: others claim its players after
/// they have declared it dead.
pub struct NodeDriver {
    shared: Arc<SharedDriver>,
    thread: Option<JoinHandle<()>>,
    waker: Waker,
}

impl std::fmt::Debug for NodeDriver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NodeDriver").finish_non_exhaustive()
    }
}

/// Wakes the thread of a node. Before the thread is set, it does nothing.
#[derive(Default)]
struct ThreadWaker(std::sync::OnceLock<Thread>);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

impl NodeDriver {
    /// Starts a node. `open` opens a store, and is called once for the start and once for each lane. `connect` connects the node to the bus, with
    /// the given run. Blocks until both are ready: for [`start_timeout`](DriverSettings::start_timeout) and the timeouts of both at most.
    ///
    /// # Errors
    /// [`DriverStartError`].
    pub fn start(
        settings: &DriverSettings,
        mut open: impl FnMut() -> Box<dyn ClusterStore>,
        connect: impl FnOnce(NodeRun) -> Result<MessageBus, DriverStartError>,
    ) -> Result<Self, DriverStartError> {
        // The clock has to start before the store counts the run as alive.
        let clock = Stopwatch::start();
        let node_run = start_run(settings, &mut *open())?;
        let mut bus = connect(node_run)?;
        let thread_waker = Arc::new(ThreadWaker::default());
        let waker = Waker::from(thread_waker.clone());
        bus.set_waker(waker.clone());
        let timeout = Duration::from_millis(settings.node.request_timeout_ms);
        let lanes = StoreLanes::start(&mut open, timeout, &waker)?;
        let node = ClusterNode::new(node_run, settings.node, settings.gateways.clone());
        let presence = PeerPresence {
            name: settings.name.clone(),
            protocol_id: settings.protocol_id,
            ..PeerPresence::default()
        };
        let state = DriverState {
            node,
            directory: PeerDirectory::new(bus.own(), node_run.run, presence),
            bus,
            relay: None,
            messenger: PlayerMessenger::new(node_run.node, settings.messages),
            records: RecordReads::default(),
            nodes: Vec::new(),
            next_nodes_ms: 0,
            matches: None,
            groups: GroupDirectory::new(settings.groups),
            party_values: PartyExchange::new(node_run.node, settings.party_values),
            stats: DriverStats::default(),
        };
        let shared = Arc::new(SharedDriver {
            state: Mutex::new(state),
            clock,
            nodes_interval: settings.nodes_interval,
            ends: AtomicBool::new(false),
            ends_run: AtomicBool::new(false),
        });
        let of_thread = shared.clone();
        let thread = thread::Builder::new().name("cluster node".to_owned());
        let thread = thread.spawn(move || run(&of_thread, &lanes))?;
        let _ = thread_waker.0.set(thread.thread().clone());
        Ok(Self {
            shared,
            thread: Some(thread),
            waker,
        })
    }

    /// Reads or changes the node, at the current time of its clock in milliseconds. `work` runs under a lock, so it has to be short.
    pub fn with_node<T>(&self, work: impl FnOnce(&mut ClusterNode, u64) -> T) -> T {
        self.with_state(|state, now_ms| work(&mut state.node, now_ms))
    }

    /// Reads or changes what the thread of the node uses, and wakes it.
    pub(super) fn with_state<T>(&self, work: impl FnOnce(&mut DriverState, u64) -> T) -> T {
        let mut state = self.shared.state();
        let done = work(&mut state, self.shared.now_ms());
        drop(state);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
        done
    }

    /// Sends or takes messages to players, at the current time of the node's clock in milliseconds, with the newest list of nodes. `work` runs
    /// under a lock, so it has to be short.
    pub fn with_messages<T>(
        &self,
        work: impl FnOnce(&mut PlayerMessenger, u64, &[NodeEntry]) -> T,
    ) -> T {
        let mut guard = self.shared.state();
        let state = &mut *guard;
        let done = work(&mut state.messenger, self.shared.now_ms(), &state.nodes);
        drop(guard);
        self.waker.wake_by_ref();
        done
    }

    /// Requests reads of records, or takes their results. `work` runs under a lock, so it has to be short.
    #[cfg(feature = "bevy")]
    pub(crate) fn with_record_reads<T>(&self, work: impl FnOnce(&mut RecordReads, u64) -> T) -> T {
        let done = work(&mut self.shared.state().records, self.shared.now_ms());
        self.waker.wake_by_ref();
        done
    }

    /// Sets what sends and receives other messages over the bus of the node, such as `GatewayPort` for the clients at
    /// gateways. Returns the former relay, if there was one.
    pub fn set_relay(&self, mut relay: Box<dyn BusRelay>) -> Option<Box<dyn BusRelay>> {
        relay.set_waker(self.waker.clone());
        self.shared.state().relay.replace(relay)
    }

    /// The run of a living node with this name, by the last list of the store.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<NodeRun> {
        self.shared.state().node_named(name)
    }

    /// Makes this node take part in matches: it can queue players, play matches, and be the matcher. Call it once, before players arrive.
    pub fn open_matches(&self, node: MatchNode) {
        let outputs = Vec::new();
        self.with_state(|state, _| state.matches = Some(DrivenMatches { node, outputs }));
    }

    /// Reads or changes the node's part in matches; `None` if it takes no part. `work` runs under a lock, so it has to be short.
    pub fn with_matches<T>(&self, work: impl FnOnce(&mut MatchNode) -> T) -> Option<T> {
        self.with_state(|state, _| {
            let matches = state.matches.as_mut();
            matches.map(|matches| work(&mut matches.node))
        })
    }

    /// Takes the outputs of matches that the tick has to handle. The driver itself sends the requests to the store and the wake-ups. Arrivals
    /// of players that the node holds, but the tick has not spawned yet or has frozen (not `is_free`), stay for a later tick.
    pub fn take_match_outputs(&self, is_free: impl Fn(PlayerId) -> bool) -> Vec<MatchOutput> {
        self.with_state(|state, _| {
            let (node, matches) = (&state.node, state.matches.as_mut());
            let is_early = |player| !is_free(player) && node.record(player).is_some();
            matches.map_or_else(Vec::new, |matches| matches.take_outputs(is_early))
        })
    }

    /// Reads or changes the groups of the players of this node. `work` runs under a lock, so it has to be short.
    pub fn with_groups<T>(&self, work: impl FnOnce(&mut GroupDirectory) -> T) -> T {
        let done = work(&mut self.shared.state().groups);
        self.waker.wake_by_ref();
        done
    }

    /// Publishes or takes the attributes of party members, at the current time of the node's clock in milliseconds, with the newest list of nodes.
    /// `work` runs under a lock, so it has to be short.
    pub fn with_party_values<T>(
        &self,
        work: impl FnOnce(&mut PartyExchange, u64, &[NodeEntry]) -> T,
    ) -> T {
        let mut guard = self.shared.state();
        let state = &mut *guard;
        let done = work(&mut state.party_values, self.shared.now_ms(), &state.nodes);
        drop(guard);
        self.waker.wake_by_ref();
        done
    }

    /// All nodes, by the last list of the store.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeEntry> {
        self.shared.state().nodes.clone()
    }

    /// The nodes and gateways whose presence this node receives. O(peers).
    #[must_use]
    pub fn peers(&self) -> Vec<(BusPeer, KnownPeer)> {
        let state = self.shared.state();
        let peers = state.directory.peers();
        peers.map(|(peer, known)| (peer, known.clone())).collect()
    }

    /// Adds scenes that the cluster has to run, as soon as the store can be reached. Scenes that the store knows keep their specifications, so
    /// all nodes may declare the same scenes when they start.
    pub fn declare_scenes(&self, scenes: impl IntoIterator<Item = SceneDeclaration>) {
        self.with_node(|node, _| node.declare_scenes(scenes));
    }

    /// The scenes that this node runs now, by name. O(scenes of the cluster).
    #[must_use]
    pub fn scenes(&self) -> Vec<SceneEntry> {
        self.with_node(|node, now_ms| node.scenes(now_ms).cloned().collect())
    }

    /// The run that runs a scene, by the last list of the store; `None` if no living node runs it. O(log n).
    #[must_use]
    pub fn scene_owner(&self, name: &str) -> Option<NodeRun> {
        self.with_node(|node, now_ms| node.scene_owner(name, now_ms))
    }

    /// Sets the load that the next heartbeat reports, in units of the game, such as players and objects. Scenes go to the nodes with the
    /// least load; each adds [`scene_load`](crate::NodeSettings::scene_load).
    pub fn set_load(&self, load: u32) {
        self.with_node(|node, _| node.set_load(load));
    }

    /// Sets the number of players in each scene, by the name of the scene, for `throng cluster status`. The node reports it once per second.
    /// Scenes that the node does not run are left out.
    pub fn set_scene_players(&self, scenes: impl IntoIterator<Item = (String, u32)>) {
        self.with_node(|node, _| node.set_scene_players(scenes));
    }

    /// Whether this node drains, by the last list of the store: it gives up its scenes and claims none.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.with_node(|node, _| node.is_draining())
    }

    /// Starts or ends a drain of this node, as soon as the store can be reached. It has the effect of a
    /// [`SceneRequest::SetDraining`](crate::SceneRequest::SetDraining) of an operator. A new process of the node does not drain.
    pub fn set_draining(&self, is_draining: bool) {
        self.with_node(|node, _| node.set_draining(is_draining));
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> DriverStats {
        self.shared.state().stats
    }

    /// Counters of its end of the bus.
    #[must_use]
    pub fn bus_stats(&self) -> BusStats {
        self.shared.state().bus.stats()
    }

    /// Stops the node and ends its run: others may claim what it still owns at once, and the node may start again at once. Move or log out its
    /// players before. Waits for the thread of the node, not for the store.
    pub fn stop(mut self) {
        self.shared.ends_run.store(true, Ordering::Release);
        self.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn end(&self) {
        self.shared.ends.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for NodeDriver {
    fn drop(&mut self) {
        self.end();
    }
}
