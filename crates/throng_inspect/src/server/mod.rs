//! The server thread: sockets, requests and pages. It exchanges data with the tick only through two channels.
//!
//! | file | holds |
//! |---|---|
//! | `admission` | which connections are accepted: limits, PROXY header, TLS |
//! | `requests` | one connection: a request and its reply |
//! | `pages` | an open page |

mod admission;
mod pages;
mod requests;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use throng_net::PortSettings;
use tokio::sync::{mpsc, watch};

use admission::AcceptedPort;
use pages::PageConnections;
pub(super) use requests::deny;

use super::admin::AdminAccess;
use super::exposition::MetricFamily;
use super::protocol::{InspectCounters, InspectReply, InspectRequest, InspectStatus, REPLIES_MAX};
use super::routes::InspectAccess;

/// Seconds without a tick after which the server counts as stuck.
pub(super) const STUCK_S: u64 = 10;

/// A socket, and what it serves.
pub(super) struct InspectedListener {
    pub socket: TcpListener,
    pub port: PortSettings,
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
        let (news, replies) = mpsc::channel(REPLIES_MAX);
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
        let thread = thread.spawn(move || runtime.block_on(serve(listeners, replies, shared)))?;
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
    mut replies: mpsc::Receiver<InspectReply>,
    shared: Arc<InspectShared>,
) {
    for listener in listeners {
        match tokio::net::TcpListener::from_std(listener.socket) {
            Ok(socket) => {
                let port = AcceptedPort::new(listener.port, listener.access, shared.clone());
                tokio::spawn(Arc::new(port).accept(socket));
            }
            Err(error) => tracing::error!(%error, "inspect listener not started"),
        }
    }
    tokio::spawn(watch_ticks(shared.clone()));
    while let Some(news) = replies.recv().await {
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
