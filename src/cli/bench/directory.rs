//! `throng bench directory`: players saved and loaded by a store in a file, and what of that the tick pays.
//!
//! The file lies where the system keeps temporary files; a transaction is over when it is on disk, so its time is that of this
//! disk, too.

use std::fs;
use std::path::PathBuf;

use super::Failure;
use super::rows::BenchRow;
use crate::directory::{
    ClaimTerms, Claimed, Ledger, LedgerSettings, PlayerRecord, ServerId, SqliteStore, Store,
    StoreError, StoreOrder, StoreReport, StoredAttribute,
};
use crate::sim::clock::Stopwatch;
use crate::wire::{Encoding, Value};
use crate::world::PlayerId;

const SYSTEM: &str = "directory";

/// Players that a tick saves.
const SAVED: u64 = 2_000;

/// Players that log in at once.
const BURST: usize = 1_000;

const TERMS: ClaimTerms = ClaimTerms {
    now_ms: 0,
    until_ms: 60_000,
    grace_ms: 0,
};

/// A file that goes with the measurement.
struct BenchStore {
    folder: PathBuf,
    store: SqliteStore,
    server: ServerId,
}

impl Drop for BenchStore {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn attributes() -> [StoredAttribute; 3] {
    let attribute = |id, name: &str, encoding| StoredAttribute {
        id,
        name: name.to_owned(),
        encoding,
    };
    [
        attribute(1, "coins", Encoding::Varint),
        attribute(2, "level", Encoding::U16),
        attribute(3, "motto", Encoding::Bytes { max: 40 }),
    ]
}

/// What a player has at a tick, encoded.
fn values(player: u64, tick: u64) -> [(u16, Vec<u8>); 3] {
    let text = format!("seen {tick} ticks");
    let values = [
        Value::from(player * 7 + tick),
        Value::from((player % 60 + tick) as u16),
        Value::from(text.as_str()),
    ];
    let mut encoded = attributes().map(|attribute| (attribute.id, Vec::new()));
    for ((attribute, value), (_, bytes)) in attributes().iter().zip(&values).zip(&mut encoded) {
        attribute.encoding.write(value, bytes);
    }
    encoded
}

impl BenchStore {
    fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("throng-bench-{}", std::process::id()));
        let made = fs::create_dir_all(&folder);
        made.map_err(|error| {
            Failure::new(format!("could not make `{}`: {error}", folder.display()))
        })?;
        let mut store = SqliteStore::open(&folder.join("players.db"))?;
        store.learn(&attributes())?;
        let server = store.enroll("bench")?;
        Ok(Self {
            folder,
            store,
            server,
        })
    }

    /// Has an order done, as the store's thread does.
    fn work(&mut self, order: StoreOrder) -> Result<StoreReport, StoreError> {
        Ok(match order {
            StoreOrder::Claim { players, terms } => {
                let claimed = self.store.claim(&self.server, &players, terms)?;
                StoreReport::Claimed(players, Ok(claimed))
            }
            StoreOrder::Save { batch, now_ms } => {
                StoreReport::Saved(self.store.save(&self.server, &batch, now_ms)?)
            }
            StoreOrder::Renew { leases, until_ms } => {
                StoreReport::Renewed(Ok(self.store.renew(&leases, until_ms)?))
            }
            StoreOrder::LookUp { players } => {
                let found = self.store.look_up(&players)?;
                StoreReport::LookedUp(players, Ok(found))
            }
        })
    }
}

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, Failure> {
    let rounds = if quick { 11 } else { 61 };
    let mut bench = BenchStore::new()?;
    let mut rows = saves(&mut bench, SAVED, rounds)?;
    rows.push(loads(&mut bench, SAVED, BURST, rounds)?);
    Ok(rows)
}

/// A tick in which all of so many players changed: the tick's share, and the store's.
fn saves(bench: &mut BenchStore, count: u64, rounds: u64) -> Result<Vec<BenchRow>, Failure> {
    let mut ledger = Ledger::new(LedgerSettings::default());
    for player in 1..=count {
        // There is room for all of them.
        let _ = ledger.claim(PlayerId(player), 0);
    }
    let mut orders = Vec::new();
    ledger.orders(0, |order| orders.push(order));
    for order in orders {
        let report = bench.work(order)?;
        ledger.take(report, 0, drop);
    }
    let mut times = [const { Vec::new() }; 2];
    let mut is_whole = true;
    // The first rounds fill the file and warm buffers up.
    for tick in 1..=rounds + 3 {
        let changed: Vec<_> = (1..=count).map(|player| values(player, tick)).collect();
        let mut watch = Stopwatch::start();
        for (player, values) in (1..).map(PlayerId).zip(&changed) {
            let values = values.iter().map(|(id, value)| (*id, Some(&value[..])));
            is_whole &= ledger.save(player, tick, values);
        }
        let order = ledger.save_order(tick);
        let handed_over = watch.lap_ns();
        let Some(order) = order else {
            return Err(Failure::new("nothing was to be saved"));
        };
        let report = bench.work(order)?;
        let saved = watch.lap_ns();
        ledger.take(report, tick, drop);
        if tick > 3 {
            for (times, ns) in times.iter_mut().zip([handed_over, saved]) {
                times.push(ns as f64 / 1e6);
            }
        }
    }
    let all: Vec<PlayerId> = (1..=count).map(PlayerId).collect();
    let kept = bench.store.look_up(&all)?;
    let is_kept = |record: &PlayerRecord| {
        let values = values(record.player.0, rounds + 3);
        let mut values = values.iter();
        values.all(|(id, value)| record.values.get(id) == Some(value))
    };
    is_whole &= kept.len() as u64 == count && kept.iter().all(is_kept);
    let [tick, store] = &times;
    Ok(vec![
        BenchRow::repeated(SYSTEM, format!("save {count}, tick"), tick, "ms")
            .about(format!(
                "Handing over what changed of {count} players, 3 attributes each: what the tick pays."
            ))
            .comparing("what is read back is what was saved", is_whole)
            .aiming_below(0.2, "ms"),
        BenchRow::repeated(SYSTEM, format!("save {count}, store"), store, "ms")
            .about(format!(
                "Saving these {count} players in one transaction, on disk, on the store's thread."
            ))
            .comparing("what is read back is what was saved", is_whole)
            .aiming_below(20.0, "ms"),
    ])
}

/// So many players of a store log in at once.
fn loads(
    bench: &mut BenchStore,
    stored: u64,
    count: usize,
    rounds: u64,
) -> Result<BenchRow, Failure> {
    let (mut times, mut is_whole) = (Vec::new(), true);
    for round in 0..rounds {
        let first = round * 37 % stored;
        let players = (0..count as u64).map(|nth| PlayerId((first + nth * 2) % stored + 1));
        let mut players: Vec<PlayerId> = players.collect();
        players.sort_unstable();
        players.dedup();
        let watch = Stopwatch::start();
        let claimed = bench.store.claim(&bench.server, &players, TERMS)?;
        times.push(watch.elapsed().as_secs_f64() * 1e3);
        let is_loaded = |claimed: &Claimed| match claimed {
            Claimed::Granted { record, .. } => record.values.len() == 3,
            Claimed::Refused { .. } => false,
        };
        is_whole &= claimed.len() == players.len() && claimed.iter().all(is_loaded);
    }
    Ok(BenchRow::repeated(SYSTEM, format!("load {count}"), &times, "ms")
        .about(format!(
            "Taking the leases of {count} players that log in at once, and reading what is kept of them."
        ))
        .comparing("all came with all their values", is_whole)
        .aiming_below(50.0, "ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_whole() {
        let mut bench = BenchStore::new().unwrap();
        let rows = saves(&mut bench, 50, 2).unwrap();
        assert!(rows.iter().all(|row| row.agrees == Some(true)));
        assert_eq!(loads(&mut bench, 50, 20, 2).unwrap().agrees, Some(true));
    }
}
