//! Changes of tiles at run time.
//!
//! ```text
//! rectangle + edit ──▶ runs that really change ──▶ rows ──▶ regions ──▶ columns ──▶ changed rectangle
//! ```
//! Invariant: after an edit, and once its regions are final, the map equals one that is built from the same tiles; only the
//! region ids may differ.
//!
//! Cost: O(words of the rectangle), plus the regions (see `regions/edit.rs`), plus transposing the blocks
//! of 64 × 64 tiles that the changed rectangle touches, or its tiles when they are few. An edit of one tile has its own
//! path, which allocates nothing while its 3 × 3 decides about the regions.

use std::sync::Arc;

use glam::IVec2;
use serde::{Deserialize, Serialize};

use super::TileMap;
use super::bit_plane::{BitPlane, TileRun};
use super::error::{MapError, SourceLocation};
use super::rect::TileRect;
use super::tiles::{check_size, parse_ascii, row_fingerprint};

/// The change of the tiles of a rectangle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TileEdit {
    /// All become blocked.
    Block,
    /// All become free.
    Free,
    /// Blocked ones become free, free ones blocked.
    Toggle,
    /// All are set to the pattern, which is as large as the rectangle.
    Write(TilePattern),
}

/// A rectangle of blocked and free tiles that can be written into a map.
///
/// In a scenario it is a list of rows: `["@@@", "@.@"]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct TilePattern {
    plane: BitPlane,
}

impl TilePattern {
    /// A pattern drawn in text, in the format of [`TileMap::from_ascii`].
    pub fn from_ascii(text: &str) -> Result<Self, MapError> {
        Ok(Self {
            plane: parse_ascii(text)?,
        })
    }

    /// A pattern of the tiles for which `is_blocked(x, y)` holds.
    ///
    /// Errors: [`MapError::Size`], by the limits of maps.
    pub fn from_fn(
        width: u32,
        height: u32,
        is_blocked: impl FnMut(u32, u32) -> bool,
    ) -> Result<Self, MapError> {
        check_size(
            u64::from(width),
            u64::from(height),
            &SourceLocation::default(),
        )?;
        Ok(Self {
            plane: BitPlane::from_fn(width, height, is_blocked),
        })
    }

    pub(super) fn from_plane(plane: BitPlane) -> Self {
        Self { plane }
    }

    /// The number of tiles from left to right.
    pub fn width(&self) -> u32 {
        self.plane.width()
    }

    /// The number of tiles from top to bottom.
    pub fn height(&self) -> u32 {
        self.plane.height()
    }

    /// Whether a tile of the pattern is blocked. Everything outside is.
    pub fn is_blocked(&self, tile: IVec2) -> bool {
        self.plane.is_blocked(tile.x, tile.y)
    }
}

impl From<&TileMap> for TilePattern {
    /// The whole map as a pattern.
    fn from(map: &TileMap) -> Self {
        Self {
            plane: map.rows.clone(),
        }
    }
}

impl TryFrom<Vec<String>> for TilePattern {
    type Error = MapError;

    fn try_from(rows: Vec<String>) -> Result<Self, MapError> {
        Self::from_ascii(&rows.join("\n"))
    }
}

impl From<TilePattern> for Vec<String> {
    fn from(pattern: TilePattern) -> Self {
        let letter = |x, y| {
            if pattern.is_blocked((x as i32, y as i32).into()) {
                '@'
            } else {
                '.'
            }
        };
        (0..pattern.height())
            .map(|y| (0..pattern.width()).map(|x| letter(x, y)).collect())
            .collect()
    }
}

impl TileMap {
    /// Blocks or frees a tile; returns whether it changed. [`TileMap::edit`] changes a whole rectangle in less time.
    ///
    /// A scene's map is changed with `throng::map::edit_map`, which also notifies the systems that depend on it.
    ///
    /// Cost: as an edit of one tile, 10 to 100 ns unless it splits or joins large regions.
    ///
    /// Errors, with the map unchanged: [`MapError::Rect`] when the tile is outside the map.
    ///
    /// ```
    /// use glam::IVec2;
    /// use throng_nav::map::TileMap;
    ///
    /// let mut map = TileMap::new(8, 8, false)?;
    /// assert!(map.set_blocked(IVec2::new(3, 4), true)?);
    /// assert!(map.is_blocked(IVec2::new(3, 4)));
    /// # Ok::<(), throng_nav::map::MapError>(())
    /// ```
    pub fn set_blocked(&mut self, tile: IVec2, blocked: bool) -> Result<bool, MapError> {
        // A negative coordinate is beyond any size.
        let rect = TileRect::new(tile.x as u32, tile.y as u32, 1, 1);
        let edit = if blocked {
            TileEdit::Block
        } else {
            TileEdit::Free
        };
        Ok(self.edit(rect, &edit)?.is_some())
    }

    /// Changes the tiles of a rectangle; updates both planes and the regions.
    ///
    /// The regions after a large split or join are not all computed at once: call
    /// [`TileMap::finish_splits`] until the [regions are final](TileMap::has_final_regions).
    ///
    /// Returns the bounding rectangle of the tiles that really changed, `None` if there are none. The same edits and
    /// calls of `finish_splits` in the same order give the same region ids.
    ///
    /// Errors, with the map unchanged: [`MapError::Rect`] when the rectangle is empty or not fully inside the map,
    /// [`MapError::Pattern`] when a pattern is not as large as the rectangle.
    pub fn edit(&mut self, rect: TileRect, edit: &TileEdit) -> Result<Option<TileRect>, MapError> {
        let (width, height) = (self.width(), self.height());
        let inside = u64::from(rect.x) + u64::from(rect.width) <= u64::from(width)
            && u64::from(rect.y) + u64::from(rect.height) <= u64::from(height);
        if !inside || rect.tile_count() == 0 {
            return Err(MapError::Rect {
                rect,
                width,
                height,
            });
        }
        if let TileEdit::Write(pattern) = edit
            && (pattern.width(), pattern.height()) != (rect.width, rect.height)
        {
            return Err(MapError::Pattern {
                rect,
                width: pattern.width(),
                height: pattern.height(),
            });
        }

        if rect.tile_count() == 1 {
            return Ok(self.edit_tile(rect, edit).then_some(rect));
        }
        let (blocked, freed) = changes(&self.rows, rect, edit);
        let Some(bounds) = bounds(blocked.iter().chain(&freed)) else {
            return Ok(None);
        };
        self.fingerprint ^= fingerprint(&self.rows, bounds);
        if !self.sections.is_empty() {
            self.sections = Arc::default();
        }
        self.regions.block(&mut self.rows, &blocked);
        self.regions.free(&mut self.rows, &freed);
        self.fingerprint ^= fingerprint(&self.rows, bounds);
        if bounds.tile_count() <= SINGLE_TILE_UPDATES_MAX {
            for (runs, is_blocked) in [(&blocked, true), (&freed, false)] {
                for run in runs {
                    (run.start..=run.end).for_each(|x| self.columns.set_tile(run.y, x, is_blocked));
                }
            }
        } else {
            self.columns.transpose_from(&self.rows, bounds);
        }
        Ok(Some(bounds))
    }

    /// Changes a single tile; returns whether it really changed.
    fn edit_tile(&mut self, rect: TileRect, edit: &TileEdit) -> bool {
        let (x, y) = (rect.x, rect.y);
        let was_blocked = self.rows.is_blocked(x as i32, y as i32);
        let is_blocked = match edit {
            TileEdit::Block => true,
            TileEdit::Free => false,
            TileEdit::Toggle => !was_blocked,
            TileEdit::Write(pattern) => pattern.is_blocked(IVec2::ZERO),
        };
        if is_blocked == was_blocked {
            return false;
        }
        self.fingerprint ^= fingerprint(&self.rows, rect);
        if !self.sections.is_empty() {
            self.sections = Arc::default();
        }
        if is_blocked {
            self.regions.block_tile(&mut self.rows, x, y);
        } else {
            self.regions.free_tile(&mut self.rows, x, y);
        }
        self.fingerprint ^= fingerprint(&self.rows, rect);
        self.columns.set_tile(y, x, is_blocked);
        true
    }
}

/// Up to this many tiles, the transposed plane is updated tile by tile; above, by blocks of 64 × 64. A tile takes one
/// or two nanoseconds, a block about 150.
const SINGLE_TILE_UPDATES_MAX: u64 = 128;

/// The runs that an edit blocks and those that it frees, each sorted.
fn changes(rows: &BitPlane, rect: TileRect, edit: &TileEdit) -> (Vec<TileRun>, Vec<TileRun>) {
    let (mut blocked, mut freed) = (Vec::new(), Vec::new());
    for y in rect.y..rect.bottom() {
        for index in rect.x / 64..rect.right().div_ceil(64) {
            let start = index * 64;
            let old = rows.word_at(start as i32, y as i32);
            let new = match edit {
                TileEdit::Block => u64::MAX,
                TileEdit::Free => 0,
                TileEdit::Toggle => !old,
                TileEdit::Write(pattern) => pattern
                    .plane
                    .word_at(start as i32 - rect.x as i32, (y - rect.y) as i32),
            };
            let skipped = rect.x.saturating_sub(start);
            let used = (rect.right() - start).min(64);
            let mask = u64::MAX << skipped & u64::MAX >> (64 - used);
            push_runs(&mut blocked, y, start, new & !old & mask);
            push_runs(&mut freed, y, start, !new & old & mask);
        }
    }
    (blocked, freed)
}

/// Adds the runs of set bits of a word whose lowest bit is tile (start, y).
fn push_runs(runs: &mut Vec<TileRun>, y: u32, start: u32, mut bits: u64) {
    while bits != 0 {
        let first = bits.trailing_zeros();
        let len = (!(bits >> first)).trailing_zeros().min(64 - first);
        let (start, end) = (start + first, start + first + len - 1);
        match runs.last_mut() {
            Some(last) if last.y == y && last.end + 1 == start => last.end = end,
            _ => runs.push(TileRun { y, start, end }),
        }
        bits &= !(u64::MAX >> (64 - len) << first);
    }
}

fn bounds<'a>(runs: impl Iterator<Item = &'a TileRun>) -> Option<TileRect> {
    let corners = |run: &TileRun| (run.start, run.y, run.end, run.y);
    let union = runs
        .map(corners)
        .reduce(|a, b| (a.0.min(b.0), a.1.min(b.1), a.2.max(b.2), a.3.max(b.3)));
    union.map(|(left, top, right, bottom)| {
        TileRect::new(left, top, right - left + 1, bottom - top + 1)
    })
}

/// The contribution of the words of a rectangle to the map's fingerprint.
fn fingerprint(rows: &BitPlane, rect: TileRect) -> u64 {
    (rect.y..rect.bottom()).fold(0, |sum, y| {
        sum ^ row_fingerprint(rows, y, rect.x..rect.right())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangle_outside_the_map_is_refused_without_changes() {
        let mut map = TileMap::new(10, 8, false).unwrap();
        let before = map.clone();
        let beyond = [
            (9, 0, 2, 1),
            (0, 7, 1, 2),
            (10, 0, 1, 1),
            (0, 0, 0, 1),
            (u32::MAX, 0, u32::MAX, 1),
        ];
        for rect in beyond.map(TileRect::from) {
            let error = map.edit(rect, &TileEdit::Block).unwrap_err();
            assert!(
                matches!(
                    error,
                    MapError::Rect {
                        width: 10,
                        height: 8,
                        ..
                    }
                ),
                "{error}"
            );
            assert!(error.to_string().contains(&rect.to_string()), "{error}");
        }
        assert_eq!(map, before);
    }

    #[test]
    fn pattern_size_must_match_its_rectangle() {
        let mut map = TileMap::new(10, 8, false).unwrap();
        let write = TileEdit::Write(TilePattern::from_ascii("@.@").unwrap());
        let error = map.edit(TileRect::new(0, 0, 2, 1), &write).unwrap_err();
        assert!(
            error.to_string().contains("3 × 1") && error.to_string().contains("2 × 1"),
            "{error}"
        );
        let changed = map.edit(TileRect::new(4, 2, 3, 1), &write).unwrap();
        assert_eq!(changed, Some(TileRect::new(4, 2, 3, 1)));
        assert!(
            map.is_blocked((4, 2).into())
                && !map.is_blocked((5, 2).into())
                && map.is_blocked((6, 2).into())
        );
    }

    #[test]
    fn set_blocked_changes_one_tile_and_refuses_those_outside() {
        let mut map = TileMap::from_ascii("...\n.@.").unwrap();
        assert!(map.set_blocked(IVec2::new(2, 0), true).unwrap());
        assert!(!map.set_blocked(IVec2::new(2, 0), true).unwrap());
        assert!(map.set_blocked(IVec2::new(1, 1), false).unwrap());
        assert_eq!(map, TileMap::from_ascii("..@\n...").unwrap());
        let before = map.clone();
        for outside in [(-1, 0), (0, -1), (3, 0), (0, 2), (i32::MIN, i32::MAX)] {
            let error = map.set_blocked(outside.into(), true).unwrap_err();
            assert!(matches!(error, MapError::Rect { .. }), "{error}");
        }
        assert_eq!(map, before);
    }

    #[test]
    fn edit_returns_the_bounds_of_changed_tiles() {
        let mut map = TileMap::from_ascii("....\n.@@.\n....").unwrap();
        assert_eq!(
            map.edit(TileRect::new(1, 1, 2, 1), &TileEdit::Block)
                .unwrap(),
            None
        );
        let changed = map
            .edit(TileRect::new(0, 0, 4, 3), &TileEdit::Free)
            .unwrap();
        assert_eq!(changed, Some(TileRect::new(1, 1, 2, 1)));
        let changed = map.edit(map.rect(), &TileEdit::Toggle).unwrap();
        assert_eq!(changed, Some(map.rect()));
        assert_eq!(
            (map.free_count(), map.region_count(), map.largest_region()),
            (0, 0, None)
        );
    }

    #[test]
    fn patterns_and_edits_parse_from_scenario_ron() {
        let edit: TileEdit = ron::from_str("Write([\"@.\", \".@\"])").unwrap();
        assert_eq!(
            edit,
            TileEdit::Write(TilePattern::from_ascii("@.\n.@").unwrap())
        );
        assert_eq!(
            ron::from_str::<TileEdit>(&ron::to_string(&edit).unwrap()).unwrap(),
            edit
        );
        let error = ron::from_str::<TileEdit>("Write([\"@.\", \"@x\"])")
            .unwrap_err()
            .to_string();
        assert!(error.contains("2:2") && error.contains("'x'"), "{error}");
        let rect: TileRect = ron::from_str("(490, 300, 20, 4)").unwrap();
        assert_eq!(rect, TileRect::new(490, 300, 20, 4));
        assert_eq!(ron::to_string(&rect).unwrap(), "(490,300,20,4)");
    }
}
