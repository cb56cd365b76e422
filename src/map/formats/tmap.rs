//! Packed `.tmap`: a bit a tile, with a version and a checksum. All numbers are little endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | `TMAP` |
//! | 4–5 | version, 1 |
//! | 6–7 | reserved, 0 |
//! | 8–11 | width in tiles |
//! | 12–15 | height in tiles |
//! | 16–23 | checksum of bytes 0–15 and of all from 24 on |
//! | 24– | the tiles, a bit each, 1 = blocked |
//!
//! Tile (x, y) is bit `i % 8` of byte `24 + i / 8`, with `i = y × width + x`; spare bits of the last byte are 0.
//!
//! The checksum is FNV-1a in 64 bits: from 0xCBF29CE484222325, for each byte in turn, exclusive-or with the byte, then
//! multiply by 0x100000001B3, modulo 2⁶⁴. Each step is invertible, so that every change of a single byte shows.

use crate::map::TileMap;
use crate::map::bit_plane::BitPlane;
use crate::map::error::{MapError, SourcePlace};
use crate::map::tiles::check_size;

const MAGIC: &[u8; 4] = b"TMAP";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 24;
const CHECKSUM_AT: usize = 16;

pub(super) fn decode(file: &str, bytes: &[u8]) -> Result<TileMap, MapError> {
    let TmapParts {
        width,
        height,
        header,
        payload,
    } = header(file, bytes)?;
    let tiles = width as usize * height as usize;
    let found =
        u64::from(u32_at(header, CHECKSUM_AT)) | u64::from(u32_at(header, CHECKSUM_AT + 4)) << 32;
    let expected = checksum(&header[..CHECKSUM_AT], payload);
    if found != expected {
        let place = SourcePlace::byte(file, CHECKSUM_AT as u64);
        return Err(MapError::Checksum {
            place,
            found,
            expected,
        });
    }
    let spare = payload
        .last()
        .map_or(0, |last| u64::from(*last) >> ((tiles - 1) % 8 + 1));
    if spare != 0 {
        let place = SourcePlace::byte(file, bytes.len() as u64 - 1);
        let field = "the number in the spare bits";
        return Err(MapError::Field {
            place,
            field,
            found: spare,
            expected: "0".into(),
        });
    }

    let mut rows = BitPlane::blocked(width, height);
    for y in 0..height {
        let first = y as usize * width as usize;
        rows.set_row(
            y,
            (0..width as usize)
                .step_by(64)
                .map(|x| word_at(payload, first + x)),
        );
    }
    Ok(TileMap::from_rows(rows))
}

/// A file in its parts.
struct TmapParts<'a> {
    width: u32,
    height: u32,
    header: &'a [u8; HEADER_BYTES],
    payload: &'a [u8],
}

/// Checks all but the content: gives width, height, the header and what follows it, of the right length.
fn header<'a>(file: &str, bytes: &'a [u8]) -> Result<TmapParts<'a>, MapError> {
    let start = &bytes[..bytes.len().min(MAGIC.len())];
    if start != MAGIC {
        let found = format!("\"{}\"", start.escape_ascii());
        return Err(MapError::Magic {
            place: SourcePlace::byte(file, 0),
            found,
            expected: "\"TMAP\"",
        });
    }
    let found_bytes = bytes.len() as u64;
    let length_error = |expected: String| {
        let place = SourcePlace::byte(file, found_bytes);
        MapError::Length {
            place,
            found: found_bytes,
            expected,
        }
    };
    let Some((header, payload)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(length_error(format!(
            "at least the {HEADER_BYTES} of the header"
        )));
    };
    let u32_at = |at| u32_at(header, at);
    let (version, reserved) = (u32_at(4) as u16, u32_at(4) >> 16);
    if version != VERSION {
        return Err(MapError::Version {
            place: SourcePlace::byte(file, 4),
            found: version,
            expected: VERSION,
        });
    }
    if reserved != 0 {
        let (place, found) = (SourcePlace::byte(file, 6), u64::from(reserved));
        return Err(MapError::Field {
            place,
            field: "the reserved field",
            found,
            expected: "0".into(),
        });
    }
    let (width, height) = (u32_at(8), u32_at(12));
    check_size(
        u64::from(width),
        u64::from(height),
        &SourcePlace::byte(file, 8),
    )?;
    let tiles = width as usize * height as usize;
    if payload.len() != tiles.div_ceil(8) {
        let expected = HEADER_BYTES + tiles.div_ceil(8);
        return Err(length_error(format!(
            "{expected} for {width} × {height} tiles"
        )));
    }
    Ok(TmapParts {
        width,
        height,
        header,
        payload,
    })
}

fn u32_at(header: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

pub(super) fn encode(map: &TileMap) -> Vec<u8> {
    let (width, height) = (map.width(), map.height());
    let tiles = width as usize * height as usize;
    let mut words = vec![0u64; tiles.div_ceil(64) + 1];
    for y in 0..height {
        for x in (0..width).step_by(64) {
            let used = (width - x).min(64);
            let word = map.rows().word_at(x as i32, y as i32) & u64::MAX >> (64 - used);
            let bit = y as usize * width as usize + x as usize;
            words[bit / 64] |= word << (bit % 64);
            // Shifting twice keeps the second shift under 64.
            words[bit / 64 + 1] |= word >> 1 >> (63 - bit % 64);
        }
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + words.len() * 8);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 2]);
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.truncate(HEADER_BYTES + tiles.div_ceil(8));
    let sum = checksum(&bytes[..CHECKSUM_AT], &bytes[HEADER_BYTES..]);
    bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// 64 bits of the payload from a bit on; bits beyond its end are 0.
fn word_at(payload: &[u8], bit: usize) -> u64 {
    let mut bytes = [0; 9];
    let from = &payload[bit / 8..];
    let len = from.len().min(bytes.len());
    bytes[..len].copy_from_slice(&from[..len]);
    let low = u64::from_le_bytes([
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
    ]);
    low >> (bit % 8) | u64::from(bytes[8]) << 1 << (63 - bit % 8)
}

fn checksum(header: &[u8], payload: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    header
        .iter()
        .chain(payload)
        .fold(0xCBF2_9CE4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        encode(&TileMap::from_ascii("..@..\n@@@@@\n.....").unwrap())
    }

    #[test]
    fn the_bytes_are_as_documented() {
        let bytes = sample();
        assert_eq!(&bytes[..16], b"TMAP\x01\0\0\0\x05\0\0\0\x03\0\0\0");
        // Bits from the lowest: ..@..@@@ | @@..... and a spare one.
        assert_eq!(&bytes[24..], [0b1110_0100, 0b0000_0011]);
        let mut sum = 0xCBF2_9CE4_8422_2325u64;
        for byte in bytes[..16].iter().chain(&bytes[24..]) {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        }
        assert_eq!(bytes[16..24], sum.to_le_bytes());
    }

    #[test]
    fn each_kind_of_damage_has_an_error_of_its_own() {
        let broken = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = sample();
            change(&mut bytes);
            decode("test.tmap", &bytes).unwrap_err()
        };
        let magic = broken(&|bytes| bytes[0] = b'X');
        assert!(
            matches!(magic, MapError::Magic { .. }) && magic.to_string().contains("XMAP"),
            "{magic}"
        );
        let version = broken(&|bytes| bytes[4] = 2);
        assert!(
            matches!(
                version,
                MapError::Version {
                    found: 2,
                    expected: 1,
                    ..
                }
            ),
            "{version}"
        );
        assert!(matches!(
            broken(&|bytes| bytes[6] = 1),
            MapError::Field { .. }
        ));
        assert!(matches!(
            broken(&|bytes| bytes[11] = 1),
            MapError::Size { .. }
        ));
        assert!(matches!(
            broken(&|bytes| bytes.truncate(25)),
            MapError::Length { found: 25, .. }
        ));
        assert!(matches!(
            broken(&|bytes| bytes.truncate(20)),
            MapError::Length { found: 20, .. }
        ));
        assert!(matches!(
            broken(&|bytes| bytes.push(0)),
            MapError::Length { .. }
        ));
        assert!(matches!(
            broken(&|bytes| bytes[24] ^= 1),
            MapError::Checksum { .. }
        ));
        let spare = broken(&|bytes| {
            bytes[25] |= 0x80;
            let sum = checksum(&bytes[..16], &bytes[24..]);
            bytes[16..24].copy_from_slice(&sum.to_le_bytes());
        });
        assert!(matches!(spare, MapError::Field { found: 1, .. }), "{spare}");
    }

    #[test]
    fn a_header_of_a_huge_map_is_refused_before_anything_is_allocated() {
        let mut bytes = sample();
        bytes[8..16].fill(0xFF);
        assert!(matches!(
            decode("test.tmap", &bytes),
            Err(MapError::Size { .. })
        ));
        bytes[8..16].copy_from_slice(&[0, 0x40, 0, 0, 0, 0x40, 0, 0]);
        assert!(matches!(
            decode("test.tmap", &bytes),
            Err(MapError::Length { .. })
        ));
    }
}
