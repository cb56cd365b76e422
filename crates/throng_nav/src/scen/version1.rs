//! Version 1: one query per line, tab separated: bucket, map name, width, height, start x, start y, goal x, goal y, length.
//!
//! The map's name is not stored, since the folder in it is that of another machine. All lines are about one map, so they
//! have one size.

use super::commands::{Scen, ScenCommand, ScenQuery};
use super::lines::{LineError, ScenLines};

/// The fields of a line, in order, as errors name them.
const FIELDS: [&str; 9] = [
    "bucket", "map name", "width", "height", "start x", "start y", "goal x", "goal y", "length",
];

pub(super) fn parse(lines: &mut ScenLines) -> Result<Scen, LineError> {
    let mut scen = Scen::default();
    while let Some(line) = lines.next() {
        let fields = line.fields(&FIELDS)?;
        let size = fields.tile(2)?;
        let expected = match scen.size {
            Some(expected) => expected,
            None => {
                line.check_size(size)?;
                (scen.size, scen.size_line) = (Some(size), line.number);
                size
            }
        };
        for (index, expected, found) in [(2, expected.x, size.x), (3, expected.y, size.y)] {
            if found != expected {
                return Err(fields.field_error(index, format!("{expected} as in the first query")));
            }
        }
        let length_tiles = fields
            .number(8)
            .filter(|length| *length >= 0.0)
            .ok_or_else(|| fields.field_error(8, "a finite number from 0"))?;
        scen.commands.push(ScenCommand::Query(ScenQuery {
            bucket: fields.integer(0)?,
            from: fields.tile(4)?.as_ivec2(),
            to: fields.tile(6)?.as_ivec2(),
            length_tiles: Some(length_tiles),
        }));
    }
    Ok(scen)
}
