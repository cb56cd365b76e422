//! A store in memory whose saves pass through a hook of the test.

use std::fmt;
use std::sync::Arc;

use throng_core::ids::PlayerId;

use crate::error::StoreError;
use crate::lease::ServerId;
use crate::memory_store::MemoryDisk;
use crate::record::StoredAttribute;
use crate::registration::RegistrationTerms;
use crate::save_batch::SaveBatch;
use crate::store::{
    ClaimResult, ClaimTerms, LookupResult, Renewal, SaveOutcome, StoreBackend, StoreFactory,
};

/// The save call of the store in memory, which the hook may execute.
pub type SaveCall<'a> = &'a mut dyn FnMut() -> Result<SaveOutcome, StoreError>;

type SaveHook = Arc<dyn Fn(SaveCall) -> Result<SaveOutcome, StoreError> + Send + Sync>;

/// A store in memory whose saves go through a function.
#[derive(Clone)]
pub struct HookedSource(MemoryDisk, SaveHook);

impl HookedSource {
    pub fn new(
        disk: MemoryDisk,
        hook: impl Fn(SaveCall) -> Result<SaveOutcome, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self(disk, Arc::new(hook))
    }
}

impl fmt::Debug for HookedSource {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter
            .debug_tuple("HookedSource")
            .field(&self.0)
            .finish()
    }
}

impl StoreFactory for HookedSource {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        Ok(Box::new(HookedStore(self.0.open()?, self.1.clone())))
    }
}

struct HookedStore(Box<dyn StoreBackend>, SaveHook);

impl StoreBackend for HookedStore {
    fn register_attributes(&mut self, attributes: &[StoredAttribute]) -> Result<(), StoreError> {
        self.0.register_attributes(attributes)
    }

    fn register_server(
        &mut self,
        name: &str,
        terms: RegistrationTerms,
    ) -> Result<ServerId, StoreError> {
        self.0.register_server(name, terms)
    }

    fn unregister_server(&mut self, by: &ServerId) -> Result<(), StoreError> {
        self.0.unregister_server(by)
    }

    fn claim(
        &mut self,
        by: &ServerId,
        players: &[PlayerId],
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimResult>, StoreError> {
        self.0.claim(by, players, terms)
    }

    fn save(
        &mut self,
        by: &ServerId,
        batch: &SaveBatch,
        at_ms: Option<u64>,
    ) -> Result<SaveOutcome, StoreError> {
        (self.1)(&mut || self.0.save(by, batch, at_ms))
    }

    fn renew(
        &mut self,
        by: &ServerId,
        leases: &[(PlayerId, u64)],
        terms: ClaimTerms,
    ) -> Result<Renewal, StoreError> {
        self.0.renew(by, leases, terms)
    }

    fn lookup(&mut self, players: &[PlayerId]) -> Result<Vec<LookupResult>, StoreError> {
        self.0.lookup(players)
    }
}
