//! Works off what a server asks of its store, and opens the store again when it fails.
//!
//! ```text
//! StoreRequest ──▶ [`StoreSupervisor::work`] ──▶ StoreReply
//!                     └─ on an error: the store is closed, and opened again after a pause that doubles; not for a lock
//! ```
//! One attempt a call, without waiting; who waits between attempts is the thread around it, or a test that winds the clock.

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

/// The pauses between attempts to open a store that failed, in milliseconds: the first, and the longest.
const REOPEN_PAUSE_MS: (u64, u64) = (100, 5_000);

/// What is asked of a store. Times are those of [`ClaimTerms`].
#[derive(Clone, Debug)]
pub enum StoreRequest {
    /// The leases and records of players.
    Claim {
        /// Whose, each once.
        players: Vec<PlayerId>,
        /// Under which terms.
        terms: ClaimTerms,
    },
    /// To save. It is tried again until it is done.
    Save {
        /// What.
        batch: Arc<SaveBatch>,
    },
    /// To let leases last longer.
    Renew {
        /// Which, with their epochs.
        leases: Vec<(PlayerId, u64)>,
        /// Under which terms.
        terms: ClaimTerms,
    },
    /// The records of players, whoever has their leases.
    Lookup {
        /// Whose, each once.
        players: Vec<PlayerId>,
    },
}

/// The answer to an order of the same name. An order that failed was done or not, and the answer is the error.
#[derive(Clone, Debug)]
pub enum StoreReply {
    /// Of each player what its claim came to.
    Claimed(Vec<PlayerId>, Result<Vec<ClaimResult>, StoreError>),
    /// What became of a batch: never an error, since saves are tried until they are done.
    Saved(SaveOutcome),
    /// The leases that were not extended.
    Renewed(Result<Renewal, StoreError>),
    /// Of each player what is kept of it.
    LookedUp(Vec<PlayerId>, Result<Vec<LookupResult>, StoreError>),
    /// A save failed, and is tried again.
    SaveFailed(StoreError),
}

impl StoreRequest {
    /// The answer when the order cannot be done; `None` for a save, which is tried again.
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

/// Keeps a store open.
pub struct StoreSupervisor {
    source: Box<dyn StoreFactory>,
    attributes: Vec<StoredAttribute>,
    server: String,
    registration: RegistrationTerms,
    /// Which process of that name this is, once a store has said so.
    id: Option<ServerId>,
    store: Option<Box<dyn StoreBackend>>,
    pause_ms: u64,
    /// Before this time the store is not opened again, and the last error stands.
    reopen_at_ms: u64,
    last_error: Option<StoreError>,
}

impl StoreSupervisor {
    /// For a server of this name, whose players have these attributes. Nothing is opened before there is something to do.
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

    /// With other terms than the usual ones.
    #[must_use]
    pub const fn with_registration(mut self, terms: RegistrationTerms) -> Self {
        self.registration = terms;
        self
    }

    /// Closes the store, which is opened again for the next order. For after a panic.
    pub fn close(&mut self) {
        // What panicked may do so again when it is dropped.
        let store = self.store.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(store))));
    }

    /// The process ends: the next one of its name need not wait. Nothing is opened for that.
    pub fn unregister(&mut self) {
        let (Some(store), Some(id)) = (&mut self.store, &self.id) else {
            return;
        };
        let signed_off = catch_unwind(AssertUnwindSafe(|| store.unregister_server(id)));
        if let Ok(Err(error)) = signed_off {
            warn!(server = self.server, %error, "server name not released: it is free after the lease time");
        }
    }

    /// Does what is asked for, once; `now_ms` is any clock that goes forwards.
    ///
    /// # Errors
    /// What the store failed of. It is opened again at a later call.
    pub fn execute(&mut self, order: &StoreRequest, now_ms: u64) -> Result<StoreReply, StoreError> {
        if let Some(error) = &self.last_error
            && now_ms < self.reopen_at_ms
        {
            return Err(error.clone());
        }
        // A panic of a store is a mistake of its own, and must not end the saving of all others.
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
                // Told once for each thing that goes wrong, and not at every attempt.
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
                    // Nothing is wrong with the connection, and other orders may succeed.
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
    use super::*;
    use crate::memory_store::MemoryDisk;

    const LOOK: StoreRequest = StoreRequest::Lookup {
        players: Vec::new(),
    };

    /// A process of the name `a` that starts at a time.
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
}
