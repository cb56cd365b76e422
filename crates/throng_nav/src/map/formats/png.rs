//! PNG: one pixel per tile. A pixel is blocked if it is darker than half or more than half transparent.
//!
//! All colour types, depths and interlacing are read, one row at a time, so the whole image is never in memory.
//! Images are written with one bit per pixel, white = free.

use std::io::Cursor;

use ::png::{BitDepth, ColorType, Decoder, Encoder, Limits, Transformations};

use crate::map::TileMap;
use crate::map::bit_plane::{BitPlane, TileRun};
use crate::map::error::{MapError, SourceLocation};
use crate::map::tiles::check_size;

/// The limit of the decoder's allocations apart from rows: palettes, colour profiles and texts, which are small in a map.
const DECODER_BYTES_MAX: usize = 16 << 20;

/// The first pixel and the step of each of the seven passes of an interlaced image, as (x, y, step x, step y)
/// (PNG specification, third edition, section 8.1).
const PASSES: [(u32, u32, u32, u32); 7] = [
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
];

pub(super) fn decode(file: &str, bytes: &[u8]) -> Result<TileMap, MapError> {
    let fail = |found: String| MapError::Png {
        place: SourceLocation::file(file),
        found,
    };
    let mut decoder = Decoder::new_with_limits(
        Cursor::new(bytes),
        Limits {
            bytes: DECODER_BYTES_MAX,
        },
    );
    decoder.set_transformations(Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder
        .read_header_info()
        .map_err(|error| fail(error.to_string()))?;
    let (width, height, is_interlaced) = (header.width, header.height, header.interlaced);
    // The header always ends the first 24 bytes with width and height.
    check_size(
        u64::from(width),
        u64::from(height),
        &SourceLocation::byte(file, 16),
    )?;
    let mut reader = decoder
        .read_info()
        .map_err(|error| fail(error.to_string()))?;
    let (color, depth) = reader.output_color_type();
    let channels = match (color, depth) {
        (ColorType::Grayscale, BitDepth::Eight) => 1,
        (ColorType::GrayscaleAlpha, BitDepth::Eight) => 2,
        (ColorType::Rgb, BitDepth::Eight) => 3,
        (ColorType::Rgba, BitDepth::Eight) => 4,
        _ => return Err(fail(format!("pixels of {color:?} in {depth:?} bits"))),
    };

    let mut rows = BitPlane::blocked(width, height);
    let passes = if is_interlaced {
        &PASSES[..]
    } else {
        &[(0, 0, 1, 1)]
    };
    for (left, top, step_x, step_y) in passes {
        let xs = || (*left..width).step_by(*step_x as usize);
        let pixels = xs().len();
        if pixels == 0 {
            continue;
        }
        for y in (*top..height).step_by(*step_y as usize) {
            let row = reader.next_row().map_err(|error| fail(error.to_string()))?;
            let data = row.as_ref().map_or(&[][..], |row| row.data());
            if data.len() != pixels * channels {
                return Err(fail(format!("{} bytes of pixels in row {y}", data.len())));
            }
            let blocked = data.chunks_exact(channels).map(is_blocked);
            if *step_x == 1 && *step_y == 1 {
                rows.set_row(y, words(blocked));
            } else {
                for (x, _) in xs().zip(blocked).filter(|(_, blocked)| !blocked) {
                    rows.set_run(
                        TileRun {
                            y,
                            start: x,
                            end: x,
                        },
                        false,
                    );
                }
            }
        }
    }
    Ok(TileMap::from_rows(rows))
}

/// Whether a pixel of grey, grey and alpha, RGB or RGBA is dark or transparent.
fn is_blocked(pixel: &[u8]) -> bool {
    let (luma, alpha) = match *pixel {
        [grey] => (u32::from(grey), 255),
        [grey, alpha] => (u32::from(grey), alpha),
        [red, green, blue] => (luma(red, green, blue), 255),
        [red, green, blue, alpha] => (luma(red, green, blue), alpha),
        _ => return true,
    };
    luma < 128 || alpha < 128
}

/// Brightness from 0 to 255, with the weights of Rec. ITU-R BT.601.
fn luma(red: u8, green: u8, blue: u8) -> u32 {
    (299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue)) / 1_000
}

/// Packs bits into words, the first into the lowest bit.
fn words(bits: impl Iterator<Item = bool>) -> impl Iterator<Item = u64> {
    let mut bits = bits.peekable();
    std::iter::from_fn(move || {
        bits.peek()?;
        Some(
            bits.by_ref()
                .take(64)
                .enumerate()
                .fold(0, |word, (i, bit)| word | u64::from(bit) << i),
        )
    })
}

pub(super) fn encode(map: &TileMap) -> Result<Vec<u8>, MapError> {
    let (width, height) = (map.width(), map.height());
    let row_bytes = width.div_ceil(8) as usize;
    let mut pixels = Vec::with_capacity(row_bytes * height as usize);
    for y in 0..height {
        // The leftmost pixel is the highest bit, and white is 1.
        let bytes = map.rows().row(y).iter().flat_map(|word| word.to_le_bytes());
        pixels.extend(bytes.take(row_bytes).map(|byte| !byte.reverse_bits()));
    }
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::One);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&pixels)?;
        writer.finish()
    });
    written.map_err(|error| MapError::Png {
        place: SourceLocation::default(),
        found: error.to_string(),
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: u32, height: u32, color: ColorType, depth: BitDepth, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, width, height);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(&[255, 255, 255, 0, 0, 0, 255, 255, 255][..]);
            encoder.set_trns(&[255, 255, 0][..]);
        }
        encoder
            .write_header()
            .unwrap()
            .write_image_data(data)
            .unwrap();
        bytes
    }

    #[test]
    fn all_colour_types_and_depths_decode_to_dark_and_light() {
        use BitDepth::{Eight, Four, One, Sixteen, Two};
        use ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
        let cases: [(ColorType, BitDepth, &[u8]); 11] = [
            (Grayscale, One, &[0b1010_0000]),
            (Grayscale, Two, &[0b1101_1000]),
            (Grayscale, Four, &[0xF7, 0x80]),
            (Grayscale, Eight, &[128, 127, 255]),
            (Grayscale, Sixteen, &[0x80, 0, 0x7F, 0xFF, 0xFF, 0xFF]),
            (GrayscaleAlpha, Eight, &[255, 255, 255, 127, 128, 128]),
            (
                GrayscaleAlpha,
                Sixteen,
                &[255, 0, 255, 0, 255, 0, 0, 0, 255, 0, 255, 0],
            ),
            (Rgb, Eight, &[255, 255, 0, 0, 0, 255, 0, 255, 0]),
            (
                Rgba,
                Eight,
                &[255, 255, 255, 255, 255, 255, 255, 0, 200, 200, 200, 255],
            ),
            (Indexed, Two, &[0b0001_0000]),
            (Indexed, Eight, &[0, 2, 0]),
        ];
        let expected = TileMap::from_ascii(".@.").unwrap();
        for (color, depth, data) in cases {
            let map = decode("test.png", &image(3, 1, color, depth, data)).unwrap();
            assert_eq!(map, expected, "{color:?} {depth:?}");
        }
    }

    #[test]
    fn an_interlaced_image_reads_as_the_same_tiles() {
        // 3 × 3, one bit per pixel, interlaced: the passes hold, in order, pixels
        // (0,0); none; none; (2,0); (0,2) (2,2); (1,0) (1,2); row 1.
        let bytes: &[u8] = &[
            0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0,
            0, 0, 3, 0, 0, 0, 3, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, b'I', b'D', b'A', b'T',
            // A zlib stream with one stored block of 12 bytes: per row, a filter byte and a byte of pixels.
            0x78, 0x01, 0x01, 12, 0, 0xF3, 0xFF, 0, 0x80, 0, 0x00, 0, 0x40, 0, 0x00, 0, 0x80, 0,
            0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0, 0, 0, 0,
        ];
        let bytes = with_checksums(bytes);
        assert_eq!(
            decode("test.png", &bytes).unwrap(),
            TileMap::from_ascii(".@@\n..@\n@..").unwrap()
        );
    }

    /// Fills in the CRC of each chunk and the Adler-32 of the stored block.
    fn with_checksums(bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let mut at = 8;
        while at < bytes.len() {
            let len = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            if &bytes[at + 4..at + 8] == b"IDAT" {
                let (mut a, mut b) = (1u32, 0u32);
                for byte in &bytes[at + 15..at + 8 + len - 4] {
                    a = (a + u32::from(*byte)) % 65_521;
                    b = (b + a) % 65_521;
                }
                bytes[at + 8 + len - 4..at + 8 + len].copy_from_slice(&(b << 16 | a).to_be_bytes());
            }
            let mut crc = u32::MAX;
            for byte in &bytes[at + 4..at + 8 + len] {
                crc ^= u32::from(*byte);
                for _ in 0..8 {
                    crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
                }
            }
            bytes[at + 8 + len..at + 12 + len].copy_from_slice(&(!crc).to_be_bytes());
            at += 12 + len;
        }
        bytes
    }

    #[test]
    fn a_huge_image_is_refused_by_its_header() {
        let mut bytes = image(1, 1, ColorType::Grayscale, BitDepth::One, &[0]);
        bytes[16..24].copy_from_slice(&[0, 1, 0, 1, 0, 1, 0, 1]);
        let mut crc = u32::MAX;
        for byte in &bytes[12..29] {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
            }
        }
        bytes[29..33].copy_from_slice(&(!crc).to_be_bytes());
        let error = decode("test.png", &bytes).unwrap_err();
        assert!(
            matches!(
                error,
                MapError::Size {
                    width: 65_537,
                    height: 65_537,
                    ..
                }
            ),
            "{error}"
        );
    }
}
