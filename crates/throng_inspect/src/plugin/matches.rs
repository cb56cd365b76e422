//! Matches, queues and parties, for pages.

use bevy_ecs::prelude::*;
use serde_json::{Value, json};

use throng::instance::Instances;
use throng::matchmaking::Matchmaker;
use throng::sim::SimTick;
use throng::world::{Object, ObjectId, Parties, PlayerId, Players, SceneId, SimScene};

/// Maximum number of listed modes, running matches and parties.
const LISTED_MAX: usize = 20;

/// Maximum number of parties in a queue whose players are counted.
const QUEUE_SUMMED_MAX: usize = 20_000;

/// Modes with their queues, running matches and parties as JSON; each list with the number of all. O(parties in the queues and in
/// matches).
pub(super) fn matches_json(world: &World) -> String {
    let (modes, mode_count) = modes_json(world);
    let (running, running_count) = running_json(world);
    let (parties, party_count) = parties_json(world);
    json!({
        "type": "matches",
        "modes": modes, "mode_count": mode_count,
        "running": running, "running_count": running_count,
        "parties": parties, "party_count": party_count,
    })
    .to_string()
}

fn modes_json(world: &World) -> (Vec<Value>, usize) {
    let Some(matchmaker) = world.get_resource::<Matchmaker>() else {
        return (Vec::new(), 0);
    };
    let tick = world.resource::<SimTick>().0;
    let tick_s = super::tick_s(world);
    let modes = matchmaker.names().iter().zip(matchmaker.modes());
    let modes = modes.take(LISTED_MAX).map(|(name, mode)| {
        let queue = mode.queue();
        let players = (queue.len() <= QUEUE_SUMMED_MAX).then(|| {
            let sizes = queue.iter().map(|(_, ticket)| u64::from(ticket.size));
            sizes.sum::<u64>()
        });
        let longest = queue.iter().next().map(|(_, ticket)| ticket.since_tick);
        let longest_s = longest.map(|since| tick.saturating_sub(since) as f64 * tick_s);
        let stats = mode.stats();
        let mean_s =
            stats.wait_ticks.sum() as f64 * tick_s / (stats.wait_ticks.count().max(1)) as f64;
        json!({
            "name": name,
            "parties": mode.waiting_parties(),
            "players": players,
            "longest_wait_s": longest_s,
            "mean_wait_s": mean_s,
            "matches": stats.matches,
        })
    });
    (modes.collect(), matchmaker.modes().len())
}

/// Running matches, the newest first.
fn running_json(world: &World) -> (Vec<Value>, usize) {
    let Some(instances) = world.get_resource::<Instances>() else {
        return (Vec::new(), 0);
    };
    let names = world.get_resource::<Matchmaker>();
    let tick = world.resource::<SimTick>().0;
    let all: Vec<_> = instances.iter().collect();
    let newest = all.iter().rev().take(LISTED_MAX).map(|(_, instance)| {
        let lineup = instance.lineup();
        let mode = names.and_then(|names| names.names().get(usize::from(lineup.mode().0)));
        let sides = lineup.sides().each_ref().map(|side| {
            let sizes = side.iter().map(|ticket| u32::from(ticket.size));
            sizes.sum::<u32>()
        });
        let scene = world.get::<SimScene>(instance.scene());
        json!({
            "match": instance.match_id().to_string(),
            "mode": mode,
            "sides": sides,
            "inside": instance.players_inside().count(),
            "scene": scene.map(SimScene::name),
            "scene_id": scene_id(world, instance.scene()).map(|id| id.0),
            "left_s": instance.ends_tick().saturating_sub(tick) as f64 * super::tick_s(world),
        })
    });
    (newest.collect(), all.len())
}

fn scene_id(world: &World, scene: Entity) -> Option<SceneId> {
    let scenes = world.get_resource::<throng::world::Scenes>()?;
    let mut scenes = scenes.iter();
    scenes
        .find(|(_, entity)| *entity == scene)
        .map(|(id, _)| id)
}

/// Parties with members, the first ones, each member with its object if it has one.
fn parties_json(world: &World) -> (Vec<Value>, usize) {
    let Some(parties) = world.get_resource::<Parties>() else {
        return (Vec::new(), 0);
    };
    let matchmaker = world.get_resource::<Matchmaker>();
    let listed = parties.iter().take(LISTED_MAX).map(|(party, members)| {
        let ticket = matchmaker.and_then(|matchmaker| matchmaker.ticket(party));
        let mode = ticket.and_then(|ticket| matchmaker?.names().get(usize::from(ticket.mode.0)));
        let members = members.iter().map(|&player| {
            let place = object_of(world, player);
            json!({
                "player": player.0.to_string(),
                "scene": place.map(|(scene, _)| scene.0),
                "object": place.map(|(_, object)| object.0),
            })
        });
        json!({
            "party": party.0,
            "members": members.collect::<Vec<_>>(),
            "waits_for": mode,
        })
    });
    (listed.collect(), parties.iter().count())
}

fn object_of(world: &World, player: PlayerId) -> Option<(SceneId, ObjectId)> {
    let entity = world.get_resource::<Players>()?.entity(player)?;
    let object = world.get::<Object>(entity)?;
    Some((object.scene(), object.id()))
}
