//! Shared by the generators: chances, noise, a plane to draw on, and checks of recipes.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

use crate::map::bit_plane::{BitPlane, TileRun};
use crate::map::error::{MapError, SourceLocation};
use crate::map::rect::{SIDE_MAX, TILES_MAX};
use crate::map::regions::run_components;
use crate::map::tiles::check_size;

pub(super) fn noise(width: u32, height: u32, blocked: Chance, rng: &mut Pcg64Mcg) -> BitPlane {
    BitPlane::from_fn(width, height, |_, _| blocked.draw(rng))
}

/// Blocks all regions with fewer tiles than the given number, except the largest.
///
/// Works on the runs of the rows, so that the map's derived data is built only once, from the final tiles.
pub(super) fn fill_pockets(mut rows: BitPlane, tiles_min: u64) -> BitPlane {
    let (numbers, tiles) = run_components(&rows);
    let largest = tiles.iter().copied().max().unwrap_or_default();
    let tiles_min = tiles_min.min(u64::from(largest));
    let mut numbers = numbers.into_iter();
    let mut runs = Vec::new();
    for y in 0..rows.height() {
        runs.clear();
        runs.extend(rows.runs(y));
        for (&run, number) in runs.iter().zip(numbers.by_ref()) {
            if u64::from(tiles[number as usize]) < tiles_min {
                rows.set_run(run, true);
            }
        }
    }
    rows
}

/// A chance in steps of 2⁻³², so that draws compare integers.
#[derive(Clone, Copy)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(field: &'static str, share: f64) -> Result<Self, MapError> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self((share * 4_294_967_296.0) as u64))
        } else {
            Err(recipe_error(field, share, "a share from 0 to 1"))
        }
    }

    pub(super) const fn percent(percent: u64) -> Self {
        Self((percent << 32) / 100)
    }

    pub(super) fn draw(self, rng: &mut Pcg64Mcg) -> bool {
        u64::from(rng.next_u32()) < self.0
    }
}

/// A number from `low` to `high`, both included (Lemire's multiplication, without its rejection: the bias is below
/// 2⁻¹⁶ for the small ranges used here).
pub(super) fn between(low: i32, high: i32, rng: &mut Pcg64Mcg) -> i32 {
    debug_assert!(low <= high);
    let count = i64::from(high) - i64::from(low) + 1;
    low + ((i64::from(rng.next_u32()) * count) >> 32) as i32
}

fn recipe_error(
    field: &'static str,
    found: impl ToString,
    expected: impl Into<String>,
) -> MapError {
    MapError::Recipe {
        field,
        found: found.to_string(),
        expected: expected.into(),
    }
}

pub(super) fn check_sides(width: u32, height: u32) -> Result<(), MapError> {
    for (field, side) in [("width_tiles", width), ("height_tiles", height)] {
        check_range(field, side, 1, SIDE_MAX)?;
    }
    check_size(
        u64::from(width),
        u64::from(height),
        &SourceLocation::default(),
    )
    .map_err(|_| {
        let found = format!("{height} with a width of {width}");
        recipe_error(
            "height_tiles",
            found,
            format!("at most {TILES_MAX} tiles in all"),
        )
    })
}

pub(super) fn check_range(
    field: &'static str,
    found: u32,
    min: u32,
    max: u32,
) -> Result<(), MapError> {
    if (min..=max).contains(&found) {
        Ok(())
    } else {
        Err(recipe_error(
            field,
            found,
            format!("a whole number from {min} to {max}"),
        ))
    }
}

/// A plane to draw on with rectangles that may be partly or fully outside.
pub(super) struct Canvas {
    pub(super) plane: BitPlane,
}

impl Canvas {
    pub(super) fn fill(&mut self, x: i32, y: i32, width: i32, height: i32, blocked: bool) {
        let (left, right) = (x.max(0), (x + width).min(self.plane.width() as i32));
        if left >= right {
            return;
        }
        for y in y.max(0)..(y + height).min(self.plane.height() as i32) {
            self.plane.set_run(
                TileRun {
                    y: y as u32,
                    start: left as u32,
                    end: right as u32 - 1,
                },
                blocked,
            );
        }
    }
}
