//! What SQLite says, as faults.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::{StoreError, StoreFault};

/// What a file fails of, named with the file.
pub(super) struct Named<'p>(pub &'p Path);

impl Named<'_> {
    pub fn fault(&self, fault: StoreFault, cause: impl ToString) -> StoreError {
        StoreError {
            store: self.0.display().to_string(),
            fault,
            cause: cause.to_string(),
        }
    }

    pub fn error(&self, error: rusqlite::Error) -> StoreError {
        let fault = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreFault::Locked,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreFault::ReadOnly,
            Some(ErrorCode::DiskFull) => StoreFault::Full,
            Some(ErrorCode::DatabaseCorrupt) => StoreFault::Corrupt,
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => StoreFault::Value,
            Some(ErrorCode::NotADatabase) => StoreFault::Foreign,
            _ => StoreFault::Unreachable,
        };
        self.fault(fault, error)
    }
}
