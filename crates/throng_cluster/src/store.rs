//! The contract of a store of rows.

use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use crate::request::{ClusterReply, ClusterRequest};
use crate::rows::ClusterRows;

/// Executes requests. A node uses several of them at the same time, so that its heartbeat does not wait for a save.
pub trait ClusterStore: Send {
    /// Executes a request as one transaction, at the time of the store's own clock. Blocks until the reply, at most for the store's timeout.
    ///
    /// # Errors
    /// [`ClusterStoreError`]; afterwards the store may be used again.
    fn execute(&mut self, request: &ClusterRequest) -> Result<ClusterReply, ClusterStoreError>;
}

/// Why there is no reply to a request.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ClusterStoreError {
    /// The request was not executed and will not be: [`ClusterReply::Away`].
    #[error("request not executed: {0}")]
    NotExecuted(String),
    /// It is unknown whether the request was executed, will be executed later, or neither. It is never executed in part.
    #[error("outcome of a request unknown: {0}")]
    Unknown(String),
}

/// Rows in memory that several nodes of one process share. Clones share the rows. The caller advances the time.
#[derive(Clone, Debug, Default)]
pub struct SharedRows(Arc<Mutex<(ClusterRows, u64)>>);

impl SharedRows {
    /// Sets the time of the store, in milliseconds. Earlier times than before are ignored.
    pub fn set_now_ms(&self, now_ms: u64) {
        self.with(|(_, now)| *now = now_ms.max(*now));
    }

    /// Reads or changes the rows themselves.
    pub fn with_rows<T>(&self, work: impl FnOnce(&mut ClusterRows) -> T) -> T {
        self.with(|(rows, _)| work(rows))
    }

    fn with<T>(&self, work: impl FnOnce(&mut (ClusterRows, u64)) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClusterStore for SharedRows {
    fn execute(&mut self, request: &ClusterRequest) -> Result<ClusterReply, ClusterStoreError> {
        Ok(self.with(|(rows, now_ms)| rows.execute(request.clone(), *now_ms)))
    }
}
