//! `throng cluster status --serve`: the page of a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};
use throng::net::{AddressRange, PortSettings};
use throng_cluster::{ClusterOverview, NodeOverview, PostgresRows, RouteCount};
use throng_inspect::{ClusterPage, ClusterPageError};

use super::SIGNAL_INTERVAL;
use super::store_args::failed;
use crate::certificate::{CertificateArguments, ServedCertificate};
use crate::{CliError, CliStatus, is_interrupted, listen_for_interrupt, page_token, print};

/// Maximum number of rows in each list of the page. The page also has the numbers of all.
const ROWS_MAX: usize = 200;

/// Maximum number of nodes of each gateway on the page: those with the most of its clients. The page also has the number of all.
const ROUTES_MAX: usize = 8;

/// Options of the page.
#[derive(Debug, clap::Args)]
pub(super) struct StatusPageArguments {
    /// Serve a page with the state of the cluster at this address, until Ctrl-C
    ///
    /// The page is updated every second, and is read-only. On other than loopback addresses it needs a token.
    #[arg(long, value_name = "ADDR:PORT")]
    serve: Option<SocketAddr>,
    /// File with the token of the page, 8 to 128 letters and digits; only its owner may be able to read it
    ///
    /// Without it, the environment variable THRONG_INSPECT_TOKEN is used. [default: generated and printed if needed]
    #[arg(long, value_name = "FILE", requires = "serve")]
    serve_token_file: Option<PathBuf>,
    #[command(flatten)]
    certificate: CertificateArguments,
    /// Address or network of a proxy that forwards browsers to the page; may be repeated
    ///
    /// It names the client's address in the header X-Forwarded-For or Forwarded, so that the limit of connections applies to the client.
    #[arg(long, value_name = "ADDR[/BITS]", requires = "serve")]
    trusted_proxy: Vec<AddressRange>,
}

impl StatusPageArguments {
    /// The address of the page, if it is to be served.
    pub fn address(&self) -> Result<Option<SocketAddr>, CliError> {
        if self.serve.is_none() && self.certificate.is_set() {
            let message = "--tls-certificate is for the page: expected --serve, too";
            return Err(CliError::new(message));
        }
        Ok(self.serve)
    }

    /// Serves the page until a signal.
    pub fn serve(
        &self,
        address: SocketAddr,
        mut rows: PostgresRows,
        quiet: bool,
    ) -> Result<CliStatus, CliError> {
        let certificate = self.certificate.open()?;
        let port = PortSettings {
            tls: certificate.as_ref().map(ServedCertificate::certificate),
            trusted_proxies: self.trusted_proxy.clone(),
            ..PortSettings::default()
        };
        let token = self.token(address, quiet)?;
        let mark = token.as_ref().map(|token| format!("#{token}"));
        let read = move || {
            let overview = rows.read_cluster_overview(ROWS_MAX);
            let overview = overview.map_err(|error| failed(error).to_string())?;
            Ok(as_json(&overview))
        };
        let named = |error: ClusterPageError| CliError::new(format!("--serve: {error}"));
        let page = ClusterPage::start(address, port, token, read).map_err(named)?;
        listen_for_interrupt();
        if !quiet {
            let scheme = certificate.as_ref().map_or("http", |_| "https");
            let (address, mark) = (page.address(), mark.unwrap_or_default());
            print(&format!("cluster page: {scheme}://{address}/{mark}"))?;
        }
        while !is_interrupted() {
            if let Some(certificate) = &certificate {
                certificate.reload_if_requested();
            }
            std::thread::sleep(SIGNAL_INTERVAL);
        }
        Ok(CliStatus::Done)
    }

    /// The token of the page; a new one if other machines can reach the page.
    fn token(&self, address: SocketAddr, quiet: bool) -> Result<Option<String>, CliError> {
        let given = page_token::given(self.serve_token_file.as_deref())?;
        if given.is_some() || address.ip().is_loopback() {
            return Ok(given);
        }
        if quiet {
            return Err(CliError::new(
                "--quiet with --serve on a public address needs --serve-token-file: a generated token would not be printed",
            ));
        }
        page_token::generated().map(Some)
    }
}

/// The state of a node in a word.
pub(super) const fn state(node: &NodeOverview) -> &'static str {
    match (node.is_alive, node.is_draining) {
        (false, _) if node.is_dead => "gone",
        (false, _) => "late",
        (true, true) => "draining",
        (true, false) => "up",
    }
}

/// How many clients of a gateway are routed to each node.
pub(super) fn routes_as_json(routes: &[RouteCount]) -> Value {
    let route = |route: &RouteCount| json!({ "node": route.node, "clients": route.clients });
    routes.iter().map(route).collect()
}

/// The state as the page reads it. Ids of players are texts: they can be larger than the integers of JavaScript.
fn as_json(overview: &ClusterOverview) -> Value {
    let nodes = overview.nodes.iter().map(|node| {
        json!({
            "name": node.name,
            "state": state(node),
            "heartbeat_age_ms": node.heartbeat_age_ms,
            "load": node.load,
            "players": node.players,
            "scenes": node.scenes,
        })
    });
    let scenes = overview.scenes.iter().map(|scene| {
        json!({
            "name": scene.name,
            "node": scene.node,
            "is_running": scene.is_running,
            "pinned_to": scene.pinned_to,
            "epoch": scene.epoch,
            "players": scene.players,
        })
    });
    let gateways = overview.gateways.iter().map(|gateway| {
        json!({
            "name": gateway.name,
            "clients": gateway.clients,
            "routes": routes_as_json(&gateway.routes[..gateway.routes.len().min(ROUTES_MAX)]),
            "routes_total": gateway.routes.len(),
        })
    });
    let hand_offs = overview.hand_offs.iter().map(|hand_off| {
        json!({
            "player": hand_off.player.0.to_string(),
            "from": hand_off.from,
            "to": hand_off.to,
            "is_target_alive": hand_off.is_target_alive,
            "age_ms": hand_off.age_ms,
        })
    });
    let matches = &overview.matches;
    json!({
        "nodes": nodes.collect::<Vec<_>>(),
        "nodes_total": overview.nodes_total,
        "scenes": scenes.collect::<Vec<_>>(),
        "scenes_total": overview.scenes_total,
        "gateways": gateways.collect::<Vec<_>>(),
        "gateways_total": overview.gateways_total,
        "hand_offs": hand_offs.collect::<Vec<_>>(),
        "hand_offs_total": overview.hand_offs_total,
        "logins": overview.logins,
        "matches": {
            "waiting_tickets": matches.waiting_tickets,
            "matched_tickets": matches.matched_tickets,
            "formed_matches": matches.formed_matches,
            "ready_matches": matches.ready_matches,
            "travelling_players": matches.travelling_players,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use throng_cluster::{GatewayOverview, SceneOverview};

    #[test]
    fn page_has_players_and_the_largest_routes_of_gateways() {
        let routes = (1..=10).map(|nth| RouteCount {
            node: format!("n{nth}"),
            clients: 100 - nth,
        });
        let scene = |name: &str, players| SceneOverview {
            name: name.to_owned(),
            node: None,
            is_running: false,
            pinned_to: None,
            epoch: 1,
            players,
        };
        let overview = ClusterOverview {
            scenes: vec![scene("cave", None), scene("town", Some(7))],
            gateways: vec![GatewayOverview {
                name: "<b>g1</b>".to_owned(),
                clients: 950,
                routes: routes.collect(),
            }],
            gateways_total: 300,
            ..ClusterOverview::default()
        };
        let page = as_json(&overview);
        let players = [&page["scenes"][0]["players"], &page["scenes"][1]["players"]];
        assert_eq!(players, [&Value::Null, &json!(7)]);
        assert_eq!(page["gateways_total"], 300);
        let gateway = &page["gateways"][0];
        assert_eq!(gateway["name"], "<b>g1</b>");
        assert_eq!(gateway["clients"], 950);
        assert_eq!(gateway["routes_total"], 10);
        let shown = gateway["routes"].as_array().expect("a list");
        assert_eq!(shown.len(), ROUTES_MAX);
        assert_eq!(shown[7], json!({ "node": "n8", "clients": 92 }));
    }
}
