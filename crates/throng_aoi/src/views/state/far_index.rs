//! The far targets, by the cells of their layer.
//!
//! Cost: O(log cells) to find a cell; there should be few of them.

use std::collections::BTreeMap;

use throng_core::memory::MemoryUse;

use crate::grid::GridCell;

/// A far target that arrived, changed or crossed into another cell of its layer in this update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarChange {
    pub(crate) id: u32,
    pub(crate) traits: bool,
}

/// The far targets by layer and cell of the layer.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct FarIndex {
    #[memory(each_value)]
    by_cell: BTreeMap<(u8, GridCell), Vec<u32>>,
}

impl FarIndex {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_cell.is_empty()
    }

    pub(crate) fn at(&self, layer: u8, coarse: GridCell) -> &[u32] {
        self.by_cell
            .get(&(layer, coarse))
            .map_or(&[], Vec::as_slice)
    }

    pub(crate) fn insert(&mut self, layer: u8, coarse: GridCell, id: u32) {
        let ids = self.by_cell.entry((layer, coarse)).or_default();
        if let Err(place) = ids.binary_search(&id) {
            ids.insert(place, id);
        }
    }

    pub(crate) fn remove(&mut self, layer: u8, coarse: GridCell, id: u32) {
        let Some(ids) = self.by_cell.get_mut(&(layer, coarse)) else {
            return;
        };
        if let Ok(place) = ids.binary_search(&id) {
            ids.remove(place);
        }
        if ids.is_empty() {
            self.by_cell.remove(&(layer, coarse));
        }
    }

    /// All far targets, cell by cell.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_cell.values().flatten().copied()
    }
}
