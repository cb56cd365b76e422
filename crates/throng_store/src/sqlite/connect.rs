//! Opens the file of a store: flags, journal mode, migration.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::errors::NamedFile;
use super::schema::{self, FileKind};
use super::store::SqliteStore;
use crate::error::{StoreError, StoreErrorKind};
use crate::store::{StoreBackend, StoreFactory};

/// How long another process may lock the file before that is an error.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of cached prepared statements.
const STATEMENTS_MAX: usize = 32;

/// Opens a store in a file, or in memory.
#[derive(Clone, Debug)]
pub struct SqliteSource {
    path: PathBuf,
    /// Keeps a database in memory alive while no store has it open.
    keep_alive: Option<Arc<Mutex<Connection>>>,
    /// Whether the file was opened before: then it is not created again if it is missing.
    was_open: bool,
}

impl SqliteSource {
    /// Uses this file, which is created if it does not exist. `:memory:` is a database in memory, which lives as long as this source, its
    /// clones and the stores that they opened.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            keep_alive: None,
            was_open: false,
        }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl StoreFactory for SqliteSource {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        if self.path == Path::new(MEMORY) && self.keep_alive.is_none() {
            static NTH: AtomicU64 = AtomicU64::new(0);
            let nth = NTH.fetch_add(1, Ordering::Relaxed);
            self.path = PathBuf::from(format!("file:throng-{nth}?mode=memory&cache=shared"));
            self.keep_alive = Some(Arc::new(Mutex::new(connect(&self.path, true)?)));
        }
        let store = SqliteStore::open_with(&self.path, !self.was_open)?;
        self.was_open = true;
        Ok(Box::new(store))
    }
}

/// The path of a database in memory.
const MEMORY: &str = ":memory:";

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
