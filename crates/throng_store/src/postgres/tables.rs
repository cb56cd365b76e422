//! The statements of a store's calls, in their transaction.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::FixedState;
use throng_core::ids::PlayerId;
use throng_protocol::wire::Encoding;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement, Transaction};
use tracing::warn;

use super::display::to_text;
use super::errors::NamedDatabase;
use crate::error::{StoreError, StoreErrorKind};
use crate::lease::{LeaseState, ServerId};
use crate::registration::LastProcess;
use crate::save_batch::{PlayerSave, SaveBatch};

/// How long a claim waits for rows that other transactions add, and how long everything else waits.
const SHORT_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '50ms'";
const LONG_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '1s'";

/// How often a claim halves a part that contains a locked row, so that it ends within the limit of a call.
const SPLITS_MAX: u32 = 24;

/// The context of a call.
pub(super) struct PostgresTables<'c> {
    pub transaction: Transaction<'c>,
    pub named: &'c NamedDatabase,
    pub encodings: &'c HashMap<u16, Encoding, FixedState>,
    pub statements: &'c Statements,
}

/// Prepared statements, by their text.
pub(super) type Statements = RefCell<HashMap<&'static str, Statement, FixedState>>;

/// Parameters of a statement.
pub(super) type Values<'v> = &'v [&'v (dyn ToSql + Sync)];

/// The lease of a player, the revision, and the tick.
pub(super) type PostgresPlayer = (LeaseState, u64, u64);

/// Values as columns, for statements that take arrays.
#[derive(Default)]
struct ValueColumns {
    players: Vec<i64>,
    attributes: Vec<i32>,
    values: Vec<Vec<u8>>,
    display: Vec<Option<String>>,
}

pub(super) fn ids(players: &[PlayerId]) -> Vec<i64> {
    players.iter().map(|player| player.0 as i64).collect()
}

impl PostgresTables<'_> {
    /// A statement, prepared once per connection.
    pub async fn prepared(&self, text: &'static str) -> Result<Statement, StoreError> {
        let known = self.statements.borrow().get(text).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let prepared = self.transaction.prepare(text).await;
        let prepared = prepared.map_err(|error| self.named.error(error))?;
        self.statements.borrow_mut().insert(text, prepared.clone());
        Ok(prepared)
    }

    pub async fn query(
        &self,
        text: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepared(text).await?;
        let rows = self.transaction.query(&statement, values).await;
        rows.map_err(|error| self.named.error(error))
    }

    pub async fn execute(&self, text: &'static str, values: Values<'_>) -> Result<(), StoreError> {
        self.query(text, values).await.map(|_| ())
    }

    /// Executes statements without parameters and results.
    pub async fn batch_execute(&self, text: &str) -> Result<(), StoreError> {
        let said = self.transaction.batch_execute(text).await;
        said.map_err(|error| self.named.error(error))
    }

    /// The rows of players, locked until the end of the transaction. By ascending id, to avoid deadlocks.
    pub async fn lock(&self, players: &[i64]) -> Result<BTreeMap<i64, PostgresPlayer>, StoreError> {
        let statement =
            "SELECT player, revision, tick, epoch, server, incarnation, expires_ms, lease_ms FROM player
            WHERE player = ANY($1) ORDER BY player FOR UPDATE";
        self.rows(statement, players).await
    }

    /// Like [`lock`](Self::lock), without the rows that another transaction has locked.
    pub async fn lock_free(
        &self,
        players: &[i64],
    ) -> Result<BTreeMap<i64, PostgresPlayer>, StoreError> {
        let statement =
            "SELECT player, revision, tick, epoch, server, incarnation, expires_ms, lease_ms FROM player
            WHERE player = ANY($1) ORDER BY player FOR UPDATE SKIP LOCKED";
        self.rows(statement, players).await
    }

    /// The committed rows of players, locked or not.
    pub async fn read(&self, players: &[i64]) -> Result<BTreeMap<i64, PostgresPlayer>, StoreError> {
        let statement =
            "SELECT player, revision, tick, epoch, server, incarnation, expires_ms, lease_ms FROM player
            WHERE player = ANY($1)";
        self.rows(statement, players).await
    }

    pub async fn rows(
        &self,
        statement: &'static str,
        players: &[i64],
    ) -> Result<BTreeMap<i64, PostgresPlayer>, StoreError> {
        let rows = self.query(statement, &[&players]).await?;
        let rows = rows.iter().map(|row| {
            let number = |column| row.get::<_, i64>(column) as u64;
            let (name, incarnation): (Option<String>, Option<i64>) = (row.get(4), row.get(5));
            let holder = name.zip(incarnation).map(|(name, incarnation)| ServerId {
                name,
                incarnation: incarnation as u64,
            });
            let lease = LeaseState {
                epoch: number(3),
                holder,
                expires_ms: number(6),
                lease_ms: number(7),
            };
            (row.get(0), (lease, number(1), number(2)))
        });
        Ok(rows.collect())
    }

    /// The values of players for the registered attributes. Values of other attributes stay stored and are not returned.
    pub async fn values(
        &self,
        players: &[i64],
    ) -> Result<BTreeMap<i64, BTreeMap<u16, Vec<u8>>>, StoreError> {
        let statement = "SELECT player, attribute, value FROM value WHERE player = ANY($1)";
        let rows = self.query(statement, &[&players]).await?;
        let mut values: BTreeMap<i64, BTreeMap<u16, Vec<u8>>> = BTreeMap::new();
        for row in rows {
            let attribute = u16::try_from(row.get::<_, i32>(1)).ok();
            if let Some(id) = attribute.filter(|id| self.encodings.contains_key(id)) {
                values.entry(row.get(0)).or_default().insert(id, row.get(2));
            }
        }
        Ok(values)
    }

    /// The time of the server's clock, which all processes share; tests pass another one.
    pub async fn now_ms(&self, at_ms: Option<u64>) -> Result<u64, StoreError> {
        if let Some(at_ms) = at_ms {
            return Ok(at_ms);
        }
        let statement = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT";
        let rows = self.query(statement, &[]).await?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u64))
    }

    /// The last process of a name, or number 0 if there is none.
    pub async fn last_process(&self, name: &str) -> Result<LastProcess, StoreError> {
        let statement = "SELECT incarnation, seen_ms, lease_ms FROM server WHERE name = $1
            ORDER BY incarnation DESC LIMIT 1";
        let rows = self.query(statement, &[&name]).await?;
        let read = |row: &Row| {
            let number = |column| row.get::<_, i64>(column) as u64;
            LastProcess {
                incarnation: number(0),
                seen_ms: number(1),
                lease_ms: number(2),
            }
        };
        Ok(rows.first().map(read).unwrap_or_default())
    }

    /// Records that a process was seen, or with 0 that it has ended.
    pub async fn mark_seen(&self, server: &ServerId, now_ms: u64) -> Result<(), StoreError> {
        let statement = "UPDATE server SET seen_ms = $3 WHERE name = $1 AND incarnation = $2";
        let (incarnation, now_ms) = (server.incarnation as i64, now_ms as i64);
        self.execute(statement, &[&server.name, &incarnation, &now_ms])
            .await
    }

    /// The number of a server's last batch, and the players refused in it.
    pub async fn last_batch(&self, by: &ServerId) -> Result<(u64, BTreeSet<i64>), StoreError> {
        let statement =
            "SELECT batch, refused FROM server WHERE name = $1 AND incarnation = $2 FOR UPDATE";
        let incarnation = by.incarnation as i64;
        let found = self.query(statement, &[&by.name, &incarnation]).await?;
        let Some(found) = found.first() else {
            return Ok((0, BTreeSet::new()));
        };
        let refused: Vec<i64> = found.get(1);
        Ok((found.get::<_, i64>(0) as u64, refused.into_iter().collect()))
    }

    /// Validates a save before anything is written.
    pub fn error_of_save(&self, batch: &SaveBatch, save: &PlayerSave) -> Option<StoreError> {
        let mut written = batch.values(save).filter(|(_, value)| value.is_some());
        let (unknown, _) = written.find(|(id, _)| !self.encodings.contains_key(id))?;
        let cause = format!("attribute {unknown} is not registered in this store");
        Some(
            self.named
                .store_error(StoreErrorKind::AttributeMismatch, cause),
        )
    }

    /// Writes the saves of a batch that are not refused. Saves that the store rejects are refused, together with all that are joined with
    /// them, and the reason is recorded.
    pub async fn write(
        &mut self,
        batch: &SaveBatch,
        is_refused: &mut [bool],
        now_ms: u64,
    ) -> Result<Vec<(PlayerId, StoreError)>, StoreError> {
        let all: Vec<usize> = (0..is_refused.len())
            .filter(|&place| !is_refused[place])
            .collect();
        match self.try_write(batch, &all, now_ms).await? {
            Ok(()) => return Ok(Vec::new()),
            Err(error) => warn!(%error, "save batch rejected: each group is retried alone"),
        }
        let mut faults = Vec::new();
        for group in batch.groups() {
            if is_refused[group[0]] {
                continue;
            }
            if let Err(error) = self.try_write(batch, &group, now_ms).await? {
                faults.push((batch.saves()[group[0]].player, error));
                group.iter().for_each(|&place| is_refused[place] = true);
            }
        }
        Ok(faults)
    }

    /// Writes some saves, or none of them if one is rejected: then it returns the reason.
    pub async fn try_write(
        &mut self,
        batch: &SaveBatch,
        places: &[usize],
        now_ms: u64,
    ) -> Result<Result<(), StoreError>, StoreError> {
        let named = self.named;
        let inner = PostgresTables {
            transaction: self
                .transaction
                .transaction()
                .await
                .map_err(|error| named.error(error))?,
            named,
            encodings: self.encodings,
            statements: self.statements,
        };
        match inner.write_all(batch, places, now_ms).await {
            Ok(()) => {
                let released = inner.transaction.commit().await;
                released.map_err(|error| named.error(error))?;
                Ok(Ok(()))
            }
            Err(error) if error.kind.affects_one_player() => {
                let undone = inner.transaction.rollback().await;
                undone.map_err(|error| named.error(error))?;
                Ok(Err(error))
            }
            Err(error) => Err(error),
        }
    }

    pub async fn write_all(
        &self,
        batch: &SaveBatch,
        places: &[usize],
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let (mut players, mut ticks) = (Vec::new(), Vec::new());
        let (mut written, mut removed) = (ValueColumns::default(), ValueColumns::default());
        for save in places.iter().map(|&place| &batch.saves()[place]) {
            let player = save.player.0 as i64;
            players.push(player);
            ticks.push(save.tick as i64);
            for (id, value) in batch.values(save) {
                let columns = match value {
                    Some(_) => &mut written,
                    None => &mut removed,
                };
                columns.players.push(player);
                columns.attributes.push(i32::from(id));
                if let Some(bytes) = value {
                    let encoding = self.encodings.get(&id);
                    columns.values.push(bytes.to_vec());
                    columns
                        .display
                        .push(encoding.and_then(|&encoding| to_text(encoding, bytes)));
                }
            }
        }
        let statement = "UPDATE player SET revision = revision + 1, tick = new.tick, saved_ms = $3
            FROM unnest($1::BIGINT[], $2::BIGINT[]) AS new (player, tick) WHERE player.player = new.player";
        let saved_ms = now_ms as i64;
        self.execute(statement, &[&players, &ticks, &saved_ms])
            .await?;
        if !removed.players.is_empty() {
            let statement = "DELETE FROM value USING unnest($1::BIGINT[], $2::INTEGER[]) AS gone (player, attribute)
                WHERE value.player = gone.player AND value.attribute = gone.attribute";
            self.execute(statement, &[&removed.players, &removed.attributes])
                .await?;
        }
        if !written.players.is_empty() {
            let statement = "INSERT INTO value (player, attribute, value, shown)
                SELECT * FROM unnest($1::BIGINT[], $2::INTEGER[], $3::BYTEA[], $4::TEXT[])
                ON CONFLICT (player, attribute) DO UPDATE SET value = excluded.value, shown = excluded.shown";
            let ValueColumns {
                players,
                attributes,
                values,
                display: shown,
            } = &written;
            self.execute(statement, &[players, attributes, values, shown])
                .await?;
        }
        Ok(())
    }

    /// Adds rows of new players. A row that another transaction is adding is skipped: a part that contains one is halved until it is found.
    pub async fn add_rows(&mut self, players: Vec<i64>) -> Result<(), StoreError> {
        if players.is_empty() {
            return Ok(());
        }
        self.batch_execute(SHORT_LOCK_TIMEOUT).await?;
        let (mut parts, mut splits) = (vec![players], 0);
        while let Some(part) = parts.pop() {
            let error = match self.try_add_rows(&part).await? {
                Ok(()) => continue,
                Err(error) => error,
            };
            if part.len() == 1 || splits == SPLITS_MAX {
                warn!(%error, count = part.len(), "rows of new players not added: the claims are refused");
                continue;
            }
            splits += 1;
            let (one, other) = part.split_at(part.len() / 2);
            parts.extend([one.to_vec(), other.to_vec()]);
        }
        self.batch_execute(LONG_LOCK_TIMEOUT).await
    }

    /// Adds rows, or none of them if one is locked: then it returns the reason.
    pub async fn try_add_rows(
        &mut self,
        players: &[i64],
    ) -> Result<Result<(), StoreError>, StoreError> {
        let named = self.named;
        let fault = |error| named.error(error);
        let inner = PostgresTables {
            transaction: self.transaction.transaction().await.map_err(fault)?,
            named,
            encodings: self.encodings,
            statements: self.statements,
        };
        let statement =
            "INSERT INTO player (player) SELECT unnest($1::BIGINT[]) ON CONFLICT DO NOTHING";
        match inner.execute(statement, &[&players]).await {
            Ok(()) => Ok(Ok(inner.transaction.commit().await.map_err(fault)?)),
            Err(error) if error.kind == StoreErrorKind::Locked => {
                inner.transaction.rollback().await.map_err(fault)?;
                Ok(Err(error))
            }
            Err(error) => Err(error),
        }
    }

    /// Releases leases that still have these epochs.
    pub async fn release(&self, releases: &[(PlayerId, u64)]) -> Result<(), StoreError> {
        if releases.is_empty() {
            return Ok(());
        }
        let players: Vec<i64> = releases.iter().map(|release| release.0.0 as i64).collect();
        let epochs: Vec<i64> = releases.iter().map(|release| release.1 as i64).collect();
        self.lock(&players).await?;
        let statement = "UPDATE player SET server = NULL, incarnation = NULL
            FROM unnest($1::BIGINT[], $2::BIGINT[]) AS gone (player, epoch)
            WHERE player.player = gone.player AND player.epoch = gone.epoch";
        self.execute(statement, &[&players, &epochs]).await
    }
}
