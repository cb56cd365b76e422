//! The store on a server under bad conditions: a network that stalls, rows that other transactions keep locked.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested. `.ci/with_postgres cargo test postgres` starts one. Every test
//! has its own schema there.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use throng_core::ids::PlayerId;
use throng_protocol::wire::Encoding;

use super::connection::PostgresConnection;
use super::{PostgresSource, PostgresStore};
use crate::conformance::check_store;
use crate::error::{StoreError, StoreErrorKind};
use crate::record::StoredAttribute;
use crate::registration::{RegistrationTerms, SERVER_ENTRY_TTL_MS};
use crate::save_batch::SaveBatch;
use crate::store::{ClaimResult, Renewal, StoreBackend, StoreFactory};
use crate::supervisor::{StoreReply, StoreRequest, StoreSupervisor};
use crate::testing::{FIRST_MINUTE, Operator, TAKE_OVER, TestSchema, postgres_url};

/// Timeout for events that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// The store in a schema, with registered attributes.
fn opened(schema: &TestSchema) -> PostgresStore {
    let mut store = schema.open();
    store.register_attributes(&attributes()).unwrap();
    store
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

/// Runs work on its own thread, with a timeout.
fn within_timeout<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = sync_channel(1);
    thread::spawn(move || done.send(work()));
    wait.recv_timeout(PATIENCE).expect("it ends")
}

#[test]
fn stalled_network_fails_the_call_and_is_survived() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let proxy = StallingProxy::new(&url);
    let source = PostgresSource::new(proxy.url(&url))
        .with_schema(&schema.name)
        .with_call_timeout(Duration::from_secs(2));
    let mut supervisor = StoreSupervisor::new(Box::new(source), "a".to_owned(), attributes());
    let look = StoreRequest::Lookup {
        players: vec![PlayerId(1)],
    };
    // On a busy machine a call may exceed the limit, too: the next ones have more time.
    let works = |supervisor: &mut StoreSupervisor, from_ms: u64| {
        let mut attempts = (0..20).map(|nth| supervisor.execute(&look, from_ms + nth * 10_000));
        attempts.any(|done| matches!(done, Ok(StoreReply::LookedUp(..))))
    };
    assert!(works(&mut supervisor, 0));
    proxy.stall(true);
    // The current call, and a connection attempt after it.
    for (now_ms, what) in [
        (1_000_000, "no reply within"),
        (1_010_000, "no connection within"),
    ] {
        let asked = look.clone();
        let (failed, back) =
            within_timeout(move || (supervisor.execute(&asked, now_ms), supervisor));
        supervisor = back;
        let error = failed.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unreachable);
        assert!(error.to_string().contains(what), "{error}");
    }
    proxy.stall(false);
    assert!(works(&mut supervisor, 2_000_000));
}

/// The epochs of granted leases, and the errors of the others.
fn results(claimed: Vec<ClaimResult>) -> Vec<Result<u64, StoreErrorKind>> {
    let results = claimed.into_iter().map(|claimed| match claimed {
        ClaimResult::Granted { epoch, .. } => Ok(epoch),
        ClaimResult::Unreadable { error, .. } => Err(error.kind),
        refused @ ClaimResult::Refused { .. } => panic!("{refused:?}"),
    });
    results.collect()
}

#[test]
fn locked_row_refuses_no_other_claim() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut store = opened(&schema);
    let a = store.register_server("a", TAKE_OVER).unwrap();
    let known: Vec<PlayerId> = (1..=10).map(PlayerId).collect();
    let granted = results(store.claim(&a, &known, FIRST_MINUTE).unwrap());
    assert_eq!(granted, [Ok(1); 10]);
    let other = schema.operator();
    // An existing row, and one whose insert is not committed.
    other.execute("BEGIN; SELECT 1 FROM player WHERE player = 7 FOR UPDATE; INSERT INTO player (player) VALUES (15)");
    let all: Vec<PlayerId> = (1..=20).map(PlayerId).collect();
    let found = results(store.claim(&a, &all, FIRST_MINUTE).unwrap());
    for (player, found) in (1..).zip(found) {
        let expected = match player {
            7 | 15 => Err(StoreErrorKind::Locked),
            1..=10 => Ok(2),
            _ => Ok(1),
        };
        assert_eq!(found, expected, "player {player}");
    }
    other.execute("ROLLBACK");
    let found = results(
        store
            .claim(&a, &[PlayerId(7), PlayerId(15)], FIRST_MINUTE)
            .unwrap(),
    );
    assert_eq!(found, [Ok(2), Ok(1)]);
}

#[test]
fn locked_row_keeps_no_server_from_starting() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut store = opened(&schema);
    let before = store.register_server("a", TAKE_OVER).unwrap();
    let players = [PlayerId(1), PlayerId(2)];
    results(store.claim(&before, &players, FIRST_MINUTE).unwrap());
    let other = schema.operator();
    // Like a process that was stopped in the middle of a save.
    other.execute("BEGIN; SELECT 1 FROM player WHERE player = 1 FOR UPDATE; UPDATE server SET batch = 1 WHERE name = 'a'");
    let after = store.register_server("a", TAKE_OVER).unwrap();
    assert_eq!(after.incarnation, before.incarnation + 1);
    other.execute("ROLLBACK");
    let found = results(store.claim(&after, &players, FIRST_MINUTE).unwrap());
    assert_eq!(found, [Ok(2), Ok(2)]);
}

#[test]
fn locked_row_is_neither_lost_nor_renewed() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut store = opened(&schema);
    let a = store.register_server("a", TAKE_OVER).unwrap();
    let players = [1, 2, 3].map(PlayerId);
    results(store.claim(&a, &players, FIRST_MINUTE).unwrap());
    let other = schema.operator();
    other.execute("BEGIN; SELECT 1 FROM player WHERE player <= 2 FOR UPDATE");
    // The second lease has another epoch, although its row is locked.
    let leases = [
        (PlayerId(1), 1),
        (PlayerId(2), 9),
        (PlayerId(3), 1),
        (PlayerId(4), 1),
    ];
    let renewal = store.renew(&a, &leases, FIRST_MINUTE).unwrap();
    assert_eq!(renewal.skipped, [PlayerId(1)]);
    assert_eq!(renewal.lost, [PlayerId(2), PlayerId(4)]);
    other.execute("ROLLBACK");
    assert_eq!(
        store.renew(&a, &leases[..1], FIRST_MINUTE).unwrap(),
        Renewal::default()
    );
}

/// Counts how often a store is opened.
#[derive(Debug)]
struct CountedSource(PostgresSource, Arc<AtomicU32>);

impl StoreFactory for CountedSource {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.open()
    }
}

#[test]
fn locked_row_delays_a_save_and_keeps_the_store_open() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let opened = Arc::new(AtomicU32::new(0));
    let source = CountedSource(schema.source(), opened.clone());
    let mut supervisor = StoreSupervisor::new(Box::new(source), "a".to_owned(), attributes());
    let claim = StoreRequest::Claim {
        players: vec![PlayerId(1)],
        terms: FIRST_MINUTE,
    };
    assert!(supervisor.execute(&claim, 0).is_ok());
    let other = schema.operator();
    other.execute("BEGIN; SELECT 1 FROM player WHERE player = 1 FOR UPDATE");
    let mut batch = SaveBatch::new(1, 9);
    batch.add((PlayerId(1), 1, 9), std::iter::once((2, Some(&[9, 0][..]))));
    let save = StoreRequest::Save {
        batch: Arc::new(batch),
    };
    let error = supervisor.execute(&save, 0).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Locked, "{error}");
    // Other requests are executed meanwhile, at once.
    let look = StoreRequest::Lookup {
        players: vec![PlayerId(2)],
    };
    assert!(supervisor.execute(&look, 0).is_ok());
    other.execute("ROLLBACK");
    assert!(supervisor.execute(&save, 0).is_ok());
    assert_eq!(opened.load(Ordering::Relaxed), 1);
}

#[test]
fn sessions_of_dead_servers_end_in_seconds() {
    let Some(url) = postgres_url() else { return };
    let mut connection = PostgresConnection::open(&url, "throng", Arc::default()).unwrap();
    let settings = connection.call(async |client, named| {
        let names =
            "SELECT name || ' ' || setting FROM pg_settings WHERE name = ANY($1) ORDER BY name";
        let names_of = [
            "idle_in_transaction_session_timeout",
            "tcp_keepalives_idle",
            "tcp_user_timeout",
        ];
        let rows = client.query(names, &[&&names_of[..]]).await;
        rows.map_err(|error| named.error(error))
    });
    let settings: Vec<String> = settings.unwrap().iter().map(|row| row.get(0)).collect();
    let expected = [
        "idle_in_transaction_session_timeout 10000",
        "tcp_keepalives_idle 10",
        "tcp_user_timeout 10000",
    ];
    assert_eq!(settings, expected);
}

#[test]
fn postgres_store_conforms() {
    let Some(url) = postgres_url() else { return };
    check_store(|| TestSchema::new(&url).source()).unwrap();
}

#[test]
fn entries_of_old_servers_are_deleted_and_locked_ones_skipped() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut store = opened(&schema);
    let operator = schema.operator();
    let mut register = |name: &str, now_ms: u64| {
        let terms = RegistrationTerms {
            at_ms: Some(now_ms),
            ..RegistrationTerms::default()
        };
        store.register_server(name, terms).unwrap()
    };
    for day in 0..4 {
        register(&format!("pod {day}"), 1 + day);
    }
    let lock = schema.operator();
    lock.execute("BEGIN; SELECT * FROM server WHERE name = 'pod 1' FOR UPDATE");
    // Exactly 30 days is not too old.
    let last = register("pod 3", 3 + SERVER_ENTRY_TTL_MS);
    assert_eq!(last.incarnation, 2);
    let names = || operator.query::<String>("SELECT name FROM server ORDER BY seen_ms");
    assert_eq!(names(), ["pod 1", "pod 2", "pod 3", "pod 3"]);
    lock.execute("ROLLBACK");
    register("pod 3", 70_000 + SERVER_ENTRY_TTL_MS);
    assert_eq!(names(), ["pod 3", "pod 3"]);
}

#[test]
fn role_without_rights_to_create_runs_a_server() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let (name, role) = (&schema.name, format!("{}_game", schema.name));
    let owner = Operator::new(&url);
    owner.execute(&format!("CREATE ROLE {role} LOGIN"));
    let (_, host) = url.split_once('@').unwrap();
    let as_role = PostgresSource::new(format!("postgres://{role}@{host}")).with_schema(name);
    let open = || as_role.clone().open();
    let error = open().err().expect("there are no tables yet");
    assert_eq!(error.kind, StoreErrorKind::ReadOnly);
    assert!(error.cause.contains("throng db migrate"), "{error}");
    schema.source().migrate().unwrap();
    owner.execute(&format!(
        "GRANT USAGE ON SCHEMA {name} TO {role};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {role}"
    ));
    for epoch in 1..=2 {
        let mut store = open().unwrap();
        store.register_attributes(&attributes()).unwrap();
        let a = store.register_server("a", TAKE_OVER).unwrap();
        let found = results(store.claim(&a, &[PlayerId(1)], FIRST_MINUTE).unwrap());
        assert_eq!(found, [Ok(epoch)]);
        let mut batch = SaveBatch::new(1, 9);
        batch.add(
            (PlayerId(1), epoch, 9),
            std::iter::once((2, Some(&[9, 0][..]))),
        );
        assert_eq!(store.save(&a, &batch, None).unwrap().refused, []);
        let renewal = store
            .renew(&a, &[(PlayerId(1), epoch)], FIRST_MINUTE)
            .unwrap();
        assert_eq!(renewal, Renewal::default());
        store.unregister_server(&a).unwrap();
    }
}

/// A connection pooler in front of the server, if the program is installed.
struct Pooler(Child, PathBuf, u16);

impl Pooler {
    fn start(url: &str, mode: &str) -> Option<Self> {
        let (_, host) = url.split_once('@')?;
        let (server, _) = host.split_once('/')?;
        let (address, server_port) = server.split_once(':')?;
        let port = TcpListener::bind("127.0.0.1:0")
            .ok()?
            .local_addr()
            .ok()?
            .port();
        let folder =
            std::env::temp_dir().join(format!("throng-pooler-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let settings = folder.join("pgbouncer.ini");
        let users = folder.join("users.txt");
        fs::write(&users, "\"throng\" \"\"\n").unwrap();
        let text = format!(
            "[databases]\n* = host={address} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
            unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = {mode}\n",
            users.display()
        );
        fs::write(&settings, text).unwrap();
        let mut command = Command::new("pgbouncer");
        command
            .arg(&settings)
            .stderr(Stdio::null())
            .stdout(Stdio::null());
        // The pooler refuses to run as the superuser.
        let is_root = fs::metadata("/proc/self").is_ok_and(|of| of.uid() == 0);
        if is_root {
            command.uid(65_534);
        }
        let child = command.spawn().ok()?;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        Some(Self(child, folder, port))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = fs::remove_dir_all(&self.1);
    }
}

#[test]
fn pooler_in_transaction_mode_is_refused() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    for mode in ["session", "transaction"] {
        let Some(pooler) = Pooler::start(&url, mode) else {
            return;
        };
        let (user, host) = url.split_once('@').unwrap();
        let (_, database) = host.split_once('/').unwrap();
        let url = format!("{user}@127.0.0.1:{}/{database}", pooler.2);
        let opened = PostgresSource::new(url).with_schema(&schema.name).open();
        if mode == "session" {
            assert!(opened.is_ok(), "{:?}", opened.err());
        } else {
            let error = opened.err().expect("it is refused");
            assert!(error.cause.contains("transaction mode"), "{error}");
        }
    }
}

#[test]
fn encrypted_connection_needs_a_trusted_certificate_of_the_host() {
    let Some(url) = postgres_url() else { return };
    // `.ci/with_postgres` creates the certificates.
    let Ok(roots) = std::env::var("THRONG_POSTGRES_CA") else {
        return;
    };
    let schema = TestSchema::new(&url);
    let opened = |url: &str| {
        let mut connection = PostgresConnection::open(url, &schema.name, Arc::default())?;
        connection.call(async |client, named| {
            let ask = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            let row = client.query_one(ask, &[]).await;
            Ok(row.map_err(|error| named.error(error))?.get::<_, bool>(0))
        })
    };
    assert_eq!(opened(&url), Ok(false));
    for mode in ["require", "verify-full"] {
        let trusting = format!("{url}?sslmode={mode}&sslrootcert={roots}");
        assert_eq!(opened(&trusting), Ok(true));
        for (refused, cause) in [
            (format!("{url}?sslmode={mode}"), "certificate"),
            (trusting.replace("127.0.0.1", "localhost"), "certificate"),
            (
                format!("{url}?sslmode={mode}&sslrootcert=/dev/null"),
                "found none",
            ),
        ] {
            let error = opened(&refused).unwrap_err();
            assert!(error.cause.contains(cause), "{error}");
        }
    }
}
