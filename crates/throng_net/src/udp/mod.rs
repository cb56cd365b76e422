//! Clients over UDP: a socket, a thread that receives, threads that seal and send.
//!
//! ```text
//! socket ─▶ receiver ─┬─ strangers ─▶ ServerHandshake ─▶ ConnectionHandler::connect             the server, in its tick
//!    ▲                └─ clients ─▶ mailbox ─▶ shard ─▶ ConnectionHandler::receive    ─▶ Ingest
//!    └──────────────────────────────────────── shard ◀─ mailbox ◀─ UdpServerSink ◀─ Send
//! ```
//! | file | holds |
//! |---|---|
//! | `settings` | limits, and what is counted |
//! | `socket` | the socket itself |
//! | `batch`, `fragments` | many datagrams a system call; none is cut up on the way |
//! | `shared`, `mailbox` | what the threads have in common; what waits for a shard |
//! | `router` | the receiver's thread |
//! | `shard` | a thread with connections |
//! | `intake`, `sink` | the server's way in, and its way out |
//! | `client` | the other end, with a socket of its own |
//!
//! Invariants: the server's tick waits for no system call, nor for anything that takes longer than the copy of a few datagrams; a client is known to its shard
//! before the server can say anything to it; whatever strangers send, they are answered with less; all that waits is bounded.
//! The clock is read in these threads alone, and nothing that they read of it reaches the server.
//!
//! Cost: for a client and tick two copies of its packets and one seal; a wake-up a tick and shard. A datagram that comes in is one copy
//! and one seal. A system call takes or gives up to 64 datagrams on Linux, elsewhere one.

mod batch;
mod client;
mod fragments;
mod handler;
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

use super::handshake::ServerHandshake;
use router::DatagramRouter;
use shard::ShardWorker;
use shared::UdpShared;

/// A server's end of a socket, while it is there. When it is dropped, all connections are closed; see [`stop`](Self::stop).
#[derive(Debug)]
pub struct UdpServer {
    shared: Arc<UdpShared>,
    address: SocketAddr,
    shards: Vec<JoinHandle<()>>,
    receiver: Option<JoinHandle<()>>,
}

impl UdpServer {
    /// Begins to receive: whom the gate lets in is a client of `transport` from then on. What the server says to its clients it is to give
    /// to a [`sink`](Self::sink).
    ///
    /// # Errors
    /// Where the system has no threads.
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
            let worker = ShardWorker::new(nth, shared.clone(), transport.clone());
            let thread = thread::Builder::new().name(format!("throng-net-{nth}"));
            server.shards.push(thread.spawn(|| worker.run())?);
        }
        let router = DatagramRouter::new(shared, gate, transport.clone());
        let thread = thread::Builder::new().name("throng-net-in".to_owned());
        server.receiver = Some(thread.spawn(|| router.run())?);
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a client is connected over it.
    #[must_use]
    pub fn has_client(&self, client: ClientId) -> bool {
        self.shared.clients().contains(&client)
    }

    /// A sink for the server's outbox; one for each of its threads where it has any.
    #[must_use]
    pub fn sink(&self) -> UdpServerSink {
        UdpServerSink::new(self.shared.clone())
    }

    /// Whether all its threads run; `false` once one has panicked.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let mut threads = self.shards.iter().chain(&self.receiver);
        threads.all(|thread| !thread.is_finished())
    }

    /// What happened so far.
    #[must_use]
    pub fn stats(&self) -> UdpStats {
        self.shared.counters.read()
    }

    /// Closes all connections and ends the threads: what was given to the sinks is sent, for as long as
    /// [`linger_us`](UdpSettings::linger_us) says. Gives what happened in all.
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
        // It brings the acknowledgements that the shards wait for, so it goes last.
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
