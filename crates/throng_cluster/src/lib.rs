#![doc = include_str!("../README.md")]
//!
//! # A hand-off
//!
//! ```text
//!  node S                          row of the player              node T
//!  Live ─ begin_move ─▶ Moving ──▶ owner T, epoch + 1 ◀── a hint with its arrivals, or a read every second
//!                       Moved  ◀── adopted            ◀── adopt ─▶ Live ─▶ routes to all gateways
//!                       (removed when it was adopted; taken back when T is late)
//! ```
//! Rules that the simulation has shown to be necessary:
//!
//! - A transaction whose outcome is unknown may still be executed later. Reading the row is not enough: the node first raises the
//!   epoch. After that, the late transaction is refused.
//! - The owner is a *run* of a node, not a node: a node that restarts does not own what it held before.
//! - A node counts the time of its heartbeat from when it sent the request, not from the reply.
//! - A hand-off has no row of its own. It is stored in the player's row, where `adopted` belongs to the owner and the epoch.
//! - Players who exchanged something unsaved are saved with the hand-off, in its transaction.
//! - A late node is not dead. A node without a recent heartbeat pauses. Another node may declare it dead only after its own heartbeats had no
//!   gap of more than 1 s for 3 s; then it may claim the players. So a short outage of the store kills no node.
//! - A node that is not connected to the bus may be declared dead after 600 ms without a heartbeat instead of 1,500 ms. So it pauses earlier, too.
//!
//! | file | holds |
//! |---|---|
//! | `guide` | how the parts work together |
//! | `ids` | nodes, their runs, gateways, records |
//! | `request` | requests to a store, and the replies |
//! | `request/players`, `request/scenes`, `request/matches`, `request/groups`, `request/reports` | the types of requests about several players, scenes, matches, groups, and reports for operators |
//! | `store` | the contract of a store |
//! | `rows` | the rows in memory: the reference for all stores |
//! | `rows/scenes`, `rows/matches`, `rows/groups`, `rows/reports` | the rows of scenes; of roles, tickets and matches; of parties and guilds; reports of nodes |
//! | `postgres` | the rows on a Postgres server (feature `postgres`) |
//! | `postgres/players`, `postgres/scenes`, `postgres/matches`, `postgres/groups`, `postgres/reports` | the same requests as calls of functions of the database |
//! | `postgres/overview` | reads of the rows for operators |
//! | `node` | a node |
//! | `node/gateways` | what a node reports to others: its load, and routes to its players |
//! | `node/held_player` | a player in the memory of a node |
//! | `node/quiet_nodes` | whether nodes with overdue heartbeats are connected to the bus |
//! | `node/replies` | how a node handles replies |
//! | `node/reports` | what a node reports to operators |
//! | `node/requests` | the pending requests of a node, one per kind |
//! | `node/scenes` | which scenes a node runs |
//! | `node/validity` | how long a node may simulate |
//! | `node/placement` | which node is to run a scene |
//! | `matcher/` | matches: tickets, the matcher, the matches of a node, players on their way |
//! | `bus/` | messages between nodes and gateways: in memory, or by a NATS server (feature `nats`) |
//! | `presence/` | which nodes and gateways are connected to the bus |
//! | `driver/` | drives a node with a store and a bus, in threads of its own |
//! | `plugin/` | the players of a node in a Bevy app (feature `bevy`) |
//! | `link/` | packets of clients between nodes and gateways: reliable over the bus |
//! | `gateway/` | a gateway for clients, and the node's end (feature `gateway`) |
//! | `sessions/` | sessions of a throng server for the players of a node (feature `server`) |
//! | `messenger/` | messages to players on any node |
//! | `groups/` | the parties and guilds of the players of a node |
//! | `party_values/` | attributes of party members on other nodes |
//! | `routes` | the routes of a gateway |
#![warn(missing_docs)]

mod bus;
mod driver;
#[cfg(feature = "gateway")]
mod gateway;
mod groups;
pub mod guide;
mod ids;
mod link;
mod matcher;
mod messenger;
mod node;
mod party_values;
#[cfg(feature = "bevy")]
mod plugin;
#[cfg(feature = "postgres")]
mod postgres;
mod presence;
mod request;
mod routes;
mod rows;
#[cfg(feature = "server")]
mod sessions;
mod store;

pub use bus::{
    BUS_VERSION, BusEvent, BusFull, BusMessage, BusPeer, BusRefusal, BusRelay, BusSendError,
    BusSignal, BusStats, BusTransport, ClusterKey, FRAME_OVERHEAD_BYTES, InvalidClusterKey,
    LocalBus, LocalTransport, MESSAGE_BYTES_MAX, MessageBus,
};
#[cfg(feature = "nats")]
pub use bus::{BusConnectError, NatsSettings, NatsTransport};
pub use driver::{DriverSettings, DriverStartError, DriverStats, NodeDriver};
#[cfg(feature = "gateway")]
pub use gateway::{
    ClientGateway, CountedTimes, GATEWAY_PACKET_BYTES_MAX, GatewayPort, GatewayPortStats,
    GatewaySettings, GatewaySink, GatewayStats,
};
pub use groups::{
    GroupDirectory, GroupEvent, GroupNotChanged, GroupOutput, GroupSettings, GroupStats,
};
pub use ids::{ClusterNodeId, ClusterRecord, GatewayId, NodeRun};
pub use link::{ClientBehind, LinkClient, LinkEvent, LinkSet, LinkSettings, LinkStats};
pub use matcher::{
    ClusterModeSettings, HostLoad, MatchNode, MatchOutput, MatcherSettings, MatcherStats,
    TicketNotAdded, TicketOutcome,
};
pub use messenger::{
    MessengerEvent, MessengerSettings, MessengerStats, PlayerLocations, PlayerMessenger,
};
pub use node::{
    ClusterNode, NODE_VALID_ALONE_MS, NODE_VALID_MS, NodeOutput, NodeSettings, NodeStats,
    PlayerStay, RequestId,
};
pub use party_values::{MemberHere, PartyExchange, PartyValueSettings, PartyValueStats};
#[cfg(feature = "bevy")]
pub use plugin::{
    ClusterAnnounced, ClusterAnnouncement, ClusterPlayer, ClusterPlayers, ClusterPlugin,
    ClusterScenes, ClusterSystems, FrozenPlayer, LeaveReason, PlayerExchange, PlayerHooks,
    PlayerLogOut, PlayerLoginRefused, PlayerLookedUp, PlayerLookups, PlayerMessageReceived,
    PlayerMessageRequest, PlayerMove, SceneAssigned, ScenePlace, SceneRemoved,
};
#[cfg(feature = "bevy")]
pub use plugin::{
    ClusterGroups, GroupChangeFinished, GroupChangeRequest, GroupMembersChanged,
    GroupMessageRequest, PlayerGroupChanged,
};
#[cfg(feature = "bevy")]
pub use plugin::{
    MatchAssigned, MatchClosed, MatchEnded, MatchOpened, MatchReport, MatchStep, MatchTicket,
    MatchTicketCancel, MatchTicketChanged, MatchTicketInvalid, NoMatchElsewhere,
};
#[cfg(feature = "postgres")]
pub use postgres::{
    ClusterOverview, HandOffOverview, MatchCounts, NodeOverview, PlayerOverview, PostgresRows,
    SceneOverview,
};
pub use presence::{
    KnownPeer, PEER_NAME_BYTES_MAX, PeerChange, PeerClash, PeerDirectory, PeerPresence,
};
pub use request::{
    Arrival, ClusterReply, ClusterRequest, ClusterSave, NODE_LATE_AFTER_MS, NODE_QUIET_AFTER_MS,
    NODE_STEADY_AFTER_MS, NODE_STEADY_GAP_MS, NODE_STEADY_UNHEARD_MS, NODE_UNHEARD_AFTER_MS,
    NodeEntry, PlayerEntry, QuietNode, RUNS_PER_PROCESS, RefusedWrite, SceneDeclaration,
    SceneEntry, SceneReply, SceneRequest, SceneTable,
};
pub use request::{
    ClusterTicket, MATCH_KEPT_MS, MATCHER_ROLE, MatchEntry, MatchId, MatchReply, MatchRequest,
    MatchState, NewMatch, PlayerTravel, ROLE_LEASE_MS, RefusedMatch, TicketChange, TicketHome,
    TicketId, TicketMember, TicketRating, TravelGoal,
};
pub use request::{
    GatewayClients, GatewayOverview, NodeReport, REPORT_OLD_AFTER_MS, REPORTED_GATEWAYS_MAX,
    REPORTED_SCENES_MAX, ReportEntry, ReportRequest, ReportTable, RouteCount, ScenePlayers,
};
pub use request::{
    GroupChange, GroupEntry, GroupId, GroupKind, GroupMember, GroupReply, GroupRequest,
    PlayerGroup, RefusedGroup,
};
pub use routes::{PlayerRoute, PlayerRoutes};
pub use rows::ClusterRows;
#[cfg(feature = "server")]
pub use sessions::{
    ClientMessageChannels, ClusterSessionsPlugin, ClusterSessionsSettings, attach_node,
};
pub use store::{ClusterStore, ClusterStoreError, SharedRows};
