//! `throng bench store`: players saved to a store in a file and loaded from it, with the tick's share of the cost; and lookups of
//! players on other nodes.
//!
//! The file is in the system's temporary folder; a transaction ends when it is on disk, so its time depends on that disk.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use foldhash::fast::FixedState;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::CliError;
use super::rows::BenchRow;
use throng::sim::clock::Stopwatch;
use throng::store::{
    CacheSettings, ClaimResult, ClaimTerms, LeaseTable, LeaseTableSettings, LookupResult,
    PlayerCache, PlayerRecord, RegistrationTerms, ServerId, SqliteStore, StoreBackend, StoreError,
    StoreReply, StoreRequest, StoredAttribute,
};
use throng::wire::{AttributeValue, Encoding};
use throng::world::PlayerId;

const SYSTEM: &str = "store";

/// Players saved by one tick.
const SAVES_PER_TICK: u64 = 2_000;

/// Players that log in at once.
const BURST: usize = 1_000;

const TERMS: ClaimTerms = ClaimTerms {
    at_ms: Some(0),
    lease_ms: 60_000,
    grace_ms: 0,
};

/// A store file, removed when dropped.
struct BenchStore {
    folder: PathBuf,
    store: SqliteStore,
    server: ServerId,
}

impl Drop for BenchStore {
    fn drop(&mut self) {
        // A file that cannot be removed is left to the system.
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

/// The encoded values of a player at a tick.
fn values(player: u64, tick: u64) -> [(u16, Vec<u8>); 3] {
    let text = format!("seen {tick} ticks");
    let values = [
        AttributeValue::from(player * 7 + tick),
        AttributeValue::from((player % 60 + tick) as u16),
        AttributeValue::from(text.as_str()),
    ];
    let mut encoded = attributes().map(|attribute| (attribute.id, Vec::new()));
    for ((attribute, value), (_, bytes)) in attributes().iter().zip(&values).zip(&mut encoded) {
        attribute.encoding.write(value, bytes);
    }
    encoded
}

impl BenchStore {
    fn new() -> Result<Self, CliError> {
        let folder = std::env::temp_dir().join(format!("throng-bench-{}", std::process::id()));
        let made = fs::create_dir_all(&folder);
        made.map_err(|error| {
            CliError::new(format!("could not create `{}`: {error}", folder.display()))
        })?;
        let mut store = SqliteStore::open(&folder.join("players.db"))?;
        store.register_attributes(&attributes())?;
        let server = store.register_server("bench", RegistrationTerms::default())?;
        Ok(Self {
            folder,
            store,
            server,
        })
    }

    /// Runs a store request as the store thread does.
    fn handle(&mut self, order: StoreRequest) -> Result<StoreReply, StoreError> {
        Ok(match order {
            StoreRequest::Claim { players, terms } => {
                let claimed = self.store.claim(&self.server, &players, terms)?;
                StoreReply::Claimed(players, Ok(claimed))
            }
            StoreRequest::Save { batch } => {
                StoreReply::Saved(self.store.save(&self.server, &batch, None)?)
            }
            StoreRequest::Renew { leases, terms } => {
                StoreReply::Renewed(Ok(self.store.renew(&self.server, &leases, terms)?))
            }
            StoreRequest::Lookup { players } => {
                let found = self.store.lookup(&players)?;
                StoreReply::LookedUp(players, Ok(found))
            }
        })
    }
}

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, CliError> {
    let rounds = if quick { 11 } else { 61 };
    let mut bench = BenchStore::new()?;
    let mut rows = saves(&mut bench, SAVES_PER_TICK, rounds)?;
    rows.push(loads(&mut bench, SAVES_PER_TICK, BURST, rounds)?);
    let lookups = if quick { 200_000 } else { 2_000_000 };
    rows.extend([0.8, 1.0, 1.2].map(|skew| hit_rate(skew, WARM_UP_LOOKUPS, lookups)));
    rows.push(ages(lookups / 2));
    rows.push(hits(rounds));
    Ok(rows)
}

/// A tick in which this many players changed: the cost for the tick, and for the store.
fn saves(bench: &mut BenchStore, count: u64, rounds: u64) -> Result<Vec<BenchRow>, CliError> {
    let mut ledger = LeaseTable::new(LeaseTableSettings::default());
    for player in 1..=count {
        // The ledger has room for all of them.
        let _ = ledger.claim(PlayerId(player), 0);
    }
    let mut orders = Vec::new();
    ledger.next_requests(0, |order| orders.push(order));
    for order in orders {
        let report = bench.handle(order)?;
        ledger.receive(report, 0, drop);
    }
    let mut times = [const { Vec::new() }; 2];
    let mut is_whole = true;
    // The first rounds fill the file and warm up the buffers.
    for tick in 1..=rounds + 3 {
        let changed: Vec<_> = (1..=count).map(|player| values(player, tick)).collect();
        let mut watch = Stopwatch::start();
        for (player, values) in (1..).map(PlayerId).zip(&changed) {
            let values = values.iter().map(|(id, value)| (*id, Some(&value[..])));
            is_whole &= ledger.save(player, tick, values);
        }
        let order = ledger.next_save_request();
        let handed_over = watch.lap_ns();
        let Some(order) = order else {
            return Err(CliError::new("no save was pending"));
        };
        let report = bench.handle(order)?;
        let saved = watch.lap_ns();
        ledger.receive(report, tick, drop);
        if tick > 3 {
            for (times, ns) in times.iter_mut().zip([handed_over, saved]) {
                times.push(ns as f64 / 1e6);
            }
        }
    }
    let all: Vec<PlayerId> = (1..=count).map(PlayerId).collect();
    let records = bench.store.lookup(&all)?.into_iter();
    let records: Vec<PlayerRecord> = records.filter_map(LookupResult::into_record).collect();
    let is_kept = |record: &PlayerRecord| {
        let values = values(record.player.0, rounds + 3);
        let mut values = values.iter();
        values.all(|(id, value)| record.values.get(id) == Some(value))
    };
    is_whole &= records.len() as u64 == count && records.iter().all(is_kept);
    let [tick, store] = &times;
    Ok(vec![
        BenchRow::repeated(SYSTEM, format!("save {count}, tick"), tick, "ms")
            .about(format!(
                "The tick's cost of handing over the changes of {count} players, 3 attributes each."
            ))
            .with_comparison("the stored values equal the saved ones", is_whole)
            .with_target_below(0.2, "ms"),
        BenchRow::repeated(SYSTEM, format!("save {count}, store"), store, "ms")
            .about(format!(
                "Saving the same {count} players to disk in one transaction, on the store thread."
            ))
            .with_comparison("the stored values equal the saved ones", is_whole)
            .with_target_below(20.0, "ms"),
    ])
}

/// Loads the records of this many players that log in at once.
fn loads(
    bench: &mut BenchStore,
    stored: u64,
    count: usize,
    rounds: u64,
) -> Result<BenchRow, CliError> {
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
        let is_loaded = |claimed: &ClaimResult| match claimed {
            ClaimResult::Granted { record, .. } => record.values.len() == 3,
            ClaimResult::Refused { .. } | ClaimResult::Unreadable { .. } => false,
        };
        is_whole &= claimed.len() == players.len() && claimed.iter().all(is_loaded);
    }
    Ok(BenchRow::repeated(SYSTEM, format!("load {count}"), &times, "ms")
        .about(format!(
            "Taking the leases of {count} players that log in at once, and reading their records."
        ))
        .with_comparison("all players are loaded with all values", is_whole)
        .with_target_below(50.0, "ms"))
}

/// Number of players that are looked up, and of cache entries.
const LOOKUP_PLAYERS: usize = 100_000;
const CACHE_ENTRIES: u32 = 5_000;

/// Lookups until a cache contains the most frequent players.
const WARM_UP_LOOKUPS: u64 = 1_000_000;

/// Lookups per tick, and milliseconds per tick, for the ages of records.
const LOOKUPS_PER_TICK: u64 = 100;
const TICK_MS: u64 = 50;

/// A cache whose entries do not expire.
fn cache() -> PlayerCache {
    PlayerCache::new(CacheSettings {
        entries_max: CACHE_ENTRIES,
        ttl_ms: u64::MAX,
        ttl_jitter_share: 0.0,
        ..CacheSettings::default()
    })
}

/// Looks up a player; on a miss, inserts the store's reply at once. Returns whether it was a hit.
fn lookup(cache: &mut PlayerCache, player: PlayerId) -> bool {
    let is_hit = matches!(cache.lookup(player, 0, 0), Ok(Some(_)));
    if !is_hit {
        let players = cache.next_request(0, |_| true, &[]);
        cache.receive(&players, Ok(stored_records(&players)), 0, |_, _, _| ());
    }
    is_hit
}

/// The store's records of players.
fn stored_records(players: &[PlayerId]) -> Vec<LookupResult> {
    let found = players.iter().map(|&player| {
        LookupResult::Found(PlayerRecord {
            revision: player.0 | 1,
            ..PlayerRecord::new(player)
        })
    });
    found.collect()
}

/// Draws players from a Zipf distribution: the rank, and the id, which is unrelated to the rank.
struct ZipfPlayers {
    cumulative: Vec<f64>,
    random: Pcg64Mcg,
}

impl ZipfPlayers {
    fn new(skew: f64) -> Self {
        let mut sum = 0.0;
        let cumulative = (1..=LOOKUP_PLAYERS).map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        });
        Self {
            cumulative: cumulative.collect(),
            random: Pcg64Mcg::seed_from_u64(5),
        }
    }

    fn draw(&mut self) -> (u64, PlayerId) {
        let sum = self.cumulative.last().copied().unwrap_or_default();
        let draw = self.random.random_range(0.0..sum);
        let rank = self.cumulative.partition_point(|&below| below <= draw) as u64;
        (rank, PlayerId(rank.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

/// The hit rate of a cache under a Zipf distribution, compared with the best cache that never changes.
fn hit_rate(skew: f64, to_warm: u64, lookups: u64) -> BenchRow {
    let (mut players, mut cache) = (ZipfPlayers::new(skew), cache());
    let (mut hits, mut best) = (0, 0);
    for nth in 0..to_warm + lookups {
        let (rank, player) = players.draw();
        let is_hit = lookup(&mut cache, player);
        if nth >= to_warm {
            hits += u64::from(is_hit);
            best += u64::from(rank < u64::from(CACHE_ENTRIES));
        }
    }
    let share = |count: u64| 100.0 * count as f64 / lookups as f64;
    let of_best = hits as f64 / best as f64;
    BenchRow::new(SYSTEM, format!("hits, Zipf {skew:.1}"), share(hits), "%")
        .with_reference("best static", share(best))
        .about(format!(
            "Share of lookups among {LOOKUP_PLAYERS} players that a cache of {CACHE_ENTRIES} answers. The best static cache holds \
             the most frequent players; a lower value is worse."
        ))
        .with_target("95 % of the best static", of_best >= 0.95)
}

/// The age of cached records, with default settings and in simulated time. The store replies in the next tick, and no other server
/// publishes saves.
fn ages(lookups: u64) -> BenchRow {
    let settings = CacheSettings {
        entries_max: CACHE_ENTRIES,
        ..CacheSettings::default()
    };
    let (ttl_ms, mut players) = (settings.ttl_ms, ZipfPlayers::new(1.0));
    let mut cache = PlayerCache::new(settings);
    let (mut served, mut oldest_ms, mut now_ms) = (0, 0, 0);
    let mut pending = Vec::new();
    for nth in 0..lookups {
        if nth % LOOKUPS_PER_TICK == 0 {
            now_ms += TICK_MS;
            if !pending.is_empty() {
                let found = Ok(stored_records(&pending));
                cache.receive(&pending, found, now_ms, |_, _, answer| {
                    served += 1;
                    oldest_ms = oldest_ms.max(answer.map_or(u64::MAX, |known| known.age_ms));
                });
            }
            pending = cache.next_request(now_ms, |_| true, &[]);
        }
        if let Ok(Some(known)) = cache.lookup(players.draw().1, nth, now_ms) {
            served += 1;
            oldest_ms = oldest_ms.max(known.age_ms);
        }
    }
    let stats = cache.stats();
    let mean = stats.age_ms_sum as f64 / served.max(1) as f64;
    BenchRow::new(SYSTEM, "age, Zipf 1.0", mean, "ms")
        .with_reference("fresh for", ttl_ms as f64)
        .about(format!(
            "The mean age of the records of {lookups} lookups, {} a second, if no other server publishes saves; the oldest is \
             {oldest_ms} ms. {:.1} % are hits; {:.1} % find an expired record.",
            LOOKUPS_PER_TICK * 1_000 / TICK_MS,
            100.0 * stats.hits as f64 / lookups as f64,
            100.0 * stats.expired as f64 / lookups as f64,
        ))
        .with_comparison("no record is older than the limit", oldest_ms < ttl_ms)
}

/// A lookup of a cached player, compared with a plain hash table.
fn hits(rounds: u64) -> BenchRow {
    let mut cache = cache();
    let known: Vec<PlayerId> = (0..2_000).map(|nth| PlayerId(nth * 77_773)).collect();
    let mut table: HashMap<PlayerId, (Arc<PlayerRecord>, u64), FixedState> = HashMap::default();
    for &player in &known {
        lookup(&mut cache, player);
        let record = PlayerRecord {
            revision: player.0 | 1,
            ..PlayerRecord::new(player)
        };
        table.insert(player, (Arc::new(record), 0));
    }
    let mut times = [const { Vec::new() }; 2];
    let mut sums = [0_u64; 2];
    for _ in 0..rounds {
        let mut watch = Stopwatch::start();
        for &player in &known {
            let found = cache.lookup(player, 0, 1).ok().flatten();
            sums[0] += found
                .and_then(|found| found.record)
                .map_or(0, |record| record.revision);
        }
        let cached = watch.lap_ns();
        for player in &known {
            let found = table.get(player).map(|(record, _)| record.clone());
            sums[1] += found.map_or(0, |record| record.revision);
        }
        let plain = watch.lap_ns();
        for (times, ns) in times.iter_mut().zip([cached, plain]) {
            times.push(ns as f64 / known.len() as f64);
        }
    }
    let [cached, plain] = &times;
    BenchRow::repeated(SYSTEM, "hit", cached, "ns")
        .with_repeated_reference("HashMap", plain)
        .about("A lookup of a cached player, compared with a plain hash table without eviction.")
        .with_comparison("the same records", sums[0] == sums[1])
        .with_target_below(100.0, "ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_rows_are_complete() {
        let mut bench = BenchStore::new().unwrap();
        let rows = saves(&mut bench, 50, 2).unwrap();
        assert!(rows.iter().all(|row| row.results_agree == Some(true)));
        assert!(hit_rate(1.0, 4_000, 20_000).value > 30.0);
        assert_eq!(ages(20_000).results_agree, Some(true));
        assert_eq!(hits(2).results_agree, Some(true));
        assert_eq!(
            loads(&mut bench, 50, 20, 2).unwrap().results_agree,
            Some(true)
        );
    }
}
