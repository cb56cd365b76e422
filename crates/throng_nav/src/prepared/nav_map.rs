//! What is prepared of a map for searching.

use std::sync::Arc;

use super::graph::JumpGraph;
use super::planes::SignPlanes;
use super::section::{
    MapSectionError, PreparedSection, graph_section, planes_section, read_section,
};
use crate::algorithm::Algorithm;
use crate::map::{MapSection, TileMap, TileRect};
use crate::reference::StepTable;
use crate::rule::Diagonal;
use throng_core::parallel::{InlineExecutor, ParallelExecutor};

/// The movement rule on a map, and the structures that were prepared of the map for it.
///
/// Clones share everything until one of them is edited. What was prepared of other tiles than those searched is not
/// used: every answer is exact, whether or not anything is prepared, only slower without.
#[derive(Clone, Debug, Default)]
pub struct NavMap {
    diagonal: Diagonal,
    /// The tiles that everything below was prepared of, and their size.
    fingerprint: u64,
    size: (u32, u32),
    planes: Option<Arc<SignPlanes>>,
    table: Option<Arc<StepTable>>,
    graph: Option<Arc<JumpGraph>>,
    /// Whether the graph would take more memory than it may.
    is_graph_too_large: bool,
    /// Whether anything came out of a file, where it may be wrong in what was not checked.
    is_loaded: bool,
}

/// Tiles in the rectangles of an edit beyond which building anew is cheaper than repair, and does not have to be in the
/// tick.
const REPAIR_TILES_MAX: u64 = 1 << 14;

impl NavMap {
    /// Nothing prepared yet, of any map.
    pub fn new(diagonal: Diagonal) -> Self {
        Self {
            diagonal,
            ..Self::default()
        }
    }

    /// What a map's file keeps of the sign planes and the graph, as far as they are prepared of these tiles: to be given
    /// to [`TileMap::with_sections`], and read by [`NavMap::from_sections`]. O(bytes).
    pub fn to_sections(&self, tiles: &TileMap) -> Vec<MapSection> {
        let is_of = self.matches_tiles(tiles);
        let planes = self.planes().filter(|_| is_of);
        let graph = self.graph().filter(|_| is_of);
        let planes = planes.map(|planes| planes_section(tiles, self.diagonal, planes));
        let graph = graph.map(|graph| graph_section(tiles, self.diagonal, graph));
        planes.into_iter().chain(graph).collect()
    }

    /// What the [parts](TileMap::parts) of a map hold for a movement rule, and why some are not used. What is missing is
    /// left to [`NavMap::prepare`]; parts of the other rule and of others are passed over.
    ///
    /// Nothing that the parts may hold makes a search panic or go on for ever. Beyond what that takes they are trusted, as
    /// the tiles in a file are: forged ones make wrong paths.
    ///
    /// Cost: reads and writes every byte once or twice, milliseconds where building takes a second.
    pub fn from_sections(diagonal: Diagonal, tiles: &TileMap) -> (Self, Vec<MapSectionError>) {
        let mut nav_map = Self::new(diagonal);
        let mut refused = Vec::new();
        let parts = tiles.parts().iter();
        for part in parts.filter_map(|part| read_section(tiles, diagonal, part)) {
            match part {
                Ok(PreparedSection::Planes(planes)) => nav_map.planes = Some(Arc::new(planes)),
                Ok(PreparedSection::Graph(graph)) => nav_map.graph = Some(Arc::new(graph)),
                Err(found) => refused.push(found),
            }
        }
        if nav_map.planes.is_some() || nav_map.graph.is_some() {
            nav_map.fingerprint = tiles.fingerprint();
            nav_map.size = (tiles.width(), tiles.height());
            nav_map.is_loaded = true;
        }
        (nav_map, refused)
    }

    /// Whether anything prepared came out of a file, so that forged bits may have made answers wrong.
    pub const fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// The movement rule.
    pub const fn diagonal(&self) -> Diagonal {
        self.diagonal
    }

    pub(crate) fn planes(&self) -> Option<&SignPlanes> {
        self.planes.as_deref()
    }

    pub(crate) fn table(&self) -> Option<&StepTable> {
        self.table.as_deref()
    }

    pub(crate) fn graph(&self) -> Option<&JumpGraph> {
        self.graph.as_deref()
    }

    /// Whether what is prepared was prepared of these tiles.
    pub fn matches_tiles(&self, tiles: &TileMap) -> bool {
        self.fingerprint == tiles.fingerprint() && self.size == (tiles.width(), tiles.height())
    }

    /// Builds what an algorithm reads, as far as it is missing. O(tiles); see `planes`, `table` and `graph`.
    pub fn prepare(&mut self, tiles: &TileMap, algorithm: Algorithm) {
        self.prepare_with_limit(tiles, algorithm, usize::MAX);
    }

    /// The same without the graph, if that takes more than so many bytes.
    pub fn prepare_with_limit(
        &mut self,
        tiles: &TileMap,
        algorithm: Algorithm,
        graph_bytes_max: usize,
    ) {
        self.prepare_with(tiles, algorithm, graph_bytes_max, InlineExecutor);
    }

    /// The same by several hands.
    pub fn prepare_with(
        &mut self,
        tiles: &TileMap,
        algorithm: Algorithm,
        graph_bytes_max: usize,
        spread: impl ParallelExecutor,
    ) {
        if !self.matches_tiles(tiles) {
            *self = Self::new(self.diagonal);
            self.fingerprint = tiles.fingerprint();
            self.size = (tiles.width(), tiles.height());
        }
        if uses_planes(algorithm) && self.planes.is_none() {
            self.planes = Some(Arc::new(SignPlanes::build(tiles, self.diagonal)));
        }
        if uses_table(algorithm) && self.table.is_none() {
            self.table = Some(Arc::new(StepTable::build(tiles, self.diagonal)));
        }
        if algorithm != Algorithm::JpsGraph {
            return;
        }
        // One out of a file may be too large; building it anew would make it no smaller.
        let is_too_large = |graph: &mut Arc<JumpGraph>| graph.memory_bytes() > graph_bytes_max;
        if self.graph.take_if(is_too_large).is_some() {
            self.is_graph_too_large = true;
        } else if self.graph.is_none()
            && let Some(planes) = &self.planes
        {
            let graph = JumpGraph::build(tiles, self.diagonal, planes, graph_bytes_max, spread);
            self.is_graph_too_large = graph.is_none();
            self.graph = graph.map(Arc::new);
        }
    }

    /// Whether an algorithm has what it reads of these tiles. One that has not is answered by
    /// [`Algorithm::JpsBitPrune`], which is always ready and faster with its planes.
    pub fn is_ready(&self, tiles: &TileMap, algorithm: Algorithm) -> bool {
        match algorithm {
            Algorithm::JpsBitPre | Algorithm::JpsBitPrunePre => {
                self.matches_tiles(tiles) && self.table.is_some()
            }
            Algorithm::JpsGraph => {
                self.matches_tiles(tiles) && self.graph.is_some() && self.planes.is_some()
            }
            _ => true,
        }
    }

    /// Whether everything that an algorithm can make use of, and may take the memory for, is there for these tiles.
    pub fn is_prepared(&self, tiles: &TileMap, algorithm: Algorithm) -> bool {
        let has_planes =
            !uses_planes(algorithm) || (self.matches_tiles(tiles) && self.planes.is_some());
        let is_refused = algorithm == Algorithm::JpsGraph && self.is_graph_too_large;
        (self.is_ready(tiles, algorithm) || is_refused) && has_planes
    }

    /// The bytes of each structure that is prepared, by where it lies: maps that share one have the same.
    #[doc(hidden)]
    pub fn structures(&self) -> impl Iterator<Item = (usize, usize)> {
        let planes = self.planes.as_ref();
        let planes = planes.map(|planes| (Arc::as_ptr(planes).addr(), planes.memory_bytes()));
        let table = self.table.as_ref();
        let table = table.map(|table| (Arc::as_ptr(table).addr(), table.memory_bytes()));
        let graph = self.graph.as_ref();
        let graph = graph.map(|graph| (Arc::as_ptr(graph).addr(), graph.memory_bytes()));
        [planes, table, graph].into_iter().flatten()
    }

    /// Bytes of what is prepared and an algorithm reads, besides the tiles.
    pub fn prepared_bytes(&self, algorithm: Algorithm) -> usize {
        let planes = self.planes().filter(|_| uses_planes(algorithm));
        let table = self.table().filter(|_| uses_table(algorithm));
        let graph = self.graph().filter(|_| algorithm == Algorithm::JpsGraph);
        planes.map_or(0, SignPlanes::memory_bytes)
            + table.map_or(0, StepTable::memory_bytes)
            + graph.map_or(0, JumpGraph::memory_bytes)
    }

    /// Follows an edit of the tiles, now as they are after it. `changed` are the rectangles that [`TileMap::edit`] gave for
    /// all edits since the last call; with any other what is prepared would tell of other tiles, and answers be wrong.
    ///
    /// Sign planes are repaired, or dropped when the rectangles hold more than 16,384 tiles. Graph and table are dropped:
    /// [`NavMap::prepare`] builds them anew. Tiles of another size drop everything.
    pub fn apply_edit(&mut self, tiles: &TileMap, changed: &[TileRect]) {
        if self.size != (tiles.width(), tiles.height()) {
            *self = Self::new(self.diagonal);
            return;
        }
        self.fingerprint = tiles.fingerprint();
        (self.table, self.graph, self.is_graph_too_large) = (None, None, false);
        let changed = changed.iter().map(|rect| rect.intersection(&tiles.rect()));
        let tile_count: u64 = changed.clone().map(|rect| rect.tile_count()).sum();
        if tile_count > REPAIR_TILES_MAX {
            self.planes = None;
        }
        if let Some(planes) = &mut self.planes {
            let planes = Arc::make_mut(planes);
            for rect in changed {
                planes.repair(tiles, self.diagonal, rect);
            }
        }
    }
}

const fn uses_planes(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::JpsBitPrune | Algorithm::JpsGraph)
}

const fn uses_table(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::JpsBitPre | Algorithm::JpsBitPrunePre)
}
