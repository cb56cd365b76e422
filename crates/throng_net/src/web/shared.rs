//! State that the tick and the thread of the browser transports share.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

use foldhash::fast::FixedState;
use hyper::body::Bytes;
use throng_core::clock::Stopwatch;
use throng_protocol::wire::ClientId;
use tokio::sync::Notify;

use super::page::IndexPage;
use super::send_queue::WebSendQueue;
use super::settings::{WebCounters, WebSettings};
use crate::handshake::{ClientReturns, ServerHandshake};
use crate::http::ConnectionOpener;
use crate::udp::SharedIntake;

/// The send queues of the connected clients.
pub(super) type SendQueues = HashMap<ClientId, Arc<WebSendQueue>, FixedState>;

/// The walls of a scene, and the number of edits.
pub(super) struct PageMap {
    pub bytes: Bytes,
    pub edits: u64,
}

/// State that all tasks share.
pub(super) struct WebShared {
    pub settings: WebSettings,
    pub opener: ConnectionOpener,
    /// The first file of the demo page.
    pub index: IndexPage,
    pub counters: WebCounters,
    pub transport: SharedIntake,
    /// Bytes that wait for all clients.
    pub waiting_bytes: AtomicUsize,
    /// The thread has to stop.
    pub is_stopping: AtomicBool,
    /// Send queues have new packets, or the thread has to stop.
    pub wake: Notify,
    /// Which clients may return with their tokens.
    pub returns: ClientReturns,
    handshake: Mutex<ServerHandshake>,
    clock: Stopwatch,
    send_queues: RwLock<SendQueues>,
    touched: Mutex<Vec<Arc<WebSendQueue>>>,
    /// The names of kinds and attributes, for the page: JSON.
    names: Mutex<Option<Bytes>>,
    /// The walls of scenes, for the page.
    maps: Mutex<BTreeMap<u32, PageMap>>,
    /// The SHA-256 of the current WebTransport certificate, for the page.
    #[cfg(feature = "webtransport")]
    certificate: Mutex<Option<[u8; 32]>>,
    /// Connections that have not shown a token: in total, and by network.
    unauthenticated: Mutex<(usize, HashMap<(bool, u64), u32>)>,
}

impl WebShared {
    pub fn new(settings: WebSettings, gate: ServerHandshake, transport: SharedIntake) -> Self {
        Self {
            opener: ConnectionOpener::new(settings.port.clone()),
            index: IndexPage::new(settings.public_origin.as_ref()),
            settings,
            counters: WebCounters::default(),
            transport,
            waiting_bytes: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
            wake: Notify::new(),
            returns: gate.returns(),
            handshake: Mutex::new(gate),
            clock: Stopwatch::start(),
            send_queues: RwLock::default(),
            touched: Mutex::default(),
            names: Mutex::default(),
            maps: Mutex::default(),
            #[cfg(feature = "webtransport")]
            certificate: Mutex::default(),
            unauthenticated: Mutex::default(),
        }
    }

    /// Microseconds since the server started.
    pub fn now_us(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    pub fn handshake(&self) -> MutexGuard<'_, ServerHandshake> {
        self.handshake
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The connected clients.
    pub fn send_queues(&self) -> RwLockReadGuard<'_, SendQueues> {
        self.send_queues
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub fn send_queues_mut(&self) -> RwLockWriteGuard<'_, SendQueues> {
        self.send_queues
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules these send queues, with one system call for all of them.
    pub fn mark_touched(&self, lines: &mut Vec<Arc<WebSendQueue>>) {
        if !lines.is_empty() {
            self.touched().append(lines);
            self.wake.notify_one();
        }
    }

    /// The send queues scheduled since the last call.
    pub fn take_touched(&self, into: &mut Vec<Arc<WebSendQueue>>) {
        std::mem::swap(&mut *self.touched(), into);
    }

    pub fn names(&self) -> MutexGuard<'_, Option<Bytes>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn maps(&self) -> MutexGuard<'_, BTreeMap<u32, PageMap>> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The SHA-256 of the certificate for WebTransport; `None` without WebTransport.
    #[cfg(feature = "webtransport")]
    pub fn certificate(&self) -> Option<[u8; 32]> {
        *self.certificate_mut()
    }

    #[cfg(not(feature = "webtransport"))]
    pub fn certificate(&self) -> Option<[u8; 32]> {
        None
    }

    #[cfg(feature = "webtransport")]
    pub fn set_certificate(&self, sha256: [u8; 32]) {
        *self.certificate_mut() = Some(sha256);
    }

    #[cfg(feature = "webtransport")]
    fn certificate_mut(&self) -> MutexGuard<'_, Option<[u8; 32]>> {
        let certificate = self.certificate.lock();
        certificate.unwrap_or_else(PoisonError::into_inner)
    }

    fn touched(&self) -> MutexGuard<'_, Vec<Arc<WebSendQueue>>> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unauthenticated(&self) -> MutexGuard<'_, (usize, HashMap<(bool, u64), u32>)> {
        let strangers = self.unauthenticated.lock();
        strangers.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The unit of the limits per address.
type Network = (bool, u64);

/// The slot of a connection that has not shown a token yet; released when dropped.
pub(super) struct UnauthenticatedSlot {
    shared: Arc<WebShared>,
    /// Set once. Behind a proxy it is known when the request has arrived.
    network: OnceLock<Network>,
}

impl UnauthenticatedSlot {
    /// Takes a slot, if there is one for this network. `None`: the network is not known yet.
    pub fn acquire(shared: &Arc<WebShared>, network: Option<Network>) -> Option<Self> {
        let mut strangers = shared.unauthenticated();
        if strangers.0 >= shared.settings.unauthenticated_max {
            return None;
        }
        strangers.0 += 1;
        drop(strangers);
        let place = Self {
            shared: shared.clone(),
            network: OnceLock::new(),
        };
        network
            .is_none_or(|network| place.assign(network))
            .then_some(place)
    }

    /// Assigns the network of the slot when it becomes known. `false` if there is no room for it.
    pub fn assign(&self, network: Network) -> bool {
        if self.network.get().is_some() {
            return true;
        }
        let mut strangers = self.shared.unauthenticated();
        let here = strangers.1.get(&network).copied().unwrap_or(0);
        if here >= self.shared.settings.unauthenticated_per_address_max {
            return false;
        }
        if self.network.set(network).is_ok() {
            strangers.1.insert(network, here + 1);
        }
        true
    }
}

impl Drop for UnauthenticatedSlot {
    fn drop(&mut self) {
        let mut strangers = self.shared.unauthenticated();
        let (all, by_network) = &mut *strangers;
        *all = all.saturating_sub(1);
        if let Some(network) = self.network.get()
            && let Some(here) = by_network.get_mut(network)
        {
            *here = here.saturating_sub(1);
            if *here == 0 {
                by_network.remove(network);
            }
        }
    }
}
