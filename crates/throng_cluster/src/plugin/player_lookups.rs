//! Look-ups of the saved states of players on any node, through the cache of `throng_store`.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use throng_core::ids::PlayerId;
use throng_store::{
    CacheSettings, CachedPlayer, LookupResult, PlayerCache, PlayerRecord, PlayerStoreError,
    StoreError, StoreErrorKind,
};

use super::cluster_players::ClusterPlayers;
use crate::request::PlayerEntry;

/// The attribute of a [`PlayerRecord`] that contains the state of a player of a cluster.
const STATE: u16 = 0;

/// A bounded cache of the saved states of players on any node. A result may be up to [`ttl_ms`](CacheSettings::ttl_ms) older than the row, and the
/// row is older than the player by up to the save interval of its node. For players of this node, use their entities instead.
///
/// To change the limits, insert the resource before the plugin.
///
/// Cost: a hit is one hash table lookup. Misses of a tick share a request, which is sent at the end of the tick; the results follow as
/// [`PlayerLookedUp`] at the start of a later one.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerLookups;
/// use throng_core::ids::PlayerId;
///
/// fn show(player: PlayerId, mut lookups: ResMut<PlayerLookups>) {
///     match lookups.look_up(player, 1) {
///         Ok(Some(known)) => println!("{:?}", PlayerLookups::state(&known)),
///         Ok(None) => println!("a PlayerLookedUp with the number 1 follows"),
///         Err(error) => println!("{error}"),
///     }
/// }
/// ```
#[derive(Resource)]
pub struct PlayerLookups {
    cache: PlayerCache,
    now_ms: u64,
}

impl Default for PlayerLookups {
    fn default() -> Self {
        Self::new(CacheSettings::default())
    }
}

impl PlayerLookups {
    /// An empty cache.
    #[must_use]
    pub fn new(settings: CacheSettings) -> Self {
        let cache = PlayerCache::new(settings);
        Self { cache, now_ms: 0 }
    }

    /// Looks up a player. Returns the cached state if it is fresh. Otherwise it returns `None`, and a [`PlayerLookedUp`] with this number follows.
    /// O(1) for cached players.
    ///
    /// # Errors
    /// [`PlayerStoreError::TooManyLookups`] if too many are pending.
    pub fn look_up(
        &mut self,
        player: PlayerId,
        number: u64,
    ) -> Result<Option<CachedPlayer>, PlayerStoreError> {
        self.cache.lookup(player, number, self.now_ms)
    }

    /// The state in a result, as the game encodes it; `None` for an unknown player.
    #[must_use]
    pub fn state(known: &CachedPlayer) -> Option<&[u8]> {
        let record = known.record.as_ref()?;
        record.values.get(&STATE).map(Vec::as_slice)
    }

    /// The cache, for its counters.
    #[must_use]
    pub const fn cache(&self) -> &PlayerCache {
        &self.cache
    }
}

/// The result of a look-up that was not cached.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{PlayerLookedUp, PlayerLookups};
///
/// fn log(mut results: MessageReader<PlayerLookedUp>) {
///     for it in results.read() {
///         println!("player {}: {:?}", it.player.0, it.result.as_ref().map(PlayerLookups::state));
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq)]
pub struct PlayerLookedUp {
    /// The player.
    pub player: PlayerId,
    /// The number of the look-up.
    pub number: u64,
    /// The saved state, or why there is no result.
    pub result: Result<CachedPlayer, PlayerStoreError>,
}

/// Handles the reply of the store, and fails look-ups that are overdue.
pub(super) fn take_records(
    players: Res<ClusterPlayers>,
    mut lookups: ResMut<PlayerLookups>,
    mut results: MessageWriter<PlayerLookedUp>,
) {
    let Some(driver) = &players.driver else {
        return;
    };
    let (read, now_ms) = driver.with_record_reads(|reads, now_ms| (reads.take(), now_ms));
    let lookups = &mut *lookups;
    lookups.now_ms = now_ms;
    let mut emit = |number, player, result| {
        results.write(PlayerLookedUp {
            player,
            number,
            result,
        });
    };
    if let Some((asked, found)) = read {
        let found = match found {
            Some(entries) => Ok(results_of(&asked, entries)),
            None => Err(StoreError {
                store: "cluster rows".to_owned(),
                kind: StoreErrorKind::Unreachable,
                cause: "the players were not read".to_owned(),
            }),
        };
        lookups.cache.receive(&asked, found, now_ms, &mut emit);
    }
    lookups.cache.expire_lookups(now_ms, emit);
}

/// Requests the players that are not cached.
pub(super) fn request_records(players: Res<ClusterPlayers>, mut lookups: ResMut<PlayerLookups>) {
    let Some(driver) = &players.driver else {
        return;
    };
    if lookups.cache.pending_lookups() == 0 || lookups.cache.is_request_pending() {
        return;
    }
    driver.with_record_reads(|reads, now_ms| {
        let asked = lookups.cache.next_request(now_ms, |_| true, &[]);
        reads.request(asked);
    });
}

/// One result per requested player, in the order of the request.
fn results_of(asked: &[PlayerId], entries: Vec<PlayerEntry>) -> Vec<LookupResult> {
    let found = entries.into_iter().map(|entry| {
        let mut record = PlayerRecord::new(entry.player);
        if let Some(stored) = entry.record {
            record.revision = stored.revision;
            record.values.insert(STATE, stored.bytes);
        }
        (entry.player, record)
    });
    let mut found: BTreeMap<PlayerId, PlayerRecord> = found.collect();
    let results = asked.iter().map(|player| {
        found
            .remove(player)
            .map_or(LookupResult::Missing, LookupResult::Found)
    });
    results.collect()
}
