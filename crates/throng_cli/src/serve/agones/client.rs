//! Requests to the Agones SDK server, which runs next to the game server in its pod: HTTP without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;
use throng::sim::clock::Stopwatch;

use crate::address::address;

/// Timeout of a request, from the connection to the end of the reply.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of a reply.
const REPLY_BYTES_MAX: u64 = 1 << 20;

/// The SDK server.
#[derive(Clone, Copy, Debug)]
pub(super) struct SdkServer(pub SocketAddr);

impl SdkServer {
    /// Sends a request and returns the body of the reply. Waits for at most [`REQUEST_TIMEOUT`].
    ///
    /// # Errors
    /// If there is no reply in time, or its status is not 2xx.
    pub fn request(self, method: &str, path: &str) -> io::Result<String> {
        let clock = Stopwatch::start();
        let left = || {
            let left = REQUEST_TIMEOUT.saturating_sub(clock.elapsed());
            let is_over = io::Error::new(ErrorKind::TimedOut, "no reply in time");
            (!left.is_zero()).then_some(left).ok_or(is_over)
        };
        let mut stream = TcpStream::connect_timeout(&self.0, REQUEST_TIMEOUT)?;
        stream.set_write_timeout(Some(left()?))?;
        let body = if method == "POST" { "{}" } else { "" };
        // HTTP 1.0: the reply is not chunked, and ends with the connection.
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.0,
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut reply = Vec::new();
        let mut piece = [0; 4_096];
        loop {
            stream.set_read_timeout(Some(left()?))?;
            match stream.read(&mut piece)? {
                0 => break,
                length => reply.extend_from_slice(&piece[..length]),
            }
            if reply.len() as u64 > REPLY_BYTES_MAX {
                return Err(io::Error::other(format!(
                    "reply of more than {REPLY_BYTES_MAX} bytes"
                )));
            }
        }
        body_of(&String::from_utf8_lossy(&reply))
    }
}

/// The body of a reply, whose status must be 2xx.
fn body_of(reply: &str) -> io::Result<String> {
    let status = reply.split(' ').nth(1).unwrap_or_default();
    let is_success = status.len() == 3 && status.starts_with('2');
    if !(reply.starts_with("HTTP/1.") && is_success) {
        let line = reply.lines().next().unwrap_or_default();
        return Err(io::Error::other(format!(
            "expected a status of 2xx, found `{line}`"
        )));
    }
    let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok(body.to_owned())
}

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
    fn reply_needs_a_status_of_2xx() {
        let body = body_of("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"a\": 1}");
        assert_eq!(body.unwrap(), "{\"a\": 1}");
        for wrong in [
            "",
            "HTTP/1.1 500 Internal Server Error\r\n\r\n{}",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "SSH-2.0 200 a",
        ] {
            let error = body_of(wrong).unwrap_err().to_string();
            assert!(error.contains("expected a status of 2xx"), "{error}");
        }
    }

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
