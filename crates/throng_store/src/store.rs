//! The contract of a player store.

use std::fmt;

use throng_core::ids::PlayerId;

use super::error::StoreError;
use super::lease::{LeaseClaim, LeaseRefused, ServerId};
use super::record::{PlayerRecord, StoredAttribute};
use super::registration::RegistrationTerms;
use super::save_batch::SaveBatch;

/// The terms of leases. Times are those of the clock of the store, which all servers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// The time, for tests; `None`: by the clock of the store.
    pub at_ms: Option<u64>,
    /// Duration of the leases, in milliseconds.
    pub lease_ms: u64,
    /// How long a lease must be expired before another server gets it, in milliseconds.
    pub grace_ms: u64,
}

impl ClaimTerms {
    /// The claim of a process on these terms; `now_ms` is the time of the clock of the store.
    pub(super) const fn claim_by(self, by: &ServerId, now_ms: u64) -> LeaseClaim<'_> {
        LeaseClaim {
            by,
            now_ms,
            lease_ms: self.lease_ms,
            grace_ms: self.grace_ms,
        }
    }
}

/// The result of a claim: a lease with the player's record, or the reason of the refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimResult {
    /// This server holds the lease.
    Granted {
        /// The fencing token for all writes of the player.
        epoch: u64,
        /// The stored record.
        record: PlayerRecord,
    },
    /// Another server holds the lease.
    Refused {
        /// The requested player.
        player: PlayerId,
        /// The holder.
        refusal: LeaseRefused,
    },
    /// The stored record cannot be read, or its row is locked ([`StoreErrorKind::Locked`](super::StoreErrorKind::Locked)): nothing changes.
    Unreadable {
        /// The requested player.
        player: PlayerId,
        /// The error of the record.
        error: StoreError,
    },
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupResult {
    /// The stored record.
    Found(PlayerRecord),
    /// The player was never saved.
    Missing,
    /// The stored record cannot be read.
    Unreadable(StoreError),
}

impl LookupResult {
    /// The record, if it exists and can be read.
    #[must_use]
    pub fn into_record(self) -> Option<PlayerRecord> {
        match self {
            Self::Found(record) => Some(record),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }
}

/// The result of a renewal: the leases that were not extended. Both lists are ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// Players whose lease belongs to another server, or to none.
    pub lost: Vec<PlayerId>,
    /// Players whose row another transaction has locked: this server still holds the lease, with its old expiry.
    pub skipped: Vec<PlayerId>,
}

impl Renewal {
    /// All leases are extended except these, which are lost.
    #[must_use]
    pub const fn lost(lost: Vec<PlayerId>) -> Self {
        let skipped = Vec::new();
        Self { lost, skipped }
    }
}

/// The outcome of a [`SaveBatch`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveOutcome {
    /// Players that were not saved, in ascending order: another server has their lease, or that of a player joined with them, or the store
    /// rejects a value.
    pub refused: Vec<PlayerId>,
    /// Of these, the players whose own lease another server has, or nobody; in ascending order.
    pub taken: Vec<PlayerId>,
    /// Why the store rejects some of them: one error per group of joined players.
    pub errors: Vec<(PlayerId, StoreError)>,
    /// The new revision of each saved player, in the order of the batch.
    pub revisions: Vec<(PlayerId, u64)>,
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl SaveOutcome {
    /// The outcome of each save of a batch: refused, or saved with this revision.
    pub(super) fn of(
        batch: &SaveBatch,
        is_refused: &[bool],
        mut taken: Vec<PlayerId>,
        revision: impl Fn(PlayerId) -> u64,
        faults: Vec<(PlayerId, StoreError)>,
    ) -> Self {
        taken.sort_unstable();
        let mut outcome = Self {
            taken,
            errors: faults,
            ..Self::default()
        };
        for (save, &is_refused) in batch.saves().iter().zip(is_refused) {
            if is_refused {
                outcome.refused.push(save.player);
            } else {
                let revision = revision(save.player);
                outcome.revisions.push((save.player, revision));
            }
        }
        outcome.refused.sort_unstable();
        // A repeated batch has the refusals of its first execution; a lease may have been taken since.
        let Self { refused, taken, .. } = &mut outcome;
        taken.retain(|player| refused.binary_search(player).is_ok());
        outcome
    }
}

/// A store of players. One thread uses it and may wait for it; a tick never does. Every call is one transaction: it is executed completely
/// or not at all, even if the process is killed, and when [`save`](Self::save) returns, the data is on disk.
/// [`check_store`](super::conformance::check_store) tests any store against this contract.
pub trait StoreBackend: Send {
    /// Registers the attributes. Called once, before anything else.
    ///
    /// # Errors
    /// [`StoreErrorKind::AttributeMismatch`](super::StoreErrorKind::AttributeMismatch) if one has another name or encoding than before.
    fn register_attributes(&mut self, attributes: &[StoredAttribute]) -> Result<(), StoreError>;

    /// Registers a process: assigns a number that is higher than those of all earlier processes of that name. The leases of these are
    /// released. A store may forget processes that were neither seen nor saved for
    /// [`SERVER_ENTRY_TTL_MS`](super::SERVER_ENTRY_TTL_MS); then numbers start again at 1.
    ///
    /// # Errors
    /// [`StoreErrorKind::NameInUse`](super::StoreErrorKind::NameInUse) if the last process of that name was seen within the duration of its
    /// leases (it registered, saved or renewed), has not [ended](Self::unregister_server), and is not to be taken over. Otherwise
    /// [`StoreError`], as for all following methods: then it is unknown whether the call was executed.
    /// [`StoreError`], as of all that follows: nothing is known of what was done then.
    fn register_server(
        &mut self,
        name: &str,
        terms: RegistrationTerms,
    ) -> Result<ServerId, StoreError>;

    /// A process ends: the next one of its name is not refused. Its leases do not change.
    ///
    /// # Errors
    /// [`StoreError`].
    fn unregister_server(&mut self, by: &ServerId) -> Result<(), StoreError>;

    /// Claims the leases of players, and reads the records of those that are granted. Results are in the order of `players`, which contains
    /// no duplicates.
    ///
    /// # Errors
    /// [`StoreErrorKind::NameInUse`](super::StoreErrorKind::NameInUse) if a later process has taken over the name, or another
    /// [`StoreError`].
    fn claim(
        &mut self,
        by: &ServerId,
        players: &[PlayerId],
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimResult>, StoreError>;

    /// Saves every player of a batch whose lease has the epoch in the batch, joined players all or none; then releases leases. A player
    /// with a rejected value is refused like one without a lease, and does not prevent the others from being saved. A batch with the number
    /// of the server's last batch was executed before: nothing changes, and the outcome is the same, except for errors, which are not
    /// repeated, and revisions and taken leases, which are the current ones. `at_ms` is the time, for tests; `None`: by the clock of the store.
    ///
    /// # Errors
    /// [`StoreError`].
    fn save(
        &mut self,
        by: &ServerId,
        batch: &SaveBatch,
        at_ms: Option<u64>,
    ) -> Result<SaveOutcome, StoreError>;

    /// Extends leases, and marks the process as alive, even without leases.
    ///
    /// # Errors
    /// [`StoreError`].
    fn renew(
        &mut self,
        by: &ServerId,
        leases: &[(PlayerId, u64)],
        terms: ClaimTerms,
    ) -> Result<Renewal, StoreError>;

    /// Reads the records of players, without regard to leases. Results are in the order of `players`, which contains no duplicates. A
    /// record that cannot be read does not affect the others.
    ///
    /// # Errors
    /// [`StoreError`].
    fn lookup(&mut self, players: &[PlayerId]) -> Result<Vec<LookupResult>, StoreError>;
}

/// Opens a store: when a server starts, and after the store has failed.
pub trait StoreFactory: Send + Sync + fmt::Debug {
    /// Opens the store, and migrates its schema.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be reached or is no store.
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError>;
}

impl StoreFactory for Box<dyn StoreFactory> {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        (**self).open()
    }
}
