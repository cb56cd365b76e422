//! The conformance tests for SQLite, and files that are no store or have changed.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use throng_core::ids::PlayerId;
use throng_protocol::wire::Encoding;

use super::connect::connect;
use super::schema::{APPLICATION_ID, MIGRATIONS, VERSION};
use super::source::SqliteSource;
use super::store::SqliteStore;
use super::{dump_store, inspect_store, migrate_store};
use crate::conformance::check_store;
use crate::corrupt_records::check_corrupt_records;
use crate::error::{StoreError, StoreErrorKind};
use crate::inspection::DisplayValue;
use crate::record::StoredAttribute;
use crate::registration::{RegistrationTerms, SERVER_ENTRY_TTL_MS};
use crate::save_batch::SaveBatch;
use crate::store::{ClaimResult, LookupResult, StoreBackend, StoreFactory};
use crate::testing::{FIRST_MINUTE, TAKE_OVER, TestFolder};

fn gold() -> [StoredAttribute; 2] {
    let attribute = |id, name: &str, encoding| StoredAttribute {
        id,
        name: name.to_owned(),
        encoding,
    };
    [
        attribute(2, "gold", Encoding::U16),
        attribute(3, "motto", Encoding::Bytes { max: 40 }),
    ]
}

/// Saves this many players.
fn fill(store: &mut dyn StoreBackend, count: u64) -> Result<(), StoreError> {
    store.register_attributes(&gold())?;
    let server = store.register_server("a", TAKE_OVER)?;
    let players: Vec<PlayerId> = (1..=count).map(PlayerId).collect();
    let mut batch = SaveBatch::new(1, 7);
    for claimed in store.claim(&server, &players, FIRST_MINUTE)? {
        let ClaimResult::Granted { epoch, record } = claimed else {
            panic!("{claimed:?}");
        };
        let gold = (record.player.0 as u16).to_le_bytes();
        let values = [(2, Some(&gold[..])), (3, Some(&b"carpe diem"[..]))];
        batch.add((record.player, epoch, 7), values.into_iter());
    }
    store.save(&server, &batch, Some(2_000))?;
    Ok(())
}

fn filled(path: &Path) {
    fill(&mut SqliteStore::open(path).unwrap(), 100).unwrap();
}

/// The error of opening a file.
fn refused(path: &Path) -> StoreErrorKind {
    let error = SqliteStore::open(path).err().expect("it is no store");
    assert_eq!(error.store, path.display().to_string());
    assert!(!error.cause.is_empty(), "{error}");
    error.kind
}

#[test]
fn sqlite_store_conforms() {
    let folder = TestFolder::new();
    let mut nth = 0;
    check_store(|| {
        nth += 1;
        SqliteSource::new(folder.file(&format!("{nth}.db")))
    })
    .unwrap();
}

#[test]
fn inspection_shows_the_saved_values() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    filled(&path);
    let findings = inspect_store(&path).unwrap();
    assert_eq!(findings.problems, Vec::<String>::new());
    assert_eq!((findings.players, findings.values), (100, 200));
    assert_eq!(findings.leases["a"], (100, 61_000));
    let mut rows = Vec::new();
    dump_store(&path, |row| {
        rows.push(row);
        true
    })
    .unwrap();
    let row = &rows[41];
    assert_eq!(
        (rows.len(), row.player, row.revision, row.tick),
        (100, PlayerId(42), 1, 7)
    );
    assert_eq!(row.lease, Some(("a".to_owned(), 1, 61_000)));
    assert_eq!(row.values["gold"], DisplayValue::Integer(42));
    assert_eq!(
        row.values["motto"],
        DisplayValue::Text("carpe diem".to_owned())
    );
    // With SQL only, as documented.
    let connection = Connection::open(&path).unwrap();
    let gold = "SELECT value FROM player_value WHERE player = 42 AND name = 'gold'";
    let gold: i64 = connection.query_row(gold, [], |row| row.get(0)).unwrap();
    let expires = "SELECT expires FROM held_lease WHERE player = 42";
    let expires: String = connection.query_row(expires, [], |row| row.get(0)).unwrap();
    assert_eq!((gold, expires.as_str()), (42, "1970-01-01 00:01:01"));
}

#[test]
fn older_file_is_migrated_and_keeps_its_content() {
    let folder = TestFolder::new();
    for made_by in 0..VERSION {
        let path = folder.file(&format!("{made_by}.db"));
        let connection = Connection::open(&path).unwrap();
        for migration in &MIGRATIONS[..made_by as usize] {
            connection.execute_batch(migration).unwrap();
        }
        if made_by > 0 {
            connection
                .pragma_update(None, "application_id", APPLICATION_ID)
                .unwrap();
            connection
                .pragma_update(None, "user_version", made_by)
                .unwrap();
            let player = "INSERT INTO player (player, revision) VALUES (7, 3)";
            connection.execute(player, []).unwrap();
            let error = inspect_store(&path).unwrap_err();
            assert!(error.cause.contains("throng db migrate"), "{error}");
        }
        drop(connection);
        assert_eq!(migrate_store(&path).unwrap(), (made_by, VERSION));
        assert_eq!(migrate_store(&path).unwrap(), (VERSION, VERSION));
        let findings = inspect_store(&path).unwrap();
        assert_eq!(findings.players, u64::from(made_by > 0));
        filled(&path);
    }
}

#[test]
fn foreign_files_are_detected_and_left_unchanged() {
    let folder = TestFolder::new();
    let text = folder.file("text.db");
    fs::write(&text, "a list of players\n".repeat(100)).unwrap();
    let other = folder.file("other.db");
    let connection = Connection::open(&other).unwrap();
    connection
        .execute_batch("CREATE TABLE cats (name TEXT)")
        .unwrap();
    drop(connection);
    let newer = folder.file("newer.db");
    filled(&newer);
    let connection = Connection::open(&newer).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let locked = folder.file("readonly.db");
    filled(&locked);
    let mut permissions = fs::metadata(&locked).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&locked, permissions).unwrap();
    for (path, fault) in [
        (&text, StoreErrorKind::NotAPlayerStore),
        (&other, StoreErrorKind::NotAPlayerStore),
        (
            &newer,
            StoreErrorKind::NewerSchema {
                found: 99,
                known: VERSION,
            },
        ),
        (&locked, StoreErrorKind::ReadOnly),
    ] {
        let before = fs::read(path).unwrap();
        assert_eq!(refused(path), fault);
        assert_eq!(fs::read(path).unwrap(), before, "{}", path.display());
    }
    for path in [&text, &other, &newer] {
        assert!(inspect_store(path).is_err() && migrate_store(path).is_err());
    }
    assert_eq!(
        refused(&folder.file("no/such/folder.db")),
        StoreErrorKind::Unreachable
    );
    let missing = folder.file("missing.db");
    assert!(inspect_store(&missing).is_err() && !missing.exists());
}

#[test]
fn file_held_by_another_program_is_locked_until_released() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    let mut store = SqliteStore::open(&path).unwrap();
    store.register_attributes(&gold()).unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.register_server("a", TAKE_OVER).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Locked, "{error}");
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(
        store.register_server("a", TAKE_OVER).unwrap().incarnation,
        1
    );
}

#[test]
fn full_disk_saves_nothing_and_corrupts_nothing() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    let mut store = SqliteStore::open(&path).unwrap();
    store.forbid_growth();
    let error = fill(&mut store, 5_000).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::DiskFull, "{error}");
    drop(store);
    assert_eq!(inspect_store(&path).unwrap().players, 0);
    filled(&path);
}

#[test]
fn corrupted_file_is_detected_without_a_panic() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    filled(&path);
    let connection = Connection::open(&path).unwrap();
    let mode = "PRAGMA journal_mode = DELETE";
    connection
        .query_row(mode, [], |row| row.get::<_, String>(0))
        .unwrap();
    drop(connection);
    let whole = fs::read(&path).unwrap();
    let mut found = 0;
    for page in 1..whole.len() / 4_096 {
        let mut bytes = whole.clone();
        bytes[page * 4_096..][..4_096].fill(0xa5);
        fs::write(&path, &bytes).unwrap();
        let players: Vec<PlayerId> = (1..=100).map(PlayerId).collect();
        let used: Result<Vec<LookupResult>, StoreError> =
            SqliteStore::open(&path).and_then(|mut store| {
                store.register_attributes(&gold())?;
                store.lookup(&players)
            });
        if let Err(error) = used {
            assert_eq!(error.kind, StoreErrorKind::Corrupt, "page {page}: {error}");
            assert!(error.to_string().contains("a.db"), "{error}");
        }
        let is_wrong = inspect_store(&path).map_or(true, |findings| !findings.problems.is_empty());
        found += u32::from(is_wrong);
        let _ = fs::remove_file(folder.file("a.db-wal"));
        let _ = fs::remove_file(folder.file("a.db-shm"));
    }
    assert_eq!(found as usize, whole.len() / 4_096 - 1);
    // A value that somebody has edited by hand is reported.
    fs::write(&path, &whole).unwrap();
    let connection = Connection::open(&path).unwrap();
    let change = "UPDATE value SET value = 'much' WHERE player = 42 AND attribute = 2";
    connection.execute(change, []).unwrap();
    let wrong = inspect_store(&path).unwrap().problems;
    assert!(
        wrong.len() == 1 && wrong[0].contains("player 42"),
        "{wrong:?}"
    );
    let mut store = SqliteStore::open(&path).unwrap();
    store.register_attributes(&gold()).unwrap();
    let looked = store.lookup(&[41, 42, 43].map(PlayerId)).unwrap();
    let [
        LookupResult::Found(_),
        LookupResult::Unreadable(error),
        LookupResult::Found(_),
    ] = &looked[..]
    else {
        panic!("{looked:?}");
    };
    assert!(
        error.kind == StoreErrorKind::ValueRejected && error.cause.contains("player 42"),
        "{error}"
    );
}

#[test]
fn memory_database_conforms_while_its_source_lives() {
    check_store(|| SqliteSource::new(":memory:")).unwrap();
}

#[test]
fn file_settings_flush_every_commit_to_disk() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    let connection = connect(&path, true).unwrap();
    let pragma = |name: &str| {
        let found = connection.query_row(&format!("PRAGMA {name}"), [], |row| {
            row.get::<_, rusqlite::types::Value>(0)
        });
        format!("{:?}", found.unwrap())
    };
    assert_eq!(pragma("journal_mode"), "Text(\"wal\")");
    assert_eq!(
        pragma("synchronous"),
        "Integer(2)",
        "every commit is flushed"
    );
    assert_eq!(pragma("foreign_keys"), "Integer(1)");
}

#[test]
fn file_of_a_process_killed_before_its_first_table_is_migrated() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    let connection = Connection::open(&path).unwrap();
    let set = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
    set.unwrap();
    drop(connection);
    assert!(fs::metadata(&path).unwrap().len() > 0);
    assert_eq!(migrate_store(&path), Ok((0, VERSION)));
    filled(&path);
}

#[test]
fn corrupt_record_affects_no_other_record() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    check_corrupt_records(&mut SqliteSource::new(&path), |player| {
        let spoil = Connection::open(&path).unwrap();
        let change = "UPDATE value SET value = 'much' WHERE player = ?1";
        assert_eq!(spoil.execute(change, [player.0 as i64]).unwrap(), 1);
    })
    .unwrap();
}

#[test]
fn corrupt_record_blocks_no_other_login_or_save() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    filled(&path);
    let spoil = Connection::open(&path).unwrap();
    for change in [
        "UPDATE value SET value = -3 WHERE player = 42 AND attribute = 2",
        "UPDATE player SET revision = 9223372036854775807 WHERE player = 7",
    ] {
        assert_eq!(spoil.execute(change, []).unwrap(), 1);
    }
    let mut store = SqliteStore::open(&path).unwrap();
    store.register_attributes(&gold()).unwrap();
    let server = store.register_server("a", TAKE_OVER).unwrap();
    let players: Vec<PlayerId> = (1..=100).map(PlayerId).collect();
    let mut batch = SaveBatch::new(1, 8);
    for claimed in store.claim(&server, &players, FIRST_MINUTE).unwrap() {
        match claimed {
            ClaimResult::Granted { epoch, record } => {
                let values = std::iter::once((2, Some(&[1, 1][..])));
                batch.add((record.player, epoch, 8), values);
            }
            ClaimResult::Unreadable { player, error } => {
                assert_eq!(
                    (player, error.kind),
                    (PlayerId(42), StoreErrorKind::ValueRejected)
                );
                assert!(error.cause.contains("player 42, attribute 2"), "{error}");
            }
            other @ ClaimResult::Refused { .. } => panic!("{other:?}"),
        }
    }
    assert_eq!(batch.len(), 99);
    let outcome = store.save(&server, &batch, Some(3_000)).unwrap();
    assert_eq!(outcome.refused, [PlayerId(7)]);
    assert_eq!(outcome.errors[0].1.kind, StoreErrorKind::ValueRejected);
    assert_eq!(outcome.revisions.len(), 98);
    // A missing attribute affects only the players who have it.
    spoil
        .execute("DELETE FROM value WHERE attribute = 3", [])
        .unwrap();
    spoil
        .execute("DELETE FROM attribute WHERE id = 3", [])
        .unwrap();
    let mut batch = SaveBatch::new(2, 9);
    for player in [1, 2] {
        let id = player as u16 + 1;
        let values = std::iter::once((id, Some(&[1, 1][..])));
        batch.add((PlayerId(player), 2, 9), values);
    }
    let outcome = store.save(&server, &batch, Some(3_000)).unwrap();
    assert_eq!(outcome.refused, [PlayerId(2)]);
    assert_eq!(outcome.revisions, [(PlayerId(1), 3)]);
}

#[test]
fn entries_of_old_servers_are_deleted_at_a_registration() {
    let folder = TestFolder::new();
    let path = folder.file("a.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let mut register = |name: &str, now_ms: u64| {
        let terms = RegistrationTerms {
            at_ms: Some(now_ms),
            ..RegistrationTerms::default()
        };
        store.register_server(name, terms).unwrap()
    };
    let day_ms = SERVER_ENTRY_TTL_MS / 30;
    for day in 0..100 {
        register(&format!("pod {day}"), day * day_ms);
    }
    let rows = "SELECT name FROM server ORDER BY seen_ms";
    let names = || {
        let reader = Connection::open(&path).unwrap();
        let mut statement = reader.prepare(rows).unwrap();
        let names = statement.query_map([], |row| row.get::<_, String>(0));
        names.unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    // Exactly 30 days is not too old.
    let expected: Vec<String> = (69..100).map(|day| format!("pod {day}")).collect();
    assert_eq!(names(), expected);
    let last = register("pod 99", 99 * day_ms + 1 + SERVER_ENTRY_TTL_MS);
    assert_eq!((names(), last.incarnation), (vec!["pod 99".to_owned()], 2));
}

#[test]
fn moved_file_is_unreachable_until_it_is_back() {
    let folder = TestFolder::new();
    let (path, elsewhere) = (folder.file("players.db"), folder.file("moved.db"));
    let mut source = SqliteSource::new(&path);
    let mut store = source.open().unwrap();
    store.register_attributes(&gold()).unwrap();
    let server = store.register_server("a", TAKE_OVER).unwrap();
    store.claim(&server, &[PlayerId(7)], FIRST_MINUTE).unwrap();
    let mut batch = SaveBatch::new(1, 7);
    batch.add((PlayerId(7), 1, 7), std::iter::once((2, Some(&[7, 0][..]))));
    let rename = |from: &Path, to: &Path| {
        for end in ["", "-wal", "-shm"] {
            let of = |path: &Path| format!("{}{end}", path.display());
            // The auxiliary files disappear with the last connection.
            let _ = fs::rename(of(from), of(to));
        }
    };
    rename(&path, &elsewhere);
    let error = store.save(&server, &batch, None).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unreachable, "{error}");
    assert!(error.cause.contains("moved"), "{error}");
    assert!(store.lookup(&[PlayerId(7)]).is_err());
    drop(store);
    let error = source.open().err().expect("there is no file");
    assert_eq!(error.kind, StoreErrorKind::Unreachable, "{error}");
    assert!(
        !path.exists(),
        "an empty store would be taken for the players"
    );
    rename(&elsewhere, &path);
    let mut store = source.open().unwrap();
    store.register_attributes(&gold()).unwrap();
    let outcome = store.save(&server, &batch, None).unwrap();
    assert_eq!(outcome.revisions, [(PlayerId(7), 1)]);
    // Another file at this path is not the store that is open.
    rename(&path, &elsewhere);
    filled(&path);
    assert!(store.lookup(&[PlayerId(7)]).is_err());
}
