//! Clients over WebSockets and WebTransport, as browsers have them: one thread, which waits for all of them at once.
//!
//! ```text
//! TCP ─▶ requests ─▶ GET /play ─▶ first frame: a token ─▶ ServerHandshake ─▶ ConnectionHandler::connect           the server, in its tick
//!                                 a frame: a message ──────────▶ ConnectionHandler::receive       ─▶ Ingest
//!                                 a frame: a packet  ◀── line ◀── WebServerSink              ◀─ Send
//! ```
//! | file | holds |
//! |---|---|
//! | `settings` | limits, and what is counted |
//! | `line` | what waits for a client |
//! | `shared`, `sink` | what tick and thread have in common; the server's way out |
//! | `proxies` | clients behind a trusted proxy |
//! | `requests` | a connection: what is asked for |
//! | `admitted` | a client from its token to its end, whichever way it came |
//! | `play` | a client's WebSocket |
//! | `webtransport` | the same over QUIC, on UDP of the same port, with the feature `webtransport` |
//! | `page` | a page that walks in |
//! | `plugin` | a server's world that listens |
//!
//! A WebSocket loses nothing and keeps the order, so packets of the server and messages of the client travel as they are; the
//! [page of the transport](super) has the bytes. Who is told something reliable has to have read it in time: behind it goes a *ping*, which
//! every client answers, and who does not is lost.
//!
//! Invariants: the tick waits for no system call but one that wakes the thread, and for nobody who reads slowly; a client has a line
//! before the server can say anything to it; all that waits is bounded, and so is what strangers may hold open. A frame that is too long
//! is refused by its head, before there is room for it. The clock is read by the thread alone.
//!
//! Absent: TLS for WebSockets and the page. Beyond this machine a proxy that has a certificate stands before it (`wss:`); limits and bans see the clients' addresses where it is one of
//! [`trusted_proxies`](WebSettings::trusted_proxies), and that of the proxy otherwise. WebTransport has TLS of itself, by a certificate whose hash the page is told; a browser has it only for
//! pages of `https:` or of its own machine, and a proxy lets it pass by, on UDP. And a check of the page's origin at `/play`: nobody is let in by a cookie or anything else that a
//! browser sends by itself, so a page from elsewhere can do no more than its own program could.
//!
//! Cost: for a client and tick a copy of its packets and a system call.

mod admission;
mod client_loop;
mod page;
mod proxies;
mod requests;
mod send_queue;
mod settings;
mod shared;
mod sink;
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
pub use proxies::{AddressRange, InvalidAddressRange};
pub use settings::{WebSettings, WebStats};
pub use sink::WebServerSink;
#[cfg(feature = "webtransport")]
pub use webtransport::WebTransportSettings;

use super::handshake::{ServerHandshake, network_of};
use super::udp::SharedIntake;
use crate::inbox::DisconnectReason;
use page::update_map_bytes;
use settings::WebCounters;
use shared::{PageMap, UnauthenticatedSlot, WebShared};
#[cfg(feature = "webtransport")]
use webtransport::SessionListener;

/// How long nobody is listened to after the system gave no connection: it is out of descriptors, and would say so at once again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Ports that are tried where any will do that is free on TCP and on UDP.
#[cfg(feature = "webtransport")]
const PORTS_TRIED_MAX: u32 = 64;

/// Between two looks whether all clients are gone at the end.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An address that is bound and not used yet.
#[derive(Debug)]
pub struct WebSocketListener {
    socket: TcpListener,
    address: SocketAddr,
    /// The same port of UDP, for WebTransport.
    #[cfg(feature = "webtransport")]
    udp_socket: Option<UdpSocket>,
}

impl WebSocketListener {
    /// Binds to an address; with the port 0 to any that is free.
    ///
    /// # Errors
    /// Where there is no such address here, or another process has it.
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

    /// The same, and on UDP with the same port for WebTransport.
    ///
    /// # Errors
    /// Where there is no such address here, or another process has it in either way.
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
                // A port that is free in one way may not be in the other.
                Err(_) if left > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is bound.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A server's end of an address, while it is there. When it is dropped, all connections are closed; see [`stop`](Self::stop).
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
    /// Begins to answer: whom the gate lets in is a client of `transport` from then on. What the server says to its clients it is to
    /// give to a [`sink`](Self::sink).
    ///
    /// # Errors
    /// Where the system has no threads.
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

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a client is connected over it.
    #[must_use]
    pub fn has_client(&self, client: ClientId) -> bool {
        self.shared.send_queues().contains_key(&client)
    }

    /// A sink for the server's outbox; one for each of its threads where it has any.
    #[must_use]
    pub fn sink(&self) -> WebServerSink {
        WebServerSink::new(self.shared.clone())
    }

    /// Gives the page at `/` the walls of a scene, as they are now.
    pub fn set_map(&self, scene: u32, tiles: &TileMap, tile_m: f32) {
        let (bytes, edits) = (map_bytes(tiles, tile_m).into(), 0);
        self.shared.maps().insert(scene, PageMap { bytes, edits });
    }

    /// Gives it those of a rectangle of tiles anew. Who asked for the map before asks again.
    pub fn update_map(&self, scene: u32, tiles: &TileMap, rect: TileRect) {
        if let Some(map) = self.shared.maps().get_mut(&scene) {
            // A copy only where somebody is just being sent it.
            let mut bytes = Vec::from(std::mem::take(&mut map.bytes));
            update_map_bytes(&mut bytes, tiles, rect);
            (map.bytes, map.edits) = (bytes.into(), map.edits + 1);
        }
    }

    /// The SHA-256 of the certificate by which browsers know this server over WebTransport, until it has another one; none where there is no
    /// WebTransport.
    #[cfg(feature = "webtransport")]
    #[must_use]
    pub fn certificate_sha256(&self) -> Option<[u8; 32]> {
        self.shared.certificate()
    }

    /// Whether its thread runs; `false` once it has panicked.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| !thread.is_finished())
    }

    /// What happened so far.
    #[must_use]
    pub fn stats(&self) -> WebStats {
        self.shared.counters.read()
    }

    /// Closes all connections and ends the thread: what was given to the sinks is written, for as long as
    /// [`linger_us`](WebSettings::linger_us) says. Gives what happened in all.
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

/// What the thread listens on.
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
        let told = |error| tracing::error!(%error, "listening for WebTransport failed");
        listening.map_err(told).ok()
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
    // A client has as long as that to take what is left, and as long again to say that it has.
    let until_us = shared.now_us() + shared.settings.linger_us.saturating_mul(2);
    while !shared.send_queues().is_empty() && shared.now_us() < until_us {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    for (client, line) in shared.send_queues_mut().drain() {
        line.discard(&shared.waiting_bytes);
        shared.transport.disconnect(client, DisconnectReason::Lost);
    }
    #[cfg(feature = "webtransport")]
    if let Some(sessions) = sessions {
        sessions.shutdown(ACCEPT_PAUSE).await;
    }
}

/// Takes connections, as many of strangers as may be open.
async fn accept(socket: tokio::net::TcpListener, shared: Arc<WebShared>) {
    loop {
        let Ok((stream, from)) = socket.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let counters = &shared.counters;
        // Whose connection it is behind a proxy is in the request.
        let proxies = &shared.settings.trusted_proxies;
        let is_proxy = proxies.iter().any(|range| range.contains(from.ip()));
        let network = (!is_proxy).then(|| network_of(from.ip()));
        let Some(place) = UnauthenticatedSlot::acquire(&shared, network) else {
            WebCounters::one(&counters.refused_unauthenticated);
            continue;
        };
        WebCounters::one(&counters.accepted);
        // A packet a tick is not to wait for the next one.
        let _ = stream.set_nodelay(true);
        tokio::spawn(requests::handle_connection(
            stream,
            from,
            place,
            shared.clone(),
        ));
    }
}
