//! A Postgres server for tests: that of `THRONG_POSTGRES`, with one schema per test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Client, NoTls};

use crate::postgres::{PostgresSource, PostgresStore};

/// The address of the server; `None` if tests have none.
#[must_use]
pub fn postgres_url() -> Option<String> {
    std::env::var("THRONG_POSTGRES").ok()
}

/// A database connection of an operator.
#[derive(Debug)]
pub struct Operator {
    /// Runs the connection.
    pub runtime: tokio::runtime::Runtime,
    /// The connection.
    pub client: Client,
}

impl Operator {
    /// Connects.
    #[must_use]
    pub fn new(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        Self { runtime, client }
    }

    /// Runs SQL statements.
    pub fn execute(&self, statements: &str) {
        let said = self.client.batch_execute(statements);
        self.runtime.block_on(said).unwrap();
    }

    /// The first column of all rows.
    pub fn query<T: FromSqlOwned>(&self, statement: &str) -> Vec<T> {
        let rows = self.runtime.block_on(self.client.query(statement, &[]));
        rows.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

/// A schema for one test.
#[derive(Debug)]
pub struct TestSchema {
    /// The address of the server.
    pub url: String,
    /// The name of the schema; no other test has it.
    pub name: String,
}

impl TestSchema {
    /// A schema with a new name.
    #[must_use]
    pub fn new(url: &str) -> Self {
        static NTH: AtomicU32 = AtomicU32::new(0);
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        Self {
            url: url.to_owned(),
            name: format!("test_{}_{nth}", std::process::id()),
        }
    }

    /// A source of the store in this schema. A busy machine may take long to connect.
    #[must_use]
    pub fn source(&self) -> PostgresSource {
        let source = PostgresSource::new(&self.url).with_schema(&self.name);
        source.with_call_timeout(Duration::from_secs(60))
    }

    /// The store in this schema.
    #[must_use]
    pub fn open(&self) -> PostgresStore {
        PostgresStore::open_source(&self.source()).unwrap()
    }

    /// An operator who works in this schema.
    #[must_use]
    pub fn operator(&self) -> Operator {
        let operator = Operator::new(&self.url);
        operator.execute(&format!("SET search_path TO {}", self.name));
        operator
    }
}
