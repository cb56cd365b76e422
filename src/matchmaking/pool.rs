//! Who waits in one mode, by age and by skill at once.
//!
//! Invariant: the [`Queue`] and the order [`BySkill`] hold the same parties. Both follow the requests, so that
//! a heartbeat finds its parties in order and sorts nothing.
//!
//! Cost: O(log n) a request.

use super::by_skill::{BySkill, Entry};
use super::queue::{Age, Queue};
use super::ticket::Ticket;

/// What the order of skill goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The skill of the party.
    Skill,
    /// Nothing: all count as equal.
    None,
    /// The strength of its leader, each rank (the party's level) adding this many percent.
    Leader {
        /// Percent a rank.
        rank_weight_percent: u32,
    },
}

/// The parties that wait in one mode.
#[derive(Clone, Debug)]
pub struct Pool {
    queue: Queue,
    by_skill: BySkill,
    measure: Measure,
}

impl Pool {
    /// An empty pool.
    #[must_use]
    pub fn new(measure: Measure) -> Self {
        Self {
            queue: Queue::default(),
            by_skill: BySkill::default(),
            measure,
        }
    }

    /// The parties by age.
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The parties by skill.
    #[must_use]
    pub const fn by_skill(&self) -> &BySkill {
        &self.by_skill
    }

    /// Lets a party wait and returns its slot.
    pub fn insert(&mut self, ticket: Ticket) -> u32 {
        let mut entry = self.entry_of(&ticket, 0);
        entry.slot = self.queue.insert(ticket);
        self.by_skill.insert(entry);
        entry.slot
    }

    /// Takes the party in `slot` out, if one is there.
    pub fn remove(&mut self, slot: u32) -> Option<Ticket> {
        let ticket = self.queue.remove(slot)?;
        let known = self.by_skill.remove(&self.entry_of(&ticket, slot));
        debug_assert!(known, "who waits has a place by skill");
        Some(ticket)
    }

    /// The party in `slot`, as it stands in the order of skill.
    #[must_use]
    pub fn entry(&self, slot: u32) -> Option<Entry> {
        let ticket = self.queue.ticket(slot)?;
        Some(self.entry_of(ticket, slot))
    }

    /// How long the party in `slot` has waited, to be compared.
    #[must_use]
    pub fn age(&self, slot: u32) -> Age {
        self.queue.age(slot)
    }

    fn entry_of(&self, ticket: &Ticket, slot: u32) -> Entry {
        let skill = match self.measure {
            Measure::Skill => ticket.skill,
            Measure::None => 0,
            Measure::Leader {
                rank_weight_percent,
            } => {
                let percent = 100 + u64::from(ticket.level) * u64::from(rank_weight_percent);
                let weighted = u128::from(ticket.leader_strength) * u128::from(percent) / 100;
                i32::try_from(weighted).unwrap_or(i32::MAX)
            }
        };
        let mut entry = Entry::new(skill, ticket.party, slot, ticket.size);
        (entry.wishes, entry.level) = (ticket.wishes.is_some(), ticket.level);
        entry
    }
}
