//! `throng cluster status`, `throng cluster drain`.

use throng_cluster::{
    ClusterReply, ClusterRequest, ClusterStore, NodeOverview, RefusedWrite, SceneEntry, SceneReply,
    SceneRequest, SceneTable,
};

use super::status_page::{StatusPageArguments, state};
use super::store_args::{StoreArguments, failed};
use crate::escape::escaped;
use crate::{CliError, CliStatus, print};

/// Arguments of `throng cluster status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  throng cluster status --store postgres://throng@localhost/game
  throng cluster status --serve 127.0.0.1:9200 \\
      --store postgres://throng@localhost/game

Exit codes: 0 every scene runs on a node that is alive, 1 otherwise, 2 not
readable.")]
pub(super) struct Status {
    #[command(flatten)]
    store: StoreArguments,
    /// Print one JSON object instead of tables
    #[arg(long, conflicts_with = "serve")]
    json: bool,
    #[command(flatten)]
    page: StatusPageArguments,
}

/// Arguments of `throng cluster drain`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: throng cluster drain n2 --store postgres://throng@localhost/game

The node gives up its scenes, its players go with them, and it takes no new
ones. It goes on to run: stop it with SIGTERM, which also drains it. A node that
starts again does not drain."
)]
pub(super) struct Drain {
    /// Name of the node
    name: String,
    #[command(flatten)]
    store: StoreArguments,
    /// End the drain: the node takes scenes and players again
    #[arg(long)]
    undo: bool,
}

impl Status {
    /// Prints the tables, or serves the page.
    pub(super) fn run(self, quiet: bool) -> Result<CliStatus, CliError> {
        let address = self.page.address()?;
        let mut rows = self.store.rows()?;
        if let Some(address) = address {
            return self.page.serve(address, rows, quiet);
        }
        let nodes = rows.read_node_overview().map_err(failed)?;
        let request = ClusterRequest::Scene(SceneRequest::Read);
        let reply = rows.execute(&request).map_err(failed)?;
        let ClusterReply::Scene(SceneReply::Table(table)) = reply else {
            let message = format!("--store: expected the scenes, found {reply:?}");
            return Err(CliError::new(message).with_help("are the tables those of this version?"));
        };
        if self.json {
            print(&as_json(&nodes, &table).to_string())?;
        } else {
            let lines = node_lines(&nodes).into_iter();
            let lines = lines.chain([String::new()]).chain(scene_lines(&table));
            { lines }.try_for_each(|line| print(&line))?;
        }
        let run = table.scenes.iter();
        let is_running = |scene: &SceneEntry| table.alive_owner(&scene.name).is_some();
        Ok(if { run }.all(is_running) {
            CliStatus::Done
        } else {
            CliStatus::Failed
        })
    }
}

fn age(age_ms: u64) -> String {
    match age_ms {
        0..10_000 => format!("{:.1} s", age_ms as f64 / 1e3),
        10_000..600_000 => format!("{} s", age_ms / 1_000),
        600_000..360_000_000 => format!("{} min", age_ms / 60_000),
        _ => format!("{} d", age_ms / 86_400_000),
    }
}

fn node_lines(nodes: &[NodeOverview]) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<24} {:<9} {:>8} {:>6} {:>8} {:>10}",
        "NODE", "STATE", "PLAYERS", "SCENES", "LOAD", "HEARTBEAT"
    )];
    lines.extend(nodes.iter().map(|node| {
        format!(
            "{:<24} {:<9} {:>8} {:>6} {:>8} {:>10}",
            escaped(&node.name),
            state(node),
            node.players,
            node.scenes,
            node.load,
            age(node.heartbeat_age_ms)
        )
    }));
    if nodes.is_empty() {
        lines.push("(no node has started yet)".to_owned());
    }
    lines
}

/// The node that runs a scene.
fn owner<'t>(table: &'t SceneTable, scene: &SceneEntry) -> Option<&'t str> {
    let owner = table.alive_owner(&scene.name)?;
    table.alive_node(owner).map(|node| &*node.name)
}

fn scene_lines(table: &SceneTable) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<32} {:<20} {:<16} {:>6}",
        "SCENE", "NODE", "PINNED TO", "EPOCH"
    )];
    lines.extend(table.scenes.iter().map(|scene| {
        format!(
            "{:<32} {:<20} {:<16} {:>6}",
            escaped(&scene.name),
            owner(table, scene).map_or("–".to_owned(), |name| escaped(name).to_string()),
            scene
                .pinned_to
                .as_deref()
                .map_or(String::new(), |name| escaped(name).to_string()),
            scene.epoch
        )
    }));
    if table.scenes.is_empty() {
        lines.push("(no node has declared scenes yet)".to_owned());
    }
    lines
}

fn as_json(nodes: &[NodeOverview], table: &SceneTable) -> serde_json::Value {
    let nodes = nodes.iter().map(|node| {
        serde_json::json!({
            "name": node.name,
            "state": state(node),
            "players": node.players,
            "scenes": node.scenes,
            "load": node.load,
            "heartbeat_age_ms": node.heartbeat_age_ms,
        })
    });
    let scenes = table.scenes.iter().map(|scene| {
        serde_json::json!({
            "name": scene.name,
            "node": owner(table, scene),
            "pinned_to": scene.pinned_to,
            "epoch": scene.epoch,
        })
    });
    serde_json::json!({
        "nodes": nodes.collect::<Vec<_>>(),
        "scenes": scenes.collect::<Vec<_>>(),
    })
}

impl Drain {
    /// Marks the node.
    pub(super) fn run(self) -> Result<CliStatus, CliError> {
        let mut rows = self.store.rows()?;
        let is_draining = !self.undo;
        let name = self.name.clone();
        let nodes = rows.read_node_overview().map_err(failed)?;
        let shown = escaped(&name);
        let Some(node) = nodes.iter().find(|node| node.name == name) else {
            let names: Vec<&str> = nodes.iter().map(|node| &*node.name).collect();
            let message = format!("no node has the name `{shown}`");
            let help = format!("the nodes are: {}", names.join(", "));
            return Err(CliError::new(message).with_help(help));
        };
        if !node.is_alive {
            let message = format!("node `{shown}` does not run, so it has nothing to give up");
            return Err(CliError::new(message));
        }
        let request = SceneRequest::SetDraining { name, is_draining };
        let reply = rows
            .execute(&ClusterRequest::Scene(request))
            .map_err(failed)?;
        match reply {
            ClusterReply::Done => {}
            ClusterReply::Refused(RefusedWrite::RunEnded) => {
                return Err(CliError::new(format!("node `{shown}` has just ended")));
            }
            other => {
                let message = format!("--store: expected a reply, found {other:?}");
                return Err(CliError::new(message));
            }
        }
        print(&if is_draining {
            format!("node {shown} drains: `throng cluster status` shows how far it is")
        } else {
            format!("node {shown} takes scenes and players again")
        })?;
        Ok(CliStatus::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use throng_cluster::{ClusterNodeId, NodeRun};

    fn node(name: &str, is_alive: bool, is_draining: bool, age_ms: u64) -> NodeOverview {
        NodeOverview {
            name: name.to_owned(),
            run: NodeRun {
                node: ClusterNodeId(0),
                run: 1,
            },
            is_alive,
            is_dead: !is_alive && age_ms > 60_000,
            heartbeat_age_ms: age_ms,
            load: 12,
            is_draining,
            players: 7,
            scenes: 2,
        }
    }

    #[test]
    fn tables_fit_eighty_columns_and_show_states() {
        let nodes = [
            node("n1", true, false, 120),
            node("n2", true, true, 59_000),
            node("n3", false, true, 7_200_000),
            node("n4", false, false, 1_600),
        ];
        let lines = node_lines(&nodes);
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&lines[1]), "n1 up 7 2 12 0.1 s");
        assert_eq!(words(&lines[2]), "n2 draining 7 2 12 59 s");
        assert_eq!(words(&lines[3]), "n3 gone 7 2 12 120 min");
        assert_eq!(words(&lines[4]), "n4 late 7 2 12 1.6 s");
        let table = SceneTable::default();
        let lines = scene_lines(&table);
        assert!(lines[0].chars().count() <= 80 && lines.len() == 2);
    }
}
