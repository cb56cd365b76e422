//! Proposed matches, which their players have to accept.
//!
//! Invariant: each player of a proposal either has accepted or is in `unanswered`; a proposal without unanswered players
//! is removed. Cost: O(players of the match) per reply, O(all proposals) per heartbeat.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use throng_core::memory::MemoryUse;

use super::matches::Match;
use super::ticket::TicketPlayer;

/// A proposed match.
#[derive(Clone, Debug, MemoryUse)]
pub struct Proposal {
    /// The match that starts once all have accepted.
    pub match_info: Match,
    /// It times out at this tick.
    pub until_tick: u64,
    /// Players who have not replied yet.
    pub unanswered: Vec<TicketPlayer>,
}

/// All proposed matches, by match id.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Proposals {
    #[memory(each_value)]
    by_id: BTreeMap<u64, Proposal>,
    /// The proposal that each spectator watches; never iterated.
    spectated: HashMap<TicketPlayer, u64, FixedState>,
}

impl Proposals {
    /// Proposes a match to its players until `until_tick`.
    pub fn propose(&mut self, found: Match, until_tick: u64) {
        let members = found
            .groups
            .iter()
            .flatten()
            .flat_map(|ticket| &ticket.members);
        let missing = members.copied().collect();
        let proposal = Proposal {
            unanswered: missing,
            until_tick,
            match_info: found,
        };
        let (id, spectators) = (proposal.match_info.id, &proposal.match_info.spectators);
        self.spectated
            .extend(spectators.iter().map(|&player| (player, id)));
        self.by_id.insert(id, proposal);
    }

    /// Accepts for a player: returns the match if this was the last reply. A second acceptance changes nothing.
    pub fn accept(&mut self, id: u64, player: TicketPlayer) -> Option<Match> {
        let proposal = self.by_id.get_mut(&id)?;
        proposal.unanswered.retain(|&missing| missing != player);
        if proposal.unanswered.is_empty() {
            self.remove(id).map(|proposal| proposal.match_info)
        } else {
            None
        }
    }

    /// The proposal of a match.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Proposal> {
        self.by_id.get(&id)
    }

    /// Ends a proposal.
    pub fn remove(&mut self, id: u64) -> Option<Proposal> {
        let proposal = self.by_id.remove(&id)?;
        for player in &proposal.match_info.spectators {
            self.spectated.remove(player);
        }
        Some(proposal)
    }

    /// Removes a player as a spectator of a proposed match; returns whether it was one.
    pub fn stop_spectating(&mut self, player: TicketPlayer) -> bool {
        let proposal = self.spectated.remove(&player);
        let proposal = proposal.and_then(|id| self.by_id.get_mut(&id));
        proposal.is_some_and(|proposal| {
            let spectators = &mut proposal.match_info.spectators;
            spectators.retain(|&seated| seated != player);
            true
        })
    }

    /// The ids of proposals that time out at `now_tick`. O(proposals).
    #[must_use]
    pub fn expired(&self, now_tick: u64) -> Vec<u64> {
        let due = self
            .by_id
            .iter()
            .filter(|(_, open)| open.until_tick <= now_tick);
        due.map(|(&id, _)| id).collect()
    }

    /// All proposals, by match id.
    pub fn iter(&self) -> impl Iterator<Item = &Proposal> {
        self.by_id.values()
    }
}
