//! What a heartbeat finds: matches, and where they are written.
//!
//! Invariant: match ids count up from 0 over all modes, in the order in which the matches are made.

use throng_core::memory::{MemoryUse, heap_bytes_of_lists};

use super::quality::MatchQuality;
use super::ticket::{ModeId, Ticket, TicketPlayer};

/// Two groups that are to fight each other.
#[derive(Clone, Debug, PartialEq, MemoryUse)]
pub struct Match {
    /// Counts up from 0 over all modes.
    pub id: u64,
    /// The mode in which the tickets of both groups waited.
    pub mode: ModeId,
    /// The tickets of both groups, longest-waiting first; the longest-waiting of all is in the first group.
    #[memory(with = heap_bytes_of_lists)]
    pub groups: [Vec<Ticket>; 2],
    /// The groups' power.
    pub power: [u64; 2],
    /// How good the match is.
    pub quality: MatchQuality,
    /// Players who watch it; none but in rooms.
    pub spectators: Vec<TicketPlayer>,
}

/// What a heartbeat did.
#[derive(Clone, Debug, Default)]
pub struct HeartbeatOutcome {
    /// Matches that are on.
    pub matches: Vec<Match>,
    /// Matches whose players are asked from now on.
    pub proposed: Vec<Match>,
    /// Tickets that waited too long, or whose players did not answer in time.
    pub expired: Vec<Ticket>,
}

/// Where the matches of a heartbeat go.
pub(super) struct MatchWriter<'a> {
    pub now_tick: u64,
    pub next_match: &'a mut u64,
    pub matches: &'a mut Vec<Match>,
    /// No further match is made at this length.
    pub matches_max: usize,
}

impl MatchWriter<'_> {
    /// Whether no further match may be made.
    pub const fn is_full(&self) -> bool {
        self.matches.len() >= self.matches_max
    }

    /// Makes a match of parties that wait no more.
    pub fn add_match(
        &mut self,
        mode: ModeId,
        groups: [Vec<Ticket>; 2],
        quality: MatchQuality,
        spectators: Vec<TicketPlayer>,
    ) {
        let power = std::array::from_fn(|side: usize| {
            groups[side]
                .iter()
                .map(|ticket| u64::from(ticket.power))
                .sum()
        });
        self.matches.push(Match {
            id: *self.next_match,
            mode,
            quality,
            groups,
            power,
            spectators,
        });
        *self.next_match += 1;
    }
}
