//! Matches whose players are asked whether they accept.
//!
//! Invariant: each player of a proposal either has accepted or is `missing`; a proposal without anybody missing
//! is no longer here. Cost: O(players of the match) an answer, O(proposals that end) a heartbeat.

use std::collections::BTreeMap;

use super::matcher::Match;

/// A match whose players are asked.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The match.
    pub found: Match,
    /// It is off at this tick.
    pub until_tick: u64,
    /// Players who have not answered yet.
    pub missing: Vec<u64>,
}

/// All matches whose players are asked, by match id.
#[derive(Clone, Debug, Default)]
pub struct Proposals {
    open: BTreeMap<u64, Proposal>,
}

impl Proposals {
    /// Asks the players of a match until `until_tick`.
    pub fn propose(&mut self, found: Match, until_tick: u64) {
        let members = found
            .groups
            .iter()
            .flatten()
            .flat_map(|ticket| &ticket.members);
        let missing = members.copied().collect();
        let proposal = Proposal {
            missing,
            until_tick,
            found,
        };
        self.open.insert(proposal.found.id, proposal);
    }

    /// A player's acceptance: the match, if it was the last one missing. To accept twice changes nothing.
    pub fn accept(&mut self, id: u64, player: u64) -> Option<Match> {
        let proposal = self.open.get_mut(&id)?;
        proposal.missing.retain(|&missing| missing != player);
        if proposal.missing.is_empty() {
            self.take(id).map(|proposal| proposal.found)
        } else {
            None
        }
    }

    /// The proposal of a match.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Proposal> {
        self.open.get(&id)
    }

    /// Ends a proposal.
    pub fn take(&mut self, id: u64) -> Option<Proposal> {
        self.open.remove(&id)
    }

    /// The ids of those that are off at `now_tick`. O(proposals).
    #[must_use]
    pub fn due(&self, now_tick: u64) -> Vec<u64> {
        let due = self
            .open
            .iter()
            .filter(|(_, open)| open.until_tick <= now_tick);
        due.map(|(&id, _)| id).collect()
    }

    /// All proposals, by match id.
    pub fn iter(&self) -> impl Iterator<Item = &Proposal> {
        self.open.values()
    }
}
