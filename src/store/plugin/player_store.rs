//! The resource [`PlayerStore`].

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use throng_store::{
    CacheStats, LeaseEvent, LeaseTable, PeerStats, Peers, PlayerStoreError, RegistrationTerms,
    SaveSubscribers, StoreFactory, StoreReply, StoreRequest, StoreSupervisor, StoreThread,
    StoredAttribute, thread_ended_error,
};
use tracing::error;

use super::messages::AtomicSaveRequest;
use super::messages::PlayerLookup;
use super::remote_players::RemotePlayers;
use super::reply_watch::ReplyWatch;
use super::settings::{PlayerStoreSettings, StoreReplyMode};
use crate::memory::MemoryUse;
use crate::session::{LoggedIn, LoggedOut};
use crate::sim::clock::{Stopwatch, unix_ms};
use crate::sync::SaveRequest;
use crate::world::PlayerId;

/// How long a deterministic run waits for a reply before it counts as failed.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Players that persist: the leases of this server, and the connection to its store.
#[derive(Resource, Default, MemoryUse)]
pub struct PlayerStore {
    #[memory(skip)]
    source: Option<Box<dyn StoreFactory>>,
    pub(super) open: Option<OpenPlayerStore>,
    pub(super) logins: MessageCursor<LoggedIn>,
    pub(super) logouts: MessageCursor<LoggedOut>,
    pub(super) transfers: MessageCursor<AtomicSaveRequest>,
    pub(super) saves: MessageCursor<SaveRequest>,
    pub(super) lookups: MessageCursor<PlayerLookup>,
    #[memory(skip)]
    pub(super) peers: Option<Box<dyn Peers>>,
}

impl PlayerStore {
    /// Saves players in a store from the next tick on. The store is opened on its own thread; an error is logged, and logins fail
    /// with it. To get the error at once, open the source first.
    ///
    /// # Errors
    /// [`PlayerStoreError::AlreadyOpen`] when there is a store already: its unsaved changes must not be lost.
    pub fn open(&mut self, source: impl StoreFactory + 'static) -> Result<(), PlayerStoreError> {
        if self.has_store() {
            return Err(PlayerStoreError::AlreadyOpen);
        }
        self.source = Some(Box::new(source));
        Ok(())
    }

    /// Whether there is a store, opened or still opening.
    #[must_use]
    pub const fn has_store(&self) -> bool {
        self.source.is_some() || self.open.is_some()
    }

    /// Whether a player is live on this server: its record was loaded, it has not left, and its lease is this server's as far as is
    /// known.
    #[must_use]
    pub fn is_live(&self, player: PlayerId) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.ledger.is_live(player))
    }

    /// The number of live players. O(players).
    #[must_use]
    pub fn live_count(&self) -> usize {
        let open = self.open.as_ref();
        open.map_or(0, |open| open.ledger.live_players().count())
    }

    /// Connects to the other servers of the same store: from the next tick on they notify each other of saves of players that they
    /// have looked up. Until the player store is [closed](super::close_player_store).
    pub fn join(&mut self, peers: impl Peers + 'static) {
        self.peers = Some(Box::new(peers));
    }

    /// Counters of messages between this server and others; `None` without [`join`](Self::join) or without an open store.
    #[must_use]
    pub fn peer_stats(&self) -> Option<PeerStats> {
        let followers = self.open.as_ref()?.remote.subscribers.as_ref();
        followers.map(SaveSubscribers::stats)
    }

    /// Counters of lookups of players on other servers; `None` without an open store.
    #[must_use]
    pub fn cache_stats(&self) -> Option<CacheStats> {
        let open = self.open.as_ref();
        open.map(|open| open.remote.cache.stats())
    }

    /// The number of players with unsaved changes.
    #[must_use]
    pub fn unsaved(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.ledger.unsaved())
    }

    /// The number of players who play on after the end of their leases, while the store is away:
    /// [`unsaved_play_ms`](throng_store::LeaseTableSettings::unsaved_play_ms).
    #[must_use]
    pub fn unsaved_play_count(&self) -> usize {
        let open = self.open.as_ref();
        open.map_or(0, |open| open.ledger.unsaved_play_count())
    }

    /// Whether the store failed to answer its last request, or is late by three seconds: logins are refused then, and saves wait. A
    /// server sends a request at least once per second, also without players; in a deterministic run once per
    /// [`renew_after_ms`](throng_store::LeaseTableSettings::renew_after_ms). `false` without a store.
    #[must_use]
    pub fn is_store_failing(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_failing)
    }

    /// Sends the last messages to other servers, and ends the store thread.
    pub(super) fn close(&mut self) {
        if let (Some(open), Some(mut peers)) = (&mut self.open, self.peers.take()) {
            open.remote.send(&mut *peers);
        }
        self.open = None;
    }

    /// Starts the thread, if there is a store that was not started yet.
    pub(super) fn start(
        &mut self,
        settings: &PlayerStoreSettings,
        attributes: impl FnOnce() -> Vec<StoredAttribute>,
    ) {
        let Some(source) = self.source.take() else {
            return;
        };
        let store = format!("{source:?}");
        let attributes = attributes();
        let kept = attributes.iter().map(|kept| kept.id).collect();
        let supervisor = StoreSupervisor::new(source, settings.server.clone(), attributes)
            .with_registration(RegistrationTerms {
                at_ms: None,
                lease_ms: settings.leases.lease_ms,
                take_over: settings.take_over,
            });
        match StoreThread::start(supervisor) {
            Ok(thread) => {
                let opened_ms = unix_ms();
                self.open = Some(OpenPlayerStore {
                    store,
                    ledger: LeaseTable::new(settings.leases.clone()),
                    refused_transfers: Vec::new(),
                    persistent: kept,
                    unregistered: BTreeSet::new(),
                    thread: Mutex::new(thread),
                    reply_mode: settings.reply_mode,
                    opened_ms,
                    watch: ReplyWatch::new(opened_ms),
                    clock: Stopwatch::start(),
                    is_failing: false,
                    remote: RemotePlayers::new(settings),
                });
            }
            Err(error) => error!(%error, "store thread failed to start: players will not be saved"),
        }
    }
}

/// An opened store.
#[derive(MemoryUse)]
pub(super) struct OpenPlayerStore {
    /// The name of the store, for the log.
    pub store: String,
    pub ledger: LeaseTable,
    /// Events of refused transfers, to be written at the end of the tick.
    pub refused_transfers: Vec<LeaseEvent>,
    /// The attributes that the store was opened with.
    persistent: BTreeSet<u16>,
    /// Attributes that were registered after the store was opened.
    unregistered: BTreeSet<u16>,
    /// The lock is never contended: only one thread has the resource, and the lock makes it `Sync`.
    #[memory(skip)]
    thread: Mutex<StoreThread>,
    reply_mode: StoreReplyMode,
    opened_ms: u64,
    clock: Stopwatch,
    watch: ReplyWatch,
    /// Whether the last request to the store failed, or is not answered for long.
    is_failing: bool,
    pub remote: RemotePlayers,
}

impl OpenPlayerStore {
    /// Whether the store knows an attribute; logs each unknown one once.
    pub fn has_attribute(&mut self, attribute: u16) -> bool {
        let is_kept = self.persistent.contains(&attribute);
        if !is_kept && self.unregistered.insert(attribute) {
            error!(
                attribute,
                "attribute not saved: registered after the store was opened; register it before"
            );
        }
        is_kept
    }

    /// The time for this server's leases and timeouts, in milliseconds: monotonic clock, or simulated time in a deterministic run.
    /// Other servers use the clock of the store.
    pub fn now_ms(&self, simulated: Duration) -> u64 {
        let elapsed = match self.reply_mode {
            StoreReplyMode::WhenReady => self.clock.elapsed(),
            StoreReplyMode::NextTick => simulated,
        };
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.opened_ms.saturating_add(elapsed_ms)
    }

    /// Takes the available replies; in a deterministic run waits for the replies to all requests.
    pub fn receive_replies(&mut self, now_ms: u64, events: &mut Vec<LeaseEvent>) {
        let waits = self.reply_mode == StoreReplyMode::NextTick;
        loop {
            let is_awaited = waits && !self.is_failing && self.has_pending_requests();
            let Some(report) = self.next_reply(if is_awaited {
                REPLY_TIMEOUT
            } else {
                Duration::ZERO
            }) else {
                // A store that does not reply is not awaited again until it does.
                self.is_failing |= is_awaited;
                break;
            };
            self.on_reply(report, now_ms, events);
        }
        // In a deterministic run no request depends on time.
        if !waits {
            self.watch_store(now_ms);
        }
    }

    /// Notices a store that hangs. If no request is pending, it sends a lookup of no players.
    fn watch_store(&mut self, now_ms: u64) {
        let is_pending = self.has_pending_requests();
        self.is_failing |= self.watch.is_stalled(now_ms, is_pending);
        if self.watch.start_probe(now_ms, is_pending) {
            let players = Vec::new();
            self.send_request(StoreRequest::Lookup { players }, now_ms, &mut Vec::new());
        }
    }

    /// Takes a reply that arrives within a time; returns whether one did.
    pub fn receive_within(
        &mut self,
        time: Duration,
        now_ms: u64,
        events: &mut Vec<LeaseEvent>,
    ) -> bool {
        let report = self.next_reply(time);
        let came = report.is_some();
        if let Some(report) = report {
            self.on_reply(report, now_ms, events);
        }
        came
    }

    fn has_pending_requests(&self) -> bool {
        if self.remote.cache.is_request_pending() {
            return true;
        }
        self.ledger.has_pending_request()
    }

    /// Whether all messages to other servers were sent.
    pub fn is_published(&self) -> bool {
        if !self.remote.is_published() {
            return false;
        }
        true
    }

    /// Requests from the store the players of lookups, and those that other servers must be notified of. After the saves of a tick,
    /// so that the read includes them.
    pub fn request_lookups(&mut self, now_ms: u64) {
        let players = self.remote.next_request(now_ms, &self.ledger);
        if !players.is_empty() {
            self.send_request(StoreRequest::Lookup { players }, now_ms, &mut Vec::new());
        }
    }

    fn on_reply(&mut self, report: StoreReply, now_ms: u64, events: &mut Vec<LeaseEvent>) {
        let is_of_probe = matches!(&report, StoreReply::LookedUp(players, _) if players.is_empty());
        self.watch.on_reply(now_ms, is_of_probe);
        if let StoreReply::LookedUp(players, found) = report {
            self.is_failing = found.is_err();
            if is_of_probe {
                return;
            }
            let Self {
                remote: elsewhere,
                ledger,
                ..
            } = self;
            elsewhere.on_reply(&players, found, now_ms, ledger);
            return;
        }
        let mut failed = false;
        let first = events.len();
        self.ledger.receive(report, now_ms, |event| {
            failed |= matches!(event, LeaseEvent::StoreFailed(_));
            events.push(event);
        });
        for event in &events[first..] {
            self.remote.on_event(event, now_ms, &self.ledger);
        }
        self.is_failing = failed;
    }

    fn next_reply(&mut self, time: Duration) -> Option<StoreReply> {
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if time.is_zero() {
            thread.try_recv()
        } else {
            thread.recv_timeout(time)
        }
    }

    /// Requests leases from the store, and renews them.
    pub fn request_leases(&mut self, now_ms: u64, events: &mut Vec<LeaseEvent>) {
        let mut orders = Vec::new();
        self.ledger
            .next_requests(now_ms, |order| orders.push(order));
        orders
            .into_iter()
            .for_each(|order| self.send_request(order, now_ms, events));
    }

    /// Requests that the store saves all unsaved changes.
    pub fn request_save(&mut self, now_ms: u64, events: &mut Vec<LeaseEvent>) {
        if let Some(order) = self.ledger.next_save_request() {
            self.send_request(order, now_ms, events);
        }
    }

    fn send_request(&mut self, order: StoreRequest, now_ms: u64, events: &mut Vec<LeaseEvent>) {
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Err(order) = thread.send(order) {
            // The thread survives panics, so this is a bug of this program. Unsaved changes wait until the players are logged out, since
            // no lease is renewed.
            error!("store thread ended: players will not be saved and are logged out");
            let failed = order.into_failure(thread_ended_error());
            let report = failed.unwrap_or_else(|| StoreReply::SaveFailed(thread_ended_error()));
            self.on_reply(report, now_ms, events);
        }
    }
}
