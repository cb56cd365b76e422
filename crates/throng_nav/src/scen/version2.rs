//! Version 2: queries and edits of the map, in order.
//!
//! ```text
//! version 2
//! height 209
//! width 281
//! cost 1 octile
//! patch dao_arena2.patch
//! commands
//! Q 0 54 277 165 279 111.82        bucket, start x, start y, goal x, goal y, length or -1 when there is no path
//! P 1 0 81 162                     bucket, patch, x and y of its top left tile
//! ```
//! The lines of the header may be in any order; `patch` may be missing if no command needs it.

use glam::UVec2;

use super::commands::{Scen, ScenCommand, ScenPatch, ScenQuery};
use super::lines::{LineError, ScenLine, ScenLines};

const QUERY: [&str; 7] = [
    "Q", "bucket", "start x", "start y", "goal x", "goal y", "length",
];
const PATCH: [&str; 5] = ["P", "bucket", "patch", "x", "y"];

pub(super) fn parse(lines: &mut ScenLines) -> Result<Scen, LineError> {
    let mut scen = header(lines)?;
    while let Some(line) = lines.next() {
        scen.commands
            .push(match line.text.split_whitespace().next() {
                Some("Q") => ScenCommand::Query(query(line)?),
                Some("P") if scen.patch_file.is_none() => {
                    return Err(line.unexpected_line(
                        "`patch` and a file's name in the header before a command `P`",
                    ));
                }
                Some("P") => ScenCommand::Patch(patch(line)?),
                _ => return Err(line.unexpected_line("a command, `Q` or `P`")),
            });
    }
    Ok(scen)
}

/// Reads the lines up to `commands`.
fn header(lines: &mut ScenLines) -> Result<Scen, LineError> {
    let (mut width, mut height, mut patch_file) = (None, None, None);
    let mut has_cost = false;
    // The later of the two lines with the size.
    let mut size_line = None;
    while let Some(line) = lines.next() {
        let is_new = match line.text.split_whitespace().next() {
            Some(side @ ("height" | "width")) => {
                size_line = Some(line);
                let fields = line.fields(if side == "height" {
                    &["height", "height"]
                } else {
                    &["width", "width"]
                })?;
                let kept = if side == "height" {
                    &mut height
                } else {
                    &mut width
                };
                kept.replace(fields.tiles(1)?).is_none()
            }
            Some("cost") if line.text.split_whitespace().skip(1).eq(["1", "octile"]) => {
                !std::mem::replace(&mut has_cost, true)
            }
            Some("cost") => return Err(line.unexpected_line("`cost 1 octile`")),
            Some("patch") => patch_file.replace(file_name(line)?).is_none(),
            Some("commands") => {
                return match (width, height, has_cost) {
                    (None, ..) => {
                        Err(line.unexpected_line("`width` and a whole number before `commands`"))
                    }
                    (_, None, _) => {
                        Err(line.unexpected_line("`height` and a whole number before `commands`"))
                    }
                    (.., false) => Err(line.unexpected_line("`cost 1 octile` before `commands`")),
                    (Some(width), Some(height), true) => {
                        let (size, size_line) =
                            (UVec2::new(width, height), size_line.unwrap_or(line));
                        size_line.check_size(size)?;
                        Ok(Scen {
                            size: Some(size),
                            size_line: size_line.number,
                            patch_file,
                            commands: Vec::new(),
                        })
                    }
                };
            }
            _ => {
                return Err(
                    line.unexpected_line("`height`, `width`, `cost`, `patch` or `commands`")
                );
            }
        };
        if !is_new {
            return Err(line.unexpected_line("each line of the header once"));
        }
    }
    Err(lines.unexpected_end("a line `commands`"))
}

/// The name after `patch`, without the folder, which is that of another machine.
fn file_name(line: ScenLine) -> Result<String, LineError> {
    let path = line.text.trim().strip_prefix("patch").unwrap_or_default();
    let name = path.rsplit(['/', '\\']).next().map(str::trim);
    match name {
        Some(name) if !name.is_empty() && !matches!(name, "." | "..") => Ok(name.to_owned()),
        _ => Err(line.unexpected_line("`patch` and a file's name")),
    }
}

fn query(line: ScenLine) -> Result<ScenQuery, LineError> {
    let fields = line.fields(&QUERY)?;
    let length_tiles = match fields.number(6) {
        Some(-1.0) => None,
        Some(length) if length >= 0.0 => Some(length),
        _ => return Err(fields.field_error(6, "a finite number from 0, or -1 for no path")),
    };
    Ok(ScenQuery {
        bucket: fields.integer(1)?,
        from: fields.tile(2)?.as_ivec2(),
        to: fields.tile(4)?.as_ivec2(),
        length_tiles,
    })
}

fn patch(line: ScenLine) -> Result<ScenPatch, LineError> {
    let fields = line.fields(&PATCH)?;
    Ok(ScenPatch {
        bucket: fields.integer(1)?,
        patch: fields.integer(2)?,
        at: fields.tile(3)?,
        line: line.number,
    })
}
