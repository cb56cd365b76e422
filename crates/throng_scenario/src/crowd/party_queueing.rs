//! Players of crowds who queue with their parties, for battles to which they really go.
//!
//! ```text
//! at home, rested ──▶ [queue_up] ──▶ QueueRequest ──▶ match ──▶ moved to the battle ──▶ moved home ─┐
//!        ▲                                 └── a member logs out: the ticket is void                │
//!        └──────────────────────────────── rest_s ◀─────────────────────────────────────────────────┘
//! ```
//! A party is the one of [`Parties`]; a player in none gets one of its own, since the ids of tickets are those of
//! parties. It queues whole: when each of its members has an object in its crowd's own scene and waits nowhere.
//! Moving them is for whoever opens the battles' scenes; where nobody does, they fight at home, for as long.
//!
//! Invariants: a party's strength and wishes depend on the seed and its leader alone, so that it is the same party
//! each time; parties queue in the order of their leaders.
//!
//! Cost: each party is looked at once in [`PERCEPTION_INTERVAL_TICKS`] ticks.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

use super::arrivals::{PartyArrivals, to_ticks};
use super::clients::SyntheticClients;
use super::crowds::{CrowdId, CrowdMember, Crowds, PERCEPTION_INTERVAL_TICKS, individual_random};
use super::tickets::draw_ticket;
use crate::scenario::ScenarioMatchMode;
use throng::matchmaking::{Matchmaker, QueueRequest, Ticket, tick_rate_millihertz};
use throng::sim::{RandomStreams, SimTick};
use throng::world::{Object, Parties, PartyId, PlayerId, Players, join_party};

/// Players of the same crowd, from the leader on, whom a party may wish to avoid.
const AVOID_CANDIDATES: u64 = 20;

/// Parties of crowds that are at home and rested queue.
pub(super) fn queue_crowd_parties(world: &mut World) {
    let flows = &world.resource::<PartyArrivals>().flows;
    let specs: Vec<ScenarioMatchMode> = flows
        .iter()
        .filter(|flow| flow.spec.crowd.is_some())
        .map(|flow| flow.spec.clone())
        .collect();
    for spec in specs {
        let tag = spec.crowd.as_deref().unwrap_or_default();
        let crowds: Vec<CrowdId> = world.resource::<Crowds>().with_tag(tag).collect();
        for crowd in crowds {
            queue_crowd(world, &spec, crowd);
        }
    }
}

fn queue_crowd(world: &mut World, spec: &ScenarioMatchMode, crowd: CrowdId) {
    let tick = world.resource::<SimTick>().0;
    let players = world.resource::<SyntheticClients>().players_of(crowd);
    // Each has a tick of its own, so that not all are looked at in the same.
    let first = players.start + (tick.wrapping_sub(players.start)) % PERCEPTION_INTERVAL_TICKS;
    for leader in (first..players.end).step_by(PERCEPTION_INTERVAL_TICKS as usize) {
        let Some(party) = party_led_by(world, PlayerId(leader)) else {
            continue;
        };
        let Some(ticket) = ticket_of(world, spec, party, &players) else {
            continue;
        };
        // Should the ticket be refused or given up, the party tries again after a rest.
        let rest = to_ticks(
            spec.rest_s,
            tick_rate_millihertz(world.resource::<Time<Fixed>>()),
        );
        let rested = tick + rest.max(1);
        let mut arrivals = world.resource_mut::<PartyArrivals>();
        arrivals.rest_until_tick.insert(party, rested);
        world.write_message(QueueRequest { ticket });
    }
}

/// The party that a player leads; a player in none gets one.
fn party_led_by(world: &mut World, player: PlayerId) -> Option<PartyId> {
    if let Some(party) = world.resource::<Parties>().party_of(player) {
        let members = world.resource::<Parties>().members(party);
        return (members.first() == Some(&player)).then_some(party);
    }
    world.resource::<Players>().entity(player)?;
    let party = world.resource_mut::<Parties>().create().ok()?;
    join_party(world, party, player).ok()?;
    Some(party)
}

/// The ticket of a party that may queue now.
fn ticket_of(
    world: &World,
    spec: &ScenarioMatchMode,
    party: PartyId,
    players: &std::ops::Range<u64>,
) -> Option<Ticket> {
    let tick = world.resource::<SimTick>().0;
    let rested = world
        .resource::<PartyArrivals>()
        .rest_until_tick
        .get(&party);
    if rested.is_some_and(|&rested| rested > tick) {
        return None;
    }
    let matchmaker = world.resource::<Matchmaker>();
    let mode = matchmaker.mode_by_name(&spec.mode)?;
    let members = world.resource::<Parties>().members(party);
    let may_queue =
        |&player: &PlayerId| is_home(world, player) && matchmaker.party_of(player).is_none();
    if !members.iter().all(may_queue) {
        return None;
    }
    let leader = members.first()?.0;
    let seed = world.resource::<RandomStreams>().seed();
    let mut random = individual_random(seed, 5 << 32, leader, 0);
    let size = members.len() as u8;
    let others = leader + u64::from(size);
    let others = others.min(players.end)..(others + AVOID_CANDIDATES).min(players.end);
    let mut ticket = draw_ticket(&mut random, spec, mode, party.into(), size, others);
    ticket.since_tick = tick;
    ticket.members = members.iter().map(|&player| player.into()).collect();
    Some(ticket)
}

/// Whether a player's object is in the scene of its crowd.
fn is_home(world: &World, player: PlayerId) -> bool {
    let entity = world.resource::<Players>().entity(player);
    let home = entity.and_then(|entity| {
        let member = world.get::<CrowdMember>(entity)?;
        let spec = world.resource::<Crowds>().spec(member.0)?;
        Some(world.get::<Object>(entity)?.scene_entity() == spec.scene)
    });
    home == Some(true)
}
