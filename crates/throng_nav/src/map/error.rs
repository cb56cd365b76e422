//! Map errors: the location, the value found, and the value expected.

use std::fmt;

use super::rect::{SIDE_MAX, TILES_MAX, TileRect};

/// The location of an error in its source.
///
/// Displayed as `file:line:column`, as far as each is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file's name, empty if there is none.
    pub file: String,
    /// The line from 1 and the column from 1, for text.
    pub line_column: Option<(u32, u32)>,
    /// The byte from 0, for binary formats.
    pub byte: Option<u64>,
}

impl SourceLocation {
    pub(super) fn file(file: &str) -> Self {
        Self {
            file: file.into(),
            ..Self::default()
        }
    }

    pub(super) fn text(file: &str, line: u32, column: u32) -> Self {
        Self {
            file: file.into(),
            line_column: Some((line, column)),
            byte: None,
        }
    }

    pub(super) fn byte(file: &str, byte: u64) -> Self {
        Self {
            file: file.into(),
            line_column: None,
            byte: Some(byte),
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.file.is_empty() {
            "map"
        } else {
            &self.file
        })?;
        if let Some((line, column)) = self.line_column {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(byte) = self.byte {
            write!(f, ": byte {byte}")?;
        }
        Ok(())
    }
}

/// Why a map could not be read, written, edited or generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The file could not be opened, read or written.
    #[error("{place}: could not {action}: {source}")]
    Io {
        /// The path of the file.
        place: SourceLocation,
        /// The attempted action.
        action: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file's name does not identify its format.
    #[error("{place}: unknown map format {found}, expected one of .map, .raw, .tmap, .png")]
    UnknownFormat {
        /// The path of the file as given.
        place: SourceLocation,
        /// The extension found, in backquotes, or that there is none.
        found: String,
    },
    /// The file is larger than any map.
    #[error("{place}: file has {found_bytes} bytes, expected at most {bytes_max}")]
    FileTooLarge {
        /// The path of the file.
        place: SourceLocation,
        /// The size of the file in bytes, or the bytes read until it grew too large.
        found_bytes: u64,
        /// The maximum size that is read.
        bytes_max: u64,
    },
    /// The sides are 0 or beyond the limits.
    #[error(
        "{place}: map of {width} × {height} tiles, expected 1 to {SIDE_MAX} per side and at most {TILES_MAX} in total"
    )]
    Size {
        /// The location of the size.
        place: SourceLocation,
        /// The width found, in tiles.
        width: u64,
        /// The height found, in tiles.
        height: u64,
    },
    /// A header line of a text format is wrong.
    #[error("{place}: found {found} in the header, expected {expected}")]
    Header {
        /// The line and column.
        place: SourceLocation,
        /// The text found, shortened.
        found: String,
        /// The expected text.
        expected: String,
    },
    /// A letter that is no kind of tile.
    #[error("{place}: found letter {found:?}, expected {expected}")]
    UnknownLetter {
        /// The line and column.
        place: SourceLocation,
        /// The letter found.
        found: char,
        /// The known letters.
        expected: &'static str,
    },
    /// A row with too few or too many tiles.
    #[error("{place}: the row has {found} tiles, expected {expected}")]
    RowLength {
        /// The line, and the column where the row ends or should end.
        place: SourceLocation,
        /// The row's length in tiles.
        found: u64,
        /// The map's width in tiles.
        expected: u32,
    },
    /// Too few or too many rows.
    #[error("{place}: the map has {found} rows, expected {expected}")]
    RowCount {
        /// The line after the last row, or the first row too many.
        place: SourceLocation,
        /// The number of rows.
        found: u64,
        /// The map's height in tiles.
        expected: u32,
    },
    /// The file does not begin with the bytes of its format.
    #[error("{place}: found {found}, expected {expected}")]
    Magic {
        /// The file and byte.
        place: SourceLocation,
        /// The bytes found.
        found: String,
        /// The first bytes of the format.
        expected: &'static str,
    },
    /// The format's version is not known.
    #[error("{place}: format version {found}, expected {expected}")]
    Version {
        /// The file and byte.
        place: SourceLocation,
        /// The version found.
        found: u16,
        /// The supported version.
        expected: u16,
    },
    /// A field of a binary header has a value that the format does not allow.
    #[error("{place}: {field} is {found}, expected {expected}")]
    Field {
        /// The file and byte.
        place: SourceLocation,
        /// The name of the field.
        field: &'static str,
        /// The value in the file.
        found: u64,
        /// The expected value.
        expected: String,
    },
    /// The number of bytes of a raw map does not match its name, or is not a square.
    #[error("{place}: {found}, expected {expected}")]
    RawSize {
        /// The file, by the name that should contain the size.
        place: SourceLocation,
        /// The value found, shortened.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// The file is shorter or longer than its header states.
    #[error("{place}: file has {found} bytes, expected {expected}")]
    Length {
        /// The file, and the byte where it ends or should end.
        place: SourceLocation,
        /// The length found.
        found: u64,
        /// The expected value.
        expected: String,
    },
    /// The checksum does not match: the file is damaged.
    #[error(
        "{place}: checksum {found:016x}, expected {expected:016x} for this content; the file is damaged"
    )]
    Checksum {
        /// The file and the byte of the checksum.
        place: SourceLocation,
        /// The checksum in the file.
        found: u64,
        /// The checksum of the bytes read.
        expected: u64,
    },
    /// The PNG decoder or encoder failed.
    #[error("{place}: {found}, expected a valid PNG image")]
    Png {
        /// The name of the image that was read; empty for one that was written.
        place: SourceLocation,
        /// Its error message.
        found: String,
    },
    /// The requested format is not in this build.
    #[error("{place}: {what} need the feature `{feature}`, which is not in this build of throng")]
    MissingFeature {
        /// The name of the file to read; empty for one to write.
        place: SourceLocation,
        /// The missing functionality.
        what: &'static str,
        /// The crate feature that adds it.
        feature: &'static str,
    },
    /// A rectangle that is empty or not inside the map.
    #[error("rectangle {rect} is empty or outside the map of {width} × {height} tiles")]
    Rect {
        /// The requested rectangle, in tiles.
        rect: TileRect,
        /// The map's width in tiles.
        width: u32,
        /// The map's height in tiles.
        height: u32,
    },
    /// A pattern that does not fit its rectangle.
    #[error("pattern of {width} × {height} tiles, expected {} × {}, the size of rectangle {rect}", rect.width, rect.height)]
    Pattern {
        /// The rectangle to be written.
        rect: TileRect,
        /// The pattern's width in tiles.
        width: u32,
        /// The pattern's height in tiles.
        height: u32,
    },
    /// A value of a [`MapRecipe`](super::MapRecipe) that gives no valid map.
    #[error("map recipe: `{field}` is {found}, expected {expected}")]
    Recipe {
        /// The field's name.
        field: &'static str,
        /// The value in the recipe.
        found: String,
        /// The expected value.
        expected: String,
    },
}

impl MapError {
    /// The location of the error; `None` for errors without a source, such as those of edits and recipes.
    pub fn source_location(&self) -> Option<&SourceLocation> {
        match self {
            Self::Io { place, .. }
            | Self::UnknownFormat { place, .. }
            | Self::FileTooLarge { place, .. }
            | Self::Size { place, .. }
            | Self::Header { place, .. }
            | Self::UnknownLetter { place, .. }
            | Self::RowLength { place, .. }
            | Self::RowCount { place, .. }
            | Self::Magic { place, .. }
            | Self::Version { place, .. }
            | Self::Field { place, .. }
            | Self::RawSize { place, .. }
            | Self::Length { place, .. }
            | Self::Checksum { place, .. }
            | Self::Png { place, .. }
            | Self::MissingFeature { place, .. } => Some(place),
            Self::Rect { .. } | Self::Pattern { .. } | Self::Recipe { .. } => None,
        }
    }

    /// The line and the column, both from 1, for errors in text.
    pub fn line_column(&self) -> Option<(u32, u32)> {
        self.source_location()?.line_column
    }

    /// The name of the file in which the error was found.
    pub fn file(&self) -> Option<&str> {
        self.source_location()
            .map(|place| place.file.as_str())
            .filter(|file| !file.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_give_location_found_and_expected() {
        let error = MapError::RowLength {
            place: SourceLocation::text("town.map", 7, 12),
            found: 11,
            expected: 20,
        };
        assert_eq!(
            error.to_string(),
            "town.map:7:12: the row has 11 tiles, expected 20"
        );
        assert_eq!(
            (error.file(), error.line_column()),
            (Some("town.map"), Some((7, 12)))
        );
        let error = MapError::Rect {
            rect: TileRect::new(1, 2, 3, 4),
            width: 2,
            height: 2,
        };
        assert!(error.to_string().contains("(1, 2, 3, 4)") && error.to_string().contains("2 × 2"));
        assert_eq!((error.file(), error.line_column()), (None, None));
    }
}
