//! Which connections are accepted.
//!
//! ```text
//! TCP ─▶ PROXY header, from a trusted proxy ─▶ limits ─┬─▶ TLS ─▶ any request
//!                                                      └─▶ TLS ─▶ a probe, beyond the limits
//! ```
//! Invariant: no peer delays the acceptance of another, whatever it sends or does not send. Every step of a connection is in its own task,
//! with a time limit and a maximum number.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throng_net::PortSettings;
use throng_net::http::ConnectionOpener;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::{InspectShared, requests};
use crate::connection_limits::{
    CONNECTIONS_PER_PEER_MAX, ConnectionPermit, PeerConnectionLimits, RESERVED_CONNECTIONS,
    reserved_to_close,
};
use crate::protocol::{CONNECTION_S_MAX, CONNECTIONS_MAX, InspectCounters};
use crate::routes::InspectAccess;

/// Pause after the system failed to accept a connection: it is out of descriptors, and would fail again at once.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Maximum time of a connection of the reserve: probes send their request at once.
const RESERVED_CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time of a PROXY header: proxies send it at once.
const PROXY_HEADER_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of connections whose PROXY header has not arrived yet; more are closed at once.
const PROXY_HEADERS_MAX: usize = 64;

/// Maximum time of a TLS handshake.
const TLS_TIMEOUT: Duration = Duration::from_secs(5);

/// A port, its limits and its open connections.
pub(super) struct AcceptedPort {
    opener: ConnectionOpener,
    access: Arc<InspectAccess>,
    probes_only: Arc<InspectAccess>,
    /// Limits are per port, so that a full one does not block another.
    limits: Arc<Mutex<PeerConnectionLimits>>,
    /// Connections beyond the limits, the oldest first.
    reserve: Mutex<VecDeque<(IpAddr, AbortHandle)>>,
    proxy_headers: Semaphore,
    shared: Arc<InspectShared>,
}

impl AcceptedPort {
    pub fn new(port: PortSettings, access: InspectAccess, shared: Arc<InspectShared>) -> Self {
        let limits = PeerConnectionLimits::new(CONNECTIONS_MAX, CONNECTIONS_PER_PEER_MAX);
        Self {
            opener: ConnectionOpener::new(port),
            probes_only: Arc::new(InspectAccess {
                is_probe_only: true,
                ..access.clone()
            }),
            access: Arc::new(access),
            limits: Arc::new(Mutex::new(limits)),
            reserve: Mutex::default(),
            proxy_headers: Semaphore::new(PROXY_HEADERS_MAX),
            shared,
        }
    }

    /// Accepts connections of a peer up to its limit; beyond that, probes only.
    pub async fn accept(self: Arc<Self>, socket: TcpListener) {
        loop {
            let Ok((stream, peer)) = socket.accept().await else {
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            };
            if self.opener.expects_proxy_header(peer.ip()) {
                tokio::spawn(self.clone().admit_proxied(stream, peer));
                continue;
            }
            self.clone().admit(stream, peer);
            // The request of a probe may have arrived already, and is answered before another connection takes its slot.
            tokio::task::yield_now().await;
        }
    }

    /// Accepts a connection once the address of its client is known.
    async fn admit_proxied(self: Arc<Self>, mut stream: TcpStream, peer: SocketAddr) {
        let port = self.clone();
        let counters = &self.shared.counters;
        let Ok(_permit) = port.proxy_headers.try_acquire() else {
            return InspectCounters::increment(&counters.refused);
        };
        let reading = port.opener.read_client_address(&mut stream, peer);
        match timeout(PROXY_HEADER_TIMEOUT, reading).await {
            Ok(Ok(client)) => self.admit(stream, client),
            _ => InspectCounters::increment(&counters.broken),
        }
    }

    /// Serves a connection if there is room, or else as one of the reserve.
    fn admit(self: Arc<Self>, stream: TcpStream, client: SocketAddr) {
        let client = SocketAddr::new(client.ip().to_canonical(), client.port());
        let counters = &self.shared.counters;
        let Some(permit) = ConnectionPermit::acquire(&self.limits, client.ip()) else {
            InspectCounters::increment(&counters.refused);
            return self.admit_probe(stream, client);
        };
        InspectCounters::increment(&counters.accepted);
        InspectCounters::increment(&counters.connections);
        tokio::spawn(async move {
            let longest = Duration::from_secs(CONNECTION_S_MAX);
            let served = timeout(longest, self.serve(stream, client, &self.access));
            if served.await != Ok(true) {
                InspectCounters::increment(&self.shared.counters.broken);
            }
            InspectCounters::decrement(&self.shared.counters.connections);
            drop(permit);
        });
    }

    fn admit_probe(self: Arc<Self>, stream: TcpStream, client: SocketAddr) {
        let port = self.clone();
        let mut reserve = port.reserve();
        reserve.retain(|(_, probe)| !probe.is_finished());
        // A probe takes microseconds, or with TLS milliseconds, so an old connection is not a probe.
        if reserve.len() >= RESERVED_CONNECTIONS {
            let peers: Vec<IpAddr> = reserve.iter().map(|(peer, _)| *peer).collect();
            let closed = reserved_to_close(&peers).and_then(|nth| reserve.remove(nth));
            if let Some((_, closed)) = closed {
                closed.abort();
            }
        }
        let probe = tokio::spawn(async move {
            let served = self.serve(stream, client, &self.probes_only);
            let _ = timeout(RESERVED_CONNECTION_TIMEOUT, served).await;
        });
        reserve.push_back((client.ip(), probe.abort_handle()));
    }

    /// Does the handshake and handles the request. Returns whether the client followed the protocols.
    async fn serve(
        &self,
        stream: TcpStream,
        client: SocketAddr,
        access: &Arc<InspectAccess>,
    ) -> bool {
        let opened = timeout(TLS_TIMEOUT, self.opener.encrypt(stream, client.ip()));
        let Ok(Ok(stream)) = opened.await else {
            return false;
        };
        let handled = requests::handle_connection(
            (stream, client),
            self.opener.trusted_proxies(),
            access.clone(),
            self.shared.clone(),
        );
        handled.await.is_ok()
    }

    fn reserve(&self) -> MutexGuard<'_, VecDeque<(IpAddr, AbortHandle)>> {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
