//! The nodes and gateways of the demo.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use throng_cluster::{
    ClusterReply, ClusterRequest, ClusterStore, NodeOverview, PostgresRows, SceneReply,
    SceneRequest, SceneTable,
};

use super::Demo;
use super::folder::DemoFolder;
use super::process::DemoProcess;
use super::servers::{DemoServers, free_port, retry};
use crate::CliError;
use crate::cluster::store_args::failed;

/// How long nodes and gateways may take to start, and to end.
const START_TIME: Duration = Duration::from_secs(60);
const END_TIME: Duration = Duration::from_secs(10);

/// A member of the cluster: how it is started, and its process while it runs.
struct Member {
    name: String,
    arguments: Vec<String>,
    process: Option<DemoProcess>,
}

/// All nodes and gateways, in the order in which they are started and killed. They end when this is dropped.
pub(super) struct Fleet {
    members: Vec<Member>,
    gateways: Vec<SocketAddr>,
    /// Where nodes compare the mirrors of clients with their state.
    mirror_checks: Vec<SocketAddr>,
    /// The metrics of the gateways.
    metrics: Vec<SocketAddr>,
    program: PathBuf,
    log_folder: PathBuf,
    environment: [(&'static str, String); 2],
    rows: PostgresRows,
}

/// What the rows say.
#[derive(Default)]
pub(super) struct FleetState {
    pub nodes: Vec<NodeOverview>,
    pub table: SceneTable,
}

impl FleetState {
    /// The name of the node that runs a scene.
    pub fn owner(&self, scene: &str) -> Option<&str> {
        let owner = self.table.alive_owner(scene)?;
        self.table.alive_node(owner).map(|node| &*node.name)
    }

    /// How many scenes each node runs.
    pub fn scene_counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for scene in &self.table.scenes {
            if let Some(owner) = self.owner(&scene.name) {
                *counts.entry(owner).or_default() += 1;
            }
        }
        counts
    }
}

impl Fleet {
    /// Starts all, and waits until every scene runs.
    pub fn start(
        demo: &Demo,
        folder: &DemoFolder,
        servers: &DemoServers,
    ) -> Result<Self, CliError> {
        let program = std::env::current_exe();
        let program = program.map_err(|error| CliError::new(format!("this program: {error}")))?;
        let file = |name: &str| folder.file(name).display().to_string();
        let key = ["--cluster-key".to_owned(), file("cluster.key")];
        let (mut members, mut mirror_checks) = (Vec::new(), Vec::new());
        for nth in 1..=demo.nodes {
            let name = format!("n{nth}");
            let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
            mirror_checks.push(address);
            let own = ["node", &demo.world, "--name", &name, "--threads", "1"];
            let check = ["--mirror-check".to_owned(), address.to_string()];
            let own = own.map(str::to_owned).into_iter().chain(check);
            members.push(Member {
                arguments: own.chain(key.clone()).collect(),
                name,
                process: None,
            });
        }
        let (mut gateways, mut metrics) = (Vec::new(), Vec::new());
        for nth in 1..=demo.gateways {
            let (name, port) = (format!("g{nth}"), free_port()?);
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            gateways.push(address);
            metrics.push(SocketAddr::from(([127, 0, 0, 1], free_port()?)));
            let [listen, of_metrics] = [address, metrics[metrics.len() - 1]];
            let [listen, of_metrics] = [listen, of_metrics].map(|address| address.to_string());
            let own = ["gateway", "--name", &name, "--listen", &listen];
            let own = own.into_iter().chain(["--metrics", &of_metrics]);
            let own = own.map(str::to_owned);
            let tokens = ["--key".to_owned(), file("server.key")];
            members.push(Member {
                arguments: own.chain(key.clone()).chain(tokens).collect(),
                name,
                process: None,
            });
        }
        let mut fleet = Self {
            members,
            gateways,
            mirror_checks,
            metrics,
            program,
            log_folder: folder.file(""),
            environment: [
                ("THRONG_BUS", servers.nats.clone()),
                ("THRONG_STORE", servers.postgres.clone()),
            ],
            rows: servers.rows(),
        };
        for nth in 0..fleet.len() {
            fleet.start_member(nth)?;
        }
        let nodes = usize::from(demo.nodes);
        retry("all scenes run", START_TIME, || {
            fleet.check()?;
            let state = fleet.read()?;
            let alive = state.nodes.iter().filter(|node| node.is_alive).count();
            let mut scenes = state.table.scenes.iter();
            let is_complete = alive == nodes && !state.table.scenes.is_empty();
            let runs = scenes.all(|scene| state.owner(&scene.name).is_some());
            Ok((is_complete && runs).then_some(()))
        })?;
        Ok(fleet)
    }

    /// The number of members.
    pub const fn len(&self) -> usize {
        self.members.len()
    }

    /// The addresses of the gateways.
    pub fn gateways(&self) -> &[SocketAddr] {
        &self.gateways
    }

    /// Where nodes compare mirrors.
    pub fn mirror_checks(&self) -> &[SocketAddr] {
        &self.mirror_checks
    }

    /// The addresses of the metrics of the gateways.
    pub fn metrics(&self) -> &[SocketAddr] {
        &self.metrics
    }

    /// The file with the key of tokens.
    pub fn token_key(&self) -> PathBuf {
        self.log_folder.join("server.key")
    }

    fn start_member(&mut self, nth: usize) -> Result<(), CliError> {
        let member = &mut self.members[nth];
        let mut command = Command::new(&self.program);
        command.args(&member.arguments);
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        let log = self.log_folder.join(format!("{}.log", member.name));
        member.process = Some(DemoProcess::start(&member.name, command, &log)?);
        Ok(())
    }

    /// Fails if a process has ended by itself.
    pub fn check(&mut self) -> Result<(), CliError> {
        let mut processes = self.members.iter_mut();
        processes.try_for_each(|member| member.process.as_mut().map_or(Ok(()), DemoProcess::check))
    }

    /// Kills a member; returns its name.
    pub fn kill(&mut self, nth: usize) -> String {
        let member = &mut self.members[nth];
        if let Some(mut process) = member.process.take() {
            process.kill();
        }
        member.name.clone()
    }

    /// Starts a killed member again.
    pub fn restart(&mut self, nth: usize) -> Result<(), CliError> {
        self.start_member(nth)
    }

    /// What the rows say now.
    pub fn read(&mut self) -> Result<FleetState, CliError> {
        let nodes = self.rows.read_node_overview().map_err(failed)?;
        let request = ClusterRequest::Scene(SceneRequest::Read);
        let reply = self.rows.execute(&request).map_err(failed)?;
        let table = match reply {
            ClusterReply::Scene(SceneReply::Table(table)) => table,
            other => {
                return Err(CliError::new(format!(
                    "expected the scenes, found {other:?}"
                )));
            }
        };
        Ok(FleetState { nodes, table })
    }

    /// The rows, for the end.
    pub const fn rows(&mut self) -> &mut PostgresRows {
        &mut self.rows
    }

    /// Ends gateways and then nodes in order. Returns whether all ended in time.
    pub fn stop(&mut self) -> bool {
        let mut is_orderly = true;
        // The nodes at once: none has to take the scenes of another one.
        for prefix in ['g', 'n'] {
            let members = self.members.iter_mut();
            let mut ending: Vec<DemoProcess> = members
                .filter(|member| member.name.starts_with(prefix))
                .filter_map(|member| member.process.take())
                .collect();
            ending.iter().for_each(DemoProcess::terminate);
            for process in &mut ending {
                is_orderly &= process.wait(END_TIME);
            }
        }
        is_orderly
    }
}
