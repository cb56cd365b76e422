//! Lookups: players on this server from their components, others from the cache and the store.

use std::sync::Arc;

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use throng_store::{CachedPlayer, Peers, PlayerRecord, PlayerStoreError};

use super::messages::{PlayerLookup, PlayerLookupResult};
use super::player_store::OpenPlayerStore;
use crate::sync::full_save_request;
use crate::world::{PlayerId, Players};

/// Takes messages of other servers, replies to lookups where possible, and sends messages to other servers. The remaining
/// lookups go to the store at the end of the tick.
pub(super) fn run_lookups(
    world: &mut World,
    open: Option<&mut OpenPlayerStore>,
    mut peers: Option<&mut dyn Peers>,
    cursor: &mut MessageCursor<PlayerLookup>,
    now_ms: u64,
) {
    let requests = cursor.read(world.resource::<Messages<PlayerLookup>>());
    let requests: Vec<PlayerLookup> = requests.copied().collect();
    let Some(open) = open else {
        let unanswered = requests.into_iter().map(|request| PlayerLookupResult {
            player: request.player,
            request_id: request.request_id,
            result: Err(PlayerStoreError::NotOpen),
        });
        world.write_message_batch(unanswered.collect::<Vec<_>>());
        return;
    };
    if let Some(peers) = &mut peers {
        open.remote.receive(*peers, now_ms, &open.ledger);
    }
    for PlayerLookup {
        player,
        request_id: number,
    } in requests
    {
        let is_here = open.ledger.is_live(player);
        match is_here
            .then(|| record_from_components(world, player))
            .flatten()
        {
            Some(known) => open.remote.results.push(PlayerLookupResult {
                player,
                request_id: number,
                result: Ok(known),
            }),
            None => open.remote.lookup(player, number, now_ms, &open.ledger),
        }
    }
    open.remote.expire(now_ms);
    world.write_message_batch(std::mem::take(&mut open.remote.results));
    if let Some(peers) = &mut peers {
        open.remote.send(*peers);
    }
}

/// The current persistent state of a player on this server; `None` while it has no object.
fn record_from_components(world: &World, player: PlayerId) -> Option<CachedPlayer> {
    let entity = world.resource::<Players>().entity(player)?;
    let request = full_save_request(world, entity)?;
    let record = PlayerRecord {
        tick: request.tick,
        values: request.values.into_iter().collect(),
        ..PlayerRecord::new(player)
    };
    Some(CachedPlayer {
        record: Some(Arc::new(record)),
        age_ms: 0,
    })
}
