//! `throng node`: runs scenes of a world, as one of several nodes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bevy_ecs::prelude::*;
use throng::net::{ListenSettings, PROTOCOL_ID, UdpListener, listen};
use throng::outbox::PacketSink;
use throng::prelude::*;
use throng::sim::clock::Stopwatch;
use throng_cluster::{
    BusPeer, ClusterPlayer, ClusterPlayers, ClusterRequest, ClusterSessionsPlugin, ClusterStore,
    DriverSettings, DriverStartError, FrozenPlayer, GatewayPort, LinkSettings, NodeDriver,
    PlayerLogOut, PostgresRows, attach_node,
};
use throng_inspect::{AppMetrics, InspectPlugin, InspectSettings, ServerHealth, open_inspector};

use super::bus_args::{BusArguments, connect};
use super::store_args::StoreArguments;
use super::world::{ClusterWorld, OpenScenes, WorldAtRest, WorldFile, WorldGamePlugin};
use super::{LOOPBACK_REQUESTS_PER_S, metrics};
use crate::key_file::KeyFile;
use crate::mirror_check::MirrorCheckServer;
use crate::seconds::seconds;
use crate::{CliError, CliStatus, cores, is_interrupted, listen_for_interrupt, print};

/// Ticks between two updates of the metrics and of the load.
const FIGURES_TICKS: u64 = 10;

/// Ticks without a log-out after which the remaining players and sessions are left at the end.
const CLOSE_TICKS_MAX: u64 = 400;

/// Arguments of `throng node`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "throng node [OPTIONS] --name <NAME> --bus <URL> --store <URL>\n                   --cluster-key <FILE> <WORLD>",
    after_help = EXAMPLES
)]
pub(crate) struct NodeCommand {
    /// World file, or the name of a built-in world: three_towns, twelve_woods
    world: String,
    /// Name of this node, unique in the cluster
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: String,
    #[command(flatten)]
    bus: BusArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// Address of Prometheus metrics, /healthz and /readyz [default: off]
    ///
    /// They need no token: keep the address private.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// After SIGTERM or SIGINT: maximum time to hand scenes and players to other nodes
    ///
    /// Players that are left then are saved and logged out.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "30s")]
    drain: f64,
    /// Also accept clients over UDP here, without a gateway [default: off]
    ///
    /// For a world with one node: such a client is disconnected when its player
    /// goes to another node.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    key: KeyFile,
    /// Threads of the simulation [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// For tests: publish the state of this node here, for the comparison with mirrors of clients
    #[arg(long, value_name = "ADDR:PORT")]
    mirror_check: Option<SocketAddr>,
}

const EXAMPLES: &str = "Examples:
  throng node three_towns --name n1 --bus nats://127.0.0.1:4222 \\
      --store postgres://throng@127.0.0.1/game --cluster-key cluster.key
  throng node my_world.ron --name n2 --bus nats://10.0.0.2:4222 \\
      --bus-user-file nats.user --store postgres://throng@10.0.0.3/game \\
      --cluster-key cluster.key --metrics 10.0.0.12:9100

All nodes of a cluster run the same world file. A scene runs on one node: the
least loaded one, or the one that it is pinned to. Clients connect at a gateway.
Ctrl-C or SIGTERM: scenes and players go to the other nodes, then the node ends;
the last node saves and logs out its players. A second signal ends it at once:
others then claim its players.
Secrets in the environment: THRONG_BUS, THRONG_STORE.";

/// A name of a node or a gateway.
pub(super) fn name(text: &str) -> Result<String, String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if (1..=64).contains(&text.len()) && text.chars().all(is_letter) {
        Ok(text.to_owned())
    } else {
        Err("expected 1 to 64 letters, digits, `-`, `_` and `.`".to_owned())
    }
}

impl NodeCommand {
    /// Runs until a signal, and until scenes and players are elsewhere.
    pub(crate) fn run(self, quiet: bool) -> Result<CliStatus, CliError> {
        let file = Arc::new(WorldFile::load(&self.world)?);
        // The tables exist, and are those of this version.
        drop(self.store.rows()?);
        let mirror_check = self.mirror_check.map(MirrorCheckServer::listen);
        let mirror_check = mirror_check.transpose()?;
        let driver = self.start_driver()?;
        driver.declare_scenes(file.declarations());
        let matches = file.match_node();
        let matches = matches.map_err(|error| CliError::new(format!("{}: {error}", self.world)))?;
        if let Some(matches) = matches {
            driver.open_matches(matches);
        }
        let mut server = Server::builder()
            .tick_hz(file.tick_hz)
            .workers(self.threads.map_or_else(cores, usize::from))
            .pace(Pace::RealTime)
            .timing()
            .plugins((
                InspectPlugin,
                ClusterSessionsPlugin,
                WorldGamePlugin(ClusterWorld(file)),
            ))
            .build();
        let world = server.world_mut();
        let failed = |error: &dyn std::fmt::Display| CliError::new(error.to_string());
        OpenScenes::open_waiting_room(world).map_err(|error| failed(&error))?;
        let clients = self.listen(world)?;
        let port = attach_node(world, driver, LinkSettings::default(), clients);
        let settings = InspectSettings {
            metrics: self.metrics,
            ..InspectSettings::default()
        };
        let open = open_inspector(world, settings).map_err(|error| failed(&error))?;
        listen_for_interrupt();
        if !quiet {
            print(&format!("node {} runs", self.name))?;
            if let Some(udp) = server.world().get_resource::<UdpListener>() {
                print(&format!("listening on {}", udp.address()))?;
            }
            if let Some(address) = open.metrics {
                print(&format!("metrics: http://{address}/metrics"))?;
            }
        }
        let ended = self.serve(&mut server, &port, mirror_check.as_ref());
        close(&mut server);
        if let Some(driver) = server.world_mut().resource_mut::<ClusterPlayers>().close() {
            let run = driver.with_node(|node, _| node.run());
            driver.stop();
            // The threads of the driver would do it, but the process may end first. Then others would wait for 1.5 s.
            let ended_run = self.store.rows().and_then(|mut rows| {
                let reply = rows.execute(&ClusterRequest::EndRun { run });
                reply.map_err(super::store_args::failed)
            });
            if let Err(error) = ended_run {
                tracing::warn!(%error, "node not marked as ended");
            }
        }
        ended
    }

    /// Opens the socket for clients without a gateway. Returns where packets for them go.
    fn listen(&self, world: &mut World) -> Result<Option<Box<dyn PacketSink>>, CliError> {
        let Some(address) = self.listen else {
            return Ok(None);
        };
        let mut settings = ListenSettings::default();
        if address.ip().is_loopback() {
            settings.requests_per_s = LOOPBACK_REQUESTS_PER_S;
        }
        let keys = self.key.read(&[address])?;
        let opened = listen(world, address, keys, settings, None);
        opened.map_err(|error| CliError::new(format!("--listen: {error}")))?;
        let udp = world.get_resource::<UdpListener>();
        Ok(udp.map(|udp| Box::new(udp.sink()) as Box<dyn PacketSink>))
    }

    fn start_driver(&self) -> Result<NodeDriver, CliError> {
        let (key, bus, source) = (self.bus.key()?, self.bus.settings()?, self.store.source()?);
        let settings = DriverSettings {
            protocol_id: PROTOCOL_ID,
            ..DriverSettings::new(&*self.name)
        };
        let timeout = Duration::from_millis(settings.node.request_timeout_ms);
        let open = || Box::new(PostgresRows::new(&source, timeout)) as Box<dyn ClusterStore>;
        let driver = NodeDriver::start(&settings, open, |run| {
            connect(&bus, &key, BusPeer::Node(run.node), run.run).map_err(DriverStartError::Bus)
        });
        driver.map_err(|error| match error {
            DriverStartError::Bus(cause) => CliError::new(format!("--bus: {cause}")),
            DriverStartError::NodeRuns { .. } => CliError::new(format!("--name: {error}")),
            error => CliError::new(error.to_string()),
        })
    }

    /// Runs ticks until a signal, and until scenes and players are elsewhere.
    fn serve(
        &self,
        server: &mut Server,
        port: &GatewayPort,
        mirror_check: Option<&MirrorCheckServer>,
    ) -> Result<CliStatus, CliError> {
        let mut draining: Option<Stopwatch> = None;
        loop {
            server.step(1);
            let tick = server.tick();
            let world = server.world_mut();
            if tick.is_multiple_of(FIGURES_TICKS) {
                update_figures(world, port);
            }
            if mirror_check.is_some_and(|check| check.handle_requests(world)) {
                world.resource_mut::<WorldAtRest>().0 = true;
            }
            let players = world.resource::<ClusterPlayers>();
            let Some(driver) = players.driver() else {
                return Ok(CliStatus::Done);
            };
            if driver.with_node(|node, _| node.is_superseded()) {
                let name = &self.name;
                let message = format!("--name: another process runs as node `{name}`");
                return Err(CliError::new(message).with_help("give each node a name of its own"));
            }
            match &draining {
                None if is_interrupted() => {
                    tracing::warn!("node drains: its scenes and players go to other nodes");
                    driver.set_draining(true);
                    world.resource_mut::<ServerHealth>().set_stopping();
                    draining = Some(Stopwatch::start());
                }
                None => {}
                Some(since) => {
                    let is_over = since.elapsed().as_secs_f64() >= self.drain;
                    if players.players().next().is_none() && driver.scenes().is_empty() || is_over {
                        return Ok(CliStatus::Done);
                    }
                    let own = driver.with_node(|node, _| node.run().node);
                    let others = driver
                        .nodes()
                        .into_iter()
                        .any(|entry| entry.is_alive && !entry.is_draining && entry.run.node != own);
                    if !others {
                        return Ok(CliStatus::Done);
                    }
                }
            }
        }
    }
}

/// Updates the metrics, the load that others see, and the numbers of players for `throng cluster status`.
fn update_figures(world: &mut World, port: &GatewayPort) {
    let scenes = OpenScenes::count_players(world);
    let players = world.resource::<ClusterPlayers>();
    let Some(driver) = players.driver() else {
        return;
    };
    let count = players.players().count();
    driver.set_load(u32::try_from(count).unwrap_or(u32::MAX));
    driver.set_scene_players(scenes);
    let families = metrics::of_node(driver, port, count);
    let mut metrics = world.get_resource_or_init::<AppMetrics>();
    families.into_iter().for_each(|family| metrics.set(family));
}

/// Saves and logs out the players that are left, and closes all sessions.
fn close(server: &mut Server) {
    server.set_pace(Pace::AsFastAsPossible);
    let tick = Duration::from_millis(5);
    server.world_mut().resource_mut::<Sessions>().drain();
    let (mut fewest, mut waited) = (usize::MAX, 0);
    while waited < CLOSE_TICKS_MAX {
        let world = server.world_mut();
        let mut left = world.query_filtered::<&ClusterPlayer, Without<FrozenPlayer>>();
        let left: Vec<PlayerId> = left.iter(world).map(|player| player.0).collect();
        for player in left {
            world.write_message(PlayerLogOut(player));
        }
        server.step(1);
        let world = server.world();
        let players = world.resource::<ClusterPlayers>().players().count();
        let remaining = players + world.resource::<Sessions>().len();
        if remaining == 0 {
            break;
        }
        // They are logged out one after the other: many take longer.
        waited = if remaining < fewest { 0 } else { waited + 1 };
        fewest = fewest.min(remaining);
        // The store saves meanwhile.
        std::thread::sleep(tick);
    }
    let players = server
        .world()
        .resource::<ClusterPlayers>()
        .players()
        .count();
    if players > 0 {
        tracing::warn!(
            players,
            "node ends before all players are logged out: they go back to their last save"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_are_short_and_plain() {
        for good in ["n1", "europe-3.town_2", &"n".repeat(64)] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        for bad in ["", "n 1", "größe", "a/b", &"n".repeat(65)] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
