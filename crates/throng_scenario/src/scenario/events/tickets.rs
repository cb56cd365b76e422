//! Parties that queue, cancel or are matched, and players who leave a running match.
//!
//! The line of a ticket contains all inputs of matchmaking, so that a reader can check the match lines that follow: size, power,
//! skill, level, roles, regions, avoided players and members.

use bevy_ecs::prelude::*;

use super::EventLog;
use super::line::{Event, LogNumber};
use throng::instance::MemberLeft;
use throng::matchmaking::{
    BackfillResult, MatchFormed, Matchmaker, ModeId, Ticket, TicketCancelled, TicketExpired,
    TicketQueued,
};
use throng::sim::SimTick;

type Tickets<'w, 's> = (
    MessageReader<'w, 's, TicketQueued>,
    MessageReader<'w, 's, TicketCancelled>,
    MessageReader<'w, 's, TicketExpired>,
);
type Matches<'w, 's> = (
    MessageReader<'w, 's, MemberLeft>,
    MessageReader<'w, 's, BackfillResult>,
    MessageReader<'w, 's, MatchFormed>,
);

/// Logs tickets and matches, in the order in which a tick handles them.
pub(in crate::scenario) fn log_matches(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    (mut queued, mut cancelled, mut expired): Tickets,
    (mut left, mut filled, mut formed): Matches,
    matchmaker: Res<Matchmaker>,
) {
    let tick = tick.0;
    let mut write = |event: Event| log.write(tick, None, event);
    let name = |mode: ModeId| {
        let names = matchmaker.names();
        names.get(usize::from(mode.0)).map_or("", String::as_str)
    };
    for TicketQueued { ticket } in queued.read() {
        write(ticket_event(ticket, name(ticket.mode)));
    }
    for cancelled in cancelled.read() {
        let party = cancelled.party.into();
        write(Event::Cancel { party });
    }
    // Before backfills: these can replace players that left in the same tick.
    for &MemberLeft {
        match_id,
        party,
        player,
    } in left.read()
    {
        write(Event::Left {
            id: match_id,
            party: party.into(),
            player: player.into(),
        });
    }
    for &BackfillResult {
        id,
        group,
        tickets: ref joined,
        ..
    } in filled.read()
    {
        for ticket in joined {
            let party = ticket.party.into();
            write(Event::Backfill { id, party, group });
        }
    }
    for expired in expired.read() {
        let party = expired.party.into();
        write(Event::Expire { party });
    }
    for MatchFormed {
        match_info: found, ..
    } in formed.read()
    {
        let parties = |group: &Vec<Ticket>| -> Vec<LogNumber> {
            group.iter().map(|ticket| ticket.party.into()).collect()
        };
        write(Event::Match {
            id: found.id,
            mode: name(found.mode),
            groups: [parties(&found.groups[0]), parties(&found.groups[1])],
            power: found.power,
            spread: found.quality.spread,
            quality: found.quality.fairness(),
        });
    }
}

fn ticket_event<'a>(ticket: &Ticket, mode: &'a str) -> Event<'a> {
    let preferences = ticket.preferences.as_deref().cloned().unwrap_or_default();
    Event::Ticket {
        party: ticket.party.into(),
        size: ticket.size,
        power: ticket.power,
        skill: ticket.skill,
        level: ticket.level,
        mode,
        since: ticket.since_tick,
        members: ticket.members.iter().map(|&player| player.into()).collect(),
        roles: preferences.roles,
        avoid: preferences
            .avoid
            .iter()
            .map(|&player| player.into())
            .collect(),
        regions: preferences.regions,
    }
}
