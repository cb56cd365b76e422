//! The requirements of a match beside its sizes: the limits of its longest-waiting party, preferences, roles, rematches.
//!
//! ```text
//! of the set     skills within the window, levels within the band, one region for all, no player avoided
//! of the split   each role filled on both sides, no recent opponents, the gap within its limit
//! ```
//! Waiting ends an avoid list: it is ignored between two parties once the limits of
//! either are off, and ignored entirely in the match of a party past the wait bound that has no other match
//! ([`without_avoid_lists`](Terms::without_avoid_lists)).
//!
//! Invariant: waiting can only make a refused party allowed, never the other way round. A
//! set that is refused because of a pair in it stays refused with more parties.

use super::balance::{GroupSplit, Weight, balance_where};
use crate::mode::GroupModeTickSettings;
use crate::queue::compositions::CompositionTable;
use crate::queue::pool::Pool;
use crate::queue::skill_index::SkillEntry;
use crate::rematch::Rematches;
use crate::ticket::{ROLE_COUNT, Ticket, TicketPlayer, add_roles, regions, roles};

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

/// Decides whether parties of a pool may meet at a tick.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The waiting parties of the mode, by age and by skill.
    pub pool: &'a Pool,
    /// The mode's settings in ticks.
    pub rules: &'a GroupModeTickSettings,
    /// The recent opponents.
    pub rematches: &'a Rematches,
    /// The tick of this heartbeat, the reference for waiting times.
    pub now_tick: u64,
    /// Whether avoid lists count.
    pub has_avoid_lists: bool,
}

impl<'a> Terms<'a> {
    /// The terms of a mode at a tick.
    #[must_use]
    pub const fn new(
        pool: &'a Pool,
        rules: &'a GroupModeTickSettings,
        rematches: &'a Rematches,
        now_tick: u64,
    ) -> Self {
        Self {
            pool,
            rules,
            rematches,
            now_tick,
            has_avoid_lists: true,
        }
    }

    /// The same terms without avoid lists.
    #[must_use]
    pub const fn without_avoid_lists(self) -> Self {
        Self {
            has_avoid_lists: false,
            ..self
        }
    }

    /// The limits that a party sets to a match in which it is the oldest. O(1).
    #[must_use]
    pub fn limits(&self, slot: u32) -> Limits {
        let waited = self.waited_ticks(slot);
        Limits {
            window: self.rules.window_at(waited),
            level_band: self.rules.level_band_at(waited),
            power_gap: self.rules.power_gap_at(waited),
        }
    }

    /// The waiting time of the party in `slot`, in ticks.
    #[must_use]
    pub fn waited_ticks(&self, slot: u32) -> u64 {
        self.ticket(slot)
            .map_or(0, |ticket| ticket.waited_ticks(self.now_tick))
    }

    /// Whether two parties may be in one match, skills and split aside. O(1).
    #[must_use]
    pub fn are_compatible(&self, one: &SkillEntry, other: &SkillEntry, level_band: u32) -> bool {
        if u32::from(one.level.abs_diff(other.level)) > level_band {
            return false;
        }
        if !one.has_preferences && !other.has_preferences {
            return true;
        }
        let (Some(one), Some(other)) = (self.ticket(one.slot), self.ticket(other.slot)) else {
            return false;
        };
        regions(one) & regions(other) != 0 && !self.avoids(one, other) && !self.avoids(other, one)
    }

    /// Whether these parties may be in one match, skills and split aside. O(parties²).
    #[must_use]
    pub fn all_compatible(&self, entries: &[SkillEntry], level_band: u32) -> bool {
        let levels = || entries.iter().map(|entry| entry.level);
        let low = levels().min().unwrap_or(0);
        if levels().any(|level| u32::from(level - low) > level_band) {
            return false;
        }
        if entries.iter().all(|entry| !entry.has_preferences) {
            return true;
        }
        let tickets = || entries.iter().filter_map(|entry| self.ticket(entry.slot));
        let shared = tickets().fold(u32::MAX, |shared, ticket| shared & regions(ticket));
        shared != 0
            && (0..entries.len()).all(|at| {
                let rest = &entries[at + 1..];
                rest.iter()
                    .all(|other| self.are_compatible(&entries[at], other, level_band))
            })
    }

    /// The most even split of these parties, sorted by size, into two groups that roles and rematches allow. Adds its
    /// work to the step count. Cost as in `balance.rs`.
    #[must_use]
    pub fn split(
        &self,
        table: &mut CompositionTable,
        entries: &[SkillEntry],
        looks: &mut u64,
    ) -> Option<GroupSplit> {
        let power = |entry: &SkillEntry| self.ticket(entry.slot).map_or(0, |ticket| ticket.power);
        self.split_by(table, entries, power, looks)
    }

    /// [`split`](Self::split) with another measure of power.
    #[must_use]
    pub fn split_by(
        &self,
        table: &mut CompositionTable,
        entries: &[SkillEntry],
        power: impl Fn(&SkillEntry) -> u32,
        looks: &mut u64,
    ) -> Option<GroupSplit> {
        let weights = entries.iter().map(|entry| (entry.size, power(entry)));
        let weights: Vec<Weight> = weights.collect();
        if self.rematches.is_empty() && self.rules.roles == [0; ROLE_COUNT] {
            return balance_where(table, &weights, |_| true, looks);
        }
        let tickets = entries.iter().filter_map(|entry| self.ticket(entry.slot));
        let tickets: Vec<&Ticket> = tickets.collect();
        let plays: Vec<[u8; ROLE_COUNT]> = tickets.iter().map(|ticket| roles(ticket)).collect();
        if !self.can_fill_roles(&plays.iter().fold([0; ROLE_COUNT], add_roles)) {
            return None;
        }
        let opponents = self.rematches.opponents(&tickets);
        let allowed =
            |first: u128| self.roles_filled(&plays, first) && !is_rematch(&opponents, first);
        balance_where(table, &weights, allowed, looks)
    }

    /// Two parties against each other, whatever their sizes, unless they were recent opponents; by the strength of their leaders.
    #[must_use]
    pub fn duel(&self, entries: &[SkillEntry]) -> Option<GroupSplit> {
        let tickets = entries.iter().filter_map(|entry| self.ticket(entry.slot));
        let tickets: Vec<&Ticket> = tickets.collect();
        let &[one, other] = entries else {
            return None;
        };
        let met = is_rematch(&self.rematches.opponents(&tickets), 0b01);
        (!met).then_some(GroupSplit {
            first: 0b01,
            power: [one, other].map(|entry| u64::from(entry.skill().unsigned_abs())),
        })
    }

    /// Whether these numbers of players per role can fill both groups. O(1).
    #[must_use]
    pub fn can_fill_roles(&self, filled: &[u32; ROLE_COUNT]) -> bool {
        let needed = self.rules.roles.iter().map(|&role| 2 * u32::from(role));
        filled.iter().zip(needed).all(|(&has, needs)| has >= needs)
    }

    /// The ticket in `slot`.
    #[must_use]
    pub fn ticket(&self, slot: u32) -> Option<&'a Ticket> {
        self.pool.queue().ticket(slot)
    }

    /// Whether one party avoids a player of the other; ignored once the limits of either are off.
    fn avoids(&self, one: &Ticket, other: &Ticket) -> bool {
        other.waited_ticks(self.now_tick) < self.rules.limits_off_after_ticks
            && self.avoids_any(one, &other.members)
    }

    /// Whether a party avoids one of these players; ignored once its limits are off.
    #[must_use]
    pub fn avoids_any(&self, ticket: &Ticket, players: &[TicketPlayer]) -> bool {
        let Some(wishes) = &ticket.preferences else {
            return false;
        };
        let avoided = |player: &TicketPlayer| wishes.avoid.contains(player);
        self.has_avoid_lists
            && ticket.waited_ticks(self.now_tick) < self.rules.limits_off_after_ticks
            && players.iter().any(avoided)
    }

    fn roles_filled(&self, plays: &[[u8; ROLE_COUNT]], first: u128) -> bool {
        let mut filled = [[0u32; ROLE_COUNT]; 2];
        for (at, plays) in plays.iter().enumerate() {
            let side = &mut filled[usize::from(first >> at & 1 == 0)];
            *side = add_roles(*side, plays);
        }
        let needed = self.rules.roles.map(u32::from);
        let enough =
            |has: &[u32; ROLE_COUNT]| has.iter().zip(needed).all(|(&has, needs)| has >= needs);
        filled.iter().all(enough)
    }
}

/// Whether parties of the two groups were opponents; groups are bit masks.
fn is_rematch(opponents: &[u128], first: u128) -> bool {
    let in_first = |at: &usize| first >> at & 1 == 1;
    (0..opponents.len())
        .filter(in_first)
        .any(|at| opponents[at] & !first != 0)
}
