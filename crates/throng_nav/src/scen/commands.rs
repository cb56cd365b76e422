//! The contents of a file: the size of its map, queries and edits, in order.

use glam::{IVec2, UVec2};

use super::error::{ScenError, ScenProblem};
use crate::map::{TilePattern, TileRect};

/// A `.scen` file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scen {
    /// Width and height of the map in tiles; `None` for a version 1 file without a query, which does not contain the size.
    pub size: Option<UVec2>,
    /// The line with the size, from 1; 0 if there is no size.
    pub size_line: u32,
    /// The name of the file with the patches, without a folder: it is in the same folder as the `.scen` file. Version 2 only.
    pub patch_file: Option<String>,
    /// The commands, in order.
    pub commands: Vec<ScenCommand>,
}

impl Scen {
    /// The queries, in order, without the edits between them.
    pub fn queries(&self) -> impl Iterator<Item = &ScenQuery> {
        self.commands.iter().filter_map(|command| match command {
            ScenCommand::Query(query) => Some(query),
            ScenCommand::Patch(_) => None,
        })
    }

    /// Checks that a map of this size is the one of the file. `file` is the name in errors.
    pub fn check_size(&self, file: &str, found: UVec2) -> Result<(), ScenError> {
        match self.size {
            Some(expected) if expected != found => Err(ScenError {
                file: file.into(),
                line: self.size_line,
                column: 1,
                problem: ScenProblem::MapSizeMismatch { expected, found },
            }),
            _ => Ok(()),
        }
    }

    /// Checks that every edit names one of these patches and is inside the map. `file` is the name in errors.
    pub fn check_patches(&self, file: &str, patches: &[TilePattern]) -> Result<(), ScenError> {
        let size = self.size.unwrap_or_default();
        for command in &self.commands {
            let ScenCommand::Patch(patch) = command else {
                continue;
            };
            let problem = match patches.get(patch.patch as usize) {
                None => ScenProblem::UnknownPatch {
                    found: patch.patch,
                    count: patches.len(),
                },
                Some(pattern) => {
                    let rect = patch.rect(pattern);
                    if rect.right() <= size.x && rect.bottom() <= size.y {
                        continue;
                    }
                    ScenProblem::OutsideMap { rect, size }
                }
            };
            return Err(ScenError {
                file: file.into(),
                line: patch.line,
                column: 1,
                problem,
            });
        }
        Ok(())
    }
}

/// One line of a `.scen` file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScenCommand {
    /// Find a path.
    Query(ScenQuery),
    /// Change the map.
    Patch(ScenPatch),
}

/// A query for a path of known length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScenQuery {
    /// The group that the query belongs to. In version 1: length ÷ 4, rounded down.
    pub bucket: u32,
    /// The tile where the path starts.
    pub from: IVec2,
    /// The tile where it ends.
    pub to: IVec2,
    /// The length of a shortest path in tiles, with 5–8 significant decimals, where a diagonal step is √2; `None` if
    /// there is no path.
    pub length_tiles: Option<f64>,
}

impl ScenQuery {
    /// Whether a result agrees with the file: `None` for no path; lengths within 0.01 + 10⁻⁵ × length, for the
    /// decimals in the file.
    pub fn agrees_with(&self, length_tiles: Option<f64>) -> bool {
        match (self.length_tiles, length_tiles) {
            (Some(expected), Some(found)) => (found - expected).abs() <= 0.01 + 1e-5 * expected,
            (expected, found) => expected.is_none() && found.is_none(),
        }
    }
}

/// A rectangle of tiles to be written into the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenPatch {
    /// The group that the edit belongs to.
    pub bucket: u32,
    /// The index in the file of patches, from 0.
    pub patch: u32,
    /// The tile that the patch's top left tile is written to.
    pub at: UVec2,
    /// The line in the file, from 1.
    pub line: u32,
}

impl ScenPatch {
    /// The tiles of the map that the patch with this pattern writes.
    pub fn rect(&self, pattern: &TilePattern) -> TileRect {
        TileRect::new(self.at.x, self.at.y, pattern.width(), pattern.height())
    }
}
