//! MovingAI `.scen` files, version 1: queries on a map with the length of a shortest path for each.
//!
//! A line `version 1` (some files have `version 1.0`, old ones none), then one query a line, tab separated: bucket,
//! map name, width, height, start x, start y, goal x, goal y, length (Sturtevant, "Benchmarks for Grid-Based
//! Pathfinding", IEEE TCIAIG 4(2), 2012). Reading a file from disk is the caller's business.

use glam::IVec2;
use thiserror::Error;

/// The columns of a line, in order, as errors name them.
const FIELDS: [&str; 9] = [
    "bucket", "map name", "width", "height", "start x", "start y", "goal x", "goal y", "length",
];

/// One line of a `.scen` file. Its map name is not kept, as the folder in it is that of another machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScenQuery {
    /// The group of queries of about the same length: length ÷ 4, rounded down.
    pub bucket: u32,
    /// The map's width in tiles.
    pub width: u32,
    /// The map's height in tiles.
    pub height: u32,
    /// The tile where the path starts.
    pub from: IVec2,
    /// The tile where it ends.
    pub to: IVec2,
    /// The length of a shortest path in tiles, with 5–8 significant decimals; a diagonal step is √2.
    pub length_tiles: f64,
}

impl ScenQuery {
    /// Whether a length found agrees with the file's: within 0.01 + 10⁻⁵ × length, for the decimals it has.
    pub fn agrees_with(&self, length_tiles: f64) -> bool {
        (length_tiles - self.length_tiles).abs() <= 0.01 + 1e-5 * self.length_tiles
    }
}

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
    /// A version other than 1.
    #[error("expected version 1, found `{found}`")]
    Version {
        /// What follows the word `version`.
        found: String,
    },
    /// Too few or too many fields in a line.
    #[error("expected 9 fields separated by tabs, found {found}")]
    FieldCount {
        /// How many there are.
        found: usize,
    },
    /// A field that is not the number it should be.
    #[error("expected {field}, {expected}, found `{found}`")]
    Number {
        /// The field's name.
        field: &'static str,
        /// Which numbers it may hold.
        expected: &'static str,
        /// The field's text.
        found: String,
    },
}

/// Reads all queries of a `.scen` file's text. `file` is the name that errors show. LF and CRLF are both accepted.
pub fn parse_scen(file: &str, text: &str) -> Result<Vec<ScenQuery>, ScenError> {
    let mut queries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let version = line.strip_prefix("version").filter(|_| index == 0);
        let parsed = match version.map(str::trim) {
            Some("1" | "1.0") => continue,
            Some(found) => Err((
                1,
                ScenProblem::Version {
                    found: excerpt(found),
                },
            )),
            None if line.trim().is_empty() => continue,
            None => parse_line(line),
        };
        match parsed {
            Ok(query) => queries.push(query),
            Err((column, problem)) => {
                return Err(ScenError {
                    file: file.into(),
                    line: index as u32 + 1,
                    column,
                    problem,
                });
            }
        }
    }
    Ok(queries)
}

/// Reads one query; an error comes with its column.
fn parse_line(line: &str) -> Result<ScenQuery, (u32, ScenProblem)> {
    // Some files separate by spaces, and then no name holds one.
    let separator = if line.contains('\t') { '\t' } else { ' ' };
    let mut fields = [""; FIELDS.len()];
    let mut columns = [1; FIELDS.len()];
    let (mut count, mut column) = (0, 1);
    for field in line.split(separator) {
        if let (Some(kept), Some(at)) = (fields.get_mut(count), columns.get_mut(count)) {
            (*kept, *at) = (field.trim(), column);
        }
        count += 1;
        column += field.chars().count() as u32 + 1;
    }
    if count != FIELDS.len() {
        return Err((1, ScenProblem::FieldCount { found: count }));
    }
    let problem = |index: usize, expected| {
        let (field, found) = (FIELDS[index], excerpt(fields[index]));
        (
            columns[index],
            ScenProblem::Number {
                field,
                expected,
                found,
            },
        )
    };
    let whole = |index: usize| {
        fields[index]
            .parse::<u32>()
            .map_err(|_| problem(index, "a whole number from 0"))
    };
    let tile = |index: usize| {
        let coordinate = |index: usize| {
            fields[index]
                .parse::<u16>()
                .map(i32::from)
                .map_err(|_| problem(index, "a whole number from 0 to 65535"))
        };
        Ok(IVec2::new(coordinate(index)?, coordinate(index + 1)?))
    };
    let length_tiles = fields[8]
        .parse::<f64>()
        .ok()
        .filter(|length| length.is_finite() && *length >= 0.0)
        .ok_or_else(|| problem(8, "a finite number from 0"))?;
    Ok(ScenQuery {
        bucket: whole(0)?,
        width: whole(2)?,
        height: whole(3)?,
        from: tile(4)?,
        to: tile(6)?,
        length_tiles,
    })
}

/// The beginning of a text, so that an error stays readable when a file is something else altogether.
fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWO: &str = "version 1\n0\tmaps/dao/a.map\t10\t20\t1\t2\t3\t4\t2.82843\n7\ta.map\t10\t20\t9\t19\t0\t0\t30\n";

    #[test]
    fn queries_are_read_with_either_line_end() {
        let queries = parse_scen("a.scen", TWO).unwrap();
        assert_eq!(queries.len(), 2);
        assert_eq!(
            queries[0],
            ScenQuery {
                bucket: 0,
                width: 10,
                height: 20,
                from: IVec2::new(1, 2),
                to: IVec2::new(3, 4),
                length_tiles: 2.82843
            }
        );
        assert_eq!(
            parse_scen("a.scen", &TWO.replace('\n', "\r\n")),
            Ok(queries)
        );
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let message = |text: &str| parse_scen("a.scen", text).unwrap_err().to_string();
        assert_eq!(
            message("version 2\n"),
            "a.scen:1:1: expected version 1, found `2`"
        );
        assert_eq!(
            message("version 1\n0\ta.map\t10\n"),
            "a.scen:2:1: expected 9 fields separated by tabs, found 3"
        );
        assert_eq!(
            message(&TWO.replace("\t19\t", "\t-1\t")),
            "a.scen:3:17: expected start y, a whole number from 0 to 65535, found `-1`"
        );
        assert_eq!(
            message(&TWO.replace("2.82843", "NaN")),
            "a.scen:2:32: expected length, a finite number from 0, found `NaN`"
        );
    }

    #[test]
    fn lengths_agree_within_the_decimals_of_the_file() {
        let query = parse_scen("a.scen", TWO).unwrap()[0];
        assert!(query.agrees_with(2.0 * std::f64::consts::SQRT_2));
        assert!(!query.agrees_with(2.85));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(version [0-9.]*\n)?([0-9a-z\t .\r\n-]|\\PC){0,80}") {
            if let Err(error) = parse_scen("a.scen", &text) {
                prop_assert!(error.to_string().starts_with("a.scen:"));
            }
        }

        #[test]
        fn a_written_query_is_read_back(
            (bucket, width, height) in any::<(u32, u32, u32)>(),
            (x, y, goal_x, goal_y) in any::<(u16, u16, u16, u16)>(),
            length_tiles in 0.0..1e8f64,
        ) {
            let line = format!("{bucket}\tm\t{width}\t{height}\t{x}\t{y}\t{goal_x}\t{goal_y}\t{length_tiles}\n");
            let (from, to) = (IVec2::new(x.into(), y.into()), IVec2::new(goal_x.into(), goal_y.into()));
            let query = ScenQuery { bucket, width, height, from, to, length_tiles };
            prop_assert_eq!(parse_scen("a.scen", &line), Ok(vec![query]));
        }
    }
}
