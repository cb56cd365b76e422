//! A connection for other crates whose tables are in the schema of a store.

use thiserror::Error;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::{Error, Row};

use super::connection::PostgresConnection;
use super::store::PostgresSource;
use super::tables::{Statements, Values};
use crate::error::{StoreError, StoreErrorKind};

/// A statement has failed.
#[derive(Clone, Debug, Error)]
#[error("{error}")]
pub struct SessionError {
    /// The error.
    pub error: StoreError,
    /// Whether the statement may have been executed, or may still be. If not, nothing was changed, and nothing will be.
    pub is_outcome_unknown: bool,
}

impl SessionError {
    const fn not_executed(error: StoreError) -> Self {
        Self {
            error,
            is_outcome_unknown: false,
        }
    }
}

/// A connection for statements of another crate. Each statement is a transaction. Rows and values are those of tokio-postgres.
pub struct PostgresSession {
    connection: PostgresConnection,
    statements: Statements,
    /// The outcome of a statement is unknown: the connection is not used any more.
    is_broken: bool,
}

impl std::fmt::Debug for PostgresSession {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PostgresSession")
            .field("database", &self.connection.named.0)
            .finish_non_exhaustive()
    }
}

impl PostgresSource {
    /// Opens a connection to the tables of this version. Missing tables are created and older ones updated as for the store itself.
    ///
    /// # Errors
    /// [`StoreError`], as for the store.
    pub fn open_session(&self) -> Result<PostgresSession, StoreError> {
        Ok(PostgresSession {
            connection: self.open_tables()?,
            statements: Statements::default(),
            is_broken: false,
        })
    }
}

impl PostgresSession {
    /// Whether the connection can still be used. After an error with an unknown outcome it cannot.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.is_broken && self.connection.is_open()
    }

    /// Executes a statement as one transaction and returns its rows once it is committed. The statement is prepared once per connection.
    ///
    /// # Errors
    /// [`SessionError`], which distinguishes whether the statement may have been executed.
    pub fn query(
        &mut self,
        text: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, SessionError> {
        let is_connected = self.is_connected();
        let Self {
            connection,
            statements,
            is_broken,
        } = self;
        if !is_connected {
            let cause = "the connection is closed";
            let error = connection
                .named
                .store_error(StoreErrorKind::Unreachable, cause);
            return Err(SessionError::not_executed(error));
        }
        let mut is_sent = false;
        let done = connection.call(async |client, named| {
            let known = statements.borrow().get(text).cloned();
            let statement = match known {
                Some(known) => known,
                None => {
                    let prepared = client.prepare(text).await;
                    prepared.map_err(|error| named.error(error))?
                }
            };
            let new = statement.clone();
            statements.borrow_mut().insert(text, new);
            is_sent = true;
            // The rows end with the message that the transaction is committed.
            let rows = client.query(&statement, values).await;
            Ok(rows.map_err(|error| SessionError {
                is_outcome_unknown: is_outcome_unknown(&error),
                error: named.error(error),
            }))
        });
        let done = done.unwrap_or_else(|error| {
            Err(SessionError {
                error,
                is_outcome_unknown: is_sent,
            })
        });
        *is_broken = matches!(&done, Err(error) if error.is_outcome_unknown);
        done
    }
}

/// Whether a statement may have been executed although it failed. An error of the statement itself undoes it. A session that ends, or a
/// connection that is lost, may do so after the commit.
fn is_outcome_unknown(error: &Error) -> bool {
    let Some(of_server) = error.as_db_error() else {
        return true;
    };
    let is_of_statement = of_server.parsed_severity() == Some(Severity::Error);
    // A connection error, or the server shuts down; a canceled statement is undone.
    let class = of_server.code().code().get(..2);
    let is_of_server =
        matches!(class, Some("08" | "57")) && *of_server.code() != SqlState::QUERY_CANCELED;
    !is_of_statement || is_of_server
}
