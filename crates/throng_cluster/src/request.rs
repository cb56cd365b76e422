//! Requests of nodes to a store, and the replies. Each request is one transaction: it is executed completely or not at all.

mod groups;
mod matches;
mod players;
mod reports;
mod scenes;

pub use groups::{
    GroupChange, GroupEntry, GroupId, GroupKind, GroupMember, GroupReply, GroupRequest,
    PlayerGroup, RefusedGroup,
};
pub use players::PlayerEntry;
pub use reports::{
    GatewayClients, GatewayOverview, NodeReport, REPORT_OLD_AFTER_MS, REPORTED_GATEWAYS_MAX,
    REPORTED_SCENES_MAX, ReportEntry, ReportRequest, ReportTable, RouteCount, ScenePlayers,
};
pub use scenes::{SceneDeclaration, SceneEntry, SceneReply, SceneRequest, SceneTable};

use throng_core::ids::PlayerId;

use crate::ids::{ClusterRecord, NodeRun};

pub use self::matches::{
    ClusterTicket, MATCH_KEPT_MS, MATCHER_ROLE, MatchEntry, MatchId, MatchReply, MatchRequest,
    MatchState, NewMatch, PlayerTravel, ROLE_LEASE_MS, RefusedMatch, TicketChange, TicketHome,
    TicketId, TicketMember, TicketRating, TravelGoal,
};

/// A node whose heartbeat is older than this, by the store's clock, is late, in milliseconds. Other nodes may then declare it dead and claim its
/// players ([`NODE_STEADY_AFTER_MS`]). A node pauses before it is late: [`NODE_VALID_MS`](crate::NODE_VALID_MS) after it *sent* its last
/// successful heartbeat.
pub const NODE_LATE_AFTER_MS: u64 = 1_500;

/// How long the heartbeats of a node must have been without a gap ([`NODE_STEADY_GAP_MS`]) before it may declare others dead, in milliseconds.
/// After an outage of the store, all nodes may be late; in this time, they come back.
pub const NODE_STEADY_AFTER_MS: u64 = 3_000;

/// A longer time between two heartbeats of a node, by the store's clock, is a gap, in milliseconds. An outage of the store that makes any node
/// late takes at least [`NODE_LATE_AFTER_MS`] less the time between two heartbeats. It has to be a gap for all nodes, so that those whose
/// heartbeats are just in time do not declare the others dead.
pub const NODE_STEADY_GAP_MS: u64 = 1_000;

/// A node whose heartbeat is older than this, by the store's clock, is quiet, in milliseconds. Other nodes then probe its connection to the bus
/// ([`QuietNode`]).
pub const NODE_QUIET_AFTER_MS: u64 = 400;

/// Other nodes may declare a node dead after this time without a heartbeat, by the store's clock, in milliseconds, if the node is not connected
/// to the bus. A node without the bus pauses before that: [`NODE_VALID_ALONE_MS`](crate::NODE_VALID_ALONE_MS) after it *sent* its last successful
/// heartbeat.
pub const NODE_UNHEARD_AFTER_MS: u64 = 600;

/// Like [`NODE_STEADY_AFTER_MS`], for a node that declares others dead because they are not connected to the bus. It is longer than a node needs
/// to connect to the bus again.
pub const NODE_STEADY_UNHEARD_MS: u64 = 1_000;

/// The numbers of runs that each process of a node has. The runs of the next process have higher numbers.
pub const RUNS_PER_PROCESS: u64 = 1 << 32;

/// New values of a player whom the caller owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSave {
    /// The player.
    pub player: PlayerId,
    /// The epoch with which the caller owns it.
    pub epoch: u64,
    /// Its state.
    pub record: ClusterRecord,
}

/// A request of a node to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterRequest {
    /// Starts a process of a node. Refused while another process of that name is alive: after a crash, for up to [`NODE_LATE_AFTER_MS`].
    StartRun {
        /// The name of the node.
        name: String,
    },
    /// Ends a run. Others may claim its players at once, and the node may start again.
    EndRun {
        /// The run that sends the request.
        run: NodeRun,
    },
    /// Reads all nodes.
    ReadNodes,
    /// Confirms that the node runs. If the process has begun a new run, the first heartbeat of that run registers it.
    Heartbeat {
        /// The run that sends the request.
        run: NodeRun,
        /// Its load, in units of the game.
        load: u32,
    },
    /// Saves all these players in one transaction.
    Save {
        /// The run that sends the request.
        run: NodeRun,
        /// The players. Players that exchanged something unsaved have to be in the same request.
        saves: Vec<ClusterSave>,
    },
    /// Gives players to another node, with their states, and saves others with them.
    HandOff {
        /// The run that sends the request.
        run: NodeRun,
        /// The players, each once.
        players: Vec<ClusterSave>,
        /// The new owner.
        to: NodeRun,
        /// Other players that exchanged something unsaved with them, each once.
        saves: Vec<ClusterSave>,
    },
    /// Ends the ownership of a player: it has logged out. Saves its state, and others with it.
    Release {
        /// The run that sends the request.
        run: NodeRun,
        /// The player.
        player: ClusterSave,
        /// Players that exchanged something unsaved with the player.
        saves: Vec<ClusterSave>,
    },
    /// Raises the epoch of a player whom the caller owns. No earlier request about the player can succeed after that.
    RaiseEpoch {
        /// The run that sends the request.
        run: NodeRun,
        /// The player.
        player: PlayerId,
        /// The epoch with which the caller owns it.
        epoch: u64,
    },
    /// Reads what the store knows about players. Unknown ones are left out.
    ReadPlayers {
        /// The players, ascending, each once.
        players: Vec<PlayerId>,
        /// Whether their saved states are read, too.
        with_records: bool,
    },
    /// Reads the players that the caller owns and has not adopted.
    ReadArrivals {
        /// The run that sends the request.
        run: NodeRun,
    },
    /// Confirms that the new owner of players has them, and reads their states. Players that the caller does not own with these epochs are left
    /// out. A repeated request changes nothing more.
    Adopt {
        /// The run that sends the request.
        run: NodeRun,
        /// The players, each once.
        arrivals: Vec<Arrival>,
    },
    /// Takes a player back from a late node that has not adopted it.
    TakeBack {
        /// The run that sends the request.
        run: NodeRun,
        /// The player.
        player: PlayerId,
        /// The epoch with which the late node owns it.
        epoch: u64,
    },
    /// Claims players of dead nodes and of earlier runs, up to a maximum number. They become arrivals. Before that, it declares all late nodes
    /// dead, if the heartbeats of the caller had no gap for [`NODE_STEADY_AFTER_MS`], and those that are not connected to the bus, if they had
    /// none for [`NODE_STEADY_UNHEARD_MS`]. The reply is [`ClusterReply::Claimed`].
    ClaimLate {
        /// The run that sends the request.
        run: NodeRun,
        /// Maximum number of players.
        players_max: usize,
        /// Quiet nodes that are not connected to the bus. One that has sent a heartbeat since then, or whose last heartbeat is younger than
        /// [`NODE_UNHEARD_AFTER_MS`], is not declared dead.
        unheard: Vec<QuietNode>,
    },
    /// Claims a player without an owner, for a login. The player becomes an arrival. An unknown player is created, with revision 0.
    LogIn {
        /// The run that sends the request.
        run: NodeRun,
        /// The player.
        player: PlayerId,
        /// The epoch of the player, so that a late request does not bring it back after a log-out; 0 for an unknown player.
        epoch: u64,
    },
    /// A request about scenes.
    Scene(SceneRequest),
    /// A request about matches.
    Match(MatchRequest),
    /// A request about groups.
    Group(GroupRequest),
    /// A request about reports of nodes.
    Report(ReportRequest),
}

/// A player that waits to be adopted by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The player.
    pub player: PlayerId,
    /// The epoch of the owner.
    pub epoch: u64,
}

/// A node that has not sent a heartbeat for [`NODE_QUIET_AFTER_MS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietNode {
    /// Its newest run.
    pub run: NodeRun,
    /// The time of its last heartbeat, by the store's clock, in milliseconds.
    pub heartbeat_ms: u64,
}

/// What the store knows about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// Its name.
    pub name: String,
    /// Its newest run.
    pub run: NodeRun,
    /// Whether it has not ended and its heartbeat is in time. `false` for a late node, which may come back.
    pub is_alive: bool,
    /// Whether it is alive, and its heartbeats had no gap for [`NODE_STEADY_AFTER_MS`].
    pub is_steady: bool,
    /// The load that it has reported with its last heartbeat, in units of the game.
    pub load: u32,
    /// Whether it drains: it gives up its scenes and claims none.
    pub is_draining: bool,
}

impl NodeEntry {
    /// Whether the node may get scenes and matches.
    pub(crate) const fn is_available(&self) -> bool {
        self.is_alive && !self.is_draining
    }
}

/// Why the store refused a request and changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedWrite {
    /// The caller does not own a player or a scene with that epoch, or its epoch is another one.
    NotOwner,
    /// The target of a hand-off is late or gone.
    TargetLate,
    /// The store has a newer state of a player.
    OlderState,
    /// The run of the caller is late, was declared dead, or is unknown.
    RunEnded,
    /// The owner of the player of a [`ClusterRequest::TakeBack`] is alive or has adopted it; or the owner of a scene was not declared dead.
    NotLate,
    /// The node has a newer run: another process has started it.
    NewerRun,
    /// Another process of that name is alive.
    NodeRuns,
    /// The caller drains, so it may not claim scenes.
    NodeDrains,
    /// No node has that name.
    UnknownNode,
}

/// The reply to a [`ClusterRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterReply {
    /// The request was executed.
    Done,
    /// Nothing was changed.
    Refused(RefusedWrite),
    /// The run of a process that has just started.
    Started(NodeRun),
    /// All nodes, by ascending id.
    Nodes(Vec<NodeEntry>),
    /// What the store knows about players, by ascending id.
    Players(Vec<PlayerEntry>),
    /// Players that wait to be adopted.
    Arrivals(Vec<Arrival>),
    /// The reply to [`ClusterRequest::ClaimLate`].
    Claimed {
        /// The claimed players, which wait to be adopted.
        arrivals: Vec<Arrival>,
        /// The other nodes that are quiet and not dead, by ascending id.
        quiet: Vec<QuietNode>,
    },
    /// The states of the adopted players, in the order of the request.
    Adopted(Vec<(Arrival, ClusterRecord)>),
    /// The reply to a request about scenes that reads something.
    Scene(SceneReply),
    /// The reply to a request about matches.
    Match(MatchReply),
    /// The reply to a request about groups.
    Group(GroupReply),
    /// The reply to [`ReportRequest::Read`].
    Reports(ReportTable),
    /// The store is away, or the request has waited for it for too long: the request was not executed and will not be.
    Away,
}
