//! The open list: nodes waiting to be expanded, the most promising first.
//!
//! A heap with four children per node, which is shallower than a binary one and reads the children from one or two
//! cache lines. A cheaper path to a waiting node adds a second entry; the search skips entries of closed nodes. That is one
//! entry in ten to thirty, and avoids a write into the node pool for every move in the heap: storing each node's position and
//! moving its entry up took a fifth to a third more time.
//!
//! Order: least f. Among equals it is that of the heap, which follows from the earlier entries, and so
//! from the search alone. Preferring the largest g or the latest node among them changed the number of expansions by less
//! than one in a hundred, and cost an unpredictable comparison. Buckets of half a tile, with a heap for the current
//! one only, took 2 to 6 % more time with every algorithm but the graph (3 % less): the list has only a few hundred
//! entries.
//!
//! Cost: O(log n) for each change, 16 bytes per entry.

use throng_core::memory::MemoryUse;

use super::nodes::NodeId;
use crate::cost::PathCost;

/// The number of children of a heap node.
const ARITY: usize = 4;

/// The initial capacity for a search; it grows as needed.
const SHORT: u32 = 1 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    f: PathCost,
    node: NodeId,
}

/// The heap.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct OpenList {
    heap: Vec<Entry>,
    /// Entries put on and taken off since the last reset.
    operations: u32,
}

impl OpenList {
    /// Empties the list, and reserves memory for a search with a small limit, where nodes with a cheaper path have two entries.
    pub(super) fn reset(&mut self, node_limit: u32) {
        self.heap.clear();
        self.operations = 0;
        let entries = node_limit.min(SHORT) as usize * 9 / 8;
        if self.heap.capacity() < entries {
            self.heap.reserve_exact(entries);
        }
    }

    /// The least f in the list.
    #[inline]
    pub(super) fn least_f(&self) -> Option<PathCost> {
        self.heap.first().map(|entry| entry.f)
    }

    /// The node at the head.
    #[inline]
    pub(super) fn head(&self) -> Option<NodeId> {
        self.heap.first().map(|entry| entry.node)
    }

    /// Adds a node, or a cheaper path to one in the list.
    #[inline]
    pub(super) fn push(&mut self, node: NodeId, f: PathCost) {
        let entry = Entry { f, node };
        self.operations = self.operations.wrapping_add(1);
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1, entry);
    }

    /// Takes the first entry off the list.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(NodeId, PathCost)> {
        let first = *self.heap.first()?;
        self.operations = self.operations.wrapping_add(1);
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(last);
        }
        Some((first.node, first.f))
    }

    /// Entries put on and taken off since the last reset.
    pub(super) fn operations(&self) -> u32 {
        self.operations
    }

    /// Fills the hole at the top with the entries below, and the hole at the bottom with `entry`.
    ///
    /// `entry` comes from the bottom and usually goes back there, so the hole goes all the way down without comparing it.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let heap = &mut self.heap[..];
        let mut place = 0;
        loop {
            let first = place * ARITY + 1;
            let least = match heap
                .get(first..)
                .and_then(|rest| rest.first_chunk::<ARITY>())
            {
                Some([a, b, c, d]) => {
                    // Selections, not branches: which child is least is unpredictable.
                    let (left, left_f) = if b.f < a.f { (1, b.f) } else { (0, a.f) };
                    let (right, right_f) = if d.f < c.f { (3, d.f) } else { (2, c.f) };
                    first + if right_f < left_f { right } else { left }
                }
                None => match (first..heap.len()).min_by_key(|&child| heap[child].f) {
                    Some(least) => least,
                    None => break,
                },
            };
            heap[place] = heap[least];
            place = least;
        }
        self.sift_up(place, entry);
    }

    /// Puts `entry` into the hole at `place` or above it.
    #[inline]
    fn sift_up(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let above = (place - 1) / ARITY;
            if self.heap[above].f <= entry.f {
                break;
            }
            self.heap[place] = self.heap[above];
            place = above;
        }
        self.heap[place] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(draws!())]

        /// The model is a plain list, searched for the least at each pop.
        #[test]
        fn entries_pop_in_sorted_order(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0u32..20), 0..200),
        ) {
            let mut open = OpenList::default();
            let mut model: Vec<(PathCost, NodeId)> = Vec::new();
            for (node, step) in (0..).zip(steps) {
                if let Some(f) = step {
                    open.push(node, PathCost::straight(f));
                    model.push((PathCost::straight(f), node));
                    continue;
                }
                let least = model.iter().map(|&(f, _)| f).min();
                prop_assert_eq!(open.least_f(), least);
                let popped = open.pop();
                prop_assert_eq!(popped.map(|(_, f)| f), least);
                let waiting = model.len();
                model.retain(|&(f, node)| Some((node, f)) != popped);
                prop_assert_eq!(model.len(), waiting - usize::from(popped.is_some()));
            }
        }
    }
}
