//! The waiting tickets of one mode, longest-waiting first.
//!
//! A doubly linked list for each party size, in an arena: insertion at the tail, removal by slot and expiry
//! at the head are O(1), and nothing is allocated once the arena has grown. The order is (since_tick, order of
//! insertion), over all sizes together; a [`QueueCursor`] skips sizes without visiting their parties. The last
//! ticket of each tick is known, so that a ticket with restored waiting time is inserted in O(log ticks).
//!
//! Invariant: [`TicketAge`] ascends from the head. Only the
//! [`MatchmakingCore`](crate::MatchmakingCore) knows which party is in which queue, since a player may wait in one mode only.

use std::collections::BTreeMap;

use throng_core::memory::MemoryUse;

use crate::ticket::{PARTY_SIZE_MAX, Ticket};

/// The sort key of tickets: the tick since which they wait, then the order of insertion. A lower age has
/// waited longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TicketAge {
    since_tick: u64,
    nth: u64,
}

impl TicketAge {
    /// The tick since which it waits.
    #[must_use]
    pub const fn since_tick(self) -> u64 {
        self.since_tick
    }
}

/// No slot.
const NONE: u32 = u32::MAX;

/// The number of party sizes.
const SIZES: usize = PARTY_SIZE_MAX as usize;

/// The list of a party of this size.
fn list_of(size: u8) -> usize {
    debug_assert!(
        (1..=PARTY_SIZE_MAX).contains(&size),
        "a ticket that was checked"
    );
    usize::from(size.clamp(1, PARTY_SIZE_MAX)) - 1
}

/// The waiting tickets of one mode.
#[derive(Clone, Debug, MemoryUse)]
pub struct TicketQueue {
    #[memory(each)]
    slots: Vec<TicketSlot>,
    free: Vec<u32>,
    /// The longest-waiting ticket of each size.
    heads: [u32; SIZES],
    players: u64,
    inserted: u64,
    /// The last slot of each size and starting tick.
    last_of_tick: [BTreeMap<u64, u32>; SIZES],
}

#[derive(Clone, Debug, MemoryUse)]
struct TicketSlot {
    ticket: Option<Ticket>,
    nth: u64,
    previous: u32,
    next: u32,
}

impl Default for TicketQueue {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            heads: [NONE; SIZES],
            players: 0,
            inserted: 0,
            last_of_tick: Default::default(),
        }
    }
}

impl TicketQueue {
    /// The number of waiting tickets. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are no tickets. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of waiting players. O(1).
    #[must_use]
    pub const fn players(&self) -> u64 {
        self.players
    }

    /// The ticket in `slot`, if there is one. O(1).
    #[must_use]
    pub fn ticket(&self, slot: u32) -> Option<&Ticket> {
        self.slots.get(slot as usize)?.ticket.as_ref()
    }

    /// The slot of the longest-waiting ticket. O(1).
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.cursor().next(self, [true; SIZES])
    }

    /// A cursor that starts at the longest-waiting ticket.
    #[must_use]
    pub const fn cursor(&self) -> QueueCursor {
        QueueCursor { at: self.heads }
    }

    /// All tickets with their slots, longest-waiting first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Ticket)> {
        let mut walk = self.cursor();
        std::iter::from_fn(move || {
            let slot = walk.next(self, [true; SIZES])?;
            self.ticket(slot).map(|ticket| (slot, ticket))
        })
    }

    /// The age of the ticket in `slot`, for comparisons; the youngest of all when the slot is empty. O(1).
    #[must_use]
    pub fn age(&self, slot: u32) -> TicketAge {
        let found = self.slots.get(slot as usize);
        let age = found.and_then(|found| {
            let since_tick = found.ticket.as_ref()?.since_tick;
            let nth = found.nth;
            Some(TicketAge { since_tick, nth })
        });
        age.unwrap_or(TicketAge {
            since_tick: u64::MAX,
            nth: u64::MAX,
        })
    }

    /// Inserts a ticket after all that have waited as long or longer, and returns its slot, which it keeps
    /// until it is removed. O(log ticks).
    pub fn insert(&mut self, ticket: Ticket) -> u32 {
        let (since_tick, list) = (ticket.since_tick, list_of(ticket.size));
        let before = self.last_of_tick[list].range(..=since_tick).next_back();
        let previous = before.map_or(NONE, |(_, &slot)| slot);
        let next = match self.slots.get(previous as usize) {
            Some(slot) => slot.next,
            None => self.heads[list],
        };
        self.players += u64::from(ticket.size);
        let slot = TicketSlot {
            ticket: Some(ticket),
            nth: self.inserted,
            previous,
            next,
        };
        self.inserted += 1;
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.set_next(list, previous, at);
        self.set_previous(next, at);
        self.last_of_tick[list].insert(since_tick, at);
        at
    }

    /// Removes the ticket in `slot`, if there is one. O(log ticks).
    pub fn remove(&mut self, slot: u32) -> Option<Ticket> {
        let ticket = self.slots.get_mut(slot as usize)?.ticket.take()?;
        let TicketSlot { previous, next, .. } = self.slots[slot as usize];
        let (since, list) = (ticket.since_tick, list_of(ticket.size));
        let waits_since = |slot: u32| self.ticket(slot).map(|ticket| ticket.since_tick);
        // Only the last ticket of a tick is recorded; the one before replaces it.
        if waits_since(next) != Some(since) {
            if waits_since(previous) == Some(since) {
                self.last_of_tick[list].insert(since, previous);
            } else {
                self.last_of_tick[list].remove(&since);
            }
        }
        self.set_next(list, previous, next);
        self.set_previous(next, previous);
        self.free.push(slot);
        self.players -= u64::from(ticket.size);
        Some(ticket)
    }

    fn set_next(&mut self, list: usize, slot: u32, next: u32) {
        match self.slots.get_mut(slot as usize) {
            Some(slot) => slot.next = next,
            None => self.heads[list] = next,
        }
    }

    fn set_previous(&mut self, slot: u32, previous: u32) {
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.previous = previous;
        }
    }
}

/// A cursor over a queue, longest-waiting first.
///
/// Tickets may be removed meanwhile, if [`skip_leaving`](Self::skip_leaving) is called before.
#[derive(Clone, Copy, Debug)]
pub struct QueueCursor {
    at: [u32; SIZES],
}

impl QueueCursor {
    /// The slot of the next ticket of a `wanted` size; `None` after the last. O(1).
    pub fn next(&mut self, queue: &TicketQueue, wanted: [bool; SIZES]) -> Option<u32> {
        let nexts = self.at.iter().enumerate();
        let nexts = nexts.filter(|&(list, &slot)| wanted[list] && slot != NONE);
        let (list, &slot) = nexts.min_by_key(|&(_, &slot)| queue.age(slot))?;
        self.at[list] = queue.slots[slot as usize].next;
        Some(slot)
    }

    /// Skips tickets that are about to be removed. O(tickets²) for those that come next, else O(1).
    pub fn skip_leaving(&mut self, queue: &TicketQueue, leaving: impl Fn(u32) -> bool) {
        for at in &mut self.at {
            while *at != NONE && leaving(*at) {
                *at = queue.slots[*at as usize].next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::ModeId;
    use proptest::prelude::*;

    fn ticket(party: u32, since_tick: u64) -> Ticket {
        Ticket {
            party: party.into(),
            size: 1,
            power: 0,
            skill: 0,
            level: 0,
            leader_strength: 0,
            mode: ModeId(0),
            since_tick,
            members: [u64::from(party).into()].into_iter().collect(),
            preferences: None,
        }
    }

    #[test]
    fn restored_waiting_time_restores_the_queue_position() {
        let mut queue = TicketQueue::default();
        for (party, since) in [(1, 10), (2, 20), (3, 30)] {
            queue.insert(ticket(party, since));
        }
        queue.insert(ticket(4, 20));
        queue.insert(ticket(5, 5));
        let order: Vec<u32> = queue
            .iter()
            .map(|(_, ticket)| ticket.party.number())
            .collect();
        assert_eq!(order, [5, 1, 2, 4, 3]);
    }

    #[test]
    fn empty_or_unknown_slot_returns_none() {
        let mut queue = TicketQueue::default();
        let slot = queue.insert(ticket(1, 0));
        assert!(queue.remove(slot).is_some());
        assert!(queue.remove(slot).is_none());
        assert!(queue.remove(77).is_none());
        assert!(queue.is_empty());
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn queue_matches_a_sorted_vector(
            script in prop::collection::vec((0u64..12, any::<bool>(), 0usize..40, 1u8..=5), 0..60),
        ) {
            let mut queue = TicketQueue::default();
            let mut model: Vec<(u64, u32, u32)> = Vec::new();
            for (party, (since, insert, pick, size)) in (0u32..).zip(script) {
                if insert || model.is_empty() {
                    let slot = queue.insert(Ticket { size, ..ticket(party, since) });
                    let at = model.partition_point(|entry| entry.0 <= since);
                    model.insert(at, (since, party, slot));
                } else {
                    let (_, party, slot) = model.remove(pick % model.len());
                    prop_assert_eq!(queue.remove(slot).map(|ticket| ticket.party.number()), Some(party));
                }
                let walked: Vec<_> = queue.iter().map(|(slot, ticket)| (ticket.since_tick, ticket.party.number(), slot)).collect();
                prop_assert_eq!(&walked, &model);
                let ages: Vec<TicketAge> = walked.iter().map(|&(_, _, slot)| queue.age(slot)).collect();
                prop_assert!(ages.is_sorted_by(|a, b| a < b));
                prop_assert_eq!(queue.len(), model.len());
                let sizes = queue.iter().map(|(_, ticket)| u64::from(ticket.size));
                prop_assert_eq!(queue.players(), sizes.sum::<u64>());
                let mut walk = queue.cursor();
                let odd = std::iter::from_fn(|| walk.next(&queue, [true, false, true, false, true]));
                let all = model.iter().map(|entry| entry.2);
                let is_odd = |&slot: &u32| queue.ticket(slot).is_some_and(|ticket| ticket.size % 2 == 1);
                prop_assert_eq!(odd.collect::<Vec<u32>>(), all.filter(is_odd).collect::<Vec<u32>>());
                prop_assert_eq!(queue.first(), model.first().map(|entry| entry.2));
            }
        }
    }
}
