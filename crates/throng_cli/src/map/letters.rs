//! The letters of a MovingAI map file, for summaries.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};

use crate::CliError;
use throng::map::{self, MapFormat, TileLetter};

/// The number of tiles per letter of a MovingAI map; empty for other formats, which have no letters.
pub(crate) fn letters_of(file: &Path) -> Result<Vec<TileLetter>, CliError> {
    if MapFormat::of(file)? != MapFormat::MovingAi {
        return Ok(Vec::new());
    }
    let name = file.display().to_string();
    let mut bytes = Vec::new();
    let read =
        File::open(file).and_then(|file| file.take(map::FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|error| CliError::new(format!("could not read {name}: {error}")))?;
    Ok(map::count_letters(&name, &bytes)?)
}

/// The letters of free and of blocked tiles, each with a label; empty for a map without letters.
pub(crate) fn letter_lines(letters: &[TileLetter]) -> Vec<(&'static str, String)> {
    let list = |is_free: bool| {
        let of_side = letters.iter().filter(|of| of.is_free == is_free);
        let named = of_side.map(|of| format!("{} {} {}", of.tiles, of.letter, of.meaning));
        named.collect::<Vec<_>>().join(", ")
    };
    let sides = [("free", list(true)), ("blocked", list(false))];
    sides
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .collect()
}

/// The same as JSON: one object per letter.
pub(crate) fn letters_json(letters: &[TileLetter]) -> Value {
    let one = |of: &TileLetter| {
        json!({
            "letter": of.letter.to_string(),
            "meaning": of.meaning,
            "free": of.is_free,
            "tiles": of.tiles,
        })
    };
    letters.iter().map(one).collect()
}
