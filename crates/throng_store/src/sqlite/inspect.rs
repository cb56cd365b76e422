//! Inspection of a store's file.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OpenFlags};
use throng_core::ids::PlayerId;

use super::connect::connect;
use super::errors::NamedFile;
use super::schema::{self, FileKind};
use super::value::from_sql;
use crate::encodings::encoding_of;
use crate::error::{StoreError, StoreErrorKind};
use crate::inspection::{DisplayValue, PROBLEMS_MAX, StoreInspection, StoredRow};

/// Migrates a file to the newest version, and returns the versions before and after. Creates the file if it does not exist.
///
/// # Errors
/// [`StoreError`] if it is no store, or cannot be written.
pub fn migrate_store(path: &Path) -> Result<(i64, i64), StoreError> {
    let before = if path.exists() {
        match kind_of(path)?.1 {
            FileKind::Store(version) => version,
            // `connect` reports these two as errors.
            FileKind::Empty | FileKind::Foreign => 0,
        }
    } else {
        0
    };
    connect(path, true)?;
    Ok((before, schema::VERSION))
}

/// Opens a file for reading, and determines its kind.
fn kind_of(path: &Path) -> Result<(Connection, FileKind), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<(Connection, FileKind)> {
        let connection = Connection::open_with_flags(path, flags)?;
        let kind = schema::kind_of(&connection)?;
        Ok((connection, kind))
    };
    open().map_err(|error| NamedFile(path).error(error))
}

/// Opens a store for reading, and returns its version.
fn open_read_only(path: &Path) -> Result<(Connection, i64), StoreError> {
    let named = NamedFile(path);
    if !path.exists() {
        return Err(named.store_error(StoreErrorKind::Unreachable, "no such file"));
    }
    let (connection, kind) = kind_of(path)?;
    match kind {
        FileKind::Store(version) if version <= schema::VERSION => Ok((connection, version)),
        FileKind::Store(found) => {
            let known = schema::VERSION;
            Err(named.store_error(
                StoreErrorKind::NewerSchema { found, known },
                "it is left as it is",
            ))
        }
        FileKind::Empty => {
            Err(named.store_error(StoreErrorKind::NotAPlayerStore, "an empty database"))
        }
        FileKind::Foreign => Err(named.store_error(
            StoreErrorKind::NotAPlayerStore,
            "a database of another program",
        )),
    }
}

/// A store of the newest version, for reading.
fn open_current(path: &Path) -> Result<Connection, StoreError> {
    let (connection, found) = open_read_only(path)?;
    let known = schema::VERSION;
    if found < known {
        let cause =
            format!("its schema is {found}, expected {known}: run `throng db migrate` first");
        return Err(NamedFile(path).store_error(StoreErrorKind::NotAPlayerStore, cause));
    }
    Ok(connection)
}

/// Reads a whole file, and reports its contents and problems. O(file).
///
/// # Errors
/// [`StoreError`] if it is no store of the newest version, or too damaged to be read.
pub fn inspect_store(path: &Path) -> Result<StoreInspection, StoreError> {
    let connection = open_current(path)?;
    inspect_tables(&connection).map_err(|error| NamedFile(path).error(error))
}

fn inspect_tables(connection: &Connection) -> rusqlite::Result<StoreInspection> {
    let mut findings = StoreInspection {
        version: schema::VERSION,
        ..StoreInspection::default()
    };
    let mut wrong = Vec::new();
    let mut integrity = connection.prepare(&format!("PRAGMA integrity_check({PROBLEMS_MAX})"))?;
    for line in integrity.query_map([], |row| row.get::<_, String>(0))? {
        wrong.extend(Some(line?).filter(|line| line != "ok"));
    }
    let mut orphans = connection.prepare("PRAGMA foreign_key_check")?;
    let orphans = orphans
        .query_map([], |row| row.get::<_, String>(0))?
        .count();
    if orphans > 0 {
        wrong.push(format!(
            "{orphans} values of players or attributes that are not there"
        ));
    }
    let mut encodings = BTreeMap::new();
    let mut attributes = connection.prepare("SELECT id, name, encoding FROM attribute")?;
    let mut rows = attributes.query([])?;
    while let Some(row) = rows.next()? {
        let (id, name, encoding): (u16, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        match encoding_of(&encoding) {
            Some(encoding) => {
                encodings.insert(id, encoding);
            }
            None => wrong.push(format!(
                "attribute `{name}`: no encoding `{encoding}` is known"
            )),
        }
        findings.attributes.insert(id, name);
    }
    let mut values = connection.prepare("SELECT player, attribute, value FROM value")?;
    let mut rows = values.query([])?;
    while let Some(row) = rows.next()? {
        findings.values += 1;
        let (player, id, value) = (
            row.get::<_, i64>(0)? as u64,
            row.get::<_, u16>(1)?,
            row.get_ref(2)?,
        );
        let readable = encodings
            .get(&id)
            .map(|&encoding| from_sql(encoding, value));
        if readable == Some(None) && wrong.len() < PROBLEMS_MAX {
            let name = findings.attributes.get(&id).map_or("", |name| name);
            wrong.push(format!(
                "player {player}: {value:?} is no value of `{name}`"
            ));
        }
    }
    let count = "SELECT count(*) FROM player WHERE revision > 0";
    findings.players = connection.query_row(count, [], |row| row.get::<_, i64>(0))? as u64;
    let leases = "SELECT server, count(*), max(expires_ms) FROM player WHERE server IS NOT NULL GROUP BY server";
    let mut leases = connection.prepare(leases)?;
    let mut rows = leases.query([])?;
    while let Some(row) = rows.next()? {
        let (count, last) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64);
        findings.leases.insert(row.get(0)?, (count, last));
    }
    findings.problems = wrong;
    Ok(findings)
}

/// Passes every player of a file, as stored, to `show`, by ascending id (ids from 2^63 on come first), until `show` returns `false`.
///
/// # Errors
/// [`StoreError`] if it is no store of the newest version, or cannot be read.
pub fn dump_store(path: &Path, mut show: impl FnMut(StoredRow) -> bool) -> Result<(), StoreError> {
    let connection = open_current(path)?;
    dump_all(&connection, &mut show).map_err(|error| NamedFile(path).error(error))
}

fn dump_all(
    connection: &Connection,
    show: &mut dyn FnMut(StoredRow) -> bool,
) -> rusqlite::Result<()> {
    let mut players = connection.prepare(
        "SELECT player, revision, tick, saved_ms, epoch, server, incarnation, expires_ms FROM player ORDER BY player",
    )?;
    let mut values =
        connection.prepare("SELECT name, value FROM player_value WHERE player = ?1")?;
    let mut rows = players.query([])?;
    while let Some(row) = rows.next()? {
        let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
        let (server, incarnation): (Option<String>, Option<i64>) = (row.get(5)?, row.get(6)?);
        let expires_ms = number(7)?;
        let lease = server.zip(incarnation);
        let mut shown = BTreeMap::new();
        let mut of_player = values.query([row.get::<_, i64>(0)?])?;
        while let Some(value) = of_player.next()? {
            let text = match value.get::<_, SqlValue>(1)? {
                SqlValue::Integer(number) => DisplayValue::Integer(number),
                SqlValue::Real(number) => DisplayValue::Real(number),
                SqlValue::Text(text) => DisplayValue::Text(text),
                SqlValue::Blob(bytes) => DisplayValue::hexadecimal(&bytes),
                SqlValue::Null => continue,
            };
            shown.insert(value.get(0)?, text);
        }
        let row = StoredRow {
            player: PlayerId(number(0)?),
            revision: number(1)?,
            tick: number(2)?,
            saved_ms: number(3)?,
            epoch: number(4)?,
            lease: lease.map(|(server, incarnation)| (server, incarnation as u64, expires_ms)),
            values: shown,
        };
        if !show(row) {
            break;
        }
    }
    Ok(())
}
