//! Packed `.tmap`: one bit per tile, with a version and a checksum, followed by sections of prepared data. All
//! numbers are little endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | `TMAP` |
//! | 4–5 | version: 1 without sections, 2 with sections |
//! | 6–7 | the number of sections; 0 in version 1 |
//! | 8–11 | width in tiles |
//! | 12–15 | height in tiles |
//! | 16–23 | checksum of bytes 0–15 and of the tiles |
//! | 24– | the tiles, one bit each, 1 = blocked; in version 2 padded to 8 bytes with 0 |
//! | | in version 2, section after section: |
//! | +0–3 | the section's tag |
//! | +4–7 | reserved, 0 |
//! | +8–15 | the length of its bytes |
//! | +16–23 | checksum of the 16 bytes before it and of the section's bytes |
//! | +24– | its bytes, padded to 8 bytes with 0 |
//!
//! Tile (x, y) is bit `i % 8` of byte `24 + i / 8`, with `i = y × width + x`; spare bits of the last byte are 0. The file
//! ends with its last section. The writer of a section defines its contents: navigation stores its sign planes and jump
//! graph in sections.
//!
//! Regions are not a section. One label per tile would be 16 MB for a map of 4,096² tiles, which take about as long to read,
//! checksum and copy as it takes to compute regions from the bits. One label per run would be short enough, but edits rely on
//! a label never standing for two regions, so it must be checked: a file that also has the steps from each run to the first
//! one of its region proves it in one pass. That pass, with filling in the labels, was measured at 13 ms for a town and 24 ms
//! for a cave, where a full build takes 18 and 31 ms; and it needs 2 to 4 MB more of file, to be read and checksummed. The
//! gain is a tenth of the load time of the map, outside the tick, for a second way to compute the same labels.
//!
//! The checksum of version 1 is FNV-1a in 64 bits: from 0xCBF29CE484222325, for each byte in turn, exclusive-or with the
//! byte, then multiply by 0x100000001B3, modulo 2⁶⁴. Version 2 has tens of megabytes to check and uses words of 8 bytes
//! in four lanes: a step is exclusive-or with the word, multiply by 0x9E3779B97F4A7C15, rotate left by 29. Lane `k`
//! begins as 0xCBF29CE484222325 + `k` and takes each word whose number modulo 4 is `k`, the padding included. The checksum is
//! these steps, from 0xCBF29CE484222325, over the two words of the 16 bytes and the four lanes. Each step of either is
//! invertible, so every change within a single byte is detected.

use std::sync::Arc;

use crate::map::TileMap;
use crate::map::bit_plane::BitPlane;
use crate::map::error::{MapError, SourceLocation};
use crate::map::sections::MapSection;
use crate::map::tiles::check_size;

const MAGIC: &[u8; 4] = b"TMAP";
/// The version of a file without sections.
const VERSION: u16 = 1;
const VERSION_WITH_SECTIONS: u16 = 2;
/// The size of the header of the file and of each section.
const HEADER_BYTES: usize = 24;
const CHECKSUM_AT: usize = 16;
const BASIS: u64 = 0xCBF2_9CE4_8422_2325;

/// Reads a map. `file` returns the same bytes for the sections to share; it is called only if there are some.
pub(super) fn decode(
    name: &str,
    bytes: &[u8],
    file: impl FnOnce() -> Arc<Vec<u8>>,
) -> Result<TileMap, MapError> {
    let header = Header::read(name, bytes)?;
    let tiles = header.tiles();
    let (payload, behind) = bytes[HEADER_BYTES..].split_at(header.tile_bytes());
    verify_checksum(name, 0, header.version, bytes, payload)?;
    let spare = payload[..tiles.div_ceil(8)]
        .last()
        .map_or(0, |last| u64::from(*last) >> ((tiles - 1) % 8 + 1));
    if spare != 0 {
        let place = SourceLocation::byte(name, (HEADER_BYTES + tiles.div_ceil(8)) as u64 - 1);
        let field = "the number in the spare bits";
        return Err(MapError::Field {
            place,
            field,
            found: spare,
            expected: "0".into(),
        });
    }
    let ranges = read_sections(
        name,
        bytes,
        bytes.len() - behind.len(),
        header.section_count,
    )?;

    let (width, height) = (header.width, header.height);
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
    let map = TileMap::from_rows(rows);
    if ranges.is_empty() {
        return Ok(map);
    }
    let file = file();
    let part = |(tag, range)| MapSection::from_file(tag, file.clone(), range);
    Ok(map.with_sections(ranges.into_iter().map(part).collect()))
}

/// The contents of the file header, verified except for the checksum.
struct Header {
    version: u16,
    section_count: u16,
    width: u32,
    height: u32,
}

impl Header {
    /// Verifies all but the contents and the sections: after this all tiles are there, and in version 1 nothing else.
    fn read(name: &str, bytes: &[u8]) -> Result<Self, MapError> {
        let start = &bytes[..bytes.len().min(MAGIC.len())];
        if start != MAGIC {
            let found = format!("\"{}\"", start.escape_ascii());
            return Err(MapError::Magic {
                place: SourceLocation::byte(name, 0),
                found,
                expected: "\"TMAP\"",
            });
        }
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            let expected = format!("at least the {HEADER_BYTES} of the header");
            return Err(length_error(name, bytes, expected));
        };
        let (version, parts) = (u32_at(header, 4) as u16, (u32_at(header, 4) >> 16) as u16);
        if version != VERSION && version != VERSION_WITH_SECTIONS {
            return Err(MapError::Version {
                place: SourceLocation::byte(name, 4),
                found: version,
                expected: VERSION_WITH_SECTIONS,
            });
        }
        if version == VERSION && parts != 0 {
            return Err(reserved(name, 6, u64::from(parts)));
        }
        let header = Self {
            version,
            section_count: parts,
            width: u32_at(header, 8),
            height: u32_at(header, 12),
        };
        let (width, height) = (u64::from(header.width), u64::from(header.height));
        check_size(width, height, &SourceLocation::byte(name, 8))?;
        let expected = HEADER_BYTES + header.tile_bytes();
        if bytes.len() < expected || (version == VERSION && bytes.len() > expected) {
            let expected = format!("{expected} for {width} × {height} tiles");
            return Err(length_error(name, bytes, expected));
        }
        Ok(header)
    }

    fn tiles(&self) -> usize {
        self.width as usize * self.height as usize
    }

    /// The number of bytes of the tiles, padding included.
    fn tile_bytes(&self) -> usize {
        let bytes = self.tiles().div_ceil(8);
        if self.version == VERSION {
            bytes
        } else {
            bytes.next_multiple_of(8)
        }
    }
}

/// The sections of a file from a byte on, up to its end: their tags and the ranges of their bytes.
fn read_sections(
    name: &str,
    bytes: &[u8],
    mut at: usize,
    count: u16,
) -> Result<Vec<([u8; 4], std::ops::Range<usize>)>, MapError> {
    let mut parts = Vec::new();
    for nth in 1..=count {
        let Some((header, behind)) = bytes[at..].split_first_chunk::<HEADER_BYTES>() else {
            let expected = format!("{} at least, for part {nth} of {count}", at + HEADER_BYTES);
            return Err(length_error(name, bytes, expected));
        };
        if u32_at(header, 4) != 0 {
            return Err(reserved(name, at + 4, u64::from(u32_at(header, 4))));
        }
        let length = u64_at(header, 8);
        let filled = length.checked_next_multiple_of(8);
        let Some(filled) = filled.filter(|filled| *filled <= behind.len() as u64) else {
            let expected = format!("{length} more from byte {} on", at + HEADER_BYTES);
            return Err(length_error(name, bytes, expected));
        };
        let payload = &behind[..filled as usize];
        verify_checksum(name, at, VERSION_WITH_SECTIONS, header, payload)?;
        let start = at + HEADER_BYTES;
        let tag = [header[0], header[1], header[2], header[3]];
        parts.push((tag, start..start + length as usize));
        at = start + payload.len();
    }
    if at != bytes.len() {
        return Err(length_error(name, bytes, format!("{at} with all parts")));
    }
    Ok(parts)
}

/// Verifies the checksum in a header that begins at a byte of the file.
fn verify_checksum(
    name: &str,
    at: usize,
    version: u16,
    header: &[u8],
    payload: &[u8],
) -> Result<(), MapError> {
    let found = u64_at(header, CHECKSUM_AT);
    let expected = checksum(version, &header[..CHECKSUM_AT], payload);
    if found == expected {
        return Ok(());
    }
    let place = SourceLocation::byte(name, (at + CHECKSUM_AT) as u64);
    Err(MapError::Checksum {
        place,
        found,
        expected,
    })
}

fn length_error(name: &str, bytes: &[u8], expected: String) -> MapError {
    let found = bytes.len() as u64;
    MapError::Length {
        place: SourceLocation::byte(name, found),
        found,
        expected,
    }
}

fn reserved(name: &str, at: usize, found: u64) -> MapError {
    MapError::Field {
        place: SourceLocation::byte(name, at as u64),
        field: "the reserved field",
        found,
        expected: "0".into(),
    }
}

/// The number at an offset of a header that is long enough.
fn u64_at(header: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&header[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn u32_at(header: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// Writes a map, with its sections if it has any.
///
/// Errors: [`MapError::Field`] when there are more sections than the file can count.
pub(super) fn encode(map: &TileMap) -> Result<Vec<u8>, MapError> {
    let parts = map.parts();
    let Ok(part_count) = u16::try_from(parts.len()) else {
        return Err(MapError::Field {
            place: SourceLocation::default(),
            field: "the number of parts",
            found: parts.len() as u64,
            expected: format!("at most {}", u16::MAX),
        });
    };
    let (width, height) = (map.width(), map.height());
    let tiles = width as usize * height as usize;
    let words = tile_words(map);
    let part_bytes = |part: &MapSection| HEADER_BYTES + part.bytes().len().next_multiple_of(8);
    let all_parts: usize = parts.iter().map(part_bytes).sum();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + words.len() * 8 + all_parts);
    let version = if parts.is_empty() {
        VERSION
    } else {
        VERSION_WITH_SECTIONS
    };
    bytes.extend(MAGIC);
    bytes.extend(version.to_le_bytes());
    bytes.extend(part_count.to_le_bytes());
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.truncate(HEADER_BYTES + tiles.div_ceil(8));
    if !parts.is_empty() {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    write_checksum(&mut bytes, version);
    for part in parts {
        let start = bytes.len();
        bytes.extend(part.tag());
        bytes.extend([0; 4]);
        bytes.extend((part.bytes().len() as u64).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend_from_slice(part.bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        write_checksum(&mut bytes[start..], version);
    }
    Ok(bytes)
}

/// The tiles in the layout of a file, plus one word.
fn tile_words(map: &TileMap) -> Vec<u64> {
    let (width, height) = (map.width(), map.height());
    let mut words = vec![0u64; (width as usize * height as usize).div_ceil(64) + 1];
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
    words
}

/// Writes the checksum into the header in front of the data.
fn write_checksum(bytes: &mut [u8], version: u16) {
    let sum = checksum(version, &bytes[..CHECKSUM_AT], &bytes[HEADER_BYTES..]);
    bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
}

/// 64 bits of the payload from a bit on; bits beyond its end are 0.
fn word_at(payload: &[u8], bit: usize) -> u64 {
    let from = &payload[bit / 8..];
    if bit.is_multiple_of(8)
        && let Some(word) = from.first_chunk()
    {
        return u64::from_le_bytes(*word);
    }
    let mut bytes = [0; 9];
    let len = from.len().min(bytes.len());
    bytes[..len].copy_from_slice(&from[..len]);
    let low = u64_at(&bytes, 0);
    low >> (bit % 8) | u64::from(bytes[8]) << 1 << (63 - bit % 8)
}

/// The checksum of a header's first 16 bytes and the data after the header.
fn checksum(version: u16, header: &[u8], payload: &[u8]) -> u64 {
    if version == VERSION {
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        return header.iter().chain(payload).fold(BASIS, step);
    }
    let step = |sum: u64, word: u64| {
        let product = (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        product.rotate_left(29)
    };
    let mut lanes = [0, 1, 2, 3].map(|lane| BASIS + lane);
    let mut blocks = payload.chunks_exact(32);
    for block in &mut blocks {
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(8)) {
            *lane = step(*lane, u64_at(word, 0));
        }
    }
    let rest = blocks.remainder().chunks_exact(8);
    for (lane, word) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, u64_at(word, 0));
    }
    let header = [u64_at(header, 0), u64_at(header, 8)];
    header.into_iter().chain(lanes).fold(BASIS, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        encode(&TileMap::from_ascii("..@..\n@@@@@\n.....").unwrap()).unwrap()
    }

    fn decoded(bytes: &[u8]) -> Result<TileMap, MapError> {
        decode("test.tmap", bytes, || Arc::new(bytes.to_vec()))
    }

    /// The same with two sections, one of which needs padding.
    fn sample_with_sections() -> TileMap {
        let parts = [(*b"ABCD", 11), (*b"EFGH", 16)];
        let parts = parts.map(|(tag, length)| MapSection::new(tag, (0..length).collect()));
        decoded(&sample()).unwrap().with_sections(parts.to_vec())
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
    fn each_kind_of_damage_has_its_own_error() {
        let broken = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = sample();
            change(&mut bytes);
            decoded(&bytes).unwrap_err()
        };
        let magic = broken(&|bytes| bytes[0] = b'X');
        assert!(
            matches!(magic, MapError::Magic { .. }) && magic.to_string().contains("XMAP"),
            "{magic}"
        );
        let version = broken(&|bytes| bytes[4] = 3);
        assert!(
            matches!(
                version,
                MapError::Version {
                    found: 3,
                    expected: 2,
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
            let sum = checksum(VERSION, &bytes[..16], &bytes[24..]);
            bytes[16..24].copy_from_slice(&sum.to_le_bytes());
        });
        assert!(matches!(spare, MapError::Field { found: 1, .. }), "{spare}");
    }

    #[test]
    fn huge_map_header_is_refused_before_allocating() {
        let mut bytes = sample();
        bytes[8..16].fill(0xFF);
        assert!(matches!(decoded(&bytes), Err(MapError::Size { .. })));
        bytes[8..16].copy_from_slice(&[0, 0x40, 0, 0, 0, 0x40, 0, 0]);
        assert!(matches!(decoded(&bytes), Err(MapError::Length { .. })));
    }

    #[test]
    fn sections_round_trip_and_an_edit_drops_them() {
        let map = sample_with_sections();
        let bytes = encode(&map).unwrap();
        assert_eq!(&bytes[..8], b"TMAP\x02\0\x02\0");
        assert_eq!(bytes.len(), 24 + 8 + (24 + 16) + (24 + 16));
        assert_eq!(&bytes[32..48], b"ABCD\0\0\0\0\x0b\0\0\0\0\0\0\0");
        let mut found = decoded(&bytes).unwrap();
        assert_eq!((&found, found.parts()), (&map, map.parts()));
        assert_eq!(found.memory().sections_bytes, 11 + 16);
        assert_eq!(encode(&found).unwrap(), bytes);
        let rect = crate::map::TileRect::new(0, 0, 1, 1);
        found.edit(rect, &crate::map::TileEdit::Free).unwrap();
        assert_eq!(found.parts().len(), 2, "no tile has changed");
        let mut other = found.clone();
        found.edit(rect, &crate::map::TileEdit::Block).unwrap();
        let rect = crate::map::TileRect::new(0, 0, 2, 2);
        other.edit(rect, &crate::map::TileEdit::Toggle).unwrap();
        assert!(found.parts().is_empty() && other.parts().is_empty());
    }

    #[test]
    fn section_file_with_a_wrong_or_missing_byte_is_refused() {
        let bytes = encode(&sample_with_sections()).unwrap();
        for length in 0..bytes.len() {
            assert!(decoded(&bytes[..length]).is_err(), "{length}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                assert!(decoded(&bytes).is_err(), "byte {at}, bit {bit}");
            }
        }
        let more = [&bytes[..], &[0; 8]].concat();
        assert!(matches!(decoded(&more), Err(MapError::Length { .. })));
    }

    #[test]
    fn section_with_a_huge_length_is_refused() {
        for length in [17, 1 << 40, u64::MAX - 6, u64::MAX] {
            let mut bytes = encode(&sample_with_sections()).unwrap();
            bytes[80..88].copy_from_slice(&length.to_le_bytes());
            write_checksum(&mut bytes[72..], VERSION_WITH_SECTIONS);
            let refused = decoded(&bytes).unwrap_err();
            assert!(matches!(refused, MapError::Length { .. }), "{refused}");
        }
    }
}
