//! One bit per tile: the obstacle bitmap that every scan reads.
//!
//! ```text
//!            64 bits      ceil(width / 64) words        64 bits
//!          ┌──────────┬───────────────────────────────┬──────────┐
//! row -1   │ 11111111 │ 11111111111111111111111111111 │ 11111111 │
//! row 0    │ 11111111 │ tile 0, tile 1, …    …1 1 1 1 │ 11111111 │
//! row h    │ 11111111 │ 11111111111111111111111111111 │ 11111111 │
//!          └──────────┴───────────────────────────────┴──────────┘
//! ```
//! Invariant: every bit that is not a tile of the map is 1 (blocked), so a scan needs no bounds check: it always
//! meets a wall before it leaves the memory.
//!
//! Cost: a read of 64 unaligned tiles is two loads and three shifts.

use super::rect::TileRect;

/// One bit per tile, 1 = blocked, the lowest x in the lowest bit, padded by one row and 64 bits on every side.
///
/// The padding is blocked. A plane may be read either as the rows of a map or, transposed, as its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitPlane {
    words: Vec<u64>,
    words_per_row: usize,
    width: u32,
    height: u32,
}

/// A run of tiles of one row, from `start` to `end`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TileRun {
    pub y: u32,
    pub start: u32,
    pub end: u32,
}

impl TileRun {
    pub(super) fn len(self) -> u32 {
        self.end - self.start + 1
    }
}

impl BitPlane {
    /// A fully blocked plane. The caller has checked the size against the limits.
    pub(super) fn blocked(width: u32, height: u32) -> Self {
        let words_per_row = (width as usize).div_ceil(64) + 2;
        // One more word, so that the read of the last row's last word may access the next one.
        let words = vec![u64::MAX; words_per_row * (height as usize + 2) + 1];
        Self {
            words,
            words_per_row,
            width,
            height,
        }
    }

    /// A plane of the tiles for which `is_blocked(x, y)` holds. The caller has checked the size against the limits.
    pub(super) fn from_fn(
        width: u32,
        height: u32,
        mut is_blocked: impl FnMut(u32, u32) -> bool,
    ) -> Self {
        let mut plane = Self::blocked(width, height);
        for y in 0..height {
            let words = (0..width).step_by(64).map(|start| {
                let bits = 0..64.min(width - start);
                bits.fold(0, |word, bit| {
                    word | u64::from(is_blocked(start + bit, y)) << bit
                })
            });
            plane.set_row(y, words);
        }
        plane
    }

    /// The number of tiles in a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The number of rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Whether a tile is blocked. Everything outside is blocked.
    #[inline]
    pub fn is_blocked(&self, x: i32, y: i32) -> bool {
        if x < 0 || y < 0 || x as u32 >= self.width || y as u32 >= self.height {
            return true;
        }
        let word = self.words[self.word_index(x as u32, y as u32)];
        word >> (x as u32 & 63) & 1 != 0
    }

    /// 64 tiles of one row from (x, y) on: bit `i` is tile `x + i`, 1 = blocked.
    ///
    /// For `-64 <= x < width + 64` and `-1 <= y <= height`; tiles outside read as blocked.
    #[inline]
    pub fn word_at(&self, x: i32, y: i32) -> u64 {
        debug_assert!(
            x >= -64 && x < self.width as i32 + 64,
            "x {x} beyond the padding"
        );
        debug_assert!(
            y >= -1 && y <= self.height as i32,
            "y {y} beyond the padding"
        );
        let bit = (x + 64) as usize;
        let index = (y + 1) as usize * self.words_per_row + (bit >> 6);
        let shift = bit as u32 & 63;
        // Shifting twice keeps the second shift under 64 when `shift` is 0.
        self.words[index] >> shift | (self.words[index + 1] << 1) << (63 - shift)
    }

    /// The words, row after row, padding included: `words_per_row * (height + 2) + 1` of them.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The number of words from one row to the next, padding included.
    pub fn words_per_row(&self) -> usize {
        self.words_per_row
    }

    /// The index in `words` of the word that holds a tile of the map.
    #[inline]
    pub(super) fn word_index(&self, x: u32, y: u32) -> usize {
        (y as usize + 1) * self.words_per_row + 1 + (x as usize >> 6)
    }

    /// The words of one row of the map without its padding; bits beyond the width are 1.
    pub(super) fn row(&self, y: u32) -> &[u64] {
        let start = self.word_index(0, y);
        &self.words[start..start + self.words_per_row - 2]
    }

    /// Writes the words of one row; bits beyond the width stay blocked.
    pub(super) fn set_row(&mut self, y: u32, words: impl IntoIterator<Item = u64>) {
        let start = self.word_index(0, y);
        let row_words = self.words_per_row - 2;
        for (word, new) in self.words[start..start + row_words].iter_mut().zip(words) {
            *word = new;
        }
        let used = self.width & 63;
        if used != 0 {
            self.words[start + row_words - 1] |= u64::MAX << used;
        }
    }

    /// Blocks or frees a tile of the map.
    #[inline]
    pub(super) fn set_tile(&mut self, x: u32, y: u32, blocked: bool) {
        debug_assert!(x < self.width && y < self.height);
        let index = self.word_index(x, y);
        let word = &mut self.words[index];
        *word = *word & !(1 << (x & 63)) | u64::from(blocked) << (x & 63);
    }

    /// The number of fragments of the free straight neighbours of a tile of the map, if only straight steps within the
    /// 3 × 3 around it, and not through it, connect them.
    #[inline]
    pub(super) fn fragments_around(&self, x: u32, y: u32) -> u32 {
        let (x, y) = (x as i32, y as i32);
        // Three tiles of a row, 1 = free, the left one lowest.
        let [above, own, below] = [y - 1, y, y + 1].map(|y| !self.word_at(x - 1, y) as u32 & 7);
        let (left, right) = (own & 1, own >> 2);
        let straight = (above >> 1 & 1) + left + right + (below >> 1 & 1);
        let joined = |row: u32| {
            let corners = row & row >> 1;
            (corners & left) + (corners >> 1 & right)
        };
        // Every corner joins two fragments, but four of them close a ring.
        (straight - joined(above) - joined(below)).max(straight.min(1))
    }

    /// Blocks or frees a run of tiles.
    pub(super) fn set_run(&mut self, run: TileRun, blocked: bool) {
        debug_assert!(run.start <= run.end && run.end < self.width && run.y < self.height);
        let (first, last) = (
            self.word_index(run.start, run.y),
            self.word_index(run.end, run.y),
        );
        for index in first..=last {
            let mut mask = u64::MAX;
            if index == first {
                mask &= u64::MAX << (run.start & 63);
            }
            if index == last {
                mask &= u64::MAX >> (63 - (run.end & 63));
            }
            if blocked {
                self.words[index] |= mask;
            } else {
                self.words[index] &= !mask;
            }
        }
    }

    /// The first free tile of a row at `x` or after it.
    pub(super) fn next_free(&self, x: u32, y: u32) -> Option<u32> {
        let row = self.row(y);
        let mut index = x as usize >> 6;
        let mut free = !*row.get(index)? & u64::MAX << (x & 63);
        while free == 0 {
            index += 1;
            free = !*row.get(index)?;
        }
        Some(index as u32 * 64 + free.trailing_zeros())
    }

    /// The last free tile of a row at `x` or before it.
    pub(super) fn last_free(&self, x: u32, y: u32) -> Option<u32> {
        let row = self.row(y);
        let mut index = x as usize >> 6;
        let mut free = !row[index] & u64::MAX >> (63 - (x & 63));
        while free == 0 {
            index = index.checked_sub(1)?;
            free = !row[index];
        }
        Some(index as u32 * 64 + 63 - free.leading_zeros())
    }

    /// The whole run of free tiles around a free tile.
    pub(super) fn run_around(&self, x: u32, y: u32) -> TileRun {
        debug_assert!(!self.is_blocked(x as i32, y as i32));
        TileRun {
            y,
            start: self.run_start(x, y),
            end: self.run_end(x, y),
        }
    }

    /// The last tile of the run of a free tile. The padding ends every run.
    pub(super) fn run_end(&self, x: u32, y: u32) -> u32 {
        let mut index = self.word_index(x, y);
        let mut blocked = self.words[index] & u64::MAX << (x & 63);
        let mut base = x & !63;
        while blocked == 0 {
            index += 1;
            base += 64;
            blocked = self.words[index];
        }
        base + blocked.trailing_zeros() - 1
    }

    /// The first tile of the run of a free tile.
    pub(super) fn run_start(&self, x: u32, y: u32) -> u32 {
        let mut index = self.word_index(x, y);
        let mut blocked = self.words[index] & u64::MAX >> (63 - (x & 63));
        let mut base = i64::from(x & !63);
        while blocked == 0 {
            index -= 1;
            base -= 64;
            blocked = self.words[index];
        }
        (base + 64 - i64::from(blocked.leading_zeros())) as u32
    }

    /// The runs of free tiles of a row, from left to right.
    pub(super) fn runs(&self, y: u32) -> impl Iterator<Item = TileRun> + '_ {
        let mut x = 0;
        std::iter::from_fn(move || {
            let start = self.next_free(x, y)?;
            let end = self.run_end(start, y);
            x = end + 1;
            Some(TileRun { y, start, end })
        })
    }

    /// Whether all tiles of a run within the map are free.
    #[inline]
    pub fn is_run_free(&self, start: i32, end: i32, y: i32) -> bool {
        debug_assert!(start <= end);
        let mut x = start;
        while end - x >= 64 {
            if self.word_at(x, y) != 0 {
                return false;
            }
            x += 64;
        }
        self.word_at(x, y) << (63 - (end - x)) == 0
    }

    /// Makes the part of this plane that mirrors `rect` of `other` its transpose, in whole blocks of 64 × 64.
    pub(super) fn transpose_from(&mut self, other: &BitPlane, rect: TileRect) {
        debug_assert!(self.width == other.height && self.height == other.width);
        let mut block = [0u64; 64];
        for block_y in rect.y / 64..rect.bottom().div_ceil(64) {
            for block_x in rect.x / 64..rect.right().div_ceil(64) {
                for (row, word) in (block_y * 64..).zip(&mut block) {
                    *word = if row < other.height {
                        other.words[other.word_index(block_x * 64, row)]
                    } else {
                        u64::MAX
                    };
                }
                transpose_block(&mut block);
                for (column, word) in (block_x * 64..self.height).zip(&block) {
                    let index = self.word_index(block_y * 64, column);
                    self.words[index] = *word;
                }
            }
        }
    }
}

/// Transposes 64 × 64 bits in place by swapping quarters, quarters of quarters and so on (Warren, *Hacker's Delight*,
/// section 7-3, with the lowest bit first).
pub(crate) fn transpose_block(block: &mut [u64; 64]) {
    let mut side = 32;
    let mut mask = 0x0000_0000_FFFF_FFFFu64;
    while side != 0 {
        for row in (0..64).filter(|row| row & side == 0) {
            let swapped = (block[row] >> side ^ block[row + side]) & mask;
            block[row] ^= swapped << side;
            block[row + side] ^= swapped;
        }
        side /= 2;
        mask ^= mask << side;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plane(width: u32, height: u32, blocked: impl Fn(u32, u32) -> bool) -> BitPlane {
        let mut plane = BitPlane::blocked(width, height);
        for y in 0..height {
            for x in 0..width {
                if !blocked(x, y) {
                    plane.set_run(
                        TileRun {
                            y,
                            start: x,
                            end: x,
                        },
                        false,
                    );
                }
            }
        }
        plane
    }

    fn planes() -> impl Strategy<Value = (BitPlane, Vec<bool>)> {
        (
            1u32..140,
            1u32..70,
            prop::sample::select(vec![0u32, 1, 5, 50, 95, 99, 100]),
            any::<u32>(),
        )
            .prop_map(|(width, height, percent, seed)| {
                let tiles: Vec<bool> = (0..width * height)
                    .map(|i| {
                        (i ^ seed)
                            .wrapping_mul(0x9E37_79B9)
                            .rotate_left(15)
                            .wrapping_mul(0x85EB_CA6B)
                            >> 8
                    })
                    .map(|hash| hash % 100 < percent)
                    .collect();
                (
                    plane(width, height, |x, y| tiles[(y * width + x) as usize]),
                    tiles,
                )
            })
    }

    proptest! {
        #![proptest_config(draws!(64))]

        #[test]
        fn word_at_returns_the_64_tiles_of_its_offset((plane, tiles) in planes()) {
            let (width, height) = (plane.width() as i32, plane.height() as i32);
            let blocked = |x: i32, y: i32| {
                x < 0 || y < 0 || x >= width || y >= height || tiles[(y * width + x) as usize]
            };
            for y in -1..=height {
                for x in -64..=width {
                    let word = plane.word_at(x, y);
                    prop_assert_eq!(plane.is_blocked(x, y), blocked(x, y));
                    // Carries go wrong at the far ends of the word; the middle follows from the others.
                    for i in [0, 1, 31, 62, 63] {
                        prop_assert_eq!(word >> i & 1 != 0, blocked(x + i, y), "x {} y {} bit {}", x, y, i);
                    }
                }
            }
        }

        #[test]
        fn runs_are_the_maximal_free_stretches((plane, tiles) in planes()) {
            let width = plane.width() as usize;
            for (y, row) in tiles.chunks(width).enumerate() {
                let mut expected = Vec::new();
                let mut x = 0;
                while x < width {
                    let len = row[x..].iter().take_while(|blocked| !**blocked).count();
                    if len > 0 {
                        expected.push(TileRun { y: y as u32, start: x as u32, end: (x + len - 1) as u32 });
                    }
                    x += len + 1;
                }
                let found: Vec<TileRun> = plane.runs(y as u32).collect();
                prop_assert_eq!(&found, &expected);
                for run in found {
                    for x in run.start..=run.end {
                        prop_assert_eq!(plane.run_around(x, run.y), run);
                    }
                }
                for x in 0..width {
                    let after = (x..width).find(|x| !row[*x]).map(|x| x as u32);
                    let before = (0..=x).rev().find(|x| !row[*x]).map(|x| x as u32);
                    prop_assert_eq!(plane.next_free(x as u32, y as u32), after);
                    prop_assert_eq!(plane.last_free(x as u32, y as u32), before);
                }
            }
        }

        #[test]
        fn neighbour_fragments_match_a_flood_fill((plane, _) in planes()) {
            for y in 0..plane.height() as i32 {
                for x in 0..plane.width() as i32 {
                    // The ring around the tile, in order, straight neighbours at even indices.
                    let ring = [(0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1)]
                        .map(|(dx, dy)| !plane.is_blocked(x + dx, y + dy));
                    // A fragment ends at a straight neighbour from which the ring does not continue to the next.
                    let goes_on = |i: usize| ring[i] && ring[(i + 1) % 8] && ring[(i + 2) % 8];
                    let straight = [0, 2, 4, 6].iter().filter(|i| ring[**i]).count();
                    let ends = [0, 2, 4, 6].iter().filter(|i| ring[**i] && !goes_on(**i)).count();
                    let expected = if straight > 0 { ends.max(1) } else { 0 };
                    prop_assert_eq!(plane.fragments_around(x as u32, y as u32), expected as u32);
                }
            }
        }

        #[test]
        fn run_is_free_when_all_its_tiles_are((plane, tiles) in planes(), a in any::<u32>(), b in any::<u32>()) {
            let (a, b) = (a % plane.width(), b % plane.width());
            let (start, end) = (a.min(b), a.max(b));
            for (y, row) in tiles.chunks(plane.width() as usize).enumerate() {
                let expected = row[start as usize..=end as usize].iter().all(|blocked| !blocked);
                prop_assert_eq!(plane.is_run_free(start as i32, end as i32, y as i32), expected);
            }
        }

        #[test]
        fn a_transposed_plane_swaps_x_and_y((rows, _) in planes()) {
            let mut columns = BitPlane::blocked(rows.height(), rows.width());
            columns.transpose_from(&rows, TileRect::new(0, 0, rows.width(), rows.height()));
            let expected = plane(rows.height(), rows.width(), |x, y| rows.is_blocked(y as i32, x as i32));
            prop_assert_eq!(columns, expected);
        }

        #[test]
        fn setting_a_run_touches_no_other_tile(
            (mut plane, tiles) in planes(),
            (a, b, y) in any::<(u32, u32, u32)>(),
            blocked: bool,
        ) {
            let (a, b, y) = (a % plane.width(), b % plane.width(), y % plane.height());
            let run = TileRun { y, start: a.min(b), end: a.max(b) };
            plane.set_run(run, blocked);
            for (i, old) in (0..).zip(&tiles) {
                let (x, row) = (i % plane.width(), i / plane.width());
                let expected = if row == y && (run.start..=run.end).contains(&x) { blocked } else { *old };
                prop_assert_eq!(plane.is_blocked(x as i32, row as i32), expected);
            }
            let before = plane.clone();
            plane.set_tile(a, y, !blocked);
            plane.set_tile(a, y, before.is_blocked(a as i32, y as i32));
            prop_assert_eq!(plane, before);
        }
    }
}
