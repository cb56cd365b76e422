//! Several processes that run one world: `throng gateway`, `throng node`, `throng cluster`.
//!
//! ```text
//!  clients ─ UDP, browsers ─▶ throng gateway ◀─ NATS ─▶ throng node ─▶ Postgres
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `bus_args` | options of the bus: NATS server, credentials, key of the cluster |
//! | `store_args` | the option of the store |
//! | `gateway` | `throng gateway` |
//! | `node` | `throng node` |
//! | `world/` | the game of a node: a world of several scenes |
//! | `metrics` | figures of gateways and nodes for Prometheus |
//! | `status` | `throng cluster status`, `throng cluster drain` |
//! | `status_page` | `throng cluster status --serve` |
//! | `demo/` | `throng cluster demo`: a whole cluster on this machine |

mod bus_args;
mod demo;
mod gateway;
mod metrics;
mod node;
mod status;
mod status_page;
mod store_args;
mod world;

use std::time::Duration;

use super::{CliError, CliStatus, Output};
use demo::Demo;
pub(super) use gateway::GatewayCommand;
pub(super) use node::NodeCommand;
use status::{Drain, Status};

/// Limit of connect requests per second from one loopback address, as of `throng serve`.
const LOOPBACK_REQUESTS_PER_S: u32 = 4_096;

/// Between two looks at signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

/// Arguments of `throng cluster`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ClusterCommand {
    #[command(subcommand)]
    action: ClusterAction,
}

const EXAMPLES: &str = "Examples:
  throng cluster demo
  throng cluster demo --nodes 3 --gateways 2 --seconds 60 --kill
  throng cluster status --store postgres://throng@localhost/game
  throng cluster status --serve 127.0.0.1:9200 \\
      --store postgres://throng@localhost/game
  throng cluster drain n2 --store postgres://throng@localhost/game

A cluster has nodes, which run the scenes of a world, gateways, which hold the
connections of clients, a NATS server between them, and a Postgres server with
the rows of nodes, scenes and players. docs/guide/many_machines.md explains it.";

#[derive(Debug, clap::Subcommand)]
enum ClusterAction {
    /// Run a whole cluster on this machine, with clients that walk through portals
    Demo(Demo),
    /// Show the nodes, scenes and gateways of a cluster, once or as a page
    Status(Status),
    /// Make a node give up its scenes and players, before it is stopped
    Drain(Drain),
}

impl ClusterCommand {
    /// Runs the subcommand.
    pub(super) fn run(self, output: Output) -> Result<CliStatus, CliError> {
        match self.action {
            ClusterAction::Demo(demo) => demo.run(output),
            ClusterAction::Status(status) => status.run(output.quiet),
            ClusterAction::Drain(drain) => drain.run(),
        }
    }
}
