//! The waiting parties of one mode, by age and by skill.
//!
//! Parties are also counted by region and role, so that a party without possible partners is detected without a search.
//!
//! Invariant: the [`TicketQueue`] and the [`SkillIndex`] hold the same parties. Each request updates both, so
//! a heartbeat finds its parties in order and sorts nothing.
//!
//! Cost: O(log n) per request.

use throng_core::memory::MemoryUse;

use super::compositions::{CompositionTable, Counts, single_party};
use super::skill_index::{SkillEntry, SkillIndex};
use super::ticket_queue::{TicketAge, TicketQueue};
use crate::ticket::{ROLE_COUNT, Ticket, regions, roles};

/// The value that the skill index is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillMeasure {
    /// The skill of the party.
    Skill,
    /// Nothing: all parties count as equal.
    None,
    /// The strength of its leader; each rank (the party's level) adds this many percent.
    Leader {
        /// Percent per rank.
        rank_weight_percent: u32,
    },
}

/// The waiting parties of one mode.
#[derive(Clone, Debug, MemoryUse)]
pub struct Pool {
    queue: TicketQueue,
    skill_index: SkillIndex,
    measure: SkillMeasure,
    /// The number of parties that can play anywhere, and of those that can play in each region.
    unrestricted: Counts,
    of_region: [Counts; 32],
    /// The number of parties that can play in some regions only.
    region_restricted: u32,
    /// The number of players of each role.
    roles: [u64; ROLE_COUNT],
    /// The number of parties with an avoid list.
    avoiders: u32,
}

impl Pool {
    /// Creates an empty pool.
    #[must_use]
    pub fn new(measure: SkillMeasure) -> Self {
        Self {
            queue: TicketQueue::default(),
            skill_index: SkillIndex::default(),
            measure,
            unrestricted: [0; 5],
            of_region: [[0; 5]; 32],
            region_restricted: 0,
            roles: [0; ROLE_COUNT],
            avoiders: 0,
        }
    }

    /// The parties by age.
    #[must_use]
    pub const fn queue(&self) -> &TicketQueue {
        &self.queue
    }

    /// The parties by skill.
    #[must_use]
    pub const fn skill_index(&self) -> &SkillIndex {
        &self.skill_index
    }

    /// Adds a ticket and returns its slot.
    pub fn insert(&mut self, ticket: Ticket) -> u32 {
        let mut entry = self.entry_of(&ticket, 0);
        self.update_counts(&ticket, 1);
        entry.slot = self.queue.insert(ticket);
        self.skill_index.insert(entry);
        entry.slot
    }

    /// Removes the party in `slot`, if there is one.
    pub fn remove(&mut self, slot: u32) -> Option<Ticket> {
        let ticket = self.queue.remove(slot)?;
        let known = self.skill_index.remove(&self.entry_of(&ticket, slot));
        debug_assert!(known, "a queued party is in the skill index");
        self.update_counts(&ticket, -1);
        Some(ticket)
    }

    /// The entry of the party in `slot` in the skill index.
    #[must_use]
    pub fn entry(&self, slot: u32) -> Option<SkillEntry> {
        let ticket = self.queue.ticket(slot)?;
        Some(self.entry_of(ticket, slot))
    }

    /// The age of the party in `slot`, for comparisons.
    #[must_use]
    pub fn age(&self, slot: u32) -> TicketAge {
        self.queue.age(slot)
    }

    /// Whether any party has an avoid list. O(1).
    #[must_use]
    pub const fn has_avoid_lists(&self) -> bool {
        self.avoiders > 0
    }

    /// Whether the parties that could share one region with this party make a composition with it, and all waiting
    /// parties play as many roles as two groups need. If not, it has no match. O(regions) lookups in the table.
    pub fn could_match(
        &self,
        ticket: &Ticket,
        needed: [u8; ROLE_COUNT],
        table: &mut CompositionTable,
    ) -> bool {
        let lacks = |(&has, needs): (&u64, u8)| has < 2 * u64::from(needs);
        if self.roles.iter().zip(needed).any(lacks) {
            return false;
        }
        let me = single_party(ticket.size);
        let mut fits = |here: &Counts| {
            let with = |at: usize| self.unrestricted[at].saturating_add(here[at]);
            table.fits(
                &me,
                &std::array::from_fn(|at| with(at).saturating_sub(me[at])),
            )
        };
        let place = regions(ticket);
        let mut open = (0..32).filter(|region| place >> region & 1 == 1);
        if self.region_restricted == 0 {
            return fits(&[0; 5]);
        }
        open.any(|region| fits(&self.of_region[region]))
    }

    fn update_counts(&mut self, ticket: &Ticket, by: i32) {
        let size = usize::from(ticket.size.clamp(1, 5)) - 1;
        let add = |count: &mut u32| *count = count.wrapping_add_signed(by);
        match regions(ticket) {
            u32::MAX => add(&mut self.unrestricted[size]),
            place => {
                add(&mut self.region_restricted);
                let open = (0..32).filter(|region| place >> region & 1 == 1);
                open.for_each(|region| add(&mut self.of_region[region][size]));
            }
        }
        for (count, plays) in self.roles.iter_mut().zip(roles(ticket)) {
            *count = count.wrapping_add_signed(i64::from(by) * i64::from(plays));
        }
        let lists = ticket.preferences.as_ref();
        if lists.is_some_and(|wishes| !wishes.avoid.is_empty()) {
            add(&mut self.avoiders);
        }
    }

    fn entry_of(&self, ticket: &Ticket, slot: u32) -> SkillEntry {
        let skill = match self.measure {
            SkillMeasure::Skill => ticket.skill,
            SkillMeasure::None => 0,
            SkillMeasure::Leader {
                rank_weight_percent,
            } => {
                let percent = 100 + u64::from(ticket.level) * u64::from(rank_weight_percent);
                let weighted = u128::from(ticket.leader_strength) * u128::from(percent) / 100;
                i32::try_from(weighted).unwrap_or(i32::MAX)
            }
        };
        let mut entry = SkillEntry::new(skill, ticket.party.number(), slot, ticket.size);
        (entry.has_preferences, entry.level) = (ticket.preferences.is_some(), ticket.level);
        entry
    }
}
