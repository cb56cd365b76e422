//! Competitors for the slots of a list, as words of a row sorted by distance band.

use crate::priority::BAND_COUNT;
use crate::views::state::bits::bit;
use crate::views::state::cells::TargetCell;
use crate::views::state::scene_state::SceneState;

/// The nearest band.
pub(crate) const NEAREST: usize = BAND_COUNT as usize - 1;

/// A word of a row with its competitors, split by band.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BandWord {
    /// The index of the word in the row.
    pub(crate) word: u32,
    /// The direction of its cell, and the index of the word in that cell.
    pub(crate) direction: u8,
    pub(crate) nth: u32,
    pub(crate) bands: [u64; BAND_COUNT as usize],
}

impl BandWord {
    pub(crate) const fn new(
        cell: &TargetCell,
        direction: usize,
        nth: usize,
        bands: [u64; BAND_COUNT as usize],
    ) -> Self {
        Self {
            word: cell.layout[direction] + nth as u32,
            direction: direction as u8,
            nth: nth as u32,
            bands,
        }
    }

    /// The target at a bit of the word, in a row of this cell.
    #[inline]
    pub(crate) fn target(&self, shared: &SceneState, cell: &TargetCell, place: usize) -> u32 {
        let near = &shared.cells[cell.neighbours[usize::from(self.direction)] as usize];
        near.id(self.nth as usize * 64 + place)
    }
}

/// Splits the bits of a word by band, given the bits that are nearer than each end of a band.
#[inline]
pub(crate) const fn by_band(
    word: u64,
    [first, second, third]: [u64; 3],
) -> [u64; BAND_COUNT as usize] {
    [
        word & !third,
        word & third & !second,
        word & second & !first,
        word & first,
    ]
}

/// Iterates over sorted members from the farthest band to the nearest, within a band from the last word down.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FarthestFirst {
    nearness: usize,
    /// The number of words of the band that are left; `None` before the first call.
    words: Option<usize>,
    /// The remaining bits of the current word.
    bits: u64,
}

impl FarthestFirst {
    /// The word and bit of the next member that is farther than a band, and its own band.
    #[inline]
    pub(crate) fn next<'a>(
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
