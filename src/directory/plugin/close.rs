//! Shutdown: saves all players and releases all leases.

use std::time::Duration;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use tracing::error;

use super::directory::PlayerStore;
use super::events::{emit, with_directory};
use super::hand_over::{hand_over, tie};
use crate::sim::clock::Stopwatch;
use crate::sync::save_all;

/// Saves all that is not saved yet, gives all leases back and ends the store's thread; waits for the store so long at most.
/// Whether all is on disk. For the end of an app, between ticks; nobody is kept from then on.
pub fn close_directory(world: &mut World, within: Duration) -> bool {
    if !world.contains_resource::<PlayerStore>() {
        return true;
    }
    with_directory(world, tie);
    save_all(world);
    let clock = Stopwatch::start();
    let mut directory = world.resource_mut::<PlayerStore>();
    if let Some(open) = &mut directory.open {
        open.ledger.release_all();
    }
    // With what is under way from the last tick it may take two transactions.
    hand_over(world);
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
            directory.part();
            if !is_saved {
                error!(
                    unsaved,
                    "store shutdown timed out: unsaved players are lost"
                );
            }
            return is_saved;
        }
        let mut events = Vec::new();
        open.take_within(left.min(Duration::from_millis(50)), now_ms, &mut events);
        open.order_save(now_ms, &mut events);
        open.order_look_up(now_ms);
        emit(world, events);
    }
}
