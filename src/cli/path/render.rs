//! A search as an image: the map, what was expanded, what was only generated (for the jump point algorithms: jump points),
//! the path and its ends.
//!
//! The colours are of the palette of Okabe and Ito ("Color Universal Design", 2008), which people with any kind of colour
//! vision can tell apart. Small maps are enlarged, a square of pixels a tile.
//!
//! Cost: memory by the nodes of the search and the tiles of the path, not by the map.

use std::path::Path;

use glam::IVec2;

use super::measure::MeasuredAnswers;
use crate::cli::Failure;
use crate::cli::image::{self, Color};
use crate::map::TileMap;
use crate::nav::Query;

/// What a tile is to a search; where it is several things, the first is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// Start or goal.
    End,
    Path,
    Expanded,
    /// Put on the open list and never taken off.
    Generated,
}

impl Mark {
    fn color(self) -> Color {
        match self {
            Mark::End => [204, 121, 167],
            Mark::Path => [213, 94, 0],
            Mark::Expanded => [86, 180, 233],
            Mark::Generated => [0, 114, 178],
        }
    }
}

/// Up to this side in pixels a map is enlarged, by at most [`SCALE_MAX`].
const SIDE_PX: u32 = 1_024;
const SCALE_MAX: u32 = 16;

/// How many pixels a tile is wide and high.
pub(super) fn scale(map: &TileMap) -> u32 {
    (SIDE_PX / map.width().max(map.height())).clamp(1, SCALE_MAX)
}

/// Draws the search for a query.
pub(super) fn render(output: &Path, one: &MeasuredAnswers, query: Query) -> Result<(), Failure> {
    let map = &*one.map;
    let scratch = one.again(query);
    let touched = scratch.search.touched(map, &one.nav_map, one.algorithm);
    let marks = marks([query.from, query.to], &scratch.waypoints, touched);
    let scale = scale(map);
    image::write(
        output,
        map.width() * scale,
        map.height() * scale,
        |y, row| {
            let y = (y / scale) as i32;
            let mut marks = marks[marks.partition_point(|(row, ..)| *row < y)..]
                .iter()
                .take_while(|(row, ..)| *row == y)
                .peekable();
            for x in 0..map.width() as i32 {
                let mut color = if map.is_blocked(x, y) {
                    image::BLOCKED
                } else {
                    image::FREE
                };
                if let Some((.., mark)) = marks.next_if(|(_, column, _)| *column == x) {
                    color = mark.color();
                }
                for _ in 0..scale {
                    row.extend_from_slice(&color);
                }
            }
        },
    )
}

/// The marked tiles as y, x and mark, row by row, each once. `touched` are tiles, and whether they were expanded.
fn marks(
    ends: [IVec2; 2],
    waypoints: &[IVec2],
    touched: impl Iterator<Item = (IVec2, bool)>,
) -> Vec<(i32, i32, Mark)> {
    let mut marks: Vec<(i32, i32, Mark)> = ends.map(|end| (end.y, end.x, Mark::End)).to_vec();
    for pair in waypoints.windows(2) {
        let way = pair[1] - pair[0];
        let tiles = (0..=way.abs().max_element()).map(|step| pair[0] + way.signum() * step);
        marks.extend(tiles.map(|tile| (tile.y, tile.x, Mark::Path)));
    }
    marks.extend(touched.map(|(tile, is_expanded)| {
        let mark = if is_expanded {
            Mark::Expanded
        } else {
            Mark::Generated
        };
        (tile.y, tile.x, mark)
    }));
    marks.sort_unstable();
    marks.dedup_by_key(|(y, x, _)| (*y, *x));
    // Ends outside the map have no pixel.
    marks.retain(|(y, x, _)| *x >= 0 && *y >= 0);
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_covers_what_was_searched_and_its_ends_cover_the_path() {
        let ends = [IVec2::ZERO, IVec2::new(3, 1)];
        let waypoints = [ends[0], IVec2::new(2, 0), ends[1]];
        // One tile was expanded in one direction and only generated in another.
        let tile = IVec2::new(1, 1);
        let touched = [
            (ends[0], true),
            (IVec2::X, true),
            (tile, false),
            (tile, true),
            (IVec2::Y, false),
        ];
        assert_eq!(
            marks(ends, &waypoints, touched.into_iter()),
            [
                (0, 0, Mark::End),
                (0, 1, Mark::Path),
                (0, 2, Mark::Path),
                (1, 0, Mark::Generated),
                (1, 1, Mark::Expanded),
                (1, 3, Mark::End),
            ]
        );
    }

    #[test]
    fn small_maps_are_enlarged_and_large_ones_are_not() {
        let scale = |width, height| scale(&TileMap::new(width, height, true).unwrap());
        assert_eq!((scale(4, 3), scale(100, 200), scale(2_000, 10)), (16, 5, 1));
    }
}
