//! Fault injection by seed, around any store: disk and connection errors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::ids::PlayerId;

use super::error::{StoreError, StoreErrorKind};
use super::lease::ServerId;
use super::record::StoredAttribute;
use super::registration::RegistrationTerms;
use super::save_batch::SaveBatch;
use super::store::{
    ClaimResult, ClaimTerms, LookupResult, Renewal, SaveOutcome, StoreBackend, StoreFactory,
};

/// Probability of each fault, as a share of all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultShares {
    /// The call does nothing, and the connection is lost.
    pub failing: f64,
    /// The call is executed, then the connection is lost before the reply: the caller cannot know the outcome.
    pub reply_lost: f64,
    /// The call is executed, and takes up to [`slow_ms`](Self::slow_ms).
    pub slow: f64,
    /// The longest duration of a slow call, in milliseconds of the [`FaultySource::clock`].
    pub slow_ms: u64,
    /// Nothing is saved because the disk is full.
    pub full: f64,
    /// The store cannot be opened.
    pub closed: f64,
}

/// Opens stores whose calls fail by seed. Clones use the same shares, random numbers and clock.
#[derive(Clone, Debug)]
pub struct FaultySource<S> {
    source: S,
    faults: Arc<Mutex<(FaultShares, Pcg64Mcg)>>,
    clock: Arc<AtomicU64>,
}

impl<S: StoreFactory> FaultySource<S> {
    /// Wraps the stores that `source` opens.
    #[must_use]
    pub fn new(source: S, seed: u64, shares: FaultShares) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed);
        Self {
            source,
            faults: Arc::new(Mutex::new((shares, random))),
            clock: Arc::default(),
        }
    }

    /// Changes the probabilities of faults.
    pub fn set_shares(&self, shares: FaultShares) {
        lock(&self.faults).0 = shares;
    }

    /// Total milliseconds of slow calls. Nothing sleeps for them; a model of time adds them.
    #[must_use]
    pub fn clock(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }
}

fn lock(faults: &Mutex<(FaultShares, Pcg64Mcg)>) -> MutexGuard<'_, (FaultShares, Pcg64Mcg)> {
    faults.lock().unwrap_or_else(PoisonError::into_inner)
}

fn store_error(fault: StoreErrorKind, cause: &str) -> StoreError {
    StoreError {
        store: "with faults".to_owned(),
        kind: fault,
        cause: cause.to_owned(),
    }
}

impl<S: StoreFactory> StoreFactory for FaultySource<S> {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        let (shares, random) = &mut *lock(&self.faults);
        if random.random_bool(shares.closed) {
            return Err(store_error(StoreErrorKind::Unreachable, "closed"));
        }
        Ok(Box::new(FaultyStore {
            store: self.source.open()?,
            faults: self.faults.clone(),
            clock: self.clock.clone(),
            is_connection_lost: false,
        }))
    }
}

/// A store whose calls fail by seed; created by a [`FaultySource`].
struct FaultyStore {
    store: Box<dyn StoreBackend>,
    faults: Arc<Mutex<(FaultShares, Pcg64Mcg)>>,
    clock: Arc<AtomicU64>,
    is_connection_lost: bool,
}

impl FaultyStore {
    fn call<T>(
        &mut self,
        saves: bool,
        call: impl FnOnce(&mut dyn StoreBackend) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let lost = || store_error(StoreErrorKind::Unreachable, "the connection is lost");
        if self.is_connection_lost {
            return Err(lost());
        }
        let (fails, tears, is_full) = {
            let (shares, random) = &mut *lock(&self.faults);
            if random.random_bool(shares.slow) {
                let ms = random.random_range(0..=shares.slow_ms);
                self.clock.fetch_add(ms, Ordering::Relaxed);
            }
            // Every fault draws, so that one share does not change the others.
            let mut draw = |share| random.random_bool(share);
            (
                draw(shares.failing),
                draw(shares.reply_lost),
                draw(shares.full),
            )
        };
        if is_full && saves {
            return Err(store_error(StoreErrorKind::DiskFull, "no room"));
        }
        self.is_connection_lost = fails || tears;
        if fails {
            return Err(lost());
        }
        let done = call(&mut *self.store)?;
        if tears { Err(lost()) } else { Ok(done) }
    }
}

impl StoreBackend for FaultyStore {
    fn register_attributes(&mut self, attributes: &[StoredAttribute]) -> Result<(), StoreError> {
        self.call(false, |store| store.register_attributes(attributes))
    }

    fn register_server(
        &mut self,
        name: &str,
        terms: RegistrationTerms,
    ) -> Result<ServerId, StoreError> {
        self.call(false, |store| store.register_server(name, terms))
    }

    fn unregister_server(&mut self, by: &ServerId) -> Result<(), StoreError> {
        self.call(false, |store| store.unregister_server(by))
    }

    fn claim(
        &mut self,
        by: &ServerId,
        players: &[PlayerId],
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimResult>, StoreError> {
        self.call(false, |store| store.claim(by, players, terms))
    }

    fn save(
        &mut self,
        by: &ServerId,
        batch: &SaveBatch,
        at_ms: Option<u64>,
    ) -> Result<SaveOutcome, StoreError> {
        self.call(true, |store| store.save(by, batch, at_ms))
    }

    fn renew(
        &mut self,
        by: &ServerId,
        leases: &[(PlayerId, u64)],
        terms: ClaimTerms,
    ) -> Result<Renewal, StoreError> {
        self.call(false, |store| store.renew(by, leases, terms))
    }

    fn lookup(&mut self, players: &[PlayerId]) -> Result<Vec<LookupResult>, StoreError> {
        self.call(false, |store| store.lookup(players))
    }
}
