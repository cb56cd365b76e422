//! What a store of players must do.

use std::fmt;

use throng_core::ids::PlayerId;

use super::error::StoreError;
use super::lease::{LeaseClaim, LeaseRefused, ServerId};
use super::record::{PlayerRecord, StoredAttribute};
use super::registration::RegistrationTerms;
use super::save_batch::SaveBatch;

/// The terms of leases. Their times are those of the clock of the store, which all servers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// The time, for tests; `None`: by the clock of the store.
    pub at_ms: Option<u64>,
    /// How long the leases are to last, in milliseconds.
    pub lease_ms: u64,
    /// How long a lease has to be expired before another server gets it, in milliseconds.
    pub grace_ms: u64,
}

impl ClaimTerms {
    /// A process claims a lease on these terms; `now_ms` is the time by the clock of the store.
    pub(super) const fn claim_by(self, by: &ServerId, now_ms: u64) -> LeaseClaim<'_> {
        LeaseClaim {
            by,
            now_ms,
            lease_ms: self.lease_ms,
            grace_ms: self.grace_ms,
        }
    }
}

/// What a claim came to: a lease with the player's record, or the word of who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimResult {
    /// The player is this server's.
    Granted {
        /// The fencing token for all that is written of it.
        epoch: u64,
        /// What is kept of it.
        record: PlayerRecord,
    },
    /// The player is another's.
    Refused {
        /// Who was asked for.
        player: PlayerId,
        /// Whose it is.
        refusal: LeaseRefused,
    },
    /// What is kept of the player cannot be read, or its row is locked ([`StoreErrorKind::Locked`](super::StoreErrorKind::Locked)):
    /// nothing changes.
    Unreadable {
        /// Who was asked for.
        player: PlayerId,
        /// What is wrong with it.
        error: StoreError,
    },
}

/// What a look at a player found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupResult {
    /// What is kept of it.
    Found(PlayerRecord),
    /// Nothing was ever saved of it.
    Missing,
    /// What is kept of it cannot be read.
    Unreadable(StoreError),
}

impl LookupResult {
    /// The record, if there is one that can be read.
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
    /// Players whose lease is another server's, or nobody's.
    pub lost: Vec<PlayerId>,
    /// Players whose row somebody else has locked: the lease is this server's still, and lasts as long as before.
    pub skipped: Vec<PlayerId>,
}

impl Renewal {
    /// All are extended but these, which are lost.
    #[must_use]
    pub const fn lost(lost: Vec<PlayerId>) -> Self {
        let skipped = Vec::new();
        Self { lost, skipped }
    }
}

/// What became of a [`SaveBatch`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveOutcome {
    /// Players of whom nothing was saved, ascending: somebody else has their lease, or that of one who is tied to them; or it
    /// cannot be kept.
    pub refused: Vec<PlayerId>,
    /// Why what was to be saved of some of them cannot be kept, by one error for all who are tied to each other.
    pub errors: Vec<(PlayerId, StoreError)>,
    /// The revision that each player has now who was saved, in the order of the batch.
    pub revisions: Vec<(PlayerId, u64)>,
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl SaveOutcome {
    /// What became of each save of a batch: refused, or saved, of which the player has this revision now.
    pub(super) fn of(
        batch: &SaveBatch,
        is_refused: &[bool],
        revision: impl Fn(PlayerId) -> u64,
        faults: Vec<(PlayerId, StoreError)>,
    ) -> Self {
        let mut outcome = Self {
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
        outcome
    }
}

/// A store of players. It is used by one thread, which may wait for it; a tick never does. Every call is one transaction: it is
/// done wholly or not at all, also when the process is killed in the middle of it, and what [`save`](Self::save) answered is on
/// disk. [`check_store`](super::conformance::check_store) holds any store to that.
pub trait StoreBackend: Send {
    /// Learns which attributes there are. Called once, before anything else.
    ///
    /// # Errors
    /// [`StoreErrorKind::AttributeMismatch`](super::StoreErrorKind::AttributeMismatch) when one has another name or encoding than before.
    fn register_attributes(&mut self, attributes: &[StoredAttribute]) -> Result<(), StoreError>;

    /// Enters a process on the list: gives a number that no other process of that name has or had, higher than theirs. What
    /// leases those have are given back.
    ///
    /// # Errors
    /// [`StoreErrorKind::NameInUse`](super::StoreErrorKind::NameInUse) when the last process of that name was seen within the time of
    /// its leases (it enrolled, saved or renewed), did not [sign off](Self::unregister_server), and is not to be taken over. Otherwise
    /// [`StoreError`], as of all that follows: nothing is known of what was done then.
    fn register_server(
        &mut self,
        name: &str,
        terms: RegistrationTerms,
    ) -> Result<ServerId, StoreError>;

    /// A process ends: the next one of its name is not refused. Its leases stay as they are.
    ///
    /// # Errors
    /// [`StoreError`].
    fn unregister_server(&mut self, by: &ServerId) -> Result<(), StoreError>;

    /// Claims the leases of players, and reads what is kept of those whose it gets. Answers in the order of `players`, each
    /// of which is there once.
    ///
    /// # Errors
    /// [`StoreErrorKind::NameInUse`](super::StoreErrorKind::NameInUse) when a later process has taken the name over, or another
    /// [`StoreError`].
    fn claim(
        &mut self,
        by: &ServerId,
        players: &[PlayerId],
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimResult>, StoreError>;

    /// Saves what a batch says of every player whose lease has the epoch that it says, those who are tied all or none; then
    /// gives leases back. Whoever's values cannot be kept is refused like one without a lease, and keeps nobody else from being saved. A batch whose number is that of the server's last one was done before: nothing changes, and the
    /// outcome is the same as then, but for faults, which are not told again, and revisions, which are those of now.
    /// `at_ms` is the time, for tests; `None`: by the clock of the store.
    ///
    /// # Errors
    /// [`StoreError`].
    fn save(
        &mut self,
        by: &ServerId,
        batch: &SaveBatch,
        at_ms: Option<u64>,
    ) -> Result<SaveOutcome, StoreError>;

    /// Extends leases, and says that the process is alive: also without any leases.
    ///
    /// # Errors
    /// [`StoreError`].
    fn renew(
        &mut self,
        by: &ServerId,
        leases: &[(PlayerId, u64)],
        terms: ClaimTerms,
    ) -> Result<Renewal, StoreError>;

    /// Reads what is kept of players, whoever has their leases. Answers in the order of `players`, each of which is there once.
    /// A record that cannot be read keeps no other from being read.
    ///
    /// # Errors
    /// [`StoreError`].
    fn lookup(&mut self, players: &[PlayerId]) -> Result<Vec<LookupResult>, StoreError>;
}

/// Opens a store, as often as that is needed: when a server starts, and after the store failed.
pub trait StoreFactory: Send + Sync + fmt::Debug {
    /// Opens it, and brings its schema up to date.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be reached or is none.
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError>;
}

impl StoreFactory for Box<dyn StoreFactory> {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        (**self).open()
    }
}
