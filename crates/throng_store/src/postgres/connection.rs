//! A connection to a Postgres server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use throng_core::clock::unix_ms;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Error, SimpleQueryMessage};

use super::errors::NamedDatabase;
use super::tls::Address;
use crate::error::{StoreError, StoreErrorKind};

/// Initial limit of a call, and of a connection attempt to one host.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Limit of calls after several consecutive timeouts: a large save on a slow server succeeds in the end.
const CALL_TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// Limit of a connection attempt if calls have a shorter fixed limit: opening takes several round trips.
const FIXED_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Limit of a migration or an inspection of the whole store.
const LONG_CALL_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Idle time after which the system probes the other end, and the interval of the probes. Data that is not acknowledged for
/// [`UNACKNOWLEDGED_TIMEOUT`] ends the connection.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVES_RETRIES: u32 = 3;
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of connections: acknowledged data is on disk, every wait has a limit, and the server releases the locks of a process that died
/// or stopped in a transaction within seconds.
const SETTINGS: &str = "SET synchronous_commit = on; SET lock_timeout = '1s';
    SET idle_in_transaction_session_timeout = '10s'; SET tcp_user_timeout = '10s';
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3";

/// The limit of a call. Each timeout doubles the limit of the next calls; a successful call resets it.
#[derive(Debug)]
pub(super) struct CallLimit {
    first: Duration,
    doublings: AtomicU32,
    doublings_max: u32,
    /// Of a connection attempt to one host.
    connect: Duration,
}

impl Default for CallLimit {
    fn default() -> Self {
        Self::new(CALL_TIMEOUT)
    }
}

impl CallLimit {
    pub const fn new(first: Duration) -> Self {
        Self {
            first,
            doublings: AtomicU32::new(0),
            doublings_max: 8,
            connect: first,
        }
    }

    /// A limit that timeouts do not change.
    pub const fn fixed(limit: Duration) -> Self {
        Self {
            first: limit,
            doublings: AtomicU32::new(0),
            doublings_max: 0,
            connect: if limit.as_millis() > FIXED_CONNECT_TIMEOUT.as_millis() {
                limit
            } else {
                FIXED_CONNECT_TIMEOUT
            },
        }
    }

    fn current(&self) -> Duration {
        let doublings = self
            .doublings
            .load(Ordering::Relaxed)
            .min(self.doublings_max);
        let doubled = self.first.saturating_mul(1 << doublings);
        doubled.min(CALL_TIMEOUT_MAX.max(self.first))
    }

    fn record(&self, is_late: bool) {
        let doublings = self.doublings.load(Ordering::Relaxed).min(8);
        let doublings = if is_late { doublings + 1 } else { 0 };
        self.doublings.store(doublings, Ordering::Relaxed);
    }
}

/// A connection, and the runtime that drives it.
pub(super) struct PostgresConnection {
    pub named: NamedDatabase,
    /// `None` after a call that timed out: the state of the server is unknown then.
    live: Option<(Runtime, Client)>,
    limit: Arc<CallLimit>,
}

impl PostgresConnection {
    /// Connects, without reading anything.
    pub fn open(url: &str, schema: &str, limit: Arc<CallLimit>) -> Result<Self, StoreError> {
        let unnamed = NamedDatabase(format!("Postgres, schema `{schema}`"));
        let is_letter = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '_');
        if schema.is_empty() || schema.len() > 63 || !schema.chars().all(is_letter) {
            let cause = "expected a name of lower-case letters, digits and `_`";
            return Err(unnamed.store_error(StoreErrorKind::Unreachable, cause));
        }
        let mut address = Address::parse(url, &unnamed)?;
        let config = &mut address.config;
        let named = NamedDatabase(database_name(config, schema));
        fill_defaults(config, url, limit.connect);
        let per_host = config
            .get_connect_timeout()
            .map_or(CALL_TIMEOUT, |limit| *limit);
        let within = per_host.saturating_mul(config.get_hosts().len().max(1) as u32);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| named.store_error(StoreErrorKind::Unreachable, error))?;
        match runtime
            .block_on(async { timeout(within, connect(&address, &named, limit.current())).await })
        {
            Ok(Ok(client)) => Ok(Self {
                named,
                live: Some((runtime, client)),
                limit,
            }),
            failed => {
                // The name lookup may still hang; do not wait for it.
                runtime.shutdown_background();
                Err(match failed {
                    Ok(Err(error)) => error,
                    _ => timeout_error(&named, "no connection", within),
                })
            }
        }
    }

    /// Whether further calls are possible.
    pub fn is_open(&self) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|(_, client)| !client.is_closed())
    }

    /// Runs a future on the connection, within the limit of a call. After a timeout the connection is closed, and every further call fails.
    pub fn call<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Client, &NamedDatabase) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let within = self.limit.current();
        let done = self.call_with_timeout(within, work);
        self.limit.record(self.live.is_none());
        done
    }

    /// Like [`call`](Self::call), for long work: a migration, or reading the whole store.
    pub fn long_call<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Client, &NamedDatabase) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let shorter_ms = statement_timeout_ms(self.limit.current());
        self.call_with_timeout(LONG_CALL_TIMEOUT, async |client, named| {
            let statement_ms = LONG_CALL_TIMEOUT.as_millis();
            let longer = format!("SET statement_timeout = {statement_ms}");
            let set = client.batch_execute(&longer).await;
            set.map_err(|error| named.error(error))?;
            let done = work(client, named).await?;
            let shorter = format!("SET statement_timeout = {shorter_ms}");
            let set = client.batch_execute(&shorter).await;
            set.map_err(|error| named.error(error))?;
            Ok(done)
        })
    }

    fn call_with_timeout<T>(
        &mut self,
        within: Duration,
        work: impl AsyncFnOnce(&mut Client, &NamedDatabase) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some((runtime, client)) = &mut self.live else {
            let cause = "the connection was closed after a call that timed out";
            return Err(self.named.store_error(StoreErrorKind::Unreachable, cause));
        };
        let worked = runtime.block_on(async { timeout(within, work(client, &self.named)).await });
        worked.unwrap_or_else(|_| {
            if let Some((runtime, client)) = self.live.take() {
                drop(client);
                runtime.shutdown_background();
            }
            Err(timeout_error(&self.named, "no reply", within))
        })
    }
}

fn timeout_error(named: &NamedDatabase, what: &str, within: Duration) -> StoreError {
    let cause = format!("{what} within {within:?}; the connection is closed");
    named.store_error(StoreErrorKind::Unreachable, cause)
}

/// Sets what the address does not specify.
fn fill_defaults(config: &mut Config, url: &str, connect_within: Duration) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(connect_within);
    }
    if config.get_application_name().is_none() {
        config.application_name("throng");
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED_TIMEOUT);
    }
    // This option has a default value in the configuration.
    if !url.contains("keepalives_idle") {
        config.keepalives_idle(KEEPALIVES_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVES_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVES_RETRIES);
    }
}

/// The hosts and name of a database, for errors.
fn database_name(config: &Config, schema: &str) -> String {
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

/// A session name that no other session has.
fn session_name() -> String {
    static NTH: AtomicU32 = AtomicU32::new(0);
    let nth = NTH.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{nth}", unix_ms(), std::process::id())
}

/// Whether a connection pooler in transaction mode is in between: then another connection, which holds a session, shares this connection's
/// session, or this connection has changed its session.
async fn is_pooled(address: &Address, client: &Client, session: &str) -> bool {
    let Ok((other, driver)) = address.connect().await else {
        // The server may have no second connection free.
        return false;
    };
    let begun = other.batch_execute("BEGIN").await;
    let seen = session_name_of(&other).await;
    let own = session_name_of(client).await;
    driver.abort();
    let (Ok(()), Ok(seen), Ok(own)) = (begun, seen, own) else {
        return false;
    };
    seen.as_deref() == Some(session) || own.as_deref() != Some(session)
}

/// The session name of a connection; without a prepared statement, which poolers may not support.
async fn session_name_of(client: &Client) -> Result<Option<String>, Error> {
    let ask = "SELECT current_setting('throng.session', true)";
    let answer = client.simple_query(ask).await?;
    Ok(answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

/// The server's own statement timeout: longer than the client's, which closes the connection.
fn statement_timeout_ms(call: Duration) -> u128 {
    2 * call.as_millis()
}

async fn connect(
    address: &Address,
    named: &NamedDatabase,
    call_within: Duration,
) -> Result<Client, StoreError> {
    let connected = address.connect().await;
    let (client, _) = connected.map_err(|error| named.error(error))?;
    let statement_ms = statement_timeout_ms(call_within);
    let session = session_name();
    let settings = format!(
        "{SETTINGS}; SET statement_timeout = {statement_ms}; SET throng.session = '{session}'"
    );
    let set = client.batch_execute(&settings).await;
    set.map_err(|error| named.error(error))?;
    if is_pooled(address, &client, &session).await {
        let cause = "a connection pooler in transaction mode is between (PgBouncer: `pool_mode`), which loses the settings and \
            statements of a session; connect to the server itself, or to a pool in session mode";
        return Err(named.store_error(StoreErrorKind::Unreachable, cause));
    }
    Ok(client)
}
