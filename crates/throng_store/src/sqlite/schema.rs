//! The tables of a store and their migrations.
//!
//! The `application_id` of a file identifies it as a store. Its `user_version` is the number of [`MIGRATIONS`] applied to it. All tables
//! are strict, and can be read with `sqlite3`:
//!
//! ```sql
//! SELECT * FROM player_value WHERE player = 7;   -- stored values of a player, by attribute name
//! SELECT * FROM held_lease;                      -- live players, their servers, and the expiry of leases
//! ```

use rusqlite::{Connection, TransactionBehavior};

/// `thrg`: a store of throng.
pub(super) const APPLICATION_ID: i64 = 0x7468_7267;

/// Each migrates a file to the next version, in its own transaction. Never changed after a release: new migrations are added at the end.
pub(super) const MIGRATIONS: [&str; 3] = [
    "
CREATE TABLE attribute (
    id INTEGER PRIMARY KEY,          -- its number in packets
    name TEXT NOT NULL UNIQUE,
    encoding TEXT NOT NULL           -- how its values are written in packets
) STRICT;
CREATE TABLE player (
    player INTEGER PRIMARY KEY,      -- its id; those from 2^63 on are negative here
    revision INTEGER NOT NULL DEFAULT 0,  -- how often it was saved; 0: it logged in and was not saved yet
    tick INTEGER NOT NULL DEFAULT 0,      -- the server's tick of the last save
    saved_ms INTEGER NOT NULL DEFAULT 0,  -- the Unix time of the last save
    epoch INTEGER NOT NULL DEFAULT 0,     -- the last lease; a save with another one is refused
    server TEXT,                          -- who holds the lease; NULL: nobody
    incarnation INTEGER,                  -- which process of that server
    expires_ms INTEGER NOT NULL DEFAULT 0 -- until when, Unix time
) STRICT;
CREATE TABLE value (
    player INTEGER NOT NULL REFERENCES player,
    attribute INTEGER NOT NULL REFERENCES attribute,
    value ANY NOT NULL,              -- a number or text as it is; a blob is the bytes of the packet
    PRIMARY KEY (player, attribute)
) STRICT, WITHOUT ROWID;
CREATE TABLE server (
    name TEXT NOT NULL,
    incarnation INTEGER NOT NULL,    -- counts the processes of that name
    batch INTEGER NOT NULL DEFAULT 0,     -- its last transaction
    tick INTEGER NOT NULL DEFAULT 0,      -- the tick that it saved with it
    saved_ms INTEGER NOT NULL DEFAULT 0,
    refused TEXT NOT NULL DEFAULT '',     -- the players that were refused in it
    PRIMARY KEY (name, incarnation)
) STRICT, WITHOUT ROWID;
",
    "
CREATE VIEW player_value AS
    SELECT value.player, attribute.name, value.value
    FROM value JOIN attribute ON attribute.id = value.attribute;
CREATE VIEW held_lease AS
    SELECT player, server, incarnation, epoch, expires_ms,
        datetime(expires_ms / 1000, 'unixepoch') AS expires
    FROM player WHERE server IS NOT NULL;
",
    "
ALTER TABLE player ADD COLUMN lease_ms INTEGER NOT NULL DEFAULT 60000;  -- for how long the lease was granted
ALTER TABLE server ADD COLUMN seen_ms INTEGER NOT NULL DEFAULT 0;       -- when it enrolled, saved or renewed last; 0: it ended
ALTER TABLE server ADD COLUMN lease_ms INTEGER NOT NULL DEFAULT 0;      -- for how long its name is in use after that
",
];

/// The version of a file after all migrations.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// The kind of a file, before anything is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// It is empty: nothing was ever written.
    Empty,
    /// A store of this version.
    Store(i64),
    /// A database of another program.
    Foreign,
}

/// Reads the header of a file.
pub(super) fn kind_of(connection: &Connection) -> rusqlite::Result<FileKind> {
    // One transaction, in case another process migrates the file.
    let connection = connection.unchecked_transaction()?;
    let pragma = |name: &str| {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0))
    };
    let (id, version) = (pragma("application_id")?, pragma("user_version")?);
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(tables, [], |row| row.get(0))?;
    Ok(match (id, version, tables) {
        (APPLICATION_ID, ..) => FileKind::Store(version),
        (0, 0, 0) => FileKind::Empty,
        _ => FileKind::Foreign,
    })
}

/// Migrates a store, one transaction per step: after a crash it continues from there.
pub(super) fn migrate(connection: &mut Connection, from: i64) -> rusqlite::Result<()> {
    for (step, migration) in MIGRATIONS.iter().enumerate().skip(from.max(0) as usize) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have done it already.
        let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version == step as i64 {
            transaction.execute_batch(migration)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", step as i64 + 1)?;
        }
        transaction.commit()?;
    }
    Ok(())
}
