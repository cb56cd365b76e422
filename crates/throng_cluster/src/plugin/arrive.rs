//! Spawns and despawns players.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use throng_core::ids::PlayerId;

use super::cluster_players::{ClusterPlayer, ClusterPlayers, PresentPlayer, set_frozen};
use super::collect::PlayerLoginRefused;
use super::hooks::{LeaveReason, SharedHooks};
use crate::ids::ClusterRecord;

/// A player that the node holds.
struct HeldNow {
    arrival: (u64, u64),
    is_frozen: bool,
    /// The record of a player without an entity.
    record: Option<ClusterRecord>,
}

/// Despawns players that have left the node, and spawns those that have arrived.
pub(super) fn arrive_players(world: &mut World) {
    let hooks = world.resource::<SharedHooks>().hooks.clone();
    let mut players = world.resource_mut::<ClusterPlayers>();
    players.ticks += 1;
    let held = held_now(&players);
    let refused = refused_logins(&players);
    let mut leaving = Vec::new();
    let mut moved = Vec::new();
    players.present.retain(|player, present| {
        let stays = held
            .get(player)
            .is_some_and(|held| held.arrival == present.arrival);
        if !stays {
            leaving.push(*present);
            moved.extend(present.moves_to.map(|run| (*player, run)));
        }
        stays
    });
    players.changes += leaving.len() as u64;
    if let Some(driver) = players.driver.as_ref().filter(|_| !moved.is_empty()) {
        driver.with_messages(|messenger, _, _| {
            for (player, run) in moved {
                messenger.note_departure(player, run);
            }
        });
    }
    world.write_message_batch(refused);
    for PresentPlayer { entity, leaves, .. } in leaving {
        if world.get_entity(entity).is_ok() {
            hooks.on_leave(world, entity, leaves.unwrap_or(LeaveReason::Lost));
        }
        if let Ok(entity) = world.get_entity_mut(entity) {
            entity.despawn();
        }
    }
    for (player, held) in held {
        if let Some(record) = held.record {
            let entity = hooks.on_receive(world, player, &record);
            world.entity_mut(entity).insert(ClusterPlayer(player));
            let present = PresentPlayer {
                entity,
                arrival: held.arrival,
                is_frozen: false,
                leaves: None,
                moves_to: None,
            };
            let mut players = world.resource_mut::<ClusterPlayers>();
            players.present.insert(player, present);
            players.changes += 1;
            hooks.on_arrive(world, entity);
        }
        set_frozen(world, player, held.is_frozen);
    }
}

fn refused_logins(players: &ClusterPlayers) -> Vec<PlayerLoginRefused> {
    let Some(driver) = &players.driver else {
        return Vec::new();
    };
    let refused = driver.with_node(|node, _| node.take_refused_logins());
    let refused = refused.into_iter();
    refused
        .map(|(player, reason)| PlayerLoginRefused { player, reason })
        .collect()
}

/// The players that the node holds now, with the records of those without an entity.
fn held_now(players: &ClusterPlayers) -> BTreeMap<PlayerId, HeldNow> {
    let Some(driver) = &players.driver else {
        return BTreeMap::new();
    };
    driver.with_node(|node, now_ms| {
        let run = node.run().run;
        let stays = node.stays(now_ms).map(|stay| {
            let arrival = (run, stay.arrival);
            let known = players.present.get(&stay.player);
            let is_here = known.is_some_and(|present| present.arrival == arrival);
            let record = (!is_here).then(|| node.record(stay.player).cloned());
            let held = HeldNow {
                arrival,
                is_frozen: stay.is_frozen,
                record: record.flatten(),
            };
            (stay.player, held)
        });
        stays.collect()
    })
}
