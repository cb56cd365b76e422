//! Parties for a running match in which players are missing.
//!
//! ```text
//! nearest in skill ──▶ those that may be in the match ──▶ subsets of exactly the missing size ──▶ nearest in power
//! ```
//! Each party that joins is within its own window and level band of the match. All of them share a region with it. None
//! avoids, is avoided by, or was a recent opponent of any player that it now meets. Together they play the missing roles.
//! Of the first [`SETS_MAX`] such sets, made of the nearest parties first, the set joins whose power is nearest to
//! the missing power of the side.
//!
//! The wait bound goes first: a party that has waited less than `priority_after_s` does not join if it could be in a
//! match with one of the [`PRIORITY_MAX`] longest-waiting priority parties.
//!
//! Cost: at most O([`CANDIDATES_MAX`]) parties and [`STEPS_MAX`] steps of the search.

use super::terms::Terms;
use crate::queue::compositions::{CompositionTable, single_party};
use crate::queue::skill_index::SkillEntry;
use crate::ticket::{ROLE_COUNT, Ticket, TicketPlayer, add_roles, regions, roles};

/// Parties examined for one match.
pub const CANDIDATES_MAX: usize = 256;

/// Steps of the search for a set of parties.
pub const STEPS_MAX: u32 = 8_192;

/// Sets from which the one of the nearest power is selected.
pub const SETS_MAX: u32 = 64;

/// The number of priority parties whose possible partners are reserved for them.
pub const PRIORITY_MAX: usize = 64;

/// A running match in which players are missing on one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backfill {
    /// The number of missing players, up to a group of the mode.
    pub missing: u8,
    /// The skill of the match.
    pub skill: i32,
    /// The level of the match.
    pub level: u16,
    /// The regions where it is played, one bit each; 0 means anywhere.
    pub regions: u32,
    /// The players in the match.
    pub players: Vec<TicketPlayer>,
    /// The players who play against the side with missing players.
    pub opponents: Vec<TicketPlayer>,
    /// Players on the avoid lists of those in the match.
    pub avoid: Vec<TicketPlayer>,
    /// The minimum number of players of each role that the side lacks.
    pub roles: [u8; ROLE_COUNT],
    /// The power that the side lacks; `None` when it does not matter.
    pub power: Option<u64>,
}

/// The parties that join; `None` when no set has exactly the missing size.
pub(crate) fn find_parties(
    terms: &Terms,
    table: &mut CompositionTable,
    wanted: &Backfill,
) -> Option<Vec<SkillEntry>> {
    if wanted.missing == 0 || wanted.missing > terms.rules.group_size {
        return None;
    }
    let candidates = candidates(terms, table, wanted);
    let mut reach = vec![1u64; candidates.len() + 1];
    for (at, entry) in candidates.iter().enumerate().rev() {
        reach[at] = reach[at + 1] | reach[at + 1] << entry.size;
    }
    let mut search = BackfillSearch {
        terms,
        backfill: wanted,
        candidates: &candidates,
        reachable: &reach,
        chosen: Vec::new(),
        best: None,
        sets: 0,
        steps: 0,
    };
    let place = region_mask(wanted.regions);
    search.search_from(0, wanted.missing, place);
    search.best.map(|(_, set)| set)
}

/// No regions mean all of them.
fn region_mask(regions: u32) -> u32 {
    if regions == 0 { u32::MAX } else { regions }
}

/// The parties that may be in the match, nearest in skill first.
fn candidates(terms: &Terms, table: &mut CompositionTable, wanted: &Backfill) -> Vec<SkillEntry> {
    let order = terms.pool.skill_index();
    let queue = terms.pool.queue().iter();
    let first_after_ticks = terms.rules.priority_after_ticks;
    let is_first = |ticket: &Ticket| ticket.waited_ticks(terms.now_tick) >= first_after_ticks;
    let first: Vec<&Ticket> = queue
        .map(|(_, ticket)| ticket)
        .take(PRIORITY_MAX)
        .take_while(|ticket| is_first(ticket))
        .collect();
    let (mut low, mut high) = order.around(wanted.skill);
    let mut found = Vec::new();
    for _ in 0..CANDIDATES_MAX {
        let distance = |place| order.at(place).skill().abs_diff(wanted.skill);
        let (place, below) = match (low, high) {
            (Some(below), Some(above)) if distance(below) < distance(above) => (below, true),
            (_, Some(above)) => (above, false),
            (Some(below), None) => (below, true),
            (None, None) => break,
        };
        let entry = order.at(place);
        if below {
            low = order.previous(place);
        } else {
            high = order.next(place);
        }
        let Some(ticket) = terms.ticket(entry.slot) else {
            continue;
        };
        let mut is_needed = |other: &&Ticket| {
            let mut both = single_party(ticket.size);
            both[usize::from(other.size) - 1] += 1;
            regions(ticket) & regions(other) != 0 && table.fits(&both, &[u32::MAX; 5])
        };
        if may_join(terms, wanted, &entry, ticket)
            && (is_first(ticket) || !first.iter().any(&mut is_needed))
        {
            found.push(entry);
        }
    }
    found
}

/// Whether a party may be in the match.
fn may_join(terms: &Terms, wanted: &Backfill, entry: &SkillEntry, ticket: &Ticket) -> bool {
    let limits = terms.limits(entry.slot);
    let met = |&one: &TicketPlayer| {
        let opponents = wanted.opponents.iter();
        opponents
            .copied()
            .any(|other| terms.rematches.were_opponents(one, other))
    };
    entry.size <= wanted.missing
        && entry.skill().abs_diff(wanted.skill) <= limits.window
        && u32::from(entry.level.abs_diff(wanted.level)) <= limits.level_band
        && regions(ticket) & region_mask(wanted.regions) != 0
        && !terms.avoids_any(ticket, &wanted.players)
        && !ticket
            .members
            .iter()
            .any(|player| wanted.avoid.contains(player))
        && !ticket.members.iter().any(met)
}

/// The search for a set of exactly the missing size, depth first, nearest parties first.
struct BackfillSearch<'a> {
    terms: &'a Terms<'a>,
    backfill: &'a Backfill,
    candidates: &'a [SkillEntry],
    /// Bit s of entry i: some of the candidates from i on have s players together.
    reachable: &'a [u64],
    chosen: Vec<SkillEntry>,
    /// The difference from the wanted power, and the set.
    best: Option<(u64, Vec<SkillEntry>)>,
    sets: u32,
    steps: u32,
}

impl BackfillSearch<'_> {
    fn search_from(&mut self, at: usize, missing: u8, place: u32) {
        self.steps += 1;
        let done = self.steps > STEPS_MAX || self.sets >= SETS_MAX;
        if done || self.reachable[at] >> missing & 1 == 0 {
            return;
        }
        if missing == 0 {
            self.consider_set();
            return;
        }
        let Some(&entry) = self.candidates.get(at) else {
            return;
        };
        let Some(ticket) = self.terms.ticket(entry.slot) else {
            return;
        };
        let here = place & regions(ticket);
        let gets_on = |other: &SkillEntry| self.terms.are_compatible(other, &entry, u32::MAX);
        if entry.size <= missing && here != 0 && self.chosen.iter().all(gets_on) {
            self.chosen.push(entry);
            self.search_from(at + 1, missing - entry.size, here);
            self.chosen.pop();
        }
        self.search_from(at + 1, missing, place);
    }

    /// Compares a set of exactly the missing size with the best one.
    fn consider_set(&mut self) {
        let tickets = || {
            self.chosen
                .iter()
                .filter_map(|entry| self.terms.ticket(entry.slot))
        };
        let plays = tickets().fold([0; ROLE_COUNT], |filled, ticket| {
            add_roles(filled, &roles(ticket))
        });
        let mut lacks = plays.iter().zip(self.backfill.roles);
        if lacks.any(|(&has, needs)| has < u32::from(needs)) {
            return;
        }
        self.sets += 1;
        let power: u64 = tickets().map(|ticket| u64::from(ticket.power)).sum();
        let off = self
            .backfill
            .power
            .map_or(0, |wanted| power.abs_diff(wanted));
        if self.best.as_ref().is_none_or(|best| off < best.0) {
            self.best = Some((off, self.chosen.clone()));
        }
    }
}
