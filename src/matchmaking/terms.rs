//! What a match must keep to beside its sizes: the limits of its longest-waiting party, wishes, roles, rematches.
//!
//! ```text
//! of the set   skills within the window, levels within the band, one region for all, nobody avoided
//! of the split each role filled on both sides, no opponents of late, the gap within its limit
//! ```
//! Invariant: what is refused of a party can only become allowed by waiting, never the other way round, and a
//! set that is refused for a pair in it stays refused with more parties.

use super::balance::{Split, Weight, balance_where};
use super::by_skill::Entry;
use super::compositions::CompositionTable;
use super::mode::ModeRules;
use super::pool::Pool;
use super::rematch::Rematches;
use super::ticket::{ROLES, Ticket};

/// The limits of a party at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest spread of skill.
    pub window: u32,
    /// The largest difference in level.
    pub level_band: u32,
    /// The largest gap in power.
    pub power_gap: u32,
}

/// What decides whether parties of a pool may meet at a tick.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// Who waits.
    pub pool: &'a Pool,
    /// The mode's rules.
    pub rules: &'a ModeRules,
    /// Who fought against whom of late.
    pub rematches: &'a Rematches,
    /// The tick.
    pub now_tick: u64,
}

impl<'a> Terms<'a> {
    /// The terms of a mode at a tick.
    #[must_use]
    pub const fn new(
        pool: &'a Pool,
        rules: &'a ModeRules,
        rematches: &'a Rematches,
        now_tick: u64,
    ) -> Self {
        Self {
            pool,
            rules,
            rematches,
            now_tick,
        }
    }

    /// The limits that a party sets to a match of which it is the oldest. O(1).
    #[must_use]
    pub fn limits(&self, slot: u32) -> Limits {
        let waited = self.waited_ticks(slot);
        Limits {
            window: self.rules.window_at(waited),
            level_band: self.rules.level_band_at(waited),
            power_gap: self.rules.power_gap_at(waited),
        }
    }

    /// Ticks that the party in `slot` has waited.
    #[must_use]
    pub fn waited_ticks(&self, slot: u32) -> u64 {
        self.ticket(slot)
            .map_or(0, |ticket| ticket.waited_ticks(self.now_tick))
    }

    /// Whether two parties may be in one match, skills and split aside. O(1).
    #[must_use]
    pub fn together(&self, one: &Entry, other: &Entry, level_band: u32) -> bool {
        if u32::from(one.level.abs_diff(other.level)) > level_band {
            return false;
        }
        if !one.wishes && !other.wishes {
            return true;
        }
        let (Some(one), Some(other)) = (self.ticket(one.slot), self.ticket(other.slot)) else {
            return false;
        };
        regions(one) & regions(other) != 0 && !self.avoids(one, other) && !self.avoids(other, one)
    }

    /// Whether these parties may be in one match, skills and split aside. O(parties²).
    #[must_use]
    pub fn all_together(&self, entries: &[Entry], level_band: u32) -> bool {
        let levels = || entries.iter().map(|entry| entry.level);
        let low = levels().min().unwrap_or(0);
        if levels().any(|level| u32::from(level - low) > level_band) {
            return false;
        }
        if entries.iter().all(|entry| !entry.wishes) {
            return true;
        }
        let tickets = || entries.iter().filter_map(|entry| self.ticket(entry.slot));
        let shared = tickets().fold(u32::MAX, |shared, ticket| shared & regions(ticket));
        shared != 0
            && (0..entries.len()).all(|at| {
                let rest = &entries[at + 1..];
                rest.iter()
                    .all(|other| self.together(&entries[at], other, level_band))
            })
    }

    /// The most even split of these parties, sorted by size, into two groups that roles and rematches allow.
    /// Cost as in `balance.rs`.
    #[must_use]
    pub fn split(&self, table: &mut CompositionTable, entries: &[Entry]) -> Option<Split> {
        let ticket = |entry: &Entry| self.ticket(entry.slot);
        let power = |entry: &Entry| ticket(entry).map_or(0, |ticket| ticket.power);
        let weights: Vec<Weight> = entries
            .iter()
            .map(|entry| (entry.size, power(entry)))
            .collect();
        let plain = self.rematches.is_empty() && self.rules.roles == [0; ROLES];
        if plain {
            return balance_where(table, &weights, |_| true);
        }
        let tickets: Vec<&Ticket> = entries.iter().filter_map(ticket).collect();
        balance_where(table, &weights, |first| {
            self.roles_filled(&tickets, first) && !self.is_rematch(&tickets, first)
        })
    }

    /// The ticket in `slot`.
    #[must_use]
    pub fn ticket(&self, slot: u32) -> Option<&'a Ticket> {
        self.pool.queue().ticket(slot)
    }

    /// Whether one wishes not to meet a player of the other, which counts until its limits are open.
    fn avoids(&self, one: &Ticket, other: &Ticket) -> bool {
        self.avoids_any(one, &other.members)
    }

    /// Whether a party wishes not to meet one of these players, which counts until its limits are open.
    #[must_use]
    pub fn avoids_any(&self, ticket: &Ticket, players: &[u64]) -> bool {
        let Some(wishes) = &ticket.wishes else {
            return false;
        };
        let avoided = |player: &u64| wishes.avoid.contains(player);
        ticket.waited_ticks(self.now_tick) < self.rules.open_after_ticks
            && players.iter().any(avoided)
    }

    fn roles_filled(&self, tickets: &[&Ticket], first: u128) -> bool {
        let mut filled = [[0u32; ROLES]; 2];
        for (at, ticket) in tickets.iter().enumerate() {
            let side = usize::from(first >> at & 1 == 0);
            for (filled, plays) in filled[side].iter_mut().zip(roles(ticket)) {
                *filled += u32::from(plays);
            }
        }
        let enough = |filled: &[u32; ROLES]| {
            let needed = self.rules.roles.iter().copied().map(u32::from);
            filled
                .iter()
                .copied()
                .zip(needed)
                .all(|(has, needs)| has >= needs)
        };
        filled.iter().all(enough)
    }

    fn is_rematch(&self, tickets: &[&Ticket], first: u128) -> bool {
        let side = |at: usize| first >> at & 1 == 1;
        (0..tickets.len()).filter(|&a| side(a)).any(|a| {
            (0..tickets.len()).filter(|&b| !side(b)).any(|b| {
                let against = |&one: &u64| {
                    let met = |&other: &u64| self.rematches.were_opponents(one, other);
                    tickets[b].members.iter().any(met)
                };
                tickets[a].members.iter().any(against)
            })
        })
    }
}

/// Where a party can play.
pub(super) fn regions(ticket: &Ticket) -> u32 {
    let wished = ticket.wishes.as_ref().map_or(0, |wishes| wishes.regions);
    if wished == 0 { u32::MAX } else { wished }
}

fn roles(ticket: &Ticket) -> [u8; ROLES] {
    ticket
        .wishes
        .as_ref()
        .map_or([0; ROLES], |wishes| wishes.roles)
}
