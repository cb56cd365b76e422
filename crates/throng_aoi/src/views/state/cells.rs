//! The cells of a scene in use: their targets in slots, their viewers in rows, and the links as bits.
//!
//! ```text
//! TargetCell   slots  0 1 2 … 63 │ 64 …      ids and relations by slot; masks: population by category, vacated, arrived
//! ViewerCell   rows   ┌ words of the first cell around │ of the second │ … │ of the ninth ┐
//!                row 0│ 0110…                          │ 0100…         │   │              │  a bit for each slot:
//!                row 1│ 1010…                          │               │   │              │  "is seen"
//! ```
//! A near target has a slot of its cell, a viewer has a row of its cell. While cells run in parallel, each writes its
//! own rows and reads the slots of the nine cells around it, which no cell writes then.
//!
//! The viewers of a slot are not stored: a query tests its bit in the rows of nine cells.
//!
//! Cells are created at first use and stay; unused slots and rows are freed (cell_storage.rs).
//! Invariant: a row's bit is set only for a taken slot; a slot vacated in an update is not taken again in the same update.
//! Cost: a row has as many bits as nine cells have slots, 72 bytes if no cell has more than 64. Above 2 kB a row stores only
//! words with a set bit (rows.rs), 1.2 kB for each of 50,000 viewers in nine cells who see a hundred. Plus 100 to 120 bytes
//! per object.

use std::ops::Range;

use glam::Vec2;
use throng_core::memory::MemoryUse;

use super::bits::bit;
use super::object::{LIST_COUNT, NONE, UNCAPPED};
use super::relations::RelationColumns;
use super::rows::{NEIGHBOURHOOD_CELLS, RowLayout, ViewRows};
use super::slot_word::SlotWord;
use crate::grid::{GridCell, SceneGrid};
use crate::priority::ViewTraits;

/// A cell's buffer for updates is freed when it is larger than this.
const CELL_BUFFER_BYTES: usize = 1 << 10;

/// Frees an empty buffer that is larger than the limit.
pub(crate) fn drop_if_large<T>(buffer: &mut Vec<T>, bytes_max: usize) {
    if buffer.capacity() * size_of::<T>() > bytes_max {
        *buffer = Vec::new();
    }
}

/// A bit for each direction of a neighbour cell.
pub(crate) const ALL_DIRECTIONS: u16 = (1 << NEIGHBOURHOOD_CELLS) - 1;

/// The direction of a cell itself.
pub(crate) const OWN_CELL: usize = 4;

/// The directions by the quarter of the cell that contains the viewer, nearest first: its own cell, the two next to the
/// quarter, the one at its corner, the others.
pub(crate) const NEAREST_CELLS: [[usize; NEIGHBOURHOOD_CELLS]; 4] = nearest_cells();

const fn nearest_cells() -> [[usize; NEIGHBOURHOOD_CELLS]; 4] {
    let mut orders = [[0; NEIGHBOURHOOD_CELLS]; 4];
    let mut quarter = 0;
    while quarter < 4 {
        // Towards the quarter, and away from it.
        let x: i32 = if quarter & 1 == 0 { -1 } else { 1 };
        let y: i32 = if quarter & 2 == 0 { -1 } else { 1 };
        let steps = [
            (0, 0),
            (x, 0),
            (0, y),
            (x, y),
            (-x, 0),
            (0, -y),
            (-x, y),
            (x, -y),
            (-x, -y),
        ];
        let mut nth = 0;
        while nth < NEIGHBOURHOOD_CELLS {
            let (dx, dy) = steps[nth];
            orders[quarter][nth] = ((dy + 1) * 3 + dx + 1) as usize;
            nth += 1;
        }
        quarter += 1;
    }
    orders
}

/// The quarter of a cell that contains a position.
#[inline]
pub(crate) fn quadrant(grid: &SceneGrid, cell: GridCell, position: Vec2) -> usize {
    let half = |p: f32, cell: u16| usize::from(p >= (f32::from(cell) + 0.5) * grid.cell_m());
    half(position.x, cell.x) | half(position.y, cell.y) << 1
}

/// A target that is new to the viewers around it, or has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetArrival {
    pub(crate) slot: u32,
    /// The cell where it was.
    pub(crate) from: GridCell,
    /// It is new to every viewer, or all pairs with it are checked again.
    pub(crate) is_new_everywhere: bool,
    /// A viewer may see it already and no longer be allowed to, or have it in another class.
    pub(crate) is_revised: bool,
    /// It is a viewer as well.
    pub(crate) is_viewer: bool,
}

/// A target that left a slot, with the slot and its current cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetLeave {
    pub(crate) slot: u32,
    pub(crate) to: GridCell,
    pub(crate) to_slot: u32,
}

/// The targets of a cell.
#[derive(Clone, Debug, MemoryUse)]
pub(crate) struct TargetCell {
    pub(crate) grid_cell: GridCell,
    /// The neighbour cells that are in use, by direction.
    pub(crate) neighbours: [u32; NEIGHBOURHOOD_CELLS],
    /// Where the words of each neighbour begin in the rows of this cell, and their number.
    pub(crate) layout: RowLayout,
    pub(crate) words: usize,
    pub(crate) relations: RelationColumns,
    pub(crate) slots: Vec<SlotWord>,
    /// The targets that left in this update, by slot once all changes are applied.
    pub(crate) departures: Vec<TargetLeave>,
    pub(crate) arrivals: Vec<TargetArrival>,
    /// The number of targets that will arrive in this update.
    pub(crate) expected_arrivals: u32,
}

impl TargetCell {
    pub(crate) fn new(at: GridCell) -> Self {
        Self {
            grid_cell: at,
            neighbours: [NONE; NEIGHBOURHOOD_CELLS],
            layout: [0; NEIGHBOURHOOD_CELLS + 1],
            words: 0,
            relations: RelationColumns::with_index(),
            slots: Vec::new(),
            departures: Vec::new(),
            arrivals: Vec::new(),
            expected_arrivals: 0,
        }
    }

    /// The word of a row that holds a slot of the cell in a direction.
    #[inline]
    pub(crate) const fn word(&self, direction: usize, slot: usize) -> usize {
        self.layout[direction] as usize + slot / 64
    }

    /// The words of a row that hold the slots of the cell in a direction.
    #[inline]
    pub(crate) const fn words_in(&self, direction: usize) -> Range<usize> {
        self.layout[direction] as usize..self.layout[direction + 1] as usize
    }

    pub(crate) fn is_touched(&self) -> bool {
        !self.departures.is_empty() || !self.arrivals.is_empty()
    }

    /// The id in a slot.
    #[inline]
    pub(crate) fn id(&self, slot: usize) -> u32 {
        self.relations.ids()[slot]
    }

    /// The list of the current or last target of a slot.
    #[inline]
    pub(crate) fn list(&self, slot: usize) -> usize {
        self.slots[slot / 64].list(slot)
    }

    /// The visible targets of each 64 slots, by list.
    #[inline]
    pub(crate) fn population(
        &self,
        list: usize,
    ) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + '_ {
        self.slots.iter().map(move |word| word.population[list])
    }

    /// Whether the target in a slot may be seen, by list.
    #[inline]
    pub(crate) fn has(&self, list: usize, slot: usize) -> bool {
        let word = self.slots.get(slot / 64);
        word.is_some_and(|word| word.population[list] & bit(slot) != 0)
    }

    /// Whether the visibility of the target in a slot has to be checked.
    #[inline]
    pub(crate) fn needs_check(&self, slot: usize) -> bool {
        self.slots[slot / 64].needs_check & bit(slot) != 0
    }

    /// The number of taken slots.
    pub(crate) fn taken_slots(&self) -> u32 {
        self.slots.iter().map(|word| word.taken.count_ones()).sum()
    }

    /// Resizes the cell to this many words of slots.
    pub(crate) fn resize(&mut self, words: usize) {
        self.words = words;
        self.relations.shrink(words * 64);
        self.slots.truncate(words);
        self.slots.reserve_exact(words - self.slots.len());
        self.slots.resize(words, SlotWord::default());
        self.slots.shrink_to_fit();
    }

    /// Moves targets beyond this many words to free lower slots, and records each move as (from, to).
    pub(crate) fn compact(&mut self, words: usize, moves: &mut Vec<(u32, u32)>) {
        for word in words..self.words {
            for place in self.slots[word].taken_slots() {
                let (from, to) = (word * 64 + place, self.lowest_free());
                self.relations.relocate(from, to);
                let taken = self.slots[word].remove(from);
                self.slots[to / 64].insert(to, taken);
                moves.push((from as u32, to as u32));
            }
        }
        self.resize(words);
    }

    fn lowest_free(&self) -> usize {
        let word = self.slots.iter().position(|word| word.taken != u64::MAX);
        let word = word.expect("cells grow before slots are taken");
        word * 64 + self.slots[word].taken.trailing_ones() as usize
    }

    /// Takes the lowest free slot; the cell has grown enough.
    pub(crate) fn allocate(&mut self, list: usize, traits: &ViewTraits, is_odd: bool) -> u32 {
        let slot = self.lowest_free();
        if slot >= self.relations.ids().len() {
            self.relations.grow(slot + 1 + slot / 4);
        }
        self.write(slot, list, traits, is_odd);
        slot as u32
    }

    /// Sets the data of a slot from these traits.
    pub(crate) fn write(&mut self, slot: usize, list: usize, traits: &ViewTraits, is_odd: bool) {
        self.relations.write(slot, traits);
        self.slots[slot / 64].write(slot, list, !traits.hidden, is_odd);
    }

    /// Vacates a slot; its id stays until [`end_update`](Self::end_update).
    pub(crate) fn vacate(&mut self, leave: TargetLeave, list: usize) {
        let slot = leave.slot as usize;
        self.relations.clear_relations(slot);
        let word = &mut self.slots[slot / 64];
        word.hide(slot, list);
        word.vacated |= bit(slot);
        self.departures.push(leave);
    }

    /// Frees the vacated slots.
    pub(crate) fn end_update(&mut self) {
        self.arrivals.clear();
        let mut left = std::mem::take(&mut self.departures);
        for leave in left.drain(..) {
            self.free(leave.slot as usize);
        }
        self.departures = left;
    }

    /// Frees large update buffers, which are empty between updates; frees all of them if the cell is empty.
    pub(crate) fn drop_buffers(&mut self) {
        let bytes_max = if self.taken_slots() == 0 {
            0
        } else {
            CELL_BUFFER_BYTES
        };
        drop_if_large(&mut self.departures, bytes_max);
        drop_if_large(&mut self.arrivals, bytes_max);
    }

    fn free(&mut self, slot: usize) {
        self.slots[slot / 64].free(slot);
        self.relations.free(slot);
    }

    /// Clears a slot and its id. Its bits in all rows are clear.
    pub(crate) fn clear(&mut self, slot: usize, list: usize) {
        self.slots[slot / 64].hide(slot, list);
        self.free(slot);
    }
}

/// The state of a viewer apart from its row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowState {
    pub(crate) caps: [u16; UNCAPPED],
    pub(crate) count: [u16; UNCAPPED],
    /// For each list, a lower bound of the members' classes.
    pub(crate) lowest_class: [u8; UNCAPPED],
    /// A bit for each list that may have refused or evicted a target that goes before unrelated ones.
    pub(crate) refused_lists: u8,
    /// A bit for each list with a slot that became free in this update, or that has to be filled; 4 bits higher, for each of
    /// these in which all targets have to be compared.
    pub(crate) refill_lists: u8,
    pub(crate) tasks: u8,
    /// Mutual mode: a lower bound of the members' ranks since the viewer's last turn.
    pub(crate) lowest_rank: [u8; UNCAPPED],
    /// Its own slot, if it can be seen.
    pub(crate) slot: u32,
}

impl RowState {
    /// It arrived in this cell in this update.
    pub(crate) const ARRIVED: u8 = 1;
    /// Its links are checked again.
    pub(crate) const REVISED: u8 = 2;
    /// It scans all targets in range.
    pub(crate) const SCANS: u8 = 4;
    /// It chooses the nearest where it has a choice.
    pub(crate) const CHOOSES: u8 = 8;
    pub(crate) const CAPS_CHANGED: u8 = 16;
    /// It lost a member since the last update.
    pub(crate) const FREED: u8 = 64;
    /// It sees no new targets until its scan. Kept between updates.
    pub(crate) const WAITS_FOR_SCAN: u8 = 32;
    /// It sees the ordinary layer and has no exceptions. Kept between updates.
    pub(crate) const HAS_DEFAULT_VISION: u8 = 128;
    /// The flags that are kept after an update.
    pub(crate) const PERSISTENT: u8 = Self::WAITS_FOR_SCAN | Self::HAS_DEFAULT_VISION;

    #[inline]
    pub(crate) const fn has_task(&self, task: u8) -> bool {
        self.tasks & task != 0
    }

    #[inline]
    pub(crate) const fn has_room(&self, list: usize) -> bool {
        self.count[list] < self.caps[list]
    }

    /// A bit for each list with a free slot.
    #[inline]
    pub(crate) fn open_lists(&self) -> u8 {
        let places = self
            .count
            .iter()
            .zip(&self.caps)
            .map(|(count, cap)| count < cap);
        places.enumerate().fold(0, |lists, (list, is_open)| {
            lists | u8::from(is_open) << list
        })
    }

    /// A target may take a slot of a list now that could not before.
    #[inline]
    pub(crate) const fn request_refill(&mut self, list: usize, is_ranked: bool) {
        self.refill_lists |= (1 | (is_ranked as u8) << 4) << list;
    }

    /// Whether it has to scan all targets of a list in which all have to be compared.
    #[inline]
    pub(crate) const fn needs_scan(&self) -> bool {
        self.refill_lists >> 4 != 0 && !self.has_task(Self::SCANS)
    }
}

/// The viewers of a cell, and their links.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct ViewerCell {
    /// The index of the cell.
    pub(crate) cell: u32,
    pub(crate) rows: ViewRows,
    pub(crate) relations: RelationColumns,
    pub(crate) states: Vec<RowState>,
    /// The targets of each row outside caps, ascending, up to the last row that has any.
    #[memory(each)]
    far: Vec<Vec<u32>>,
    free: Vec<u32>,
    pub(crate) used: usize,
    /// Whether the cell had any work in this update.
    pub(crate) is_active: bool,
    /// A bit for each direction in which slots changed in this update.
    pub(crate) touched: u16,
    /// The rows with tasks in this update, and for each arrived row where it came from.
    pub(crate) scheduled_rows: Vec<u32>,
    pub(crate) movers: Vec<(u32, u32)>,
    /// The rows that are re-ranked in this update.
    pub(crate) rows_to_rerank: Vec<u32>,
    /// Viewers that had a full list and have a free slot now, for links that need the other end's consent.
    pub(crate) freed: Vec<u32>,
}

impl ViewerCell {
    pub(crate) fn new(cell: u32, words: usize) -> Self {
        Self {
            cell,
            rows: ViewRows::with_width(words),
            ..Self::default()
        }
    }

    /// The number of rows, free ones included.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// The viewer of a row; [`NONE`] if the row is free.
    #[inline]
    pub(crate) fn id(&self, row: usize) -> u32 {
        self.relations.ids()[row]
    }

    /// The targets of a viewer outside caps, ascending.
    #[inline]
    pub(crate) fn far(&self, row: usize) -> &[u32] {
        self.far.get(row).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn far_mut(&mut self, row: usize) -> &mut Vec<u32> {
        if row >= self.far.len() {
            self.far.resize_with(row + 1, Vec::new);
        }
        &mut self.far[row]
    }

    /// Takes a row without set bits.
    pub(crate) fn allocate(&mut self, traits: &ViewTraits, state: RowState, far: Vec<u32>) -> u32 {
        let row = self.free.pop().unwrap_or(self.states.len() as u32);
        let place = row as usize;
        if place == self.states.len() {
            if place == self.states.capacity() {
                self.states.reserve_exact(1 + place / 4);
            }
            self.states.push(RowState::default());
            self.rows.push();
            if place >= self.relations.ids().len() {
                self.relations.grow(place + 1 + place / 4);
            }
        }
        self.relations.write(place, traits);
        let was_asked = self.states[place].tasks & RowState::FREED;
        self.states[place] = state;
        self.states[place].tasks |= was_asked;
        if !far.is_empty() {
            *self.far_mut(place) = far;
        }
        self.used += 1;
        row
    }

    /// Frees a row whose bits are clear; returns the state of its viewer.
    pub(crate) fn free(&mut self, row: u32) -> (RowState, Vec<u32>) {
        let place = row as usize;
        self.rows.clear(place);
        self.relations.free(place);
        self.free.push(row);
        self.used -= 1;
        let mut state = std::mem::take(&mut self.states[place]);
        // It stays among the scheduled rows, which the next viewer of the row has to know.
        if state.tasks & !RowState::PERSISTENT != 0 {
            self.states[place].tasks = RowState::FREED;
        }
        state.tasks &= RowState::PERSISTENT;
        let far = self.far.get_mut(place);
        (state, far.map_or_else(Vec::new, std::mem::take))
    }

    /// The free rows; the last one is taken next.
    pub(crate) fn free_rows(&self) -> &[u32] {
        &self.free
    }

    /// Moves the last rows into free ones, so that no row is free, and reports each move.
    pub(crate) fn compact(&mut self, mut on_move: impl FnMut(u32, u32)) {
        debug_assert!(self.scheduled_rows.is_empty());
        let used = self.used;
        let mut free = std::mem::take(&mut self.free);
        free.sort_unstable();
        let beyond = (used..self.len()).filter(|&row| self.relations.ids()[row] != NONE);
        for (from, &to) in beyond.collect::<Vec<_>>().into_iter().zip(&free) {
            let to = to as usize;
            on_move(self.id(from), to as u32);
            self.relations.relocate(from, to);
            self.states[to] = self.states[from];
            if from < self.far.len() {
                self.far.swap(from, to);
            }
            self.rows.relocate(from, to);
        }
        self.states.truncate(used);
        self.far.truncate(used);
        self.rows.truncate(used);
        self.states.shrink_to_fit();
        self.far.shrink_to_fit();
        self.relations.shrink(used);
    }

    /// Frees large update buffers, which are empty between updates; frees all of them if the cell is empty.
    pub(crate) fn drop_buffers(&mut self) {
        let bytes_max = if self.used == 0 { 0 } else { CELL_BUFFER_BYTES };
        drop_if_large(&mut self.scheduled_rows, bytes_max);
        drop_if_large(&mut self.movers, bytes_max);
        drop_if_large(&mut self.rows_to_rerank, bytes_max);
        drop_if_large(&mut self.freed, bytes_max);
    }

    /// Schedules tasks of a row for this update.
    pub(crate) fn schedule(&mut self, row: u32, tasks: u8) {
        let state = &mut self.states[row as usize];
        if state.tasks & !RowState::PERSISTENT == 0 {
            self.scheduled_rows.push(row);
        }
        state.tasks |= tasks;
    }

    /// Clears everything that belongs to this update.
    pub(crate) fn end_update(&mut self) {
        for row in self.scheduled_rows.drain(..) {
            self.states[row as usize].tasks &= RowState::PERSISTENT;
        }
        self.movers.clear();
        self.rows_to_rerank.clear();
        self.is_active = false;
        self.touched = 0;
    }
}

const _: () = assert!(LIST_COUNT == UNCAPPED + 1 && size_of::<RowState>() <= 28);
