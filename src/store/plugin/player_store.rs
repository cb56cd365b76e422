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
use super::settings::{PlayerStoreSettings, StoreReplyMode};
use crate::memory::MemoryUse;
use crate::session::{LoggedIn, LoggedOut};
use crate::sim::clock::{Stopwatch, unix_ms};
use crate::sync::SaveRequest;
use crate::world::PlayerId;

/// How long a deterministic run waits for an answer before it counts as none.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// The way to the store.
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
    /// Keeps players in a store from the next tick on. The store is opened on its own thread; that it cannot be is logged, and
    /// told to whoever logs in. To know at once, open the source first.
    ///
    /// # Errors
    /// [`PlayerStoreError::AlreadyOpen`] when there is one: what it has not saved must not be forgotten.
    pub fn open(&mut self, source: impl StoreFactory + 'static) -> Result<(), PlayerStoreError> {
        if self.has_store() {
            return Err(PlayerStoreError::AlreadyOpen);
        }
        self.source = Some(Box::new(source));
        Ok(())
    }

    /// Whether there is a store, open or not yet.
    #[must_use]
    pub const fn has_store(&self) -> bool {
        self.source.is_some() || self.open.is_some()
    }

    /// Whether a player is here: its record came, it did not leave, and its lease is this server's as far as is known.
    #[must_use]
    pub fn is_live(&self, player: PlayerId) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.ledger.is_live(player))
    }

    /// How many players are here. O(players).
    #[must_use]
    pub fn live_count(&self) -> usize {
        let open = self.open.as_ref();
        open.map_or(0, |open| open.ledger.live_players().count())
    }

    /// Joins the other servers of the same store: from the next tick on they tell each other what they save of players that they
    /// know of. Until the directory is [closed](super::close_player_store).
    pub fn join(&mut self, peers: impl Peers + 'static) {
        self.peers = Some(Box::new(peers));
    }

    /// What went between this server and others; `None` when it did not join any, or no store is open.
    #[must_use]
    pub fn peer_stats(&self) -> Option<PeerStats> {
        let followers = self.open.as_ref()?.remote.subscribers.as_ref();
        followers.map(SaveSubscribers::stats)
    }

    /// What became of looks at players elsewhere; `None` without a store that is open.
    #[must_use]
    pub fn cache_stats(&self) -> Option<CacheStats> {
        let open = self.open.as_ref();
        open.map(|open| open.remote.cache.stats())
    }

    /// How many players wait to be saved.
    #[must_use]
    pub fn unsaved(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.ledger.unsaved())
    }

    /// Whether the store failed to answer its last request: logins are refused then, and saves wait. Every server sends a request at
    /// least once per [`renew_after_ms`](throng_store::LeaseTableSettings::renew_after_ms), also without players. `false` without a store.
    #[must_use]
    pub fn is_store_failing(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_failing)
    }

    /// Tells other servers the last of what they are to be told, and ends the store's thread.
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
                self.open = Some(OpenPlayerStore {
                    store,
                    ledger: LeaseTable::new(settings.leases.clone()),
                    refused_transfers: Vec::new(),
                    persistent: kept,
                    unregistered: BTreeSet::new(),
                    thread: Mutex::new(thread),
                    reply_mode: settings.reply_mode,
                    opened_ms: unix_ms(),
                    clock: Stopwatch::start(),
                    is_failing: false,
                    remote: RemotePlayers::new(settings),
                });
            }
            Err(error) => error!(%error, "store thread failed to start: players will not be saved"),
        }
    }
}

/// A store that is used.
#[derive(MemoryUse)]
pub(super) struct OpenPlayerStore {
    /// Which it is, for who reads the log.
    pub store: String,
    pub ledger: LeaseTable,
    /// What came of deals that were refused, and is emitted at the end of the tick.
    pub refused_transfers: Vec<LeaseEvent>,
    /// The attributes that the store was told of.
    persistent: BTreeSet<u16>,
    /// Those that were registered too late for that.
    unregistered: BTreeSet<u16>,
    /// The lock is never waited for: only one thread has the resource, and this says so to the compiler.
    #[memory(skip)]
    thread: Mutex<StoreThread>,
    reply_mode: StoreReplyMode,
    opened_ms: u64,
    clock: Stopwatch,
    /// Whether the store failed last.
    is_failing: bool,
    pub remote: RemotePlayers,
}

impl OpenPlayerStore {
    /// Whether the store knows an attribute; tells once of each that it does not.
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

    /// The time by which this server counts its own leases and waits, in milliseconds: it runs as the monotonic clock does, or in a
    /// deterministic run as the simulation. What other servers go by is the clock of the store.
    pub fn now_ms(&self, simulated: Duration) -> u64 {
        let elapsed = match self.reply_mode {
            StoreReplyMode::WhenReady => self.clock.elapsed(),
            StoreReplyMode::NextTick => simulated,
        };
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.opened_ms.saturating_add(elapsed_ms)
    }

    /// Takes what the store answered by now, and all that it was asked if the run is to be deterministic.
    pub fn receive_replies(&mut self, now_ms: u64, events: &mut Vec<LeaseEvent>) {
        let waits = self.reply_mode == StoreReplyMode::NextTick;
        loop {
            let is_awaited = waits && !self.is_failing && self.has_pending_requests();
            let Some(report) = self.next_reply(if is_awaited {
                REPLY_TIMEOUT
            } else {
                Duration::ZERO
            }) else {
                // One that does not answer is not waited for again before it does.
                self.is_failing |= is_awaited;
                return;
            };
            self.on_reply(report, now_ms, events);
        }
    }

    /// Takes an answer that comes within a time; whether one did.
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

    /// Whether other servers were told all that they are to be.
    pub fn is_published(&self) -> bool {
        if !self.remote.is_published() {
            return false;
        }
        true
    }

    /// Asks the store for players who are looked for, and for those of whom other servers are to be told. Behind the saves of a
    /// tick, so that these are in what is read.
    pub fn request_lookups(&mut self, now_ms: u64) {
        let players = self.remote.next_request(now_ms, &self.ledger);
        if !players.is_empty() {
            self.send_request(StoreRequest::Lookup { players }, now_ms, &mut Vec::new());
        }
    }

    fn on_reply(&mut self, report: StoreReply, now_ms: u64, events: &mut Vec<LeaseEvent>) {
        if let StoreReply::LookedUp(players, found) = report {
            self.is_failing = found.is_err();
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

    /// Asks the store for leases, and to let them last.
    pub fn request_leases(&mut self, now_ms: u64, events: &mut Vec<LeaseEvent>) {
        let mut orders = Vec::new();
        self.ledger
            .next_requests(now_ms, |order| orders.push(order));
        orders
            .into_iter()
            .for_each(|order| self.send_request(order, now_ms, events));
    }

    /// Asks the store to save all that is not saved.
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
            // It outlives panics, so that this is a fault of this program. What is to be saved waits until the players are logged
            // out, since no lease is renewed.
            error!("store thread ended: players will not be saved and are logged out");
            let failed = order.into_failure(thread_ended_error());
            let report = failed.unwrap_or_else(|| StoreReply::SaveFailed(thread_ended_error()));
            self.on_reply(report, now_ms, events);
        }
    }
}
