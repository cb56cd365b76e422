//! The results of a heartbeat: matches, and the writer that collects them.
//!
//! Invariant: match ids count up from 0 over all modes, in the order of creation.

use throng_core::memory::{MemoryUse, heap_bytes_of_lists};

use super::quality::MatchQuality;
use super::ticket::{ModeId, Ticket, TicketPlayer};

/// Two groups that play each other.
#[derive(Clone, Debug, PartialEq, MemoryUse)]
pub struct Match {
    /// Counts up from 0 over all modes.
    pub id: u64,
    /// The mode in which the tickets of both groups waited.
    pub mode: ModeId,
    /// The tickets of both groups, longest-waiting first; the longest-waiting of all is in the first group.
    #[memory(with = heap_bytes_of_lists)]
    pub groups: [Vec<Ticket>; 2],
    /// The power of each group.
    pub power: [u64; 2],
    /// How good the match is.
    pub quality: MatchQuality,
    /// The players who watch it; always empty except in rooms.
    pub spectators: Vec<TicketPlayer>,
}

/// The results of a heartbeat.
#[derive(Clone, Debug, Default)]
pub struct HeartbeatOutcome {
    /// Matches that start.
    pub matches: Vec<Match>,
    /// Matches that wait for the acceptance of their players.
    pub proposed: Vec<Match>,
    /// Tickets that waited too long, or whose players did not reply in time.
    pub expired: Vec<Ticket>,
}

/// Collects the matches of a heartbeat.
pub(super) struct MatchWriter<'a> {
    pub now_tick: u64,
    pub next_match: &'a mut u64,
    pub matches: &'a mut Vec<Match>,
    /// The number of matches at which the heartbeat stops.
    pub matches_max: usize,
}

impl MatchWriter<'_> {
    /// Whether the limit of matches is reached.
    pub const fn is_full(&self) -> bool {
        self.matches.len() >= self.matches_max
    }

    /// Adds a match of parties that were removed from the queue.
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
