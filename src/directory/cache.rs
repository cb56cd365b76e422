//! What is known here of players who are elsewhere: a cache of their records.
//!
//! ```text
//! look ─┬─ known and fresh ─────────────────────────────▶ answered at once
//!       └─ else: waits ── all that wait, one order ──▶ store ──▶ everybody who asked is answered, late ones with an error
//! push from the player's server ──▶ takes the place of an older record
//! ```
//! Whoever looks at a player while its record is on its way shares that one. What is not there is remembered, too, for a
//! shorter time. Of two records the one with the higher revision stays, in whatever order they come.
//!
//! Entries are evicted by `quick_cache`, whose policy (S3-FIFO; Yang and others, *FIFO queues are all you need for cache
//! eviction*, 2023) is here given a hasher that is the same in every run. How long an entry is fresh is counted here, in a
//! time that is passed in.
//!
//! Cost: a hit is a look-up in a hash table: `throng bench directory`.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use quick_cache::UnitWeighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use serde::{Deserialize, Serialize};

use super::error::{DirectoryError, StoreError};
use super::record::PlayerRecord;
use crate::world::PlayerId;

/// Limits and times of a [`PlayerCache`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSettings {
    /// Players who are remembered, at most.
    pub entries_max: u32,
    /// How long a record is taken for true, in milliseconds; the next look after that asks for it anew.
    pub fresh_ms: u64,
    /// By which share of that time an entry may be asked for earlier, so that those that came together do not go together; 0 to 1.
    pub jitter_share: f64,
    /// How long it is remembered that there is no such player, in milliseconds.
    pub missing_ms: u64,
    /// How long a look waits for the store, in milliseconds.
    pub deadline_ms: u64,
    /// Players in one order to the store, at most.
    pub players_per_order: u32,
    /// Looks that may wait; further ones are refused.
    pub waiting_max: u32,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            entries_max: 10_000,
            fresh_ms: 10_000,
            jitter_share: 0.1,
            missing_ms: 2_000,
            deadline_ms: 1_000,
            players_per_order: 512,
            waiting_max: 10_000,
        }
    }
}

/// What is known of a player, and how old that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPlayer {
    /// Its record; `None` when there is no such player.
    pub record: Option<Arc<PlayerRecord>>,
    /// Milliseconds since the store was asked for it; its server may have sent something newer since.
    pub age_ms: u64,
}

/// What became of looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Looks in all.
    pub looks: u64,
    /// Looks that were answered at once.
    pub hits: u64,
    /// Of the others, those that asked anew for what was not fresh any more.
    pub refreshes: u64,
    /// Looks that shared what somebody else had asked for.
    pub shared: u64,
    /// Players asked of the store.
    pub loads: u64,
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

/// Who waits for a player's record.
#[derive(Clone, Debug)]
struct AwaitedPlayer {
    /// Whether the store was asked.
    is_asked: bool,
    /// Whoever looks, by a number of its own, and since when.
    looks: Vec<(u64, u64)>,
}

type Entries =
    Cache<PlayerId, CacheEntry, UnitWeighter, FixedState, DefaultLifecycle<PlayerId, CacheEntry>>;

/// See the [module](self).
pub struct PlayerCache {
    settings: CacheSettings,
    entries: Entries,
    awaited: BTreeMap<PlayerId, AwaitedPlayer>,
    waiting: usize,
    is_under_way: bool,
    /// When the store was asked last: what it answers is at least as new.
    asked_ms: u64,
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
            awaited: BTreeMap::new(),
            waiting: 0,
            is_under_way: false,
            asked_ms: 0,
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
    pub const fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// How many looks wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Looks at a player: what is known, if that is fresh; else `None`, and the answer comes later, by this number. O(1) for
    /// what is known.
    ///
    /// # Errors
    /// [`DirectoryError::Looks`] when too many wait.
    pub fn look(
        &mut self,
        player: PlayerId,
        number: u64,
        now_ms: u64,
    ) -> Result<Option<KnownPlayer>, DirectoryError> {
        self.stats.looks += 1;
        let entry = self.entries.get(&player);
        let is_known = entry.is_some();
        if let Some(entry) = entry.filter(|entry| now_ms < entry.fresh_until_ms) {
            let known = KnownPlayer {
                record: entry.record.clone(),
                age_ms: now_ms.saturating_sub(entry.read_ms),
            };
            self.stats.hits += 1;
            self.stats.age_ms_sum += known.age_ms;
            return Ok(Some(known));
        }
        let max = self.settings.waiting_max as usize;
        if self.waiting >= max {
            self.stats.failed += 1;
            let waiting = self.waiting;
            return Err(DirectoryError::Looks {
                player,
                waiting,
                max,
            });
        }
        self.waiting += 1;
        let awaited = self.awaited.entry(player).or_insert(AwaitedPlayer {
            is_asked: false,
            looks: Vec::new(),
        });
        // Of one whose looks are all late nobody waits any more, and its record is on its way still.
        if awaited.is_asked || !awaited.looks.is_empty() {
            self.stats.shared += 1;
        } else {
            self.stats.refreshes += u64::from(is_known);
        }
        awaited.looks.push((number, now_ms));
        Ok(None)
    }

    /// The players whose records the store is to be asked for now; none while an answer is to come.
    pub fn order(&mut self, now_ms: u64) -> Vec<PlayerId> {
        if self.is_under_way {
            return Vec::new();
        }
        let not_asked = self
            .awaited
            .iter_mut()
            .filter(|(_, awaited)| !awaited.is_asked);
        let some = not_asked.take(self.settings.players_per_order.max(1) as usize);
        let players = some.map(|(&player, awaited)| {
            awaited.is_asked = true;
            player
        });
        let players: Vec<PlayerId> = players.collect();
        self.is_under_way = !players.is_empty();
        self.asked_ms = now_ms;
        self.stats.loads += players.len() as u64;
        players
    }

    /// Takes the store's answer to [`order`](Self::order), and tells it to all who wait for one of these players.
    pub fn take(
        &mut self,
        players: &[PlayerId],
        found: Result<Vec<PlayerRecord>, StoreError>,
        now_ms: u64,
        mut tell: impl FnMut(u64, PlayerId, Result<KnownPlayer, DirectoryError>),
    ) {
        self.is_under_way = false;
        let found = found.map(|records| {
            let by_player = records.into_iter().map(|record| (record.player, record));
            by_player.collect::<BTreeMap<PlayerId, PlayerRecord>>()
        });
        let mut found = match found {
            Ok(found) => Ok(found),
            Err(error) => Err(DirectoryError::from(error)),
        };
        for &player in players {
            let awaited = self.awaited.remove(&player);
            let looks = awaited.map_or_else(Vec::new, |awaited| awaited.looks);
            self.waiting -= looks.len();
            let answer = match &mut found {
                Ok(found) => {
                    let record = found.remove(&player).map(Arc::new);
                    Ok(self.learn(player, record, now_ms))
                }
                Err(error) => Err(error.clone()),
            };
            for (number, _) in looks {
                match &answer {
                    Ok(known) => self.stats.age_ms_sum += known.age_ms,
                    Err(_) => self.stats.failed += 1,
                }
                tell(number, player, answer.clone());
            }
        }
    }

    /// Keeps what the store has of a player, unless a newer record came meanwhile; gives what is known then.
    fn learn(
        &mut self,
        player: PlayerId,
        record: Option<Arc<PlayerRecord>>,
        now_ms: u64,
    ) -> KnownPlayer {
        let revision = |record: &Option<Arc<PlayerRecord>>| {
            record.as_ref().map_or(0, |record| record.revision)
        };
        let kept = self.entries.peek(&player).map(|entry| &entry.record);
        let newer = kept.filter(|kept| revision(kept) > revision(&record));
        let record = newer.cloned().unwrap_or(record);
        let known = KnownPlayer {
            record: record.clone(),
            age_ms: now_ms.saturating_sub(self.asked_ms),
        };
        let fresh_ms = self.fresh_ms(player, record.is_some(), self.asked_ms);
        let entry = CacheEntry {
            fresh_until_ms: self.asked_ms.saturating_add(fresh_ms),
            record,
            read_ms: self.asked_ms,
        };
        self.entries.insert(player, entry);
        known
    }

    /// How long what was learnt now is fresh: a little less for some than for others, the same in every run.
    fn fresh_ms(&self, player: PlayerId, is_there: bool, now_ms: u64) -> u64 {
        let most = if is_there {
            self.settings.fresh_ms
        } else {
            self.settings.missing_ms
        };
        // The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
        let mut draw = player.0 ^ now_ms.rotate_left(32);
        draw = (draw ^ draw >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        draw = (draw ^ draw >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let share = (draw >> 40) as f64 / (1_u64 << 24) as f64;
        let earlier = most as f64 * self.settings.jitter_share.clamp(0.0, 1.0) * share;
        most - (earlier as u64).min(most)
    }

    /// A player's server sent its record. It takes the place of an older one, and of the word that there is none; who is not
    /// known here stays unknown. It counts as no newer than the look at the store before it, since it may have been long on its
    /// way. Whether anything changed.
    pub fn push(&mut self, record: &Arc<PlayerRecord>) -> bool {
        let Some(mut entry) = self.entries.peek_mut(&record.player) else {
            return false;
        };
        let kept = entry.record.as_ref();
        let is_newer = kept.is_none_or(|kept| kept.revision < record.revision);
        if is_newer {
            entry.record = Some(record.clone());
            self.stats.pushes += 1;
        }
        is_newer
    }

    /// Tells all who waited too long so. What comes later all the same is kept for whoever looks next.
    pub fn expire(
        &mut self,
        now_ms: u64,
        mut tell: impl FnMut(u64, PlayerId, Result<KnownPlayer, DirectoryError>),
    ) {
        let deadline_ms = self.settings.deadline_ms;
        let (mut late, waiting) = (0, &mut self.waiting);
        self.awaited.retain(|&player, awaited| {
            awaited.looks.retain(|&(number, since_ms)| {
                let is_late = now_ms.saturating_sub(since_ms) > deadline_ms;
                if is_late {
                    late += 1;
                    *waiting -= 1;
                    let error = DirectoryError::Late {
                        player,
                        deadline_ms,
                    };
                    tell(number, player, Err(error));
                }
                !is_late
            });
            awaited.is_asked || !awaited.looks.is_empty()
        });
        self.stats.failed += late;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::error::StoreFault;
    use super::*;

    fn settings() -> CacheSettings {
        CacheSettings {
            entries_max: 4,
            fresh_ms: 100,
            missing_ms: 20,
            deadline_ms: 50,
            players_per_order: 2,
            waiting_max: 6,
            ..CacheSettings::default()
        }
    }

    fn record(player: u64, revision: u64) -> PlayerRecord {
        PlayerRecord {
            revision,
            ..PlayerRecord::new(PlayerId(player))
        }
    }

    #[derive(Clone, Debug)]
    enum CacheStep {
        Look(u64),
        Order,
        Answer(bool),
        Push(u64, u64),
        Save(u64),
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<CacheStep>> {
        let step = prop_oneof![
            5 => (0..8u64).prop_map(CacheStep::Look),
            3 => Just(CacheStep::Order),
            3 => any::<bool>().prop_map(CacheStep::Answer),
            2 => (0..8u64, 0..4u64).prop_map(|(player, back)| CacheStep::Push(player, back)),
            3 => (0..8u64).prop_map(CacheStep::Save),
            3 => (0..40u64).prop_map(CacheStep::Wait),
        ];
        prop::collection::vec(step, 0..120)
    }

    /// What is true of a player at a time: its revision; 0 while it is not there.
    #[derive(Default)]
    struct Truth {
        /// By player: when each revision was saved.
        saved_ms: BTreeMap<u64, Vec<u64>>,
    }

    impl Truth {
        fn revision(&self, player: u64) -> u64 {
            self.saved_ms.get(&player).map_or(0, Vec::len) as u64
        }

        /// The revision that was the newest at a time.
        fn revision_at(&self, player: u64, at_ms: u64) -> u64 {
            let saved = self.saved_ms.get(&player).map_or(&[][..], Vec::as_slice);
            saved.iter().filter(|&&saved_ms| saved_ms < at_ms).count() as u64
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        /// Every look is answered once, in time, with something that was true no longer ago than it may be; no player is asked
        /// for twice at a time; nobody who was told of a revision is told of an older one.
        #[test]
        fn looks_are_answered_once_and_with_what_is_fresh(steps in steps()) {
            let mut cache = PlayerCache::new(settings());
            let (mut truth, mut now_ms, mut number) = (Truth::default(), 0, 0);
            let mut asked: Vec<(PlayerId, u64)> = Vec::new();
            let mut waiting: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            let mut told: Vec<(u64, PlayerId, Result<KnownPlayer, DirectoryError>)> = Vec::new();
            for step in steps {
                match step {
                    CacheStep::Look(player) => {
                        number += 1;
                        match cache.look(PlayerId(player), number, now_ms) {
                            Ok(Some(known)) => {
                                let is_there = known.record.is_some();
                                let revision = known.record.map_or(0, |record| record.revision);
                                let fresh_ms = if is_there { 100 } else { 20 };
                                prop_assert!(known.age_ms < fresh_ms);
                                prop_assert!(revision >= truth.revision_at(player, now_ms - known.age_ms));
                            }
                            Ok(None) => drop(waiting.insert(number, (player, now_ms))),
                            Err(error) => {
                                let is_full = matches!(error, DirectoryError::Looks { .. });
                                prop_assert!(is_full);
                                prop_assert_eq!(waiting.len(), 6);
                            }
                        }
                    }
                    CacheStep::Order => {
                        let players = cache.order(now_ms);
                        prop_assert!(players.len() <= 2 && (asked.is_empty() || players.is_empty()));
                        // The store reads at some time before it answers: at once, at the earliest.
                        asked.extend(players.into_iter().map(|player| (player, truth.revision(player.0))));
                    }
                    CacheStep::Answer(_) if asked.is_empty() => {}
                    CacheStep::Answer(fails) => {
                        let players: Vec<PlayerId> = asked.iter().map(|&(player, _)| player).collect();
                        let there = asked.drain(..).filter(|&(_, revision)| revision > 0);
                        let found = there.map(|(player, revision)| record(player.0, revision)).collect();
                        let found = if fails {
                            Err(StoreError { store: "x".into(), fault: StoreFault::Locked, cause: "y".into() })
                        } else {
                            Ok(found)
                        };
                        cache.take(&players, found, now_ms, |number, player, answer| told.push((number, player, answer)));
                    }
                    CacheStep::Push(player, back) => {
                        let revision = truth.revision(player).saturating_sub(back);
                        if revision > 0 {
                            cache.push(&Arc::new(record(player, revision)));
                        }
                    }
                    CacheStep::Save(player) => truth.saved_ms.entry(player).or_default().push(now_ms),
                    CacheStep::Wait(ms) => {
                        now_ms += ms;
                        cache.expire(now_ms, |number, player, answer| told.push((number, player, answer)));
                    }
                }
                for (number, player, answer) in told.drain(..) {
                    let asked = waiting.remove(&number);
                    prop_assert_eq!(asked.map(|(player, _)| player), Some(player.0));
                    if let Ok(KnownPlayer { record: Some(record), .. }) = answer {
                        prop_assert!(record.revision <= truth.revision(player.0));
                    }
                }
                let is_in_time = |&(_, since_ms): &(u64, u64)| now_ms - since_ms <= 50;
                prop_assert!(waiting.values().all(is_in_time));
                prop_assert_eq!(cache.waiting(), waiting.len());
                prop_assert!(cache.entries.len() <= 4);
            }
        }
    }

    #[test]
    fn looks_at_one_player_share_what_was_asked_and_all_are_answered() {
        let mut cache = PlayerCache::new(settings());
        for number in 0..4 {
            assert_eq!(cache.look(PlayerId(7), number, 0), Ok(None));
        }
        assert_eq!(cache.order(0), [PlayerId(7)]);
        assert_eq!(cache.look(PlayerId(7), 4, 1), Ok(None));
        assert!(cache.order(0).is_empty(), "it is under way");
        let mut told = Vec::new();
        let found = Ok(vec![record(7, 3)]);
        cache.take(&[PlayerId(7)], found, 2, |number, _, _| told.push(number));
        assert_eq!(told, [0, 1, 2, 3, 4]);
        let stats = cache.stats();
        assert_eq!((stats.looks, stats.shared, stats.loads), (5, 4, 1));
        let known = cache.look(PlayerId(7), 5, 3).unwrap().unwrap();
        assert_eq!(known.record.map(|record| record.revision), Some(3));
    }

    #[test]
    fn records_that_come_twice_late_or_in_any_order_leave_the_newest() {
        let mut cache = PlayerCache::new(settings());
        let push = |cache: &mut PlayerCache, revision| cache.push(&Arc::new(record(7, revision)));
        assert!(!push(&mut cache, 9), "nobody looked at it here");
        assert_eq!(cache.look(PlayerId(7), 0, 0), Ok(None));
        cache.order(0);
        cache.take(&[PlayerId(7)], Ok(vec![record(7, 3)]), 2, |_, _, _| ());
        assert!(!push(&mut cache, 2) && !push(&mut cache, 3));
        assert!(push(&mut cache, 6) && !push(&mut cache, 5) && !push(&mut cache, 6));
        // What the store had before that comes later.
        assert_eq!(cache.look(PlayerId(7), 1, 200), Ok(None));
        cache.order(0);
        let mut told = 0;
        cache.take(
            &[PlayerId(7)],
            Ok(vec![record(7, 4)]),
            201,
            |_, _, known| {
                told = known.unwrap().record.unwrap().revision;
            },
        );
        assert_eq!(told, 6);
    }

    #[test]
    fn that_there_is_no_such_player_is_remembered_briefly() {
        let mut cache = PlayerCache::new(settings());
        assert_eq!(cache.look(PlayerId(7), 0, 0), Ok(None));
        cache.order(0);
        cache.take(&[PlayerId(7)], Ok(Vec::new()), 0, |_, _, known| {
            assert_eq!(known.unwrap().record, None);
        });
        let known = cache.look(PlayerId(7), 1, 10).unwrap();
        assert_eq!(
            known,
            Some(KnownPlayer {
                record: None,
                age_ms: 10
            })
        );
        assert_eq!(
            cache.look(PlayerId(7), 2, 20),
            Ok(None),
            "it is asked for anew"
        );
    }
}
