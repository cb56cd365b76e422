//! Errors of a file, with their location.

use glam::UVec2;
use thiserror::Error;

use crate::map::{SIDE_MAX, TILES_MAX, TileRect};

/// An error in a `.scen` file with its location: `file:line:column`, the column in characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct ScenError {
    /// The name of the file as given.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// What was expected and found.
    pub problem: ScenProblem,
}

impl ScenError {
    /// The file's name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Line and column, both from 1.
    pub fn location(&self) -> (u32, u32) {
        (self.line, self.column)
    }
}

/// The kinds of errors in a `.scen` file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenProblem {
    /// A version other than 1 and 2.
    #[error("expected version 1 or 2, found `{found}`")]
    Version {
        /// The text after the word `version`.
        found: String,
    },
    /// Too few or too many fields in a line.
    #[error("expected {expected} fields, {names}, found {found}")]
    FieldCount {
        /// The expected number of fields.
        expected: usize,
        /// The names of the fields.
        names: String,
        /// The number of fields found.
        found: usize,
    },
    /// A field that is not a valid number.
    #[error("{field}: expected {expected}, found `{found}`")]
    Number {
        /// The field's name.
        field: &'static str,
        /// The allowed numbers.
        expected: String,
        /// The field's text.
        found: String,
    },
    /// A header line or a command that is not valid.
    #[error("expected {expected}, found {found}")]
    Line {
        /// The expected text.
        expected: &'static str,
        /// The line's text in backquotes, or a description.
        found: String,
    },
    /// A size that is not possible for a map.
    #[error("map of {} × {} tiles, expected 1 to {SIDE_MAX} per side and at most {TILES_MAX} in total", found.x, found.y)]
    Size {
        /// Width and height in the file.
        found: UVec2,
    },
    /// A map whose size differs from the file.
    #[error("this line names a map of {} × {} tiles, found a map of {} × {}", expected.x, expected.y, found.x, found.y)]
    MapSizeMismatch {
        /// Width and height in the file.
        expected: UVec2,
        /// Width and height of the map.
        found: UVec2,
    },
    /// An edit with a patch that the file of patches does not contain.
    #[error("unknown patch {found}: expected a number below {count}")]
    UnknownPatch {
        /// The patch's number.
        found: u32,
        /// The number of patches.
        count: usize,
    },
    /// An edit that reaches beyond the map.
    #[error("patch {rect} outside the map of {} × {} tiles", size.x, size.y)]
    OutsideMap {
        /// The rectangle that the patch would cover.
        rect: TileRect,
        /// Width and height of the map.
        size: UVec2,
    },
}
