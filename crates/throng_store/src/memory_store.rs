//! A store in memory, for tests and for games without a file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_core::clock::unix_ms;
use throng_core::ids::PlayerId;

use super::error::{StoreError, StoreErrorKind};
use super::lease::{LeaseState, ServerId};
use super::record::{PlayerRecord, StoredAttribute};
use super::registration::{LastProcess, RegistrationTerms};
use super::save_batch::{PlayerSave, SaveBatch};
use super::store::{
    ClaimResult, ClaimTerms, LookupResult, Renewal, SaveOutcome, StoreBackend, StoreFactory,
};

/// The name in errors.
const STORE_NAME: &str = "in memory";

/// The data of a [`MemoryStore`]. It lives as long as any clone, and all stores that it opens share it.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Mutex<MemoryTables>>);

#[derive(Debug, Default)]
struct MemoryTables {
    attributes: BTreeMap<u16, StoredAttribute>,
    players: BTreeMap<PlayerId, (PlayerRecord, LeaseState)>,
    /// The newest process of each name.
    servers: BTreeMap<String, LastProcess>,
    /// Players with unreadable records.
    corrupt: BTreeSet<PlayerId>,
    /// The last batch of each process, and the players refused in it.
    batches: BTreeMap<ServerId, (u64, Vec<PlayerId>)>,
}

impl MemoryDisk {
    // A panic in the middle of a call leaves the same state as a killed process.
    fn tables(&self) -> MutexGuard<'_, MemoryTables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryDisk {
    /// Makes the record of a player unreadable: fault injection for tests.
    pub fn corrupt_record(&self, player: PlayerId) {
        self.tables().corrupt.insert(player);
    }
}

impl MemoryTables {
    /// Records that a process was seen, or with 0 that it has ended.
    fn mark_seen(&mut self, server: &ServerId, now_ms: u64) {
        if let Some(last) = self.servers.get_mut(&server.name)
            && last.incarnation == server.incarnation
        {
            last.seen_ms = now_ms;
        }
    }

    /// The error of a player's record, if it cannot be read.
    fn read_error(&self, player: PlayerId) -> Option<StoreError> {
        self.corrupt.contains(&player).then(|| StoreError {
            store: STORE_NAME.to_owned(),
            kind: StoreErrorKind::ValueRejected,
            cause: format!("player {}: expected a record, found a spoilt one", player.0),
        })
    }
}

impl StoreFactory for MemoryDisk {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        Ok(Box::new(MemoryStore(self.clone())))
    }
}

/// A store in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(MemoryDisk);

impl StoreBackend for MemoryStore {
    fn register_attributes(&mut self, attributes: &[StoredAttribute]) -> Result<(), StoreError> {
        let mut tables = self.0.tables();
        for new in attributes {
            let mut known = tables.attributes.values();
            let other = known.find(|known| known.id == new.id || known.name == new.name);
            if let Some(other) = other.filter(|&other| other != new) {
                return Err(StoreError {
                    store: STORE_NAME.to_owned(),
                    kind: StoreErrorKind::AttributeMismatch,
                    cause: format!("expected {new:?}, found {other:?}"),
                });
            }
        }
        let new = attributes.iter().map(|new| (new.id, new.clone()));
        tables.attributes.extend(new);
        Ok(())
    }

    fn register_server(
        &mut self,
        name: &str,
        terms: RegistrationTerms,
    ) -> Result<ServerId, StoreError> {
        let mut tables = self.0.tables();
        let now_ms = terms.at_ms.unwrap_or_else(unix_ms);
        let last = tables.servers.entry(name.to_owned()).or_default();
        last.check_name_free((STORE_NAME, name), terms, now_ms)?;
        *last = LastProcess {
            incarnation: last.incarnation + 1,
            seen_ms: now_ms,
            lease_ms: terms.lease_ms,
        };
        let id = ServerId {
            name: name.to_owned(),
            incarnation: last.incarnation,
        };
        for (_, lease) in tables.players.values_mut() {
            lease.holder.take_if(|holder| holder.name == name);
        }
        Ok(id)
    }

    fn unregister_server(&mut self, by: &ServerId) -> Result<(), StoreError> {
        self.0.tables().mark_seen(by, 0);
        Ok(())
    }

    fn claim(
        &mut self,
        by: &ServerId,
        players: &[PlayerId],
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimResult>, StoreError> {
        let mut tables = self.0.tables();
        let now_ms = terms.at_ms.unwrap_or_else(unix_ms);
        if let Some(last) = tables.servers.get(&by.name) {
            last.check_current((STORE_NAME, &by.name), by.incarnation)?;
        }
        let claimed = players.iter().map(|&player| {
            let spoilt = tables.read_error(player);
            let fresh = || (PlayerRecord::new(player), LeaseState::default());
            let (record, lease) = tables.players.entry(player).or_insert_with(fresh);
            let mut claimed = lease.clone();
            match (claimed.claim(terms.claim_by(by, now_ms)), spoilt) {
                (Ok(_), Some(error)) => ClaimResult::Unreadable { player, error },
                (Ok(epoch), None) => {
                    *lease = claimed;
                    let record = record.clone();
                    ClaimResult::Granted { epoch, record }
                }
                (Err(refusal), _) => {
                    *lease = claimed;
                    ClaimResult::Refused { player, refusal }
                }
            }
        });
        Ok(claimed.collect())
    }

    fn save(
        &mut self,
        by: &ServerId,
        batch: &SaveBatch,
        at_ms: Option<u64>,
    ) -> Result<SaveOutcome, StoreError> {
        let mut tables = self.0.tables();
        tables.mark_seen(by, at_ms.unwrap_or_else(unix_ms));
        let mut outcome = SaveOutcome::default();
        let is_done = match tables.batches.get(by) {
            Some((number, refused)) if *number == batch.number => {
                outcome.refused.clone_from(refused);
                true
            }
            _ => false,
        };
        let is_fenced = |save: &PlayerSave| {
            let player = tables.players.get(&save.player);
            !player.is_some_and(|(_, lease)| lease.allows_write(save.epoch))
        };
        let fault_of = |save: &PlayerSave| {
            let mut ids = batch.values(save).filter(|(_, value)| value.is_some());
            let unknown = ids.find(|(id, _)| !tables.attributes.contains_key(id))?;
            Some(StoreError {
                store: STORE_NAME.to_owned(),
                kind: StoreErrorKind::AttributeMismatch,
                cause: format!("attribute {} is not registered in this store", unknown.0),
            })
        };
        let refused = if is_done {
            let is_refused = |save: &PlayerSave| outcome.refused.contains(&save.player);
            batch.saves().iter().map(is_refused).collect()
        } else {
            batch.refused_saves::<StoreError>(|save| {
                let fault = fault_of(save).filter(|_| !is_fenced(save));
                let is_faulty = fault.is_some();
                outcome
                    .errors
                    .extend(fault.map(|error| (save.player, error)));
                Ok(is_faulty || is_fenced(save))
            })?
        };
        let taken = batch.saves().iter().zip(&refused);
        let taken = taken.filter(|&(save, &is_refused)| is_refused && is_fenced(save));
        outcome.taken = taken.map(|(save, _)| save.player).collect();
        outcome.taken.sort_unstable();
        for (save, refused) in batch.saves().iter().zip(refused) {
            if refused {
                if !is_done {
                    outcome.refused.push(save.player);
                }
                continue;
            }
            let Some((record, _)) = tables.players.get_mut(&save.player) else {
                continue;
            };
            if !is_done {
                record.apply(batch.values(save));
                record.revision += 1;
                record.tick = save.tick;
            }
            outcome.revisions.push((save.player, record.revision));
        }
        for &(player, epoch) in batch.releases() {
            if let Some((_, lease)) = tables.players.get_mut(&player) {
                lease.release(epoch);
            }
        }
        outcome.refused.sort_unstable();
        let last = (batch.number, outcome.refused.clone());
        tables.batches.insert(by.clone(), last);
        Ok(outcome)
    }

    fn renew(
        &mut self,
        by: &ServerId,
        leases: &[(PlayerId, u64)],
        terms: ClaimTerms,
    ) -> Result<Renewal, StoreError> {
        let mut tables = self.0.tables();
        let now_ms = terms.at_ms.unwrap_or_else(unix_ms);
        tables.mark_seen(by, now_ms);
        let mut lost = Vec::new();
        for &(player, epoch) in leases {
            let held = tables.players.get_mut(&player);
            if !held.is_some_and(|(_, lease)| lease.renew(epoch, now_ms, terms.lease_ms)) {
                lost.push(player);
            }
        }
        lost.sort_unstable();
        Ok(Renewal::lost(lost))
    }

    fn lookup(&mut self, players: &[PlayerId]) -> Result<Vec<LookupResult>, StoreError> {
        let tables = self.0.tables();
        let found = players.iter().map(|&player| {
            let kept = tables.players.get(&player).map(|(record, _)| record);
            match (
                kept.filter(|record| !record.is_new()),
                tables.read_error(player),
            ) {
                (None, _) => LookupResult::Missing,
                (Some(_), Some(error)) => LookupResult::Unreadable(error),
                (Some(record), None) => LookupResult::Found(record.clone()),
            }
        });
        Ok(found.collect())
    }
}
