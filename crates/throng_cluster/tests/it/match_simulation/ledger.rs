//! A model of tickets and matches that does not use the rows: it follows the requests that were executed.

use std::collections::{BTreeMap, BTreeSet};

use throng_cluster::{
    ClusterRows, MatchId, MatchReply, MatchRequest, MatchState, NewMatch, TicketId,
};
use throng_core::ids::PlayerId;

/// A ticket that was added.
struct LedgerTicket {
    players: Vec<PlayerId>,
    since_ms: u64,
    is_cancelled: bool,
    matches: Vec<MatchId>,
    is_over: bool,
}

/// All tickets and matches of a run.
#[derive(Default)]
pub struct Ledger {
    tickets: BTreeMap<TicketId, LedgerTicket>,
    matches: BTreeMap<MatchId, NewMatch>,
    pub cancelled: u64,
    pub requeued: u64,
}

impl Ledger {
    /// Records a request that was executed at a time of the store.
    pub fn on_executed(&mut self, request: &MatchRequest, reply: &MatchReply, now_ms: u64) {
        if *reply != MatchReply::Done {
            return;
        }
        match request {
            MatchRequest::AddTicket { ticket } => {
                let members = ticket.members.iter().map(|member| member.player);
                self.tickets.entry(ticket.id).or_insert(LedgerTicket {
                    players: members.collect(),
                    since_ms: now_ms,
                    is_cancelled: false,
                    matches: Vec::new(),
                    is_over: false,
                });
            }
            MatchRequest::CancelTicket { ticket, .. } => {
                if let Some(ticket) = self.tickets.get_mut(ticket) {
                    self.cancelled += u64::from(!ticket.is_cancelled);
                    ticket.is_cancelled = true;
                }
            }
            MatchRequest::FormMatch { new, .. } if !self.matches.contains_key(&new.id) => {
                self.matches.insert(new.id, new.clone());
                for id in new.sides.iter().flatten() {
                    let ticket = self.tickets.get_mut(id).unwrap();
                    assert!(!ticket.is_cancelled, "{id:?} was cancelled");
                    self.requeued += u64::from(!ticket.matches.is_empty());
                    ticket.matches.push(new.id);
                }
            }
            _ => {}
        }
    }

    /// Each ticket waits, is in one match, was cancelled, or was in a match that is over; and each player is in one match at most.
    pub fn check(&mut self, rows: &ClusterRows, place: &str) {
        let present: BTreeMap<TicketId, (u64, Option<MatchId>)> = rows
            .tickets()
            .map(|(ticket, since_ms, in_match)| (ticket.id, (since_ms, in_match)))
            .collect();
        let mut playing = BTreeSet::new();
        for (id, ticket) in self
            .tickets
            .iter_mut()
            .filter(|(_, ticket)| !ticket.is_over)
        {
            for (nth, earlier) in ticket.matches.iter().enumerate() {
                let (state, _) = rows.match_state(*earlier).unwrap();
                let is_last = nth + 1 == ticket.matches.len();
                assert!(
                    is_last || state == MatchState::Aborted && self.matches[earlier].is_requeued,
                    "{place}: {id:?} is in {earlier:?} ({state:?}) and in a later match"
                );
            }
            let last = ticket.matches.last();
            let last = last.map(|id| (*id, rows.match_state(*id).unwrap().0));
            let is_removed = last.is_some_and(|(id, state)| match state {
                MatchState::Ended => true,
                MatchState::Aborted => !self.matches[&id].is_requeued,
                _ => false,
            });
            let Some((since_ms, in_match)) = present.get(id) else {
                assert!(
                    ticket.is_cancelled || is_removed,
                    "{place}: {id:?} is lost, {last:?}"
                );
                ticket.is_over = true;
                continue;
            };
            assert!(!ticket.is_cancelled && !is_removed, "{place}: {id:?}");
            assert_eq!(*since_ms, ticket.since_ms, "{place}: {id:?} has waited");
            let open = last.filter(|(_, state)| !state.is_over());
            assert_eq!(*in_match, open.map(|(id, _)| id), "{place}: {id:?}");
            for player in ticket.players.iter().filter(|_| in_match.is_some()) {
                assert!(playing.insert(*player), "{place}: {player:?} plays twice");
            }
        }
        let of_ledger = |id: &TicketId| self.tickets.contains_key(id);
        assert!(present.keys().all(of_ledger), "{place}: unknown tickets");
    }

    /// The numbers of matches that were formed, have ended, and were aborted.
    pub fn counts(&self, rows: &ClusterRows) -> [u64; 3] {
        let states = self.matches.keys().map(|id| rows.match_state(*id).unwrap());
        let states: Vec<MatchState> = states.map(|(state, _)| state).collect();
        let count = |wanted| states.iter().filter(|state| **state == wanted).count() as u64;
        [
            states.len() as u64,
            count(MatchState::Ended),
            count(MatchState::Aborted),
        ]
    }

    /// The tickets with their matches.
    pub fn trace(&self) -> Vec<(TicketId, Vec<MatchId>)> {
        let tickets = self.tickets.iter();
        tickets
            .map(|(id, ticket)| (*id, ticket.matches.clone()))
            .collect()
    }
}
