//! Clients over WebSockets and WebTransport, for browsers. One asynchronous thread serves all of them.
//!
//! ```text
//! TCP ─▶ TLS ─▶ requests ─▶ GET /play ─▶ first frame: a token ─▶ ServerHandshake ─▶ ConnectionHandler::connect ─┐   the server, in its tick
//!                                        a frame: a message ─▶ ConnectionHandler::receive ──────────────────────┴▶ Ingest
//!                                        a frame: a packet ◀─ WebSendQueue ◀─ WebServerSink ◀───────────────────── Send
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `settings` | limits and counters |
//! | `send_queue` | packets that wait for a client |
//! | `shared`, `sink` | state that tick and thread share; from the server to the transport |
//! | `requests`, `transfer` | an HTTP connection: request and response; their time limit |
//! | `admission` | admission and end of a client, over either transport |
//! | `client_loop` | the WebSocket of a client |
//! | `webtransport` | the same over QUIC, on the UDP port with the same number, with the feature `webtransport` |
//! | `page` | the demo page |
//!
//! A WebSocket loses nothing and keeps the order, so the server's packets and the client's messages are sent unchanged; the [crate
//! documentation](super) has the format. A client has to read packets in time: after them the server sends a *ping*, to which every client
//! replies. A client that does not reply is lost.
//!
//! Invariants: the tick makes no system call except the one that wakes the thread, and never waits for a slow reader. A client has a send
//! queue before the server can send to it. Every queue is bounded, and so are the connections of unauthenticated clients. A frame that is
//! too long is refused by its header, before memory is allocated for it. Only this thread reads the clock.
//!
//! Browsers outside of the local machine need TLS (`wss:`), by a [certificate](crate::TlsCertificate) of the port or by a proxy in front of
//! it. Limits and bans use the clients' addresses if the proxy is one of [`trusted_proxies`](crate::PortSettings::trusted_proxies), and the
//! proxy's address otherwise. WebTransport has its own TLS, with a certificate whose hash the page receives; browsers offer it only to
//! pages of `https:` or of the local machine, and its UDP traffic bypasses the proxy.
//!
//! Not provided: a check of the page's origin at `/play`. Nothing that a browser sends by itself, such as a cookie, admits a client, so a
//! page of another site can do no more than any other program.
//!
//! Cost: per client and tick, one copy of its packets and one system call; with TLS, also their encryption. A TLS handshake takes 0.1 to
//! 1 ms of the thread, by the kind of the key.

mod admission;
mod client_loop;
mod page;
mod requests;
mod send_queue;
mod settings;
mod shared;
mod sink;
mod transfer;
#[cfg(feature = "webtransport")]
mod webtransport;

use std::io;
#[cfg(feature = "webtransport")]
use std::net::UdpSocket;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use throng_nav::map::{TileMap, TileRect};
use throng_protocol::wire::ClientId;

pub use page::map_bytes;
pub use settings::{WebSettings, WebStats};
pub use sink::WebServerSink;
#[cfg(feature = "webtransport")]
pub use webtransport::WebTransportSettings;

use super::connection_stats::ConnectionStats;
use super::handshake::{ServerHandshake, network_of};
use super::udp::SharedIntake;
use crate::inbox::DisconnectReason;
use page::update_map_bytes;
use settings::WebCounters;
use shared::{PageMap, UnauthenticatedSlot, WebShared};
#[cfg(feature = "webtransport")]
use webtransport::SessionListener;

/// Pause after the system could not accept a connection. It has no free file descriptors, and would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Ports that are tried to find one that is free for both TCP and UDP.
#[cfg(feature = "webtransport")]
const PORTS_TRIED_MAX: u32 = 64;

/// Time between two checks, at the end, whether all clients are gone.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A bound address that is not used yet.
#[derive(Debug)]
pub struct WebSocketListener {
    socket: TcpListener,
    address: SocketAddr,
    /// The UDP socket with the same port, for WebTransport.
    #[cfg(feature = "webtransport")]
    udp_socket: Option<UdpSocket>,
}

impl WebSocketListener {
    /// Binds to an address. Port 0 selects a free port.
    ///
    /// # Errors
    /// If the address does not exist on this machine or is in use.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self {
            socket,
            address,
            #[cfg(feature = "webtransport")]
            udp_socket: None,
        })
    }

    /// Like [`bind`](Self::bind), with a UDP socket on the same port for WebTransport.
    ///
    /// # Errors
    /// If the address does not exist on this machine or is in use, for TCP or UDP.
    #[cfg(feature = "webtransport")]
    pub fn bind_with_udp(address: SocketAddr) -> io::Result<Self> {
        let mut left = if address.port() == 0 {
            PORTS_TRIED_MAX
        } else {
            1
        };
        loop {
            let listener = Self::bind(address)?;
            left -= 1;
            match UdpSocket::bind(listener.address) {
                Ok(socket) => {
                    return Ok(Self {
                        udp_socket: Some(socket),
                        ..listener
                    });
                }
                // A free TCP port may be in use for UDP.
                Err(_) if left > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The bound address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A server for browsers while it runs. Dropping it closes all connections; see [`stop`](Self::stop).
pub struct WebServer {
    shared: Arc<WebShared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for WebServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = formatter.debug_struct("WebServer");
        fields
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl WebServer {
    /// Starts to accept connections. Admitted clients are passed to `transport`. The server passes packets for its clients to a
    /// [`sink`](Self::sink).
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(
        listener: WebSocketListener,
        settings: WebSettings,
        gate: ServerHandshake,
        transport: &SharedIntake,
    ) -> io::Result<Self> {
        let address = listener.address;
        let shared = Arc::new(WebShared::new(settings, gate, transport.clone()));
        let on = WebSockets {
            #[cfg(feature = "webtransport")]
            sessions: match listener.udp_socket {
                Some(socket) => Some(SessionListener::new(socket, &shared)?),
                None => None,
            },
            socket: listener.socket,
        };
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_io().enable_time().build()?;
        let of_thread = shared.clone();
        let thread = thread::Builder::new().name("throng-web".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve(on, of_thread)))?;
        Ok(Self {
            shared,
            address,
            thread: Some(thread),
        })
    }

    /// The address of its listener.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &WebSettings {
        &self.shared.settings
    }

    /// Whether a client is connected over this server.
    #[must_use]
    pub fn has_client(&self, client: ClientId) -> bool {
        self.shared.send_queues().contains_key(&client)
    }

    /// The figures of a client's connection, at most about a second old; `None` before the first measurement, and after its end. One
    /// lookup.
    #[must_use]
    pub fn connection_stats(&self, client: ClientId) -> Option<ConnectionStats> {
        let queues = self.shared.send_queues();
        queues.get(&client)?.connection_stats()
    }

    /// A sink for the server's outbox: one per sender thread, if there are any.
    #[must_use]
    pub fn sink(&self) -> WebServerSink {
        WebServerSink::new(self.shared.clone())
    }

    /// Sets the walls of a scene for the demo page.
    pub fn set_map(&self, scene: u32, tiles: &TileMap, tile_m: f32) {
        let (bytes, edits) = (map_bytes(tiles, tile_m).into(), 0);
        self.shared.maps().insert(scene, PageMap { bytes, edits });
    }

    /// Sets the names of kinds and attributes for the demo page, as JSON: `kinds`, a list of names by number, and `attributes`, a list of
    /// objects with `id`, `name` and `encoding`.
    pub fn set_names(&self, json: String) {
        *self.shared.names() = Some(json.into());
    }

    /// Updates the walls in a rectangle of tiles. Pages that loaded the map before load it again.
    pub fn update_map(&self, scene: u32, tiles: &TileMap, rect: TileRect) {
        if let Some(map) = self.shared.maps().get_mut(&scene) {
            // Copies the bytes only while a response uses them.
            let mut bytes = Vec::from(std::mem::take(&mut map.bytes));
            update_map_bytes(&mut bytes, tiles, rect);
            (map.bytes, map.edits) = (bytes.into(), map.edits + 1);
        }
    }

    /// The SHA-256 of the current certificate for WebTransport, which changes with each renewal. `None` without WebTransport.
    #[cfg(feature = "webtransport")]
    #[must_use]
    pub fn certificate_sha256(&self) -> Option<[u8; 32]> {
        self.shared.certificate()
    }

    /// Whether its thread runs; `false` after it has panicked.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| !thread.is_finished())
    }

    /// Counters so far.
    #[must_use]
    pub fn stats(&self) -> WebStats {
        self.shared.counters.read()
    }

    /// Closes all connections and ends the thread. Packets in the sinks are written within [`linger_us`](WebSettings::linger_us). Returns
    /// the final counters.
    pub fn stop(mut self) -> WebStats {
        self.shutdown();
        self.stats()
    }

    fn shutdown(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Release);
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the web thread panicked: no browser is served any more");
        }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// The sockets on which the thread listens.
struct WebSockets {
    socket: TcpListener,
    #[cfg(feature = "webtransport")]
    sessions: Option<SessionListener>,
}

async fn serve(on: WebSockets, shared: Arc<WebShared>) {
    let accepting = match tokio::net::TcpListener::from_std(on.socket) {
        Ok(socket) => tokio::spawn(accept(socket, shared.clone())),
        Err(error) => return tracing::error!(%error, "listening for WebSockets failed"),
    };
    #[cfg(feature = "webtransport")]
    let sessions = on.sessions.and_then(|sessions| {
        let listening = sessions.listen(&shared);
        let log_error = |error| tracing::error!(%error, "listening for WebTransport failed");
        listening.map_err(log_error).ok()
    });
    let mut touched = Vec::new();
    while !shared.is_stopping.load(Ordering::Acquire) {
        shared.wake.notified().await;
        shared.take_touched(&mut touched);
        for line in touched.drain(..) {
            line.filled.notify_one();
        }
    }
    accepting.abort();
    #[cfg(feature = "webtransport")]
    if let Some(sessions) = &sessions {
        sessions.stop_accepting();
    }
    for line in shared.send_queues().values() {
        line.close();
        line.filled.notify_one();
    }
    // A client has this time to read what is left, and the same time again to confirm it.
    let until_us = shared.now_us() + shared.settings.linger_us.saturating_mul(2);
    while !shared.send_queues().is_empty() && shared.now_us() < until_us {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    for (client, line) in shared.send_queues_mut().drain() {
        line.discard(&shared.waiting_bytes);
        shared.transport.disconnect(client, DisconnectReason::Lost);
        let closed = DisconnectReason::Closed;
        shared.returns.end_connection(line.token, closed, 0);
    }
    #[cfg(feature = "webtransport")]
    if let Some(sessions) = sessions {
        sessions.shutdown(ACCEPT_PAUSE).await;
    }
}

/// Accepts connections, up to the limit of unauthenticated ones.
async fn accept(socket: tokio::net::TcpListener, shared: Arc<WebShared>) {
    loop {
        let Ok((stream, from)) = socket.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let counters = &shared.counters;
        // Behind a proxy, the client's address follows.
        let is_proxy = shared.opener.is_trusted(from.ip());
        let network = (!is_proxy).then(|| network_of(from.ip()));
        let Some(place) = UnauthenticatedSlot::acquire(&shared, network) else {
            WebCounters::one(&counters.refused_unauthenticated);
            continue;
        };
        WebCounters::one(&counters.accepted);
        // A packet of a tick must not wait for the next one.
        let _ = stream.set_nodelay(true);
        tokio::spawn(requests::open_connection(
            stream,
            from,
            place,
            shared.clone(),
        ));
    }
}
