//! Converts errors of the server to store errors.

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::error::{StoreError, StoreErrorKind};

/// The name of a database in errors, without its password.
#[derive(Clone, Debug)]
pub(super) struct NamedDatabase(pub String);

impl NamedDatabase {
    pub fn store_error(&self, fault: StoreErrorKind, cause: impl ToString) -> StoreError {
        StoreError {
            store: self.0.clone(),
            kind: fault,
            cause: cause.to_string(),
        }
    }

    pub fn error(&self, error: Error) -> StoreError {
        let fault = error.code().map_or(StoreErrorKind::Unreachable, error_kind);
        let mut cause = error.to_string();
        if let Some(database_error) = error.as_db_error() {
            cause = database_error.message().to_owned();
            cause.extend(database_error.detail().map(|detail| format!(": {detail}")));
        } else if let Some(source) = std::error::Error::source(&error) {
            cause = format!("{cause}: {source}");
        }
        self.store_error(fault, cause)
    }
}

fn error_kind(state: &SqlState) -> StoreErrorKind {
    let locked = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        // Two processes of one name that start at the same time.
        SqlState::UNIQUE_VIOLATION,
    ];
    let read_only = [
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    let full = [SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY];
    let corrupt = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED];
    let foreign = [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_COLUMN];
    let is_one_of = |states: &[SqlState]| states.contains(state);
    match state.code().get(..2) {
        _ if is_one_of(&locked) => StoreErrorKind::Locked,
        _ if is_one_of(&read_only) => StoreErrorKind::ReadOnly,
        _ if is_one_of(&full) => StoreErrorKind::DiskFull,
        _ if is_one_of(&corrupt) => StoreErrorKind::Corrupt,
        _ if is_one_of(&foreign) => StoreErrorKind::NotAPlayerStore,
        // Data exceptions and constraint violations.
        Some("22" | "23") => StoreErrorKind::ValueRejected,
        _ => StoreErrorKind::Unreachable,
    }
}
