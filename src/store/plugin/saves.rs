//! Submits the saves of a tick to the store thread.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use throng_store::LeaseEvent;
use tracing::error;

use super::events::{with_player_store, write_events};
use super::messages::AtomicSaveRequest;
use super::player_store::{OpenPlayerStore, PlayerStore};
use super::stats::PlayerStoreStats;
use crate::sim::SimTick;
use crate::sync::{DirtyMasks, MaskSlot, SaveRequest};
use crate::world::Players;

/// Marks the players of transfers to be saved in this tick, in one transaction.
pub(super) fn mark_transfers(world: &mut World) {
    with_player_store(world, apply_transfers);
}

/// Connects the players of all transfers since the last call.
pub(super) fn apply_transfers(world: &mut World, directory: &mut PlayerStore) {
    let PlayerStore {
        open, transfers, ..
    } = directory;
    let deals = transfers.read(world.resource::<Messages<AtomicSaveRequest>>());
    let deals: Vec<AtomicSaveRequest> = deals.copied().collect();
    let Some(open) = open else {
        return;
    };
    let tick = world.resource::<SimTick>().0;
    for AtomicSaveRequest { players } in deals {
        let [one, other] = players;
        if !open.ledger.join_saves(one, other, tick) {
            error!(
                player = one.0,
                other = other.0,
                "transfer refused: this server does not hold the lease of both players; neither is saved"
            );
            world.resource_mut::<PlayerStoreStats>().transfers_refused += 1;
            let OpenPlayerStore {
                ledger,
                refused_transfers: refused,
                ..
            } = open;
            ledger.void_joined_saves(players, |event| refused.push(event));
            continue;
        }
        for player in players {
            let entity = world.resource::<Players>().entity(player);
            let slot = entity.and_then(|entity| world.get::<MaskSlot>(entity).copied());
            if let Some(slot) = slot {
                world.resource_mut::<DirtyMasks>().save_now(slot);
            }
        }
    }
}

/// Submits all saves of the tick as one transaction.
pub(super) fn submit_saves(world: &mut World) {
    let happened = with_player_store(world, request_saves);
    write_events(world, happened);
}

fn request_saves(world: &mut World, directory: &mut PlayerStore) -> Vec<LeaseEvent> {
    let PlayerStore { open, saves, .. } = directory;
    let requests = saves.read(world.resource::<Messages<SaveRequest>>());
    let mut events = Vec::new();
    let Some(open) = open else {
        // Read, so that requests from before the store was opened are not saved later.
        requests.for_each(drop);
        return events;
    };
    events.append(&mut open.refused_transfers);
    let mut not_ours = 0;
    let mut changes = Vec::new();
    for request in requests {
        // Objects without a player are not saved.
        let Some(player) = request.player else {
            continue;
        };
        let values = request.values.iter();
        let values = values.map(|(id, value)| (*id, Some(value.as_slice())));
        let removed = request.removed.iter().map(|&id| (id, None));
        changes.clear();
        changes.extend(
            values
                .chain(removed)
                .filter(|(id, _)| open.has_attribute(*id)),
        );
        let is_ours = open
            .ledger
            .save(player, request.tick, changes.iter().copied());
        not_ours += u64::from(!is_ours);
    }
    let now_ms = open.now_ms(world.resource::<Time<Fixed>>().elapsed());
    open.request_save(now_ms, &mut events);
    open.request_lookups(now_ms);
    let unsaved = open.ledger.unsaved();
    let mut stats = world.resource_mut::<PlayerStoreStats>();
    stats.unleased_saves += not_ours;
    stats.unsaved_peak = stats.unsaved_peak.max(unsaved);
    events
}
