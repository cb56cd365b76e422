//! MovingAI `.patch`: numbered patterns of tiles for maps that change (Grid-Based Path Planning Competition, dynamic
//! track).
//!
//! ```text
//! type patch
//! patches 1
//! patch 0
//! height 2
//! width 3
//! map
//! ..@
//! @@.
//! ```
//! Letters as in `.map`. Numbers count up from 0. Memory depends on the contents of the file, not on the
//! numbers in it.

use super::movingai::{MapLines, header, key_and_value, rows};
use crate::map::TilePattern;
use crate::map::error::MapError;

/// Reads the patterns of a `.patch` file; the index in the list is the number of the pattern. `file` names the file in
/// errors.
///
/// Errors: [`MapError`] with line and column for a wrong header, a number out of sequence, a wrong letter, row or size,
/// and fewer or more patterns than the header states.
pub fn decode_patches(file: &str, bytes: &[u8]) -> Result<Vec<TilePattern>, MapError> {
    let mut lines = MapLines::new(file, bytes);
    let first = "`type patch`";
    let line = lines.next().ok_or_else(|| lines.unexpected_end(first))?;
    if !is_keyword_line(line, b"type", |value| value.eq_ignore_ascii_case(b"patch")) {
        return Err(lines.header_error(1, line, first));
    }
    let second = "`patches` and how many there are";
    let line = lines.next().ok_or_else(|| lines.unexpected_end(second))?;
    if !is_keyword_line(line, b"patches", |_| true) {
        return Err(lines.header_error(1, line, second));
    }
    let (count, _) = lines.number_after(line)?;
    let mut patterns = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let number = patterns.len() as u64;
        if number == count {
            return Err(lines.header_error(1, line, &format!("no more than {count} patches")));
        }
        if !is_keyword_line(line, b"patch", |value| {
            value == number.to_string().as_bytes()
        }) {
            return Err(lines.header_error(1, line, &format!("`patch {number}`")));
        }
        let (width, height) = header(&mut lines, true)?;
        patterns.push(TilePattern::from_plane(rows(&mut lines, width, height)?));
    }
    if patterns.len() as u64 != count {
        return Err(lines.unexpected_end(&format!("`patch {}`", patterns.len())));
    }
    Ok(patterns)
}

fn is_keyword_line(line: &[u8], expected: &[u8], value_fits: impl Fn(&[u8]) -> bool) -> bool {
    let (key, value, _) = key_and_value(line);
    key.eq_ignore_ascii_case(expected) && value_fits(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TWO: &str = "type patch\npatches 2\npatch 0\nheight 2\nwidth 3\nmap\n..@\n@@.\npatch 1\nwidth 1\nheight 1\nmap\nG\n";

    fn read(text: &str) -> Result<Vec<TilePattern>, MapError> {
        decode_patches("test.patch", text.as_bytes())
    }

    #[test]
    fn patches_are_read_in_order_with_lf_and_crlf() {
        let expected = ["..@\n@@.", "."].map(|text| TilePattern::from_ascii(text).unwrap());
        assert_eq!(read(TWO).unwrap(), expected);
        assert_eq!(read(&TWO.replace('\n', "\r\n")).unwrap(), expected);
        assert_eq!(read("type patch\npatches 0\n").unwrap(), []);
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        for (from, to, location, part) in [
            ("type patch", "type octile", (1, 1), "`type patch`"),
            (
                "patches 2",
                "patches two",
                (2, 9),
                "a whole number after `patches`",
            ),
            ("patch 1", "patch 2", (9, 1), "`patch 1`"),
            ("patches 2", "patches 3", (14, 1), "`patch 2`"),
            ("patches 2", "patches 1", (9, 1), "no more than 1"),
            ("..@", "..x", (7, 3), "'x'"),
            ("..@", "..", (7, 3), "2 tiles, expected 3"),
            ("width 3", "width 70000", (5, 7), "70000 × 2"),
            ("width 3", "type octile", (5, 1), "once"),
            ("height 2", "height 65536", (9, 1), "'p'"),
        ] {
            assert!(TWO.contains(from));
            let error = read(&TWO.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error.line_column(), Some(location), "{to}: {error}");
            assert!(error.to_string().contains(part), "{to}: {error}");
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn damaged_patches_never_panic_the_decoder(
            changes in prop::collection::vec((any::<prop::sample::Index>(), "[a-z0-9 .@\n]{0,3}", 0usize..4), 1..6),
        ) {
            let mut text = TWO.to_owned();
            for (at, new, removed) in &changes {
                let at = at.index(text.len() + 1);
                text.replace_range(at..(at + removed).min(text.len()), new);
            }
            if let Err(error) = read(&text) {
                prop_assert!(error.line_column().is_some_and(|(line, _)| line as usize <= text.lines().count() + 1));
            }
        }
    }
}
