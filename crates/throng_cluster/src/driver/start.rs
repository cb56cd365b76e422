//! The start of a node.

use std::thread;
use std::time::Duration;

use thiserror::Error;
use throng_core::clock::Stopwatch;

use crate::groups::GroupSettings;
use crate::ids::{GatewayId, NodeRun};
use crate::messenger::MessengerSettings;
use crate::node::NodeSettings;
use crate::party_values::PartyValueSettings;
use crate::request::{ClusterReply, ClusterRequest, NODE_LATE_AFTER_MS, RefusedWrite};
use crate::store::ClusterStore;

/// The time between two attempts to start.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Settings of a [`NodeDriver`](super::NodeDriver).
///
/// ```
/// use throng_cluster::{DriverSettings, NodeSettings};
///
/// // A failure of the node loses at most three seconds of play.
/// let node = NodeSettings { save_interval_ms: 3_000, ..NodeSettings::default() };
/// let settings = DriverSettings { node, ..DriverSettings::new("town-1") };
/// assert!(settings.gateways.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverSettings {
    /// The name of the node. Two processes with the same name never run at the same time.
    pub name: String,
    /// Times and limits of the node.
    pub node: NodeSettings,
    /// Limits of messages to players.
    pub messages: MessengerSettings,
    /// Times and limits of groups.
    pub groups: GroupSettings,
    /// Times and limits of attributes of party members on other nodes.
    pub party_values: PartyValueSettings,
    /// The id of the game and its version, as in connect tokens. Gateways and nodes with another one are ignored.
    pub protocol_id: u64,
    /// Gateways that get routes to the players, in addition to those that broadcast their presence.
    pub gateways: Vec<GatewayId>,
    /// How long a start waits for the store, and until a crashed process of the same name is late. By default twice
    /// [`NODE_LATE_AFTER_MS`](crate::NODE_LATE_AFTER_MS).
    pub start_timeout: Duration,
    /// The time between two reads of the list of nodes.
    pub nodes_interval: Duration,
}

impl DriverSettings {
    /// The default settings of a node with this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            node: NodeSettings::default(),
            messages: MessengerSettings::default(),
            groups: GroupSettings::default(),
            party_values: PartyValueSettings::default(),
            protocol_id: 0,
            gateways: Vec::new(),
            start_timeout: Duration::from_millis(2 * NODE_LATE_AFTER_MS),
            nodes_interval: Duration::from_millis(500),
        }
    }
}

/// Why a node does not start.
#[derive(Debug, Error)]
pub enum DriverStartError {
    /// Another process has this name.
    #[error(
        "node `{name}` runs already in another process: choose another name, or end that process"
    )]
    NodeRuns {
        /// The name.
        name: String,
    },
    /// The store did not reply in time.
    #[error("node `{name}` not started: {cause}")]
    StoreAway {
        /// The name.
        name: String,
        /// Its last error.
        cause: String,
    },
    /// The bus is not connected.
    #[error("bus not connected: {0}")]
    Bus(String),
    /// A thread was not created.
    #[error("thread not created: {0}")]
    Thread(#[from] std::io::Error),
}

/// Gets a run for a node. Waits while another process of that name may still run.
pub(super) fn start_run(
    settings: &DriverSettings,
    store: &mut dyn ClusterStore,
) -> Result<NodeRun, DriverStartError> {
    let begun = Stopwatch::start();
    let name = settings.name.clone();
    let request = ClusterRequest::StartRun { name };
    loop {
        let name = settings.name.clone();
        let error = match store.execute(&request) {
            Ok(ClusterReply::Started(run)) => return Ok(run),
            Ok(ClusterReply::Refused(RefusedWrite::NodeRuns)) => {
                DriverStartError::NodeRuns { name }
            }
            Ok(other) => DriverStartError::StoreAway {
                name,
                cause: format!("the store replied {other:?}"),
            },
            Err(error) => DriverStartError::StoreAway {
                name,
                cause: error.to_string(),
            },
        };
        if begun.elapsed() >= settings.start_timeout {
            return Err(error);
        }
        thread::sleep(RETRY_DELAY);
    }
}
