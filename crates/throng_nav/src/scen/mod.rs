//! MovingAI `.scen` files: queries on a map with the length of a shortest path for each, and edits between them.
//!
//! ```text
//! text ──▶ [`parse_scen`] ──▶ [`Scen`]: size, commands in order ──▶ PathQuery: search and compare
//!                                                               └──▶ Patch: write a pattern into the map
//! ```
//! | file | holds |
//! |---|---|
//! | `commands` | the contents of a file: queries and edits |
//! | `error` | errors with their location |
//! | `lines` | the lines and their fields |
//! | `version1` | queries on a map that does not change |
//! | `version2` | queries and edits |
//!
//! Version 1 (Sturtevant, "Benchmarks for Grid-Based Pathfinding", IEEE TCIAIG 4(2), 2012) is a list of queries on a map
//! that does not change; version 2 (Grid-Based Path Planning Competition, dynamic track) has patches as well, which are
//! in a separate file: [`decode_patches`](crate::map::decode_patches). The caller reads the files from disk and
//! provides the initial map of a version 2 file: the samples start on free ground of the size in the
//! file, unless their first patch covers all of it.
//!
//! Invariant: no text makes the parser panic, and its allocations are bounded by the length of the text.

mod commands;
mod error;
mod lines;
mod version1;
mod version2;

pub use commands::{Scen, ScenCommand, ScenPatch, ScenQuery};
pub use error::{ScenError, ScenProblem};

use lines::{LineError, ScenLines, excerpt};
/// Reads a `.scen` file's text, version 1 or 2. `file` is the name in errors. LF, CRLF, a byte order mark and
/// empty lines at the beginning, separators at the end of a line, and `version` in upper or lower case are accepted.
///
/// Without a `version` line the file is of version 1. Cost: O(length of the text).
///
/// ```
/// use throng_nav::{ScenCommand, parse_scen};
/// let text = "version 2\nheight 9\nwidth 9\ncost 1 octile\npatch a.patch\ncommands\nP 0 0 3 4\nQ 0 1 1 8 1 7\n";
/// let scen = parse_scen("a.scen", text)?;
/// assert!(matches!(scen.commands[0], ScenCommand::Patch(patch) if patch.at.x == 3));
/// assert_eq!(scen.queries().next().and_then(|query| query.length_tiles), Some(7.0));
/// # Ok::<(), throng_nav::ScenError>(())
/// ```
pub fn parse_scen(file: &str, text: &str) -> Result<Scen, ScenError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = ScenLines::new(text);
    let first = ScenLines::new(text).next();
    let parsed = match first.and_then(|line| version(line.text)) {
        None => version1::parse(&mut lines),
        Some("1" | "1.0") => {
            lines.next();
            version1::parse(&mut lines)
        }
        Some("2" | "2.0") => {
            lines.next();
            version2::parse(&mut lines)
        }
        Some(found) => Err(LineError {
            line: first.map_or(1, |line| line.number),
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

/// What follows the word `version` in a line that begins with it.
fn version(line: &str) -> Option<&str> {
    const WORD: &str = "version";
    let line = line.trim();
    let (word, number) = line.split_at_checked(WORD.len())?;
    let is_word = !number.starts_with(|next: char| next.is_alphanumeric());
    (word.eq_ignore_ascii_case(WORD) && is_word).then(|| number.trim())
}

#[cfg(test)]
mod tests {
    use glam::UVec2;
    use proptest::prelude::*;

    use super::*;
    use crate::map::TilePattern;

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
    fn both_versions_are_read_with_lf_and_crlf() {
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

    #[test]
    fn blank_lines_case_and_trailing_separators_do_not_matter() {
        for text in [STATIC, DYNAMIC] {
            let expected = parse_scen("a.scen", text).unwrap();
            let commands = |text: &str| parse_scen("a.scen", text).unwrap().commands;
            let lined = parse_scen("a.scen", &format!("\n \r\n{text}")).unwrap();
            assert!(lined.queries().eq(expected.queries()) && lined.size == expected.size);
            for word in ["Version", "VERSION", "version ", "version\t"] {
                assert_eq!(
                    commands(&text.replacen("version", word, 1)),
                    expected.commands
                );
            }
            for end in [" \n", "\t\n", " \t\t \r\n"] {
                assert_eq!(
                    commands(&text.replace('\n', end)),
                    expected.commands,
                    "{end:?}"
                );
            }
        }
        let leading = message("\n\nVersion 3\n");
        assert_eq!(leading, "a.scen:3:1: expected version 1 or 2, found `3`");
    }

    #[test]
    fn byte_order_mark_is_skipped() {
        for text in [STATIC, DYNAMIC] {
            let marked = format!("\u{feff}{text}");
            assert_eq!(parse_scen("a.scen", &marked), parse_scen("a.scen", text));
        }
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let text = STATIC.replacen("maps/dao/a.map", "måps/dåø/ä.map", 1);
        assert_eq!(
            changed(&text, "\t10\t20\t1\t", "\t10\t20\tx\t"),
            "a.scen:2:24: start x: expected a whole number from 0 to 65536, found `x`"
        );
    }

    #[test]
    fn query_that_goes_nowhere_has_length_zero() {
        let still = DYNAMIC.replace("Q 0 1 2 3 4 2.82843", "Q 0 1 2 1 2 0");
        let scen = parse_scen("a.scen", &still).unwrap();
        assert_eq!(scen.commands[0], query(0, (1, 2), (1, 2), Some(0.0)));
        let still = STATIC.replace("3\t4\t2.82843", "1\t2\t0");
        let scen = parse_scen("a.scen", &still).unwrap();
        assert_eq!(scen.commands[0], query(0, (1, 2), (1, 2), Some(0.0)));
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
                "3:17: start y: expected a whole number from 0 to 65536, found `-1`",
            ),
            (
                "2.82843",
                "NaN",
                "2:32: length: expected a finite number from 0, found `NaN`",
            ),
            (
                "7\ta.map\t10",
                "7\ta.map\t11",
                "3:9: width: expected 10 as in the first query, found `11`",
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
                "2:8: height: expected a whole number from 0 to 65536, found `x`",
            ),
            (
                "width 10",
                "height 10",
                "3:1: expected each line of the header once, found `height 10`",
            ),
            (
                "P 1 0 5 6",
                "P 1 0  5 x",
                "8:10: y: expected a whole number from 0 to 65536, found `x`",
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
                "9:14: length: expected a finite number from 0, or -1 for no path, found `-2`",
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
    fn lengths_agree_within_the_file_precision() {
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
            "a.scen:8:1: unknown patch 0: expected a number below 0"
        );
        assert_eq!(
            message(&[pattern(6, 1)]),
            "a.scen:8:1: patch (5, 6, 6, 1) outside the map of 10 × 20 tiles"
        );
        assert!(message(&[pattern(1, 15)]).contains("(5, 6, 1, 15)"));
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn arbitrary_text_never_panics_the_parser(text in "(version [0-9.]*\n)?([0-9a-z\t .\r\n-]|\\PC){0,80}") {
            if let Err(error) = parse_scen("a.scen", &text) {
                prop_assert!(error.to_string().starts_with("a.scen:"));
            }
        }

        #[test]
        fn mutated_file_is_read_or_refused_with_a_location(
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
        fn written_query_round_trips(
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
