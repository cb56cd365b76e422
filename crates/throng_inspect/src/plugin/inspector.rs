//! Opening the addresses, and replying to requests.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bevy_ecs::prelude::*;
use serde_json::json;
use thiserror::Error;
use tokio::sync::mpsc::{self, Receiver};

use super::audit_log::AuditLog;
use super::pages::OpenPages;
use super::{RecordedTicks, ServerHealth, metrics};
use crate::admin::PageAdmin;
use crate::audit::AuditRecord;
use crate::protocol::{
    ActionPreset, InspectCounters, InspectReply, InspectRequest, InspectStats, InspectStatus,
    PaceRequest, PageUpdate, REQUESTS_MAX, Requester, RunPace,
};
use crate::routes::{InspectAccess, is_page_token};
use crate::server::{InspectServer, InspectedListener, PagePermissions};
use throng::memory::memory_by_module;
use throng::session::Sessions;
use throng::sim::clock::Stopwatch;
use throng_net::{PortSettings, PublicOrigin};

/// Maximum rate at which metrics are gathered, per second.
pub const METRIC_UPDATES_PER_S: u32 = 4;

/// Minimum number of seconds between two measurements of module memory.
pub const MEMORY_INTERVAL_S: u32 = 15;

/// Maximum number of pending actions of pages, and of pending pace requests.
pub const PAGE_ACTIONS_MAX: usize = 16;

/// Maximum number of actions that were taken and have no outcome yet; the oldest are forgotten, and their outcomes are not in the audit log.
const RUNNING_ACTIONS_MAX: usize = 1_024;

/// Settings of the inspector.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_inspect::{InspectSettings, open_inspector};
///
/// /// Metrics for a Prometheus in the same network, and a page for this machine only.
/// fn open(world: &mut World) -> Result<(), Box<dyn std::error::Error>> {
///     let settings = InspectSettings {
///         metrics: Some("0.0.0.0:9100".parse()?),
///         page: Some("127.0.0.1:9101".parse()?),
///         ..InspectSettings::default()
///     };
///     open_inspector(world, settings)?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct InspectSettings {
    /// The address of metrics, liveness and readiness. No token is required: everyone who reaches the address can read them.
    pub metrics: Option<SocketAddr>,
    /// The address of the page. It may be the address of the metrics.
    pub page: Option<SocketAddr>,
    /// The token of the page: letters and digits. Required if the address is not on loopback.
    pub token: Option<String>,
    /// TLS, and proxies in front of the metrics.
    pub metrics_port: PortSettings,
    /// TLS, and proxies in front of the page; also for the metrics if both have the same address.
    pub page_port: PortSettings,
    /// The origin of the page as browsers see it, if it is not that of the address: behind a proxy, or by the name in the certificate. Only
    /// a page of this origin, or one that was opened on this machine, receives live data.
    pub public_origin: Option<PublicOrigin>,
    /// Whether pages may request actions, and which presets they show; the code that opened the server runs them or not:
    /// [`Inspector::next_action`].
    pub action_presets: Option<Vec<ActionPreset>>,
    /// Whether pages may pause the run, do single ticks and set its speed, and the initial pace; the code that opened the server
    /// follows the requests or not: [`Inspector::next_pace_request`].
    pub pace: Option<RunPace>,
}

/// The open addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InspectAddresses {
    /// The address of the metrics.
    pub metrics: Option<SocketAddr>,
    /// The address of the page.
    pub page: Option<SocketAddr>,
}

/// Why the inspector cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The address does not exist here, or another process uses it.
    #[error("cannot open the inspect page on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system error.
        source: io::Error,
    },
    /// A page that is open beyond this machine needs a token.
    #[error(
        "{address} is not a loopback address: the inspect page needs a token there (`--inspect-token`)"
    )]
    TokenRequired {
        /// The address.
        address: SocketAddr,
    },
    /// The token cannot be part of a URL.
    #[error("invalid page token ({length} characters): expected 8 to 128 letters and digits")]
    InvalidToken {
        /// Its length.
        length: usize,
    },
    /// The thread could not be started.
    #[error("the inspect thread failed to start: {0}")]
    Thread(io::Error),
}

/// The open inspector, until this resource or its world is dropped.
#[derive(Resource)]
pub struct Inspector {
    addresses: InspectAddresses,
    requests: Receiver<InspectRequest>,
    /// Dropped in this order: the thread ends when it is dropped.
    server: InspectServer,
    counters: Arc<InspectCounters>,
    status: Arc<InspectStatus>,
    metrics_requested: bool,
    next_metrics_tick: u64,
    next_memory_tick: u64,
    memory: Vec<(&'static str, usize)>,
    pages: OpenPages,
    /// Actions requested by pages.
    actions: VecDeque<(String, Requester)>,
    /// Actions that were taken and have no outcome yet, oldest first.
    running_actions: VecDeque<(String, Requester)>,
    /// Actions with an outcome, for the audit log.
    audit_records: Vec<AuditRecord>,
    /// Pace requests of pages.
    pace_requests: VecDeque<PaceRequest>,
}

impl Inspector {
    /// The next action that a page requested, as written by the page: it is not checked.
    pub fn next_action(&mut self) -> Option<String> {
        let (text, requester) = self.actions.pop_front()?;
        if self.running_actions.len() >= RUNNING_ACTIONS_MAX {
            self.running_actions.pop_front();
        }
        self.running_actions.push_back((text.clone(), requester));
        Some(text)
    }

    /// Sends the outcome of a requested action to all pages: the tick after which it ran, and the error if it failed. The
    /// [`AuditLog`] receives it with the page that requested it, if there is one.
    pub fn send_action_result(&mut self, text: &str, tick: u64, fault: Option<&str>) {
        let mut running = self.running_actions.iter();
        if let Some(nth) = running.position(|(other, _)| other == text)
            && let Some((_, requester)) = self.running_actions.remove(nth)
        {
            self.record_action(text, &requester, tick, fault);
        }
        let update = json!({ "type": "action", "text": text, "tick": tick, "error": fault });
        let update = PageUpdate::Text(update.to_string());
        self.send(InspectReply::Pages(self.pages.ids(), update));
    }

    fn record_action(&mut self, text: &str, by: &Requester, tick: u64, fault: Option<&str>) {
        self.audit_records.push(AuditRecord {
            target: text.to_owned(),
            outcome: fault.map_or_else(|| format!("done after tick {tick}"), str::to_owned),
            ..AuditRecord::now(&by.who, Some(by.from), "cue")
        });
    }

    /// The next pace request of a page.
    pub fn next_pace_request(&mut self) -> Option<PaceRequest> {
        self.pace_requests.pop_front()
    }

    /// Sends the current pace to all pages.
    pub fn send_pace(&mut self, pace: RunPace) {
        self.pages.pace = Some(pace);
        let update = json!({ "type": "pace", "pace": pace });
        let update = PageUpdate::Text(update.to_string());
        self.send(InspectReply::Pages(self.pages.ids(), update));
    }

    /// The open addresses.
    #[must_use]
    pub const fn addresses(&self) -> InspectAddresses {
        self.addresses
    }

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> InspectStats {
        self.counters.read()
    }
}

/// Opens the inspector of a server. It needs [`InspectPlugin`](super::InspectPlugin).
///
/// # Errors
/// [`InspectError`]; nothing is open then.
pub fn open_inspector(
    world: &mut World,
    settings: InspectSettings,
) -> Result<InspectAddresses, InspectError> {
    if let Some(token) = settings.token.as_deref()
        && !is_page_token(token)
    {
        return Err(InspectError::InvalidToken {
            length: token.chars().count(),
        });
    }
    if let (Some(address), None) = (settings.page, &settings.token)
        && !address.ip().is_loopback()
    {
        return Err(InspectError::TokenRequired { address });
    }
    let (cues, pace) = (settings.action_presets.clone(), settings.pace);
    let takes = PagePermissions {
        actions: cues.is_some(),
        pace: pace.is_some(),
    };
    let (listeners, addresses) = bind(settings)?;
    if listeners.is_empty() {
        return Ok(addresses);
    }
    let (wish, wishes) = mpsc::channel(REQUESTS_MAX);
    let counters = Arc::new(InspectCounters::default());
    let status = Arc::new(InspectStatus::default());
    let (counted, seen) = (Arc::clone(&counters), Arc::clone(&status));
    let admin = world.get_resource_or_init::<PageAdmin>().0.clone();
    let server = InspectServer::start(listeners, wish, (counted, seen), takes, admin);
    world.insert_resource(Inspector {
        addresses,
        requests: wishes,
        server: server.map_err(InspectError::Thread)?,
        counters,
        status,
        metrics_requested: false,
        next_metrics_tick: 0,
        next_memory_tick: 0,
        memory: Vec::new(),
        pages: OpenPages::new(cues, pace),
        actions: VecDeque::new(),
        running_actions: VecDeque::new(),
        audit_records: Vec::new(),
        pace_requests: VecDeque::new(),
    });
    Ok(addresses)
}

/// The sockets: one if both addresses are equal.
fn bind(
    settings: InspectSettings,
) -> Result<(Vec<InspectedListener>, InspectAddresses), InspectError> {
    let InspectSettings {
        metrics,
        page,
        token,
        metrics_port,
        page_port,
        public_origin,
        action_presets: _,
        pace: _,
    } = settings;
    let listen = |address: SocketAddr, port: PortSettings, access| {
        let open = || {
            let socket = TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            let bound = socket.local_addr()?;
            let listener = InspectedListener {
                socket,
                port,
                access,
            };
            Ok((bound, listener))
        };
        open().map_err(|source| InspectError::Bind { address, source })
    };
    let mut addresses = InspectAddresses::default();
    let mut listeners = Vec::new();
    if let Some(address) = page {
        let access = InspectAccess {
            metrics: metrics == page,
            page: true,
            is_local: address.ip().is_loopback(),
            is_probe_only: false,
            token,
            public_origin,
        };
        let (bound, listener) = listen(address, page_port, access)?;
        addresses.page = Some(bound);
        addresses.metrics = metrics.filter(|_| metrics == page).map(|_| bound);
        listeners.push(listener);
    }
    if let Some(address) = metrics.filter(|_| metrics != page) {
        let access = InspectAccess {
            metrics: true,
            is_local: address.ip().is_loopback(),
            ..InspectAccess::default()
        };
        let (bound, listener) = listen(address, metrics_port, access)?;
        addresses.metrics = Some(bound);
        listeners.push(listener);
    }
    Ok((listeners, addresses))
}

/// Replies to requests since the last tick, as far as they are scheduled.
pub(super) fn answer(world: &mut World) {
    handle_with_inspector(world, false);
}

/// Sends pages everything that they show, although no tick was done: for a paused run, a few times a second. O(objects).
pub fn refresh_pages(world: &mut World) {
    handle_with_inspector(world, true);
}

/// The same, whether or not anything is scheduled.
#[expect(
    clippy::disallowed_methods,
    reason = "pages and metrics read the world; cues are only queued"
)]
fn handle_with_inspector(world: &mut World, stands_still: bool) {
    if !world.contains_resource::<Inspector>() {
        return;
    }
    world.resource_scope(|world, mut inspector: Mut<Inspector>| {
        let clock = Stopwatch::start();
        inspector.handle_requests(world, stands_still);
        let spent_ns = clock.elapsed().as_nanos() as u64;
        let spent = &inspector.counters.spent_ns;
        spent.fetch_add(spent_ns, Ordering::Relaxed);
    });
}

impl Inspector {
    fn handle_requests(&mut self, world: &mut World, stands_still: bool) {
        let tick = world.resource::<RecordedTicks>().tick;
        let sessions = world.get_resource::<Sessions>();
        let is_draining = sessions.is_some_and(Sessions::is_draining);
        self.status
            .is_draining
            .store(is_draining, Ordering::Relaxed);
        if let Some(health) = world.get_resource::<ServerHealth>() {
            let is_stopping = health.is_stopping();
            self.status
                .is_stopping
                .store(is_stopping, Ordering::Relaxed);
            self.status.set_not_ready_reason(health.not_ready_reason());
        }
        self.status.tick.store(tick, Ordering::Relaxed);
        while let Ok(wish) = self.requests.try_recv() {
            match wish {
                InspectRequest::Metrics => self.metrics_requested = true,
                InspectRequest::Opened(page) => self.pages.open(page),
                InspectRequest::Query(page, look) => self.pages.set_query(page, look),
                InspectRequest::Search(page, text) => self.pages.set_search(page, text),
                InspectRequest::Action(text, by) if self.actions.len() < PAGE_ACTIONS_MAX => {
                    self.actions.push_back((text, by));
                }
                InspectRequest::Action(text, by) => {
                    let refusal = "too many actions are pending; try again";
                    self.record_action(&text, &by, tick, Some(refusal));
                    self.send_action_result(&text, tick, Some(refusal));
                }
                // A page that sends more requests than are taken repeats them anyway.
                InspectRequest::Pace(wish) if self.pace_requests.len() < PAGE_ACTIONS_MAX => {
                    self.pace_requests.push_back(wish);
                }
                InspectRequest::Pace(_) => {}
                InspectRequest::Closed(page) => self.pages.close(page),
            }
        }
        let records = std::mem::take(&mut self.audit_records);
        if let Some(log) = world.get_resource::<AuditLog>() {
            records.into_iter().for_each(|record| log.record(record));
        }
        let per_s = 1.0 / super::tick_s(world);
        if self.metrics_requested && tick >= self.next_metrics_tick {
            self.metrics_requested = false;
            self.next_metrics_tick = tick + (per_s / f64::from(METRIC_UPDATES_PER_S)).ceil() as u64;
            self.sample_memory(world, tick, per_s);
            let mut families = metrics::gather_metrics(world, self.counters.read());
            families.extend(metrics::memory_metrics(&self.memory));
            self.send(InspectReply::Metrics(families));
        }
        if !self.pages.is_empty() {
            self.sample_memory(world, tick, per_s);
            let figures = (self.memory.as_slice(), self.counters.read());
            let when = (tick, per_s, stands_still);
            let news = self.pages.updates(world, when, figures);
            let mut has_room = true;
            for (pages, news) in news {
                let is_greeting = matches!(news, PageUpdate::Hello(_));
                let is_once = is_greeting || matches!(news, PageUpdate::Map { .. });
                let to = if is_once { pages.clone() } else { Vec::new() };
                // After one loss all further updates of the page are dropped: without the greeting it cannot use them.
                if has_room {
                    has_room = self.send(InspectReply::Pages(pages, news));
                } else {
                    InspectCounters::increment(&self.counters.dropped);
                }
                if !has_room {
                    self.pages.resend(&to, is_greeting);
                }
            }
        }
    }

    fn sample_memory(&mut self, world: &World, tick: u64, per_s: f64) {
        if tick >= self.next_memory_tick {
            self.next_memory_tick = tick + (per_s * f64::from(MEMORY_INTERVAL_S)).ceil() as u64;
            self.memory = memory_by_module(world).into_iter().collect();
        }
    }

    /// Whether there was room for it.
    fn send(&self, news: InspectReply) -> bool {
        let has_room = self.server.try_send(news);
        if !has_room {
            InspectCounters::increment(&self.counters.dropped);
        }
        has_room
    }
}
