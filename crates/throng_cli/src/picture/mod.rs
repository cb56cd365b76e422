//! Pictures: a map, marks over it, and a legend below.
//!
//! | file | holds |
//! |---|---|
//! | `overlay` | lines, discs, rings, letters: the pixels drawn over a picture |
//! | `legend` | the legend below a picture |
//! | `font` | the font of the legend |
//! | `crowd` | the crowd of a scene on its map |
//! | `animation` | the crowd over a whole run, as an animated PNG |
//!
//! Colours are from the palette of Okabe and Ito ("Color Universal Design", 2008), which people with any kind of colour vision can
//! distinguish; important marks also differ in shape. Small maps are enlarged to a square of pixels per tile; on large maps, lines and
//! marks grow with the picture, so that they are visible at reduced size.
//!
//! Cost: memory grows with what is drawn, not with the map.

mod animation;
mod crowd;
mod font;
mod legend;
mod overlay;

use std::path::Path;

use glam::{IVec2, Vec2};

pub(super) use animation::Animation;
pub(super) use crowd::draw_crowd;
pub(super) use legend::{Legend, Swatch};
use overlay::Overlay;

use super::CliError;
use super::image::{self, Color};
use throng::map::TileMap;

pub(super) const ORANGE: Color = [230, 159, 0];
pub(super) const SKY: Color = [86, 180, 233];
pub(super) const GREEN: Color = [0, 158, 115];
pub(super) const YELLOW: Color = [240, 228, 66];
pub(super) const BLUE: Color = [0, 114, 178];
pub(super) const VERMILLION: Color = [213, 94, 0];
pub(super) const PURPLE: Color = [204, 121, 167];

/// Colours around marks and paths, so that they stand out on free and on blocked ground.
const OUTLINE: Color = [20, 20, 26];
const CASING: Color = [255, 255, 255];

/// A map is enlarged up to this side in pixels, by at most [`SCALE_MAX`].
const SIDE_PX: u32 = 1_024;
pub(super) const SCALE_MAX: u32 = 64;

/// Minimum width of a legend, in pixels.
const WIDTH_MIN: u32 = 480;

/// The default width and height of a tile in pixels.
pub(super) fn default_scale(map: &TileMap) -> u32 {
    (SIDE_PX / map.width().max(map.height())).clamp(1, SCALE_MAX)
}

/// A map with marks.
pub(super) struct MapPicture<'a> {
    map: &'a TileMap,
    scale: u32,
    blocked: Color,
    /// Tiles with a colour of their own: y, x and colour.
    tiles: Vec<(i32, i32, Color)>,
    overlay: Overlay,
}

impl<'a> MapPicture<'a> {
    /// A map without marks.
    pub(super) fn new(map: &'a TileMap) -> Self {
        Self {
            map,
            scale: default_scale(map),
            blocked: image::BLOCKED,
            tiles: Vec::new(),
            overlay: Overlay::default(),
        }
    }

    /// Sets another colour for blocked tiles.
    pub(super) fn with_blocked_color(self, blocked: Color) -> Self {
        Self { blocked, ..self }
    }

    /// Colours a tile, unless it has a colour already.
    pub(super) fn paint_tile(&mut self, tile: IVec2, color: Color) {
        self.tiles.push((tile.y, tile.x, color));
    }

    /// Draws a few tiles enlarged, so that each is visible even if a tile has one pixel.
    pub(super) fn paint_few(&mut self, tiles: &[(IVec2, Color)]) {
        for &(tile, color) in tiles {
            let half = (1.5 * self.unit()).max(self.scale as f32 / 2.0);
            let middle = self.middle(tile);
            self.overlay.square(middle, half, color);
        }
    }

    /// The size factor of lines and marks: 1 for pictures of the usual size, more for larger ones.
    fn unit(&self) -> f32 {
        let side = self.map.width().max(self.map.height()) * self.scale;
        (side as f32 / SIDE_PX as f32).max(1.0)
    }

    /// The pixel at a position in tiles.
    fn pixel(&self, tiles: Vec2) -> Vec2 {
        tiles * self.scale as f32
    }

    /// The pixel in the middle of a tile.
    fn middle(&self, tile: IVec2) -> Vec2 {
        self.pixel(tile.as_vec2() + 0.5)
    }

    /// A path through the middles of tiles.
    pub(super) fn path(&mut self, waypoints: &[IVec2], color: Color) {
        let width = (3.0 * self.unit()).max(self.scale as f32 / 6.0);
        for (width, color) in [(width + 2.0 * self.unit(), CASING), (width, color)] {
            for pair in waypoints.windows(2) {
                let (from, to) = (self.middle(pair[0]), self.middle(pair[1]));
                self.overlay.line(from, to, width, color);
            }
        }
    }

    /// A ring around a tile.
    pub(super) fn ring(&mut self, tile: IVec2, color: Color) {
        let radius = (9.0 * self.unit()).max(self.scale as f32 * 0.45);
        let center = self.middle(tile);
        outlined_ring(&mut self.overlay, center, radius, color);
    }

    /// A mark at a position in tiles.
    pub(super) fn mark(&mut self, at: Vec2, swatch: Swatch, color: Color) {
        let (at, unit) = (self.pixel(at), self.unit());
        match swatch {
            Swatch::Square => outlined_square(&mut self.overlay, at, 2.0 * unit, color),
            Swatch::Diamond => outlined_diamond(&mut self.overlay, at, 10.0 * unit, color),
            _ => outlined_disc(&mut self.overlay, at, 2.5 * unit, color),
        }
    }

    /// Writes the picture with its legend.
    ///
    /// # Errors
    /// If the name is not that of an image, or the file cannot be written.
    pub(super) fn write(mut self, output: &Path, legend: &Legend) -> Result<(), CliError> {
        let (map_width, map_height) = (
            self.map.width() * self.scale,
            self.map.height() * self.scale,
        );
        let width = map_width.max(WIDTH_MIN);
        let letter = (2.0 * self.unit()).round() as u32;
        let (band, band_height) = legend::draw(legend, width, letter);
        self.overlay.append_below(band, map_height);
        // A stable sort, so that each tile keeps its first colour.
        self.tiles.sort_by_key(|(y, x, _)| (*y, *x));
        self.tiles.dedup_by_key(|(y, x, _)| (*y, *x));
        let marks = self.overlay.into_rows();
        let (map, scale, blocked) = (self.map, self.scale, self.blocked);
        image::write(output, width, map_height + band_height, |y, row| {
            if y < map_height {
                let own = row_tiles(&self.tiles, (y / scale) as i32);
                map_row(map, blocked, own, (y / scale) as i32, scale, row);
            }
            row.resize(width as usize * 3, legend::GROUND[0]);
            let first = marks.partition_point(|(row, ..)| *row < y);
            let of_row = marks[first..].iter().take_while(|(row, ..)| *row == y);
            for (_, x, color) in of_row {
                if let Some(pixel) = row.get_mut(*x as usize * 3..*x as usize * 3 + 3) {
                    pixel.copy_from_slice(color);
                }
            }
        })
    }
}

/// The tiles of a row with a colour of their own, without those left of the map.
fn row_tiles(tiles: &[(i32, i32, Color)], y: i32) -> &[(i32, i32, Color)] {
    let first = tiles.partition_point(|(row, x, _)| (*row, *x) < (y, 0));
    let last = tiles.partition_point(|(row, ..)| *row <= y);
    &tiles[first..last.max(first)]
}

/// Appends the pixels of a row of tiles.
fn map_row(
    map: &TileMap,
    blocked: Color,
    own: &[(i32, i32, Color)],
    y: i32,
    scale: u32,
    row: &mut Vec<u8>,
) {
    let mut own = own.iter().peekable();
    for x in 0..map.width() as i32 {
        let mut color = if map.is_blocked((x, y).into()) {
            blocked
        } else {
            image::FREE
        };
        if let Some((.., its)) = own.next_if(|(_, column, _)| *column == x) {
            color = *its;
        }
        for _ in 0..scale {
            row.extend_from_slice(&color);
        }
    }
}

fn outlined_disc(overlay: &mut Overlay, center: Vec2, radius: f32, color: Color) {
    overlay.disc(center, radius + 1.0, OUTLINE);
    overlay.disc(center, radius, color);
}

fn outlined_square(overlay: &mut Overlay, center: Vec2, half: f32, color: Color) {
    overlay.square(center, half + 1.0, OUTLINE);
    overlay.square(center, half, color);
}

fn outlined_diamond(overlay: &mut Overlay, center: Vec2, radius: f32, color: Color) {
    overlay.diamond(center, radius + 1.5, OUTLINE);
    overlay.diamond(center, radius, color);
}

fn outlined_ring(overlay: &mut Overlay, center: Vec2, radius: f32, color: Color) {
    let width = (radius / 3.0).max(3.0);
    overlay.ring(center, radius + 1.0, width + 2.0, OUTLINE);
    overlay.ring(center, radius, width, color);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_maps_are_enlarged_and_large_ones_are_not() {
        let scale = |width, height| default_scale(&TileMap::new(width, height, true).unwrap());
        assert_eq!((scale(4, 3), scale(100, 200), scale(2_000, 10)), (64, 5, 1));
    }

    #[test]
    fn first_colour_of_a_tile_stays_and_outside_tiles_are_skipped() {
        let map = TileMap::from_ascii("..@\n@..").unwrap();
        let mut picture = MapPicture::new(&map);
        for (x, y, color) in [(1, 0, SKY), (1, 0, BLUE), (-1, 0, BLUE), (3, 0, BLUE)] {
            picture.paint_tile(IVec2::new(x, y), color);
        }
        picture.tiles.sort_by_key(|(y, x, _)| (*y, *x));
        let mut row = Vec::new();
        let own = row_tiles(&picture.tiles, 0);
        map_row(&map, image::BLOCKED, own, 0, 1, &mut row);
        let expected = [image::FREE, SKY, image::BLOCKED].concat();
        assert_eq!(row, expected);
    }
}
