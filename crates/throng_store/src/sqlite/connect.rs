//! Opens the file of a store: flags, journal mode, migration.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::errors::NamedFile;
use super::schema::{self, FileKind};
use crate::error::{StoreError, StoreErrorKind};

/// How long another process may lock the file before that is an error.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of cached prepared statements.
const STATEMENTS_MAX: usize = 32;

/// Opens a connection to a store's file, and migrates its tables.
///
/// # Errors
/// [`StoreError`] if the file is no store, or cannot be written.
pub(super) fn connect(path: &Path, may_make: bool) -> Result<Connection, StoreError> {
    let named = NamedFile(path);
    // The superuser could still write it, but the file was marked read-only on purpose.
    if fs::metadata(path).is_ok_and(|file| file.permissions().readonly()) {
        return Err(named.store_error(StoreErrorKind::ReadOnly, "the file is marked read-only"));
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, may_make);
    let open = || -> rusqlite::Result<(Connection, FileKind)> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let kind = schema::kind_of(&connection)?;
        Ok((connection, kind))
    };
    let (mut connection, kind) = open().map_err(|error| named.error(error))?;
    let version = match kind {
        FileKind::Empty if !may_make => {
            let cause = "the file is empty, and the store that was open here is not";
            return Err(named.store_error(StoreErrorKind::Unreachable, cause));
        }
        FileKind::Empty => 0,
        FileKind::Store(version) if version <= schema::VERSION => version,
        FileKind::Store(found) => {
            let known = schema::VERSION;
            return Err(named.store_error(
                StoreErrorKind::NewerSchema { found, known },
                "it is left as it is",
            ));
        }
        FileKind::Foreign => {
            return Err(named.store_error(
                StoreErrorKind::NotAPlayerStore,
                "a database of another program",
            ));
        }
    };
    let mut prepare = || -> rusqlite::Result<()> {
        // The mode is stored in the file; a database in memory has its own mode.
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        })?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        schema::migrate(&mut connection, version)
    };
    prepare().map_err(|error| named.error(error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}
