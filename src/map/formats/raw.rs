//! Raw: a byte a tile, row after row, 0 = free, anything else blocked, and nothing else.
//!
//! The size is in the name, as in `town.300x200.raw` (width × height); a name without one means a square.

use crate::map::TileMap;
use crate::map::bit_plane::BitPlane;
use crate::map::error::{MapError, SourcePlace};
use crate::map::rect::TILES_MAX;
use crate::map::tiles::check_size;

pub(super) fn decode(file: &str, bytes: &[u8]) -> Result<TileMap, MapError> {
    let place = SourcePlace::file(file);
    let len = bytes.len() as u64;
    let (width, height) = match size_in_name(file) {
        Some((width, height)) => {
            check_size(width, height, &place)?;
            if width * height != len {
                let expected = format!("{width} × {height} = {}, as the name says", width * height);
                return Err(MapError::Length {
                    place: SourcePlace::byte(file, len),
                    found: len,
                    expected,
                });
            }
            (width, height)
        }
        None => {
            let side = len.isqrt();
            if side * side != len {
                return Err(not_square(file, format!("{len} bytes")));
            }
            check_size(side, side, &place)?;
            (side, side)
        }
    };
    let mut rows = BitPlane::blocked(width as u32, height as u32);
    for (y, row) in (0..).zip(bytes.chunks_exact(width as usize)) {
        let word = |tiles: &[u8]| {
            tiles
                .iter()
                .rev()
                .fold(0, |word, tile| word << 1 | u64::from(*tile != 0))
        };
        rows.set_row(y, row.chunks(64).map(word));
    }
    Ok(TileMap::from_rows(rows))
}

pub(super) fn encode(map: &TileMap) -> Vec<u8> {
    let tiles = |y| (0..map.width() as i32).map(move |x| u8::from(map.is_blocked(x, y)));
    (0..map.height() as i32).flat_map(tiles).collect()
}

/// Fails when the name does not say the map's size, and the map is not square either.
pub(super) fn check_name(file: &str, map: &TileMap) -> Result<(), MapError> {
    let (width, height) = (u64::from(map.width()), u64::from(map.height()));
    match size_in_name(file) {
        Some(size) if size != (width, height) => Err(MapError::RawSize {
            place: SourcePlace::file(file),
            found: format!("the name says {} × {} tiles", size.0, size.1),
            expected: format!("{width} × {height}, as the map has"),
        }),
        None if width != height => Err(not_square(
            file,
            format!("a map of {width} × {height} tiles"),
        )),
        _ => Ok(()),
    }
}

fn not_square(file: &str, found: String) -> MapError {
    let expected = "a square, or the width and height in the name, as in `town.300x200.raw`".into();
    MapError::RawSize {
        place: SourcePlace::file(file),
        found,
        expected,
    }
}

/// The size in a name such as `town.300x200.raw`.
fn size_in_name(file: &str) -> Option<(u64, u64)> {
    let name = file.rsplit(['/', '\\']).next()?;
    let (stem, _extension) = name.rsplit_once('.')?;
    let (_, size) = stem.rsplit_once('.')?;
    let (width, height) = size.split_once('x')?;
    let side = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        // A number too long to be read is too large for a map all the same.
        is_number.then(|| digits.parse().unwrap_or(TILES_MAX + 1))
    };
    Some((side(width)?, side(height)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_or_the_square_root_gives_the_size() {
        let bytes = [0, 1, 0, 255, 0, 0];
        let wide = decode("a/town.3x2.raw", &bytes).unwrap();
        assert_eq!(wide, TileMap::from_ascii(".@.\n@..").unwrap());
        let tall = decode("town.2x3.raw", &bytes).unwrap();
        assert_eq!(tall, TileMap::from_ascii(".@\n.@\n..").unwrap());
        let square = decode("town.v2.raw", &bytes[..4]).unwrap();
        assert_eq!(square, TileMap::from_ascii(".@\n.@").unwrap());
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let message = |name, bytes: &[u8]| decode(name, bytes).unwrap_err().to_string();
        assert!(message("town.raw", &[0; 5]).contains("5 bytes, expected a square"));
        assert!(
            message("town.3x2.raw", &[0; 5]).contains("found 5 bytes in all, expected 3 × 2 = 6")
        );
        assert!(message("town.0x2.raw", &[]).contains("0 × 2"));
        assert!(message("town.raw", &[]).contains("0 × 0"));
        assert!(message("town.99999999999999999999x1.raw", &[]).contains("expected 1 to"));
    }

    #[test]
    fn a_name_under_which_the_map_could_not_be_read_back_is_refused() {
        let map = TileMap::new(3, 2, false).unwrap();
        assert!(check_name("town.3x2.raw", &map).is_ok());
        assert!(
            check_name("town.raw", &map)
                .unwrap_err()
                .to_string()
                .contains("3 × 2")
        );
        assert!(
            check_name("town.2x3.raw", &map)
                .unwrap_err()
                .to_string()
                .contains("2 × 3")
        );
        assert!(check_name("town.raw", &TileMap::new(2, 2, false).unwrap()).is_ok());
    }
}
