//! Shutdown: saves all players and releases all leases.

use std::time::Duration;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use tracing::error;

use super::events::{with_player_store, write_events};
use super::player_store::PlayerStore;
use super::saves::{apply_transfers, submit_saves};
use crate::sim::clock::Stopwatch;
use crate::sync::save_all;

/// Saves all unsaved changes, releases all leases and ends the store thread; waits for the store at most `within`. Returns
/// whether everything is on disk. For the end of an app, between ticks; no player is saved afterwards.
pub fn close_player_store(world: &mut World, within: Duration) -> bool {
    if !world.contains_resource::<PlayerStore>() {
        return true;
    }
    with_player_store(world, apply_transfers);
    save_all(world);
    let clock = Stopwatch::start();
    let mut directory = world.resource_mut::<PlayerStore>();
    if let Some(open) = &mut directory.open {
        open.ledger.release_all();
    }
    // With the requests of the last tick in flight it may take two transactions.
    submit_saves(world);
    loop {
        let now = world.resource::<Time<Fixed>>().elapsed();
        let mut directory = world.resource_mut::<PlayerStore>();
        let Some(open) = &mut directory.open else {
            return true;
        };
        let now_ms = open.now_ms(now);
        let is_saved = open.ledger.is_idle();
        let left = within.saturating_sub(clock.elapsed());
        if (is_saved && open.is_published()) || left.is_zero() {
            let unsaved = open.ledger.unsaved();
            directory.close();
            if !is_saved {
                error!(
                    unsaved,
                    "store shutdown timed out: unsaved players are lost"
                );
            }
            return is_saved;
        }
        let mut events = Vec::new();
        open.receive_within(left.min(Duration::from_millis(50)), now_ms, &mut events);
        open.request_save(now_ms, &mut events);
        open.request_lookups(now_ms);
        write_events(world, events);
    }
}
