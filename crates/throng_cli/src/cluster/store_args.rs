//! The option of the store.

use std::time::Duration;

use throng::store::PostgresSource;
use throng_cluster::{ClusterStoreError, PostgresRows};

use crate::CliError;
use crate::store::StoreAddress;

/// How long an operator's request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where the rows of the cluster are.
#[derive(Debug, clap::Args)]
pub(super) struct StoreArguments {
    /// Postgres server with the rows of the cluster: postgres://USER@HOST/DATABASE (schema `throng`)
    ///
    /// Put a password into the environment variable THRONG_STORE, or into ~/.pgpass. A node creates missing tables, and updates those of an
    /// older version, if its role may; `throng cluster` only uses tables of its own version.
    #[arg(long, value_name = "URL", env = "THRONG_STORE", hide_env_values = true)]
    store: String,
}

impl StoreArguments {
    /// The server.
    pub fn source(&self) -> Result<PostgresSource, CliError> {
        match StoreAddress::parse(&self.store, "--store")? {
            StoreAddress::Server(source) => Ok(source),
            StoreAddress::File(path) => {
                let path = path.display();
                let message = format!("--store: expected a Postgres server, found the file {path}");
                let help =
                    "several processes cannot share a file: use postgres://USER@HOST/DATABASE";
                Err(CliError::new(message).with_help(help))
            }
        }
    }

    /// The rows, connected. Missing tables are created, and those of an older version are updated.
    pub fn rows(&self) -> Result<PostgresRows, CliError> {
        connected(self.source()?)
    }

    /// The rows, connected, in tables of this version. Others are left as they are: nodes of another version may run.
    pub fn existing_rows(&self) -> Result<PostgresRows, CliError> {
        connected(self.source()?.without_migration())
    }
}

fn connected(source: PostgresSource) -> Result<PostgresRows, CliError> {
    let mut rows = PostgresRows::new(&source, TIMEOUT);
    rows.connect().map_err(failed)?;
    Ok(rows)
}

/// An error of the store for an operator.
pub(super) fn failed(error: ClusterStoreError) -> CliError {
    let cause = match &error {
        ClusterStoreError::NotExecuted(cause) | ClusterStoreError::Unknown(cause) => cause,
    };
    CliError::new(format!("--store: {cause}"))
}
