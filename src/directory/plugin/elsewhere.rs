//! What is known of players elsewhere, between the cache, the store and whoever asks.

use crate::directory::cache::PlayerCache;
use crate::directory::error::StoreError;
use crate::directory::ledger::{Ledger, LedgerEvent};
use crate::directory::store::LookedUp;
use crate::world::PlayerId;

use super::messages::LookUpAnswer;
use super::settings::DirectorySettings;

/// The cache, and answers that are to be told.
pub(super) struct Elsewhere {
    pub cache: PlayerCache,
    pub answers: Vec<LookUpAnswer>,
}

impl Elsewhere {
    pub fn new(settings: &DirectorySettings) -> Self {
        Self {
            cache: PlayerCache::new(settings.cache.clone()),
            answers: Vec::new(),
        }
    }

    /// Somebody looks at a player who has no object here. While something of it is unsaved here nothing older is told.
    pub fn look(&mut self, player: PlayerId, number: u64, now_ms: u64, ledger: &Ledger) {
        let answer = if ledger.is_unsaved(player) {
            let waits = self.cache.look_at_store(player, number, now_ms);
            waits.err().map(Err)
        } else {
            self.cache.look(player, number, now_ms).transpose()
        };
        self.answers.extend(answer.map(|answer| LookUpAnswer {
            player,
            number,
            answer,
        }));
    }

    /// Tells those who waited too long.
    pub fn expire(&mut self, now_ms: u64) {
        let Self { cache, answers } = self;
        cache.expire(now_ms, |number, player, answer| {
            answers.push(LookUpAnswer {
                player,
                number,
                answer,
            });
        });
    }

    /// Whom the store is to be asked for now. Who has something unsaved here is asked for when it is saved.
    pub fn order(&mut self, now_ms: u64, ledger: &Ledger) -> Vec<PlayerId> {
        let may_ask = |player| !ledger.is_unsaved(player);
        self.cache.order(now_ms, may_ask, &[])
    }

    /// Takes the store's answer.
    pub fn take(
        &mut self,
        players: &[PlayerId],
        found: Result<Vec<LookedUp>, StoreError>,
        now_ms: u64,
    ) {
        let Self { cache, answers } = self;
        cache.take(players, found, now_ms, |number, player, answer| {
            answers.push(LookUpAnswer {
                player,
                number,
                answer,
            });
        });
    }

    /// Players of this server were saved: what was known of them from before is not served any more.
    pub fn note(&mut self, event: &LedgerEvent) {
        if let LedgerEvent::Saved { revisions, .. } = event {
            for &(player, revision) in revisions {
                self.cache.outdate(player, revision);
            }
        }
    }
}
