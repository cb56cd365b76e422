//! Players of crowds that queue with their parties and are moved to the matches.
//!
//! ```text
//! at home, rested ──▶ [queue_up] ──▶ QueueRequest ──▶ match ──▶ moved to the match ───▶ moved home ─┐
//! ▲                                 └── a member logs out: ticket cancelled │ └──────────────────────────────── requeue_delay_s
//! ◀─────────────────────────────────────────────────┘
//! ```
//! A party is a [`Parties`] entry; a player without one gets its own, because ticket ids are party ids. A party queues as a
//! whole: when each of its members has an object in its crowd's home scene and waits in no queue. Code that opens match scenes
//! moves the players; without such code they stay at home for the duration of the match.
//!
//! Invariants: a party's strength and preferences depend on the seed and its leader only, so they are the same each time; parties
//! queue in the order of their leaders.
//!
//! Cost: each party is checked once per [`PERCEPTION_INTERVAL_TICKS`] ticks.

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

/// Number of players of the same crowd, after the party's own, from which a party draws the players that it avoids.
const AVOID_CANDIDATES: u64 = 20;

/// Queues parties of crowds that are at home and rested.
pub(super) fn queue_crowd_parties(world: &mut World) {
    let flows = &world.resource::<PartyArrivals>().flows;
    let specs: Vec<ScenarioMatchMode> = flows
        .iter()
        .filter(|flow| flow.spec.crowd_tag.is_some())
        .map(|flow| flow.spec.clone())
        .collect();
    for spec in specs {
        let tag = spec.crowd_tag.as_deref().unwrap_or_default();
        let crowds: Vec<CrowdId> = world.resource::<Crowds>().with_tag(tag).collect();
        for crowd in crowds {
            queue_crowd(world, &spec, crowd);
        }
    }
}

fn queue_crowd(world: &mut World, spec: &ScenarioMatchMode, crowd: CrowdId) {
    let tick = world.resource::<SimTick>().0;
    let players = world.resource::<SyntheticClients>().players_of(crowd);
    // Each party has its own tick, so that not all are checked in the same one.
    let first = players.start + (tick.wrapping_sub(players.start)) % PERCEPTION_INTERVAL_TICKS;
    for leader in (first..players.end).step_by(PERCEPTION_INTERVAL_TICKS as usize) {
        let Some(party) = party_led_by(world, PlayerId(leader)) else {
            continue;
        };
        let Some(ticket) = ticket_of(world, spec, party, &players) else {
            continue;
        };
        // If the ticket is refused or cancelled, the party retries after a rest.
        let rest = to_ticks(
            spec.requeue_delay_s,
            tick_rate_millihertz(world.resource::<Time<Fixed>>()),
        );
        let rested = tick + rest.max(1);
        let mut arrivals = world.resource_mut::<PartyArrivals>();
        arrivals.rest_until_tick.insert(party, rested);
        world.write_message(QueueRequest { ticket });
    }
}

/// The party that a player leads; a player without a party gets one.
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
