//! The queue of viewers that may gain a target from a scan.
//!
//! A doubly linked list through two arrays indexed by object id: each id is in it once at most, and joining,
//! leaving from anywhere and serving the first are O(1) without allocation.
//! Invariant: first in, first out; an id that leaves and joins again goes to the end.

use throng_core::memory::MemoryUse;

/// No neighbour in the queue.
const NONE: u32 = u32::MAX;
/// This id is not queued.
const ABSENT: u32 = u32::MAX - 1;

/// A first-in-first-out queue of distinct ids with removal from the middle. 8 bytes for each id ever seen.
#[derive(Clone, Debug, MemoryUse)]
pub struct RefillQueue {
    next: Vec<u32>,
    previous: Vec<u32>,
    first: u32,
    last: u32,
    len: usize,
}

impl Default for RefillQueue {
    fn default() -> Self {
        Self {
            next: Vec::new(),
            previous: Vec::new(),
            first: NONE,
            last: NONE,
            len: 0,
        }
    }
}

impl RefillQueue {
    /// Makes room for the ids below `ids`.
    pub fn grow(&mut self, ids: usize) {
        if ids > self.next.len() {
            self.next.resize(ids, ABSENT);
            self.previous.resize(ids, ABSENT);
        }
    }

    /// The number of queued ids.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether this id is queued.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.next
            .get(id as usize)
            .is_some_and(|&next| next != ABSENT)
    }

    /// The id that has waited longest.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Appends an id; false if it is queued already or there is no room for it (see
    /// [`grow`](Self::grow)).
    pub fn push(&mut self, id: u32) -> bool {
        if id as usize >= self.next.len() || self.contains(id) {
            return false;
        }
        self.next[id as usize] = NONE;
        self.previous[id as usize] = self.last;
        match self.last {
            NONE => self.first = id,
            last => self.next[last as usize] = id,
        }
        self.last = id;
        self.len += 1;
        true
    }

    /// Removes the id that has waited longest.
    pub fn pop(&mut self) -> Option<u32> {
        let first = self.first;
        self.remove(first).then_some(first)
    }

    /// Removes an id from any position; false if it is not queued.
    pub fn remove(&mut self, id: u32) -> bool {
        if !self.contains(id) {
            return false;
        }
        let (previous, next) = (self.previous[id as usize], self.next[id as usize]);
        match previous {
            NONE => self.first = next,
            previous => self.next[previous as usize] = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.previous[next as usize] = previous,
        }
        self.next[id as usize] = ABSENT;
        self.previous[id as usize] = ABSENT;
        self.len -= 1;
        true
    }

    /// All queued ids, in the order in which they are served.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.first(), |&id| {
            let next = self.next[id as usize];
            (next != NONE).then_some(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum RefillOp {
        Push(u32),
        Remove(u32),
        Pop,
    }

    fn op() -> impl Strategy<Value = RefillOp> {
        prop_oneof![
            3 => (0u32..12).prop_map(RefillOp::Push),
            2 => (0u32..12).prop_map(RefillOp::Remove),
            1 => Just(RefillOp::Pop),
        ]
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn refill_queue_matches_a_deque_without_duplicates(ops in prop::collection::vec(op(), 0..80)) {
            let mut queue = RefillQueue::default();
            queue.grow(10);
            let mut model: VecDeque<u32> = VecDeque::new();
            for op in ops {
                match op {
                    RefillOp::Push(id) => {
                        let joins = id < 10 && !model.contains(&id);
                        prop_assert_eq!(queue.push(id), joins);
                        if joins {
                            model.push_back(id);
                        }
                    }
                    RefillOp::Remove(id) => {
                        let place = model.iter().position(|&other| other == id);
                        prop_assert_eq!(queue.remove(id), place.is_some());
                        place.map(|place| model.remove(place));
                    }
                    RefillOp::Pop => prop_assert_eq!(queue.pop(), model.pop_front()),
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert!(queue.iter().eq(model.iter().copied()));
                prop_assert!((0..12).all(|id| queue.contains(id) == model.contains(&id)));
            }
        }
    }
}
