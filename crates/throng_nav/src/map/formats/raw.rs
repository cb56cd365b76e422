//! Raw: one byte per tile, row after row, 0 = free, anything else blocked, without a header.
//!
//! The size is in the name, as in `town.300x200.raw` (width × height); a name without one means a square.

use crate::map::TileMap;
use crate::map::bit_plane::BitPlane;
use crate::map::error::{MapError, SourceLocation};
use crate::map::rect::TILES_MAX;
use crate::map::tiles::check_size;

pub(super) fn decode(file: &str, bytes: &[u8]) -> Result<TileMap, MapError> {
    let place = SourceLocation::file(file);
    let len = bytes.len() as u64;
    let (width, height) = match size_in_name(file) {
        Some((width, height)) => {
            check_size(width, height, &place)?;
            if width * height != len {
                let expected = format!("{width} × {height} = {}, as the name says", width * height);
                return Err(MapError::Length {
                    place: SourceLocation::byte(file, len),
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
        rows.set_row(y, row.chunks(64).map(blocked));
    }
    Ok(TileMap::from_rows(rows))
}

/// Up to 64 bytes as bits, 1 if a byte is not 0. Eight at a time: 2 ms for 16 million; one at a time takes 14 ms.
fn blocked(tiles: &[u8]) -> u64 {
    /// All bits of each byte but the highest.
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    /// Moves the lowest bit of byte i to bit 56 + i.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, rest) = tiles.as_chunks::<8>();
    let mut word = 0;
    for (nth, eight) in eights.iter().enumerate() {
        let bytes = u64::from_le_bytes(*eight);
        // The highest bit of each byte is set if any of its bits is.
        let is_any = ((((bytes & LOW) + LOW) | bytes) >> 7) & LOWEST;
        word |= (is_any.wrapping_mul(GATHER) >> 56) << (8 * nth);
    }
    for (nth, &tile) in rest.iter().enumerate() {
        word |= u64::from(tile != 0) << (8 * eights.len() + nth);
    }
    word
}

pub(super) fn encode(map: &TileMap) -> Vec<u8> {
    let tiles = |y| (0..map.width() as i32).map(move |x| u8::from(map.is_blocked((x, y).into())));
    (0..map.height() as i32).flat_map(tiles).collect()
}

/// Fails if the name does not contain the map's size, and the map is not square.
pub(super) fn check_name(file: &str, map: &TileMap) -> Result<(), MapError> {
    let (width, height) = (u64::from(map.width()), u64::from(map.height()));
    match size_in_name(file) {
        Some(size) if size != (width, height) => Err(MapError::RawSize {
            place: SourceLocation::file(file),
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
        place: SourceLocation::file(file),
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
        // A number too long to be parsed is too large for a map anyway.
        is_number.then(|| digits.parse().unwrap_or(TILES_MAX + 1))
    };
    Some((side(width)?, side(height)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_comes_from_the_name_or_the_square_root() {
        let bytes = [0, 1, 0, 255, 0, 0];
        let wide = decode("a/town.3x2.raw", &bytes).unwrap();
        assert_eq!(wide, TileMap::from_ascii(".@.\n@..").unwrap());
        let tall = decode("town.2x3.raw", &bytes).unwrap();
        assert_eq!(tall, TileMap::from_ascii(".@\n.@\n..").unwrap());
        let square = decode("town.v2.raw", &bytes[..4]).unwrap();
        assert_eq!(square, TileMap::from_ascii(".@\n.@").unwrap());
    }

    proptest::proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn nonzero_bytes_are_blocked_tiles(tiles in proptest::collection::vec(proptest::sample::select(vec![0_u8, 0, 1, 127, 128, 255]), 0..=64)) {
            let bits = (0..).zip(&tiles).map(|(nth, &tile)| u64::from(tile != 0) << nth);
            proptest::prop_assert_eq!(blocked(&tiles), bits.sum::<u64>());
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let message = |name, bytes: &[u8]| decode(name, bytes).unwrap_err().to_string();
        assert!(message("town.raw", &[0; 5]).contains("5 bytes, expected a square"));
        assert!(message("town.3x2.raw", &[0; 5]).contains("file has 5 bytes, expected 3 × 2 = 6"));
        assert!(message("town.0x2.raw", &[]).contains("0 × 2"));
        assert!(message("town.raw", &[]).contains("0 × 0"));
        assert!(message("town.99999999999999999999x1.raw", &[]).contains("expected 1 to"));
    }

    #[test]
    fn raw_name_that_contradicts_the_map_size_is_refused() {
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
