//! MovingAI `.scen` files: queries on a map with the length of a shortest path for each, and edits between them.
//!
//! ```text
//! text ──▶ [`parse_scen`] ──▶ [`Scen`]: size, commands in order ──▶ Query: ask and compare
//!                                                              └──▶ Patch: write a pattern into the map
//! ```
//! | file | holds |
//! |---|---|
//! | `version1` | queries on a map that does not change |
//! | `version2` | queries and edits in turn |
//!
//! Version 1 (Sturtevant, "Benchmarks for Grid-Based Pathfinding", IEEE TCIAIG 4(2), 2012) is a list of queries on a map
//! that does not change; version 2 (Grid-Based Path Planning Competition, dynamic track) has patches as well, which lie
//! in a file of their own: [`decode_patches`](crate::map::decode_patches). Reading files from disk is the caller's
//! business, and so is the map that a version 2 file starts from: the samples start on free ground of the size that the
//! file gives, unless their first patch covers all of it.
//!
//! Invariant: no text makes the parser panic, and what it allocates is bounded by the length of the text.

mod version1;
mod version2;

use glam::{IVec2, UVec2};
use thiserror::Error;

use crate::map::{SIDE_MAX, TILES_MAX, TilePattern, TileRect};

/// A `.scen` file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scen {
    /// Width and height of the map in tiles; `None` for a version 1 file without a query, which does not say.
    pub size: Option<UVec2>,
    /// The line that gives the size, from 1; 0 where there is no size.
    pub size_line: u32,
    /// The name of the file with the patches, without a folder: it lies beside the `.scen` file. Version 2 only.
    pub patch_file: Option<String>,
    /// What to do, in order.
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

    /// Checks that a map of so many tiles is the one that the file is about. `file` is the name that errors show.
    pub fn check_size(&self, file: &str, found: UVec2) -> Result<(), ScenError> {
        match self.size {
            Some(expected) if expected != found => Err(ScenError {
                file: file.into(),
                line: self.size_line,
                column: 1,
                problem: ScenProblem::OtherMap { expected, found },
            }),
            _ => Ok(()),
        }
    }

    /// Checks that every edit names one of these patches and lies in the map. `file` is the name that errors show.
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
                    ScenProblem::BeyondMap { rect, size }
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
    /// Ask for a path.
    Query(ScenQuery),
    /// Change the map.
    Patch(ScenPatch),
}

/// A question for a path whose length is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScenQuery {
    /// The group that the query belongs to. In version 1: length ÷ 4, rounded down.
    pub bucket: u32,
    /// The tile where the path starts.
    pub from: IVec2,
    /// The tile where it ends.
    pub to: IVec2,
    /// The length of a shortest path in tiles, with 5–8 significant decimals, where a diagonal step is √2; `None` when
    /// no walk joins the two.
    pub length_tiles: Option<f64>,
}

impl ScenQuery {
    /// Whether an answer agrees with the file's: `None` for no path; lengths within 0.01 + 10⁻⁵ × length, for the
    /// decimals that the file has.
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
    /// Which of the file of patches, from 0.
    pub patch: u32,
    /// The tile that the patch's top left tile is written to.
    pub at: UVec2,
    /// The line of the file that it stands in, from 1.
    pub line: u32,
}

impl ScenPatch {
    /// The tiles of the map that the patch with this pattern writes.
    pub fn rect(&self, pattern: &TilePattern) -> TileRect {
        TileRect::new(self.at.x, self.at.y, pattern.width(), pattern.height())
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
    #[error("expected {field}, {expected}, found `{found}`")]
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
    #[error("expected a map of 1 to {SIDE_MAX} tiles a side and at most {TILES_MAX} in all, found {} × {}", found.x, found.y)]
    Size {
        /// Width and height in the file.
        found: UVec2,
    },
    /// A map of another size than the file says.
    #[error("expected a map of {} × {} tiles, as this line says, found one of {} × {}", expected.x, expected.y, found.x, found.y)]
    OtherMap {
        /// Width and height in the file.
        expected: UVec2,
        /// Those of the map.
        found: UVec2,
    },
    /// An edit with a patch that the file of patches does not have.
    #[error("expected one of the {count} patches from 0, found {found}")]
    UnknownPatch {
        /// The patch's number.
        found: u32,
        /// How many there are.
        count: usize,
    },
    /// An edit that reaches beyond the map.
    #[error("expected a patch within the map's {} × {} tiles, found {rect}", size.x, size.y)]
    BeyondMap {
        /// The rectangle that the patch would cover.
        rect: TileRect,
        /// Width and height of the map.
        size: UVec2,
    },
}

/// Reads a `.scen` file's text, version 1 or 2. `file` is the name that errors show. LF and CRLF are both accepted, and a
/// byte order mark at the beginning.
///
/// Without a `version` line the file is of version 1, as old ones are. Cost: O(length of the text).
///
/// ```
/// use throng::nav::{ScenCommand, parse_scen};
/// let text = "version 2\nheight 9\nwidth 9\ncost 1 octile\npatch a.patch\ncommands\nP 0 0 3 4\nQ 0 1 1 8 1 7\n";
/// let scen = parse_scen("a.scen", text)?;
/// assert!(matches!(scen.commands[0], ScenCommand::Patch(patch) if patch.at.x == 3));
/// assert_eq!(scen.queries().next().and_then(|query| query.length_tiles), Some(7.0));
/// # Ok::<(), throng::nav::ScenError>(())
/// ```
pub fn parse_scen(file: &str, text: &str) -> Result<Scen, ScenError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = ScenLines::new(text);
    let first = text.lines().next().unwrap_or_default();
    let parsed = match first.strip_prefix("version").map(str::trim) {
        None => version1::parse(&mut lines),
        Some("1" | "1.0") => {
            lines.next();
            version1::parse(&mut lines)
        }
        Some("2" | "2.0") => {
            lines.next();
            version2::parse(&mut lines)
        }
        Some(found) => Err(Fault {
            line: 1,
            column: 1,
            problem: ScenProblem::Version {
                found: excerpt(found),
            },
        }),
    };
    parsed.map_err(|fault| ScenError {
        file: file.into(),
        line: fault.line,
        column: fault.column,
        problem: fault.problem,
    })
}

/// A [`ScenError`] without the file's name.
#[derive(Debug)]
struct Fault {
    line: u32,
    column: u32,
    problem: ScenProblem,
}

/// The lines of a text that hold something, with their numbers.
struct ScenLines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    count: u32,
}

impl<'a> ScenLines<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            lines: text.lines().enumerate(),
            count: 0,
        }
    }

    fn next(&mut self) -> Option<ScenLine<'a>> {
        let (index, text) = self.lines.find(|(index, text)| {
            self.count = *index as u32 + 1;
            !text.trim().is_empty()
        })?;
        Some(ScenLine {
            number: index as u32 + 1,
            text,
        })
    }

    /// That the text ends where something should follow.
    fn ended(&self, expected: &'static str) -> Fault {
        Fault {
            line: self.count + 1,
            column: 1,
            problem: ScenProblem::Line {
                expected,
                found: "the end of the file".into(),
            },
        }
    }
}

/// A line and its number, from 1.
#[derive(Clone, Copy)]
struct ScenLine<'a> {
    number: u32,
    text: &'a str,
}

impl<'a> ScenLine<'a> {
    fn fault(&self, column: u32, problem: ScenProblem) -> Fault {
        Fault {
            line: self.number,
            column,
            problem,
        }
    }

    /// Fails where the size that this line gives is no map's.
    fn check_size(&self, size: UVec2) -> Result<(), Fault> {
        let is_side = |side| (1..=SIDE_MAX).contains(&side);
        if is_side(size.x) && is_side(size.y) && u64::from(size.x) * u64::from(size.y) <= TILES_MAX
        {
            return Ok(());
        }
        Err(self.fault(1, ScenProblem::Size { found: size }))
    }

    fn unexpected(&self, expected: &'static str) -> Fault {
        let found = format!("`{}`", excerpt(self.text.trim()));
        self.fault(1, ScenProblem::Line { expected, found })
    }

    /// Parts the line into the fields that `names` names. Fields are parted by tabs where there are any, so that a name
    /// may hold spaces; otherwise by one or more spaces.
    fn fields<const N: usize>(
        self,
        names: &'static [&'static str; N],
    ) -> Result<Fields<'a, N>, Fault> {
        let separator = if self.text.contains('\t') { '\t' } else { ' ' };
        let mut fields = Fields {
            line: self,
            names,
            texts: [""; N],
            columns: [1; N],
        };
        let (mut count, mut column) = (0, 1);
        for text in self.text.split(separator) {
            if separator == '\t' || !text.trim().is_empty() {
                if let (Some(kept), Some(at)) =
                    (fields.texts.get_mut(count), fields.columns.get_mut(count))
                {
                    (*kept, *at) = (text.trim(), column);
                }
                count += 1;
            }
            column += text.chars().count() as u32 + 1;
        }
        if count != N {
            return Err(self.fault(
                1,
                ScenProblem::FieldCount {
                    expected: N,
                    names: names.join(", "),
                    found: count,
                },
            ));
        }
        Ok(fields)
    }
}

/// A line in its fields.
struct Fields<'a, const N: usize> {
    line: ScenLine<'a>,
    names: &'static [&'static str; N],
    texts: [&'a str; N],
    columns: [u32; N],
}

impl<const N: usize> Fields<'_, N> {
    fn wrong(&self, index: usize, expected: impl Into<String>) -> Fault {
        let problem = ScenProblem::Number {
            field: self.names[index],
            expected: expected.into(),
            found: excerpt(self.texts[index]),
        };
        self.line.fault(self.columns[index], problem)
    }

    fn whole(&self, index: usize) -> Result<u32, Fault> {
        self.texts[index]
            .parse()
            .map_err(|_| self.wrong(index, "a whole number from 0"))
    }

    /// A coordinate or a side of a map.
    fn tiles(&self, index: usize) -> Result<u32, Fault> {
        // As large as a side may be, so that no sum of a coordinate and a size overflows.
        self.texts[index]
            .parse::<u32>()
            .ok()
            .filter(|tiles| *tiles <= SIDE_MAX)
            .ok_or_else(|| self.wrong(index, "a whole number from 0 to 65536"))
    }

    /// The tile whose x is the field at `index`, and y the next.
    fn tile(&self, index: usize) -> Result<UVec2, Fault> {
        Ok(UVec2::new(self.tiles(index)?, self.tiles(index + 1)?))
    }

    fn number(&self, index: usize) -> Option<f64> {
        self.texts[index]
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
    }
}

/// The beginning of a text, so that an error stays readable when a file is something else altogether.
fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATIC: &str = "version 1\n0\tmaps/dao/a.map\t10\t20\t1\t2\t3\t4\t2.82843\n7\ta.map\t10\t20\t9\t19\t0\t0\t30\n";
    const DYNAMIC: &str = "version 2\nheight 20\nwidth 10\ncost 1 octile\npatch folder/a.patch\ncommands\n\
                           Q 0 1 2 3 4 2.82843\nP 1 0 5 6\nQ 1 9 19 0 0 -1\n";

    fn query(bucket: u32, from: (i32, i32), to: (i32, i32), length: Option<f64>) -> ScenCommand {
        ScenCommand::Query(ScenQuery {
            bucket,
            from: from.into(),
            to: to.into(),
            length_tiles: length,
        })
    }

    #[test]
    fn both_versions_are_read_with_either_line_end() {
        let first = query(0, (1, 2), (3, 4), Some(2.82843));
        let size = Some(UVec2::new(10, 20));
        let expected = Scen {
            size,
            size_line: 2,
            patch_file: None,
            commands: vec![first, query(7, (9, 19), (0, 0), Some(30.0))],
        };
        let patch = ScenCommand::Patch(ScenPatch {
            bucket: 1,
            patch: 0,
            at: UVec2::new(5, 6),
            line: 8,
        });
        let expected_dynamic = Scen {
            size,
            size_line: 3,
            patch_file: Some("a.patch".into()),
            commands: vec![first, patch, query(1, (9, 19), (0, 0), None)],
        };
        for (text, expected) in [(STATIC, expected), (DYNAMIC, expected_dynamic)] {
            let crlf = text.replace('\n', "\r\n");
            assert_eq!(parse_scen("a.scen", &crlf).as_ref(), Ok(&expected));
            assert_eq!(parse_scen("a.scen", text), Ok(expected));
        }
        assert_eq!(parse_scen("a.scen", ""), Ok(Scen::default()));
    }

    fn message(text: &str) -> String {
        parse_scen("a.scen", text).unwrap_err().to_string()
    }

    fn changed(text: &str, from: &str, to: &str) -> String {
        assert!(text.contains(from), "{from}");
        message(&text.replacen(from, to, 1))
    }

    #[test]
    fn errors_name_file_line_and_column() {
        assert_eq!(
            message("version 3\n"),
            "a.scen:1:1: expected version 1 or 2, found `3`"
        );
        let few = message("version 1\n0\ta.map\t10\n");
        assert!(few.starts_with("a.scen:2:1: expected 9 fields, bucket, map name, width"));
        assert!(few.ends_with(", found 3"), "{few}");
        for (from, to, expected) in [
            (
                "\t19\t",
                "\t-1\t",
                "3:17: expected start y, a whole number from 0 to 65536, found `-1`",
            ),
            (
                "2.82843",
                "NaN",
                "2:32: expected length, a finite number from 0, found `NaN`",
            ),
            (
                "7\ta.map\t10",
                "7\ta.map\t11",
                "3:9: expected width, 10 as in the first query, found `11`",
            ),
        ] {
            assert_eq!(changed(STATIC, from, to), format!("a.scen:{expected}"));
        }
    }

    #[test]
    fn errors_in_a_file_with_edits_name_file_line_and_column() {
        for (from, to, expected) in [
            (
                "cost 1",
                "cost 2",
                "4:1: expected `cost 1 octile`, found `cost 2 octile`",
            ),
            (
                "height 20",
                "height x",
                "2:8: expected height, a whole number from 0 to 65536, found `x`",
            ),
            (
                "width 10",
                "height 10",
                "3:1: expected each line of the header once, found `height 10`",
            ),
            (
                "P 1 0 5 6",
                "P 1 0  5 x",
                "8:10: expected y, a whole number from 0 to 65536, found `x`",
            ),
            (
                "P 1 0 5 6",
                "P 1 0 5",
                "8:1: expected 5 fields, P, bucket, patch, x, y, found 4",
            ),
            (
                "P 1 0 5 6",
                "R 1",
                "8:1: expected a command, `Q` or `P`, found `R 1`",
            ),
            (
                "0 0 -1",
                "0 0 -2",
                "9:14: expected length, a finite number from 0, or -1 for no path, found `-2`",
            ),
            (
                "patch folder/a.patch\n",
                "",
                "7:1: expected `patch` and a file's name in the header before a command `P`, found `P 1 0 5 6`",
            ),
        ] {
            assert_eq!(changed(DYNAMIC, from, to), format!("a.scen:{expected}"));
        }
        assert_eq!(
            message("version 2\nheight 20\nwidth 10\ncost 1 octile\n"),
            "a.scen:5:1: expected a line `commands`, found the end of the file"
        );
        assert_eq!(
            message("version 2\nheight 20\ncommands\n"),
            "a.scen:3:1: expected `width` and a whole number before `commands`, found `commands`"
        );
    }

    #[test]
    fn answers_agree_within_the_decimals_of_the_file() {
        let scen = parse_scen("a.scen", DYNAMIC).unwrap();
        let [joined, apart] = [0, 1].map(|nth| *scen.queries().nth(nth).unwrap());
        assert!(joined.agrees_with(Some(2.0 * std::f64::consts::SQRT_2)));
        assert!(!joined.agrees_with(Some(2.85)) && !joined.agrees_with(None));
        assert!(apart.agrees_with(None) && !apart.agrees_with(Some(1.0)));
    }

    #[test]
    fn edits_are_checked_against_their_patches() {
        let scen = parse_scen("a.scen", DYNAMIC).unwrap();
        let pattern = |width, height| TilePattern::from_fn(width, height, |_, _| true).unwrap();
        assert_eq!(scen.check_patches("a.scen", &[pattern(5, 14)]), Ok(()));
        let message = |patches: &[TilePattern]| {
            let error = scen.check_patches("a.scen", patches).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            message(&[]),
            "a.scen:8:1: expected one of the 0 patches from 0, found 0"
        );
        assert_eq!(
            message(&[pattern(6, 1)]),
            "a.scen:8:1: expected a patch within the map's 10 × 20 tiles, found (5, 6, 6, 1)"
        );
        assert!(message(&[pattern(1, 15)]).contains("(5, 6, 1, 15)"));
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn no_text_makes_the_parser_panic(text in "(version [0-9.]*\n)?([0-9a-z\t .\r\n-]|\\PC){0,80}") {
            if let Err(error) = parse_scen("a.scen", &text) {
                prop_assert!(error.to_string().starts_with("a.scen:"));
            }
        }

        #[test]
        fn a_mutated_file_is_read_or_refused_with_a_place_in_it(
            text in prop::sample::select(vec![STATIC, DYNAMIC]),
            changes in prop::collection::vec((any::<prop::sample::Index>(), "[QP0-9 \t\n.e-]{0,3}", 0usize..4), 1..6),
        ) {
            let mut text = text.to_owned();
            for (at, new, removed) in &changes {
                let at = at.index(text.len() + 1);
                text.replace_range(at..(at + removed).min(text.len()), new);
            }
            match parse_scen("a.scen", &text) {
                Ok(scen) => prop_assert!(scen.commands.len() <= text.lines().count()),
                Err(error) => {
                    let (line, column) = error.location();
                    prop_assert!(line >= 1 && line as usize <= text.lines().count() + 1, "{}", error);
                    let width = text.lines().nth(line as usize - 1).map_or(0, |line| line.chars().count());
                    prop_assert!(column >= 1 && column as usize <= width + 1, "{}", error);
                }
            }
        }

        #[test]
        fn a_written_query_is_read_back(
            (bucket, width, height) in (any::<u32>(), 1..65_537u32, 1..4_097u32),
            (x, y, goal_x, goal_y) in any::<(u16, u16, u16, u16)>(),
            length in 0.0..1e8f64,
        ) {
            let commands = vec![query(bucket, (x.into(), y.into()), (goal_x.into(), goal_y.into()), Some(length))];
            let size = Some(UVec2::new(width, height));
            let line = format!("{bucket}\tm\t{width}\t{height}\t{x}\t{y}\t{goal_x}\t{goal_y}\t{length}\n");
            let scen = Scen { size, size_line: 1, patch_file: None, commands: commands.clone() };
            prop_assert_eq!(parse_scen("a.scen", &line), Ok(scen));
            let text = format!(
                "version 2\nwidth {width}\nheight {height}\ncost 1 octile\ncommands\n\
                 Q {bucket} {x} {y} {goal_x} {goal_y} {length}\n"
            );
            prop_assert_eq!(parse_scen("a.scen", &text), Ok(Scen { size, size_line: 3, patch_file: None, commands }));
        }
    }
}
