//! What can be wrong in a file, and where.

use glam::UVec2;
use thiserror::Error;

use crate::map::{SIDE_MAX, TILES_MAX, TileRect};

/// What is wrong with a `.scen` file, and where: `file:line:column`, the column in characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct ScenError {
    /// The name of the file as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// What was expected and found there.
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

/// What can be wrong in a `.scen` file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenProblem {
    /// A version other than 1 and 2.
    #[error("expected version 1 or 2, found `{found}`")]
    Version {
        /// What follows the word `version`.
        found: String,
    },
    /// Too few or too many fields in a line.
    #[error("expected {expected} fields, {names}, found {found}")]
    FieldCount {
        /// How many there should be.
        expected: usize,
        /// What they are.
        names: String,
        /// How many there are.
        found: usize,
    },
    /// A field that is not the number it should be.
    #[error("{field}: expected {expected}, found `{found}`")]
    Number {
        /// The field's name.
        field: &'static str,
        /// Which numbers it may hold.
        expected: String,
        /// The field's text.
        found: String,
    },
    /// A line of the header or a command that is not what it should be.
    #[error("expected {expected}, found {found}")]
    Line {
        /// What would be right.
        expected: &'static str,
        /// The line's text in backquotes, or what there is instead.
        found: String,
    },
    /// A size that no map has.
    #[error("map of {} × {} tiles, expected 1 to {SIDE_MAX} per side and at most {TILES_MAX} in total", found.x, found.y)]
    Size {
        /// Width and height in the file.
        found: UVec2,
    },
    /// A map of another size than the file says.
    #[error("this line names a map of {} × {} tiles, found a map of {} × {}", expected.x, expected.y, found.x, found.y)]
    MapSizeMismatch {
        /// Width and height in the file.
        expected: UVec2,
        /// Those of the map.
        found: UVec2,
    },
    /// An edit with a patch that the file of patches does not have.
    #[error("unknown patch {found}: expected a number below {count}")]
    UnknownPatch {
        /// The patch's number.
        found: u32,
        /// How many there are.
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
