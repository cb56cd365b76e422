//! The factory of stores in a file: it opens the file again after an error.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;

use super::connect::connect;
use super::store::SqliteStore;
use crate::error::StoreError;
use crate::store::{StoreBackend, StoreFactory};

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
