//! The parties that wait longest for a match, and why: one party at a time, since an answer takes a search.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde_json::{Value, json};

use crate::wait_reason::describe_wait;
use throng::matchmaking::{Matchmaker, Ticket, TicketParty};
use throng::world::{PartyId, PlayerId};

/// Maximum number of listed parties.
const LISTED_MAX: usize = 20;

/// Maximum number of waiting parties in a mode for which wait reasons are computed: an answer scans all of them.
const MODE_PARTIES_MAX: usize = 20_000;

/// Known wait reasons of parties.
#[derive(Default)]
pub(super) struct WaitReasons {
    answers: BTreeMap<TicketParty, WaitAnswer>,
}

/// Why a party waits.
struct WaitAnswer {
    tick: u64,
    sentence: String,
}

impl WaitReasons {
    /// Computes the wait reason of one party: one without a reason, or the one with the oldest. Parties that are `selected` come
    /// first; then the longest-waiting ones if the list is shown. O(parties in its mode), and a bounded search.
    pub fn update(
        &mut self,
        world: &World,
        tick: u64,
        selected: Vec<TicketParty>,
        is_listed: bool,
    ) {
        let Some(matchmaker) = world.get_resource::<Matchmaker>() else {
            return;
        };
        let mut watched = selected;
        watched.retain(|party| matchmaker.ticket(*party).is_some());
        if is_listed {
            watched.extend(
                longest_waiting(matchmaker)
                    .iter()
                    .map(|ticket| ticket.party),
            );
        }
        self.answers.retain(|party, _| watched.contains(party));
        let oldest = |party: &TicketParty| self.answers.get(party).map(|answer| answer.tick);
        let Some(party) = watched.into_iter().min_by_key(oldest) else {
            return;
        };
        let mode = matchmaker.ticket(party).map(|ticket| ticket.mode);
        let mode = mode.and_then(|mode| matchmaker.modes().get(usize::from(mode.0)));
        let among = mode.map_or(0, |mode| mode.queue().len());
        let sentence = if among > MODE_PARTIES_MAX {
            format!("{among} parties wait, too many to look for a reason while the server runs")
        } else {
            let reason = matchmaker.wait_reason(party);
            reason.map_or_else(String::new, |reason| {
                describe_wait(reason, super::tick_s(world))
            })
        };
        self.answers.insert(party, WaitAnswer { tick, sentence });
    }

    /// The longest-waiting parties, as JSON. O(modes).
    pub fn list_json(&self, world: &World, tick: u64) -> String {
        let matchmaker = world.get_resource::<Matchmaker>();
        let parties: Vec<Value> = matchmaker.map_or_else(Vec::new, |matchmaker| {
            let longest = longest_waiting(matchmaker);
            longest
                .iter()
                .map(|ticket| self.ticket_json(world, matchmaker, ticket, tick))
                .collect()
        });
        json!({ "type": "wait_reasons", "parties": parties }).to_string()
    }

    /// The party with which an object waits, as JSON; nothing if it does not wait.
    pub fn party_json(&self, world: &World, entity: EntityRef, tick: u64) -> Value {
        let matchmaker = world.get_resource::<Matchmaker>();
        let found = matchmaker.and_then(|matchmaker| {
            let ticket = matchmaker.ticket(party_of(matchmaker, entity)?)?;
            Some(self.ticket_json(world, matchmaker, ticket, tick))
        });
        found.unwrap_or_default()
    }

    fn ticket_json(
        &self,
        world: &World,
        matchmaker: &Matchmaker,
        ticket: &Ticket,
        tick: u64,
    ) -> Value {
        let waited_s = tick.saturating_sub(ticket.since_tick) as f64 * super::tick_s(world);
        let answer = self.answers.get(&ticket.party);
        json!({
            "party": ticket.party.to_string(),
            "mode": matchmaker.names().get(usize::from(ticket.mode.0)),
            "size": ticket.size,
            "waited_s": waited_s.round(),
            "why": answer.map(|answer| answer.sentence.as_str()),
        })
    }
}

/// The party with which an object's player waits.
pub(super) fn party_of(matchmaker: &Matchmaker, entity: EntityRef) -> Option<TicketParty> {
    let player = entity.get::<PlayerId>().copied();
    let waits = player.and_then(|player| matchmaker.party_of(player));
    waits.or_else(|| entity.get::<PartyId>().map(|party| (*party).into()))
}

/// The longest-waiting tickets of all modes.
fn longest_waiting(matchmaker: &Matchmaker) -> Vec<&Ticket> {
    let modes = matchmaker.modes().iter();
    let first = modes.flat_map(|mode| mode.queue().iter().take(LISTED_MAX));
    let mut first: Vec<&Ticket> = first.map(|(_, ticket)| ticket).collect();
    // Stable, so that modes stay in their order.
    first.sort_by_key(|ticket| ticket.since_tick);
    first.truncate(LISTED_MAX);
    first
}
