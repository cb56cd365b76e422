//! A store in memory: for tests, and for a game that wants no file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::{StoreError, StoreFault};
use super::lease::{LeaseClaim, LeaseState, ServerId};
use super::record::{PlayerRecord, StoredAttribute};
use super::save_batch::{PlayerSave, SaveBatch};
use super::store::{ClaimTerms, Claimed, SaveOutcome, Store, StoreSource};
use crate::world::PlayerId;

/// What a [`MemoryStore`] keeps: lives as long as anybody holds it, and is shared by all stores that it opens.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Mutex<MemoryTables>>);

#[derive(Debug, Default)]
struct MemoryTables {
    attributes: BTreeMap<u16, StoredAttribute>,
    players: BTreeMap<PlayerId, (PlayerRecord, LeaseState)>,
    /// The newest process of each name.
    servers: BTreeMap<String, u64>,
    /// The last batch of each process, and who was refused in it.
    batches: BTreeMap<ServerId, (u64, Vec<PlayerId>)>,
}

impl MemoryDisk {
    // What a panic in the middle of a call leaves is as a kill leaves it.
    fn tables(&self) -> MutexGuard<'_, MemoryTables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreSource for MemoryDisk {
    fn open(&mut self) -> Result<Box<dyn Store>, StoreError> {
        Ok(Box::new(MemoryStore(self.clone())))
    }
}

/// A store in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(MemoryDisk);

impl Store for MemoryStore {
    fn learn(&mut self, attributes: &[StoredAttribute]) -> Result<(), StoreError> {
        let mut tables = self.0.tables();
        for new in attributes {
            let mut known = tables.attributes.values();
            let other = known.find(|known| known.id == new.id || known.name == new.name);
            if let Some(other) = other.filter(|&other| other != new) {
                return Err(StoreError {
                    store: "in memory".to_owned(),
                    fault: StoreFault::Attributes,
                    cause: format!("expected {new:?}, found {other:?}"),
                });
            }
        }
        let new = attributes.iter().map(|new| (new.id, new.clone()));
        tables.attributes.extend(new);
        Ok(())
    }

    fn enroll(&mut self, name: &str) -> Result<ServerId, StoreError> {
        let mut tables = self.0.tables();
        let incarnation = tables.servers.entry(name.to_owned()).or_default();
        *incarnation += 1;
        let id = ServerId {
            name: name.to_owned(),
            incarnation: *incarnation,
        };
        for (_, lease) in tables.players.values_mut() {
            lease.holder.take_if(|holder| holder.name == name);
        }
        Ok(id)
    }

    fn claim(
        &mut self,
        by: &ServerId,
        players: &[PlayerId],
        terms: ClaimTerms,
    ) -> Result<Vec<Claimed>, StoreError> {
        let mut tables = self.0.tables();
        let claimed = players.iter().map(|&player| {
            let fresh = || (PlayerRecord::new(player), LeaseState::default());
            let (record, lease) = tables.players.entry(player).or_insert_with(fresh);
            let claim = LeaseClaim {
                by,
                now_ms: terms.now_ms,
                until_ms: terms.until_ms,
                grace_ms: terms.grace_ms,
            };
            match lease.claim(claim) {
                Ok(epoch) => Claimed::Granted {
                    epoch,
                    record: record.clone(),
                },
                Err(refusal) => Claimed::Refused { player, refusal },
            }
        });
        Ok(claimed.collect())
    }

    fn save(
        &mut self,
        by: &ServerId,
        batch: &SaveBatch,
        _now_ms: u64,
    ) -> Result<SaveOutcome, StoreError> {
        let mut tables = self.0.tables();
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
            !player.is_some_and(|(_, lease)| lease.admits(save.epoch))
        };
        let refused = if is_done {
            let is_refused = |save: &PlayerSave| outcome.refused.contains(&save.player);
            batch.saves().iter().map(is_refused).collect()
        } else {
            batch.refused::<StoreError>(|save| Ok(is_fenced(save)))?
        };
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
        leases: &[(PlayerId, u64)],
        until_ms: u64,
    ) -> Result<Vec<PlayerId>, StoreError> {
        let mut tables = self.0.tables();
        let mut lost = Vec::new();
        for &(player, epoch) in leases {
            let held = tables.players.get_mut(&player);
            if !held.is_some_and(|(_, lease)| lease.renew(epoch, until_ms)) {
                lost.push(player);
            }
        }
        lost.sort_unstable();
        Ok(lost)
    }

    fn look_up(&mut self, players: &[PlayerId]) -> Result<Vec<PlayerRecord>, StoreError> {
        let tables = self.0.tables();
        let found = players.iter().filter_map(|player| {
            let (record, _) = tables.players.get(player)?;
            (!record.is_new()).then(|| record.clone())
        });
        Ok(found.collect())
    }
}
