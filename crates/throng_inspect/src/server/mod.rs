//! The thread that answers: sockets, requests and pages. The tick knows it by two channels alone.
//!
//! | file | holds |
//! |---|---|
//! | `requests` | one connection: a request and its answer |
//! | `pages` | a page that is open |

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

use super::exposition::MetricFamily;
use super::places::{CONNECTIONS_OF_PEER_MAX, PeerPlaces, RESERVE};
use super::routes::InspectAccess;
use super::traffic::{
    CONNECTION_S_MAX, CONNECTIONS_MAX, InspectCounters, InspectReply, InspectRequest,
    InspectStatus, NEWS_MAX,
};

/// How long nobody is listened to after the system gave no connection: it is out of descriptors, and would say so at once again.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a connection of the reserve may take: probes ask at once.
const RESERVE_PATIENCE: Duration = Duration::from_secs(2);

/// Seconds without a tick after which the server counts as stuck.
pub(super) const STUCK_S: u64 = 10;

/// A socket, and what it answers.
pub(super) struct InspectedListener {
    pub socket: TcpListener,
    pub access: InspectAccess,
}

/// What pages may ask for beside being shown something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PagePermissions {
    /// That a cue is run.
    pub cues: bool,
    /// That the run is paused, does a tick, or has another speed.
    pub pace: bool,
}

/// The thread, which ends when this is dropped.
pub(super) struct InspectServer {
    news: Option<mpsc::Sender<InspectReply>>,
    thread: Option<JoinHandle<()>>,
}

impl InspectServer {
    /// Starts to answer on these sockets, which do not block. Pages may ask for what it `takes`.
    pub fn start(
        listeners: Vec<InspectedListener>,
        wishes: mpsc::Sender<InspectRequest>,
        counters: Arc<InspectCounters>,
        status: Arc<InspectStatus>,
        takes: PagePermissions,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_io().enable_time().build()?;
        let (news, told) = mpsc::channel(NEWS_MAX);
        let shared = Arc::new(InspectShared {
            wishes,
            counters,
            status,
            takes,
            stuck_s: watch::Sender::new(0),
            metrics: watch::Sender::new(Arc::new(Vec::new())),
            pages: PageConnections::default(),
        });
        let thread = thread::Builder::new().name("inspect".into());
        let thread = thread.spawn(move || runtime.block_on(serve(listeners, told, shared)))?;
        Ok(Self {
            news: Some(news),
            thread: Some(thread),
        })
    }

    /// Hands news over; whether there was room for it. Never waits.
    pub fn tell(&self, news: InspectReply) -> bool {
        let sender = self.news.as_ref();
        sender.is_some_and(|sender| sender.try_send(news).is_ok())
    }
}

impl Drop for InspectServer {
    fn drop(&mut self) {
        // Without a sender the thread has no more to tell, and ends with all that it was about to say.
        self.news = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("inspect thread panicked: the page and the metrics are unavailable");
        }
    }
}

/// What all connections share.
struct InspectShared {
    wishes: mpsc::Sender<InspectRequest>,
    counters: Arc<InspectCounters>,
    status: Arc<InspectStatus>,
    /// What pages may ask for.
    takes: PagePermissions,
    /// For how many seconds no tick has ended.
    stuck_s: watch::Sender<u64>,
    /// The newest numbers.
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
            InspectReply::Pages(to, news) => shared.pages.tell(&to, news, &shared.counters),
        }
    }
}

/// Notices when ticks do not go on.
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

/// Takes connections of an address, as many as may be open there; beyond that probes only.
async fn accept(
    socket: tokio::net::TcpListener,
    access: Arc<InspectAccess>,
    shared: Arc<InspectShared>,
) {
    // Of this address alone, so that who fills it shuts nobody out of another.
    let places = PeerPlaces::new(CONNECTIONS_MAX, CONNECTIONS_OF_PEER_MAX);
    let places = Arc::new(Mutex::new(places));
    let probes_only = Arc::new(InspectAccess {
        is_reserve: true,
        ..(*access).clone()
    });
    let mut reserve: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, peer)) = socket.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let counters = &shared.counters;
        let Some(place) = PeerPlace::take(&places, peer.ip().to_canonical()) else {
            InspectCounters::one(&counters.refused);
            reserve.retain(|probe| !probe.is_finished());
            // A probe takes microseconds, so the oldest connection is not a probe.
            if reserve.len() >= RESERVE
                && let Some(oldest) = reserve.pop_front()
            {
                oldest.abort();
            }
            let answered = requests::answer(stream, probes_only.clone(), shared.clone());
            let probe = tokio::spawn(async move {
                let _ = tokio::time::timeout(RESERVE_PATIENCE, answered).await;
            });
            reserve.push_back(probe.abort_handle());
            // Its request may be there already, and is answered before another connection takes its place.
            tokio::task::yield_now().await;
            continue;
        };
        InspectCounters::one(&counters.accepted);
        InspectCounters::one(&counters.connections);
        let (access, shared) = (access.clone(), shared.clone());
        tokio::spawn(async move {
            let answered = requests::answer(stream, access, shared.clone());
            let longest = Duration::from_secs(CONNECTION_S_MAX);
            let in_time = tokio::time::timeout(longest, answered).await;
            if !matches!(in_time, Ok(Ok(()))) {
                InspectCounters::one(&shared.counters.broken);
            }
            InspectCounters::less(&shared.counters.connections);
            drop(place);
        });
    }
}

/// The place of a connection; given back when it is dropped.
struct PeerPlace {
    places: Arc<Mutex<PeerPlaces>>,
    peer: IpAddr,
}

impl PeerPlace {
    fn take(places: &Arc<Mutex<PeerPlaces>>, peer: IpAddr) -> Option<Self> {
        let mut all = places.lock().unwrap_or_else(PoisonError::into_inner);
        let places = places.clone();
        // Only a place that was taken is given back.
        all.take(peer).then(|| Self { places, peer })
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let places = self.places.lock();
        let mut places = places.unwrap_or_else(PoisonError::into_inner);
        places.give_back(self.peer);
    }
}
