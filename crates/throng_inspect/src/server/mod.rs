//! The server thread: sockets, requests and pages. It exchanges data with the tick only through two channels.
//!
//! | file | holds |
//! |---|---|
//! | `requests` | one connection: a request and its reply |
//! | `pages` | an open page |

mod pages;
mod requests;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use pages::PageConnections;

use super::admin::AdminAccess;
use super::connection_limits::{
    CONNECTIONS_PER_PEER_MAX, PeerConnectionLimits, RESERVED_CONNECTIONS,
};
use super::exposition::MetricFamily;
use super::protocol::{
    CONNECTION_S_MAX, CONNECTIONS_MAX, InspectCounters, InspectReply, InspectRequest,
    InspectStatus, REPLIES_MAX,
};
use super::routes::InspectAccess;

/// Pause after the system failed to accept a connection: it is out of descriptors, and would fail again at once.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Maximum time of a connection of the reserve: probes send their request at once.
const RESERVED_CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);

/// Seconds without a tick after which the server counts as stuck.
pub(super) const STUCK_S: u64 = 10;

/// A socket, and what it serves.
pub(super) struct InspectedListener {
    pub socket: TcpListener,
    pub access: InspectAccess,
}

/// What pages may request in addition to live data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PagePermissions {
    /// Actions.
    pub actions: bool,
    /// Pausing the run, single ticks, and another speed.
    pub pace: bool,
}

/// The thread, which ends when this is dropped.
pub(super) struct InspectServer {
    replies: Option<mpsc::Sender<InspectReply>>,
    thread: Option<JoinHandle<()>>,
}

impl InspectServer {
    /// Starts to serve on these non-blocking sockets. Pages may request what it `takes`.
    pub fn start(
        listeners: Vec<InspectedListener>,
        wishes: mpsc::Sender<InspectRequest>,
        (counters, status): (Arc<InspectCounters>, Arc<InspectStatus>),
        takes: PagePermissions,
        admin: AdminAccess,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_io().enable_time().build()?;
        let (news, told) = mpsc::channel(REPLIES_MAX);
        let shared = Arc::new(InspectShared {
            requests: wishes,
            counters,
            status,
            permissions: takes,
            admin,
            stuck_s: watch::Sender::new(0),
            metrics: watch::Sender::new(Arc::new(Vec::new())),
            pages: PageConnections::default(),
        });
        let thread = thread::Builder::new().name("inspect".into());
        let thread = thread.spawn(move || runtime.block_on(serve(listeners, told, shared)))?;
        Ok(Self {
            replies: Some(news),
            thread: Some(thread),
        })
    }

    /// Sends an update to the thread; returns whether there was room for it. Never waits.
    pub fn try_send(&self, news: InspectReply) -> bool {
        let sender = self.replies.as_ref();
        sender.is_some_and(|sender| sender.try_send(news).is_ok())
    }
}

impl Drop for InspectServer {
    fn drop(&mut self) {
        // Without a sender the thread sends its pending updates, and ends.
        self.replies = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("inspect thread panicked: the page and the metrics are unavailable");
        }
    }
}

/// State shared by all connections.
struct InspectShared {
    requests: mpsc::Sender<InspectRequest>,
    counters: Arc<InspectCounters>,
    status: Arc<InspectStatus>,
    /// What pages may request.
    permissions: PagePermissions,
    admin: AdminAccess,
    /// Seconds since the last tick ended.
    stuck_s: watch::Sender<u64>,
    /// The newest metrics.
    metrics: watch::Sender<Arc<Vec<MetricFamily>>>,
    pages: PageConnections,
}

async fn serve(
    listeners: Vec<InspectedListener>,
    mut told: mpsc::Receiver<InspectReply>,
    shared: Arc<InspectShared>,
) {
    for listener in listeners {
        match tokio::net::TcpListener::from_std(listener.socket) {
            Ok(socket) => _ = tokio::spawn(accept(socket, listener.access.into(), shared.clone())),
            Err(error) => tracing::error!(%error, "inspect listener not started"),
        }
    }
    tokio::spawn(watch_ticks(shared.clone()));
    while let Some(news) = told.recv().await {
        match news {
            InspectReply::Metrics(families) => _ = shared.metrics.send_replace(families.into()),
            InspectReply::Pages(to, news) => shared.pages.send(&to, news, &shared.counters),
        }
    }
}

/// Detects that ticks do not go on.
async fn watch_ticks(shared: Arc<InspectShared>) {
    let mut last = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let tick = shared.status.tick.load(Ordering::Relaxed);
        let has_gone_on = tick != last;
        last = tick;
        shared
            .stuck_s
            .send_modify(|stuck_s| *stuck_s = if has_gone_on { 0 } else { *stuck_s + 1 });
    }
}

/// Accepts connections of an address up to its limit; beyond that, probes only.
async fn accept(
    socket: tokio::net::TcpListener,
    access: Arc<InspectAccess>,
    shared: Arc<InspectShared>,
) {
    // Limits are per address, so that a full address does not block another.
    let places = PeerConnectionLimits::new(CONNECTIONS_MAX, CONNECTIONS_PER_PEER_MAX);
    let places = Arc::new(Mutex::new(places));
    let probes_only = Arc::new(InspectAccess {
        is_probe_only: true,
        ..(*access).clone()
    });
    let mut reserve: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, peer)) = socket.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let counters = &shared.counters;
        let Some(place) = ConnectionPermit::acquire(&places, peer.ip().to_canonical()) else {
            InspectCounters::increment(&counters.refused);
            reserve.retain(|probe| !probe.is_finished());
            // A probe takes microseconds, so the oldest connection is not a probe.
            if reserve.len() >= RESERVED_CONNECTIONS
                && let Some(oldest) = reserve.pop_front()
            {
                oldest.abort();
            }
            let answered =
                requests::handle_connection((stream, peer), probes_only.clone(), shared.clone());
            let probe = tokio::spawn(async move {
                let _ = tokio::time::timeout(RESERVED_CONNECTION_TIMEOUT, answered).await;
            });
            reserve.push_back(probe.abort_handle());
            // Its request may have arrived already, and is answered before another connection takes its slot.
            tokio::task::yield_now().await;
            continue;
        };
        InspectCounters::increment(&counters.accepted);
        InspectCounters::increment(&counters.connections);
        let (access, shared) = (access.clone(), shared.clone());
        tokio::spawn(async move {
            let answered = requests::handle_connection((stream, peer), access, shared.clone());
            let longest = Duration::from_secs(CONNECTION_S_MAX);
            let in_time = tokio::time::timeout(longest, answered).await;
            if !matches!(in_time, Ok(Ok(()))) {
                InspectCounters::increment(&shared.counters.broken);
            }
            InspectCounters::decrement(&shared.counters.connections);
            drop(place);
        });
    }
}

/// The slot of a connection; released when it is dropped.
struct ConnectionPermit {
    limits: Arc<Mutex<PeerConnectionLimits>>,
    peer: IpAddr,
}

impl ConnectionPermit {
    fn acquire(places: &Arc<Mutex<PeerConnectionLimits>>, peer: IpAddr) -> Option<Self> {
        let mut all = places.lock().unwrap_or_else(PoisonError::into_inner);
        let places = places.clone();
        // Only an acquired slot is released.
        all.try_acquire(peer).then(|| Self {
            limits: places,
            peer,
        })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let places = self.limits.lock();
        let mut places = places.unwrap_or_else(PoisonError::into_inner);
        places.release(self.peer);
    }
}
