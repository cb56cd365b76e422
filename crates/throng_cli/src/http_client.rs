//! HTTP requests to processes on this machine: without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use throng::sim::clock::Stopwatch;

/// Timeout of a request, from the connection to the end of the reply.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of a reply.
const REPLY_BYTES_MAX: u64 = 1 << 20;

/// Sends a request and returns the body of the reply. Waits for at most [`REQUEST_TIMEOUT`].
///
/// # Errors
/// If there is no reply in time, or its status is not 2xx.
pub(crate) fn http_request(server: SocketAddr, method: &str, path: &str) -> io::Result<String> {
    let clock = Stopwatch::start();
    let left = || {
        let left = REQUEST_TIMEOUT.saturating_sub(clock.elapsed());
        let is_over = io::Error::new(ErrorKind::TimedOut, "no reply in time");
        (!left.is_zero()).then_some(left).ok_or(is_over)
    };
    let mut stream = TcpStream::connect_timeout(&server, REQUEST_TIMEOUT)?;
    stream.set_write_timeout(Some(left()?))?;
    let body = if method == "POST" { "{}" } else { "" };
    // HTTP 1.0: the reply is not chunked, and ends with the connection.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: {server}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
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
}
