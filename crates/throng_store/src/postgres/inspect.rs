//! Inspection of a store on a server.

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;
use throng_protocol::wire::Encoding;
use tokio_postgres::{Error, IsolationLevel, Transaction};

use super::connection::PostgresConnection;
use super::display::to_text;
use super::schema;
use super::store::{PostgresSource, open_tables, require_current, usable_version};
use crate::encodings::encoding_of;
use crate::error::StoreError;
use crate::inspection::{DisplayValue, PROBLEMS_MAX, StoreInspection, StoredRow};

/// Rows per fetch.
const ROWS: i32 = 1_000;

/// The commands of an operator. Servers may keep running: the data is read as of one moment, and reading blocks no server.
impl PostgresSource {
    /// Migrates the tables to the newest version, and creates missing ones. Returns the name of the store and the versions before and
    /// after. The role needs the right to create tables; the role of a server only needs to use the schema:
    ///
    /// ```sql
    /// GRANT USAGE ON SCHEMA throng TO game;
    /// GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA throng TO game;
    /// ```
    ///
    /// # Errors
    /// [`StoreError`] if the schema belongs to another program, or cannot be written.
    pub fn migrate(&self) -> Result<(String, i64, i64), StoreError> {
        let mut connection = self.connect()?;
        let before = connection.long_call(async |client, named| {
            open_tables(client, &self.schema, named, true).await
        })?;
        Ok((connection.named.0, before, schema::VERSION))
    }

    /// Reads a whole store, and reports its contents and problems. O(store).
    ///
    /// # Errors
    /// [`StoreError`] if it is no store of the newest version, or cannot be read.
    pub fn inspect(&self) -> Result<StoreInspection, StoreError> {
        self.read_snapshot(inspect_tables)
    }

    /// Passes every player, as stored, to `show`, by ascending id (ids from 2^63 on come first), until `show` returns `false`.
    ///
    /// # Errors
    /// [`StoreError`] if it is no store of the newest version, or cannot be read.
    pub fn dump(&self, mut show: impl FnMut(StoredRow) -> bool) -> Result<(), StoreError> {
        self.read_snapshot(async |tables| dump_all(tables, &mut show).await)
    }

    /// A connection whose search path is the tables of this version.
    pub(super) fn open_tables(&self) -> Result<PostgresConnection, StoreError> {
        let mut connection = self.connect()?;
        connection.long_call(async |client, named| {
            open_tables(client, &self.schema, named, self.migrates).await
        })?;
        Ok(connection)
    }

    fn connect(&self) -> Result<PostgresConnection, StoreError> {
        PostgresConnection::open(&self.url, &self.schema, self.limit.clone())
    }

    /// Runs `work` in a read-only transaction with a snapshot of one moment.
    fn read_snapshot<T>(
        &self,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        self.connect()?.long_call(async |client, named| {
            let fault = |error| named.error(error);
            let reading = client.build_transaction().read_only(true);
            let reading = reading.isolation_level(IsolationLevel::RepeatableRead);
            let tables = reading.start().await.map_err(fault)?;
            let kind = schema::kind_of(&tables, &self.schema);
            require_current(usable_version(kind.await.map_err(fault)?, named)?, named)?;
            let path = format!("SET LOCAL search_path TO {}", self.schema);
            tables.batch_execute(&path).await.map_err(fault)?;
            work(&tables).await.map_err(fault)
        })
    }
}

/// The attributes of a store by number: names, and encodings if they are known.
async fn attributes(
    tables: &Transaction<'_>,
) -> Result<BTreeMap<i32, (String, String, Option<Encoding>)>, Error> {
    let rows = tables
        .query("SELECT id, name, encoding FROM attribute", &[])
        .await?;
    let attributes = rows.iter().map(|row| {
        let encoding: String = row.get(2);
        let known = encoding_of(&encoding);
        (row.get(0), (row.get(1), encoding, known))
    });
    Ok(attributes.collect())
}

async fn inspect_tables(tables: &Transaction<'_>) -> Result<StoreInspection, Error> {
    let mut findings = StoreInspection {
        version: schema::VERSION,
        ..StoreInspection::default()
    };
    // Foreign keys exclude orphans, unless they were disabled.
    let orphans = "SELECT count(*) FROM value LEFT JOIN player ON player.player = value.player
        LEFT JOIN attribute ON attribute.id = value.attribute WHERE player.player IS NULL OR attribute.id IS NULL";
    let orphans: i64 = tables.query_one(orphans, &[]).await?.get(0);
    if orphans > 0 {
        let line = format!("{orphans} values of players or attributes that are not there");
        findings.problems.push(line);
    }
    let attributes = attributes(tables).await?;
    for (&number, (name, encoding, known)) in &attributes {
        if known.is_none() {
            let line = format!("attribute `{name}`: no encoding `{encoding}` is known");
            findings.problems.push(line);
        }
        match u16::try_from(number) {
            Ok(id) => drop(findings.attributes.insert(id, name.clone())),
            Err(_) => findings.problems.push(format!(
                "attribute `{name}`: expected a number up to 65535, found {number}"
            )),
        }
    }
    inspect_values(tables, &attributes, &mut findings).await?;
    let count = "SELECT count(*) FROM player WHERE revision > 0";
    findings.players = tables.query_one(count, &[]).await?.get::<_, i64>(0) as u64;
    let leases = "SELECT server, count(*), max(expires_ms) FROM player WHERE server IS NOT NULL GROUP BY server";
    for row in tables.query(leases, &[]).await? {
        let (count, last) = (row.get::<_, i64>(1) as u64, row.get::<_, i64>(2) as u64);
        findings.leases.insert(row.get(0), (count, last));
    }
    Ok(findings)
}

/// Counts values, and finds those whose readable form differs from the stored bytes: the wrong column was edited.
async fn inspect_values(
    tables: &Transaction<'_>,
    attributes: &BTreeMap<i32, (String, String, Option<Encoding>)>,
    findings: &mut StoreInspection,
) -> Result<(), Error> {
    let values = "SELECT player, attribute, value, shown FROM value";
    let values = tables.bind(values, &[]).await?;
    loop {
        let rows = tables.query_portal(&values, ROWS).await?;
        if rows.is_empty() {
            return Ok(());
        }
        findings.values += rows.len() as u64;
        for row in rows {
            let (player, bytes) = (row.get::<_, i64>(0) as u64, row.get::<_, &[u8]>(2));
            let Some((name, _, Some(encoding))) = attributes.get(&row.get(1)) else {
                continue;
            };
            let (found, expected) = (row.get::<_, Option<&str>>(3), to_text(*encoding, bytes));
            if found != expected.as_deref() && findings.problems.len() < PROBLEMS_MAX {
                let named = |shown: Option<&str>| {
                    shown.map_or_else(|| "nothing".to_owned(), |shown| format!("`{shown}`"))
                };
                let (found, expected) = (named(found), named(expected.as_deref()));
                findings.problems.push(format!(
                    "player {player}: `{name}` is shown as {found}, and kept as {expected}, which counts"
                ));
            }
        }
    }
}

async fn dump_all(
    tables: &Transaction<'_>,
    show: &mut impl FnMut(StoredRow) -> bool,
) -> Result<(), Error> {
    let attributes = attributes(tables).await?;
    let players = "SELECT player, revision, tick, saved_ms, epoch, server, incarnation, expires_ms FROM player ORDER BY player";
    let players = tables.bind(players, &[]).await?;
    let values = "SELECT player, attribute, value FROM value WHERE player = ANY($1)";
    let values = tables.prepare(values).await?;
    loop {
        let rows = tables.query_portal(&players, ROWS).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let mut of_players: BTreeMap<i64, BTreeMap<String, DisplayValue>> = BTreeMap::new();
        for row in tables.query(&values, &[&ids]).await? {
            if let Some((name, _, encoding)) = attributes.get(&row.get(1)) {
                let value = DisplayValue::from_bytes(*encoding, row.get(2));
                let of_player = of_players.entry(row.get(0)).or_default();
                of_player.insert(name.clone(), value);
            }
        }
        for row in rows {
            let number = |column| row.get::<_, i64>(column) as u64;
            let (server, incarnation): (Option<String>, Option<i64>) = (row.get(5), row.get(6));
            let lease = server.zip(incarnation);
            let shown = StoredRow {
                player: PlayerId(number(0)),
                revision: number(1),
                tick: number(2),
                saved_ms: number(3),
                epoch: number(4),
                lease: lease.map(|(server, incarnation)| (server, incarnation as u64, number(7))),
                values: of_players.remove(&row.get(0)).unwrap_or_default(),
            };
            if !show(shown) {
                return Ok(());
            }
        }
    }
}
