//! The store on a server on a bad day: a network that stalls, rows that others keep locked.
//!
//! The server is that of `THRONG_POSTGRES`, without which nothing is tested: `.ci/with_postgres cargo test postgres` starts one.
//! Every test has a schema of its own there.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use throng_core::ids::PlayerId;
use throng_protocol::wire::Encoding;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Client, NoTls};

use super::PostgresSource;
use crate::error::StoreFault;
use crate::record::StoredAttribute;
use crate::store::{Store, StoreSource};
use crate::supervisor::{StoreOrder, StoreReport, StoreSupervisor};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// The server's address, if there is a server.
#[expect(
    clippy::print_stdout,
    reason = "who reads what was tested should see what was not"
)]
fn url() -> Option<String> {
    let url = std::env::var("THRONG_POSTGRES").ok();
    if url.is_none() {
        println!("skipped: THRONG_POSTGRES does not say where a server is");
    }
    url
}

/// A schema of a test's own.
struct TestSchema {
    url: String,
    name: String,
}

impl TestSchema {
    fn new(url: &str) -> Self {
        static NTH: AtomicU32 = AtomicU32::new(0);
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let name = format!("bad_day_{}_{nth}", std::process::id());
        let url = url.to_owned();
        Self { url, name }
    }

    fn source(&self) -> PostgresSource {
        PostgresSource::new(&self.url).in_schema(&self.name)
    }

    fn open(&self) -> Box<dyn Store> {
        let mut store = self.source().open().unwrap();
        store.learn(&attributes()).unwrap();
        store
    }

    /// Somebody who works in it by hand.
    fn operator(&self) -> Operator {
        let operator = Operator::new(&self.url);
        operator.say(&format!("SET search_path TO {}", self.name));
        operator
    }
}

/// A connection of an operator's.
struct Operator {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Operator {
    fn new(url: &str) -> Self {
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

    fn say(&self, statement: &str) {
        let said = self.client.batch_execute(statement);
        self.runtime.block_on(said).unwrap();
    }

    /// The first column of all rows.
    fn ask<T: FromSqlOwned>(&self, statement: &str) -> Vec<T> {
        let rows = self.runtime.block_on(self.client.query(statement, &[]));
        rows.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

fn attributes() -> Vec<StoredAttribute> {
    vec![StoredAttribute {
        id: 2,
        name: "gold".to_owned(),
        encoding: Encoding::U16,
    }]
}

/// A network between a store and its server that can stop forwarding: nothing is closed, and nothing arrives.
struct StallingProxy {
    port: u16,
    is_stalled: Arc<AtomicBool>,
}

impl StallingProxy {
    /// In front of the server of an address.
    fn new(url: &str) -> Self {
        let (_, host) = url.split_once('@').unwrap();
        let (server, _) = host.split_once('/').unwrap();
        let server: SocketAddr = server.parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_stalled = Arc::new(AtomicBool::new(false));
        let stalls = is_stalled.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let stalls = stalls.clone();
                    thread::spawn(move || forward(from, to, &stalls));
                }
            }
        });
        Self { port, is_stalled }
    }

    /// The address through it.
    fn url(&self, url: &str) -> String {
        let (user, host) = url.split_once('@').unwrap();
        let (_, database) = host.split_once('/').unwrap();
        format!("{user}@127.0.0.1:{}/{database}", self.port)
    }

    fn stall(&self, stalls: bool) {
        self.is_stalled.store(stalls, Ordering::Relaxed);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, is_stalled: &AtomicBool) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while is_stalled.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(2));
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
}

/// Does something that must not take for ever, on a thread of its own.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = sync_channel(1);
    thread::spawn(move || done.send(work()));
    wait.recv_timeout(PATIENCE).expect("it ends")
}

#[test]
fn stalled_network_fails_the_call_and_is_survived() {
    let Some(url) = url() else { return };
    let schema = TestSchema::new(&url);
    let proxy = StallingProxy::new(&url);
    let source = PostgresSource::new(proxy.url(&url))
        .in_schema(&schema.name)
        .call_within(Duration::from_millis(400));
    let mut supervisor = StoreSupervisor::new(Box::new(source), "a".to_owned(), attributes());
    let look = StoreOrder::LookUp {
        players: vec![PlayerId(1)],
    };
    assert!(supervisor.work(&look, 0).is_ok());
    proxy.stall(true);
    // The call that is under way, and a connection that is opened then.
    for (now_ms, what) in [(1, "no reply within"), (1_000, "no connection within")] {
        let asked = look.clone();
        let (failed, back) = in_time(move || (supervisor.work(&asked, now_ms), supervisor));
        supervisor = back;
        let error = failed.unwrap_err();
        assert_eq!(error.fault, StoreFault::Unreachable);
        assert!(error.to_string().contains(what), "{error}");
    }
    proxy.stall(false);
    let works = supervisor.work(&look, 100_000);
    assert!(matches!(works, Ok(StoreReport::LookedUp(..))), "{works:?}");
}
