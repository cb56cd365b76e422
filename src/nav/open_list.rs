//! The open list: nodes waiting to be expanded, the most promising first.
//!
//! A heap with four children a node, which is shallower than a binary one and reads the children out of one or two
//! cache lines. Each node knows its place, so a cheaper way to a waiting node moves it up where it stands instead of
//! adding it twice.
//!
//! Order: least f; then largest g, which is nearest to the goal; then least tile. It is total, so the order of
//! expansions never depends on how the heap happens to lie.
//!
//! Cost: O(log n) for each change, 16 bytes an entry.

use super::cost::Cost;
use super::nodes::{NONE, Node, NodeId, TileId};

/// Children of a heap node.
const ARITY: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Entry {
    f: Cost,
    tile: TileId,
    node: NodeId,
}

/// The heap. It writes [`Node::place`] of the nodes it is given, which must be the same list in every call.
#[derive(Debug, Default)]
pub(super) struct OpenList {
    heap: Vec<Entry>,
}

impl OpenList {
    /// Empties the list; the places in the nodes are left stale.
    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }

    /// The least f waiting.
    #[inline]
    pub(super) fn least_f(&self) -> Option<Cost> {
        self.heap.first().map(|entry| entry.f)
    }

    /// Adds a node that is not on the list.
    #[inline]
    pub(super) fn push(&mut self, nodes: &mut [Node], node: NodeId, f: Cost) {
        let entry = Entry {
            f,
            tile: nodes[node as usize].tile,
            node,
        };
        self.heap.push(entry);
        self.sift_up(nodes, self.heap.len() - 1, entry);
    }

    /// Lowers the f of a waiting node; its g in `nodes` is the new one already.
    #[inline]
    pub(super) fn decrease(&mut self, nodes: &mut [Node], node: NodeId, f: Cost) {
        let place = nodes[node as usize].place as usize;
        debug_assert!(self.heap[place].node == node && self.heap[place].f >= f);
        let entry = Entry {
            f,
            ..self.heap[place]
        };
        self.sift_up(nodes, place, entry);
    }

    /// Takes the first node off the list and marks it closed.
    #[inline]
    pub(super) fn pop(&mut self, nodes: &mut [Node]) -> Option<(NodeId, Cost)> {
        let first = *self.heap.first()?;
        nodes[first.node as usize].place = NONE;
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(nodes, last);
        }
        Some((first.node, first.f))
    }

    /// Bytes held on the heap.
    pub(super) fn memory_bytes(&self) -> usize {
        self.heap.capacity() * size_of::<Entry>()
    }

    /// Puts `entry` at `place` or above it.
    #[inline]
    fn sift_up(&mut self, nodes: &mut [Node], mut place: usize, entry: Entry) {
        while place > 0 {
            let above = (place - 1) / ARITY;
            if !is_before(nodes, entry, self.heap[above]) {
                break;
            }
            self.put(nodes, place, self.heap[above]);
            place = above;
        }
        self.put(nodes, place, entry);
    }

    /// Puts `entry` at the top or below it; the top is free.
    #[inline]
    fn sift_down(&mut self, nodes: &mut [Node], entry: Entry) {
        let mut place = 0;
        loop {
            let children = place * ARITY + 1..self.heap.len().min(place * ARITY + 1 + ARITY);
            if children.is_empty() {
                break;
            }
            let mut least = children.start;
            for child in children.skip(1) {
                if is_before(nodes, self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if !is_before(nodes, self.heap[least], entry) {
                break;
            }
            self.put(nodes, place, self.heap[least]);
            place = least;
        }
        self.put(nodes, place, entry);
    }

    #[inline]
    fn put(&mut self, nodes: &mut [Node], place: usize, entry: Entry) {
        self.heap[place] = entry;
        nodes[entry.node as usize].place = place as u32;
    }
}

/// Whether `a` is to be expanded before `b`. Most answers come from f alone, so g stays in the nodes.
#[inline]
fn is_before(nodes: &[Node], a: Entry, b: Entry) -> bool {
    if a.f != b.f {
        return a.f < b.f;
    }
    let (g_a, g_b) = (nodes[a.node as usize].g, nodes[b.node as usize].g);
    if g_a != g_b {
        g_a > g_b
    } else {
        a.tile < b.tile
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::IVec2;
    use proptest::prelude::*;

    /// What may happen to an open list; numbers are taken modulo what is possible.
    #[derive(Clone, Debug)]
    enum Step {
        Push { f: u32, g: u32 },
        Decrease { which: usize, by: u32 },
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u32..20, 0u32..20).prop_map(|(f, g)| Step::Push { f: f + 20, g }),
            1 => (any::<usize>(), 0u32..6).prop_map(|(which, by)| Step::Decrease { which, by }),
            2 => Just(Step::Pop),
        ]
    }

    proptest! {
        /// The model is a plain list, searched for the first by (f, largest g, tile) at each pop.
        #[test]
        fn nodes_come_out_as_from_a_sorted_list(steps in prop::collection::vec(step(), 0..200)) {
            let mut nodes: Vec<Node> = Vec::new();
            let mut open = OpenList::default();
            let mut model: Vec<(u32, u32, NodeId)> = Vec::new(); // f, g, node; a node's tile rises with its number
            for step in steps {
                match step {
                    Step::Push { f, g } => {
                        let id = nodes.len() as NodeId;
                        let tile = TileId::new(IVec2::new(id as i32, 0));
                        nodes.push(Node { g: Cost::straight(g), tile, parent: NONE, place: NONE, direction: None });
                        open.push(&mut nodes, id, Cost::straight(f));
                        model.push((f, g, id));
                    }
                    Step::Decrease { which, by } if !model.is_empty() => {
                        let which = which % model.len();
                        let (f, g, id) = &mut model[which];
                        let by = by.min(*g);
                        *f -= by;
                        *g -= by;
                        nodes[*id as usize].g = Cost::straight(*g);
                        open.decrease(&mut nodes, *id, Cost::straight(*f));
                    }
                    Step::Decrease { .. } => {}
                    Step::Pop => {
                        let first = model.iter().copied().min_by_key(|&(f, g, id)| (f, std::cmp::Reverse(g), id));
                        prop_assert_eq!(open.least_f(), first.map(|(f, _, _)| Cost::straight(f)));
                        prop_assert_eq!(open.pop(&mut nodes), first.map(|(f, _, id)| (id, Cost::straight(f))));
                        if let Some(first) = first {
                            model.retain(|&other| other != first);
                            prop_assert_eq!(nodes[first.2 as usize].place, NONE);
                        }
                    }
                }
            }
        }
    }
}
