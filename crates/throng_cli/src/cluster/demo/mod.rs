//! `throng cluster demo`: a whole cluster on this machine, with clients that walk through portals.
//!
//! ```text
//! Servers: nats-server, Postgres ◀─ DemoProcess: throng node, throng gateway ◀═ UDP ═ DemoWalker, in this process
//!                                   Fleet: starts, kills and restarts them       DemoFigures: what they saw
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `folder` | a temporary folder with keys, logs and data |
//! | `process` | a child process, which ends with the demo |
//! | `servers` | the NATS server and the Postgres server |
//! | `fleet` | nodes and gateways |
//! | `walker` | a client |
//! | `hand_off_times` | reads the times of hand-offs from the gateways |
//! | `figures` | what clients saw, as lines |
//! | `compare` | compares what clients have received with the nodes, at the end |
//! | `play` | the run: clients, kills, the end |

mod compare;
mod figures;
mod fleet;
mod folder;
mod hand_off_times;
mod play;
mod process;
mod servers;
mod walker;

use crate::cluster::world::WorldFile;
use crate::seconds::seconds;
use crate::terminal::listen_for_end;
use crate::{CliError, CliStatus, Output};

use fleet::Fleet;
use folder::DemoFolder;
use play::Play;
use servers::DemoServers;

/// Arguments of `throng cluster demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  throng cluster demo
  throng cluster demo --nodes 3 --gateways 2 --clients 30 --seconds 60 --kill

Starts a NATS server and a temporary Postgres server from this machine's
packages (Debian, Ubuntu: apt install nats-server postgresql), nodes and
gateways, and clients that walk through portals. All of it ends with the
command. Each second it prints a line: for each node `scenes:players`, then
hand-offs of players between nodes, and how often a client was disconnected.

At the end everything stands still, and what each client has received is
compared with the state of its node.

Exit codes: 0 no gold was lost, all clients were in the world at the end, and
what they have received is right; 1 otherwise, or interrupted before that; 2 a
server could not be started.")]
pub(super) struct Demo {
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    nodes: u8,
    /// Number of gateways
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    gateways: u8,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
    /// How long the clients walk [default: 30, with --kill until all processes were killed]
    #[arg(long, value_name = "N", value_parser = seconds)]
    seconds: Option<f64>,
    /// Kill one process after the other with SIGKILL, both servers last, restart it, and report how long clients were out of the world
    ///
    /// With --seconds, again and again until the time is over.
    #[arg(long)]
    kill: bool,
    /// World file, or the name of a built-in world
    #[arg(long, value_name = "WORLD", default_value = "three_towns")]
    world: String,
}

impl Demo {
    /// Runs the demo.
    pub(super) fn run(self, output: Output) -> Result<CliStatus, CliError> {
        let world = WorldFile::load(&self.world)?;
        let folder = DemoFolder::new()?;
        // From now on a signal only requests the end, so that all processes end with this one.
        listen_for_end();
        let mut servers = DemoServers::start(&folder)?;
        let mut fleet = Fleet::start(&self, &folder, &servers)?;
        let mut play = Play::new(&self, (&world, &fleet), output.quiet)?;
        let played = play.run(&self, &mut fleet, &mut servers);
        // The processes end before the servers that they use.
        drop(fleet);
        drop(servers);
        drop(folder);
        played
    }
}
