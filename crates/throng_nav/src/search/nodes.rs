//! The generated nodes of a search, and the index from key to node. A key is a tile, or the number of a jump point.
//!
//! ```text
//! hashed    key ──▶ open addressing, as large as the nodes need ─────────────▶ node number ──▶ nodes[…]
//! chunked   key ──▶ directory[chunk] ──▶ chunk of 32×32 tiles, from a pool ──▶ node number ──▶ nodes[…]
//! paged     key ──▶ pages[page] ─────────────────────────────────────────────▶ page of 32 nodes, from a pool
//! ```
//! Nodes are in one list in the order of generation, except for the pages. The index is chosen by the distribution of keys:
//!
//! - *hashed*: the scattered tiles of jump point searches, and every search with a small node limit, whose scratch then
//!   stays in the fastest cache. The chunked one took a quarter to a third more time there, as each node touches a chunk
//!   of its own.
//! - *chunked*: the dense tiles of A*. Its size depends on the area that a search has touched, not on the map.
//! - *paged*: the numbers of jump points; neighbours have close numbers. A separate entry for each instead of pages
//!   took twice the memory in a town of 4,096 tiles per side, and as long with one search at a time; with eight alternating
//!   searches, pages take a twentieth less, on game maps up to a twentieth more.
//!
//! None is cleared as a whole between searches. The hashed and the paged index clear the entries that were set. Each level of
//! the chunked one is a sparse set: an entry counts only if its target is in use *and* points back (Briggs and
//! Torczon, "An efficient representation for sparse sets", 1993), so clearing it means setting two lengths to zero, and stale
//! entries do no harm.
//!
//! Cost: O(1) to look up and add; clearing is O(nodes) for the hashed index, O(pages touched) for the paged one. Memory:
//! 16 bytes per node, and 5 to 10 for its slots; 4 kB per chunk touched and 4 bytes per chunk of the largest map seen; half a
//! kB per page touched and 4 bytes per page. It is reused between searches, so a warm search allocates nothing.

use prefetch_index::prefetch_index;
use throng_core::memory::MemoryUse;

use crate::cost::PathCost;
use crate::direction::Direction;
use crate::key::Key;

/// The number of a node in the order of generation.
pub(super) type NodeId = u32;

/// The parent of the start.
pub(super) const NONE: NodeId = (1 << PARENT_BITS) - 1;

const CHUNK_BITS: u32 = 5;
const CHUNK_SIDE: u32 = 1 << CHUNK_BITS;
const CHUNK_ENTRIES: u32 = CHUNK_SIDE * CHUNK_SIDE;

/// The initial number of slots of the hashed index of a search without a small limit.
const SLOTS: usize = 1 << 12;
const EMPTY: NodeId = NodeId::MAX;

/// The number of nodes of a page.
const PAGE_NODES: u32 = 32;

const PARENT_BITS: u32 = 27;
const DIRECTION_BITS: u32 = 4;
const CLOSED: u32 = 1 << (PARENT_BITS + DIRECTION_BITS);

/// The state of a tile or jump point that a search has reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// The least cost from the start found so far; final once the node is closed.
    pub(super) g: PathCost,
    /// The tile or jump point.
    pub(super) key: Key,
    /// Parent, direction and whether the node is closed, in one word.
    link: u32,
}

const _: () = assert!(size_of::<Node>() == 16);

impl Node {
    /// An open node. The direction is that of the last step of the path to it; `None` for the start.
    #[inline]
    pub(super) fn new(key: Key, g: PathCost, parent: NodeId, direction: Option<Direction>) -> Self {
        let direction = direction.map_or(Direction::ALL.len() as u32, |direction| direction as u32);
        Self {
            g,
            key,
            link: direction << PARENT_BITS | parent,
        }
    }

    /// The node from which `g` was reached; [`NONE`] for the start.
    #[inline]
    pub(super) fn parent(&self) -> NodeId {
        self.link & NONE
    }

    /// The direction of the last step of the path to it; `None` for the start.
    #[inline]
    pub(super) fn direction(&self) -> Option<Direction> {
        let direction = self.link >> PARENT_BITS & ((1 << DIRECTION_BITS) - 1);
        Direction::ALL.get(direction as usize).copied()
    }

    /// Whether the node was expanded.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.link & CLOSED != 0
    }

    /// Marks the node as closed.
    #[inline]
    pub(super) fn close(&mut self) {
        self.link |= CLOSED;
    }
}

/// The index that a search uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Index {
    /// For scattered keys.
    #[default]
    Hashed,
    /// For dense tiles of a map.
    Chunked {
        /// The map's width in tiles.
        width: u32,
        /// The map's height in tiles.
        height: u32,
    },
    /// For numbers below this count, with close numbers for neighbours.
    Paged(u32),
}

/// The node pool and its index.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    index: Index,
    /// The hashed index: node numbers, a power of two of them.
    slots: Vec<NodeId>,
    /// For each chunk of the map, row by row, the number of its chunk of entries.
    directory: Vec<u32>,
    /// For each chunk of entries in use, its chunk of the map.
    owners: Vec<u32>,
    /// The chunks of entries, one after the other: node numbers.
    entries: Vec<NodeId>,
    /// The first node of each page, if it was touched.
    pages: Vec<NodeId>,
    touched: Vec<u32>,
    generated: u32,
}

impl Nodes {
    /// Removes all nodes and prepares for a search. Allocates only for more than any search before.
    pub(super) fn reset(&mut self, index: Index, node_limit: u32) {
        let slots = (node_limit as usize + node_limit as usize / 4).next_power_of_two();
        self.empty_slots();
        if slots < SLOTS {
            // A short search: everything that it can ever need.
            self.index = Index::Hashed;
            if self.slots.len() < slots {
                self.slots.resize(slots, EMPTY);
            }
            if self.nodes.capacity() < node_limit as usize {
                self.nodes.reserve_exact(node_limit as usize);
            }
            return;
        }
        self.index = match index {
            // This many pages would have numbers that do not fit into a link.
            Index::Paged(count) if count >= NONE - PAGE_NODES => Index::Hashed,
            index => index,
        };
        match self.index {
            Index::Hashed => {
                if self.slots.len() < SLOTS {
                    self.slots.resize(SLOTS, EMPTY);
                }
            }
            Index::Chunked { width, height } => {
                let chunks =
                    width.div_ceil(CHUNK_SIDE) as usize * height.div_ceil(CHUNK_SIDE) as usize;
                if self.directory.len() < chunks {
                    self.directory.resize(chunks, 0);
                }
                self.owners.clear();
            }
            Index::Paged(count) => {
                let pages = count.div_ceil(PAGE_NODES) as usize;
                if self.pages.len() < pages {
                    self.pages.resize(pages, EMPTY);
                }
            }
        }
    }

    /// Removes all nodes and their slots.
    fn empty_slots(&mut self) {
        if self.index == Index::Hashed {
            if self.nodes.len() * 8 > self.slots.len() {
                self.slots.fill(EMPTY);
            } else {
                for node in &self.nodes {
                    // From its first slot up to its own, no slot was empty when it was added.
                    let mut slot = first_slot(node.key, self.slots.len());
                    while self.slots[slot] != EMPTY {
                        self.slots[slot] = EMPTY;
                        slot = (slot + 1) & (self.slots.len() - 1);
                    }
                }
            }
        }
        for page in self.touched.drain(..) {
            self.pages[page as usize] = EMPTY;
        }
        self.generated = 0;
        self.nodes.clear();
    }

    /// The number of generated nodes.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.generated
    }

    /// All generated nodes, by ascending number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        (0..)
            .zip(&self.nodes)
            .filter(|(_, node)| node.g < PathCost::MAX)
    }

    /// A node; `None` for [`NONE`].
    #[inline]
    pub(super) fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    /// A node. Numbers come from [`Nodes::find`] and [`Nodes::add`] since the last reset.
    #[inline]
    pub(super) fn get_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// Prefetches the memory that looking up a key reads; all of it is larger than the caches.
    #[inline]
    pub(super) fn prefetch(&self, key: Key) {
        if let Some(&start) = self.pages.get((key.0 / PAGE_NODES) as usize) {
            prefetch_index(&self.nodes, start.wrapping_add(key.0 % PAGE_NODES) as usize);
        }
    }

    /// The node of a key, or the vacant slot for its number, to be filled by [`Nodes::add`].
    #[inline]
    pub(super) fn find(&mut self, key: Key) -> Result<NodeId, VacantSlot> {
        let entry = match self.index {
            Index::Hashed => return self.find_in_slots(key),
            Index::Paged(_) => return self.find_in_pages(key),
            Index::Chunked { width, .. } => self.entry_of(key, width.div_ceil(CHUNK_SIDE)),
        };
        let id = self.entries[entry];
        match self.nodes.get(id as usize) {
            Some(node) if node.key == key => Ok(id),
            _ => Err(VacantSlot(entry)),
        }
    }

    /// Adds a node for a key that [`Nodes::find`] did not find.
    #[inline]
    pub(super) fn add(&mut self, vacancy: VacantSlot, node: Node) -> NodeId {
        self.generated += 1;
        if let Index::Paged(_) = self.index {
            self.nodes[vacancy.0] = node;
            return vacancy.0 as NodeId;
        }
        let id = self.nodes.len() as NodeId;
        self.nodes.push(node);
        if self.index == Index::Hashed {
            self.slots[vacancy.0] = id;
            if self.nodes.len() * 5 > self.slots.len() * 4 {
                self.grow();
            }
        } else {
            self.entries[vacancy.0] = id;
        }
        id
    }

    #[inline]
    fn find_in_pages(&mut self, key: Key) -> Result<NodeId, VacantSlot> {
        let page = key.0 / PAGE_NODES;
        let mut start = self.pages[page as usize];
        if start == EMPTY {
            start = self.allocate_page(page);
        }
        let id = start + key.0 % PAGE_NODES;
        if self.nodes[id as usize].key == key {
            Ok(id)
        } else {
            Err(VacantSlot(id as usize))
        }
    }

    /// Allocates a page of nodes that were not generated, which have no key.
    fn allocate_page(&mut self, page: u32) -> NodeId {
        let start = self.nodes.len();
        if self.nodes.capacity() - start < PAGE_NODES as usize {
            // By a quarter and not by doubling: the memory of the longest search is kept.
            self.nodes.reserve_exact(start / 4 + PAGE_NODES as usize);
        }
        let vacant = Node::new(Key(u32::MAX), PathCost::MAX, NONE, None);
        self.nodes.resize(start + PAGE_NODES as usize, vacant);
        self.pages[page as usize] = start as NodeId;
        self.touched.push(page);
        start as NodeId
    }

    #[inline]
    fn find_in_slots(&self, key: Key) -> Result<NodeId, VacantSlot> {
        let slots = &self.slots[..];
        let mut slot = first_slot(key, slots.len());
        loop {
            match slots[slot] {
                EMPTY => return Err(VacantSlot(slot)),
                id if self.nodes[id as usize].key == key => return Ok(id),
                _ => slot = (slot + 1) & (slots.len() - 1),
            }
        }
    }

    /// Doubles the slots.
    #[cold]
    fn grow(&mut self) {
        let slots = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        for (id, node) in (0..).zip(&self.nodes) {
            let mut slot = first_slot(node.key, slots);
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = id;
        }
    }

    /// The index of the entry of a tile; allocates a chunk for an area that was not touched yet.
    #[inline]
    fn entry_of(&mut self, key: Key, chunks_per_row: u32) -> usize {
        let (x, y) = (key.0 & 0xFFFF, key.0 >> 16);
        let chunk = (y / CHUNK_SIDE) * chunks_per_row + x / CHUNK_SIDE;
        let in_chunk = (y % CHUNK_SIDE) * CHUNK_SIDE + x % CHUNK_SIDE;
        let mut slot = self.directory[chunk as usize];
        if self.owners.get(slot as usize) != Some(&chunk) {
            slot = self.allocate_chunk(chunk);
        }
        slot as usize * CHUNK_ENTRIES as usize + in_chunk as usize
    }

    #[cold]
    fn allocate_chunk(&mut self, chunk: u32) -> u32 {
        let slot = self.owners.len();
        self.owners.push(chunk);
        self.directory[chunk as usize] = slot as u32;
        let needed = (slot + 1) * CHUNK_ENTRIES as usize;
        if self.entries.len() < needed {
            self.entries.resize(needed, 0);
        }
        slot as u32
    }
}

/// The first slot of a key. The high bits of the product are the well mixed ones (Fibonacci hashing).
#[inline]
fn first_slot(key: Key, slots: usize) -> usize {
    let mixed = key.0.wrapping_mul(0x9E37_79B9);
    mixed as usize >> (u32::BITS - slots.trailing_zeros())
}

/// The index of a free entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VacantSlot(usize);

#[cfg(test)]
mod tests {
    use glam::IVec2;

    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn node(key: Key) -> Node {
        Node::new(key, PathCost::ZERO, NONE, None)
    }

    proptest! {
        #![proptest_config(draws!())]

        /// The model is a map from key to number, emptied where the index is reset.
        #[test]
        fn node_index_agrees_with_a_hash_map(
            searches in prop::collection::vec(
                (1u32..200, 1u32..200, 0usize..4, prop::collection::vec((0u32..200, 0u32..200), 0..60)),
                1..6,
            ),
        ) {
            let mut nodes = Nodes::default();
            for (width, height, kind, tiles) in searches {
                let index = match kind {
                    0 => Index::Paged(width * height),
                    1 => Index::Chunked { width, height },
                    _ => Index::Hashed,
                };
                nodes.reset(index, if kind == 3 { 60 } else { 1 << 20 });
                let mut model = BTreeMap::new();
                for (x, y) in tiles {
                    let tile = IVec2::new((x % width) as i32, (y % height) as i32);
                    let key = match kind {
                        0 => Key(tile.y as u32 * width + tile.x as u32),
                        _ => Key::of_tile(tile),
                    };
                    let expected = model.get(&key).copied();
                    match nodes.find(key) {
                        Ok(found) => prop_assert_eq!(Some(found), expected),
                        Err(vacancy) => {
                            prop_assert_eq!(expected, None);
                            let added = nodes.add(vacancy, node(key));
                            model.insert(key, added);
                        }
                    }
                }
                prop_assert_eq!(nodes.len() as usize, model.len());
                let mut by_number: Vec<_> = model.iter().map(|(&key, &id)| (id, key)).collect();
                by_number.sort_unstable();
                prop_assert!(nodes.iter().map(|(id, node)| (id, node.key)).eq(by_number));
            }
        }

        #[test]
        fn node_fields_round_trip(parent in 0..=NONE, direction in 0usize..9) {
            let direction = Direction::ALL.get(direction).copied();
            let mut node = Node::new(Key(7), PathCost::DIAGONAL, parent, direction);
            for is_closed in [false, true] {
                prop_assert_eq!((node.parent(), node.direction(), node.is_closed()), (parent, direction, is_closed));
                node.close();
            }
        }
    }

    #[test]
    fn warm_index_does_not_allocate() {
        for node_limit in [300, 1 << 20] {
            let mut nodes = Nodes::default();
            let fill = |nodes: &mut Nodes| {
                let (width, height) = (300, 300);
                nodes.reset(Index::Chunked { width, height }, node_limit);
                for i in 0..300 {
                    let key = Key::of_tile(IVec2::new(i, (i * 7) % 300));
                    if let Err(vacancy) = nodes.find(key) {
                        nodes.add(vacancy, node(key));
                    }
                }
                nodes.heap_bytes()
            };
            let cold = fill(&mut nodes);
            assert_eq!(fill(&mut nodes), cold);
        }
    }

    #[test]
    fn the_corners_of_the_largest_map_have_keys() {
        for tile in [
            IVec2::ZERO,
            IVec2::new(65_535, 0),
            IVec2::new(0, 65_535),
            IVec2::splat(65_535),
        ] {
            assert_eq!(Key::of_tile(tile).tile(), tile);
        }
    }
}
