//! What an update works with: what changed, the buffers it keeps, and the two kinds of links that might be made.

use crate::aoi::grid::GridCell;
use crate::aoi::links::{LISTS, LinkKey};

/// Buffers of the update, kept between updates.
#[derive(Clone, Debug, Default)]
pub(super) struct UpdateScratch {
    /// The last sweep in which each id was marked.
    marks: Vec<u32>,
    sweep: u32,
    /// Entrants of the viewer in hand, by list.
    pub(super) entrants: [Vec<LinkKey>; LISTS],
    pub(super) offers: Vec<ViewOffer>,
    /// Members of the cell in hand that are looked at.
    pub(super) candidates: Vec<u32>,
    /// Places of links of the object in hand that may end.
    pub(super) ending: Vec<u32>,
    /// Members of the list in hand: rank, band without hysteresis, key, place.
    pub(super) members: Vec<(u8, u8, LinkKey, u32)>,
    pub(super) proposals: Vec<MutualProposal>,
}

impl UpdateScratch {
    pub(super) fn grow(&mut self, ids: usize) {
        self.marks.resize(ids.max(self.marks.len()), 0);
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.marks.capacity() * size_of::<u32>()
    }

    /// Begins a sweep in which nobody is marked yet.
    pub(super) fn begin(&mut self) {
        if self.sweep == u32::MAX {
            self.marks.fill(0);
            self.sweep = 0;
        }
        self.sweep += 1;
    }

    pub(super) fn mark(&mut self, id: u32) {
        self.marks[id as usize] = self.sweep;
    }

    /// Copies those that are not marked to the front of the candidates, without a branch that depends on them;
    /// says how many they are.
    pub(super) fn choose_unmarked(&mut self, ids: &[u32]) -> usize {
        if self.candidates.len() < ids.len() {
            self.candidates.resize(ids.len(), 0);
        }
        let mut count = 0;
        for &id in ids {
            self.candidates[count] = id;
            count += usize::from(self.marks[id as usize] != self.sweep);
        }
        count
    }

    pub(super) fn is_marked(&self, id: u32) -> bool {
        self.marks[id as usize] == self.sweep
    }
}

/// An object with pending changes, and where it was at the last update.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectChange {
    pub(super) id: u32,
    pub(super) from: GridCell,
    pub(super) moved: bool,
    /// It would sweep, but so many do in this update that it waits for a look instead.
    pub(super) waits: bool,
}

/// A target that a viewer might let in: the viewer and the key in one number, which sorts twice as fast. Sorted,
/// they are grouped by viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ViewOffer(u64);

impl ViewOffer {
    pub(super) fn new(viewer: u32, key: LinkKey) -> Self {
        Self(u64::from(viewer) << 32 | u64::from(key.bits()))
    }

    pub(super) const fn viewer(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) const fn key(self) -> LinkKey {
        LinkKey::from_bits(self.0 as u32)
    }
}

/// A link that might be made. Sorted, the highest rank comes first, then the lower ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MutualProposal(u64);

const ID_MASK: u64 = (1 << 24) - 1;
const PAIR: u64 = 1 << 48;

impl MutualProposal {
    /// A viewer would see a target that sees nobody, or lies outside caps.
    pub(super) fn one_way(rank: u8, viewer: u32, target: u32) -> Self {
        Self(u64::from(!rank) << 49 | u64::from(viewer) << 24 | u64::from(target))
    }

    /// Two would see each other.
    pub(super) fn pair(rank: u8, a: u32, b: u32) -> Self {
        Self(Self::one_way(rank, a.min(b), a.max(b)).0 | PAIR)
    }

    pub(super) fn rank(self) -> u8 {
        !((self.0 >> 49) as u8)
    }

    pub(super) fn ids(self) -> (u32, u32) {
        ((self.0 >> 24 & ID_MASK) as u32, (self.0 & ID_MASK) as u32)
    }

    /// Whether two would see each other.
    pub(super) const fn is_pair(self) -> bool {
        self.0 & PAIR != 0
    }
}
