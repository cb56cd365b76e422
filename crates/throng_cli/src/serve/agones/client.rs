//! The replies of the Agones SDK server, which runs next to the game server in its pod.

use std::net::SocketAddr;

use serde_json::Value;

use crate::address::address;

/// The public addresses of a game server's ports, from the reply to `GET /gameserver`; empty before the game server is scheduled.
pub(super) fn public_addresses(game_server: &str) -> Result<Vec<SocketAddr>, String> {
    let game_server: Value =
        serde_json::from_str(game_server).map_err(|error| error.to_string())?;
    let status = &game_server["status"];
    let host = status["address"].as_str().unwrap_or_default();
    let ports = status["ports"].as_array().map_or(&[][..], Vec::as_slice);
    if host.is_empty() {
        return Ok(Vec::new());
    }
    let ports = ports.iter().filter_map(|port| port["port"].as_u64());
    let is_bare_ipv6 = host.contains(':') && !host.starts_with('[');
    let addresses = ports.map(|port| {
        address(&if is_bare_ipv6 {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        })
    });
    addresses.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_host_and_ports_of_the_status() {
        let of = |status: &str| public_addresses(&format!("{{\"status\": {status}}}"));
        let addresses = |of: &[&str]| of.iter().map(|one| one.parse().unwrap()).collect();
        let ports = r#"[{"name": "default", "port": 7012}, {"name": "web", "port": 7013}]"#;
        let status =
            format!(r#"{{"state": "Scheduled", "address": "203.0.113.5", "ports": {ports}}}"#);
        let both = addresses(&["203.0.113.5:7012", "203.0.113.5:7013"]);
        assert_eq!(of(&status), Ok(both));
        let status = r#"{"address": "2001:db8::5", "ports": [{"port": 7000}]}"#;
        assert_eq!(of(status), Ok(addresses(&["[2001:db8::5]:7000"])));
        for early in ["null", "{}", r#"{"address": "", "ports": null}"#] {
            assert_eq!(of(early), Ok(Vec::new()), "{early}");
        }
        assert!(of(r#"{"address": "203.0.113.5", "ports": [{"port": 99999}]}"#).is_err());
        assert!(public_addresses("[").is_err());
    }
}
