//! Metrics of a process that runs no ticks, such as a gateway of a cluster.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::StatusCode;
use throng_net::PortSettings;
use throng_net::http::{text_response, typed_response};

use crate::exposition::{MetricFamily, exposition};
use crate::http_listener::{HttpLimits, HttpThread, bind};

/// Limits of the connections.
const LIMITS: HttpLimits = HttpLimits {
    connections_max: 64,
    connections_per_peer_max: 16,
    timeout: Duration::from_secs(5),
};

/// Serves `/metrics`, `/healthz` and `/readyz`, until it is dropped. They need no token.
///
/// ```
/// use throng_inspect::{MetricFamily, MetricType, MetricsServer};
///
/// # fn main() -> std::io::Result<()> {
/// let metrics = MetricsServer::start(([127, 0, 0, 1], 0).into(), Default::default(), || {
///     vec![MetricFamily::new("game_doors", MetricType::Gauge, "Open doors.").value(3.0)]
/// })?;
/// println!("http://{}/metrics", metrics.address());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    is_ready: Arc<AtomicBool>,
    _thread: HttpThread,
}

impl MetricsServer {
    /// Starts to serve. `gather` is called for each request for metrics, on a thread of the server. `/readyz` replies 200 from now on.
    ///
    /// # Errors
    /// If the address is not free, or the system cannot start a thread.
    pub fn start(
        address: SocketAddr,
        port: PortSettings,
        gather: impl Fn() -> Vec<MetricFamily> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (address, socket) = bind(address)?;
        let is_ready = Arc::new(AtomicBool::new(true));
        let (of_thread, gather) = (is_ready.clone(), Arc::new(gather));
        let respond = move |request: hyper::Request<hyper::body::Incoming>, _| {
            let (gather, is_ready) = (gather.clone(), of_thread.load(Ordering::Relaxed));
            async move {
                let text = |status, text: &str| text_response(status, text.to_owned());
                match (request.method().as_str(), request.uri().path()) {
                    ("GET", "/metrics") => {
                        let kind = "text/plain; version=0.0.4; charset=utf-8";
                        typed_response(StatusCode::OK, kind, exposition(&gather()).into())
                    }
                    ("GET", "/readyz") if !is_ready => {
                        text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
                    }
                    ("GET", "/healthz" | "/readyz") => text(StatusCode::OK, "ok\n"),
                    (_, "/metrics" | "/healthz" | "/readyz") => {
                        text(StatusCode::METHOD_NOT_ALLOWED, "expected GET\n")
                    }
                    _ => text(
                        StatusCode::NOT_FOUND,
                        "expected /metrics, /healthz or /readyz\n",
                    ),
                }
            }
        };
        let thread = HttpThread::start("metrics", (socket, port), LIMITS, respond, |_| ())?;
        Ok(Self {
            address,
            is_ready,
            _thread: thread,
        })
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on `/readyz` replies 503: the process stops.
    pub fn set_stopping(&self) {
        self.is_ready.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{Read, Write};
    use std::net::TcpStream;

    use crate::exposition::MetricType;

    /// The status of the reply to a request, and its body.
    fn reply(server: &MetricsServer, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let head = format!("{request} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1;
        (status, body.to_owned())
    }

    #[test]
    fn metrics_are_gathered_per_request_and_readiness_ends() {
        let count = std::sync::atomic::AtomicU32::new(0);
        let gather = move || {
            let family = MetricFamily::new("game_requests", MetricType::Gauge, "Requests.");
            let nth = count.fetch_add(1, Ordering::Relaxed);
            vec![family.value(f64::from(nth))]
        };
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = MetricsServer::start(address, PortSettings::default(), gather).unwrap();
        for nth in 0..2 {
            let (status, body) = reply(&server, "GET /metrics");
            assert_eq!(status, 200);
            assert!(body.contains(&format!("game_requests {nth}\n")), "{body}");
        }
        assert_eq!(reply(&server, "GET /readyz").0, 200);
        server.set_stopping();
        for (request, expected) in [
            ("GET /readyz", 503),
            ("GET /healthz", 200),
            ("POST /metrics", 405),
            ("GET /", 404),
        ] {
            assert_eq!(reply(&server, request).0, expected, "{request}");
        }
    }
}
