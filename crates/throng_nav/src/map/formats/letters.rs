//! The letters of tiles in MovingAI text, and what each is.

/// The letters, by what they are and whether throng reads them as free: a tile is free or blocked here, and has no cost.
///
/// Ground is free, and so is swamp: it is passable from ground and back, at the same cost, as the known path lengths of the
/// benchmark say. Trees and water are classes of terrain of their own, passable from their own class only; nobody that walks on
/// ground enters them, so they are blocked.
pub(super) const LETTERS: [(u8, &str, bool); 7] = [
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
}
