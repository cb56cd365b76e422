//! Compares the cache with a naive model, and with the times of all saves.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use throng_core::ids::PlayerId;

use super::cache::{CacheSettings, CachedPlayer, PlayerCache};
use super::error::{PlayerStoreError, StoreError, StoreErrorKind};
use super::record::PlayerRecord;
use super::store::LookupResult;

const PLAYERS: u64 = 8;
const FRESH_MS: u64 = 100;
const MISSING_MS: u64 = 20;
const DEADLINE_MS: u64 = 50;
const PER_ORDER: usize = 2;
const WAITING_MAX: usize = 6;

fn settings(entries_max: u32) -> CacheSettings {
    CacheSettings {
        entries_max,
        ttl_ms: FRESH_MS,
        ttl_jitter_share: 0.0,
        missing_ttl_ms: MISSING_MS,
        load_timeout_ms: DEADLINE_MS,
        players_per_request: PER_ORDER as u32,
        pending_lookups_max: WAITING_MAX as u32,
    }
}

fn record(player: u64, revision: u64) -> PlayerRecord {
    PlayerRecord {
        revision,
        ..PlayerRecord::new(PlayerId(player))
    }
}

fn error() -> StoreError {
    StoreError {
        store: "x".to_owned(),
        kind: StoreErrorKind::Locked,
        cause: "y".to_owned(),
    }
}

#[derive(Clone, Copy, Debug)]
enum StoreBehaviour {
    Replies,
    Fails,
    /// The record of the first requested player is unreadable.
    ReadsAllButOne,
}

#[derive(Clone, Debug)]
enum CacheStep {
    Lookup(u64),
    /// Of a player with unsaved changes here.
    LookupInStore(u64),
    /// Players with a lower id have unsaved changes here.
    Request(u64),
    Reply(StoreBehaviour),
    /// A record that is this many revisions old arrives.
    Push(u64, u64),
    /// A player is saved, here or elsewhere.
    Save(u64, bool),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<CacheStep>> {
    let mood = prop_oneof![
        6 => Just(StoreBehaviour::Replies),
        1 => Just(StoreBehaviour::Fails),
        1 => Just(StoreBehaviour::ReadsAllButOne),
    ];
    let player = 0..PLAYERS;
    let step = prop_oneof![
        8 => player.clone().prop_map(CacheStep::Lookup),
        1 => player.clone().prop_map(CacheStep::LookupInStore),
        4 => (0..2_u64).prop_map(CacheStep::Request),
        4 => mood.prop_map(CacheStep::Reply),
        2 => (player.clone(), 0..4_u64).prop_map(|(player, back)| CacheStep::Push(player, back)),
        3 => (player, any::<bool>()).prop_map(|(player, is_here)| CacheStep::Save(player, is_here)),
        4 => (0..40_u64).prop_map(CacheStep::Wait),
    ];
    prop::collection::vec(step, 0..150)
}

/// The result of a lookup: a revision with its age, or an error.
type ReplySummary = Result<(u64, u64), ()>;

fn summarise(answer: &Result<CachedPlayer, PlayerStoreError>) -> ReplySummary {
    let known = answer.as_ref().map_err(|_| ())?;
    let revision = known.record.as_ref().map_or(0, |record| record.revision);
    Ok((revision, known.age_ms))
}

/// A cache without eviction, on lists that are searched.
#[derive(Default)]
struct NaiveCache {
    /// By player: the revision, when it was read, and when it expires.
    known: BTreeMap<u64, (u64, u64, u64)>,
    /// Pending lookups, in order: number, player, start time.
    waiting: Vec<(u64, u64, u64)>,
    /// Players to request.
    queue: Vec<u64>,
    /// Requested players.
    asked: Vec<u64>,
    asked_ms: u64,
}

impl NaiveCache {
    fn lookup(
        &mut self,
        player: u64,
        number: u64,
        now_ms: u64,
        trusts: bool,
    ) -> Option<ReplySummary> {
        if let Some(&(revision, read_ms, until_ms)) = self.known.get(&player)
            && trusts
            && now_ms < until_ms
        {
            return Some(Ok((revision, now_ms - read_ms)));
        }
        if self.waiting.len() == WAITING_MAX {
            return Some(Err(()));
        }
        self.waiting.push((number, player, now_ms));
        if !self.queue.contains(&player) && !self.asked.contains(&player) {
            self.queue.push(player);
        }
        None
    }

    fn next_request(&mut self, now_ms: u64, may_ask: impl Fn(u64) -> bool) -> Vec<u64> {
        if self.asked.is_empty() {
            let free = self.queue.iter().copied().filter(|&player| may_ask(player));
            self.asked = free.take(PER_ORDER).collect();
            self.queue.retain(|player| !self.asked.contains(player));
            self.asked_ms = now_ms;
            return self.asked.clone();
        }
        Vec::new()
    }

    fn answered(&mut self, revisions: &[Result<u64, ()>], now_ms: u64) -> Vec<(u64, ReplySummary)> {
        let mut replies = Vec::new();
        for (player, revision) in std::mem::take(&mut self.asked).into_iter().zip(revisions) {
            let mut answer = Err(());
            if let &Ok(revision) = revision {
                let known = self.known.get(&player).map_or(0, |known| known.0);
                let revision = revision.max(known);
                let lasts_ms = if revision > 0 { FRESH_MS } else { MISSING_MS };
                let age_ms = now_ms - self.asked_ms;
                let entry = (revision, self.asked_ms, self.asked_ms + lasts_ms);
                self.known.insert(player, entry);
                answer = Ok((revision, age_ms));
                if age_ms >= lasts_ms && age_ms > DEADLINE_MS {
                    if self.waiting.iter().any(|look| look.1 == player) {
                        self.queue.push(player);
                    }
                    continue;
                }
            }
            let answered = self.waiting.iter().filter(|look| look.1 == player);
            replies.extend(answered.map(|look| (look.0, answer)));
            self.waiting.retain(|look| look.1 != player);
        }
        replies
    }

    fn push(&mut self, player: u64, revision: u64) {
        let is_awaited = self.queue.contains(&player) || self.asked.contains(&player);
        match self.known.get_mut(&player) {
            Some(known) => known.0 = known.0.max(revision),
            None if is_awaited => drop(self.known.insert(player, (revision, 0, 0))),
            None => {}
        }
    }

    fn expire(&mut self, now_ms: u64) -> Vec<(u64, ReplySummary)> {
        let is_late = |look: &&(u64, u64, u64)| now_ms - look.2 > DEADLINE_MS;
        let late = self.waiting.iter().filter(is_late);
        let late = late.map(|look| (look.0, Err(()))).collect();
        self.waiting.retain(|look| !is_late(&look));
        let waiting = &self.waiting;
        self.queue
            .retain(|&player| waiting.iter().any(|look| look.1 == player));
        late
    }
}

/// Time of each revision of each player.
#[derive(Default)]
struct SaveTimes(BTreeMap<u64, Vec<u64>>);

impl SaveTimes {
    fn of(&self, player: u64) -> &[u64] {
        self.0.get(&player).map_or(&[], Vec::as_slice)
    }

    /// The newest revision; 0 if there is none.
    fn revision(&self, player: u64) -> u64 {
        self.of(player).len() as u64
    }

    /// The newest revision just before a time.
    fn revision_before(&self, player: u64, at_ms: u64) -> u64 {
        let saved = self.of(player).iter();
        saved.filter(|&&saved_ms| saved_ms < at_ms).count() as u64
    }
}

/// The cache under test, and the invariants of its results.
struct CacheTrial {
    cache: PlayerCache,
    /// A cache without eviction, if the tested one has room for all players.
    naive: Option<NaiveCache>,
    times: SaveTimes,
    now_ms: u64,
    looks: u64,
    /// Requested players, with the revision that the store read.
    asked: Vec<(PlayerId, u64)>,
    /// Pending lookups: player and start time.
    waiting: BTreeMap<u64, (u64, u64)>,
    /// By player: the newest revision returned to a lookup.
    newest_replies: BTreeMap<u64, u64>,
}

type CacheChecked = Result<(), TestCaseError>;

impl CacheTrial {
    fn new(entries_max: u32) -> Self {
        Self {
            cache: PlayerCache::new(settings(entries_max)),
            naive: (u64::from(entries_max) > PLAYERS).then(NaiveCache::default),
            times: SaveTimes::default(),
            now_ms: 0,
            looks: 0,
            asked: Vec::new(),
            waiting: BTreeMap::new(),
            newest_replies: BTreeMap::new(),
        }
    }

    /// Checks a returned revision: not older than a previous result, and not older than allowed.
    fn check_reply(&mut self, player: u64, reply: ReplySummary) -> CacheChecked {
        if let Ok((revision, age_ms)) = reply {
            let newest = self.newest_replies.entry(player).or_default();
            prop_assert!(
                revision >= *newest,
                "player {player}: a reply had revision {newest} before"
            );
            *newest = revision;
            prop_assert!(age_ms <= FRESH_MS.max(DEADLINE_MS));
            let least = self.times.revision_before(player, self.now_ms - age_ms);
            prop_assert!(revision >= least && revision <= self.times.revision(player));
        }
        Ok(())
    }

    fn check_replies(
        &mut self,
        replies: &[(u64, PlayerId, Result<CachedPlayer, PlayerStoreError>)],
        expected: Option<Vec<(u64, ReplySummary)>>,
    ) -> CacheChecked {
        let answers = replies.iter();
        let answers: Vec<_> = answers
            .map(|(number, _, answer)| (*number, summarise(answer)))
            .collect();
        if let Some(mut expected) = expected {
            // Overdue lookups are reported by player.
            let mut found = answers.clone();
            expected.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
        for ((number, player, _), (_, answer)) in replies.iter().zip(answers) {
            let look = self.waiting.remove(number);
            prop_assert_eq!(look.map(|look| look.0), Some(player.0), "answered once");
            self.check_reply(player.0, answer)?;
        }
        Ok(())
    }

    fn lookup(&mut self, player: u64, trusts: bool) -> CacheChecked {
        self.looks += 1;
        let (number, now_ms) = (self.looks, self.now_ms);
        let answer = if trusts {
            self.cache.lookup(PlayerId(player), number, now_ms)
        } else {
            let waits = self.cache.lookup_in_store(PlayerId(player), number, now_ms);
            waits.map(|()| None)
        };
        let answer = answer.transpose().map(|answer| summarise(&answer));
        if let Some(naive) = &mut self.naive {
            prop_assert_eq!(answer, naive.lookup(player, number, now_ms, trusts));
        }
        match answer {
            Some(Err(())) => prop_assert_eq!(self.waiting.len(), WAITING_MAX),
            Some(answer) => self.check_reply(player, answer)?,
            None => drop(self.waiting.insert(number, (player, now_ms))),
        }
        Ok(())
    }

    fn request(&mut self, below: u64) -> CacheChecked {
        let now_ms = self.now_ms;
        let players = self
            .cache
            .next_request(now_ms, |player| player.0 >= below, &[]);
        if let Some(naive) = &mut self.naive {
            let expected = naive.next_request(now_ms, |player| player >= below);
            let found: Vec<u64> = players.iter().map(|player| player.0).collect();
            let is_under_way = !self.asked.is_empty();
            prop_assert_eq!(found, if is_under_way { Vec::new() } else { expected });
        }
        prop_assert!(self.asked.is_empty() || players.is_empty(), "one at a time");
        prop_assert!(players.len() <= PER_ORDER);
        // The store reads between the request and its reply.
        let read = players.into_iter();
        let read = read.map(|player| (player, self.times.revision(player.0)));
        self.asked.extend(read);
        Ok(())
    }

    fn reply(&mut self, mood: StoreBehaviour) -> CacheChecked {
        if self.asked.is_empty() {
            return Ok(());
        }
        let asked = std::mem::take(&mut self.asked);
        let players: Vec<PlayerId> = asked.iter().map(|&(player, _)| player).collect();
        let read = |(nth, &(player, revision)): (usize, &(PlayerId, u64))| match mood {
            StoreBehaviour::ReadsAllButOne if nth == 0 => LookupResult::Unreadable(error()),
            _ if revision == 0 => LookupResult::Missing,
            _ => LookupResult::Found(record(player.0, revision)),
        };
        let found = match mood {
            StoreBehaviour::Fails => Err(error()),
            _ => Ok(asked.iter().enumerate().map(read).collect()),
        };
        let revisions = asked.iter().enumerate().map(|(nth, one)| match mood {
            StoreBehaviour::Fails => Err(()),
            StoreBehaviour::ReadsAllButOne if nth == 0 => Err(()),
            _ => Ok(one.1),
        });
        let revisions: Vec<_> = revisions.collect();
        let now_ms = self.now_ms;
        let mut replies = Vec::new();
        let tell = |number, player, answer| replies.push((number, player, answer));
        self.cache.receive(&players, found, now_ms, tell);
        let naive = self.naive.as_mut();
        let expected = naive.map(|naive| naive.answered(&revisions, now_ms));
        self.check_replies(&replies, expected)
    }

    fn step(&mut self, step: CacheStep) -> CacheChecked {
        match step {
            CacheStep::Lookup(player) => self.lookup(player, true)?,
            CacheStep::LookupInStore(player) => self.lookup(player, false)?,
            CacheStep::Request(below) => self.request(below)?,
            CacheStep::Reply(mood) => self.reply(mood)?,
            CacheStep::Push(player, back) => {
                let revision = self.times.revision(player).saturating_sub(back);
                if revision > 0 {
                    self.cache.push(&Arc::new(record(player, revision)));
                    let naive = self.naive.as_mut();
                    naive
                        .into_iter()
                        .for_each(|naive| naive.push(player, revision));
                }
            }
            CacheStep::Save(player, is_here) => {
                self.times.0.entry(player).or_default().push(self.now_ms);
                let revision = self.times.revision(player);
                if is_here {
                    self.cache.invalidate(PlayerId(player), revision);
                }
                if let Some(naive) = &mut self.naive
                    && let Some(known) = naive.known.get_mut(&player)
                    && is_here
                {
                    known.2 = 0;
                }
            }
            CacheStep::Wait(ms) => {
                self.now_ms += ms;
                let mut replies = Vec::new();
                let tell = |number, player, answer| replies.push((number, player, answer));
                self.cache.expire_lookups(self.now_ms, tell);
                let naive = self.naive.as_mut();
                let expected = naive.map(|naive| naive.expire(self.now_ms));
                self.check_replies(&replies, expected)?;
            }
        }
        let is_in_time = |look: &(u64, u64)| self.now_ms - look.1 <= DEADLINE_MS;
        prop_assert!(self.waiting.values().all(is_in_time));
        prop_assert_eq!(self.cache.pending_lookups(), self.waiting.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(draws!())]

    /// Every lookup completes once and in time, as in the naive cache.
    #[test]
    fn unbounded_cache_matches_the_naive_model(steps in steps()) {
        let mut trial = CacheTrial::new(100);
        for step in steps {
            trial.step(step)?;
        }
    }

    /// A cache with eviction returns no outdated record, and no older revision after a newer one.
    #[test]
    fn evicting_cache_never_returns_outdated_records(steps in steps()) {
        let mut trial = CacheTrial::new(4);
        for step in steps {
            trial.step(step)?;
            prop_assert!(trial.cache.len() <= 4);
        }
    }
}
