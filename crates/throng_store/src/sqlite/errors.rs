//! What SQLite says, as faults.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::{StoreError, StoreErrorKind};

/// What a file fails of, named with the file.
pub(super) struct Named<'p>(pub &'p Path);

impl Named<'_> {
    pub fn fault(&self, fault: StoreErrorKind, cause: impl ToString) -> StoreError {
        StoreError {
            store: self.0.display().to_string(),
            fault,
            cause: cause.to_string(),
        }
    }

    pub fn error(&self, error: rusqlite::Error) -> StoreError {
        let fault = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreErrorKind::Locked,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreErrorKind::ReadOnly,
            Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
            Some(ErrorCode::DatabaseCorrupt) => StoreErrorKind::Corrupt,
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => StoreErrorKind::Value,
            Some(ErrorCode::NotADatabase) => StoreErrorKind::Foreign,
            _ => StoreErrorKind::Unreachable,
        };
        self.fault(fault, error)
    }
}
