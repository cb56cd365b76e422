//! Which servers show this server's players, and which updates they receive.
//!
//! ```text
//! Subscribe with an old revision ─┐
//! saved, with subscribers ────────┼─▶ pending ─▶ the store is read ─▶ publish ─▶ Saved: to the subscribers; after `left` to all servers
//! left ───────────────────────────┘
//! ```
//!
//! Published records are read from the store after the save, outside the tick, so a revision stands for the same values everywhere. This
//! file stores only the subscribers of players. Records that cannot be read then are not published; nobody depends on them.
//!
//! Bounds: [`subscribers_max`](PeerSettings::subscribers_max) servers per player,
//! [`pending_updates_max`](PeerSettings::pending_updates_max) pending players. A server that does not renew in time, or subscribes when the
//! limit is reached, reads the store when its record has expired. A server that held a record before its player came here receives an
//! update when that player leaves.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use throng_core::ids::PlayerId;
use throng_core::memory::MemoryUse;

use super::record::PlayerRecord;
use super::store::LookupResult;

/// Limits of messages between servers.
///
/// ```
/// use throng_store::PeerSettings;
///
/// // A game whose servers show the same celebrities.
/// let settings = PeerSettings { subscribers_max: 64, ..PeerSettings::default() };
/// assert_eq!(settings.subscription_ms_max, 60_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeerSettings {
    /// Maximum number of servers that receive the saves of one player.
    #[serde(alias = "followers_max")]
    pub subscribers_max: u32,
    /// Maximum duration of a subscription, in milliseconds.
    #[serde(alias = "follow_ms_max")]
    pub subscription_ms_max: u64,
    /// Maximum number of players with a pending update; more are dropped.
    #[serde(alias = "due_max")]
    pub pending_updates_max: u32,
    /// Maximum number of players per request to the store.
    #[serde(alias = "players_per_order")]
    pub players_per_request: u32,
    /// Maximum number of messages handled per tick; others wait.
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

/// Counters of messages between servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Messages received.
    pub received: u64,
    /// Records published, each counted once, whatever the number of receivers.
    pub published: u64,
    /// Records not published, because the store failed or too many were pending.
    pub dropped: u64,
    /// Subscriptions refused, because the player had too many.
    pub subscriptions_refused: u64,
}

#[derive(Clone, Debug)]
struct Subscriber {
    server: Arc<str>,
    until_ms: u64,
}

/// The recipients of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordRecipients {
    Subscribers,
    All,
}

/// The subscribers of this server's players, and the pending updates.
#[derive(Debug, MemoryUse)]
pub struct SaveSubscribers {
    #[memory(skip)]
    settings: PeerSettings,
    #[memory(each_value)]
    by_player: BTreeMap<PlayerId, Vec<Subscriber>>,
    /// Revisions of players who are here and were saved since they came.
    revisions: HashMap<PlayerId, u64, FixedState>,
    /// In the order of publishing.
    pending: IndexMap<PlayerId, RecordRecipients, FixedState>,
    /// Players whose records were requested from the store.
    requested: BTreeMap<PlayerId, RecordRecipients>,
    stats: PeerStats,
}

impl SaveSubscribers {
    /// Without subscribers.
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

    /// Counters so far.
    #[must_use]
    pub const fn stats(&self) -> PeerStats {
        self.stats
    }

    /// Counts a received message.
    pub fn count_received(&mut self) {
        self.stats.received += 1;
    }

    /// Whether all updates were published.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.requested.is_empty()
    }

    /// Subscribes a server that has a record of a player who is here. If its record is outdated already, an update becomes pending at once.
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

    /// A player has left, and its last values are saved.
    pub fn on_left(&mut self, player: PlayerId) {
        self.on_lost(player);
        self.schedule(player, RecordRecipients::All);
    }

    /// Another server has the player, so this one publishes nothing more of it.
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

    /// Players with an update to publish now: request them from the store, and pass the reply to [`publish`](Self::publish) or
    /// [`on_store_failed`](Self::on_store_failed).
    pub fn take_pending(&mut self) -> Vec<PlayerId> {
        let most = self.settings.players_per_request.max(1) as usize;
        let count = self.pending.len().min(most);
        self.requested.extend(self.pending.drain(..count));
        self.requested.keys().copied().collect()
    }

    /// The store did not reply.
    pub fn on_store_failed(&mut self) {
        self.stats.dropped += self.requested.len() as u64;
        self.requested.clear();
    }

    /// Passes the records to publish to `tell`, with the name of the receiving server, or `None` for all servers.
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
        // Players without a stored record are not published.
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

    /// What is published now, if the store has this revision of all players.
    fn published(followers: &mut SaveSubscribers, now_ms: u64) -> Vec<(Option<String>, Vec<u64>)> {
        let players = followers.take_pending();
        let found: Vec<_> = players.iter().map(|&player| record(player, 9)).collect();
        let mut sent = Vec::new();
        followers.publish(&players, &found, now_ms, |server, records| {
            let players = records.iter().map(|record| record.player.0).collect();
            sent.push((server.map(str::to_owned), players));
        });
        sent
    }

    #[test]
    fn subscribers_receive_saves_until_expiry_and_all_at_logout() {
        let mut followers = SaveSubscribers::new(PeerSettings::default());
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        followers.on_saved(PlayerId(1), 1, 0);
        assert!(
            published(&mut followers, 0).is_empty(),
            "no server is subscribed"
        );
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
        // A server that read an older revision just before the save.
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

    #[test]
    fn expired_subscribers_make_room_for_others() {
        let mut followers = SaveSubscribers::new(PeerSettings {
            subscribers_max: 2,
            ..PeerSettings::default()
        });
        let mut subscribe = |server: &str, now_ms| {
            followers.subscribe(PlayerId(1), &server.into(), 0, 10, now_ms);
            followers.stats().subscriptions_refused
        };
        assert_eq!([subscribe("a", 0), subscribe("b", 5)], [0, 0]);
        assert_eq!(subscribe("c", 9), 1, "both are there");
        assert_eq!(subscribe("c", 10), 1, "the first has expired");
        assert_eq!(subscribe("b", 10), 1, "it extends its own");
        assert_eq!(subscribe("d", 19), 2);
    }

    #[test]
    fn logout_update_to_all_is_not_narrowed_by_a_later_save() {
        let mut followers = SaveSubscribers::new(PeerSettings::default());
        let player = PlayerId(1);
        followers.on_saved(player, 1, 0);
        followers.on_left(player);
        // The player returns before the update is sent.
        followers.subscribe(player, &"a".into(), 1, 100, 0);
        followers.on_saved(player, 2, 10);
        assert_eq!(published(&mut followers, 10), [(None, vec![1])]);
    }
}
