//! Servers whose store file cannot be used: the log names the file and the cause, logins are refused with the same error, and the
//! server keeps running. Once the file is usable again, players are loaded and saved.

use std::fmt::{Debug, Write};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use throng_store::testing::TestFolder;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::*;
use crate::store::{
    ClaimResult, SqliteSource, SqliteStore, StoreErrorKind, StoreRequest, StoreSupervisor,
    dump_store,
};

/// Errors that are logged on this thread.
#[derive(Clone, Default)]
struct LoggedErrors(Arc<Mutex<Vec<String>>>);

impl Subscriber for LoggedErrors {
    fn enabled(&self, metadata: &Metadata) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn event(&self, event: &Event) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                let _ = write!(self.0, "{field}={value:?} ");
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &span::Attributes) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The errors that the code logs on this thread.
fn errors_logged(work: impl FnOnce()) -> Vec<String> {
    let errors = LoggedErrors::default();
    crate::sim::log_to(errors.clone(), work);
    std::mem::take(&mut *errors.0.lock().unwrap())
}

/// Overwrites a file with changed content and returns the old content.
fn overwrite(path: &Path, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let before = fs::read(path).unwrap();
    fs::write(path, change(&before)).unwrap();
    before
}

/// A file on a disk that can be full.
#[derive(Clone, Debug)]
struct FileOnDisk {
    source: SqliteSource,
    is_full: Arc<AtomicBool>,
}

impl FileOnDisk {
    fn new(path: &Path) -> Self {
        Self {
            source: SqliteSource::new(path),
            is_full: Arc::default(),
        }
    }
}

impl StoreFactory for FileOnDisk {
    fn open(&mut self) -> Result<Box<dyn StoreBackend>, StoreError> {
        let store = SqliteStore::open(self.source.path())?;
        if self.is_full.load(Ordering::Relaxed) {
            store.forbid_growth();
        }
        Ok(Box::new(store))
    }
}

/// Like [`game`], but no tick waits for the store, as in real time.
/// Settings for a login that must succeed, however late the thread of the store is.
fn patient_leases() -> LeaseTableSettings {
    LeaseTableSettings {
        load_timeout_ms: 60_000,
        ..LeaseTableSettings::default()
    }
}

fn live_game(source: impl StoreFactory + 'static, ledger: LeaseTableSettings) -> App {
    let settings = PlayerStoreSettings {
        leases: ledger,
        ..PlayerStoreSettings::default()
    };
    game_with(source, settings)
}

/// The purse of a player, read from the file.
fn coins_in_file(path: &Path, player: u64) -> Option<String> {
    let mut found = None;
    let read = dump_store(path, |row| {
        if row.player.0 == player {
            found = row.values.get("purse").map(|coins| format!("{coins:?}"));
        }
        true
    });
    read.unwrap();
    found
}

/// A file with player 7, who has 42 coins.
fn write_player_file(path: &Path) {
    let mut app = game(SqliteSource::new(path));
    log_in(&mut app, 7);
    ticks(&mut app, 2);
    purse(&mut app, 7).unwrap().0 = 42;
    assert!(close_player_store(app.world_mut(), MINUTE));
}

/// Checks the effects of a fault in the file: `spoil` causes it, and the function that it returns removes it.
fn check_fault<M: FnOnce()>(
    name: &str,
    fault: StoreErrorKind,
    spoil: impl FnOnce(PathBuf, FileOnDisk) -> M,
) {
    let folder = TestFolder::new();
    let path = folder.file(&format!("{name}.db"));
    write_player_file(&path);
    let file = FileOnDisk::new(&path);
    let mend = spoil(path.clone(), file.clone());
    // The store thread logs what its supervisor does.
    let mut supervisor = StoreSupervisor::new(Box::new(file.clone()), "b".to_owned(), Vec::new());
    let players = vec![PlayerId(7)];
    let logged = errors_logged(|| {
        let look = StoreRequest::Lookup { players };
        for now_ms in [0, 1] {
            let error = supervisor.execute(&look, now_ms).unwrap_err();
            assert_eq!(error.kind, fault, "{error}");
        }
    });
    let mut app = live_game(file, patient_leases());
    let Some(PlayerStoreError::Store(error)) = login_error(&mut app, 7) else {
        panic!("{name}: no player can be claimed");
    };
    assert_eq!(
        (&*error.store, error.kind),
        (&*path.display().to_string(), fault)
    );
    assert!(!error.cause.is_empty());
    let [line] = &logged[..] else {
        panic!("{name}: {logged:?}");
    };
    assert!(line.contains(&error.to_string()), "{line}");
    assert!(app.world().resource::<Sessions>().is_empty());
    ticks(&mut app, 10);
    mend();
    while login_error(&mut app, 7).is_some() {}
    assert_eq!(purse(&mut app, 7).unwrap().0, 42, "{name}");
    purse(&mut app, 7).unwrap().0 = 43;
    assert!(close_player_store(app.world_mut(), MINUTE));
    assert_eq!(
        coins_in_file(&path, 7).as_deref(),
        Some("Integer(43)"),
        "{name}"
    );
}

#[test]
fn corrupt_foreign_or_newer_file_is_reported_until_repaired() {
    check_fault("corrupted", StoreErrorKind::Corrupt, |path, _| {
        let connection = Connection::open(&path).unwrap();
        let mode = "PRAGMA journal_mode = DELETE";
        let mode_found = connection.query_row(mode, [], |row| row.get::<_, String>(0));
        assert_eq!(mode_found.as_deref(), Ok("delete"));
        drop(connection);
        let before = overwrite(&path, |content| {
            let mut content = content.to_vec();
            content[4_096..].fill(0xa5);
            content
        });
        move || drop(overwrite(&path, |_| before))
    });
    check_fault("foreign", StoreErrorKind::NotAPlayerStore, |path, _| {
        let list = "a list of players\n".repeat(100);
        let before = overwrite(&path, |_| list.into_bytes());
        move || drop(overwrite(&path, |_| before))
    });
    let newer = StoreErrorKind::NewerSchema {
        found: 99,
        known: 3,
    };
    check_fault("newer", newer, |path, _| {
        let version = move |version: u32| {
            let connection = Connection::open(&path).unwrap();
            let set = connection.pragma_update(None, "user_version", version);
            set.unwrap();
        };
        version(99);
        move || version(3)
    });
}

#[test]
fn read_only_or_locked_file_is_reported_until_accessible() {
    check_fault("read_only", StoreErrorKind::ReadOnly, |path, _| {
        let usual = fs::metadata(&path).unwrap().permissions();
        let mut read_only = usual.clone();
        read_only.set_readonly(true);
        fs::set_permissions(&path, read_only).unwrap();
        move || fs::set_permissions(path, usual).unwrap()
    });
    check_fault("locked", StoreErrorKind::Locked, |path, _| {
        let holder = Connection::open(&path).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        move || holder.execute_batch("ROLLBACK").unwrap()
    });
}

#[test]
fn full_disk_is_reported_until_space_is_freed() {
    const MANY: u64 = 300;
    let folder = TestFolder::new();
    let path = folder.file("full.db");
    write_player_file(&path);
    let file = FileOnDisk::new(&path);
    file.is_full.store(true, Ordering::Relaxed);
    let mut app = live_game(file.clone(), patient_leases());
    log_in_up_to(&mut app, MANY);
    let mut refused = Vec::new();
    while refused.len() < MANY as usize {
        app.update();
        refused.extend(messages_of::<PlayerLoadFailed>(&app));
        std::thread::yield_now();
    }
    let is_full = |refused: &PlayerLoadFailed| match &refused.error {
        PlayerStoreError::Store(error) => {
            error.kind == StoreErrorKind::DiskFull && error.store.ends_with("full.db")
        }
        _ => false,
    };
    assert!(refused.iter().all(is_full), "{:?}", refused[0]);
    ticks(&mut app, 10);
    assert_eq!(coins_in_file(&path, 7).as_deref(), Some("Integer(42)"));
    file.is_full.store(false, Ordering::Relaxed);
    // The store opens the file again at its next attempt. Until then, only a few players fit.
    log_in_up_to(&mut app, MANY);
    while app.world().resource::<PlayerStore>().live_count() < MANY as usize {
        app.update();
        for refused in messages_of::<PlayerLoadFailed>(&app) {
            log_in(&mut app, refused.player.0);
        }
        std::thread::yield_now();
    }
    assert_eq!(purse(&mut app, 7).unwrap().0, 42);
    assert!(close_player_store(app.world_mut(), MINUTE));
    assert!(coins_in_file(&path, MANY).is_some());
}

#[test]
fn file_locked_while_running_delays_only_saves() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    write_player_file(&path);
    let mut app = live_game(SqliteSource::new(&path), patient_leases());
    assert_eq!(login_error(&mut app, 7), None);
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    for coins in 50..60 {
        purse(&mut app, 7).unwrap().0 = coins;
        let players = [PlayerId(7); 2];
        app.world_mut().write_message(AtomicSaveRequest { players });
        app.update();
    }
    let failures = |app: &App| app.world().resource::<PlayerStoreStats>().failures;
    while failures(&app) == 0 {
        app.update();
        std::thread::yield_now();
    }
    assert!(app.world().resource::<PlayerStore>().unsaved() > 0);
    assert_eq!(coins_in_file(&path, 7).as_deref(), Some("Integer(42)"));
    holder.execute_batch("ROLLBACK").unwrap();
    while app.world().resource::<PlayerStore>().unsaved() > 0 {
        app.update();
        std::thread::yield_now();
    }
    assert_eq!(coins_in_file(&path, 7).as_deref(), Some("Integer(59)"));
}

#[test]
fn late_store_reply_is_logged_and_its_lease_is_released() {
    let (disk, gate) = (MemoryDisk::default(), Arc::new(Mutex::new(())));
    let ledger = LeaseTableSettings {
        load_timeout_ms: 30,
        ..LeaseTableSettings::default()
    };
    let mut app = live_game(gated_source(&disk, &gate), ledger);
    // The thread of the store may take longer than that, too.
    let is_in = (0..10_000).any(|_| login_error(&mut app, 1).is_none());
    assert!(is_in, "every login timed out");
    // The store is busy with a save for longer than the timeout of a login.
    let closed = gate.lock().unwrap();
    purse(&mut app, 1).unwrap().0 = 1;
    let players = [PlayerId(1); 2];
    app.world_mut().write_message(AtomicSaveRequest { players });
    app.update();
    let logged = errors_logged(|| {
        let late = login_error(&mut app, 2);
        let is_late = matches!(
            late,
            Some(PlayerStoreError::TimedOut {
                load_timeout_ms: 30,
                ..
            })
        );
        assert!(is_late, "{late:?}");
    });
    let is_named = logged[0].contains("HookedSource") && logged[0].contains("after 30 ms");
    assert!(logged.len() == 1 && is_named, "{logged:?}");
    ticks(&mut app, 10);
    drop(closed);
    // Its lease was acquired and released.
    let other = PlayerStoreSettings {
        server: "other".to_owned(),
        ..PlayerStoreSettings::default()
    };
    let mut other = game_with(disk, other);
    while login_error(&mut other, 2).is_some() {
        app.update();
    }
    assert!(!app.world().resource::<PlayerStore>().is_live(PlayerId(2)));
}

#[test]
fn lease_of_a_dead_server_is_free_after_expiry() {
    let disk = MemoryDisk::default();
    let mut dead = game(disk.clone());
    log_in(&mut dead, 7);
    ticks(&mut dead, 2);
    purse(&mut dead, 7).unwrap().0 = 42;
    let players = [PlayerId(7); 2];
    dead.world_mut()
        .write_message(AtomicSaveRequest { players });
    ticks(&mut dead, 2);
    // Without a shutdown.
    drop(dead);
    let mut app = game_with(
        disk.clone(),
        PlayerStoreSettings {
            server: "other".to_owned(),
            reply_mode: StoreReplyMode::NextTick,
            ..PlayerStoreSettings::default()
        },
    );
    let asked_ms = crate::sim::clock::unix_ms();
    let mut refused = None;
    let logged = errors_logged(|| refused = login_error(&mut app, 7));
    let Some(PlayerStoreError::Leased {
        server, left_ms, ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    let ledger = LeaseTableSettings::default();
    let longest_ms = ledger.lease_ms + ledger.clock_grace_ms + 1_000;
    assert!(
        server == "throng" && (1..=longest_ms).contains(&left_ms),
        "{server} {left_ms}"
    );
    let is_named = logged[0].contains("MemoryDisk") && logged[0].contains("server `throng`");
    assert!(logged.len() == 1 && is_named, "{logged:?}");
    assert!(app.world().resource::<Sessions>().is_empty());
    // The clock of the store decides when the lease has run out.
    let mut store = disk.clone().open().unwrap();
    let heir = store
        .register_server("heir", RegistrationTerms::default())
        .unwrap();
    let replied_ms = crate::sim::clock::unix_ms();
    let ends_ms = [asked_ms + left_ms - 2_000, replied_ms + left_ms + 2_000];
    for (at_ms, is_granted) in ends_ms.into_iter().zip([false, true]) {
        let terms = ClaimTerms {
            at_ms: Some(at_ms),
            lease_ms: ledger.lease_ms,
            grace_ms: ledger.clock_grace_ms,
        };
        let claimed = store.claim(&heir, &[PlayerId(7)], terms).unwrap();
        assert_eq!(
            matches!(claimed[..], [ClaimResult::Granted { .. }]),
            is_granted
        );
    }
    // A server that starts again under a name releases the leases of that name.
    store.unregister_server(&heir).unwrap();
    store
        .register_server("heir", RegistrationTerms::default())
        .unwrap();
    assert_eq!(login_error(&mut app, 7), None);
    assert_eq!(purse(&mut app, 7).unwrap().0, 42);
}
