//! A small HTTP server for programs: one thread, a bounded number of connections, one request each.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::future::select;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use serde_json::{Value, json};
use throng_net::PortSettings;
use throng_net::http::{
    ConnectionOpener, ForgedAddress, HttpResponse, client_address, typed_response,
};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};

use crate::connection_limits::{ConnectionPermit, PeerConnectionLimits};

/// Maximum size of a request's head, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Pause after the system failed to accept a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Limits of the connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpLimits {
    /// Open connections; more are closed at once.
    pub connections_max: usize,
    /// The same of one address.
    pub connections_per_peer_max: usize,
    /// How long a connection may be open, from its first byte to the last of the reply.
    pub timeout: Duration,
}

/// A thread that serves HTTP; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct HttpThread {
    name: &'static str,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Binds a socket for an [`HttpThread`], and returns its address.
pub(super) fn bind(address: SocketAddr) -> io::Result<(SocketAddr, TcpListener)> {
    let socket = TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok((socket.local_addr()?, socket))
}

impl HttpThread {
    /// Starts to serve on a [bound](bind) socket. `refused` is called for each connection over the limits.
    pub fn start<Reply>(
        name: &'static str,
        (socket, port): (TcpListener, PortSettings),
        limits: HttpLimits,
        respond: impl Fn(Request<Incoming>, SocketAddr) -> Reply + Send + Sync + 'static,
        refused: impl Fn(SocketAddr) + Send + Sync + 'static,
    ) -> io::Result<Self>
    where
        Reply: Future<Output = HttpResponse> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_io().enable_time().build()?;
        let (stop, mut stopped) = watch::channel(false);
        let service = HttpService {
            opener: ConnectionOpener::new(port),
            open: Arc::new(Mutex::new(PeerConnectionLimits::new(
                limits.connections_max,
                limits.connections_per_peer_max,
            ))),
            respond,
            refused,
        };
        let thread = thread::Builder::new().name(name.into());
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                let accepting = pin!(accept_connections(name, socket, limits, service));
                let stopped = pin!(stopped.changed());
                select(accepting, stopped).await;
            });
        })?;
        Ok(Self {
            name,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for HttpThread {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(
                thread = self.name,
                "HTTP thread panicked: its API is unavailable"
            );
        }
    }
}

/// Shared by all connections.
struct HttpService<Respond, Refused> {
    opener: ConnectionOpener,
    open: Arc<Mutex<PeerConnectionLimits>>,
    respond: Respond,
    refused: Refused,
}

async fn accept_connections<Respond, Refused, Reply>(
    name: &'static str,
    socket: TcpListener,
    limits: HttpLimits,
    service: HttpService<Respond, Refused>,
) where
    Respond: Fn(Request<Incoming>, SocketAddr) -> Reply + Send + Sync + 'static,
    Refused: Fn(SocketAddr) + Send + Sync + 'static,
    Reply: Future<Output = HttpResponse> + Send + 'static,
{
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, thread = name, "HTTP thread not started");
            return;
        }
    };
    let service = Arc::new(service);
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    loop {
        let Ok((stream, peer)) = socket.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        // The client's address may follow in the first bytes, so this limit is the one that counts until then.
        let Ok(permit) = permits.clone().try_acquire_owned() else {
            (service.refused)(peer);
            continue;
        };
        let service = service.clone();
        tokio::spawn(async move {
            let handled = service.handle_connection(stream, peer);
            let _ = tokio::time::timeout(limits.timeout, handled).await;
            drop(permit);
        });
    }
}

impl<Respond, Refused, Reply> HttpService<Respond, Refused>
where
    Respond: Fn(Request<Incoming>, SocketAddr) -> Reply,
    Refused: Fn(SocketAddr),
    Reply: Future<Output = HttpResponse>,
{
    /// Opens a connection and replies to its request.
    async fn handle_connection(&self, mut stream: TcpStream, peer: SocketAddr) {
        let opener = &self.opener;
        let Ok(client) = opener.read_client_address(&mut stream, peer).await else {
            return;
        };
        let Some(_permit) = ConnectionPermit::acquire(&self.open, client.ip()) else {
            (self.refused)(client);
            return;
        };
        let Ok(stream) = opener.encrypt(stream, client.ip()).await else {
            return;
        };
        let respond = service_fn(|request: Request<Incoming>| async {
            let client = client_address(client, request.headers(), opener.trusted_proxies());
            Ok::<_, Infallible>(match client {
                Ok(client) => (self.respond)(request, client).await,
                Err(ForgedAddress) => {
                    let found = "X-Forwarded-For and Forwarded name different clients";
                    let error = ApiError::bad_request(found);
                    json_response(error.0, &error.body())
                }
            })
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), respond);
        // An incomplete request has no reply.
        let _ = connection.await;
    }
}

const JSON: &str = "application/json";

/// A reply with a JSON value.
pub(super) fn json_response(status: StatusCode, body: &Value) -> HttpResponse {
    typed_response(status, JSON, format!("{body}\n").into())
}

/// The description of an API.
pub(super) fn openapi_response(text: &'static str) -> HttpResponse {
    typed_response(StatusCode::OK, JSON, Bytes::from_static(text.as_bytes()))
}

/// Reads the body of a request; `None` if it is longer than allowed, or the connection breaks.
pub(super) async fn read_body(body: Incoming, bytes_max: usize) -> Option<Bytes> {
    let body = Limited::new(body, bytes_max).collect().await.ok()?;
    Some(body.to_bytes())
}

/// The token in the header `Authorization: Bearer TOKEN`.
pub(super) fn bearer_token(head: &hyper::HeaderMap) -> Option<&str> {
    let value = head.get(hyper::header::AUTHORIZATION)?.to_str().ok()?;
    Some(value.strip_prefix("Bearer ")?.trim())
}

/// A refused request: the status, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError(pub StatusCode, pub String);

impl ApiError {
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, message.into())
    }

    pub fn body(&self) -> Value {
        json!({ "error": self.1 })
    }
}

/// The JSON body of a request.
pub(super) fn parse_body<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    let invalid = |error| ApiError::bad_request(format!("body: {error}"));
    serde_json::from_slice(body).map_err(invalid)
}

pub(super) fn wrong_method(expected: &str) -> ApiError {
    ApiError(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("expected the method {expected}"),
    )
}
