//! The letters of tiles in MovingAI text: what each is, and how many tiles of a map have it.

use super::movingai::{MapLines, header};
use crate::map::error::MapError;

/// The letters, by what they are and whether throng reads them as free: a tile is free or blocked here, and has no cost.
///
/// Ground is free, and so is swamp: it is passable from ground and back, at the same cost, as the known path lengths of the
/// benchmark say. Trees and water are classes of terrain of their own, passable from their own class only; nobody that walks on
/// ground enters them, so they are blocked.
const LETTERS: [(u8, &str, bool); 7] = [
    (b'.', "ground", true),
    (b'G', "ground", true),
    (b'S', "swamp", true),
    (b'@', "out of bounds", false),
    (b'O', "out of bounds", false),
    (b'T', "trees", false),
    (b'W', "water", false),
];

/// The letters, as errors list them.
pub(super) const EXPECTED: &str = "`.`, `G` or `S` (free), `@`, `O`, `T` or `W` (blocked)";

/// Whether a letter is a free tile; `None` if it is not a tile.
pub(super) const fn is_free(letter: u8) -> Option<bool> {
    match letter {
        b'.' | b'G' | b'S' => Some(true),
        b'@' | b'O' | b'T' | b'W' => Some(false),
        _ => None,
    }
}

/// The tiles of a map that have one letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileLetter {
    /// The letter in the file.
    pub letter: char,
    /// What it means, in a word or two.
    pub meaning: &'static str,
    /// Whether these tiles are free.
    pub is_free: bool,
    /// The number of tiles.
    pub tiles: u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_reader_agree_about_every_letter() {
        for letter in 0..=u8::MAX {
            let known = LETTERS.iter().find(|known| known.0 == letter);
            assert_eq!(is_free(letter), known.map(|known| known.2), "{letter}");
            assert_eq!(
                EXPECTED.contains(&format!("`{}`", char::from(letter))),
                known.is_some()
            );
        }
    }

    #[test]
    fn wrong_letters_are_refused_with_their_place() {
        let text = b"type octile\nheight 2\nwidth 3\nmap\n...\n.x.\n";
        let error = count_letters("a.map", text).unwrap_err();
        assert_eq!(error.line_column(), Some((6, 2)));
    }
}
