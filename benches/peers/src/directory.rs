//! The cache of players on other nodes compared with `moka`.
//!
//! Both hold 5,000 of 100,000 players. Both look up the same players, drawn from a Zipf distribution, and insert a missing player at once.
//! Both use the same hash, and return the record behind an `Arc`. Nothing expires during the measurement.
//!
//! Differences between the two sides:
//! - `moka` may be used by many threads at once, and its hits pay for that; throng's cache belongs to one thread.
//! - `moka` has its own clock, throng gets the time as an argument. A lookup in throng also returns the age of the record.
//! - Throng's miss goes through its request queue to the store and back; `moka`'s is an insertion.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng::store::{CacheSettings, LookupResult, PlayerCache, PlayerRecord};
use throng::world::PlayerId;

use crate::Row;

const PLAYERS: usize = 100_000;
const CACHE_ENTRIES: u32 = 5_000;
const WARM_UP_LOOKUPS: usize = 1_000_000;
const LOOKUPS: usize = 2_000_000;

/// Number of players, all cached, and number of timed rounds over them; the fastest round counts.
const KNOWN: u64 = 2_000;
const ROUNDS: usize = 201;

type Moka = moka::sync::Cache<PlayerId, Arc<PlayerRecord>, FixedState>;

pub fn measure() -> Vec<Row> {
    let mut rows: Vec<Row> = [0.8, 1.0, 1.2].map(hit_rate).into();
    rows.push(hit());
    rows
}

fn caches() -> (PlayerCache, Moka) {
    let throng = PlayerCache::new(CacheSettings {
        entries_max: CACHE_ENTRIES,
        ttl_ms: u64::MAX,
        ttl_jitter_share: 0.0,
        ..CacheSettings::default()
    });
    let moka = moka::sync::Cache::builder()
        .max_capacity(u64::from(CACHE_ENTRIES))
        .time_to_live(Duration::from_secs(100_000))
        .build_with_hasher(FixedState::default());
    (throng, moka)
}

fn record(player: PlayerId) -> PlayerRecord {
    PlayerRecord {
        revision: player.0 | 1,
        ..PlayerRecord::new(player)
    }
}

fn lookup_in_throng(cache: &mut PlayerCache, player: PlayerId) -> bool {
    let is_hit = matches!(cache.lookup(player, 0, 0), Ok(Some(_)));
    if !is_hit {
        let players = cache.next_request(0, |_| true, &[]);
        let found = players
            .iter()
            .map(|&player| LookupResult::Found(record(player)));
        cache.receive(&players, Ok(found.collect()), 0, |_, _, _| ());
    }
    is_hit
}

fn lookup_in_moka(cache: &Moka, player: PlayerId) -> bool {
    let is_hit = cache.get(&player).is_some();
    if !is_hit {
        cache.insert(player, Arc::new(record(player)));
    }
    is_hit
}

fn hit_rate(skew: f64) -> Row {
    let mut sum = 0.0;
    let cumulative = (1..=PLAYERS).map(|rank| {
        sum += (rank as f64).powf(-skew);
        sum
    });
    let cumulative: Vec<f64> = cumulative.collect();
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let (mut throng, moka) = caches();
    let mut hits = [0_u64; 2];
    for nth in 0..WARM_UP_LOOKUPS + LOOKUPS {
        let draw = random.random_range(0.0..sum);
        let rank = cumulative.partition_point(|&below| below <= draw) as u64;
        let player = PlayerId(rank.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let lookups = [
            lookup_in_throng(&mut throng, player),
            lookup_in_moka(&moka, player),
        ];
        for (hits, is_hit) in hits.iter_mut().zip(lookups) {
            *hits += u64::from(is_hit && nth >= WARM_UP_LOOKUPS);
        }
    }
    let shares = hits.map(|hits| 100.0 * hits as f64 / LOOKUPS as f64);
    Row::beside(
        "store",
        format!("hits, Zipf {skew:.1}"),
        shares,
        "%",
        "moka",
    )
    .more_is_better()
}

fn hit() -> Row {
    let (mut throng, moka) = caches();
    let known: Vec<PlayerId> = (0..KNOWN).map(|nth| PlayerId(nth * 77_773)).collect();
    for &player in &known {
        lookup_in_throng(&mut throng, player);
        lookup_in_moka(&moka, player);
    }
    moka.run_pending_tasks();
    let mut least = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for &player in &known {
            black_box(throng.lookup(player, 0, 1).ok().flatten());
        }
        least[0] = least[0].min(start.elapsed());
        let start = Instant::now();
        for player in &known {
            black_box(moka.get(player));
        }
        least[1] = least[1].min(start.elapsed());
    }
    assert_eq!(
        throng.stats().hits,
        KNOWN * ROUNDS as u64,
        "every lookup is a hit"
    );
    let ns = least.map(|least| least.as_nanos() as f64 / KNOWN as f64);
    Row::beside("store", "hit".to_owned(), ns, "ns", "moka")
}
