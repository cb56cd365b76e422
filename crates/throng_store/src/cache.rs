//! What is known here of players who are elsewhere: a cache of their records.
//!
//! ```text
//! look ─┬─ known and fresh ─────────────────────────────▶ answered at once
//!       └─ else: waits ── all that wait, one order ──▶ store ──▶ everybody who asked is answered, late ones with an error
//! push from the player's server ──▶ takes the place of an older record
//! ```
//! Whoever looks at a player while its record is on its way shares that one. What is not there is remembered, too, for a
//! shorter time. Of two records the one with the higher revision stays, in whatever order they come. Who looked first is asked
//! for first.
//!
//! Nothing that is served was read longer ago than [`ttl_ms`](CacheSettings::ttl_ms), or
//! [`load_timeout_ms`](CacheSettings::load_timeout_ms) where that is longer: an answer of the store that is older serves nobody, and who
//! waits still is asked for again.
//!
//! Entries are evicted by `quick_cache`, whose policy (S3-FIFO; Yang and others, *FIFO queues are all you need for cache
//! eviction*, 2023) is here given a hasher that is the same in every run. How long an entry is fresh is counted here, in a
//! time that is passed in.
//!
//! Cost: a hit is a look-up in a hash table: `throng bench directory`.

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSettings {
    /// Players who are remembered, at most.
    pub entries_max: u32,
    /// How long a record is taken for true, in milliseconds; the next look after that asks for it anew.
    #[serde(alias = "fresh_ms")]
    pub ttl_ms: u64,
    /// By which share of that time an entry may be asked for earlier, so that those that came together do not go together; 0 to 1.
    #[serde(alias = "jitter_share")]
    pub ttl_jitter_share: f64,
    /// How long it is remembered that there is no such player, in milliseconds.
    #[serde(alias = "missing_ms")]
    pub missing_ttl_ms: u64,
    /// How long a look waits for the store, in milliseconds.
    pub load_timeout_ms: u64,
    /// Players in one order to the store, at most.
    #[serde(alias = "players_per_order")]
    pub players_per_request: u32,
    /// Looks that may wait; further ones are refused.
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

/// What is known of a player, and how old that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedPlayer {
    /// Its record; `None` when there is no such player. Of one who is on this server it has the values of now, which no
    /// revision stands for yet: that is 0 then.
    pub record: Option<Arc<PlayerRecord>>,
    /// Milliseconds since the store was asked for it; its server may have sent something newer since.
    pub age_ms: u64,
}

/// What became of looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Looks in all.
    pub lookups: u64,
    /// Looks that were answered at once.
    pub hits: u64,
    /// Of the others, those that asked anew for what was not fresh any more.
    pub expired: u64,
    /// Looks that shared what somebody else had asked for.
    pub coalesced: u64,
    /// Players asked of the store.
    pub players_requested: u64,
    /// Looks that were not answered in time, or refused.
    pub failed: u64,
    /// Records that a player's server sent, and that were newer than what was known.
    pub pushes: u64,
    /// The sum of the ages of what was answered, in milliseconds.
    pub age_ms_sum: u64,
}

#[derive(Clone, Debug)]
struct CacheEntry {
    record: Option<Arc<PlayerRecord>>,
    read_ms: u64,
    fresh_until_ms: u64,
}

impl CacheEntry {
    /// 0 where there is no such player.
    fn revision(&self) -> u64 {
        self.record.as_ref().map_or(0, |record| record.revision)
    }
}

/// Who waits for a player's record.
#[derive(Clone, Debug)]
struct PendingLookups {
    /// Whether the store was asked.
    is_requested: bool,
    /// Whoever looks, by a number of its own, and since when.
    lookups: Vec<(u64, u64)>,
}

type Entries =
    Cache<PlayerId, CacheEntry, UnitWeighter, FixedState, DefaultLifecycle<PlayerId, CacheEntry>>;

/// What is known here of players who are elsewhere: their records, each for true for a while, then asked for anew. One look
/// asks for all who wait for the same player; what comes late is an error. A hit is a look-up in a hash table.
pub struct PlayerCache {
    settings: CacheSettings,
    entries: Entries,
    pending: BTreeMap<PlayerId, PendingLookups>,
    /// Who is to be asked for, the first one first; may name some who are not any more.
    request_queue: VecDeque<PlayerId>,
    pending_lookups: usize,
    is_request_pending: bool,
    /// When the store was asked last: what it answers is at least as new.
    requested_ms: u64,
    stats: CacheStats,
}

impl PlayerCache {
    /// An empty one.
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

    /// What became of looks so far.
    #[must_use]
    pub const fn stats(&self) -> CacheStats {
        self.stats
    }

    /// Whether the store was asked, and its answer is to come.
    #[must_use]
    pub const fn is_request_pending(&self) -> bool {
        self.is_request_pending
    }

    /// How many players are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many looks wait.
    #[must_use]
    pub const fn pending_lookups(&self) -> usize {
        self.pending_lookups
    }

    /// Looks at a player: what is known, if that is fresh; else `None`, and the answer comes later, by this number. O(1) for
    /// what is known.
    ///
    /// # Errors
    /// [`PlayerStoreError::TooManyLookups`] when too many wait.
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

    /// As [`lookup`](Self::lookup), but what is known is not taken for true, however fresh it is: the answer is what the store says
    /// when it is asked next.
    ///
    /// # Errors
    /// [`PlayerStoreError::TooManyLookups`] when too many wait.
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
            // Also of one whose looks are all late: its record is on its way still.
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

    /// The players whose records the store is to be asked for now, each once: of those who are looked at the first ones that
    /// `may_ask` lets pass, and all of `also`, about whom somebody else wants to know. None while an answer is to come.
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

    /// Takes the store's answer to [`next_request`](Self::next_request), and tells it to all who wait for one of these players.
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

    /// Keeps what the store has of a player whom somebody looked at, unless a newer record came meanwhile; gives what is known
    /// then, or `None` when that is too old to be told.
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

    /// How long what was learnt now is fresh: a little less for some than for others, the same in every run.
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

    /// A player's server sent its record. It takes the place of an older one, and of the word that there is none; who is neither
    /// known nor looked at here stays unknown. It counts as no newer than the look at the store before it, since it may have
    /// been long on its way. Whether anything changed.
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
            // What the store was asked for may be older.
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

    /// A player was saved here: an older record of it is not served any more. O(1).
    pub fn invalidate(&mut self, player: PlayerId, revision: u64) {
        if let Some(mut entry) = self.entries.peek_mut(&player)
            && entry.revision() < revision
        {
            entry.fresh_until_ms = 0;
        }
    }

    /// The revision that is known of a player, 0 when it is known that there is no such player; `None` when nothing is known.
    #[must_use]
    pub fn revision(&self, player: PlayerId) -> Option<u64> {
        self.entries.peek(&player).map(CacheEntry::revision)
    }

    /// Tells all who waited too long so. What comes later all the same is kept for whoever looks next.
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
    /// A record that is shared with an answer or another server's cache counts here. Of the list of entries only what is in use
    /// is known: it grows by doubling, and three quarters are taken to be.
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
        let mut told = Vec::new();
        let found = Ok(vec![LookupResult::Found(record(7, 3))]);
        cache.receive(&[PlayerId(7)], found, 2, |number, _, _| told.push(number));
        assert_eq!(told, [0, 1, 2, 3, 4]);
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
        assert!(!push(&mut cache, 9), "nobody looked at it here");
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
        // What the store had before that comes later.
        assert_eq!(cache.lookup(PlayerId(7), 1, 200), Ok(None));
        cache.next_request(200, |_| true, &[]);
        let mut told = 0;
        cache.receive(
            &[PlayerId(7)],
            Ok(vec![LookupResult::Found(record(7, 4))]),
            201,
            |_, _, known| {
                told = known.unwrap().record.unwrap().revision;
            },
        );
        assert_eq!(told, 6);
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
            "it is asked for anew"
        );
    }
}
