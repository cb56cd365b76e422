//! Binary frames for pages: the crowd as dots, and the map behind it.
//!
//! All numbers are little endian.
//!
//! ```text
//! dots: u32 1 · u32 scene · f64 tick · f32 width_m · f32 height_m · u32 count · u32 0
//!       u32 id × count · u16 x × count · u16 y × count · u8 kind × count · u8 team × count
//! map:  u32 2 · u32 scene · u32 width · u32 height · f32 metres a pixel · u8 blocked × width × height
//! ```
//! Positions are fractions of the scene's size in 65,535ths. A team is 0 for none, otherwise 1 plus its number modulo 255. A
//! pixel is the blocked share of its area: 255 is all.

use glam::Vec2;

use throng::map::TileMap;

/// Bytes of the header of a frame: a multiple of four, so that the arrays behind it are aligned.
pub const DOTS_HEAD_BYTES: usize = 32;

/// Bytes per dot.
pub const DOT_BYTES: usize = 10;

/// Maximum number of pixels of a map's longer side.
const MAP_SIDE_MAX: u32 = 1_024;

/// Maximum number of tiles sampled along each side of a pixel.
const SAMPLES_MAX: u32 = 4;

/// An object as a dot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dot {
    /// Its number in its scene.
    pub id: u32,
    /// Its position, in metres.
    pub at: Vec2,
    /// The number of its kind; clamped to 255 in the frame.
    pub kind: u8,
    /// The team as encoded in the frame.
    pub team: u8,
}

/// The frame of a scene's crowd. O(dots).
#[must_use]
pub fn dots_frame(scene: u32, tick: u64, size_m: Vec2, dots: &[Dot]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(DOTS_HEAD_BYTES + dots.len() * DOT_BYTES);
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(scene.to_le_bytes());
    bytes.extend((tick as f64).to_le_bytes());
    bytes.extend(size_m.x.to_le_bytes());
    bytes.extend(size_m.y.to_le_bytes());
    bytes.extend((dots.len() as u32).to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    // NaN and positions outside are clamped to the nearest valid value.
    let share = |at: f32, size: f32| (at / size.max(f32::MIN_POSITIVE) * 65_535.0).round() as u16;
    for dot in dots {
        bytes.extend_from_slice(&dot.id.to_le_bytes());
    }
    for dot in dots {
        bytes.extend_from_slice(&share(dot.at.x, size_m.x).to_le_bytes());
    }
    for dot in dots {
        bytes.extend_from_slice(&share(dot.at.y, size_m.y).to_le_bytes());
    }
    bytes.extend(dots.iter().map(|dot| dot.kind));
    bytes.extend(dots.iter().map(|dot| dot.team));
    bytes
}

/// The frame of a scene's map, scaled down to 1,024 pixels a side. O(pixels).
#[must_use]
pub fn map_frame(scene: u32, tiles: &TileMap, tile_m: f32) -> Vec<u8> {
    let longer = tiles.width().max(tiles.height());
    let step = longer.div_ceil(MAP_SIDE_MAX).max(1);
    let (width, height) = (tiles.width().div_ceil(step), tiles.height().div_ceil(step));
    let mut bytes = Vec::with_capacity(20 + (width * height) as usize);
    for word in [2, scene, width, height] {
        bytes.extend(u32::to_le_bytes(word));
    }
    bytes.extend((tile_m * step as f32).to_le_bytes());
    let samples = step.min(SAMPLES_MAX);
    let sample = |pixel: u32, nth: u32| (pixel * step + nth * step / samples) as i32;
    for y in 0..height {
        for x in 0..width {
            let mut blocked = 0;
            for nth in 0..samples * samples {
                let at = (sample(x, nth % samples), sample(y, nth / samples));
                blocked += u32::from(tiles.is_blocked(at.into()));
            }
            bytes.push((blocked * 255 / (samples * samples)) as u8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_stored_as_columns() {
        let dot = |id, x, y| Dot {
            id,
            at: Vec2::new(x, y),
            kind: 3,
            team: 4,
        };
        let dots = [
            dot(7, 0.0, 50.0),
            dot(9, 200.0, f32::NAN),
            dot(11, -1.0, 99.0),
        ];
        let frame = dots_frame(2, 5, Vec2::new(100.0, 50.0), &dots);
        assert_eq!(frame.len(), DOTS_HEAD_BYTES + 3 * DOT_BYTES);
        assert_eq!(frame[8..16], 5f64.to_le_bytes());
        assert_eq!((frame[0], frame[4], frame[24]), (1, 2, 3));
        assert_eq!((frame[32], frame[36], frame[40]), (7, 9, 11));
        let shares: Vec<u16> = frame[44..56]
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        assert_eq!(shares, [0, 65_535, 0, 65_535, 0, 65_535]);
        assert_eq!(frame[56..], [3, 3, 3, 4, 4, 4]);
    }

    #[test]
    fn map_frame_has_a_pixel_per_tile_or_is_scaled_down() {
        let map = TileMap::from_ascii(".#\n..\n##").unwrap();
        let frame = map_frame(1, &map, 0.5);
        assert_eq!((frame[8], frame[12]), (2, 3));
        assert_eq!(frame[16..20], 0.5f32.to_le_bytes());
        assert_eq!(frame[20..], [0, 255, 0, 0, 255, 255]);
        let wide = TileMap::from_fn(2_048, 2, |x, _| x % 2 == 0).unwrap();
        let frame = map_frame(1, &wide, 1.0);
        assert_eq!(frame.len(), 20 + 1_024);
        assert!(frame[20..].iter().all(|&share| share == 127));
    }
}
