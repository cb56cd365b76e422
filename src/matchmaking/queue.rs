//! The tickets that wait in one mode, longest-waiting first.
//!
//! A doubly linked list in a slab: insertion at the tail, removal by slot and expiry at the head are O(1), and
//! nothing is allocated once the slab has grown. The order is (since_tick, order of insertion); a ticket whose
//! waiting time is given back is linked in at its place, found from the nearer end.
//!
//! Invariant: walking from the head, `since_tick` never falls. Who is queued where is not known here but to
//! the [`Matcher`](super::matcher::Matcher), since a player may wait in one mode only.

use super::ticket::Ticket;

/// No slot.
const NONE: u32 = u32::MAX;

/// The tickets that wait in one mode.
#[derive(Clone, Debug)]
pub struct Queue {
    slots: Vec<Slot>,
    free: Vec<u32>,
    head: u32,
    tail: u32,
    players: u64,
}

#[derive(Clone, Debug)]
struct Slot {
    ticket: Option<Ticket>,
    previous: u32,
    next: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            head: NONE,
            tail: NONE,
            players: 0,
        }
    }
}

impl Queue {
    /// Tickets that wait. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether nobody waits. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Players who wait. O(1).
    #[must_use]
    pub const fn players(&self) -> u64 {
        self.players
    }

    /// The ticket in `slot`, if one is there. O(1).
    #[must_use]
    pub fn ticket(&self, slot: u32) -> Option<&Ticket> {
        self.slots.get(slot as usize)?.ticket.as_ref()
    }

    /// The slot of the longest-waiting ticket. O(1).
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// All tickets with their slots, longest-waiting first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Ticket)> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            let here = std::mem::replace(&mut at, slot.next);
            slot.ticket.as_ref().map(|ticket| (here, ticket))
        })
    }

    /// Queues a ticket behind all that have waited as long or longer, and returns its slot, which stays its own
    /// until it is removed. O(1) for a ticket that comes now; O(distance to the nearer end) for one whose
    /// waiting time is given back.
    pub fn insert(&mut self, ticket: Ticket) -> u32 {
        let previous = self.last_not_after(ticket.since_tick);
        let next = if previous == NONE {
            self.head
        } else {
            self.slots[previous as usize].next
        };
        self.players += u64::from(ticket.size);
        let slot = Slot {
            ticket: Some(ticket),
            previous,
            next,
        };
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
        self.set_next(previous, at);
        self.set_previous(next, at);
        at
    }

    /// Takes the ticket out of `slot`, if one is there. O(1).
    pub fn remove(&mut self, slot: u32) -> Option<Ticket> {
        let ticket = self.slots.get_mut(slot as usize)?.ticket.take()?;
        let Slot { previous, next, .. } = self.slots[slot as usize];
        self.set_next(previous, next);
        self.set_previous(next, previous);
        self.free.push(slot);
        self.players -= u64::from(ticket.size);
        Some(ticket)
    }

    /// The last ticket that is not younger than `since_tick`, looked for from both ends at once.
    fn last_not_after(&self, since_tick: u64) -> u32 {
        let since = |slot: u32| self.ticket(slot).map_or(0, |ticket| ticket.since_tick);
        let (mut front, mut back) = (self.head, self.tail);
        let mut before_front = NONE;
        loop {
            if back == NONE || since(back) <= since_tick {
                return back;
            }
            if front == NONE || since(front) > since_tick {
                return before_front;
            }
            before_front = front;
            front = self.slots[front as usize].next;
            back = self.slots[back as usize].previous;
        }
    }

    fn set_next(&mut self, slot: u32, next: u32) {
        match self.slots.get_mut(slot as usize) {
            Some(slot) => slot.next = next,
            None => self.head = next,
        }
    }

    fn set_previous(&mut self, slot: u32, previous: u32) {
        match self.slots.get_mut(slot as usize) {
            Some(slot) => slot.previous = previous,
            None => self.tail = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matchmaking::mode::ModeId;
    use proptest::prelude::*;

    fn ticket(party: u32, since_tick: u64) -> Ticket {
        Ticket {
            party,
            size: 1,
            power: 0,
            skill: 0,
            level: 0,
            leader_strength: 0,
            mode: ModeId(0),
            since_tick,
            members: [u64::from(party)].into_iter().collect(),
        }
    }

    #[test]
    fn given_back_waiting_time_puts_a_ticket_at_its_old_place() {
        let mut queue = Queue::default();
        for (party, since) in [(1, 10), (2, 20), (3, 30)] {
            queue.insert(ticket(party, since));
        }
        queue.insert(ticket(4, 20));
        queue.insert(ticket(5, 5));
        let order: Vec<u32> = queue.iter().map(|(_, ticket)| ticket.party).collect();
        assert_eq!(order, [5, 1, 2, 4, 3]);
    }

    #[test]
    fn a_slot_that_is_empty_or_unknown_gives_nothing() {
        let mut queue = Queue::default();
        let slot = queue.insert(ticket(1, 0));
        assert!(queue.remove(slot).is_some());
        assert!(queue.remove(slot).is_none());
        assert!(queue.remove(77).is_none());
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn the_queue_agrees_with_a_sorted_vector(script in prop::collection::vec((0u64..12, any::<bool>(), 0usize..40), 0..60)) {
            let mut queue = Queue::default();
            let mut model: Vec<(u64, u32, u32)> = Vec::new();
            for (party, (since, insert, pick)) in (0u32..).zip(script) {
                if insert || model.is_empty() {
                    let slot = queue.insert(ticket(party, since));
                    let at = model.partition_point(|entry| entry.0 <= since);
                    model.insert(at, (since, party, slot));
                } else {
                    let (_, party, slot) = model.remove(pick % model.len());
                    prop_assert_eq!(queue.remove(slot).map(|ticket| ticket.party), Some(party));
                }
                let walked: Vec<_> = queue.iter().map(|(slot, ticket)| (ticket.since_tick, ticket.party, slot)).collect();
                prop_assert_eq!(&walked, &model);
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.players(), model.len() as u64);
                prop_assert_eq!(queue.first(), model.first().map(|entry| entry.2));
            }
        }
    }
}
