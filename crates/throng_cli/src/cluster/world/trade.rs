//! Players exchange gold.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_cluster::{ClusterPlayer, FrozenPlayer, PlayerExchange};

use super::ClusterWorld;
use super::players::Coins;

/// Between two exchanges of the players of a scene, in seconds.
const INTERVAL_S: f64 = 1.0;

/// Once a second, the players of a scene make pairs, in the order of their ids, and one of each pair gives the other a coin.
pub(super) fn trade(
    world: Res<ClusterWorld>,
    tick: Res<SimTick>,
    mut players: Query<(Entity, &ClusterPlayer, &InScene, &mut Coins), Without<FrozenPlayer>>,
    mut exchanges: MessageWriter<PlayerExchange>,
) {
    let interval = ((world.0.tick_hz * INTERVAL_S) as u64).max(1);
    if !tick.0.is_multiple_of(interval) {
        return;
    }
    let mut scenes: BTreeMap<Entity, Vec<(PlayerId, Entity)>> = BTreeMap::new();
    for (entity, player, scene, _) in &players {
        scenes.entry(scene.0).or_default().push((player.0, entity));
    }
    for present in scenes.values_mut() {
        present.sort_unstable();
        for pair in present.chunks_exact(2) {
            let [(one, giver), (other, receiver)] = [pair[0], pair[1]];
            // Of two players in turn.
            let is_even = (tick.0 / interval).is_multiple_of(2);
            let (giver, receiver) = if is_even {
                (giver, receiver)
            } else {
                (receiver, giver)
            };
            if let Ok([mut from, mut to]) = players.get_many_mut([giver, receiver])
                && from.3.0 > 0
            {
                from.3.0 -= 1;
                to.3.0 += 1;
                exchanges.write(PlayerExchange([one, other]));
            }
        }
    }
}
