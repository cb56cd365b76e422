//! Players on other servers: requests between the cache, the store and the other servers.

use std::sync::Arc;

use throng_store::{
    LeaseEvent, LeaseTable, LookupResult, PeerMessage, PeerSettings, Peers, PlayerCache,
    SaveSubscribers, StoreError,
};

use super::messages::PlayerLookupResult;
use super::settings::PlayerStoreSettings;
use crate::memory::MemoryUse;
use crate::world::PlayerId;

/// The cache, the servers that subscribe to players of this server, and outgoing messages.
#[derive(MemoryUse)]
pub(super) struct RemotePlayers {
    pub cache: PlayerCache,
    pub results: Vec<PlayerLookupResult>,
    /// `None` without other servers.
    pub subscribers: Option<SaveSubscribers>,
    /// Messages to other servers; without a name to all of them.
    outgoing: Vec<(Option<Arc<str>>, PeerMessage)>,
    #[memory(skip)]
    server: Arc<str>,
    subscription_ms: u64,
    #[memory(skip)]
    peers: PeerSettings,
}

impl RemotePlayers {
    pub fn new(settings: &PlayerStoreSettings) -> Self {
        Self {
            cache: PlayerCache::new(settings.cache.clone()),
            results: Vec::new(),
            subscribers: None,
            outgoing: Vec::new(),
            server: settings.server.as_str().into(),
            subscription_ms: settings.cache.ttl_ms,
            peers: settings.peers.clone(),
        }
    }

    /// Looks up a player without an object on this server. While it may have unsaved changes here, or is here without an object,
    /// older cached data is not used.
    pub fn lookup(&mut self, player: PlayerId, number: u64, now_ms: u64, ledger: &LeaseTable) {
        let answer = if ledger.is_live(player) || ledger.is_unsaved(player) {
            let waits = self.cache.lookup_in_store(player, number, now_ms);
            waits.err().map(Err)
        } else {
            self.cache.lookup(player, number, now_ms).transpose()
        };
        self.results.extend(answer.map(|answer| PlayerLookupResult {
            player,
            request_id: number,
            result: answer,
        }));
    }

    /// Replies to lookups that timed out.
    pub fn expire(&mut self, now_ms: u64) {
        let Self {
            cache,
            results: answers,
            ..
        } = self;
        cache.expire_lookups(now_ms, |number, player, answer| {
            answers.push(PlayerLookupResult {
                player,
                request_id: number,
                result: answer,
            });
        });
    }

    /// The players to request from the store now: for lookups and for other servers. A player with unsaved changes here is
    /// requested when they are saved.
    pub fn next_request(&mut self, now_ms: u64, ledger: &LeaseTable) -> Vec<PlayerId> {
        if self.cache.is_request_pending() {
            return Vec::new();
        }
        let followers = self.subscribers.as_mut();
        let due = followers
            .map(SaveSubscribers::take_pending)
            .unwrap_or_default();
        let may_ask = |player| !ledger.is_unsaved(player);
        self.cache.next_request(now_ms, may_ask, &due)
    }

    /// Takes a reply of the store.
    pub fn on_reply(
        &mut self,
        players: &[PlayerId],
        found: Result<Vec<LookupResult>, StoreError>,
        now_ms: u64,
        ledger: &LeaseTable,
    ) {
        let Self {
            cache,
            results: answers,
            subscribers: followers,
            outgoing,
            ..
        } = self;
        match (followers.as_mut(), &found) {
            (Some(followers), Ok(found)) => {
                followers.publish(players, found, now_ms, |server, records| {
                    outgoing.push((server.map(Arc::from), PeerMessage::Saved(records)));
                });
            }
            (Some(followers), Err(_)) => followers.on_store_failed(),
            (None, _) => {}
        }
        cache.receive(players, found, now_ms, |number, player, answer| {
            answers.push(PlayerLookupResult {
                player,
                request_id: number,
                result: answer,
            });
        });
        if followers.is_none() {
            return;
        }
        let elsewhere = players.iter().filter(|&&player| !ledger.is_live(player));
        let held = elsewhere.filter_map(|&player| Some((player, cache.revision(player)?)));
        let held: Vec<(PlayerId, u64)> = held.collect();
        if !held.is_empty() {
            let message = PeerMessage::Subscribe {
                by: self.server.clone(),
                players: held,
                for_ms: self.subscription_ms,
            };
            self.outgoing.push((None, message));
        }
    }

    /// Players of this server were saved, left or were lost: their older cached data is not used any more, and other servers are
    /// notified.
    pub fn on_event(&mut self, event: &LeaseEvent, now_ms: u64, ledger: &LeaseTable) {
        match event {
            LeaseEvent::Saved {
                revisions, left, ..
            } => {
                for &(player, revision) in revisions {
                    self.cache.invalidate(player, revision);
                    if let Some(followers) = &mut self.subscribers
                        && ledger.is_live(player)
                    {
                        followers.on_saved(player, revision, now_ms);
                    }
                }
                if let Some(followers) = &mut self.subscribers {
                    left.iter().for_each(|&player| followers.on_left(player));
                }
            }
            &LeaseEvent::Lost { player, .. } => {
                if let Some(followers) = &mut self.subscribers {
                    followers.on_lost(player);
                }
            }
            _ => {}
        }
    }

    /// Takes messages of other servers.
    pub fn receive(&mut self, peers: &mut dyn Peers, now_ms: u64, ledger: &LeaseTable) {
        let settings = &self.peers;
        let followers = self
            .subscribers
            .get_or_insert_with(|| SaveSubscribers::new(settings.clone()));
        for _ in 0..settings.messages_per_tick_max {
            match peers.receive() {
                Some(PeerMessage::Saved(records)) => {
                    for record in &records {
                        self.cache.push(record);
                    }
                }
                Some(PeerMessage::Subscribe {
                    by,
                    players,
                    for_ms,
                }) => {
                    let here = players.iter().filter(|(player, _)| ledger.is_live(*player));
                    for &(player, revision) in here {
                        followers.subscribe(player, &by, revision, for_ms, now_ms);
                    }
                }
                None => return,
            }
            followers.count_received();
        }
    }

    /// Sends messages to other servers.
    pub fn send(&mut self, peers: &mut dyn Peers) {
        for (server, message) in self.outgoing.drain(..) {
            match server {
                Some(server) => peers.send(&server, message),
                None => peers.broadcast(message),
            }
        }
    }

    /// Whether all messages to other servers were sent, as far as the changes were saved.
    pub fn is_published(&self) -> bool {
        self.subscribers
            .as_ref()
            .is_none_or(SaveSubscribers::is_idle)
    }
}
