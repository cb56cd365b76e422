#![doc = include_str!("../README.md")]
//!
//! # A hand-off
//!
//! ```text
//!  node S                          row of the player              node T
//!  Live ─ begin_move ─▶ Moving ──▶ owner T, epoch + 1 ◀── reads arrivals (a wake-up says when)
//!                       Moved  ◀── adopted            ◀── adopt ─▶ Live ─▶ routes to all gateways
//!                       (removed when it was adopted; taken back when T is late)
//! ```
//! Departures from the plan, each because the simulation found the plan wrong:
//!
//! - A transaction whose outcome is unknown may still be executed later. Reading the row is not enough: the node first raises the
//!   epoch, after which the late transaction is refused.
//! - The owner is a *run* of a node, not a node: a node that restarts must not believe in what it held before.
//! - A node counts the time of its heartbeat from when it sent the request, not from the reply.
//! - A hand-off has no row of its own. It is stored in the player's row, where `adopted` belongs to the owner and the epoch.
//! - Players who exchanged something unsaved are saved with the hand-off, in its transaction.
//!
//! | file | holds |
//! |---|---|
//! | `ids` | nodes, their runs, gateways, records |
//! | `rows` | the rows, and the requests to a store |
//! | `node` | a node |
//! | `node/held_player` | a player in the memory of a node |
//! | `node/requests` | which request of a node is pending |
//! | `routes` | the routes of a gateway |
#![warn(missing_docs)]

mod ids;
mod node;
mod routes;
mod rows;

pub use ids::{ClusterNodeId, ClusterRecord, GatewayId, NodeRun};
pub use node::{ClusterNode, NODE_VALID_MS, NodeOutput, NodeSettings, NodeStats, RequestId};
pub use routes::{PlayerRoute, PlayerRoutes};
pub use rows::{
    Arrival, ClusterReply, ClusterRequest, ClusterRows, ClusterSave, NODE_LATE_AFTER_MS,
    RefusedWrite,
};
