//! The nodes a search has generated, and the index from tile to node.
//!
//! ```text
//! tile ──▶ directory[chunk of the tile] ──▶ chunk of 32×32 entries ──▶ node number ──▶ nodes[…]
//! ```
//! Nodes lie in one list in the order in which they were generated. The index has two levels, so that its size
//! follows the ground a search has touched and not the map: a directory with one entry a 32×32 chunk, and chunks of
//! entries out of a pool.
//!
//! Nothing is cleared between searches. Each level is a sparse set: an entry counts only when what it points at is
//! in use *and* points back (Briggs and Torczon, "An efficient representation for sparse sets", 1993), so emptying
//! the index means setting two lengths to zero, and stale entries do no harm.
//!
//! Cost: O(1) for looking up, adding and emptying. Memory: 24 bytes a node, 4 kB a chunk touched, 4 bytes a chunk of
//! the largest map seen; kept from search to search, so that a warm search allocates nothing.

use glam::IVec2;

use super::cost::Cost;
use super::direction::Direction;

/// The number of a node in the order of generation.
pub(super) type NodeId = u32;

/// The parent of the start, and the place of a node that is not on the open list.
pub(super) const NONE: u32 = u32::MAX;

const CHUNK_BITS: u32 = 5;
const CHUNK_SIDE: u32 = 1 << CHUNK_BITS;
const CHUNK_ENTRIES: usize = (CHUNK_SIDE * CHUNK_SIDE) as usize;

/// A tile's coordinates in one word, y above x: sides are at most 65,536, and the order is that of (y, x).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TileId(u32);

impl TileId {
    /// The id of a tile on a map.
    #[inline]
    pub(super) fn new(tile: IVec2) -> Self {
        debug_assert!(
            (0..65_536).contains(&tile.x) && (0..65_536).contains(&tile.y),
            "{tile} lies on no map"
        );
        Self((tile.y as u32) << 16 | tile.x as u32)
    }

    /// The tile of this id.
    #[inline]
    pub(super) fn tile(self) -> IVec2 {
        IVec2::new((self.0 & 0xFFFF) as i32, (self.0 >> 16) as i32)
    }
}

/// What a search knows of a tile it has reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// The least cost from the start found so far; final once the node is closed.
    pub(super) g: Cost,
    /// Which tile this is.
    pub(super) tile: TileId,
    /// The node from which `g` was reached; [`NONE`] for the start.
    pub(super) parent: NodeId,
    /// Where the node stands in the open list; [`NONE`] once it was taken off, that is, closed.
    pub(super) place: u32,
    /// The direction of the last step on the way here; `None` for the start.
    pub(super) direction: Option<Direction>,
}

const _: () = assert!(size_of::<Node>() <= 24);

/// The node pool and its index.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// Per chunk of the map, in rows, the number of its chunk of entries.
    directory: Vec<u32>,
    /// Chunks of a row of the directory.
    chunks_per_row: u32,
    /// For each chunk of entries in use, the chunk of the map it serves.
    owners: Vec<u32>,
    /// The chunks of entries, one after the other; node numbers, by y, then x.
    entries: Vec<u32>,
}

impl Nodes {
    /// Forgets all nodes and prepares for a map of the given size. Allocates only for a map larger than any before.
    pub(super) fn reset(&mut self, width: u32, height: u32) {
        self.chunks_per_row = width.div_ceil(CHUNK_SIDE);
        let chunks = self.chunks_per_row as usize * height.div_ceil(CHUNK_SIDE) as usize;
        if self.directory.len() < chunks {
            self.directory.resize(chunks, 0);
        }
        self.nodes.clear();
        self.owners.clear();
    }

    /// How many nodes were generated.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// All nodes, to be indexed by [`NodeId`].
    #[inline]
    pub(super) fn as_slice(&self) -> &[Node] {
        &self.nodes
    }

    /// All nodes, writable; their tiles must not change, as the index hangs on them.
    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// The node of a tile, or where its number is to be written by [`Nodes::add`].
    #[inline]
    pub(super) fn find(&mut self, tile: TileId) -> Result<NodeId, Vacancy> {
        let entry = self.entry_of(tile);
        let id = self.entries[entry];
        match self.nodes.get(id as usize) {
            Some(node) if node.tile == tile => Ok(id),
            _ => Err(Vacancy(entry)),
        }
    }

    /// Adds a node for a tile that [`Nodes::find`] has just not found.
    #[inline]
    pub(super) fn add(&mut self, vacancy: Vacancy, node: Node) -> NodeId {
        let id = self.len();
        self.entries[vacancy.0] = id;
        self.nodes.push(node);
        id
    }

    /// Bytes held on the heap.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + (self.directory.capacity() + self.owners.capacity() + self.entries.capacity())
                * size_of::<u32>()
    }

    /// Where the number of a tile's node is kept; takes a chunk from the pool for ground not yet touched.
    #[inline]
    fn entry_of(&mut self, tile: TileId) -> usize {
        let IVec2 { x, y } = tile.tile();
        let (x, y) = (x as u32, y as u32);
        let chunk = (y >> CHUNK_BITS) * self.chunks_per_row + (x >> CHUNK_BITS);
        let mut slot = self.directory[chunk as usize];
        if self.owners.get(slot as usize) != Some(&chunk) {
            slot = self.take_chunk(chunk);
        }
        let in_chunk = (y % CHUNK_SIDE) * CHUNK_SIDE + x % CHUNK_SIDE;
        slot as usize * CHUNK_ENTRIES + in_chunk as usize
    }

    #[cold]
    fn take_chunk(&mut self, chunk: u32) -> u32 {
        let slot = self.owners.len();
        self.owners.push(chunk);
        self.directory[chunk as usize] = slot as u32;
        if self.entries.len() < (slot + 1) * CHUNK_ENTRIES {
            self.entries.resize((slot + 1) * CHUNK_ENTRIES, 0);
        }
        slot as u32
    }
}

/// The place of an index entry that names no node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Vacancy(usize);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn node(tile: TileId) -> Node {
        Node {
            g: Cost::ZERO,
            tile,
            parent: NONE,
            place: NONE,
            direction: None,
        }
    }

    proptest! {
        /// The model is a map from tile to number, emptied where the index is reset.
        #[test]
        fn the_index_agrees_with_a_map(
            searches in prop::collection::vec(
                (1u32..200, 1u32..200, prop::collection::vec((0u32..200, 0u32..200), 0..60)),
                1..6,
            ),
        ) {
            let mut nodes = Nodes::default();
            for (width, height, tiles) in searches {
                nodes.reset(width, height);
                let mut model = BTreeMap::new();
                for (x, y) in tiles {
                    let tile = IVec2::new((x % width) as i32, (y % height) as i32);
                    let id = TileId::new(tile);
                    prop_assert_eq!(id.tile(), tile);
                    let expected = model.get(&(tile.x, tile.y)).copied();
                    match nodes.find(id) {
                        Ok(found) => prop_assert_eq!(Some(found), expected),
                        Err(vacancy) => {
                            prop_assert_eq!(expected, None);
                            let added = nodes.add(vacancy, node(id));
                            model.insert((tile.x, tile.y), added);
                        }
                    }
                }
                prop_assert_eq!(nodes.len() as usize, model.len());
            }
        }
    }

    #[test]
    fn a_warm_index_keeps_its_memory() {
        let mut nodes = Nodes::default();
        let fill = |nodes: &mut Nodes| {
            nodes.reset(300, 300);
            for i in 0..300 {
                let id = TileId::new(IVec2::new(i, (i * 7) % 300));
                if let Err(vacancy) = nodes.find(id) {
                    nodes.add(vacancy, node(id));
                }
            }
            nodes.memory_bytes()
        };
        let cold = fill(&mut nodes);
        assert_eq!(fill(&mut nodes), cold);
    }

    #[test]
    fn the_corners_of_the_largest_map_have_ids() {
        for tile in [
            IVec2::ZERO,
            IVec2::new(65_535, 0),
            IVec2::new(0, 65_535),
            IVec2::splat(65_535),
        ] {
            assert_eq!(TileId::new(tile).tile(), tile);
        }
    }
}
