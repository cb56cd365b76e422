//! Clients over WebSockets, as browsers have them: one thread, which waits for all of them at once.
//!
//! ```text
//! TCP ─▶ requests ─▶ GET /play ─▶ first frame: a token ─▶ Gate ─▶ ClientIntake::connect           the server, in its tick
//!                                 a frame: a message ──────────▶ ClientIntake::receive       ─▶ Ingest
//!                                 a frame: a packet  ◀── line ◀── WebServerSink              ◀─ Send
//! ```
//! | file | holds |
//! |---|---|
//! | `settings` | limits, and what is counted |
//! | `line` | what waits for a client |
//! | `shared`, `sink` | what tick and thread have in common; the server's way out |
//! | `requests` | a connection: what is asked for |
//! | `play` | a client's WebSocket |
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
//! Absent: TLS. Beyond this machine a proxy that has a certificate stands before it (`wss:`); what it forwards has its address, of which
//! the limits of strangers are to know. And a check of the page's origin at `/play`: nobody is let in by a cookie or anything else that a
//! browser sends by itself, so a page from elsewhere can do no more than its own program could.
//!
//! Cost: for a client and tick a copy of its packets and a system call.

mod line;
mod page;
mod play;
mod plugin;
mod requests;
mod settings;
mod shared;
mod sink;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use page::map_bytes;
pub use plugin::{ListeningWeb, listen_web, stop_listening_web};
pub use settings::{WebSettings, WebStats};
pub use sink::WebServerSink;

use super::handshake::{Gate, network_of};
use super::udp::SharedIntake;
use crate::inbox::DisconnectReason;
use crate::map::{TileMap, TileRect};
use crate::wire::ClientId;
use page::edit_map_bytes;
use settings::WebCounters;
use shared::{PageMap, StrangerPlace, WebShared};

/// How long nobody is listened to after the system gave no connection: it is out of descriptors, and would say so at once again.
const PAUSE: Duration = Duration::from_millis(50);

/// Between two looks whether all clients are gone at the end.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// An address that is bound and not used yet.
#[derive(Debug)]
pub struct WebSocketListener {
    socket: TcpListener,
    address: SocketAddr,
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
        Ok(Self { socket, address })
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
        gate: Gate,
        transport: &SharedIntake,
    ) -> io::Result<Self> {
        let address = listener.address;
        let shared = Arc::new(WebShared::new(settings, gate, transport.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_io().enable_time().build()?;
        let of_thread = shared.clone();
        let thread = thread::Builder::new().name("throng-web".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve(listener.socket, of_thread)))?;
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
    pub fn has(&self, client: ClientId) -> bool {
        self.shared.lines().contains_key(&client)
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
    pub fn edit_map(&self, scene: u32, tiles: &TileMap, rect: TileRect) {
        if let Some(map) = self.shared.maps().get_mut(&scene) {
            // A copy only where somebody is just being sent it.
            let mut bytes = Vec::from(std::mem::take(&mut map.bytes));
            edit_map_bytes(&mut bytes, tiles, rect);
            (map.bytes, map.edits) = (bytes.into(), map.edits + 1);
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn stats(&self) -> WebStats {
        self.shared.counters.read()
    }

    /// Closes all connections and ends the thread: what was given to the sinks is written, for as long as
    /// [`linger_us`](WebSettings::linger_us) says. Gives what happened in all.
    pub fn stop(mut self) -> WebStats {
        self.end();
        self.stats()
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the WebSockets panicked");
        }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve(socket: TcpListener, shared: Arc<WebShared>) {
    let accepting = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => tokio::spawn(accept(socket, shared.clone())),
        Err(error) => return tracing::error!(%error, "an address cannot be listened to"),
    };
    let mut touched = Vec::new();
    while !shared.is_over.load(Ordering::Acquire) {
        shared.wake.notified().await;
        shared.take_touched(&mut touched);
        for line in touched.drain(..) {
            line.filled.notify_one();
        }
    }
    accepting.abort();
    for line in shared.lines().values() {
        line.close();
        line.filled.notify_one();
    }
    // A client has as long as that to take what is left, and as long again to say that it has.
    let until_us = shared.now_us() + shared.settings.linger_us.saturating_mul(2);
    while !shared.lines().is_empty() && shared.now_us() < until_us {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    for (client, line) in shared.lines_mut().drain() {
        line.end(&shared.waiting_bytes);
        shared.transport.disconnect(client, DisconnectReason::Lost);
    }
}

/// Takes connections, as many of strangers as may be open.
async fn accept(socket: tokio::net::TcpListener, shared: Arc<WebShared>) {
    loop {
        let Ok((stream, from)) = socket.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let counters = &shared.counters;
        let Some(place) = StrangerPlace::take(&shared, network_of(from.ip())) else {
            WebCounters::one(&counters.crowded);
            continue;
        };
        WebCounters::one(&counters.accepted);
        // A packet a tick is not to wait for the next one.
        let _ = stream.set_nodelay(true);
        tokio::spawn(requests::answer(stream, from, place, shared.clone()));
    }
}
