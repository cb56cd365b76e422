//! Executes a server's requests to its store, and reopens the store after an error.
//!
//! ```text
//! StoreRequest ──▶ [`StoreSupervisor::execute`] ──▶ StoreReply
//!                     └─ on an error: the store is closed, and reopened after a pause that doubles; not for a lock
//! ```
//!
//! One attempt per call, without waiting. The thread around it, or a test with its own clock, waits between attempts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use throng_core::ids::PlayerId;
use tracing::{error, info, warn};

use super::error::{StoreError, StoreErrorKind};
use super::lease::ServerId;
use super::record::StoredAttribute;
use super::registration::RegistrationTerms;
use super::save_batch::SaveBatch;
use super::store::{
    ClaimResult, ClaimTerms, LookupResult, Renewal, SaveOutcome, StoreBackend, StoreFactory,
};

/// Pauses between attempts to reopen a failed store, in milliseconds: the first, and the longest.
const REOPEN_PAUSE_MS: (u64, u64) = (100, 5_000);

/// A request to a store. Times are those of [`ClaimTerms`].
#[derive(Clone, Debug)]
pub enum StoreRequest {
    /// Claims leases and reads records.
    Claim {
        /// The players, without duplicates.
        players: Vec<PlayerId>,
        /// The terms.
        terms: ClaimTerms,
    },
    /// Saves a batch. Retried until it is done.
    Save {
        /// The batch.
        batch: Arc<SaveBatch>,
    },
    /// Renews leases.
    Renew {
        /// The leases, with their epochs.
        leases: Vec<(PlayerId, u64)>,
        /// The terms.
        terms: ClaimTerms,
    },
    /// Reads records, without regard to leases.
    Lookup {
        /// The players, without duplicates.
        players: Vec<PlayerId>,
    },
}

/// The reply to a request of the same name. A failed request was executed or not; its reply is the error.
#[derive(Clone, Debug)]
pub enum StoreReply {
    /// The result of the claim of each player.
    Claimed(Vec<PlayerId>, Result<Vec<ClaimResult>, StoreError>),
    /// The outcome of a batch: never an error, because saves are retried until they are done.
    Saved(SaveOutcome),
    /// The leases that were not extended.
    Renewed(Result<Renewal, StoreError>),
    /// The stored record of each player.
    LookedUp(Vec<PlayerId>, Result<Vec<LookupResult>, StoreError>),
    /// A save has failed, and will be retried.
    SaveFailed(StoreError),
}

impl StoreRequest {
    /// The reply to a request that fails; `None` for a save, which is retried.
    #[must_use]
    pub fn into_failure(self, error: StoreError) -> Option<StoreReply> {
        Some(match self {
            Self::Claim { players, .. } => StoreReply::Claimed(players, Err(error)),
            Self::Renew { .. } => StoreReply::Renewed(Err(error)),
            Self::Lookup { players } => StoreReply::LookedUp(players, Err(error)),
            Self::Save { .. } => return None,
        })
    }
}

/// Keeps a store open, and reopens it after errors.
pub struct StoreSupervisor {
    source: Box<dyn StoreFactory>,
    attributes: Vec<StoredAttribute>,
    server: String,
    registration: RegistrationTerms,
    /// The registered process; `None` before the store has assigned a number.
    id: Option<ServerId>,
    store: Option<Box<dyn StoreBackend>>,
    pause_ms: u64,
    /// Before this time the store is not reopened, and calls return the last error.
    reopen_at_ms: u64,
    last_error: Option<StoreError>,
}

impl StoreSupervisor {
    /// For a server with this name and these attributes. The store is opened when it is needed.
    #[must_use]
    pub fn new(
        source: Box<dyn StoreFactory>,
        server: String,
        attributes: Vec<StoredAttribute>,
    ) -> Self {
        Self {
            source,
            attributes,
            server,
            registration: RegistrationTerms::default(),
            id: None,
            store: None,
            pause_ms: REOPEN_PAUSE_MS.0,
            reopen_at_ms: 0,
            last_error: None,
        }
    }

    /// With other registration terms.
    #[must_use]
    pub const fn with_registration(mut self, terms: RegistrationTerms) -> Self {
        self.registration = terms;
        self
    }

    /// Closes the store; the next request reopens it. For use after a panic.
    pub fn close(&mut self) {
        // A store that has panicked may panic again when it is dropped.
        let store = self.store.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(store))));
    }

    /// The process ends: the next one of its name need not wait. Does not open the store.
    pub fn unregister(&mut self) {
        let (Some(store), Some(id)) = (&mut self.store, &self.id) else {
            return;
        };
        let signed_off = catch_unwind(AssertUnwindSafe(|| store.unregister_server(id)));
        if let Ok(Err(error)) = signed_off {
            warn!(server = self.server, %error, "server name not released: it is free after the lease time");
        }
    }

    /// Executes a request once; `now_ms` is any monotonic clock.
    ///
    /// # Errors
    /// The error of the store. A later call reopens it.
    pub fn execute(&mut self, order: &StoreRequest, now_ms: u64) -> Result<StoreReply, StoreError> {
        if let Some(error) = &self.last_error
            && now_ms < self.reopen_at_ms
        {
            return Err(error.clone());
        }
        // A panic in one store call must not prevent all later saves.
        let attempt = catch_unwind(AssertUnwindSafe(|| self.execute_once(order)));
        match attempt.unwrap_or_else(|_| Err(self.panicked())) {
            Ok(report) => {
                if self.last_error.take().is_some() {
                    info!(store = ?self.source, "store reconnected");
                }
                self.pause_ms = REOPEN_PAUSE_MS.0;
                Ok(report)
            }
            Err(error) => {
                // Logged once per error, not at every attempt.
                if self.last_error.as_ref() != Some(&error) {
                    if error.kind == StoreErrorKind::NameInUse {
                        error!(server = self.server, %error, "server name in use: logins are refused");
                    } else {
                        error!(store = ?self.source, %error, "store failed: saves wait and logins are refused until it recovers");
                    }
                }
                self.last_error = Some(error.clone());
                let is_of_others = matches!(
                    error.kind,
                    StoreErrorKind::Locked | StoreErrorKind::NameInUse
                );
                if is_of_others && self.id.is_some() && self.store.is_some() {
                    // The connection is fine, and other requests may succeed.
                    return Err(error);
                }
                self.store = None;
                self.reopen_at_ms = now_ms.saturating_add(self.pause_ms);
                self.pause_ms = (2 * self.pause_ms).min(REOPEN_PAUSE_MS.1);
                Err(error)
            }
        }
    }

    /// Milliseconds until the next attempt makes sense.
    #[must_use]
    pub fn pause_ms(&self, now_ms: u64) -> u64 {
        self.reopen_at_ms.saturating_sub(now_ms)
    }

    fn panicked(&self) -> StoreError {
        StoreError {
            store: format!("{:?}", self.source),
            kind: StoreErrorKind::Unreachable,
            cause: "the store panicked".to_owned(),
        }
    }

    fn execute_once(&mut self, order: &StoreRequest) -> Result<StoreReply, StoreError> {
        let store = match &mut self.store {
            Some(store) => store,
            none => {
                let mut opened = self.source.open()?;
                opened.register_attributes(&self.attributes)?;
                none.insert(opened)
            }
        };
        let id = match &self.id {
            Some(id) => id,
            None => self
                .id
                .insert(store.register_server(&self.server, self.registration)?),
        };
        Ok(match order {
            StoreRequest::Claim { players, terms } => {
                StoreReply::Claimed(players.clone(), Ok(store.claim(id, players, *terms)?))
            }
            StoreRequest::Save { batch } => StoreReply::Saved(store.save(id, batch, None)?),
            StoreRequest::Renew { leases, terms } => {
                StoreReply::Renewed(Ok(store.renew(id, leases, *terms)?))
            }
            StoreRequest::Lookup { players } => {
                StoreReply::LookedUp(players.clone(), Ok(store.lookup(players)?))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    use super::*;
    use crate::memory_store::MemoryDisk;
    use crate::testing::{HookedSource, SaveCall};

    const LOOK: StoreRequest = StoreRequest::Lookup {
        players: Vec::new(),
    };

    /// A process with the name `a` that starts at a time.
    fn process(disk: &MemoryDisk, at_ms: u64) -> StoreSupervisor {
        let source = Box::new(disk.clone());
        StoreSupervisor::new(source, "a".to_owned(), Vec::new()).with_registration(at(at_ms))
    }

    fn at(at_ms: u64) -> RegistrationTerms {
        RegistrationTerms {
            at_ms: Some(at_ms),
            lease_ms: 60_000,
            take_over: false,
        }
    }

    #[test]
    fn restart_after_a_crash_waits_for_the_lease_time_alone() {
        let disk = MemoryDisk::default();
        assert!(process(&disk, 1_000).execute(&LOOK, 0).is_ok());
        let mut next = process(&disk, 5_000);
        for now_ms in [0, 30_000] {
            let error = next.execute(&LOOK, now_ms).unwrap_err();
            assert_eq!(error.kind, StoreErrorKind::NameInUse, "{error}");
        }
        assert!(
            next.pause_ms(30_000) <= REOPEN_PAUSE_MS.1,
            "it tries again soon"
        );
        let mut next = next.with_registration(at(61_001));
        assert!(next.execute(&LOOK, 90_000).is_ok(), "without an operator");
    }

    #[test]
    fn restart_after_a_stop_does_not_wait() {
        let disk = MemoryDisk::default();
        let mut first = process(&disk, 1_000);
        assert!(first.execute(&LOOK, 0).is_ok());
        first.unregister();
        assert!(process(&disk, 1_001).execute(&LOOK, 0).is_ok());
    }

    /// Opens a store in memory unless `is_down`. Saves find it locked while `is_locked`.
    #[derive(Clone, Debug, Default)]
    struct SwitchedSource {
        disk: MemoryDisk,
        is_down: Arc<AtomicBool>,
        is_locked: Arc<AtomicBool>,
        opened: Arc<AtomicU32>,
    }

    fn error(kind: StoreErrorKind) -> StoreError {
        StoreError {
            store: "switched".to_owned(),
            kind,
            cause: "switched by the test".to_owned(),
        }
    }

    impl StoreFactory for SwitchedSource {
        fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
            self.opened.fetch_add(1, Relaxed);
            if self.is_down.load(Relaxed) {
                return Err(error(StoreErrorKind::Unreachable));
            }
            let is_locked = self.is_locked.clone();
            let hook = move |save: SaveCall| match is_locked.load(Relaxed) {
                true => Err(error(StoreErrorKind::Locked)),
                false => save(),
            };
            HookedSource::new(self.disk.clone(), hook).open()
        }
    }

    fn supervised(source: &SwitchedSource) -> StoreSupervisor {
        StoreSupervisor::new(Box::new(source.clone()), "a".to_owned(), Vec::new())
    }

    #[test]
    fn reopen_pause_doubles_up_to_five_seconds_until_success() {
        let source = SwitchedSource::default();
        source.is_down.store(true, Relaxed);
        let mut supervisor = supervised(&source);
        let mut now_ms = 1_000;
        for (tries, pause_ms) in (1..).zip([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
            assert!(supervisor.execute(&LOOK, now_ms).is_err());
            assert_eq!(supervisor.pause_ms(now_ms), pause_ms);
            now_ms += pause_ms;
            assert!(supervisor.execute(&LOOK, now_ms - 1).is_err());
            assert_eq!(source.opened.load(Relaxed), tries, "not during the pause");
        }
        source.is_down.store(false, Relaxed);
        assert!(supervisor.execute(&LOOK, now_ms).is_ok());
        source.is_down.store(true, Relaxed);
        supervisor.close();
        assert!(supervisor.execute(&LOOK, now_ms).is_err());
        assert_eq!(supervisor.pause_ms(now_ms), 100);
    }

    #[test]
    fn store_locked_by_others_stays_open() {
        let source = SwitchedSource::default();
        let mut supervisor = supervised(&source);
        let save = StoreRequest::Save {
            batch: Arc::default(),
        };
        assert!(supervisor.execute(&save, 0).is_ok());
        source.is_locked.store(true, Relaxed);
        for now_ms in 1..4 {
            let error = supervisor.execute(&save, now_ms).unwrap_err();
            assert_eq!(error.kind, StoreErrorKind::Locked);
            assert_eq!(supervisor.pause_ms(now_ms), 0);
        }
        source.is_locked.store(false, Relaxed);
        assert!(supervisor.execute(&save, 4).is_ok());
        assert_eq!(source.opened.load(Relaxed), 1);
    }
}
