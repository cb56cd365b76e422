//! The prepared data of a map to bytes and back: the sections of a map's file.
//!
//! All numbers are little endian. A section begins with its source:
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | layout, 3 |
//! | 4–7 | movement rule: 0 `no-cut`, 1 `cut` |
//! | 8–15 | fingerprint of the tiles |
//! | 16–23 | width and height in tiles |
//!
//! Then plain arrays. Only the length of the last one may be independent of those before it:
//!
//! - `SIGN`: the lines of the falling diagonals, five words each, their turns (`cut` only), two words each; the same of the
//!   rising ones.
//! - `JUMP`: one bit per tile, 1 = jump point, whole words per row. Then, by the numbers of jump points, which are assigned by
//!   blocks of 64 by 64 tiles, left to right and down, and in each row by row: where successors begin, a number of four bytes
//!   for each jump point and direction of arrival and one more for the end; the directions onward, one byte each; the numbers
//!   of the four landmarks, or 2³² − 1 four times if there is no jump point, and the distances of each jump point from them,
//!   four bytes each; the successors, four bytes each.
//!
//! Invariant: whatever the bytes are, the result is either refused or can be searched, repaired and built on without a
//! panic, a scan off the map or an endless one. So lengths and numbers are checked, and every step onto or off a tile
//! outside the map must be blocked. Apart from that the bits are trusted, as those of the tiles are: wrong ones give wrong
//! paths.
//!
//! Cost: copies at the speed of memory, and one check of each number.

use thiserror::Error;

use super::graph::{JumpGraph, Successor};
use super::jump_points::JumpPoints;
use super::landmarks::{LANDMARKS, Landmarks};
use super::planes::{STEP, SignPlanes, SkewedPlane};
use crate::direction::Directions;
use crate::map::{MapSection, TileMap};
use crate::rule::Diagonal;

const SIGN_TAG: [u8; 4] = *b"SIGN";
const JUMP_TAG: [u8; 4] = *b"JUMP";
/// Changes whenever the bytes or their meaning change.
const LAYOUT: u32 = 3;
const HEADER_BYTES: usize = 24;
/// Written for each landmark of a map without jump points.
const NO_LANDMARK: u32 = u32::MAX;

/// Why a section of a map's file is not used. Its data is rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("map section `{section}`: {field} is {found}, expected {expected}")]
pub struct MapSectionError {
    /// The section's tag.
    pub section: &'static str,
    /// The invalid field.
    pub field: &'static str,
    /// The value in the section.
    pub found: u64,
    /// The expected value.
    pub expected: String,
}

/// A known section of the requested rule.
pub(super) enum PreparedSection {
    Planes(SignPlanes),
    Graph(JumpGraph),
}

/// The planes as a section.
pub(super) fn planes_section(
    tiles: &TileMap,
    diagonal: Diagonal,
    planes: &SignPlanes,
) -> MapSection {
    let mut bytes = section_header(tiles, diagonal, planes.memory_bytes());
    for family in [&planes.falling, &planes.rising] {
        let words = family.words.as_flattened().iter();
        words.for_each(|word| bytes.extend(word.to_le_bytes()));
        let turns = family.turns.as_flattened().iter();
        turns.for_each(|word| bytes.extend(word.to_le_bytes()));
    }
    MapSection::new(SIGN_TAG, bytes)
}

/// The graph as a section.
pub(super) fn graph_section(tiles: &TileMap, diagonal: Diagonal, graph: &JumpGraph) -> MapSection {
    let mut bytes = section_header(tiles, diagonal, graph.memory_bytes());
    let words = graph.points.is_jump_point.iter();
    words.for_each(|word| bytes.extend(word.to_le_bytes()));
    let first = graph.first.iter();
    first.for_each(|first| bytes.extend(first.to_le_bytes()));
    bytes.extend(graph.onward.iter().map(|onward| onward.bits()));
    let Landmarks { numbers, distances } = &graph.landmarks;
    let places = (0..LANDMARKS).map(|nth| numbers.get(nth).unwrap_or(&NO_LANDMARK));
    let numbers = places.chain(distances.as_flattened());
    numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
    let successors = graph.successors.iter();
    successors.for_each(|successor| bytes.extend(successor.bits().to_le_bytes()));
    MapSection::new(JUMP_TAG, bytes)
}

fn section_header(tiles: &TileMap, diagonal: Diagonal, bytes: usize) -> Vec<u8> {
    let mut part = Vec::with_capacity(HEADER_BYTES + bytes);
    part.extend(LAYOUT.to_le_bytes());
    part.extend(rule_number(diagonal).to_le_bytes());
    part.extend(tiles.fingerprint().to_le_bytes());
    part.extend(tiles.width().to_le_bytes());
    part.extend(tiles.height().to_le_bytes());
    part
}

const fn rule_number(diagonal: Diagonal) -> u32 {
    match diagonal {
        Diagonal::NoCut => 0,
        Diagonal::Cut => 1,
    }
}

/// Reads a section. `None` if it is unknown, or of the other rule.
pub(super) fn read_section(
    tiles: &TileMap,
    diagonal: Diagonal,
    part: &MapSection,
) -> Option<Result<PreparedSection, MapSectionError>> {
    let name = match part.tag() {
        SIGN_TAG => "SIGN",
        JUMP_TAG => "JUMP",
        _ => return None,
    };
    let mut reader = SectionReader {
        section: name,
        remaining: part.bytes(),
    };
    match reader.header(tiles, diagonal) {
        Ok(true) => {}
        Ok(false) => return None,
        Err(refused) => return Some(Err(refused)),
    }
    Some(if part.tag() == SIGN_TAG {
        read_planes(&mut reader, tiles, diagonal).map(PreparedSection::Planes)
    } else {
        read_graph(&mut reader, tiles, diagonal).map(PreparedSection::Graph)
    })
}

/// The rest of a section.
struct SectionReader<'p> {
    section: &'static str,
    remaining: &'p [u8],
}

impl<'p> SectionReader<'p> {
    fn error(&self, field: &'static str, found: u64, expected: impl ToString) -> MapSectionError {
        MapSectionError {
            section: self.section,
            field,
            found,
            expected: expected.to_string(),
        }
    }

    /// Takes the next bytes.
    fn read(&mut self, bytes: usize) -> Result<&'p [u8], MapSectionError> {
        let Some((taken, left)) = self.remaining.split_at_checked(bytes) else {
            let field = "the number of bytes left";
            return Err(self.error(field, self.remaining.len() as u64, bytes));
        };
        self.remaining = left;
        Ok(taken)
    }

    fn expect_end(&self) -> Result<(), MapSectionError> {
        match self.remaining.len() {
            0 => Ok(()),
            left => Err(self.error("the number of bytes at the end", left as u64, 0)),
        }
    }

    /// Whether the section is of the rule; an error if it is of no rule, or of other tiles.
    fn header(&mut self, tiles: &TileMap, diagonal: Diagonal) -> Result<bool, MapSectionError> {
        let header = self.read(HEADER_BYTES)?;
        let number = |nth: usize| u32_at(&header[nth * 4..]);
        if number(0) != LAYOUT {
            return Err(self.error("the layout", u64::from(number(0)), LAYOUT));
        }
        if number(1) > 1 {
            let found = u64::from(number(1));
            return Err(self.error("the movement rule", found, "0 or 1"));
        }
        let found = u64_at(&header[8..]);
        if found != tiles.fingerprint() {
            let field = "the fingerprint of the tiles";
            return Err(self.error(field, found, tiles.fingerprint()));
        }
        for (nth, field, side) in [
            (4, "the width", tiles.width()),
            (5, "the height", tiles.height()),
        ] {
            if number(nth) != side {
                return Err(self.error(field, u64::from(number(nth)), side));
            }
        }
        Ok(number(1) == rule_number(diagonal))
    }
}

fn u32_at(bytes: &[u8]) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[..4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(number)
}

/// Groups of words.
fn words_of<const N: usize>(bytes: &[u8]) -> Vec<[u64; N]> {
    let groups = bytes.chunks_exact(N * 8);
    groups
        .map(|group| std::array::from_fn(|nth| u64_at(&group[nth * 8..])))
        .collect()
}

fn numbers_of(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(u32_at)
}

fn read_planes(
    reader: &mut SectionReader,
    tiles: &TileMap,
    diagonal: Diagonal,
) -> Result<SignPlanes, MapSectionError> {
    let (lines, blocks) = SkewedPlane::shape(tiles);
    let family = |reader: &mut SectionReader| {
        let words = words_of(reader.read(lines * blocks * 40)?);
        let turns = match diagonal {
            Diagonal::NoCut => Vec::new(),
            Diagonal::Cut => words_of(reader.read(lines * blocks * 16)?),
        };
        Ok(SkewedPlane {
            lines,
            words,
            turns,
        })
    };
    let (falling, rising) = (family(reader)?, family(reader)?);
    reader.expect_end()?;
    let planes = SignPlanes { falling, rising };
    for (family, dy) in [(&planes.falling, 1), (&planes.rising, -1)] {
        let lines = (0..).zip(&family.words);
        for (line, words) in lines {
            let beyond = !family.steps_inside(tiles, line, dy) & !words[STEP];
            if beyond != 0 {
                let field = "the number of steps off the map that a line allows";
                return Err(reader.error(field, u64::from(beyond.count_ones()), 0));
            }
        }
    }
    Ok(planes)
}

impl SkewedPlane {
    /// The steps of a line that lead from a tile of the map to another; `dy` as in `locate_tile`.
    fn steps_inside(&self, tiles: &TileMap, line: usize, dy: i32) -> u64 {
        let (block, line) = ((line / self.lines) as i64, (line % self.lines) as i64);
        let (width, height) = (i64::from(tiles.width()), i64::from(tiles.height()));
        // The step is stored with its right-hand tile (x, y), and comes from (x − 1, y − dy).
        let columns = (i64::from(block == 0), width - block * 64);
        let rows = if dy > 0 {
            // y = line + bit − 64, from 1 up to the height.
            (65 - line, height + 64 - line)
        } else {
            // y = line − 1 − bit, from 0 up to the height less 1.
            (line + 1 - height, line)
        };
        let start = columns.0.max(rows.0).clamp(0, 64);
        let end = columns.1.min(rows.1).clamp(start, 64);
        let below = |bit: i64| 1u64.checked_shl(bit as u32).map_or(u64::MAX, |bit| bit - 1);
        below(end) & !below(start)
    }
}

fn read_graph(
    reader: &mut SectionReader,
    tiles: &TileMap,
    diagonal: Diagonal,
) -> Result<JumpGraph, MapSectionError> {
    let words_per_row = (tiles.width() as usize).div_ceil(64);
    let bitmap = reader.read(words_per_row * tiles.height() as usize * 8)?;
    let beyond = u64::MAX.checked_shl(tiles.width() - (words_per_row as u32 - 1) * 64);
    let mut rows = (0..).zip(bitmap.chunks_exact(words_per_row * 8));
    let is_beyond = |row: &[u8]| u64_at(&row[row.len() - 8..]) & beyond.unwrap_or(0) != 0;
    if let Some((y, _)) = rows.find(|(_, row)| is_beyond(row)) {
        return Err(reader.error("the row of a jump point off the map", y, "none"));
    }
    let points = JumpPoints::number_all(tiles, |x, y| {
        u64_at(&bitmap[(y as usize * words_per_row + x as usize / 64) * 8..])
    });
    let mut graph = JumpGraph::without_successors(points, diagonal);
    let len = graph.points.len();
    let ways = len as usize * graph.direction_count as usize;
    graph.first = numbers_of(reader.read((ways + 1) * 4)?).collect();
    let onward = reader.read(ways)?;
    graph.onward = onward
        .iter()
        .map(|&bits| Directions::of_bits(bits))
        .collect();
    let is_rising = graph.first.first() == Some(&0) && graph.first.is_sorted();
    let count = graph.first.last().copied().unwrap_or(0);
    if !is_rising {
        let field = "a place where successors begin";
        return Err(reader.error(field, u64::from(count), "0 for the first, then rising"));
    }
    graph.landmarks = read_landmarks(reader, len)?;
    let successors = reader.read(count as usize * 4)?;
    reader.expect_end()?;
    let ways = graph.direction_count;
    let is_known = |successor: u32| successor >> 3 < len && successor & 7 < ways;
    if let Some(unknown) = numbers_of(successors).find(|&successor| !is_known(successor)) {
        let expected = format!("a jump point below {len} and a direction below {ways}");
        return Err(reader.error("a successor", u64::from(unknown), expected));
    }
    graph.successors = numbers_of(successors).map(Successor::of_bits).collect();
    Ok(graph)
}

fn read_landmarks(reader: &mut SectionReader, points: u32) -> Result<Landmarks, MapSectionError> {
    let mut numbers: Vec<u32> = numbers_of(reader.read(LANDMARKS * 4)?).collect();
    if numbers == [NO_LANDMARK; LANDMARKS] {
        numbers.clear();
    }
    if let Some(unknown) = numbers.iter().find(|number| **number >= points) {
        let expected = format!("a jump point below {points}");
        return Err(reader.error("a landmark", u64::from(*unknown), expected));
    }
    let distances = reader.read(Landmarks::memory_bytes_of(points))?;
    let distances = distances.chunks_exact(LANDMARKS * 4);
    let distances = distances.map(|of_one| std::array::from_fn(|nth| u32_at(&of_one[nth * 4..])));
    Ok(Landmarks {
        numbers,
        distances: distances.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::parallel::InlineExecutor;

    /// Data prepared by an earlier version must not be read as if it were current: when one of these checksums has to change,
    /// `LAYOUT` has to change, too.
    #[test]
    fn section_layout_is_documented_and_unchanged() {
        let map = TileMap::from_fn(70, 9, |x, y| (x * 7 + y * 13) % 11 == 0).unwrap();
        let mut sums = Vec::new();
        for (diagonal, rule, words, ways) in [(Diagonal::NoCut, 0, 5, 4), (Diagonal::Cut, 1, 7, 8)]
        {
            let planes = SignPlanes::build(&map, diagonal);
            let graph =
                JumpGraph::build(&map, diagonal, &planes, usize::MAX, InlineExecutor).unwrap();
            let parts = [
                planes_section(&map, diagonal, &planes),
                graph_section(&map, diagonal, &graph),
            ];
            for part in &parts {
                let header = part.bytes()[..8].to_vec();
                assert_eq!(header, [3, 0, 0, 0, rule, 0, 0, 0]);
                assert_eq!(u64_at(&part.bytes()[8..]), map.fingerprint());
                assert_eq!(part.bytes()[16..24], [70, 0, 0, 0, 9, 0, 0, 0]);
                let step =
                    |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
                sums.push(part.bytes()[24..].iter().fold(7, step));
            }
            // Two families of 9 + 65 lines in each of two blocks.
            assert_eq!(parts[0].bytes().len(), 24 + 2 * (9 + 65) * 2 * words * 8);
            let (points, successors) = (graph.points.len() as usize, graph.successors.len());
            let arrays = 9 * 2 * 8
                + (points * ways + 1) * 4
                + points * ways
                + 16
                + points * 16
                + successors * 4;
            assert_eq!(parts[1].bytes().len(), 24 + arrays);
        }
        let before = [
            7_107_819_582_852_033_027,
            8_732_460_053_290_978_706,
            7_272_111_215_399_791_432,
            18_055_858_300_343_925_674u64,
        ];
        assert_eq!(sums, before);
    }

    #[test]
    fn jump_point_outside_the_map_is_refused() {
        let map = TileMap::from_fn(70, 9, |x, y| (x * 7 + y * 13) % 11 == 0).unwrap();
        let planes = SignPlanes::build(&map, Diagonal::NoCut);
        let graph =
            JumpGraph::build(&map, Diagonal::NoCut, &planes, usize::MAX, InlineExecutor).unwrap();
        let part = graph_section(&map, Diagonal::NoCut, &graph);
        for x in 70..128 {
            let mut bytes = part.bytes().to_vec();
            bytes[HEADER_BYTES + 4 * 16 + x / 8] |= 1 << (x % 8);
            let read = read_section(&map, Diagonal::NoCut, &MapSection::new(JUMP_TAG, bytes));
            let Some(Err(refused)) = read else {
                panic!("{x} is taken")
            };
            assert_eq!(
                (refused.field, refused.found),
                ("the row of a jump point off the map", 4)
            );
        }
    }

    /// Every allowed step leads from tile to tile, by the position of its tile; all others are blocked in
    /// built planes, and a section that allows one is refused.
    #[test]
    fn step_outside_the_map_is_refused() {
        for (width, height) in [(1, 1), (3, 2), (64, 1), (63, 70), (65, 5), (130, 66)] {
            let map = TileMap::new(width, height, false).unwrap();
            let planes = SignPlanes::build(&map, Diagonal::NoCut);
            let part = planes_section(&map, Diagonal::NoCut, &planes);
            let mut at = HEADER_BYTES;
            for (family, dy) in [(&planes.falling, 1), (&planes.rising, -1)] {
                let mut inside = vec![0u64; family.words.len()];
                for y in 0..height as i32 {
                    for x in 1..width as i32 {
                        if (0..height as i32).contains(&(y - dy)) {
                            let (line, bit) = family.locate_tile(x, y, dy);
                            inside[line] |= 1 << bit;
                        }
                    }
                }
                for (line, inside) in inside.into_iter().enumerate() {
                    assert_eq!(family.steps_inside(&map, line, dy), inside, "{line}, {dy}");
                    assert_eq!(family.words[line][STEP], !inside, "the map is free");
                    let outside = [inside.trailing_ones(), inside.leading_ones() ^ 63];
                    for bit in outside.into_iter().filter(|bit| *bit < 64) {
                        let mut bytes = part.bytes().to_vec();
                        bytes[at + bit as usize / 8] &= !(1 << (bit % 8));
                        let forged = MapSection::new(SIGN_TAG, bytes);
                        let read = read_section(&map, Diagonal::NoCut, &forged);
                        assert!(matches!(read, Some(Err(_))), "{line}, {bit}");
                    }
                    at += 40;
                }
            }
        }
    }
}
