//! A search as an image: the map, expanded nodes, nodes that were generated but not expanded (for jump point algorithms: jump points), the
//! path, a ring around each of its ends, and a legend.
//!
//! Cost: memory grows with the nodes of the search and the length of the path, not with the map.

use std::path::Path;

use glam::IVec2;

use super::measure::MeasuredAnswers;
use crate::image::{self, Color};
use crate::picture::{BLUE, GREEN, Legend, MapPicture, PURPLE, SKY, Swatch, VERMILLION};
use crate::{CliError, bench::number};
use throng::nav::{PathQuery, SearchOutcome};

/// The state of a tile in a search; a tile with several states shows the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Expanded,
    /// Put on the open list, but not expanded.
    Generated,
}

impl Mark {
    const fn color(self) -> Color {
        match self {
            Self::Expanded => SKY,
            Self::Generated => BLUE,
        }
    }
}

const PATH: Color = VERMILLION;
const START: Color = GREEN;
const GOAL: Color = PURPLE;

/// Up to this number, tiles of a search are drawn enlarged so that each is visible; more of them are visible as areas.
const VISIBLE_TILES_MAX: usize = 10_000;

/// Draws the search of a query.
pub(super) fn render(
    output: &Path,
    one: &MeasuredAnswers,
    query: PathQuery,
) -> Result<(), CliError> {
    let map = &*one.map;
    let scratch = one.run_again(query);
    let touched = scratch.search.visited(map, &one.nav_map, one.algorithm);
    let mut picture = MapPicture::new(map);
    let marks = marks(touched);
    if marks.len() <= VISIBLE_TILES_MAX {
        // Expanded tiles are drawn over generated ones.
        let mut colors: Vec<(IVec2, Color)> = Vec::new();
        for layer in [Mark::Generated, Mark::Expanded] {
            let of_layer = marks.iter().filter(|(_, mark)| *mark == layer);
            colors.extend(of_layer.map(|(tile, mark)| (*tile, mark.color())));
        }
        picture.paint_few(&colors);
    } else {
        for (tile, mark) in marks {
            picture.paint_tile(tile, mark.color());
        }
    }
    picture.path(&scratch.waypoints, PATH);
    // An end outside the map is not drawn.
    for (end, color) in [(query.from, START), (query.to, GOAL)] {
        if map.rect().contains(end) {
            picture.ring(end, color);
        }
    }
    let answer = match scratch.outcome {
        Some(SearchOutcome::Found(path)) => format!("{} tiles", number(path.length_tiles())),
        Some(SearchOutcome::Capped) => "stopped at the node limit".to_owned(),
        _ => "no path".to_owned(),
    };
    let (from, to) = (query.from, query.to);
    let legend = Legend {
        title: format!(
            "{} from {},{} to {},{}: {answer}",
            one.algorithm.name(),
            from.x,
            from.y,
            to.x,
            to.y
        ),
        facts: vec![format!(
            "{} x {} tiles; {} nodes expanded, {} generated",
            map.width(),
            map.height(),
            scratch.search.expanded(),
            scratch.search.generated()
        )],
        marks: vec![
            (Swatch::Line, PATH, "path".to_owned()),
            (Swatch::Ring, START, "start".to_owned()),
            (Swatch::Ring, GOAL, "goal".to_owned()),
            (Swatch::Tile, Mark::Expanded.color(), "expanded".to_owned()),
            (
                Swatch::Tile,
                Mark::Generated.color(),
                "only generated".to_owned(),
            ),
            (Swatch::Tile, image::BLOCKED, "blocked".to_owned()),
        ],
    };
    picture.write(output, &legend)
}

/// The tiles that a search touched, each once; a tile that was expanded in any direction counts as expanded.
fn marks(touched: impl Iterator<Item = (IVec2, bool)>) -> Vec<(IVec2, Mark)> {
    let mut marks: Vec<(IVec2, Mark)> = touched
        .map(|(tile, is_expanded)| {
            let mark = if is_expanded {
                Mark::Expanded
            } else {
                Mark::Generated
            };
            (tile, mark)
        })
        .collect();
    marks.sort_unstable_by_key(|(tile, mark)| (tile.y, tile.x, *mark));
    marks.dedup_by_key(|(tile, _)| *tile);
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tile_expanded_in_any_direction_counts_as_expanded() {
        let tile = IVec2::new(1, 1);
        let touched = [
            (IVec2::X, true),
            (tile, false),
            (tile, true),
            (IVec2::Y, false),
        ];
        assert_eq!(
            marks(touched.into_iter()),
            [
                (IVec2::X, Mark::Expanded),
                (IVec2::Y, Mark::Generated),
                (tile, Mark::Expanded),
            ]
        );
    }
}
