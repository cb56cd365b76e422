//! The page of a cluster: the state that a program reads from a store, as tables that are updated every second.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use std::{io, thread};

use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};
use thiserror::Error;
use throng::sim::clock::Stopwatch;
use throng_net::PortSettings;
use throng_net::http::{HttpResponse, typed_response};
use tokio::sync::watch;

use crate::http_listener::{ApiError, HttpLimits, HttpThread, bearer_token, bind, json_response};
use crate::routes::{InspectAccess, RequestHead, RouteDenied, is_page_token};
use crate::server::deny;

/// Limits of the connections.
const LIMITS: HttpLimits = HttpLimits {
    connections_max: 64,
    connections_per_peer_max: 16,
    timeout: Duration::from_secs(10),
};

/// A state that is older than this is read again when a page requests it.
const READ_INTERVAL: Duration = Duration::from_millis(900);

/// How long a request waits for a read. After it the last state is sent.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// The path of the state.
const STATE_PATH: &str = "/cluster.json";

/// The files of the page, by path.
const FILES: [(&str, &str, &str); 6] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../page/cluster.html"),
    ),
    ("/page.css", CSS, include_str!("../page/page.css")),
    ("/cluster.css", CSS, include_str!("../page/cluster.css")),
    ("/cluster.js", SCRIPT, include_str!("../page/cluster.js")),
    ("/dom.js", SCRIPT, include_str!("../page/dom.js")),
    ("/operator.js", SCRIPT, include_str!("../page/operator.js")),
];
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Why a [`ClusterPage`] is not open.
#[derive(Debug, Error)]
pub enum ClusterPageError {
    /// A page that is open beyond this machine needs a token.
    #[error("{0} is not a loopback address: the page needs a token there")]
    TokenRequired(SocketAddr),
    /// The token cannot be part of a URL.
    #[error("invalid page token ({0} characters): expected 8 to 128 letters and digits")]
    InvalidToken(usize),
    /// The address is not free, or the system cannot start a thread.
    #[error("cannot listen on {0}: {1}")]
    NotOpen(SocketAddr, io::Error),
}

/// A page with the nodes, scenes, hand-offs and matches of a cluster, until it is dropped. It is read-only.
///
/// One thread reads the state, at most once a second however many pages are open, and not at all without a page. If a read fails, pages show
/// the error and the last state with its age. The page and its scripts need no token; the state does if there is one.
///
/// ```
/// use throng_inspect::ClusterPage;
///
/// # fn main() -> Result<(), throng_inspect::ClusterPageError> {
/// let read = || Ok(serde_json::json!({ "nodes": [], "nodes_total": 0 }));
/// let page = ClusterPage::start(([127, 0, 0, 1], 0).into(), Default::default(), None, read)?;
/// println!("http://{}/", page.address());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ClusterPage {
    address: SocketAddr,
    // The thread that reads ends after it: there are no requests any more.
    _thread: HttpThread,
}

impl ClusterPage {
    /// Starts to serve. `read` is called on a thread of its own, and may wait. Its error is shown on the page.
    ///
    /// # Errors
    /// [`ClusterPageError`].
    pub fn start(
        address: SocketAddr,
        port: PortSettings,
        token: Option<String>,
        read: impl FnMut() -> Result<Value, String> + Send + 'static,
    ) -> Result<Self, ClusterPageError> {
        match &token {
            Some(token) if !is_page_token(token) => {
                return Err(ClusterPageError::InvalidToken(token.chars().count()));
            }
            None if !address.ip().is_loopback() => {
                return Err(ClusterPageError::TokenRequired(address));
            }
            _ => {}
        }
        let failed = |error| ClusterPageError::NotOpen(address, error);
        let (bound, socket) = bind(address).map_err(failed)?;
        let (reads, requested) = sync_channel(1);
        let newest = watch::Sender::new(LastRead::default());
        let of_thread = newest.clone();
        let thread = thread::Builder::new().name("cluster rows".into());
        let spawned = thread.spawn(move || read_on_request(&requested, &of_thread, read));
        spawned.map_err(failed)?;
        let shared = Arc::new(SharedState {
            access: InspectAccess {
                page: true,
                token,
                ..InspectAccess::default()
            },
            reads,
            newest,
        });
        let respond = move |request: Request<Incoming>, _| {
            let shared = shared.clone();
            async move { shared.respond(&request).await }
        };
        let thread = HttpThread::start("cluster page", (socket, port), LIMITS, respond, |_| ());
        Ok(Self {
            address: bound,
            _thread: thread.map_err(failed)?,
        })
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The result of the last read, and the last state.
#[derive(Clone, Debug, Default)]
struct LastRead {
    /// Time since the last read ended.
    since: Option<Stopwatch>,
    /// The last state, and its age.
    state: Option<(Stopwatch, Arc<Value>)>,
    /// Why the last read failed.
    error: Option<String>,
}

impl LastRead {
    fn is_new(&self) -> bool {
        self.since
            .is_some_and(|since| since.elapsed() < READ_INTERVAL)
    }
}

/// Shared by all connections.
struct SharedState {
    access: InspectAccess,
    /// Requests a read.
    reads: SyncSender<()>,
    newest: watch::Sender<LastRead>,
}

/// Reads when a page requests it, until the server has ended.
fn read_on_request(
    requested: &Receiver<()>,
    newest: &watch::Sender<LastRead>,
    mut read: impl FnMut() -> Result<Value, String>,
) {
    while requested.recv().is_ok() {
        // It may have been requested while the previous one was in progress.
        if newest.borrow().is_new() {
            continue;
        }
        // The age counts from the start, so a state is never shown as newer than it is.
        let started = Stopwatch::start();
        let outcome = read();
        newest.send_modify(|last| {
            last.since = Some(Stopwatch::start());
            last.error = outcome
                .map(|state| last.state = Some((started, Arc::new(state))))
                .err();
        });
    }
}

impl SharedState {
    async fn respond(&self, request: &Request<Incoming>) -> HttpResponse {
        let field = |name: &str| request.headers().get(name)?.to_str().ok();
        let (method, path) = (request.method(), request.uri().path());
        let head = RequestHead {
            method: method.as_str(),
            path,
            query: request.uri().query().unwrap_or_default(),
            host: field("host"),
            origin: field("origin"),
        };
        let file = FILES.iter().find(|(known, ..)| *known == path);
        if file.is_none() && path != STATE_PATH {
            return deny(RouteDenied::Unknown);
        }
        if ![Method::GET, Method::HEAD].contains(method) {
            return deny(RouteDenied::Method);
        }
        let mut reply = if let Some((_, kind, text)) = file {
            typed_response(StatusCode::OK, kind, Bytes::from_static(text.as_bytes()))
        } else if let Err(denied) = self
            .access
            .check_bearer(head, bearer_token(request.headers()))
        {
            return deny(denied);
        } else if !head.query.is_empty() {
            let error = ApiError::bad_request("expected no query");
            return json_response(error.0, &error.body());
        } else {
            self.state().await
        };
        if *method == Method::HEAD {
            *reply.body_mut() = Default::default();
        }
        reply
    }

    /// The state, read again if it is old; the last one if that takes too long.
    async fn state(&self) -> HttpResponse {
        let mut newest = self.newest.subscribe();
        let mut is_late = false;
        if !newest.borrow_and_update().is_new() {
            // If there is no room, another request for a read is pending.
            let _ = self.reads.try_send(());
            let changed = tokio::time::timeout(READ_TIMEOUT, newest.changed()).await;
            is_late = changed.is_err();
        }
        let last = newest.borrow().clone();
        let waited = || format!("no reply within {} s", READ_TIMEOUT.as_secs());
        let age_ms = |since: &Stopwatch| u64::try_from(since.elapsed().as_millis());
        let body = json!({
            "age_ms": last.state.as_ref().and_then(|(since, _)| age_ms(since).ok()),
            "error": last.error.or_else(|| is_late.then(waited)),
            "cluster": last.state.as_ref().map(|(_, state)| &**state),
        });
        json_response(StatusCode::OK, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The status of the reply to a request, and everything received.
    fn reply(page: &ClusterPage, request: &str, fields: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(page.address()).unwrap();
        let host = page.address();
        let host = if fields.contains("host:") {
            String::new()
        } else {
            format!("host: {host}\r\n")
        };
        let head = format!("{request} HTTP/1.1\r\n{host}{fields}connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text)
    }

    fn state(page: &ClusterPage) -> Value {
        let (status, text) = reply(page, "GET /cluster.json", "");
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn open(
        token: Option<&str>,
        read: impl FnMut() -> Result<Value, String> + Send + 'static,
    ) -> ClusterPage {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let token = token.map(str::to_owned);
        ClusterPage::start(address, PortSettings::default(), token, read).unwrap()
    }

    #[test]
    fn failed_read_keeps_the_last_state() {
        let reads = Arc::new(AtomicU32::new(0));
        let of_thread = reads.clone();
        let page = open(None, move || {
            match of_thread.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(json!({ "nodes_total": 3 })),
                _ => Err("the store is gone".to_owned()),
            }
        });
        assert_eq!(reads.load(Ordering::Relaxed), 0, "without a page");
        let first = state(&page);
        assert_eq!(first["cluster"]["nodes_total"], 3);
        assert_eq!(first["error"], Value::Null);
        // Until the state is old enough to be read again.
        let second = loop {
            let second = state(&page);
            if second["error"] != Value::Null {
                break second;
            }
        };
        assert_eq!(second["error"], "the store is gone");
        assert_eq!(second["cluster"], first["cluster"]);
        let age_ms = second["age_ms"].as_u64().unwrap();
        assert!(age_ms >= READ_INTERVAL.as_millis() as u64, "{age_ms} ms");
    }

    #[test]
    fn pages_share_one_read_and_do_not_wait_for_ever() {
        let reads = Arc::new(AtomicU32::new(0));
        let (of_thread, (held, release)) = (reads.clone(), sync_channel::<()>(0));
        let page = open(None, move || {
            of_thread.fetch_add(1, Ordering::Relaxed);
            // Until the sender is dropped.
            let _ = release.recv();
            Ok(json!({ "nodes_total": 3 }))
        });
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let state = state(&page);
                    assert_eq!(state["error"], "no reply within 3 s");
                    assert_eq!(state["cluster"], Value::Null);
                });
            }
        });
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        drop(held);
        while state(&page)["cluster"]["nodes_total"] != 3 {}
    }

    #[test]
    fn requests_that_are_not_reads_of_the_page_are_refused() {
        let page = open(Some("open1sesame"), || Ok(json!({})));
        let bearer = "authorization: Bearer open1sesame\r\n";
        for (request, fields, expected) in [
            ("GET /", "", 200),
            ("HEAD /cluster.js", "", 200),
            ("GET /cluster.json", bearer, 200),
            ("GET /cluster.json", "", 401),
            (
                "GET /cluster.json",
                "authorization: Bearer open1sesam\r\n",
                401,
            ),
            ("GET /cluster.json?token=open1sesame", "", 401),
            ("GET /cluster.json?rows=9", bearer, 400),
            ("GET /cluster.json", "no field\r\n", 400),
            ("POST /cluster.json", bearer, 405),
            ("DELETE /", "", 405),
            ("GET /live", "", 404),
            ("POST /nodes/n1", bearer, 404),
        ] {
            let (status, text) = reply(&page, request, fields);
            assert_eq!(status, expected, "{request}: {text}");
        }
        let (_, text) = reply(&page, "GET /", "");
        assert!(text.contains("content-security-policy: default-src 'self'"));
        let foreign = format!("{bearer}origin: https://example.org\r\n");
        assert_eq!(reply(&page, "GET /cluster.json", &foreign).0, 403);
        // A foreign name that points to this machine.
        let page = open(None, || Ok(json!({})));
        let rebound = "host: rebound.example\r\n";
        assert_eq!(reply(&page, "GET /cluster.json", rebound).0, 403);
        assert_eq!(reply(&page, "GET /cluster.json", "").0, 200);
    }

    #[test]
    fn page_beyond_this_machine_needs_a_token() {
        let start = |address: [u8; 4], token: Option<&str>| {
            let token = token.map(str::to_owned);
            let read = || Ok(Value::Null);
            ClusterPage::start((address, 0).into(), PortSettings::default(), token, read)
        };
        let error = start([0, 0, 0, 0], None).unwrap_err().to_string();
        assert!(error.contains("needs a token"), "{error}");
        let error = start([127, 0, 0, 1], Some("a b")).unwrap_err().to_string();
        assert!(error.contains("8 to 128"), "{error}");
    }
}
