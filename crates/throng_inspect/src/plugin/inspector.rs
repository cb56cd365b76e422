//! Opening the addresses, and answering what is asked.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bevy_ecs::prelude::*;
use serde_json::json;
use thiserror::Error;
use tokio::sync::mpsc::{self, Receiver};

use super::pages::OpenPages;
use super::{RecordedTicks, ServerHealth, metrics};
use crate::protocol::{
    ActionPreset, InspectCounters, InspectReply, InspectRequest, InspectStats, InspectStatus,
    PaceRequest, PageUpdate, REQUESTS_MAX, RunPace,
};
use crate::routes::InspectAccess;
use crate::server::{InspectServer, InspectedListener, PagePermissions};
use throng::memory::memory_by_module;
use throng::session::Sessions;
use throng::sim::clock::Stopwatch;

/// How often numbers are gathered a second, at most.
pub const METRIC_UPDATES_PER_S: u32 = 4;

/// How many seconds lie between two looks at what each module's memory is, at least.
pub const MEMORY_INTERVAL_S: u32 = 15;

/// Cues of pages that wait to be taken, at most, and as many wishes for another pace.
pub const PAGE_ACTIONS_MAX: usize = 16;

/// Where a server is to be looked at.
#[derive(Clone, Debug, Default)]
pub struct InspectSettings {
    /// Where metrics are, and whether the server is up and ready. They ask for no token: whoever reaches the address reads them.
    pub metrics: Option<SocketAddr>,
    /// Where the page is. It may be the address of the metrics.
    pub page: Option<SocketAddr>,
    /// What a page has to know to be shown anything: letters and digits. Needed where its address is not on loopback.
    pub token: Option<String>,
    /// Whether pages may ask for something to be done, and what they propose; whoever opened the server does it, or does not:
    /// [`Inspector::next_action`].
    pub action_presets: Option<Vec<ActionPreset>>,
    /// Whether pages may pause the run, do single ticks and set its speed, and how it begins; whoever opened the server heeds it, or
    /// does not: [`Inspector::next_pace_request`].
    pub pace: Option<RunPace>,
}

/// Where a server is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InspectAddresses {
    /// Where metrics are.
    pub metrics: Option<SocketAddr>,
    /// Where the page is.
    pub page: Option<SocketAddr>,
}

/// Why a server cannot be looked at.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// There is no such address here, or another process has it.
    #[error("cannot open the inspect page on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// More than this machine could open the page.
    #[error(
        "{address} is not a loopback address: the inspect page needs a token there (`--inspect-token`)"
    )]
    TokenRequired {
        /// The address.
        address: SocketAddr,
    },
    /// The token could not stand in an address.
    #[error("invalid page token ({length} characters): expected 8 to 128 letters and digits")]
    InvalidToken {
        /// Its length.
        length: usize,
    },
    /// No thread could be started.
    #[error("the inspect thread failed to start: {0}")]
    Thread(io::Error),
}

/// A server that can be looked at, until this resource or its world goes.
#[derive(Resource)]
pub struct Inspector {
    addresses: InspectAddresses,
    requests: Receiver<InspectRequest>,
    /// Taken apart in this order: the thread ends when it is dropped.
    server: InspectServer,
    counters: Arc<InspectCounters>,
    status: Arc<InspectStatus>,
    metrics_requested: bool,
    next_metrics_tick: u64,
    next_memory_tick: u64,
    memory: Vec<(&'static str, usize)>,
    pages: OpenPages,
    /// What pages have asked to be done.
    actions: VecDeque<String>,
    /// How pages want the run to go on.
    pace_requests: VecDeque<PaceRequest>,
}

impl Inspector {
    /// The next thing that a page asked to be done, as it was written: nothing of it was checked.
    pub fn next_action(&mut self) -> Option<String> {
        self.actions.pop_front()
    }

    /// Tells all pages what came of something that one asked for: after which tick, and what is wrong if anything is.
    pub fn send_action_result(&self, text: &str, tick: u64, fault: Option<&str>) {
        let told = json!({ "type": "cue", "text": text, "tick": tick, "fault": fault });
        let told = PageUpdate::Text(told.to_string());
        self.send(InspectReply::Pages(self.pages.ids(), told));
    }

    /// What a page asked next of the pace of the run.
    pub fn next_pace_request(&mut self) -> Option<PaceRequest> {
        self.pace_requests.pop_front()
    }

    /// Tells all pages how the run goes on.
    pub fn send_pace(&mut self, pace: RunPace) {
        self.pages.pace = Some(pace);
        let told = json!({ "type": "pace", "pace": pace });
        let told = PageUpdate::Text(told.to_string());
        self.send(InspectReply::Pages(self.pages.ids(), told));
    }

    /// Where it is looked at.
    #[must_use]
    pub const fn addresses(&self) -> InspectAddresses {
        self.addresses
    }

    /// What happened there so far.
    #[must_use]
    pub fn stats(&self) -> InspectStats {
        self.counters.read()
    }
}

/// Lets a server be looked at from now on. It needs [`InspectPlugin`](super::InspectPlugin).
///
/// # Errors
/// [`InspectError`]; nothing is open then.
pub fn open_inspector(
    world: &mut World,
    settings: InspectSettings,
) -> Result<InspectAddresses, InspectError> {
    if let Some(token) = &settings.token {
        let fits = (8..=128).contains(&token.len());
        if !fits || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(InspectError::InvalidToken {
                length: token.chars().count(),
            });
        }
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
    let server = InspectServer::start(listeners, wish, counted, seen, takes);
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
        pace_requests: VecDeque::new(),
    });
    Ok(addresses)
}

/// The sockets: one where both addresses are the same.
fn bind(
    settings: InspectSettings,
) -> Result<(Vec<InspectedListener>, InspectAddresses), InspectError> {
    let InspectSettings {
        metrics,
        page,
        token,
        action_presets: _,
        pace: _,
    } = settings;
    let listen = |address: SocketAddr, access| {
        let open = || {
            let socket = TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok((socket.local_addr()?, InspectedListener { socket, access }))
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
        };
        let (bound, listener) = listen(address, access)?;
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
        let (bound, listener) = listen(address, access)?;
        addresses.metrics = Some(bound);
        listeners.push(listener);
    }
    Ok((listeners, addresses))
}

/// Answers what was asked since the last tick, as far as it is time for it.
pub(super) fn answer(world: &mut World) {
    handle_with_inspector(world, false);
}

/// Tells pages all that they show, although no tick was done: for a run that is paused, some times a second. O(objects).
pub fn refresh_pages(world: &mut World) {
    handle_with_inspector(world, true);
}

/// The same, whether or not it is time for anything.
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
                InspectRequest::Action(text) if self.actions.len() < PAGE_ACTIONS_MAX => {
                    self.actions.push_back(text);
                }
                InspectRequest::Action(text) => {
                    self.send_action_result(
                        &text,
                        tick,
                        Some("too much else was asked for; ask again"),
                    );
                }
                // Who asks for more than is taken asked often enough.
                InspectRequest::Pace(wish) if self.pace_requests.len() < PAGE_ACTIONS_MAX => {
                    self.pace_requests.push_back(wish);
                }
                InspectRequest::Pace(_) => {}
                InspectRequest::Closed(page) => self.pages.close(page),
            }
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
                // Once something was lost the rest is: a page that was not greeted makes nothing of it.
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
