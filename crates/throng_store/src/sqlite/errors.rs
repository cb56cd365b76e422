//! Converts errors of SQLite to store errors.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::{StoreError, StoreErrorKind};

/// An error of a file, with its path.
pub(super) struct NamedFile<'p>(pub &'p Path);

impl NamedFile<'_> {
    pub fn store_error(&self, fault: StoreErrorKind, cause: impl ToString) -> StoreError {
        StoreError {
            store: self.0.display().to_string(),
            kind: fault,
            cause: cause.to_string(),
        }
    }

    pub fn error(&self, error: rusqlite::Error) -> StoreError {
        let fault = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreErrorKind::Locked,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreErrorKind::ReadOnly,
            Some(ErrorCode::DiskFull) => StoreErrorKind::DiskFull,
            Some(ErrorCode::DatabaseCorrupt) => StoreErrorKind::Corrupt,
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => {
                StoreErrorKind::ValueRejected
            }
            Some(ErrorCode::NotADatabase) => StoreErrorKind::NotAPlayerStore,
            _ => StoreErrorKind::Unreachable,
        };
        self.store_error(fault, error)
    }
}
