//! Clients over UDP: a socket, a receiving thread, and threads that encrypt and send.
//!
//! ```text
//! socket ─▶ receiver ─┬─ unauthenticated ─▶ ServerHandshake ─▶ ConnectionHandler::connect ─┐   the server, in its tick
//!    ▲                └─ clients ─▶ mailbox ─▶ shard ─▶ ConnectionHandler::receive ────────┴▶ Ingest
//!    └──────────────────────────────────────── shard ◀─ mailbox ◀─ UdpServerSink ◀─────────── Send
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `settings` | limits and counters |
//! | `socket` | the socket |
//! | `batch`, `fragments` | many datagrams per system call; no IP fragmentation |
//! | `shared`, `mailbox` | state that the threads share; work that waits for a shard |
//! | `router` | the receiving thread |
//! | `shard` | a thread that owns connections |
//! | `handler`, `sink` | from the transport to the server; from the server to the transport |
//! | `client` | the client's end, with its own socket |
//! | `hostile/` | hostile clients, for a trial and tests |
//!
//! Invariants: the server's tick waits for no system call and for nothing longer than the copy of a few datagrams. A shard knows a client
//! before the server can send to it. Replies to unauthenticated addresses are smaller than what they sent. Every queue is bounded. Only
//! these threads read the clock, and no time that they read reaches the server.
//!
//! Cost: per client and tick, two copies of its packets and one encryption; one wake-up per tick and shard. An inbound datagram costs one
//! copy and one decryption. A system call sends or receives up to 64 datagrams on Linux, elsewhere one.

mod batch;
mod client;
mod fragments;
mod handler;
#[cfg(any(test, feature = "bench"))]
pub mod hostile;
mod mailbox;
mod router;
mod settings;
mod shard;
mod shared;
mod sink;
mod socket;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use throng_protocol::wire::ClientId;

pub use client::{SocketTotals, UdpClient};
pub use handler::ConnectionHandler;
#[cfg(feature = "web")]
pub(super) use handler::SharedIntake;
pub use settings::{UdpSettings, UdpStats};
pub use sink::UdpServerSink;
pub use socket::ServerSocket;

use super::connection_stats::ConnectionStats;
use super::handshake::ServerHandshake;
use router::DatagramRouter;
use shard::ShardWorker;
use shared::UdpShared;

/// A UDP server while it runs. Dropping it closes all connections; see [`stop`](Self::stop).
#[derive(Debug)]
pub struct UdpServer {
    shared: Arc<UdpShared>,
    address: SocketAddr,
    shards: Vec<JoinHandle<()>>,
    receiver: Option<JoinHandle<()>>,
}

impl UdpServer {
    /// Starts to receive. Admitted clients are passed to `transport`. The server passes packets for its clients to a [`sink`](Self::sink).
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(
        socket: ServerSocket,
        settings: UdpSettings,
        gate: ServerHandshake,
        transport: &Arc<dyn ConnectionHandler>,
    ) -> io::Result<Self> {
        let address = socket.address();
        let shared = Arc::new(UdpShared::new(socket.socket, settings));
        let mut server = Self {
            shared: shared.clone(),
            address,
            shards: Vec::new(),
            receiver: None,
        };
        for nth in 0..shared.mailboxes.len() {
            let worker = ShardWorker::new(nth, shared.clone(), transport.clone(), gate.returns());
            let thread = thread::Builder::new().name(format!("throng-net-{nth}"));
            server.shards.push(thread.spawn(|| worker.run())?);
        }
        let router = DatagramRouter::new(shared, gate, transport.clone());
        let thread = thread::Builder::new().name("throng-net-in".to_owned());
        server.receiver = Some(thread.spawn(|| router.run())?);
        Ok(server)
    }

    /// The address of its socket.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a client is connected over this server.
    #[must_use]
    pub fn has_client(&self, client: ClientId) -> bool {
        self.shared.clients().contains(&client)
    }

    /// The figures of a client's connection, at most half a second old; `None` before the first measurement, and after its end. One
    /// lookup.
    #[must_use]
    pub fn connection_stats(&self, client: ClientId) -> Option<ConnectionStats> {
        self.shared.connection_stats(client)
    }

    /// A sink for the server's outbox: one per sender thread, if there are any.
    #[must_use]
    pub fn sink(&self) -> UdpServerSink {
        UdpServerSink::new(self.shared.clone())
    }

    /// Whether all its threads run; `false` after one has panicked.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let mut threads = self.shards.iter().chain(&self.receiver);
        threads.all(|thread| !thread.is_finished())
    }

    /// Counters so far.
    #[must_use]
    pub fn stats(&self) -> UdpStats {
        self.shared.counters.read()
    }

    /// Closes all connections and ends the threads. Packets in the sinks are sent within [`linger_us`](UdpSettings::linger_us). Returns the
    /// final counters.
    pub fn stop(mut self) -> UdpStats {
        self.shutdown();
        self.stats()
    }

    fn shutdown(&mut self) {
        for mailbox in &self.shared.mailboxes {
            mailbox.update(|work| work.is_stopping = true);
        }
        for shard in self.shards.drain(..) {
            join(shard);
        }
        // The receiver delivers the acknowledgements that the shards wait for, so it stops last.
        self.shared.is_stopping.store(true, Ordering::Release);
        if let Some(receiver) = self.receiver.take() {
            join(receiver);
        }
    }
}

impl Drop for UdpServer {
    fn drop(&mut self) {
        self.shutdown();
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a UDP thread panicked");
    }
}
