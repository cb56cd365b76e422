//! The prepared data of a map for searches.

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

/// The movement rule of a map, and the data that was prepared from the map for it.
///
/// Clones share everything until one of them is edited. Data that was prepared from other tiles than those searched is not
/// used: every result is exact with or without prepared data, only slower without.
#[derive(Clone, Debug, Default)]
pub struct NavMap {
    diagonal: Diagonal,
    /// The tiles that everything below was prepared from, and their size.
    fingerprint: u64,
    size: (u32, u32),
    planes: Option<Arc<SignPlanes>>,
    table: Option<Arc<StepTable>>,
    graph: Option<Arc<JumpGraph>>,
    /// Whether the graph would take more memory than allowed.
    is_graph_too_large: bool,
    /// Whether anything was loaded from a file, and may be wrong where it was not checked.
    is_loaded: bool,
}

/// The number of tiles in the rectangles of an edit beyond which rebuilding is cheaper than repair, and can be done outside
/// the tick.
const REPAIR_TILES_MAX: u64 = 1 << 14;

impl NavMap {
    /// Creates a navigation map without prepared data.
    pub fn new(diagonal: Diagonal) -> Self {
        Self {
            diagonal,
            ..Self::default()
        }
    }

    /// The sections for a map's file, with the sign planes and the graph if they are prepared from these tiles: an argument for
    /// [`TileMap::with_sections`], read by [`NavMap::from_sections`]. O(bytes).
    pub fn to_sections(&self, tiles: &TileMap) -> Vec<MapSection> {
        let is_of = self.matches_tiles(tiles);
        let planes = self.planes().filter(|_| is_of);
        let graph = self.graph().filter(|_| is_of);
        let planes = planes.map(|planes| planes_section(tiles, self.diagonal, planes));
        let graph = graph.map(|graph| graph_section(tiles, self.diagonal, graph));
        planes.into_iter().chain(graph).collect()
    }

    /// Loads the prepared data for a movement rule from the [sections](TileMap::parts) of a map, and returns why some are not
    /// used. Missing data is left to [`NavMap::prepare`]; sections of the other rule and unknown ones are skipped.
    ///
    /// No contents of a section can make a search panic or run forever. Apart from that they are trusted, as
    /// the tiles in a file are: forged ones give wrong paths.
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

    /// Whether any prepared data was loaded from a file, so that forged bits may give wrong results.
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

    /// Whether the data was prepared from these tiles.
    pub fn matches_tiles(&self, tiles: &TileMap) -> bool {
        self.fingerprint == tiles.fingerprint() && self.size == (tiles.width(), tiles.height())
    }

    /// Builds the data that an algorithm reads, as far as it is missing. O(tiles); see `planes`, `table` and `graph`.
    pub fn prepare(&mut self, tiles: &TileMap, algorithm: Algorithm) {
        self.prepare_with_limit(tiles, algorithm, usize::MAX);
    }

    /// The same without the graph, if that takes more than this many bytes.
    pub fn prepare_with_limit(
        &mut self,
        tiles: &TileMap,
        algorithm: Algorithm,
        graph_bytes_max: usize,
    ) {
        self.prepare_with(tiles, algorithm, graph_bytes_max, InlineExecutor);
    }

    /// The same on several workers.
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
        // One from a file may be too large; rebuilding it would make it no smaller.
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

    /// Whether the data that an algorithm reads is ready for these tiles. If not, the search uses
    /// [`Algorithm::JpsBitPrune`] instead, which is always ready and faster with its planes.
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

    /// Whether all data that an algorithm can use, and that may take the memory, is ready for these tiles.
    pub fn is_prepared(&self, tiles: &TileMap, algorithm: Algorithm) -> bool {
        let has_planes =
            !uses_planes(algorithm) || (self.matches_tiles(tiles) && self.planes.is_some());
        let is_refused = algorithm == Algorithm::JpsGraph && self.is_graph_too_large;
        (self.is_ready(tiles, algorithm) || is_refused) && has_planes
    }

    /// The size in bytes of each prepared structure, by its address: maps that share one have the same.
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

    /// The size in bytes of the prepared data that an algorithm reads, without the tiles.
    pub fn prepared_bytes(&self, algorithm: Algorithm) -> usize {
        let planes = self.planes().filter(|_| uses_planes(algorithm));
        let table = self.table().filter(|_| uses_table(algorithm));
        let graph = self.graph().filter(|_| algorithm == Algorithm::JpsGraph);
        planes.map_or(0, SignPlanes::memory_bytes)
            + table.map_or(0, StepTable::memory_bytes)
            + graph.map_or(0, JumpGraph::memory_bytes)
    }

    /// Updates the data after an edit of the tiles, which are given in their new state. `changed` are the rectangles that
    /// [`TileMap::edit`] returned for all edits since the last call; with any others the data would not match the tiles, and
    /// results would be wrong.
    ///
    /// Sign planes are repaired, or dropped when the rectangles hold more than 16,384 tiles. Graph and table are dropped:
    /// [`NavMap::prepare`] rebuilds them. Tiles of another size drop everything.
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
