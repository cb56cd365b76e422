//! Which servers show this server's players, and what they are to be told.
//!
//! ```text
//! PendingAnnouncement ─▶ follow ─┐             saved, and somebody follows ─┐
//!                 └▶ until when ─▶                           ├▶ due ─▶ the store is read ─▶ publish ─▶ Saved
//!                                        left ─▶ to all ─────┘
//! ```
//! What is told is read from the store once it was saved, off the tick, so that a revision stands for one set of values
//! everywhere, and nothing is kept here of players but who follows them. What cannot be read then is not told; nobody needs it.
//!
//! Bounds: [`subscribers_max`](PeerSettings::subscribers_max) servers a player, [`pending_updates_max`](PeerSettings::pending_updates_max) players to be
//! told of. Who follows no player in time, or comes when there are as many as may be, reads the store when what it has is not
//! fresh any more. A server that held a record before its player came here is told when that player goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use throng_core::ids::PlayerId;
use throng_core::memory::MemoryUse;

use super::record::PlayerRecord;
use super::store::LookupResult;

/// Limits of what goes between servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeerSettings {
    /// Servers that are told of one player's saves, at most.
    #[serde(alias = "followers_max")]
    pub subscribers_max: u32,
    /// For how long at most another server is told, in milliseconds, after it has said that it holds a record.
    #[serde(alias = "follow_ms_max")]
    pub subscription_ms_max: u64,
    /// Players of whom others are still to be told, at most; further ones are left out.
    #[serde(alias = "due_max")]
    pub pending_updates_max: u32,
    /// Of how many players others are told at once, at most.
    #[serde(alias = "players_per_order")]
    pub players_per_request: u32,
    /// Messages that are taken in a tick, at most; others wait.
    #[serde(alias = "messages_per_tick")]
    pub messages_per_tick_max: u32,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            subscribers_max: 16,
            subscription_ms_max: 60_000,
            pending_updates_max: 20_000,
            players_per_request: 512,
            messages_per_tick_max: 1_024,
        }
    }
}

/// What went between servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Messages that came.
    pub received: u64,
    /// Records that others were told, each once however many they are.
    pub published: u64,
    /// Records that were to be told and were not, since the store failed or too many waited.
    pub dropped: u64,
    /// Servers that would have followed a player that too many followed already.
    pub subscriptions_refused: u64,
}

#[derive(Clone, Debug)]
struct Subscriber {
    server: Arc<str>,
    until_ms: u64,
}

/// Whom a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordRecipients {
    Subscribers,
    All,
}

/// Which servers show which players of this one, and what they are to be told.
#[derive(Debug, MemoryUse)]
pub struct SaveSubscribers {
    #[memory(skip)]
    settings: PeerSettings,
    #[memory(each_value)]
    by_player: BTreeMap<PlayerId, Vec<Subscriber>>,
    /// Of players who are here and were saved since they came.
    revisions: HashMap<PlayerId, u64, FixedState>,
    /// The first one is told first.
    pending: IndexMap<PlayerId, RecordRecipients, FixedState>,
    /// Those whose records the store was asked for.
    requested: BTreeMap<PlayerId, RecordRecipients>,
    stats: PeerStats,
}

impl SaveSubscribers {
    /// With nobody who follows anybody.
    #[must_use]
    pub fn new(settings: PeerSettings) -> Self {
        Self {
            settings,
            by_player: BTreeMap::new(),
            revisions: HashMap::default(),
            pending: IndexMap::default(),
            requested: BTreeMap::new(),
            stats: PeerStats::default(),
        }
    }

    /// What went between servers so far.
    #[must_use]
    pub const fn stats(&self) -> PeerStats {
        self.stats
    }

    /// A message came.
    pub fn count_received(&mut self) {
        self.stats.received += 1;
    }

    /// Whether all that was to be told was.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.requested.is_empty()
    }

    /// A server holds a record of a player who is here. If that is older than what was saved by now, it is told at once.
    pub fn subscribe(
        &mut self,
        player: PlayerId,
        server: &Arc<str>,
        revision: u64,
        for_ms: u64,
        now_ms: u64,
    ) {
        let until_ms = now_ms.saturating_add(for_ms.min(self.settings.subscription_ms_max));
        let followers = self.by_player.entry(player).or_default();
        followers.retain(|one| one.until_ms > now_ms && one.server != *server);
        if followers.len() >= self.settings.subscribers_max as usize {
            self.stats.subscriptions_refused += 1;
            return;
        }
        followers.push(Subscriber {
            server: server.clone(),
            until_ms,
        });
        let is_older = self
            .revisions
            .get(&player)
            .is_some_and(|&new| revision < new);
        if is_older {
            self.schedule(player, RecordRecipients::Subscribers);
        }
    }

    /// A player who is here was saved.
    pub fn on_saved(&mut self, player: PlayerId, revision: u64, now_ms: u64) {
        self.revisions.insert(player, revision);
        if let Some(followers) = self.by_player.get_mut(&player) {
            followers.retain(|one| one.until_ms > now_ms);
            if followers.is_empty() {
                self.by_player.remove(&player);
            } else {
                self.schedule(player, RecordRecipients::Subscribers);
            }
        }
    }

    /// A player is here no more, and its last values are saved.
    pub fn on_left(&mut self, player: PlayerId) {
        self.on_lost(player);
        self.schedule(player, RecordRecipients::All);
    }

    /// A player is another server's: it has nothing more to be told by this one.
    pub fn on_lost(&mut self, player: PlayerId) {
        self.by_player.remove(&player);
        self.revisions.remove(&player);
        self.pending.shift_remove(&player);
    }

    fn schedule(&mut self, player: PlayerId, whom: RecordRecipients) {
        let is_full = self.pending.len() >= self.settings.pending_updates_max as usize;
        if is_full && !self.pending.contains_key(&player) {
            self.stats.dropped += 1;
        } else if self.pending.get(&player) != Some(&RecordRecipients::All) {
            self.pending.insert(player, whom);
        }
    }

    /// Players of whom others are to be told now: the store is to be asked for them, and its answer given to
    /// [`publish`](Self::publish) or [`fail`](Self::fail).
    pub fn take_pending(&mut self) -> Vec<PlayerId> {
        let most = self.settings.players_per_request.max(1) as usize;
        let count = self.pending.len().min(most);
        self.requested.extend(self.pending.drain(..count));
        self.requested.keys().copied().collect()
    }

    /// The store did not answer.
    pub fn on_store_failed(&mut self) {
        self.stats.dropped += self.requested.len() as u64;
        self.requested.clear();
    }

    /// Gives what others are to be told of what the store has; without a name to all of them.
    pub fn publish(
        &mut self,
        players: &[PlayerId],
        found: &[LookupResult],
        now_ms: u64,
        mut tell: impl FnMut(Option<&str>, Vec<Arc<PlayerRecord>>),
    ) {
        let (mut to_all, mut to_one) = (Vec::new(), BTreeMap::<Arc<str>, Vec<_>>::new());
        for (player, found) in players.iter().zip(found) {
            let (Some(whom), LookupResult::Found(record)) = (self.requested.remove(player), found)
            else {
                continue;
            };
            let record = Arc::new(record.clone());
            self.stats.published += 1;
            if whom == RecordRecipients::All {
                to_all.push(record);
                continue;
            }
            let followers = self.by_player.get(player).into_iter().flatten();
            for follower in followers.filter(|one| one.until_ms > now_ms) {
                let records = to_one.entry(follower.server.clone()).or_default();
                records.push(record.clone());
            }
        }
        // What the store has nothing of nobody is told.
        self.requested.clear();
        if !to_all.is_empty() {
            tell(None, to_all);
        }
        for (server, records) in to_one {
            tell(Some(&server), records);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(player: PlayerId, revision: u64) -> LookupResult {
        LookupResult::Found(PlayerRecord {
            revision,
            ..PlayerRecord::new(player)
        })
    }

    /// What is told now, when the store has this revision of everybody.
    fn published(followers: &mut SaveSubscribers, now_ms: u64) -> Vec<(Option<String>, Vec<u64>)> {
        let players = followers.take_pending();
        let found: Vec<_> = players.iter().map(|&player| record(player, 9)).collect();
        let mut told = Vec::new();
        followers.publish(&players, &found, now_ms, |server, records| {
            let players = records.iter().map(|record| record.player.0).collect();
            told.push((server.map(str::to_owned), players));
        });
        told
    }

    #[test]
    fn subscribers_receive_saves_until_expiry_and_all_at_logout() {
        let mut followers = SaveSubscribers::new(PeerSettings::default());
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        followers.on_saved(PlayerId(1), 1, 0);
        assert!(published(&mut followers, 0).is_empty(), "nobody follows");
        followers.subscribe(PlayerId(1), &a, 1, 100, 0);
        followers.subscribe(PlayerId(2), &a, 0, 100, 0);
        followers.subscribe(PlayerId(1), &b, 1, 50, 0);
        assert!(
            published(&mut followers, 0).is_empty(),
            "they have the newest"
        );
        followers.on_saved(PlayerId(1), 2, 10);
        followers.on_saved(PlayerId(2), 1, 10);
        let both = [
            (Some("a".to_owned()), vec![1, 2]),
            (Some("b".to_owned()), vec![1]),
        ];
        assert_eq!(published(&mut followers, 10), both);
        followers.on_saved(PlayerId(1), 3, 60);
        assert_eq!(
            published(&mut followers, 60),
            [(Some("a".to_owned()), vec![1])]
        );
        followers.on_saved(PlayerId(1), 4, 100);
        assert!(published(&mut followers, 100).is_empty());
        // One that read an older one just before it was saved.
        followers.subscribe(PlayerId(1), &b, 3, 50, 100);
        assert_eq!(
            published(&mut followers, 100),
            [(Some("b".to_owned()), vec![1])]
        );
        followers.on_saved(PlayerId(1), 5, 110);
        followers.on_left(PlayerId(1));
        followers.on_left(PlayerId(2));
        assert_eq!(published(&mut followers, 110), [(None, vec![1, 2])]);
        assert!(followers.is_idle() && followers.by_player.is_empty());
    }

    #[test]
    fn subscriptions_stay_within_their_limits() {
        let mut followers = SaveSubscribers::new(PeerSettings {
            subscribers_max: 2,
            pending_updates_max: 3,
            players_per_request: 2,
            ..PeerSettings::default()
        });
        for server in ["a", "b", "c", "c"] {
            followers.subscribe(PlayerId(1), &server.into(), 0, 10, 0);
        }
        assert_eq!(followers.stats().subscriptions_refused, 2);
        (1..=5).for_each(|player| followers.on_left(PlayerId(player)));
        assert_eq!(followers.stats().dropped, 2);
        assert_eq!(published(&mut followers, 0), [(None, vec![1, 2])]);
        assert_eq!(followers.take_pending(), [PlayerId(3)]);
        followers.on_store_failed();
        assert!(followers.is_idle() && followers.revisions.is_empty());
    }
}
