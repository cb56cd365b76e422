//! The directory's resource.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use tracing::error;

use super::messages::Transfer;
use super::settings::{DirectorySettings, StoreAnswers};
use crate::directory::ledger::{Ledger, LedgerEvent};
use crate::directory::record::StoredAttribute;
use crate::directory::store::StoreSource;
use crate::directory::store_thread::StoreThread;
use crate::directory::supervisor::{StoreOrder, StoreReport, StoreSupervisor};
use crate::session::{LoggedIn, LoggedOut};
use crate::sim::clock::{Stopwatch, unix_ms};
use crate::sync::SaveRequest;
use crate::world::PlayerId;

/// How long a deterministic run waits for an answer before it counts as none.
const WAIT: Duration = Duration::from_secs(30);

/// The way to the store.
#[derive(Resource, Default)]
pub struct Directory {
    source: Option<Box<dyn StoreSource>>,
    pub(super) open: Option<OpenDirectory>,
    pub(super) logins: MessageCursor<LoggedIn>,
    pub(super) logouts: MessageCursor<LoggedOut>,
    pub(super) transfers: MessageCursor<Transfer>,
    pub(super) saves: MessageCursor<SaveRequest>,
}

impl Directory {
    /// Keeps players in a store from the next tick on. The store is opened on its own thread; that it cannot be is logged, and
    /// told to whoever logs in. To know at once, open the source first.
    pub fn open(&mut self, source: impl StoreSource + 'static) {
        self.source = Some(Box::new(source));
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

    /// How many players wait to be saved.
    #[must_use]
    pub fn unsaved(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.ledger.unsaved())
    }

    /// Starts the thread, if there is a store that was not started yet.
    pub(super) fn start(
        &mut self,
        settings: &DirectorySettings,
        attributes: impl FnOnce() -> Vec<StoredAttribute>,
    ) {
        let Some(source) = self.source.take() else {
            return;
        };
        let supervisor = StoreSupervisor::new(source, settings.server.clone(), attributes());
        match StoreThread::start(supervisor) {
            Ok(thread) => {
                self.open = Some(OpenDirectory {
                    ledger: Ledger::new(settings.ledger.clone()),
                    thread: Mutex::new(thread),
                    answers: settings.answers,
                    opened_ms: unix_ms(),
                    clock: Stopwatch::start(),
                    is_failing: false,
                });
            }
            Err(error) => error!(%error, "the store has no thread: nobody is kept"),
        }
    }
}

/// A store that is used.
pub(super) struct OpenDirectory {
    pub ledger: Ledger,
    /// The lock is never waited for: only one thread has the resource, and this says so to the compiler.
    thread: Mutex<StoreThread>,
    answers: StoreAnswers,
    opened_ms: u64,
    clock: Stopwatch,
    /// Whether the store failed last.
    is_failing: bool,
}

impl OpenDirectory {
    /// The time by which leases are held, in Unix milliseconds: in a deterministic run that of the simulation.
    pub fn now_ms(&self, simulated: Duration) -> u64 {
        let elapsed = match self.answers {
            StoreAnswers::WhenReady => self.clock.elapsed(),
            StoreAnswers::NextTick => simulated,
        };
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.opened_ms.saturating_add(elapsed_ms)
    }

    /// Takes what the store answered by now, and all that it was asked if the run is to be deterministic.
    pub fn take_reports(&mut self, now_ms: u64, events: &mut Vec<LedgerEvent>) {
        let waits = self.answers == StoreAnswers::NextTick;
        loop {
            let is_awaited = waits && !self.is_failing && self.ledger.is_under_way();
            let Some(report) = self.next(if is_awaited { WAIT } else { Duration::ZERO }) else {
                // One that does not answer is not waited for again before it does.
                self.is_failing |= is_awaited;
                return;
            };
            self.take(report, now_ms, events);
        }
    }

    /// Takes an answer that comes within a time; whether one did.
    pub fn take_within(
        &mut self,
        time: Duration,
        now_ms: u64,
        events: &mut Vec<LedgerEvent>,
    ) -> bool {
        let report = self.next(time);
        let came = report.is_some();
        if let Some(report) = report {
            self.take(report, now_ms, events);
        }
        came
    }

    fn take(&mut self, report: StoreReport, now_ms: u64, events: &mut Vec<LedgerEvent>) {
        let mut failed = false;
        self.ledger.take(report, now_ms, |event| {
            failed |= matches!(event, LedgerEvent::Trouble(_));
            events.push(event);
        });
        self.is_failing = failed;
    }

    fn next(&mut self, time: Duration) -> Option<StoreReport> {
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if time.is_zero() {
            thread.report()
        } else {
            thread.report_within(time)
        }
    }

    /// Asks the store for leases, and to let them last.
    pub fn order(&mut self, now_ms: u64, events: &mut Vec<LedgerEvent>) {
        let mut orders = Vec::new();
        self.ledger.orders(now_ms, |order| orders.push(order));
        orders
            .into_iter()
            .for_each(|order| self.hand_over(order, events));
    }

    /// Asks the store to save all that is not saved.
    pub fn order_save(&mut self, now_ms: u64, events: &mut Vec<LedgerEvent>) {
        if let Some(order) = self.ledger.save_order(now_ms) {
            self.hand_over(order, events);
        }
    }

    fn hand_over(&mut self, order: StoreOrder, events: &mut Vec<LedgerEvent>) {
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Err(order) = thread.order(order) {
            error!("the store's thread has ended: nothing more is saved");
            self.ledger.undelivered(order, |event| events.push(event));
        }
    }
}
