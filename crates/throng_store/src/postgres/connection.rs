//! A connection to a server, whatever it is for.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

use super::errors::NamedDatabase;
use crate::error::{StoreError, StoreFault};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How connections are set up: what is acknowledged is on disk, and nothing is waited for without end.
const SETTINGS: &str =
    "SET synchronous_commit = on; SET lock_timeout = '1s'; SET statement_timeout = '30s'";

/// A connection, and what drives it.
pub(super) struct PostgresConnection {
    pub named: NamedDatabase,
    pub runtime: Runtime,
    pub client: Client,
}

impl PostgresConnection {
    /// Connects, and looks at nothing yet.
    pub fn open(url: &str, schema: &str) -> Result<Self, StoreError> {
        let unnamed = NamedDatabase(format!("Postgres, schema `{schema}`"));
        let is_letter = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '_');
        if schema.is_empty() || schema.len() > 63 || !schema.chars().all(is_letter) {
            let cause = "expected a name of lower-case letters, digits and `_`";
            return Err(unnamed.fault(StoreFault::Unreachable, cause));
        }
        let config: Config = url
            .parse()
            .map_err(|error: tokio_postgres::Error| unnamed.error(error))?;
        let named = NamedDatabase(name_of(&config, schema));
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| named.fault(StoreFault::Unreachable, error))?;
        let client = runtime.block_on(connect(config, &named))?;
        Ok(Self {
            named,
            runtime,
            client,
        })
    }
}

/// Where a database is: its hosts and its name.
fn name_of(config: &Config, schema: &str) -> String {
    let hosts = config.get_hosts().iter();
    let hosts: Vec<String> = hosts
        .map(|host| match host {
            Host::Tcp(host) => host.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    let name = config.get_dbname().or(config.get_user()).unwrap_or("?");
    format!(
        "Postgres `{name}` at {}, schema `{schema}`",
        hosts.join(", ")
    )
}

async fn connect(mut config: Config, named: &NamedDatabase) -> Result<Client, StoreError> {
    config.connect_timeout(CONNECT);
    config.application_name("throng");
    let connected = config.connect(NoTls).await;
    let (client, connection) = connected.map_err(|error| named.error(error))?;
    // It is driven by every later call, and its errors come out of those.
    tokio::spawn(connection);
    let set = client.batch_execute(SETTINGS).await;
    set.map_err(|error| named.error(error))?;
    Ok(client)
}
