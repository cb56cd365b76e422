//! A cache of the records of players on other servers.
//!
//! ```text
//! lookup ─┬─ cached and fresh ───────────────────────────────────▶ result at once
//!         └─ else: pending ── all pending players, one request ──▶ store ──▶ results; overdue lookups get an error
//! push from the player's server ──▶ replaces an older record
//! ```
//!
//! Lookups of a player whose record is requested already share that request. Missing players are cached too, for a shorter time. Of two
//! records the one with the higher revision stays, in whatever order they arrive. Players are requested in the order of their first lookup.
//!
//! No result was read longer ago than [`ttl_ms`](CacheSettings::ttl_ms), or [`load_timeout_ms`](CacheSettings::load_timeout_ms) if that is
//! longer. Older replies of the store are not used, and the players of pending lookups are requested again.
//!
//! `quick_cache` evicts entries by S3-FIFO (Yang and others, *FIFO queues are all you need for cache eviction*, 2023), here with a hasher
//! that is the same in every run. This file measures the age of entries, in a time that the caller passes.
//!
//! Cost: a hit is one hash table lookup: `throng bench store`.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

use foldhash::fast::FixedState;
use quick_cache::UnitWeighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use serde::{Deserialize, Serialize};
use throng_core::ids::PlayerId;
use throng_core::memory::{MemoryUse, heap_bytes_of};

use super::error::{PlayerStoreError, StoreError};
use super::record::PlayerRecord;
use super::store::LookupResult;

/// Limits and times of a [`PlayerCache`].
///
/// ```
/// use throng_store::{CacheSettings, PlayerCache};
///
/// // Names and levels of 50,000 players of other servers, a minute old at most.
/// let settings = CacheSettings { entries_max: 50_000, ttl_ms: 60_000, ..CacheSettings::default() };
/// let cache = PlayerCache::new(settings);
/// assert_eq!(cache.stats().hits, 0);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSettings {
    /// Maximum number of cached players.
    pub entries_max: u32,
    /// Lifetime of a record, in milliseconds. A later lookup requests it again.
    #[serde(alias = "fresh_ms")]
    pub ttl_ms: u64,
    /// By which share of its lifetime an entry may expire earlier, so that entries of the same time do not expire together; 0 to 1.
    #[serde(alias = "jitter_share")]
    pub ttl_jitter_share: f64,
    /// Lifetime of the result that a player does not exist, in milliseconds.
    #[serde(alias = "missing_ms")]
    pub missing_ttl_ms: u64,
    /// Timeout of a lookup, in milliseconds.
    pub load_timeout_ms: u64,
    /// Maximum number of players per request to the store.
    #[serde(alias = "players_per_order")]
    pub players_per_request: u32,
    /// Maximum number of pending lookups; more are refused.
    #[serde(alias = "waiting_max")]
    pub pending_lookups_max: u32,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            entries_max: 10_000,
            ttl_ms: 10_000,
            ttl_jitter_share: 0.1,
            missing_ttl_ms: 2_000,
            load_timeout_ms: 1_000,
            players_per_request: 512,
            pending_lookups_max: 10_000,
        }
    }
}

/// The cached state of a player, and its age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedPlayer {
    /// The record; `None` if there is no such player. For a player on this server it contains the current values. They have no revision
    /// yet, so it is 0 then.
    pub record: Option<Arc<PlayerRecord>>,
    /// Milliseconds since the record was requested from the store. Its server may have pushed a newer one since.
    pub age_ms: u64,
}

/// Counters of lookups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Lookups in total.
    pub lookups: u64,
    /// Lookups with a result at once.
    pub hits: u64,
    /// Of the others, lookups whose entry had expired.
    pub expired: u64,
    /// Lookups that shared a request.
    pub coalesced: u64,
    /// Players requested from the store.
    pub players_requested: u64,
    /// Lookups that timed out or were refused.
    pub failed: u64,
    /// Pushed records that were newer than the cached ones.
    pub pushes: u64,
    /// Sum of the ages of all results, in milliseconds.
    pub age_ms_sum: u64,
}

#[derive(Clone, Debug)]
struct CacheEntry {
    record: Option<Arc<PlayerRecord>>,
    read_ms: u64,
    fresh_until_ms: u64,
}

impl CacheEntry {
    /// 0 if there is no such player.
    fn revision(&self) -> u64 {
        self.record.as_ref().map_or(0, |record| record.revision)
    }
}

/// The pending lookups of a player.
#[derive(Clone, Debug)]
struct PendingLookups {
    /// Whether the player was requested from the store.
    is_requested: bool,
    /// Lookup number and start time of each.
    lookups: Vec<(u64, u64)>,
}

type Entries =
    Cache<PlayerId, CacheEntry, UnitWeighter, FixedState, DefaultLifecycle<PlayerId, CacheEntry>>;

/// A cache of the records of players on other servers, each with a limited lifetime. Lookups of the same player share a request; overdue
/// ones fail. A hit is one hash table lookup.
pub struct PlayerCache {
    settings: CacheSettings,
    entries: Entries,
    pending: BTreeMap<PlayerId, PendingLookups>,
    /// Players to request, in order. May contain players that are not pending any more.
    request_queue: VecDeque<PlayerId>,
    pending_lookups: usize,
    is_request_pending: bool,
    /// Time of the last request to the store. Its reply is at least as new.
    requested_ms: u64,
    stats: CacheStats,
}

impl PlayerCache {
    /// An empty cache.
    #[must_use]
    pub fn new(settings: CacheSettings) -> Self {
        let count = settings.entries_max.max(1) as usize;
        let entries = Cache::with(
            count,
            count as u64,
            UnitWeighter,
            FixedState::default(),
            DefaultLifecycle::default(),
        );
        Self {
            settings,
            entries,
            pending: BTreeMap::new(),
            request_queue: VecDeque::new(),
            pending_lookups: 0,
            is_request_pending: false,
            requested_ms: 0,
            stats: CacheStats::default(),
        }
    }

    /// Counters so far.
    #[must_use]
    pub const fn stats(&self) -> CacheStats {
        self.stats
    }

    /// Whether a request to the store has no reply yet.
    #[must_use]
    pub const fn is_request_pending(&self) -> bool {
        self.is_request_pending
    }

    /// Number of cached players.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of pending lookups.
    #[must_use]
    pub const fn pending_lookups(&self) -> usize {
        self.pending_lookups
    }

    /// Looks up a player: the cached state if it is fresh, else `None`; then the result follows later with this number. O(1) for cached
    /// players.
    ///
    /// # Errors
    /// [`PlayerStoreError::TooManyLookups`] if too many lookups are pending.
    pub fn lookup(
        &mut self,
        player: PlayerId,
        number: u64,
        now_ms: u64,
    ) -> Result<Option<CachedPlayer>, PlayerStoreError> {
        self.stats.lookups += 1;
        let entry = self.entries.get(&player);
        let is_known = entry.is_some();
        if let Some(entry) = entry.filter(|entry| now_ms < entry.fresh_until_ms) {
            let known = CachedPlayer {
                record: entry.record.clone(),
                age_ms: now_ms.saturating_sub(entry.read_ms),
            };
            self.stats.hits += 1;
            self.stats.age_ms_sum += known.age_ms;
            return Ok(Some(known));
        }
        let is_first = !self.pending.contains_key(&player);
        self.enqueue_lookup(player, number, now_ms)?;
        self.stats.expired += u64::from(is_first && is_known);
        Ok(None)
    }

    /// Like [`lookup`](Self::lookup), but never uses the cached state: the result comes from the next request to the store.
    ///
    /// # Errors
    /// [`PlayerStoreError::TooManyLookups`] if too many lookups are pending.
    pub fn lookup_in_store(
        &mut self,
        player: PlayerId,
        number: u64,
        now_ms: u64,
    ) -> Result<(), PlayerStoreError> {
        self.stats.lookups += 1;
        self.enqueue_lookup(player, number, now_ms)
    }

    fn enqueue_lookup(
        &mut self,
        player: PlayerId,
        number: u64,
        now_ms: u64,
    ) -> Result<(), PlayerStoreError> {
        let (waiting, max) = (
            self.pending_lookups,
            self.settings.pending_lookups_max as usize,
        );
        if waiting >= max {
            self.stats.failed += 1;
            return Err(PlayerStoreError::TooManyLookups {
                player,
                waiting,
                max,
            });
        }
        self.pending_lookups += 1;
        match self.pending.entry(player) {
            // Also if all lookups of the player have timed out: its record is still requested.
            Entry::Occupied(mut awaited) => {
                self.stats.coalesced += 1;
                awaited.get_mut().lookups.push((number, now_ms));
            }
            Entry::Vacant(none) => {
                none.insert(PendingLookups {
                    is_requested: false,
                    lookups: vec![(number, now_ms)],
                });
                self.request_queue.push_back(player);
            }
        }
        Ok(())
    }

    /// The players whose records to request from the store now, each once: the first pending ones that `may_ask` allows, and all of `also`,
    /// which other code needs. Empty while a request is pending.
    pub fn next_request(
        &mut self,
        now_ms: u64,
        may_ask: impl Fn(PlayerId) -> bool,
        also: &[PlayerId],
    ) -> Vec<PlayerId> {
        if self.is_request_pending {
            return Vec::new();
        }
        let max = self.settings.players_per_request.max(1) as usize;
        let mut players = Vec::new();
        let awaited = &mut self.pending;
        self.request_queue.retain(|&player| {
            let Some(awaited) = awaited.get_mut(&player).filter(|one| !one.is_requested) else {
                return false;
            };
            let is_asked = players.len() < max && may_ask(player);
            if is_asked {
                awaited.is_requested = true;
                players.push(player);
            }
            !is_asked
        });
        for &player in also {
            match self.pending.get_mut(&player) {
                Some(awaited) if awaited.is_requested => continue,
                Some(awaited) => awaited.is_requested = true,
                None => {}
            }
            players.push(player);
        }
        self.is_request_pending = !players.is_empty();
        self.requested_ms = now_ms;
        self.stats.players_requested += players.len() as u64;
        players
    }

    /// Handles the store's reply to [`next_request`](Self::next_request), and completes the lookups of these players.
    pub fn receive(
        &mut self,
        players: &[PlayerId],
        found: Result<Vec<LookupResult>, StoreError>,
        now_ms: u64,
        mut tell: impl FnMut(u64, PlayerId, Result<CachedPlayer, PlayerStoreError>),
    ) {
        self.is_request_pending = false;
        let (found, failed) = match found {
            Ok(found) => (found, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let mut found = found.into_iter();
        for &player in players {
            let read = match (&failed, found.next()) {
                (Some(error), _) => Err(error.clone().into()),
                (None, Some(LookupResult::Found(record))) => Ok(Some(Arc::new(record))),
                (None, Some(LookupResult::Missing)) => Ok(None),
                (None, Some(LookupResult::Unreadable(error))) => Err(error.into()),
                (None, None) => Err(PlayerStoreError::MissingReply { player }),
            };
            let answer = match read {
                Ok(record) => self.insert(player, record, now_ms).map(Ok),
                Err(error) => Some(Err(error)),
            };
            match answer {
                Some(answer) => self.resolve_lookups(player, &answer, &mut tell),
                None => self.retry(player),
            }
        }
    }

    fn resolve_lookups(
        &mut self,
        player: PlayerId,
        answer: &Result<CachedPlayer, PlayerStoreError>,
        tell: &mut impl FnMut(u64, PlayerId, Result<CachedPlayer, PlayerStoreError>),
    ) {
        let awaited = self.pending.remove(&player);
        let looks = awaited.map_or_else(Vec::new, |awaited| awaited.lookups);
        self.pending_lookups -= looks.len();
        for (number, _) in looks {
            match answer {
                Ok(known) => self.stats.age_ms_sum += known.age_ms,
                Err(_) => self.stats.failed += 1,
            }
            tell(number, player, answer.clone());
        }
    }

    fn retry(&mut self, player: PlayerId) {
        match self.pending.entry(player) {
            Entry::Occupied(awaited) if awaited.get().lookups.is_empty() => drop(awaited.remove()),
            Entry::Occupied(mut awaited) => {
                awaited.get_mut().is_requested = false;
                self.request_queue.push_back(player);
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Caches the stored state of a player that was looked up, unless a newer record has arrived since. Returns the state cached then, or
    /// `None` if it is too old to use.
    fn insert(
        &mut self,
        player: PlayerId,
        record: Option<Arc<PlayerRecord>>,
        now_ms: u64,
    ) -> Option<CachedPlayer> {
        let revision = record.as_ref().map_or(0, |record| record.revision);
        let kept = self.entries.peek(&player);
        if kept.is_none() && !self.pending.contains_key(&player) {
            return None;
        }
        let newer = kept.filter(|kept| kept.revision() > revision);
        let record = newer.map_or(record, |kept| kept.record.clone());
        let age_ms = now_ms.saturating_sub(self.requested_ms);
        let ttl_ms = self.ttl_ms(player, record.is_some(), self.requested_ms);
        let entry = CacheEntry {
            fresh_until_ms: self.requested_ms.saturating_add(ttl_ms),
            record: record.clone(),
            read_ms: self.requested_ms,
        };
        self.entries.insert(player, entry);
        let is_young = age_ms < ttl_ms || age_ms <= self.settings.load_timeout_ms;
        is_young.then_some(CachedPlayer { record, age_ms })
    }

    /// Lifetime of an entry of now, with a jitter that is the same in every run.
    fn ttl_ms(&self, player: PlayerId, is_there: bool, now_ms: u64) -> u64 {
        let most = if is_there {
            self.settings.ttl_ms
        } else {
            self.settings.missing_ttl_ms
        };
        // The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
        let mut draw = player.0 ^ now_ms.rotate_left(32);
        draw = (draw ^ draw >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        draw = (draw ^ draw >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let share = (draw >> 40) as f64 / (1_u64 << 24) as f64;
        let earlier = most as f64 * self.settings.ttl_jitter_share.clamp(0.0, 1.0) * share;
        most - (earlier as u64).min(most)
    }

    /// A player's server has pushed its record. It replaces an older record, or the result that there is none. Players that are neither
    /// cached nor pending stay uncached. The push may have been delayed, so the entry's age does not change. Returns whether anything
    /// changed.
    pub fn push(&mut self, record: &Arc<PlayerRecord>) -> bool {
        let kept = self.entries.peek_mut(&record.player);
        if let Some(mut entry) = kept {
            let is_newer = entry.revision() < record.revision;
            if is_newer {
                entry.record = Some(record.clone());
                self.stats.pushes += 1;
            }
            return is_newer;
        }
        drop(kept);
        let is_awaited = self.pending.contains_key(&record.player);
        if is_awaited {
            // The pending request may return an older record.
            let entry = CacheEntry {
                record: Some(record.clone()),
                read_ms: 0,
                fresh_until_ms: 0,
            };
            self.entries.insert(record.player, entry);
            self.stats.pushes += 1;
        }
        is_awaited
    }

    /// A player was saved here: older records of it are not used any more. O(1).
    pub fn invalidate(&mut self, player: PlayerId, revision: u64) {
        if let Some(mut entry) = self.entries.peek_mut(&player)
            && entry.revision() < revision
        {
            entry.fresh_until_ms = 0;
        }
    }

    /// The cached revision of a player, 0 if it is cached as missing; `None` if it is not cached.
    #[must_use]
    pub fn revision(&self, player: PlayerId) -> Option<u64> {
        self.entries.peek(&player).map(CacheEntry::revision)
    }

    /// Fails lookups that have timed out. A later reply is still cached.
    pub fn expire_lookups(
        &mut self,
        now_ms: u64,
        mut tell: impl FnMut(u64, PlayerId, Result<CachedPlayer, PlayerStoreError>),
    ) {
        let load_timeout_ms = self.settings.load_timeout_ms;
        let (mut late, waiting) = (0, &mut self.pending_lookups);
        self.pending.retain(|&player, awaited| {
            awaited.lookups.retain(|&(number, since_ms)| {
                let is_late = now_ms.saturating_sub(since_ms) > load_timeout_ms;
                if is_late {
                    late += 1;
                    *waiting -= 1;
                    let error = PlayerStoreError::TimedOut {
                        player,
                        load_timeout_ms,
                    };
                    tell(number, player, Err(error));
                }
                !is_late
            });
            awaited.is_requested || !awaited.lookups.is_empty()
        });
        self.stats.failed += late;
        if late > 0 {
            let awaited = &self.pending;
            self.request_queue
                .retain(|player| awaited.contains_key(player));
        }
    }
}

impl MemoryUse for PlayerCache {
    /// Records shared with a result or another server's cache count here. The capacity of the entry list is not known: it grows by
    /// doubling, so three quarters are assumed to be in use.
    fn heap_bytes(&self) -> usize {
        let used = self.entries.memory_used();
        let records = self
            .entries
            .iter()
            .filter_map(|(_, entry)| entry.record.as_deref());
        let records = records.map(|record| size_of::<PlayerRecord>() + record.heap_bytes());
        records.sum::<usize>()
            + used.map
            + used.entries * 4 / 3
            + heap_bytes_of(self.pending.values().map(|awaited| &awaited.lookups))
            + self.pending.heap_bytes()
            + self.request_queue.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> CacheSettings {
        CacheSettings {
            entries_max: 4,
            ttl_ms: 100,
            missing_ttl_ms: 20,
            load_timeout_ms: 50,
            players_per_request: 2,
            pending_lookups_max: 6,
            ..CacheSettings::default()
        }
    }

    fn record(player: u64, revision: u64) -> PlayerRecord {
        PlayerRecord {
            revision,
            ..PlayerRecord::new(PlayerId(player))
        }
    }

    #[test]
    fn lookups_of_one_player_share_a_request_and_all_are_answered() {
        let mut cache = PlayerCache::new(settings());
        for number in 0..4 {
            assert_eq!(cache.lookup(PlayerId(7), number, 0), Ok(None));
        }
        assert_eq!(cache.next_request(0, |_| true, &[]), [PlayerId(7)]);
        assert_eq!(cache.lookup(PlayerId(7), 4, 1), Ok(None));
        assert!(
            cache.next_request(0, |_| true, &[]).is_empty(),
            "it is under way"
        );
        let mut numbers = Vec::new();
        let found = Ok(vec![LookupResult::Found(record(7, 3))]);
        cache.receive(&[PlayerId(7)], found, 2, |number, _, _| {
            numbers.push(number)
        });
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        let stats = cache.stats();
        assert_eq!(
            (stats.lookups, stats.coalesced, stats.players_requested),
            (5, 4, 1)
        );
        let known = cache.lookup(PlayerId(7), 5, 3).unwrap().unwrap();
        assert_eq!(known.record.map(|record| record.revision), Some(3));
    }

    #[test]
    fn newest_record_survives_duplicates_and_reordering() {
        let mut cache = PlayerCache::new(settings());
        let push = |cache: &mut PlayerCache, revision| cache.push(&Arc::new(record(7, revision)));
        assert!(!push(&mut cache, 9), "no lookup here");
        assert_eq!(cache.lookup(PlayerId(7), 0, 0), Ok(None));
        cache.next_request(0, |_| true, &[]);
        cache.receive(
            &[PlayerId(7)],
            Ok(vec![LookupResult::Found(record(7, 3))]),
            2,
            |_, _, _| (),
        );
        assert!(!push(&mut cache, 2) && !push(&mut cache, 3));
        assert!(push(&mut cache, 6) && !push(&mut cache, 5) && !push(&mut cache, 6));
        // An older reply of the store arrives later.
        assert_eq!(cache.lookup(PlayerId(7), 1, 200), Ok(None));
        cache.next_request(200, |_| true, &[]);
        let mut newest = 0;
        cache.receive(
            &[PlayerId(7)],
            Ok(vec![LookupResult::Found(record(7, 4))]),
            201,
            |_, _, known| {
                newest = known.unwrap().record.unwrap().revision;
            },
        );
        assert_eq!(newest, 6);
    }

    #[test]
    fn missing_player_is_cached_briefly() {
        let mut cache = PlayerCache::new(settings());
        assert_eq!(cache.lookup(PlayerId(7), 0, 0), Ok(None));
        cache.next_request(0, |_| true, &[]);
        cache.receive(
            &[PlayerId(7)],
            Ok(vec![LookupResult::Missing]),
            0,
            |_, _, known| {
                assert_eq!(known.unwrap().record, None);
            },
        );
        let known = cache.lookup(PlayerId(7), 1, 10).unwrap();
        assert_eq!(
            known,
            Some(CachedPlayer {
                record: None,
                age_ms: 10
            })
        );
        assert_eq!(
            cache.lookup(PlayerId(7), 2, 20),
            Ok(None),
            "it is requested again"
        );
    }
}
