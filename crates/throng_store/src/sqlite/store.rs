//! A store in an SQLite file.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use foldhash::fast::FixedState;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use throng_core::clock::unix_ms;
use throng_core::ids::PlayerId;
use throng_protocol::wire::Encoding;
use tracing::warn;

use super::connect::connect;
use super::errors::NamedFile;
use super::file::{FileMoved, OpenFile};
use super::value::{from_sql, to_sql};
use crate::encodings::{check_known, encoding_name};
use crate::error::{StoreError, StoreErrorKind};
use crate::lease::{LeaseState, ServerId};
use crate::record::{PlayerRecord, StoredAttribute};
use crate::registration::{LastProcess, RegistrationTerms, SERVER_ENTRY_TTL_MS};
use crate::save_batch::{PlayerSave, SaveBatch};
use crate::store::{ClaimResult, ClaimTerms, LookupResult, Renewal, SaveOutcome, StoreBackend};

/// A store in an SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    /// The open file; `None` for a database in memory.
    file: Option<OpenFile>,
    connection: Connection,
    encodings: HashMap<u16, Encoding, FixedState>,
}

fn moved_error(path: &Path) -> StoreError {
    let cause = "the file was moved or deleted while it was open; put it back";
    NamedFile(path).store_error(StoreErrorKind::Unreachable, cause)
}

impl SqliteStore {
    /// Opens a file, creates it if it does not exist, and migrates its tables.
    ///
    /// # Errors
    /// [`StoreError`], with the file's name.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, true)
    }

    pub(super) fn open_with(path: &Path, may_make: bool) -> Result<Self, StoreError> {
        let connection = connect(path, may_make)?;
        let opened = OpenFile::of(path, connection.path().unwrap_or_default());
        let file = opened.map_err(|FileMoved| moved_error(path))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            connection,
            encodings: HashMap::default(),
        })
    }

    /// Checks that the file is still at its path. Otherwise the data would go to a file that the next server does not find.
    fn check_file(&self) -> Result<(), StoreError> {
        match &self.file {
            Some(file) if !file.is_in_place() => Err(moved_error(&self.path)),
            _ => Ok(()),
        }
    }

    /// Stops the file from growing, like a full disk.
    #[cfg(any(test, feature = "testing"))]
    #[doc(hidden)]
    pub fn forbid_growth(&self) {
        let pages = "PRAGMA max_page_count = 1";
        let pages = self
            .connection
            .query_row(pages, [], |row| row.get::<_, i64>(0));
        assert!(pages.is_ok(), "{pages:?}");
    }

    /// Runs `work` in one transaction.
    fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction, &Tables) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_file()?;
        let named = NamedFile(&self.path);
        let tables = Tables {
            named: NamedFile(&self.path),
            encodings: &self.encodings,
        };
        let begun = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate);
        let mut transaction = begun.map_err(|error| named.error(error))?;
        let done = work(&mut transaction, &tables)?;
        transaction.commit().map_err(|error| named.error(error))?;
        // Acknowledge only what is in the file at this path.
        self.check_file()?;
        Ok(done)
    }
}

/// The context of statements.
struct Tables<'s> {
    named: NamedFile<'s>,
    encodings: &'s HashMap<u16, Encoding, FixedState>,
}

/// The lease of a player, the revision, and the tick.
type StoredPlayerRow = (LeaseState, u64, u64);

impl Tables<'_> {
    /// Executes a statement that is prepared once.
    fn execute(
        &self,
        connection: &Connection,
        statement: &str,
        values: impl rusqlite::Params,
    ) -> Result<usize, StoreError> {
        let prepared = connection.prepare_cached(statement);
        let ran = prepared.and_then(|mut prepared| prepared.execute(values));
        ran.map_err(|error| self.named.error(error))
    }

    fn player(
        &self,
        transaction: &Transaction,
        player: PlayerId,
    ) -> Result<Option<StoredPlayerRow>, StoreError> {
        let read = |row: &rusqlite::Row| -> rusqlite::Result<StoredPlayerRow> {
            let (name, incarnation): (Option<String>, Option<i64>) = (row.get(3)?, row.get(4)?);
            let holder = name.zip(incarnation).map(|(name, incarnation)| ServerId {
                name,
                incarnation: incarnation as u64,
            });
            let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
            let lease = LeaseState {
                epoch: number(2)?,
                holder,
                expires_ms: number(5)?,
                lease_ms: number(6)?,
            };
            Ok((lease, number(0)?, number(1)?))
        };
        let statement = "SELECT revision, tick, epoch, server, incarnation, expires_ms, lease_ms FROM player WHERE player = ?1";
        let prepared = transaction.prepare_cached(statement);
        let found = prepared
            .and_then(|mut prepared| prepared.query_row([player.0 as i64], read).optional());
        found.map_err(|error| self.named.error(error))
    }

    fn values(
        &self,
        transaction: &Transaction,
        player: PlayerId,
    ) -> Result<BTreeMap<u16, Vec<u8>>, StoreError> {
        let read = || -> rusqlite::Result<Result<BTreeMap<u16, Vec<u8>>, StoreError>> {
            let statement = "SELECT attribute, value FROM value WHERE player = ?1";
            let mut prepared = transaction.prepare_cached(statement)?;
            let mut rows = prepared.query([player.0 as i64])?;
            let mut values = BTreeMap::new();
            while let Some(row) = rows.next()? {
                let (id, value) = (row.get::<_, u16>(0)?, row.get_ref(1)?);
                // Values of attributes that are not registered stay stored and are not returned.
                let Some(&encoding) = self.encodings.get(&id) else {
                    continue;
                };
                let Some(bytes) = from_sql(encoding, value) else {
                    let cause = format!(
                        "player {}, attribute {id}: expected a value of encoding {}, found {value:?}",
                        player.0,
                        encoding_name(encoding)
                    );
                    return Ok(Err(self
                        .named
                        .store_error(StoreErrorKind::ValueRejected, cause)));
                };
                values.insert(id, bytes);
            }
            Ok(Ok(values))
        };
        read().map_err(|error| self.named.error(error))?
    }

    fn record(
        &self,
        transaction: &Transaction,
        player: PlayerId,
        (revision, tick): (u64, u64),
    ) -> Result<PlayerRecord, StoreError> {
        let values = if revision == 0 {
            BTreeMap::new()
        } else {
            self.values(transaction, player)?
        };
        Ok(PlayerRecord {
            player,
            revision,
            tick,
            values,
        })
    }

    /// Writes the lease of a player.
    fn set_lease(
        &self,
        transaction: &Transaction,
        player: PlayerId,
        lease: &LeaseState,
    ) -> Result<(), StoreError> {
        let (name, incarnation) = match &lease.holder {
            Some(holder) => (Some(&holder.name), Some(holder.incarnation as i64)),
            None => (None, None),
        };
        let statement = "INSERT INTO player (player, epoch, server, incarnation, expires_ms, lease_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (player) DO UPDATE SET epoch = excluded.epoch, server = excluded.server,
            incarnation = excluded.incarnation, expires_ms = excluded.expires_ms, lease_ms = excluded.lease_ms";
        let values = params![
            player.0 as i64,
            lease.epoch as i64,
            name,
            incarnation,
            lease.expires_ms as i64,
            lease.lease_ms as i64
        ];
        self.execute(transaction, statement, values).map(|_| ())
    }

    /// The last process of a name, or number 0 if there is none.
    fn last_process(
        &self,
        transaction: &Transaction,
        name: &str,
    ) -> Result<LastProcess, StoreError> {
        let statement = "SELECT incarnation, seen_ms, lease_ms FROM server WHERE name = ?1
            ORDER BY incarnation DESC LIMIT 1";
        let read = |row: &rusqlite::Row| {
            let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
            Ok(LastProcess {
                incarnation: number(0)?,
                seen_ms: number(1)?,
                lease_ms: number(2)?,
            })
        };
        let prepared = transaction.prepare_cached(statement);
        let found = prepared.and_then(|mut prepared| prepared.query_row([name], read).optional());
        let found = found.map_err(|error| self.named.error(error))?;
        Ok(found.unwrap_or_default())
    }

    /// Records that a process was seen, or with 0 that it has ended.
    fn mark_seen(
        &self,
        transaction: &Transaction,
        server: &ServerId,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let statement = "UPDATE server SET seen_ms = ?3 WHERE name = ?1 AND incarnation = ?2";
        let values = params![server.name, server.incarnation as i64, now_ms as i64];
        self.execute(transaction, statement, values).map(|_| ())
    }

    /// The number of a server's last batch, and the players refused in it.
    fn last_batch(
        &self,
        transaction: &Transaction,
        by: &ServerId,
    ) -> Result<(u64, Vec<PlayerId>), StoreError> {
        let statement = "SELECT batch, refused FROM server WHERE name = ?1 AND incarnation = ?2";
        let prepared = transaction.prepare_cached(statement);
        let found = prepared.and_then(|mut prepared| {
            let read = |row: &rusqlite::Row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
            prepared
                .query_row(params![by.name, by.incarnation as i64], read)
                .optional()
        });
        let found = found.map_err(|error| self.named.error(error))?;
        let (number, refused) = found.unwrap_or_default();
        let refused = refused.split_whitespace().filter_map(|id| id.parse().ok());
        Ok((number as u64, refused.map(PlayerId).collect()))
    }

    /// Writes the saves of a batch that are not refused. Saves that the store rejects are refused, together with all that are joined with
    /// them, and the reason is recorded.
    fn write(
        &self,
        transaction: &mut Transaction,
        batch: &SaveBatch,
        is_refused: &mut [bool],
        now_ms: u64,
    ) -> Result<Vec<(PlayerId, StoreError)>, StoreError> {
        let all: Vec<usize> = (0..is_refused.len())
            .filter(|&place| !is_refused[place])
            .collect();
        match self.try_write(transaction, batch, &all, now_ms)? {
            Ok(()) => return Ok(Vec::new()),
            Err((player, error)) => {
                warn!(
                    player = player.0,
                    %error,
                    "save batch rejected: each group is retried alone"
                );
            }
        }
        let mut faults = Vec::new();
        for group in batch.groups() {
            if is_refused[group[0]] {
                continue;
            }
            if let Err(fault) = self.try_write(transaction, batch, &group, now_ms)? {
                faults.push(fault);
                group.iter().for_each(|&place| is_refused[place] = true);
            }
        }
        Ok(faults)
    }

    /// Writes some saves, or none of them if one is rejected: then it returns which, and why.
    fn try_write(
        &self,
        transaction: &mut Transaction,
        batch: &SaveBatch,
        places: &[usize],
        now_ms: u64,
    ) -> Result<Result<(), (PlayerId, StoreError)>, StoreError> {
        let mut savepoint = transaction
            .savepoint()
            .map_err(|error| self.named.error(error))?;
        for save in places.iter().map(|&place| &batch.saves()[place]) {
            match self.write_one(&savepoint, batch, save, now_ms) {
                Ok(()) => {}
                Err(error) if error.kind.affects_one_player() => {
                    let undone = savepoint.rollback();
                    undone.map_err(|error| self.named.error(error))?;
                    return Ok(Err((save.player, error)));
                }
                Err(error) => return Err(error),
            }
        }
        savepoint
            .commit()
            .map_err(|error| self.named.error(error))?;
        Ok(Ok(()))
    }

    fn write_one(
        &self,
        connection: &Connection,
        batch: &SaveBatch,
        save: &PlayerSave,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let player = save.player.0 as i64;
        let statement =
            "UPDATE player SET revision = revision + 1, tick = ?2, saved_ms = ?3 WHERE player = ?1";
        let values = params![player, save.tick as i64, now_ms as i64];
        self.execute(connection, statement, values)?;
        for (id, value) in batch.values(save) {
            let Some(bytes) = value else {
                let statement = "DELETE FROM value WHERE player = ?1 AND attribute = ?2";
                self.execute(connection, statement, params![player, id])?;
                continue;
            };
            let Some(&encoding) = self.encodings.get(&id) else {
                let cause = format!("attribute {id} is not registered in this store");
                return Err(self
                    .named
                    .store_error(StoreErrorKind::AttributeMismatch, cause));
            };
            let statement = "INSERT INTO value (player, attribute, value) VALUES (?1, ?2, ?3)
                ON CONFLICT (player, attribute) DO UPDATE SET value = excluded.value";
            let value = to_sql(encoding, bytes);
            self.execute(connection, statement, params![player, id, value])?;
        }
        Ok(())
    }
}

impl StoreBackend for SqliteStore {
    fn register_attributes(&mut self, attributes: &[StoredAttribute]) -> Result<(), StoreError> {
        self.in_transaction(|transaction, tables| {
            for new in attributes {
                let encoding = encoding_name(new.encoding);
                let statement =
                    "SELECT id, name, encoding FROM attribute WHERE id = ?1 OR name = ?2";
                let mut prepared = transaction
                    .prepare_cached(statement)
                    .map_err(|error| tables.named.error(error))?;
                let known = prepared.query_row(params![new.id, new.name], |row| {
                    Ok((
                        row.get::<_, i64>(0)?,
                        row.get::<_, String>(1)?,
                        row.get::<_, String>(2)?,
                    ))
                });
                let known = known
                    .optional()
                    .map_err(|error| tables.named.error(error))?;
                match known {
                    None => {
                        let statement =
                            "INSERT INTO attribute (id, name, encoding) VALUES (?1, ?2, ?3)";
                        tables.execute(
                            transaction,
                            statement,
                            params![new.id, new.name, encoding],
                        )?;
                    }
                    Some((id, name, found)) => {
                        check_known(new, (id, &name, &found)).map_err(|cause| {
                            tables
                                .named
                                .store_error(StoreErrorKind::AttributeMismatch, cause)
                        })?
                    }
                }
            }
            Ok(())
        })?;
        let known = attributes.iter().map(|new| (new.id, new.encoding));
        self.encodings.extend(known);
        Ok(())
    }

    fn register_server(
        &mut self,
        name: &str,
        terms: RegistrationTerms,
    ) -> Result<ServerId, StoreError> {
        self.in_transaction(|transaction, tables| {
            let now_ms = terms.at_ms.unwrap_or_else(unix_ms);
            let store = tables.named.0.display().to_string();
            let last = tables.last_process(transaction, name)?;
            last.check_name_free((&store, name), terms, now_ms)?;
            let statement = "UPDATE player SET server = NULL, incarnation = NULL WHERE server = ?1";
            tables.execute(transaction, statement, [name])?;
            let statement =
                "INSERT INTO server (name, incarnation, seen_ms, lease_ms) VALUES (?1, ?2, ?3, ?4)";
            let incarnation = last.incarnation + 1;
            let values = params![
                name,
                incarnation as i64,
                now_ms as i64,
                terms.lease_ms as i64
            ];
            tables.execute(transaction, statement, values)?;
            let statement = "DELETE FROM server WHERE max(seen_ms, saved_ms) < ?3 AND NOT (name = ?1 AND incarnation = ?2)";
            let oldest_ms = now_ms.saturating_sub(SERVER_ENTRY_TTL_MS);
            let values = params![name, incarnation as i64, oldest_ms as i64];
            tables.execute(transaction, statement, values)?;
            Ok(ServerId {
                name: name.to_owned(),
                incarnation,
            })
        })
    }

    fn unregister_server(&mut self, by: &ServerId) -> Result<(), StoreError> {
        self.in_transaction(|transaction, tables| tables.mark_seen(transaction, by, 0))
    }

    fn claim(
        &mut self,
        by: &ServerId,
        players: &[PlayerId],
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimResult>, StoreError> {
        self.in_transaction(|transaction, tables| {
            let claim = terms.claim_by(by, terms.at_ms.unwrap_or_else(unix_ms));
            let store = tables.named.0.display().to_string();
            let last = tables.last_process(transaction, &by.name)?;
            last.check_current((&store, &by.name), by.incarnation)?;
            let mut claimed = Vec::with_capacity(players.len());
            for &player in players {
                let row = tables.player(transaction, player)?;
                let (mut lease, revision, tick) = row.unwrap_or_default();
                if lease.clamp_expiry(claim.now_ms) {
                    tables.set_lease(transaction, player, &lease)?;
                }
                claimed.push(match lease.claim(claim) {
                    Ok(epoch) => match tables.record(transaction, player, (revision, tick)) {
                        Ok(record) => {
                            tables.set_lease(transaction, player, &lease)?;
                            ClaimResult::Granted { epoch, record }
                        }
                        Err(error) if error.kind.affects_one_player() => {
                            ClaimResult::Unreadable { player, error }
                        }
                        Err(error) => return Err(error),
                    },
                    Err(refusal) => ClaimResult::Refused { player, refusal },
                });
            }
            Ok(claimed)
        })
    }

    fn save(
        &mut self,
        by: &ServerId,
        batch: &SaveBatch,
        at_ms: Option<u64>,
    ) -> Result<SaveOutcome, StoreError> {
        let now_ms = at_ms.unwrap_or_else(unix_ms);
        self.in_transaction(|transaction, tables| {
            tables.mark_seen(transaction, by, now_ms)?;
            let (last, refused_then) = tables.last_batch(transaction, by)?;
            let is_done = last == batch.number;
            let (mut revisions, mut taken) = (BTreeMap::new(), Vec::new());
            let mut is_refused = batch.refused_saves(|save| {
                let row = tables.player(transaction, save.player)?;
                let is_fenced = !row.as_ref().is_some_and(|(lease, ..)| lease.allows_write(save.epoch));
                revisions.extend(row.map(|(_, revision, _)| (save.player, revision)));
                taken.extend(is_fenced.then_some(save.player));
                Ok(is_fenced)
            })?;
            let revision = |player| revisions.get(&player).copied().unwrap_or_default();
            if is_done {
                let saves = batch.saves().iter();
                let is_refused: Vec<bool> = saves.map(|save| refused_then.contains(&save.player)).collect();
                return Ok(SaveOutcome::of(batch, &is_refused, taken, revision, Vec::new()));
            }
            let faults = tables.write(transaction, batch, &mut is_refused, now_ms)?;
            let outcome = SaveOutcome::of(batch, &is_refused, taken, |player| revision(player) + 1, faults);
            for &(player, epoch) in batch.releases() {
                let statement = "UPDATE player SET server = NULL, incarnation = NULL WHERE player = ?1 AND epoch = ?2";
                tables.execute(transaction, statement, params![player.0 as i64, epoch as i64])?;
            }
            let refused: Vec<String> = outcome.refused.iter().map(|player| player.0.to_string()).collect();
            let statement = "INSERT INTO server (name, incarnation, batch, tick, saved_ms, refused) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                ON CONFLICT (name, incarnation) DO UPDATE SET batch = excluded.batch, tick = excluded.tick,
                saved_ms = excluded.saved_ms, refused = excluded.refused";
            let values = params![
                by.name,
                by.incarnation as i64,
                batch.number as i64,
                batch.tick as i64,
                now_ms as i64,
                refused.join(" ")
            ];
            tables.execute(transaction, statement, values)?;
            Ok(outcome)
        })
    }

    fn renew(
        &mut self,
        by: &ServerId,
        leases: &[(PlayerId, u64)],
        terms: ClaimTerms,
    ) -> Result<Renewal, StoreError> {
        self.in_transaction(|transaction, tables| {
            let now_ms = terms.at_ms.unwrap_or_else(unix_ms);
            let (until_ms, lease_ms) = (now_ms.saturating_add(terms.lease_ms), terms.lease_ms);
            tables.mark_seen(transaction, by, now_ms)?;
            let mut lost = Vec::new();
            for &(player, epoch) in leases {
                let statement = "UPDATE player SET expires_ms = ?3, lease_ms = ?4
                    WHERE player = ?1 AND epoch = ?2 AND server IS NOT NULL";
                let values = params![
                    player.0 as i64,
                    epoch as i64,
                    until_ms as i64,
                    lease_ms as i64
                ];
                if tables.execute(transaction, statement, values)? == 0 {
                    lost.push(player);
                }
            }
            lost.sort_unstable();
            Ok(Renewal::lost(lost))
        })
    }

    fn lookup(&mut self, players: &[PlayerId]) -> Result<Vec<LookupResult>, StoreError> {
        self.check_file()?;
        let (named, tables) = (
            NamedFile(&self.path),
            Tables {
                named: NamedFile(&self.path),
                encodings: &self.encodings,
            },
        );
        // Only reads, so it does not block concurrent writers.
        let begun = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Deferred);
        let transaction = begun.map_err(|error| named.error(error))?;
        let mut found = Vec::with_capacity(players.len());
        for &player in players {
            found.push(match tables.player(&transaction, player)? {
                Some((_, revision, tick)) if revision > 0 => {
                    match tables.record(&transaction, player, (revision, tick)) {
                        Ok(record) => LookupResult::Found(record),
                        Err(error) if error.kind.affects_one_player() => {
                            LookupResult::Unreadable(error)
                        }
                        Err(error) => return Err(error),
                    }
                }
                _ => LookupResult::Missing,
            });
        }
        Ok(found)
    }
}
