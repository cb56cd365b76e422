//! `throng cluster status`, `throng cluster drain`.

use throng_cluster::{
    ClusterReply, ClusterRequest, ClusterStore, GatewayOverview, NodeOverview, PostgresRows,
    RefusedWrite, ReportRequest, ReportTable, RouteCount, SceneEntry, SceneReply, SceneRequest,
    SceneTable,
};

use super::status_page::{StatusPageArguments, routes_as_json, state};
use super::store_args::{StoreArguments, failed};
use crate::escape::escaped;
use crate::{CliError, CliStatus, print};

/// The width of the list of routes in the table of gateways, and of ", 9999 more" at its end.
const ROUTES_COLUMNS: usize = 45;
const MORE_COLUMNS: usize = 11;

/// Arguments of `throng cluster status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  throng cluster status --store postgres://throng@localhost/game
  throng cluster status --serve 127.0.0.1:9200 \\
      --store postgres://throng@localhost/game

Nodes report the players of their scenes, and the clients of gateways, once per
second. Scenes and gateways of nodes that are late or gone have no such numbers.

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
        let mut rows = self.store.existing_rows()?;
        if let Some(address) = address {
            return self.page.serve(address, rows, quiet);
        }
        let nodes = rows.read_node_overview().map_err(failed)?;
        let (table, reports) = read(&mut rows)?;
        if self.json {
            print(&as_json(&nodes, &table, &reports).to_string())?;
        } else {
            let tables = [
                node_lines(&nodes),
                scene_lines(&table, &reports),
                gateway_lines(&reports.gateways()),
            ];
            let text = tables.map(|lines| lines.join("\n")).join("\n\n");
            print(&text)?;
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

/// The scenes, and what nodes report.
fn read(rows: &mut PostgresRows) -> Result<(SceneTable, ReportTable), CliError> {
    let requests = [
        ClusterRequest::Scene(SceneRequest::Read),
        ClusterRequest::Report(ReportRequest::Read),
    ];
    let [scenes, reports] = requests.map(|request| rows.execute(&request).map_err(failed));
    match (scenes?, reports?) {
        (ClusterReply::Scene(SceneReply::Table(table)), ClusterReply::Reports(reports)) => {
            Ok((table, reports))
        }
        other => {
            let message = format!("--store: expected scenes and reports, found {other:?}");
            Err(CliError::new(message).with_help("are the tables those of this version?"))
        }
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

/// The players of a scene, if its node reports them.
fn players(table: &SceneTable, reports: &ReportTable, scene: &str) -> Option<u32> {
    reports.scene_players(table.alive_owner(scene)?, scene)
}

fn scene_lines(table: &SceneTable, reports: &ReportTable) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<28} {:<18} {:<14} {:>7} {:>6}",
        "SCENE", "NODE", "PINNED TO", "PLAYERS", "EPOCH"
    )];
    lines.extend(table.scenes.iter().map(|scene| {
        format!(
            "{:<28} {:<18} {:<14} {:>7} {:>6}",
            escaped(&scene.name),
            owner(table, scene).map_or("–".to_owned(), |name| escaped(name).to_string()),
            scene
                .pinned_to
                .as_deref()
                .map_or(String::new(), |name| escaped(name).to_string()),
            players(table, reports, &scene.name)
                .map_or("–".to_owned(), |players| players.to_string()),
            scene.epoch
        )
    }));
    if table.scenes.is_empty() {
        lines.push("(no node has declared scenes yet)".to_owned());
    }
    lines
}

/// As many routes as fit into a column, and the number of the others.
fn routes(routes: &[RouteCount]) -> String {
    let mut text = String::new();
    for (nth, RouteCount { node, clients }) in routes.iter().enumerate() {
        let separator = if nth == 0 { "" } else { ", " };
        let next = format!("{separator}{} {clients}", escaped(node));
        let width = text.chars().count() + next.chars().count();
        let is_last = nth + 1 == routes.len();
        // The first one is never left out, however long its name is.
        if nth > 0 && width > ROUTES_COLUMNS - if is_last { 0 } else { MORE_COLUMNS } {
            text.push_str(&format!(", {} more", routes.len() - nth));
            break;
        }
        text.push_str(&next);
    }
    if routes.is_empty() {
        text.push('–');
    }
    text
}

fn gateway_lines(gateways: &[GatewayOverview]) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<24} {:>8}  {}",
        "GATEWAY", "CLIENTS", "CLIENTS BY NODE"
    )];
    lines.extend(gateways.iter().map(|gateway| {
        let (name, routes) = (escaped(&gateway.name), routes(&gateway.routes));
        format!("{name:<24} {:>8}  {routes}", gateway.clients)
    }));
    if gateways.is_empty() {
        lines.push("(no living node reports a gateway)".to_owned());
    }
    lines
}

fn as_json(nodes: &[NodeOverview], table: &SceneTable, reports: &ReportTable) -> serde_json::Value {
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
            "players": players(table, reports, &scene.name),
        })
    });
    let gateways = reports.gateways().into_iter().map(|gateway| {
        serde_json::json!({
            "name": gateway.name,
            "clients": gateway.clients,
            "routes": routes_as_json(&gateway.routes),
        })
    });
    serde_json::json!({
        "nodes": nodes.collect::<Vec<_>>(),
        "scenes": scenes.collect::<Vec<_>>(),
        "gateways": gateways.collect::<Vec<_>>(),
    })
}

impl Drain {
    /// Marks the node.
    pub(super) fn run(self) -> Result<CliStatus, CliError> {
        let mut rows = self.store.existing_rows()?;
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

    use serde_json::{Value, json};
    use throng_cluster::{
        ClusterNodeId, GatewayClients, NodeEntry, NodeReport, NodeRun, ReportEntry, ScenePlayers,
    };

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
        let (table, reports) = (SceneTable::default(), ReportTable::default());
        for lines in [scene_lines(&table, &reports), gateway_lines(&[])] {
            assert!(lines.iter().all(|line| line.chars().count() <= 80));
            assert_eq!(lines.len(), 2);
        }
    }

    fn run(node: u32) -> NodeRun {
        let node = ClusterNodeId(node);
        NodeRun { node, run: 1 }
    }

    /// The town runs on the first node, which reports it; the forest runs on the second one, which does not; nobody runs the cave.
    fn cluster() -> (SceneTable, ReportTable) {
        let node = |nth: u32, name: &str| NodeEntry {
            name: name.to_owned(),
            run: run(nth),
            is_alive: true,
            is_steady: true,
            load: 0,
            is_draining: false,
        };
        let scene = |name: &str, owner| SceneEntry {
            name: name.to_owned(),
            specification: Vec::new(),
            pinned_to: None,
            owner,
            epoch: 3,
        };
        let gateway = |name: &str, connected, routed| GatewayClients {
            gateway: name.to_owned(),
            connected,
            routed,
        };
        let scenes = vec![ScenePlayers {
            scene: "town".to_owned(),
            players: 70,
        }];
        let report = |nth: u32, name: &str, scenes, gateways| ReportEntry {
            name: name.to_owned(),
            run: run(nth),
            report: NodeReport { scenes, gateways },
        };
        let table = SceneTable {
            nodes: vec![node(0, "n1"), node(1, "n\u{1b}2")],
            scenes: vec![
                scene("cave", None),
                scene("forest", Some(run(1))),
                scene("town", Some(run(0))),
            ],
        };
        let of_first = vec![gateway("g1", 99, 40), gateway("<b>g2\n", 0, 0)];
        let of_second = vec![gateway("g1", 98, 58)];
        let nodes = vec![
            report(0, "n1", scenes, of_first),
            report(1, "n\u{1b}2", Vec::new(), of_second),
        ];
        (table, ReportTable { nodes })
    }

    #[test]
    fn tables_show_players_of_scenes_and_clients_of_gateways() {
        let (table, reports) = cluster();
        let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let scenes = scene_lines(&table, &reports);
        let scenes = Vec::from_iter(scenes[1..].iter().map(words));
        let expected = ["cave – – 3", "forest n\\u{1b}2 – 3", "town n1 70 3"];
        assert_eq!(scenes, expected);
        let gateways = gateway_lines(&reports.gateways());
        let gateways = Vec::from_iter(gateways[1..].iter().map(words));
        assert_eq!(gateways, ["<b>g2\\n 0 –", "g1 99 n\\u{1b}2 58, n1 40"]);
    }

    #[test]
    fn routes_fit_their_column_and_count_the_others() {
        let all = Vec::from_iter((1..=9_999).map(|nth| RouteCount {
            node: format!("node-{nth}"),
            clients: 10_000 - nth,
        }));
        for count in 0..200 {
            let text = routes(&all[..count]);
            assert!(text.chars().count() <= ROUTES_COLUMNS, "{text}");
        }
        assert_eq!(routes(&all[..1]), "node-1 9999");
        let expected = "node-1 9999, node-2 9998, node-3 9997";
        assert_eq!(routes(&all[..3]), expected);
        let expected = "node-1 9999, node-2 9998, 9997 more";
        assert_eq!(routes(&all), expected);
        let long = RouteCount {
            node: "n".repeat(64),
            clients: 7,
        };
        assert_eq!(routes(&[long]), format!("{} 7", "n".repeat(64)));
    }

    #[test]
    fn json_has_players_of_scenes_and_clients_of_gateways() {
        let (table, reports) = cluster();
        let json = as_json(&[], &table, &reports);
        let scenes = json["scenes"].as_array().expect("a list");
        let players = Vec::from_iter(scenes.iter().map(|scene| scene["players"].clone()));
        assert_eq!(players, [Value::Null, Value::Null, json!(70)]);
        let gateways = json!([
            { "name": "<b>g2\n", "clients": 0, "routes": [] },
            {
                "name": "g1",
                "clients": 99,
                "routes": [{ "node": "n\u{1b}2", "clients": 58 }, { "node": "n1", "clients": 40 }],
            },
        ]);
        assert_eq!(json["gateways"], gateways);
    }
}
