//! MovingAI `.map`: text with one letter per tile (Sturtevant, "Benchmarks for Grid-Based Pathfinding", 2012).
//!
//! ```text
//! type octile
//! height 2
//! width 4
//! map
//! ..@G
//! TW..
//! ```
//! Free: `.` and `G` (ground) and `S` (swamp, passable from ground). Blocked: `@` and `O` (out of bounds), `T` (trees) and `W`
//! (water). The three header
//! lines may be in any order, keywords in upper or lower case; lines may end in CR LF; empty lines may follow the rows; a byte
//! order mark may be at the beginning.

use super::letters::{EXPECTED, LETTERS, TileLetter, is_free};
use crate::map::TileMap;
use crate::map::bit_plane::BitPlane;
use crate::map::error::{MapError, SourceLocation};
use crate::map::tiles::check_size;

/// The lines of a file, without their ends, with their numbers from 1; an empty last line is skipped.
pub(super) struct MapLines<'a> {
    pub file: &'a str,
    remaining: &'a [u8],
    /// The number of the line last returned.
    pub number: u32,
}

impl<'a> MapLines<'a> {
    pub(super) fn new(file: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            file,
            // Some editors begin a text with a byte order mark.
            remaining: bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes),
            number: 0,
        }
    }

    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        if self.remaining.is_empty() {
            return None;
        }
        self.number += 1;
        let end = self
            .remaining
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(self.remaining.len());
        let line = &self.remaining[..end];
        self.remaining = self.remaining.get(end + 1..).unwrap_or_default();
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }

    fn location(&self, column: usize) -> SourceLocation {
        SourceLocation::text(
            self.file,
            self.number,
            u32::try_from(column).unwrap_or(u32::MAX),
        )
    }

    /// An error for a letter of the last line that is no tile, at a column from 1.
    pub(super) fn unknown_letter(&self, column: usize, found: u8) -> MapError {
        MapError::UnknownLetter {
            place: self.location(column),
            found: char::from(found),
            expected: EXPECTED,
        }
    }

    /// An error for a header that ends too early.
    pub(super) fn unexpected_end(&self, expected: &str) -> MapError {
        MapError::Header {
            place: SourceLocation::text(self.file, self.number + 1, 1),
            found: "the end of the file".into(),
            expected: expected.into(),
        }
    }

    /// An error for unexpected text in the last line, from a column on.
    pub(super) fn header_error(&self, column: usize, found: &[u8], expected: &str) -> MapError {
        // A line may be as long as the file.
        let shown = String::from_utf8_lossy(&found[..found.len().min(40)]);
        let found = if found.is_empty() {
            "nothing".into()
        } else {
            format!("{shown:?}")
        };
        MapError::Header {
            place: self.location(column),
            found,
            expected: expected.into(),
        }
    }

    /// The whole number after the keyword of the last line, and its location.
    pub(super) fn number_after(&self, line: &[u8]) -> Result<(u64, SourceLocation), MapError> {
        let (key, value, column) = key_and_value(line);
        let text = std::str::from_utf8(value).ok();
        let number = text.and_then(|text| text.parse::<u64>().ok());
        number
            .map(|number| (number, self.location(column)))
            .ok_or_else(|| {
                let key = String::from_utf8_lossy(key).to_ascii_lowercase();
                let what = if matches!(key.as_str(), "height" | "width") {
                    " of tiles"
                } else {
                    ""
                };
                self.header_error(
                    column,
                    value,
                    &format!("a whole number{what} after `{key}`"),
                )
            })
    }
}

/// A header line's keyword, its value, and the column of the value, from 1.
pub(super) fn key_and_value(line: &[u8]) -> (&[u8], &[u8], usize) {
    let end = line
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    let column = 1 + line.len() - rest.trim_ascii_start().len();
    (key, rest.trim_ascii(), column)
}

pub(super) fn decode(file: &str, bytes: &[u8]) -> Result<TileMap, MapError> {
    let mut lines = MapLines::new(file, bytes);
    let (width, height) = header(&mut lines, false)?;
    let rows = rows(&mut lines, width, height)?;
    while let Some(line) = lines.next() {
        if !line.trim_ascii().is_empty() {
            let found = u64::from(height) + 1;
            return Err(MapError::RowCount {
                place: lines.location(1),
                found,
                expected: height,
            });
        }
    }
    Ok(TileMap::from_rows(rows))
}

/// Counts the tiles of a MovingAI `.map` file by their letter: the free ones first, without letters that it does not have. `name`
/// identifies the file in errors. O(bytes).
///
/// Errors: [`MapError`] when the header or a letter is wrong. The lengths of rows are not checked; [`decode`](super::decode) does.
///
/// ```
/// use throng_nav::map::count_letters;
/// let letters = count_letters("a.map", b"type octile\nheight 1\nwidth 4\nmap\n.S.T\n")?;
/// let counts: Vec<_> = letters.iter().map(|of| (of.letter, of.tiles, of.is_free)).collect();
/// assert_eq!(counts, [('.', 2, true), ('S', 1, true), ('T', 1, false)]);
/// # Ok::<(), throng_nav::map::MapError>(())
/// ```
pub fn count_letters(name: &str, bytes: &[u8]) -> Result<Vec<TileLetter>, MapError> {
    let mut lines = MapLines::new(name, bytes);
    let (width, height) = header(&mut lines, false)?;
    let mut counts = [0; LETTERS.len()];
    for _ in 0..height {
        let Some(line) = lines.next() else { break };
        let line = &line[..line.len().min(width as usize)];
        for (column, letter) in line.iter().enumerate() {
            match LETTERS.iter().position(|known| known.0 == *letter) {
                Some(known) => counts[known] += 1,
                None => return Err(lines.unknown_letter(column + 1, *letter)),
            }
        }
    }
    let all = LETTERS.into_iter().zip(counts);
    let found = all.filter(|(_, tiles)| *tiles > 0);
    Ok(found
        .map(|((letter, meaning, is_free), tiles)| TileLetter {
            letter: char::from(letter),
            meaning,
            is_free,
            tiles,
        })
        .collect())
}

/// Reads the rows of letters that follow a header.
pub(super) fn rows(lines: &mut MapLines, width: u32, height: u32) -> Result<BitPlane, MapError> {
    // Allocate by the text, not by the header, which may promise more than the file holds.
    let mut words = Vec::new();
    for y in 0..height {
        let Some(line) = lines.next() else {
            let place = SourceLocation::text(lines.file, lines.number + 1, 1);
            return Err(MapError::RowCount {
                place,
                found: u64::from(y),
                expected: height,
            });
        };
        // Check a row's letters first: a wrong letter explains a wrong length better than the length does.
        let letters = &line[..line.len().min(width as usize)];
        if let Some(column) = letters.iter().position(|letter| is_free(*letter).is_none()) {
            return Err(lines.unknown_letter(column + 1, letters[column]));
        }
        if line.len() != width as usize {
            let place = lines.location(letters.len() + 1);
            return Err(MapError::RowLength {
                place,
                found: line.len() as u64,
                expected: width,
            });
        }
        words.extend(line.chunks(64).map(|letters| {
            letters.iter().rev().fold(0, |word, letter| {
                word << 1 | u64::from(is_free(*letter) != Some(true))
            })
        }));
    }
    let mut rows = BitPlane::blocked(width, height);
    for (y, row) in (0..height).zip(words.chunks(width.div_ceil(64) as usize)) {
        rows.set_row(y, row.iter().copied());
    }
    Ok(rows)
}

/// Reads the lines up to `map`; returns width and height. With `has_type`, the line `type octile` was already read.
pub(super) fn header(lines: &mut MapLines, mut has_type: bool) -> Result<(u32, u32), MapError> {
    let mut width: Option<(u64, SourceLocation)> = None;
    let mut height: Option<(u64, SourceLocation)> = None;
    loop {
        let missing = match (has_type, &height, &width) {
            (false, ..) => "`type octile`",
            (_, None, _) => "`height` and a number",
            (_, _, None) => "`width` and a number",
            _ => "`map`",
        };
        let line = lines.next().ok_or_else(|| lines.unexpected_end(missing))?;
        let (key, value, _) = key_and_value(line);
        let is_new = match key.to_ascii_lowercase().as_slice() {
            b"type" => !std::mem::replace(&mut has_type, true),
            b"height" => height.replace(lines.number_after(line)?).is_none(),
            b"width" => width.replace(lines.number_after(line)?).is_none(),
            b"map" if value.is_empty() => match (has_type, &width, &height) {
                (true, Some((width, width_place)), Some((height, height_place))) => {
                    // Report the location of the side that is farther out of range.
                    let place = if height > width {
                        height_place
                    } else {
                        width_place
                    };
                    check_size(*width, *height, place)?;
                    return Ok((*width as u32, *height as u32));
                }
                _ => return Err(lines.header_error(1, line, missing)),
            },
            _ => return Err(lines.header_error(1, line, missing)),
        };
        if !is_new {
            return Err(lines.header_error(1, line, "each header line once"));
        }
    }
}

pub(super) fn encode(map: &TileMap) -> Vec<u8> {
    let mut text = format!(
        "type octile\nheight {}\nwidth {}\nmap\n",
        map.height(),
        map.width()
    )
    .into_bytes();
    text.reserve((map.width() as usize + 1) * map.height() as usize);
    for y in 0..map.height() as i32 {
        text.extend((0..map.width() as i32).map(|x| {
            if map.is_blocked((x, y).into()) {
                b'@'
            } else {
                b'.'
            }
        }));
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TileMap, MapError> {
        decode("test.map", text.as_bytes())
    }

    #[test]
    fn tile_letters_are_decoded() {
        let map = read("type octile\nheight 2\nwidth 4\nmap\n.G@O\nTWS.\n").unwrap();
        assert_eq!(map, TileMap::from_ascii("..@@\n@@..").unwrap());
    }

    #[test]
    fn line_endings_header_order_and_case_do_not_matter() {
        let expected = TileMap::from_ascii("..@\n@..").unwrap();
        for text in [
            "type octile\nheight 2\nwidth 3\nmap\n..@\n@..",
            "type octile\r\nheight 2\r\nwidth 3\r\nmap\r\n..@\r\n@..\r\n",
            "width 3\nheight\t2 \nTYPE Tile\nmap \n..@\n@..\n\n \n",
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn wrong_letters_are_refused_with_their_place() {
        let text = b"type octile\nheight 2\nwidth 3\nmap\n...\n.x.\n";
        let error = count_letters("a.map", text).unwrap_err();
        assert_eq!(error.line_column(), Some((6, 2)));
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        let cases = [
            ("", (1, 1), "`type octile`"),
            ("type octile\nwidth 3\n", (3, 1), "`height`"),
            ("type octile\nheight 2\nmap\n", (3, 1), "`width`"),
            (
                "type octile\nheight 2\nwidht 3\nmap\n",
                (3, 1),
                "\"widht 3\"",
            ),
            (
                "type octile\nheight -2\n",
                (2, 8),
                "a whole number of tiles after `height`",
            ),
            ("type octile\nheight  2x\n", (2, 9), "\"2x\""),
            ("type octile\nheight\n", (2, 7), "nothing"),
            ("type octile\nheight 2\nheight 2\n", (3, 1), "once"),
            (
                "type octile\nheight 2\nwidth 100000\nmap\n",
                (3, 7),
                "100000 × 2",
            ),
            ("type octile\nheight 0\nwidth 3\nmap\n", (3, 7), "3 × 0"),
            (
                "type octile\nheight 100000\nwidth 100000\nmap\n",
                (3, 7),
                "100000 × 100000",
            ),
            (
                "type octile\nheight 2\nwidth 3\nmap\n...\n.x.\n",
                (6, 2),
                "'x'",
            ),
            (
                "type octile\nheight 2\nwidth 3\nmap\n..\n...\n",
                (5, 3),
                "2 tiles, expected 3",
            ),
            (
                "type octile\nheight 2\nwidth 3\nmap\n...\n....\n",
                (6, 4),
                "4 tiles, expected 3",
            ),
            (
                "type octile\nheight 2\nwidth 3\nmap\n...\n",
                (6, 1),
                "1 rows, expected 2",
            ),
            (
                "type octile\nheight 2\nwidth 3\nmap\n...\n...\n\n...\n",
                (8, 1),
                "3 rows, expected 2",
            ),
        ];
        for (text, location, part) in cases {
            let error = read(text).unwrap_err();
            assert_eq!(error.line_column(), Some(location), "{text:?}: {error}");
            assert_eq!(error.file(), Some("test.map"));
            assert!(error.to_string().contains(part), "{text:?}: {error}");
        }
    }
}
