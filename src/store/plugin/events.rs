//! Writes lease events as messages for the game.

use bevy_ecs::prelude::*;
use throng_store::{LeaseEvent, PlayerRecord, PlayerStoreError};
use tracing::{error, warn};

use super::messages::{LeaseLost, PlayerLoadFailed, PlayerLoaded, PlayersSaved};
use super::player_store::PlayerStore;
use super::stats::PlayerStoreStats;
use crate::session::{LogoutReason, Sessions, disconnect};
use crate::world::PlayerId;

/// Runs a function with the player store taken out of the world. The function may read the world and write resources and
/// messages, but must not run a command, hook or observer: those may need the player store.
pub(super) fn with_player_store<R>(
    world: &mut World,
    work: impl FnOnce(&mut World, &mut PlayerStore) -> R,
) -> R {
    #[expect(
        clippy::disallowed_methods,
        reason = "the few callers, all in this folder, run no hooks"
    )]
    world.resource_scope(|world, mut directory: Mut<PlayerStore>| work(world, &mut directory))
}

/// Writes events as messages, and releases leases that no session needs any more. May log players out, so the player store must
/// be in the world.
pub(super) fn write_events(world: &mut World, events: Vec<LeaseEvent>) {
    if events.is_empty() {
        return;
    }
    let open = world.resource::<PlayerStore>().open.as_ref();
    let store = open.map_or_else(String::new, |open| open.store.clone());
    for event in events {
        let Some(unneeded) = write_event(world, &store, event) else {
            continue;
        };
        if let Some(open) = &mut world.resource_mut::<PlayerStore>().open {
            open.ledger.release(unneeded);
        }
    }
}

/// Writes one event; returns the player if no session needs its lease any more.
fn write_event(world: &mut World, store: &str, event: LeaseEvent) -> Option<PlayerId> {
    let mut stats = world.resource_mut::<PlayerStoreStats>();
    match event {
        LeaseEvent::Loaded(record) => {
            stats.loaded += 1;
            return write_loaded(world, record);
        }
        LeaseEvent::LoadFailed(player, error) => {
            stats.refused += 1;
            match &error {
                // Logged by the code that keeps the store open.
                PlayerStoreError::Store(_) => {}
                PlayerStoreError::Leased { .. } | PlayerStoreError::TimedOut { .. } => {
                    error!(store, player = player.0, %error, "player not loaded");
                }
                _ => warn!(player = player.0, %error, "player not loaded"),
            }
            if let Some(client) = world.resource::<Sessions>().client_of(player) {
                world.write_message(PlayerLoadFailed {
                    client,
                    player,
                    error,
                });
                disconnect(world, client, LogoutReason::PlayerUnavailable);
            }
        }
        LeaseEvent::Lost {
            player,
            is_here,
            is_taken,
        } => {
            stats.lost += 1;
            world.write_message(LeaseLost {
                player,
                is_save_pending: false,
                is_taken,
            });
            // A player that is not here may be logging in again.
            if is_here && is_taken {
                disconnect_player(world, player, LogoutReason::PlayerTaken);
            } else if is_here {
                disconnect_player(world, player, LogoutReason::PlayerUnavailable);
            }
        }
        LeaseEvent::Expired(player) => {
            stats.expired += 1;
            error!(
                player = player.0,
                "player disconnected: lease expired before the store renewed it"
            );
            world.write_message(LeaseLost {
                player,
                is_save_pending: true,
                is_taken: false,
            });
            disconnect_player(world, player, LogoutReason::PlayerUnavailable);
        }
        LeaseEvent::Saved {
            tick, revisions, ..
        } => {
            stats.transactions += 1;
            stats.players_saved += revisions.len() as u64;
            world.write_message(PlayersSaved { tick, revisions });
        }
        LeaseEvent::SaveRejected(_) | LeaseEvent::StoreFailed(_) => stats.failures += 1,
    }
    None
}

/// Notifies the session of a player; returns the player if there is none any more.
fn write_loaded(world: &mut World, record: PlayerRecord) -> Option<PlayerId> {
    let sessions = world.resource::<Sessions>();
    let client = sessions.client_of(record.player);
    let found = client.and_then(|client| Some((client, sessions.client_entity(client)?)));
    let Some((client, client_entity)) = found else {
        return Some(record.player);
    };
    world.write_message(PlayerLoaded {
        client,
        client_entity,
        record,
    });
    None
}

fn disconnect_player(world: &mut World, player: PlayerId, reason: LogoutReason) {
    if let Some(client) = world.resource::<Sessions>().client_of(player) {
        disconnect(world, client, reason);
    }
}
