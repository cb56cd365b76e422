//! The tables of a store and their migrations.
//!
//! They are in a separate schema, and can be read with `psql`:
//!
//! ```sql
//! SELECT * FROM throng.player_value WHERE player = 7;   -- stored values of a player, by attribute name
//! SELECT * FROM throng.held_lease;                      -- live players, their servers, and the expiry of leases
//! ```

use tokio_postgres::{Client, Error, Transaction};

/// The default schema.
pub(super) const SCHEMA: &str = "throng";

/// Each migrates a schema to the next version. Never changed after a release: new migrations are added at the end.
const MIGRATIONS: [&str; 11] = ["
CREATE TABLE attribute (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    encoding TEXT NOT NULL
);
COMMENT ON COLUMN attribute.id IS 'its number in packets';
COMMENT ON COLUMN attribute.encoding IS 'how its values are written in packets';
CREATE TABLE player (
    player BIGINT PRIMARY KEY,
    revision BIGINT NOT NULL DEFAULT 0,
    tick BIGINT NOT NULL DEFAULT 0,
    saved_ms BIGINT NOT NULL DEFAULT 0,
    epoch BIGINT NOT NULL DEFAULT 0,
    server TEXT,
    incarnation BIGINT,
    expires_ms BIGINT NOT NULL DEFAULT 0
);
COMMENT ON COLUMN player.player IS 'its id; those from 2^63 on are negative here';
COMMENT ON COLUMN player.revision IS 'how often it was saved; 0: it logged in and was not saved yet';
COMMENT ON COLUMN player.tick IS 'the tick of the server at the last save';
COMMENT ON COLUMN player.saved_ms IS 'the Unix time of the server at the last save';
COMMENT ON COLUMN player.epoch IS 'the last lease; a save with another one is refused';
COMMENT ON COLUMN player.server IS 'who holds the lease; NULL: nobody';
COMMENT ON COLUMN player.incarnation IS 'which process of that server';
COMMENT ON COLUMN player.expires_ms IS 'until when, Unix time';
CREATE TABLE value (
    player BIGINT NOT NULL REFERENCES player,
    attribute INTEGER NOT NULL REFERENCES attribute,
    value BYTEA NOT NULL,
    shown TEXT,
    PRIMARY KEY (player, attribute)
);
COMMENT ON COLUMN value.value IS 'the bytes of the packet: what counts';
COMMENT ON COLUMN value.shown IS 'the same for people';
CREATE TABLE server (
    name TEXT NOT NULL,
    incarnation BIGINT NOT NULL,
    batch BIGINT NOT NULL DEFAULT 0,
    tick BIGINT NOT NULL DEFAULT 0,
    saved_ms BIGINT NOT NULL DEFAULT 0,
    refused BIGINT[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (name, incarnation)
);
COMMENT ON COLUMN server.incarnation IS 'counts the processes of that name';
COMMENT ON COLUMN server.batch IS 'its last transaction';
COMMENT ON COLUMN server.refused IS 'the players that were refused in it';
CREATE VIEW player_value AS
    SELECT value.player, attribute.name, value.shown
    FROM value JOIN attribute ON attribute.id = value.attribute;
CREATE VIEW held_lease AS
    SELECT player, server, incarnation, epoch, expires_ms, to_timestamp(expires_ms / 1000.0) AS expires
    FROM player WHERE server IS NOT NULL;
", "
ALTER TABLE player ADD COLUMN lease_ms BIGINT NOT NULL DEFAULT 60000;
COMMENT ON COLUMN player.lease_ms IS 'for how long the lease was granted';
COMMENT ON COLUMN player.saved_ms IS 'the Unix time of the last save';
ALTER TABLE server ADD COLUMN seen_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE server ADD COLUMN lease_ms BIGINT NOT NULL DEFAULT 0;
COMMENT ON COLUMN server.seen_ms IS 'when it enrolled, saved or renewed last; 0: it ended';
COMMENT ON COLUMN server.lease_ms IS 'for how long its name is in use after that';
", include_str!("cluster.sql"), concat!(include_str!("cluster_scenes.sql"), include_str!("cluster_matches.sql")),
    concat!(include_str!("cluster_groups.sql"), include_str!("cluster_overview.sql")), include_str!("cluster_batches.sql"),
    include_str!("cluster_reports.sql"), include_str!("cluster_unheard.sql"), include_str!("cluster_steady.sql"),
    include_str!("cluster_plans.sql"), include_str!("cluster_aborts.sql")];

/// The version of a schema after all migrations.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// The state of a schema, before anything is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaKind {
    /// It does not exist, or has no table.
    Empty,
    /// A store of this version.
    Store(i64),
    /// A store of a newer version than this program supports.
    Newer(i64),
    /// A schema of another program: it has tables, but no version.
    Foreign,
}

/// Determines the state of a schema. `schema` is a validated name.
pub(super) async fn kind_of(
    transaction: &Transaction<'_>,
    schema: &str,
) -> Result<SchemaKind, Error> {
    // Not the information schema, which hides tables that this role may not read.
    let tables = "SELECT count(*), count(*) FILTER (WHERE relname = 'store_version')
        FROM pg_catalog.pg_class WHERE relkind = ANY('{r,v,m,f,p}') AND relnamespace =
            (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)";
    let tables = transaction.query_one(tables, &[&schema]).await?;
    let (tables, versions): (i64, i64) = (tables.get(0), tables.get(1));
    if (tables, versions) == (0, 0) {
        return Ok(SchemaKind::Empty);
    }
    if versions == 0 {
        return Ok(SchemaKind::Foreign);
    }
    let version = format!("SELECT coalesce(max(version), 0) FROM {schema}.store_version");
    let version: i64 = transaction.query_one(&version, &[]).await?.get(0);
    Ok(if version > VERSION {
        SchemaKind::Newer(version)
    } else {
        SchemaKind::Store(version)
    })
}

/// Determines the state of a schema, without the right to create anything. `schema` is a validated name.
pub(super) async fn read(client: &mut Client, schema: &str) -> Result<SchemaKind, Error> {
    let transaction = client.build_transaction().read_only(true).start().await?;
    let kind = kind_of(&transaction, schema).await?;
    transaction.commit().await?;
    Ok(kind)
}

/// Creates or migrates a schema in one transaction, and returns its state before. Servers that start at the same time do so one after the
/// other. `schema` is a validated name.
pub(super) async fn migrate(client: &mut Client, schema: &str) -> Result<SchemaKind, Error> {
    let transaction = client.transaction().await?;
    // A migration may take long, and another process waits for it.
    transaction
        .batch_execute("SET LOCAL lock_timeout = '10min'")
        .await?;
    // `thrg`: all migrations wait for this lock.
    transaction
        .execute("SELECT pg_advisory_xact_lock(1953002087)", &[])
        .await?;
    let before = kind_of(&transaction, schema).await?;
    let is_there = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1";
    let is_there: i64 = transaction.query_one(is_there, &[&schema]).await?.get(0);
    if is_there == 0 {
        let create = format!("CREATE SCHEMA {schema}");
        transaction.batch_execute(&create).await?;
    }
    let path = format!("SET LOCAL search_path TO {schema}");
    transaction.batch_execute(&path).await?;
    let version = match before {
        SchemaKind::Empty => {
            let create = "CREATE TABLE store_version (version BIGINT NOT NULL); INSERT INTO store_version VALUES (0)";
            transaction.batch_execute(create).await?;
            0
        }
        SchemaKind::Store(version) => version,
        SchemaKind::Newer(_) | SchemaKind::Foreign => return Ok(before),
    };
    for migration in MIGRATIONS.iter().skip(version.max(0) as usize) {
        transaction.batch_execute(migration).await?;
    }
    if version < VERSION {
        let update = "UPDATE store_version SET version = $1";
        transaction.execute(update, &[&VERSION]).await?;
    }
    transaction.commit().await?;
    Ok(before)
}
