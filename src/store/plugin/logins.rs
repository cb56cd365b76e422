//! Handles replies of the store, logins and logouts.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use throng_store::{LeaseEvent, Peers, StoredAttribute};

use super::events::{with_player_store, write_events};
use super::lookups::run_lookups;
use super::player_store::PlayerStore;
use super::saves::apply_transfers;
use super::settings::PlayerStoreSettings;
use crate::session::{LoggedIn, LoggedOut, Sessions};
use crate::sync::Attributes;

/// Takes replies, handles logins and logouts, and sends the next requests.
///
/// The player store is taken out of the world only while events are collected. Messages, logouts, and the hooks and observers
/// that they run come after it is back.
pub(super) fn process_logins(world: &mut World) {
    let happened = with_player_store(world, |world, directory| {
        let settings = world.resource::<PlayerStoreSettings>();
        directory.start(settings, || {
            persistent_attributes(world.resource::<Attributes>())
        });
        if directory.open.is_some() {
            // Transfers since the last tick connect their players before any of them is lost.
            apply_transfers(world, directory);
        }
        collect_events(world, directory)
    });
    write_events(world, happened);
    with_player_store(world, process_lookups);
}

/// The description of the persistent attributes for the store.
fn persistent_attributes(attributes: &Attributes) -> Vec<StoredAttribute> {
    let kept = attributes.specs().filter(|spec| spec.persist);
    let kept = kept.map(|spec| StoredAttribute {
        id: spec.id,
        name: spec.name.to_owned(),
        encoding: spec.encoding,
    });
    kept.collect()
}

fn collect_events(world: &World, directory: &mut PlayerStore) -> Vec<LeaseEvent> {
    let PlayerStore {
        open,
        logins,
        logouts,
        ..
    } = directory;
    let mut events = Vec::new();
    let Some(open) = open else {
        return events;
    };
    events.append(&mut open.refused_transfers);
    let now_ms = open.now_ms(world.resource::<Time<Fixed>>().elapsed());
    // All logouts first: a player that logs in again logs out before.
    for gone in logouts.read(world.resource::<Messages<LoggedOut>>()) {
        open.ledger.release(gone.player);
    }
    let sessions = world.resource::<Sessions>();
    for &LoggedIn { client, player, .. } in logins.read(world.resource::<Messages<LoggedIn>>()) {
        // Its session may have ended in the same tick.
        if sessions.client_of(player) == Some(client)
            && let Err(error) = open.ledger.claim(player, now_ms)
        {
            events.push(LeaseEvent::LoadFailed(player, error));
        }
    }
    // After the logins: a reply for a session that was replaced in this tick is not for the new one.
    open.receive_replies(now_ms, &mut events);
    open.ledger.expire(now_ms, |event| events.push(event));
    open.request_leases(now_ms, &mut events);
    events
}

fn process_lookups(world: &mut World, directory: &mut PlayerStore) {
    let PlayerStore {
        open,
        lookups: look_ups,
        peers,
        ..
    } = directory;
    let now = world.resource::<Time<Fixed>>().elapsed();
    let now_ms = open.as_ref().map_or(0, |open| open.now_ms(now));
    let peers = peers.as_mut().map(|peers| &mut **peers as &mut dyn Peers);
    run_lookups(world, open.as_mut(), peers, look_ups, now_ms);
}
