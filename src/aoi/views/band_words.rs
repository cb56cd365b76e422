//! Those who compete for places of a list, as words of a row by how near they are.

use super::bits::bit;
use super::cells::TargetCell;
use super::shared::Shared;
use crate::aoi::priority::BANDS;

/// The nearest band.
pub(super) const NEAREST: usize = BANDS as usize - 1;

/// Those of a word who compete, by how near they count.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandWord {
    /// Where the word stands in the row.
    pub(super) word: u32,
    /// In which direction, and which word of the cell there.
    pub(super) direction: u8,
    pub(super) nth: u32,
    pub(super) bands: [u64; BANDS as usize],
}

impl BandWord {
    pub(super) const fn new(
        cell: &TargetCell,
        direction: usize,
        nth: usize,
        bands: [u64; BANDS as usize],
    ) -> Self {
        Self {
            word: cell.first[direction] + nth as u32,
            direction: direction as u8,
            nth: nth as u32,
            bands,
        }
    }

    /// Who stands at a place of the word, in a row of this cell.
    #[inline]
    pub(super) fn target(&self, shared: &Shared, cell: &TargetCell, place: usize) -> u32 {
        let near = &shared.cells[cell.near[usize::from(self.direction)] as usize];
        near.id(self.nth as usize * 64 + place)
    }
}

/// The bits of a word by nearness, from those that are nearer than each end of a band.
#[inline]
pub(super) const fn by_band(word: u64, [first, second, third]: [u64; 3]) -> [u64; BANDS as usize] {
    [
        word & !third,
        word & third & !second,
        word & second & !first,
        word & first,
    ]
}

/// Goes through members that were sorted, from the farthest band to the nearest, in each from the last word down.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FarthestFirst {
    nearness: usize,
    /// So many words of the band were not looked at; `None` before the first of all.
    words: Option<usize>,
    /// Those of the word in hand who are left.
    bits: u64,
}

impl FarthestFirst {
    /// The word and the place in it of the next that is farther than a band, and its own band.
    #[inline]
    pub(super) fn next<'a>(
        &mut self,
        members: &'a [BandWord],
        nearness: usize,
    ) -> Option<(&'a BandWord, usize, usize)> {
        let mut words = self.words.unwrap_or(members.len());
        while self.bits == 0 && self.nearness < nearness {
            if words == 0 {
                (self.nearness, words) = (self.nearness + 1, members.len());
            } else {
                words -= 1;
                self.bits = members[words].bands[self.nearness];
            }
        }
        self.words = Some(words);
        if self.nearness >= nearness {
            return None;
        }
        let place = self.bits.checked_ilog2()? as usize;
        self.bits &= !bit(place);
        Some((members.get(words)?, place, self.nearness))
    }
}
