//! A store on a Postgres server.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use throng_core::ids::PlayerId;
use throng_protocol::wire::Encoding;
use tokio_postgres::Client;

use super::connection::{CallLimit, PostgresConnection};
use super::errors::NamedDatabase;
use super::schema::{self, SchemaKind};
use super::tables::{PostgresTables, Statements, ids};
use crate::encodings::{check_known, encoding_name};
use crate::error::{StoreError, StoreErrorKind};
use crate::lease::ServerId;
use crate::record::{PlayerRecord, StoredAttribute};
use crate::registration::{RegistrationTerms, SERVER_ENTRY_TTL_MS};
use crate::save_batch::{PlayerSave, SaveBatch};
use crate::store::{
    ClaimResult, ClaimTerms, LookupResult, Renewal, SaveOutcome, StoreBackend, StoreFactory,
};

/// Opens a store on a Postgres server.
#[derive(Clone)]
pub struct PostgresSource {
    pub(super) url: String,
    pub(super) schema: String,
    pub(super) limit: Arc<CallLimit>,
    pub(super) migrates: bool,
}

impl fmt::Debug for PostgresSource {
    /// Without the address, which may contain a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PostgresSource")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PostgresSource {
    /// The schema `throng` of the database at this address: `postgres://user:password@host:port/database`, or `host=… user=… dbname=…`. The
    /// schema is created if it does not exist; if the role may not do that, another role has to [migrate](Self::migrate) it before. With
    /// `sslmode=require` or `verify-full` the connection is encrypted and the server's certificate is verified, with the certificates in
    /// the PEM file `sslrootcert`, or in the file named by the environment variable `PGSSLROOTCERT`, or those that the system trusts. A
    /// connection pooler has to be in session mode.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: schema::SCHEMA.to_owned(),
            limit: Arc::default(),
            migrates: true,
        }
    }

    /// Limit of a call, after which its connection is closed and another one is opened; 5 s by default. Each timeout doubles the limit of
    /// the next calls, up to 30 s, until one succeeds. A connection attempt has the same limit, unless the address has a `connect_timeout`.
    #[must_use]
    pub fn with_call_timeout(mut self, limit: Duration) -> Self {
        self.limit = Arc::new(CallLimit::new(limit));
        self
    }

    /// Limit of a call, which timeouts do not double: for calls whose replies are of no use later. A connection attempt has the same limit,
    /// and two seconds at least, unless the address has a `connect_timeout`.
    #[must_use]
    pub fn with_fixed_call_timeout(mut self, limit: Duration) -> Self {
        self.limit = Arc::new(CallLimit::fixed(limit));
        self
    }

    /// Uses another schema, so that one database can contain several stores. The name consists of lower-case letters, digits and `_`.
    #[must_use]
    pub fn with_schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Leaves the tables as they are: missing ones, or those of an older version, are an error. For programs that are used beside servers
    /// that run, since these cannot open tables again that a newer program has updated.
    #[must_use]
    pub fn without_migration(mut self) -> Self {
        self.migrates = false;
        self
    }
}

impl StoreFactory for PostgresSource {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        Ok(Box::new(PostgresStore::open_source(self)?))
    }
}

/// A store on a Postgres server: one connection, used by one thread.
pub struct PostgresStore {
    connection: PostgresConnection,
    encodings: HashMap<u16, Encoding, FixedState>,
    statements: Statements,
}

impl PostgresStore {
    /// Connects, creates the schema if it does not exist, and migrates its tables.
    ///
    /// # Errors
    /// [`StoreError`], with the database's name and without its password.
    pub fn open(url: &str, schema: &str) -> Result<Self, StoreError> {
        Self::open_source(&PostgresSource::new(url).with_schema(schema))
    }

    pub(crate) fn open_source(source: &PostgresSource) -> Result<Self, StoreError> {
        Ok(Self {
            connection: source.open_tables()?,
            encodings: HashMap::default(),
            statements: Statements::default(),
        })
    }

    /// Runs `work` in one transaction.
    fn in_transaction<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut PostgresTables) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Self {
            connection,
            encodings,
            statements,
        } = self;
        connection.call(async |client, named| {
            let begun = client.transaction().await;
            let mut tables = PostgresTables {
                transaction: begun.map_err(|error| named.error(error))?,
                named,
                encodings,
                statements,
            };
            let done = work(&mut tables).await?;
            let committed = tables.transaction.commit().await;
            committed.map_err(|error| named.error(error))?;
            Ok(done)
        })
    }
}

/// Opens the tables, and returns their version before. `migrates`: creates missing ones, and updates those of an older version.
pub(super) async fn open_tables(
    client: &mut Client,
    schema: &str,
    named: &NamedDatabase,
    migrates: bool,
) -> Result<i64, StoreError> {
    let fault = |error| named.error(error);
    let found = usable_version(schema::read(client, schema).await.map_err(fault)?, named)?;
    if !migrates {
        require_current(found, named)?;
    }
    let before = if found == Some(schema::VERSION) {
        found
    } else {
        let kind = schema::migrate(client, schema).await;
        usable_version(
            kind.map_err(|error| explain_missing_rights(found, named.error(error)))?,
            named,
        )?
    };
    let path = format!("SET search_path TO {schema}");
    let set = client.batch_execute(&path).await;
    set.map_err(|error| named.error(error))?;
    Ok(before.unwrap_or(0))
}

/// Adds what an operator has to do if a role may not create tables.
fn explain_missing_rights(found: Option<i64>, mut error: StoreError) -> StoreError {
    if error.kind == StoreErrorKind::ReadOnly {
        let found = found.map_or("there are no tables".to_owned(), |found| {
            format!(
                "the tables have version {found}, expected {}",
                schema::VERSION
            )
        });
        error.cause = format!(
            "{found}, and this role may not write them ({}); run `throng db migrate` with a role that may",
            error.cause
        );
    }
    error
}

/// An error, if there are no tables, or those of an older version.
pub(super) fn require_current(found: Option<i64>, named: &NamedDatabase) -> Result<(), StoreError> {
    let known = schema::VERSION;
    if found == Some(known) {
        return Ok(());
    }
    let cause = match found {
        Some(_) => "run `throng db migrate`, after all servers of an older version have ended",
        None => "there are no tables yet: run `throng db migrate`, or start a server",
    };
    let found = found.unwrap_or(0);
    Err(named.store_error(StoreErrorKind::OlderSchema { found, known }, cause))
}

/// The version of a usable schema; `None` if it is still empty.
pub(super) fn usable_version(
    kind: SchemaKind,
    named: &NamedDatabase,
) -> Result<Option<i64>, StoreError> {
    match kind {
        SchemaKind::Empty => Ok(None),
        SchemaKind::Store(version) => Ok(Some(version)),
        SchemaKind::Newer(found) => {
            let known = schema::VERSION;
            Err(named.store_error(
                StoreErrorKind::NewerSchema { found, known },
                "it is left as it is",
            ))
        }
        SchemaKind::Foreign => Err(named.store_error(
            StoreErrorKind::NotAPlayerStore,
            "a schema of another program",
        )),
    }
}

impl StoreBackend for PostgresStore {
    fn register_attributes(&mut self, attributes: &[StoredAttribute]) -> Result<(), StoreError> {
        self.in_transaction(async |tables| {
            let statement = "SELECT id, name, encoding FROM attribute";
            let mut known = tables.query(statement, &[]).await?;
            let is_known = |new: &StoredAttribute| {
                let id = i32::from(new.id);
                known.iter().any(|row| row.get::<_, i32>(0) == id)
            };
            if !attributes.iter().all(is_known) {
                let lock = "LOCK TABLE attribute IN SHARE ROW EXCLUSIVE MODE";
                tables.batch_execute(lock).await?;
                known = tables.query(statement, &[]).await?;
            }
            for new in attributes {
                let (id, encoding) = (i32::from(new.id), encoding_name(new.encoding));
                let other = known
                    .iter()
                    .map(|row| {
                        (
                            row.get::<_, i32>(0),
                            row.get::<_, &str>(1),
                            row.get::<_, &str>(2),
                        )
                    })
                    .find(|known| known.0 == id || known.1 == new.name);
                match other {
                    None => {
                        let statement =
                            "INSERT INTO attribute (id, name, encoding) VALUES ($1, $2, $3)";
                        tables
                            .execute(statement, &[&id, &new.name, &encoding])
                            .await?;
                    }
                    Some((id, name, found)) => check_known(new, (i64::from(id), name, found))
                        .map_err(|cause| {
                            tables
                                .named
                                .store_error(StoreErrorKind::AttributeMismatch, cause)
                        })?,
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
        self.in_transaction(async |tables| {
            // Processes of one name that start at the same time wait for each other.
            let lock = "SELECT pg_advisory_xact_lock(1953002087, hashtext(current_schema() || ' ' || $1))";
            tables.execute(lock, &[&name]).await?;
            let now_ms = tables.now_ms(terms.at_ms).await?;
            let last = tables.last_process(name).await?;
            last.check_name_free((&tables.named.0, name), terms, now_ms)?;
            // Rows that a dead process keeps locked are skipped: a later claim takes these leases over, because they have this name.
            let statement = "WITH held AS (SELECT player FROM player WHERE server = $1 ORDER BY player FOR UPDATE SKIP LOCKED)
                UPDATE player SET server = NULL, incarnation = NULL FROM held WHERE player.player = held.player";
            tables.execute(statement, &[&name]).await?;
            let statement =
                "INSERT INTO server (name, incarnation, seen_ms, lease_ms) VALUES ($1, $2, $3, $4)";
            let incarnation = last.incarnation + 1;
            let [number, seen_ms, lease_ms] =
                [incarnation, now_ms, terms.lease_ms].map(|number| number as i64);
            tables.execute(statement, &[&name, &number, &seen_ms, &lease_ms]).await?;
            // Locked rows are skipped: another process deletes them now, or a later one.
            let statement = "WITH old AS (SELECT name, incarnation FROM server
                    WHERE greatest(seen_ms, saved_ms) < $3 AND NOT (name = $1 AND incarnation = $2) FOR UPDATE SKIP LOCKED)
                DELETE FROM server USING old WHERE server.name = old.name AND server.incarnation = old.incarnation";
            let oldest_ms = now_ms.saturating_sub(SERVER_ENTRY_TTL_MS) as i64;
            tables.execute(statement, &[&name, &number, &oldest_ms]).await?;
            Ok(ServerId {
                name: name.to_owned(),
                incarnation,
            })
        })
    }

    fn unregister_server(&mut self, by: &ServerId) -> Result<(), StoreError> {
        self.in_transaction(async |tables| tables.mark_seen(by, 0).await)
    }

    fn claim(
        &mut self,
        by: &ServerId,
        players: &[PlayerId],
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimResult>, StoreError> {
        self.in_transaction(async |tables| {
            let claim = terms.claim_by(by, tables.now_ms(terms.at_ms).await?);
            let last = tables.last_process(&by.name).await?;
            last.check_current((&tables.named.0, &by.name), by.incarnation)?;
            let mut all = ids(players);
            all.sort_unstable();
            let known = tables.read(&all).await?;
            let new = all.iter().copied().filter(|id| !known.contains_key(id));
            tables.add_rows(new.collect()).await?;
            let mut rows = tables.lock_free(&all).await?;
            let (mut granted, mut epochs) = (Vec::new(), Vec::new());
            let mut bounded = Vec::new();
            let mut claimed = Vec::with_capacity(players.len());
            for &player in players {
                let id = player.0 as i64;
                let Some((lease, revision, tick)) = rows.get_mut(&id) else {
                    let cause = format!("the row of player {} is locked by another connection", player.0);
                    let error = tables.named.store_error(StoreErrorKind::Locked, cause);
                    claimed.push(ClaimResult::Unreadable { player, error });
                    continue;
                };
                if lease.clamp_expiry(claim.now_ms) {
                    bounded.push(id);
                }
                claimed.push(match lease.claim(claim) {
                    Ok(epoch) => {
                        granted.push(id);
                        epochs.push(epoch as i64);
                        let record = PlayerRecord {
                            revision: *revision,
                            tick: *tick,
                            ..PlayerRecord::new(player)
                        };
                        ClaimResult::Granted { epoch, record }
                    }
                    Err(refusal) => ClaimResult::Refused { player, refusal },
                });
            }
            let now_ms = claim.now_ms as i64;
            if !bounded.is_empty() {
                let statement = "UPDATE player SET expires_ms = $2 + lease_ms WHERE player = ANY($1)";
                tables.execute(statement, &[&bounded, &now_ms]).await?;
            }
            let statement = "UPDATE player SET epoch = new.epoch, server = $3, incarnation = $4, expires_ms = $5, lease_ms = $6
                FROM unnest($1::BIGINT[], $2::BIGINT[]) AS new (player, epoch) WHERE player.player = new.player";
            let until_ms = claim.now_ms.saturating_add(terms.lease_ms);
            let [incarnation, until_ms, lease_ms] =
                [by.incarnation, until_ms, terms.lease_ms].map(|number| number as i64);
            tables
                .execute(statement, &[&granted, &epochs, &by.name, &incarnation, &until_ms, &lease_ms])
                .await?;
            let mut values = tables.values(&granted).await?;
            for claimed in &mut claimed {
                if let ClaimResult::Granted { record, .. } = claimed {
                    record.values = values
                        .remove(&(record.player.0 as i64))
                        .unwrap_or_default();
                }
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
        self.in_transaction(async |tables| {
            let (last, refused_then) = tables.last_batch(by).await?;
            let now_ms = tables.now_ms(at_ms).await?;
            let is_done = last == batch.number;
            let saves = batch.saves().iter();
            let all: Vec<i64> = saves.map(|save| save.player.0 as i64).collect();
            let rows = tables.lock(&all).await?;
            let revision = |player: PlayerId| rows.get(&(player.0 as i64)).map_or(0, |row| row.1);
            let is_fenced = |save: &PlayerSave| {
                let row = rows.get(&(save.player.0 as i64));
                !row.is_some_and(|(lease, ..)| lease.allows_write(save.epoch))
            };
            let taken = batch.saves().iter().filter(|save| is_fenced(save));
            let taken = taken.map(|save| save.player).collect();
            if is_done {
                let saves = batch.saves().iter();
                let is_refused: Vec<bool> = saves
                    .map(|save| refused_then.contains(&(save.player.0 as i64)))
                    .collect();
                return Ok(SaveOutcome::of(batch, &is_refused, taken, revision, Vec::new()));
            }
            let mut faults = Vec::new();
            let mut is_refused = batch.refused_saves::<StoreError>(|save| {
                let is_fenced = is_fenced(save);
                let fault = tables.error_of_save(batch, save).filter(|_| !is_fenced);
                let is_refused = is_fenced || fault.is_some();
                faults.extend(fault.map(|error| (save.player, error)));
                Ok(is_refused)
            })?;
            let more = tables.write(batch, &mut is_refused, now_ms).await?;
            faults.extend(more);
            let outcome = SaveOutcome::of(batch, &is_refused, taken, |player| revision(player) + 1, faults);
            tables.release(batch.releases()).await?;
            let statement = "INSERT INTO server (name, incarnation, batch, tick, saved_ms, refused, seen_ms)
                VALUES ($1, $2, $3, $4, $5, $6, $5)
                ON CONFLICT (name, incarnation) DO UPDATE SET batch = excluded.batch, tick = excluded.tick,
                saved_ms = excluded.saved_ms, refused = excluded.refused, seen_ms = excluded.seen_ms";
            let refused = ids(&outcome.refused);
            let [incarnation, number, tick, saved_ms] =
                [by.incarnation, batch.number, batch.tick, now_ms].map(|number| number as i64);
            tables.execute(statement, &[&by.name, &incarnation, &number, &tick, &saved_ms, &refused]).await?;
            Ok(outcome)
        })
    }

    fn renew(
        &mut self,
        by: &ServerId,
        leases: &[(PlayerId, u64)],
        terms: ClaimTerms,
    ) -> Result<Renewal, StoreError> {
        self.in_transaction(async |tables| {
            let mut players: Vec<i64> = leases.iter().map(|lease| lease.0.0 as i64).collect();
            let mut epochs: Vec<i64> = leases.iter().map(|lease| lease.1 as i64).collect();
            let now_ms = tables.now_ms(terms.at_ms).await?;
            tables.mark_seen(by, now_ms).await?;
            let free = tables.lock_free(&players).await?;
            let mut renewal = Renewal::default();
            if free.len() < players.len() {
                let all = tables.read(&players).await?;
                let is_skipped = |&&(player, epoch): &&(PlayerId, u64)| {
                    let id = player.0 as i64;
                    let row = all.get(&id).filter(|_| !free.contains_key(&id));
                    row.is_some_and(|(lease, ..)| lease.allows_write(epoch) && lease.holder.is_some())
                };
                let skipped = leases.iter().filter(is_skipped);
                renewal.skipped = skipped.map(|lease| lease.0).collect();
                renewal.skipped.sort_unstable();
                let held = leases.iter().filter(|(player, _)| free.contains_key(&(player.0 as i64)));
                (players, epochs) = held.map(|(player, epoch)| (player.0 as i64, *epoch as i64)).unzip();
            }
            let statement = "UPDATE player SET expires_ms = $3, lease_ms = $4
                FROM unnest($1::BIGINT[], $2::BIGINT[]) AS held (player, epoch)
                WHERE player.player = held.player AND player.epoch = held.epoch AND server IS NOT NULL
                RETURNING player.player";
            let until_ms = now_ms.saturating_add(terms.lease_ms);
            let [until_ms, lease_ms] = [until_ms, terms.lease_ms].map(|number| number as i64);
            let kept = tables
                .query(statement, &[&players, &epochs, &until_ms, &lease_ms])
                .await?;
            let kept: BTreeSet<i64> = kept.iter().map(|row| row.get(0)).collect();
            let lost = leases.iter().map(|lease| lease.0).filter(|player| {
                let is_skipped = renewal.skipped.binary_search(player).is_ok();
                !is_skipped && !kept.contains(&(player.0 as i64))
            });
            renewal.lost = lost.collect();
            renewal.lost.sort_unstable();
            Ok(renewal)
        })
    }

    fn lookup(&mut self, players: &[PlayerId]) -> Result<Vec<LookupResult>, StoreError> {
        self.in_transaction(async |tables| {
            // Both statements read the same snapshot.
            let once = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";
            tables.batch_execute(once).await?;
            let statement =
                "SELECT player, revision, tick FROM player WHERE player = ANY($1) AND revision > 0";
            let all = ids(players);
            let rows = tables.query(statement, &[&all]).await?;
            let mut values = tables.values(&all).await?;
            let found: BTreeMap<i64, (i64, i64)> = rows
                .iter()
                .map(|row| (row.get(0), (row.get(1), row.get(2))))
                .collect();
            let records = players.iter().map(|&player| {
                let id = player.0 as i64;
                let Some(&(revision, tick)) = found.get(&id) else {
                    return LookupResult::Missing;
                };
                LookupResult::Found(PlayerRecord {
                    player,
                    revision: revision as u64,
                    tick: tick as u64,
                    values: values.remove(&id).unwrap_or_default(),
                })
            });
            Ok(records.collect())
        })
    }
}
