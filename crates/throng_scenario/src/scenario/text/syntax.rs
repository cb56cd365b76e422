//! Parses scenarios, and converts errors of the RON parser to errors that point at the wrong words.
//!
//! The parser reports a position before, within or behind the wrong words, depending on the error. The [`Outline`] finds the words.

use ron::error::{Error, Position, SpannedError};
use ron::extensions::Extensions;
use serde::de::DeserializeOwned;

use super::error::{ScenarioError, SourceError};
use super::outline::{BYTE_ORDER_MARK, Outline, TextSpan, TokenKind};

use super::brackets::unclosed_before;
use super::recovery::value_before_comma;
use super::suggest::{closest, list_names};
use super::units::unit_of;
use crate::scenario::old_names::is_old_name;
use crate::scenario::schema::{Action, Scenario};

/// Maximum recursion depth of the parser, since each step uses stack. A bracket takes one to four steps; real scenarios reach a
/// depth of about forty.
const DEPTH_MAX: usize = 128;

/// Reads a scenario from its text.
pub(in crate::scenario) fn parse(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let failed = |span, message, help| {
        ScenarioError::Syntax(Box::new(SourceError::new(
            file,
            text,
            span,
            (message, help),
        )))
    };
    let outline = Outline::new(text);
    if outline.root_head() != Some("Scenario") {
        let found = match outline.text_at(&outline.root_span()) {
            "" => "nothing".to_owned(),
            words => format!("`{}`", shortened(words)),
        };
        let message = format!("expected the file to begin with `Scenario(`, found {found}");
        return Err(failed(outline.root_span(), message, None));
    }
    read_value(text, &outline).map_err(|wrong| failed(wrong.span, wrong.message, wrong.help))
}

/// Parses a single action; returns the error as text.
pub(in crate::scenario) fn parse_action(text: &str) -> Result<Action, String> {
    let outline = Outline::new(text);
    read_value(text, &outline).map_err(|wrong| match wrong.help {
        Some(help) => format!("{}; {help}", wrong.message),
        None => wrong.message,
    })
}

/// Parses a value of any type; `outline` is that of the text.
pub(super) fn read_value<T: DeserializeOwned>(
    text: &str,
    outline: &Outline<'_>,
) -> Result<T, ReadError> {
    let options = ron::Options::default()
        .with_default_extension(Extensions::UNWRAP_NEWTYPES)
        .with_default_extension(Extensions::UNWRAP_VARIANT_NEWTYPES)
        .with_default_extension(Extensions::IMPLICIT_SOME)
        .with_recursion_limit(DEPTH_MAX);
    options
        .from_str(text)
        .map_err(|error| explain(outline, text, &error))
}

/// An error of the parser, with the span of the wrong words.
pub(super) struct ReadError {
    pub span: TextSpan,
    pub message: String,
    pub help: Option<String>,
}

impl ReadError {
    fn new(span: TextSpan, message: String) -> Self {
        Self {
            span,
            message,
            help: None,
        }
    }
}

fn explain(outline: &Outline, text: &str, error: &SpannedError) -> ReadError {
    let wrong = explain_at(outline, text, error);
    match unclosed_before(outline, wrong.span.start) {
        Some((opening, message)) => ReadError::new(opening, message),
        None => wrong,
    }
}

/// The error at the position where the parser noticed it.
fn explain_at(outline: &Outline, text: &str, error: &SpannedError) -> ReadError {
    let reached = byte_of(text, error.span.end);
    match &error.code {
        Error::NoSuchStructField {
            expected,
            found,
            outer,
        } => {
            let expected = current_names(expected, outer.as_deref());
            unknown_field(outline, reached, &expected, found, outer.as_deref())
        }
        Error::NoSuchEnumVariant {
            expected,
            found,
            outer,
        } => {
            let of = outer
                .as_ref()
                .map_or_else(String::new, |outer| format!(" of `{outer}`"));
            unknown_name(
                outline.word_before(reached, found),
                &format!("variant `{}`{of}", shortened(found)),
                found,
                &current_names(expected, outer.as_deref()),
            )
        }
        Error::ExpectedDifferentStructName { expected, found } => ReadError::new(
            outline.word_before(reached, found),
            format!("expected `{expected}(`, found `{}`", shortened(found)),
        ),
        Error::DuplicateStructField { field, .. } => ReadError::new(
            outline.word_before(reached, field),
            format!("the field `{field}` is given twice"),
        ),
        Error::MissingStructField { field, outer } => {
            let of = outer
                .as_ref()
                .map_or_else(String::new, |outer| format!(" of `{outer}`"));
            let span = outline
                .group_around(reached)
                .unwrap_or_else(|| outline.root_span());
            ReadError::new(span, format!("the field `{field}`{of} is missing"))
        }
        Error::ExpectedDifferentLength { expected, found } => {
            let span = outline
                .group_around(reached)
                .unwrap_or_else(|| outline.root_span());
            ReadError::new(span, format!("expected {expected}, found {found}"))
        }
        Error::IntegerOutOfBounds => out_of_range(outline, reached),
        Error::ExceededRecursionLimit => ReadError::new(
            outline
                .token_before(reached)
                .and_then(|token| outline.token(token))
                .map_or(0..0, |token| token.span.clone()),
            "the brackets are nested too deep".to_owned(),
        ),
        Error::ExpectedStringEnd => ReadError::new(
            outline
                .token_from(reached)
                .and_then(|token| outline.token(token))
                .map_or(0..0, |token| token.span.clone()),
            "expected a closing quote, found the end of the file".to_owned(),
        ),
        Error::UnclosedBlockComment
        | Error::InvalidEscape(_)
        | Error::NoSuchExtension(_)
        | Error::Message(_) => {
            let start = byte_of(text, error.span.start);
            ReadError::new(
                start..reached.max(start),
                lower_first(&error.code.to_string()),
            )
        }
        code => match expected_words(code) {
            Some(expected) => wrong_token(outline, text, reached, &expected),
            None => ReadError::new(reached..reached, lower_first(&code.to_string())),
        },
    }
}

/// The names that a type expects, without old ones.
fn current_names(expected: &[&'static str], outer: Option<&str>) -> Vec<&'static str> {
    let is_old = |name: &str| outer.is_some_and(|outer| is_old_name(outer, name));
    let expected = expected.iter().copied();
    expected.filter(|name| !is_old(name)).collect()
}

fn unknown_field(
    outline: &Outline,
    reached: usize,
    expected: &[&str],
    found: &str,
    outer: Option<&str>,
) -> ReadError {
    let span = outline.word_before(reached, found);
    let next = outline
        .token_from(span.end)
        .and_then(|token| outline.token(token));
    if let (Some(outer), Some(first)) = (outer, expected.first())
        && next.is_some_and(|token| token.kind == TokenKind::Mark(b'('))
    {
        let message = format!(
            "expected the fields without a name, as in `{outer}({first}: …)`, found `{}(`",
            shortened(found)
        );
        return ReadError::new(span, message);
    }
    unknown_name(
        span,
        &format!("field `{}`", shortened(found)),
        found,
        expected,
    )
}

/// The error for an unknown name, with the closest known one, or all of them.
fn unknown_name(span: TextSpan, what: &str, found: &str, known: &[&str]) -> ReadError {
    match closest(found, known.iter().copied()) {
        Some(name) => ReadError::new(span, format!("unknown {what}, did you mean `{name}`?")),
        None => ReadError {
            span,
            message: format!("unknown {what}"),
            help: Some(format!("expected {}", list_names(known))),
        },
    }
}

fn out_of_range(outline: &Outline, reached: usize) -> ReadError {
    let Some((index, token)) = outline
        .token_before(reached)
        .and_then(|index| Some((index, outline.token(index)?)))
    else {
        return ReadError::new(0..0, "a number is out of range".to_owned());
    };
    let words = outline.text_at(&token.span);
    let field = outline
        .field_before(index)
        .map_or_else(String::new, |field| format!(" for `{field}`"));
    // The signed fields have 32 bits or more, so a small negative number can only be too small for an unsigned one.
    let message = if words.parse::<i32>().is_ok_and(|number| number < 0) {
        format!("expected 0 or more{field}, found `{words}`")
    } else {
        format!("`{}` is out of range{field}", shortened(words))
    };
    ReadError::new(token.span.clone(), message)
}

/// The error for a token that is not what the parser expected.
fn wrong_token(outline: &Outline, text: &str, reached: usize, expected: &str) -> ReadError {
    let Some(index) = outline.token_from(reached) else {
        let Some(span) = outline.group_around(text.len()) else {
            return ReadError::new(
                text.len()..text.len(),
                format!("expected {expected}, found the end of the file"),
            );
        };
        let message = format!(
            "expected a closing bracket for `{}`, found the end of the file",
            outline.text_at(&span)
        );
        return ReadError::new(span, message);
    };
    let span = outline
        .token(index)
        .map_or(reached..reached, |token| token.span.clone());
    let words = shortened(outline.text_at(&span));
    let field = outline
        .field_before(index)
        .map_or_else(String::new, |field| format!(" for `{field}`"));
    // Only integers end within a word: the parser has consumed `1` of `1.5`.
    let expected = if span.start < reached {
        "a whole number"
    } else {
        expected
    };
    let unit = outline.field_before(index).and_then(unit_of);
    let unit = unit.filter(|_| expected.ends_with("number"));
    let unit = unit.map_or_else(String::new, |unit| format!(" in {unit}"));
    let before = value_before_comma(outline, span.start).filter(|_| expected.starts_with("`,`"));
    let help = before.map(|before| {
        let before = shortened(outline.text_at(&before));
        format!("add a comma after `{before}`")
    });
    ReadError {
        message: format!("expected {expected}{unit}{field}, found `{words}`"),
        span,
        help,
    }
}

/// What the parser expected, as text; `None` for other errors.
fn expected_words(code: &Error) -> Option<String> {
    let words = match code {
        Error::ExpectedArray => "`[`",
        Error::ExpectedArrayEnd => "`,` or `]`",
        Error::ExpectedBoolean => "`true` or `false`",
        Error::ExpectedComma => "`,` or a closing bracket",
        Error::ExpectedFloat | Error::FloatUnderscore | Error::UnderscoreAtBeginning => "a number",
        Error::ExpectedInteger | Error::InvalidIntegerDigit { .. } => "a whole number",
        Error::ExpectedMap => "`{`",
        Error::ExpectedMapColon => "`:`",
        Error::ExpectedMapEnd => "`,` or `}`",
        Error::ExpectedNamedStructLike("Vec2") => "`(x, y)`",
        Error::ExpectedNamedStructLike(name) if !name.is_empty() => {
            return Some(format!("`{name}(…)`"));
        }
        Error::ExpectedStructLike | Error::ExpectedNamedStructLike(_) => "`(`",
        Error::ExpectedStructLikeEnd | Error::ExpectedOptionEnd => "`)`",
        Error::ExpectedString | Error::ExpectedChar => "a text in quotes",
        Error::ExpectedIdentifier | Error::InvalidIdentifier(_) => "a name",
        Error::TrailingCharacters => "the end of the file",
        Error::InvalidValueForType { expected, .. } => return Some(expected.clone()),
        Error::Eof | Error::UnexpectedChar(_) => "a value",
        _ => return None,
    };
    Some(words.to_owned())
}

impl Outline<'_> {
    /// The last token with the text `found` that begins before a byte. Only four tokens are checked, since the parser has just read
    /// it.
    fn word_before(&self, byte: usize, found: &str) -> TextSpan {
        const TOKENS_BACK_MAX: usize = 4;
        let last = self.token_before(byte).unwrap_or(0);
        (0..TOKENS_BACK_MAX)
            .filter_map(|back| self.token(last.checked_sub(back)?))
            .find(|token| self.text_at(&token.span) == found)
            .or_else(|| self.token(last))
            .map_or(0..0, |token| token.span.clone())
    }
}

/// The byte at a line and column of the parser, which count characters from 1.
fn byte_of(text: &str, position: Position) -> usize {
    let line_start = match position.line.checked_sub(2) {
        None => 0,
        Some(newline) => text
            .match_indices('\n')
            .nth(newline)
            .map_or(text.len(), |(byte, _)| byte + 1),
    };
    let rest = &text[line_start..];
    line_start
        + rest
            .char_indices()
            .nth(position.col.saturating_sub(1))
            .map_or(rest.len(), |(byte, _)| byte)
}

/// The first line of some words, at most forty characters of it.
fn shortened(words: &str) -> String {
    const CHARS_MAX: usize = 40;
    let line = words.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(CHARS_MAX).collect();
    if short.len() < words.len() {
        short.push('…');
    }
    short
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;
    use crate::scenario::{BUILT_IN, Behaviours, LoadedScenario};

    /// `line:column: message`, the words underlined, and the help.
    fn read_error(text: &str) -> (String, String, Option<String>) {
        let error = parse("t.ron", text).unwrap_err();
        let mistake = error.source_error().unwrap();
        let span: Range<usize> = mistake.span.offset()..mistake.span.offset() + mistake.span.len();
        let expected = format!("{}:{}: {}", mistake.line, mistake.column, mistake.message);
        (expected, text[span].to_owned(), mistake.help.clone())
    }

    #[track_caller]
    fn check(text: &str, expected: &str, underlined: &str) {
        let (message, words, _) = read_error(text);
        assert_eq!(
            (message.as_str(), words.as_str()),
            (expected, underlined),
            "for {text}"
        );
    }

    #[test]
    fn style_guide_sample_is_parsed() {
        let text = r#"
// 800 attackers rush one gate that opens and closes; paths must stay exact, no tick over budget.
Scenario(
    name: "siege", seed: 20, tick_hz: 20, duration_s: 60,
    scenes: [ Scene(name: "keep", map: Generate(Town(width_tiles: 1000, height_tiles: 1000)), tile_m: 0.5, cell_m: 50, view_cap: 100) ],
    crowds: [ Crowd(tag: "attackers", kind: "npc", count: 800, at: Ring(center_m: (250, 250), radius_m: 180), behaviour: Gather(at: Point(center_m: (250, 250)))) ],
    script: [ At(t_s: 5, run: Free(rect_tiles: (490, 300, 20, 4))), Every(t_s: 10, run: Toggle(rect_tiles: (490, 300, 20, 4))) ],
    expect: [ ViewsWithinCap, PathsExact, NoObjectOnBlockedTile, TickP99UnderMs(50), SetP99UnderMs(View, 10), HashIs("00") ],
)"#;
        let scenario = parse("siege.ron", text).unwrap();
        assert_eq!(
            (
                scenario.seed,
                scenario.crowds[0].count,
                scenario.expect.len()
            ),
            (20, 800, 6)
        );
        assert_eq!(scenario.script.len(), 2);
    }

    #[test]
    fn unknown_names_are_underlined_and_corrected() {
        check(
            "Scenario(\n  scenes: [Scene(name: \"a\", view_capp: 9)])",
            "2:29: unknown field `view_capp`, did you mean `view_cap`?",
            "view_capp",
        );
        check(
            "Scenario(crowds: [Crwod(count: 1)])",
            "1:19: expected `Crowd(`, found `Crwod`",
            "Crwod",
        );
        check(
            "Scenario(script: [At(t_s: 1, run: Spawn(Crowd(tag: \"a\")))])",
            "1:41: expected the fields without a name, as in `Spawn(tag: …)`, found `Crowd(`",
            "Crowd",
        );
        let (message, _, help) = read_error("Scenario(colour: 1)");
        assert_eq!(message, "1:10: unknown field `colour`");
        assert!(
            help.unwrap()
                .starts_with("expected `name`, `seed`, `tick_hz`")
        );
    }

    #[test]
    fn wrong_values_are_underlined_and_named_with_their_field() {
        check(
            "Scenario(crowds: [Crowd(count: -5)])",
            "1:32: expected 0 or more for `count`, found `-5`",
            "-5",
        );
        check(
            "Scenario(crowds: [Crowd(count: \"five\")])",
            "1:32: expected a whole number for `count`, found `\"five\"`",
            "\"five\"",
        );
        check(
            "Scenario(crowds: [Crowd(count: 1.5)])",
            "1:32: expected a whole number for `count`, found `1.5`",
            "1.5",
        );
        check(
            "Scenario(crowds: [Crowd(count: five)])",
            "1:32: expected a whole number for `count`, found `five`",
            "five",
        );
        check(
            "Scenario(crowds: [Crowd(count: 5000000000)])",
            "1:32: `5000000000` is out of range for `count`",
            "5000000000",
        );
        check(
            "Scenario(name: 5)",
            "1:16: expected a text in quotes for `name`, found `5`",
            "5",
        );
        check(
            "Scenario(tick_hz: fast)",
            "1:19: expected a number in times a second for `tick_hz`, found `fast`",
            "fast",
        );
        check(
            "Scenario(crowds: (Crowd()))",
            "1:18: expected `[` for `crowds`, found `(`",
            "(",
        );
        check(
            "Scenario(crowds: [Crowd(at: Point(center_m: 4))])",
            "1:45: expected `(x, y)` for `center_m`, found `4`",
            "4",
        );
        check(
            "Scenario(queues: [Queue(size_weights: (1, 2))])",
            "1:39: expected an array of length 5, found 2",
            "(",
        );
    }

    #[test]
    fn missing_and_duplicate_fields_are_reported() {
        check(
            "Scenario(script: [At(run: Despawn(tag: \"a\"))])",
            "1:19: the field `t_s` of `At` is missing",
            "At",
        );
        check(
            "Scenario(seed: 1, seed: 2)",
            "1:19: the field `seed` is given twice",
            "seed",
        );
    }

    #[test]
    fn broken_syntax_is_shown_where_it_breaks() {
        check(
            "",
            "1:1: expected the file to begin with `Scenario(`, found nothing",
            "",
        );
        check(
            "Town(name: \"a\")",
            "1:1: expected the file to begin with `Scenario(`, found `Town`",
            "Town",
        );
        check(
            "Scenario(name: \"a\" seed: 1)",
            "1:20: expected `,` or a closing bracket, found `seed`",
            "seed",
        );
        let (_, _, help) = read_error("Scenario(name: \"a\" seed: 1)");
        assert_eq!(help.as_deref(), Some("add a comma after `\"a\"`"));
        check(
            "Scenario(name \"a\")",
            "1:15: expected `:`, found `\"a\"`",
            "\"a\"",
        );
        check(
            "Scenario(crowds: [Crowd(count: 1",
            "1:19: expected a closing bracket for `Crowd`, found the end of the file",
            "Crowd",
        );
        check(
            "Scenario(name: \"a",
            "1:16: expected a closing quote, found the end of the file",
            "\"a",
        );
        check(
            "Scenario() x",
            "1:12: expected the end of the file, found `x`",
            "x",
        );
    }

    #[test]
    fn deep_nesting_is_refused_and_does_not_overflow_the_stack() {
        let deep = "Scenario(crowds: ".to_owned() + &"[".repeat(1 << 18);
        assert!(parse("t.ron", &deep).is_err());
        let some = format!(
            "Scenario(crowds: [Crowd(team: {})])",
            "Some(".repeat(1 << 18)
        );
        assert!(parse("t.ron", &some).is_err());
        // Rejected before the text is parsed, which would take minutes.
        for bracket in ["(", "[", "Scenario(a: "] {
            let text = bracket.repeat(1 << 18);
            let error = LoadedScenario::from_text("t.ron", &text).unwrap_err();
            let mistake = error.source_error().unwrap();
            assert_eq!(
                mistake.message,
                "expected brackets at most 128 deep, found more here"
            );
            assert!(mistake.span.offset() < bracket.len() * 130);
        }
    }

    #[test]
    fn built_in_scenarios_are_parsed() {
        for built_in in BUILT_IN {
            assert!(
                LoadedScenario::from_text(built_in.name, built_in.text)
                    .is_ok_and(|loaded| loaded.scenario.name == built_in.name)
            );
        }
    }

    /// A change of a built-in scenario: bytes or whole tokens are replaced, inserted or dropped.
    #[derive(Clone, Debug)]
    enum TextChange {
        Byte { at: usize, byte: u8 },
        Drop { at: usize, length: usize },
        Insert { at: usize, text: &'static str },
        Swap { a: usize, b: usize },
    }

    fn change() -> impl Strategy<Value = TextChange> {
        let pieces = [
            "-",
            "(",
            ")",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "'",
            "/*",
            "//",
            "Some(",
            "None",
            "inf",
            "NaN",
            "-1",
            "1e308",
            "99999999999999999999",
            "é",
            "r#\"",
            "#![enable(x)]",
            "name",
            "Scene(",
            "\0",
            "\\",
        ];
        prop_oneof![
            (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| TextChange::Byte { at, byte }),
            (any::<usize>(), 1_usize..40).prop_map(|(at, length)| TextChange::Drop { at, length }),
            (any::<usize>(), prop::sample::select(pieces.to_vec()))
                .prop_map(|(at, text)| TextChange::Insert { at, text }),
            (any::<usize>(), any::<usize>()).prop_map(|(a, b)| TextChange::Swap { a, b }),
        ]
    }

    fn changed(text: &str, changes: &[TextChange]) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for change in changes {
            if bytes.is_empty() {
                break;
            }
            match *change {
                TextChange::Byte { at, byte } => {
                    let at = at % bytes.len();
                    bytes[at] = byte;
                }
                TextChange::Drop { at, length } => {
                    let at = at % bytes.len();
                    bytes.drain(at..(at + length).min(bytes.len()));
                }
                TextChange::Insert { at, text } => {
                    let at = at % bytes.len();
                    bytes.splice(at..at, text.bytes());
                }
                TextChange::Swap { a, b } => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let outline = Outline::new(&text);
                    let count = (0..)
                        .take_while(|&token| outline.token(token).is_some())
                        .count()
                        .max(1);
                    let spans = (outline.token(a % count), outline.token(b % count));
                    if let (Some(from), Some(to)) = spans {
                        let word = text[from.span.clone()].as_bytes().to_vec();
                        bytes = text.as_bytes().to_vec();
                        bytes.splice(to.span.clone(), word);
                    }
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    proptest! {
        #![proptest_config(draws!(1000))]

        #[test]
        fn mutated_texts_never_panic_and_error_spans_are_in_bounds(
            which in 0..BUILT_IN.len(),
            changes in prop::collection::vec(change(), 1..4),
        ) {
            let text = changed(BUILT_IN[which].text, &changes);
            let outcome = LoadedScenario::from_text("t.ron", &text)
                .and_then(|loaded| loaded.check(&["health"], &Behaviours::default()));
            if let Err(error) = outcome {
                let mistake = error.source_error().expect("errors in a text have a place");
                let lines: Vec<&str> = text.split('\n').collect();
                prop_assert!((1..=lines.len()).contains(&mistake.line));
                prop_assert!((1..=lines[mistake.line - 1].chars().count() + 1).contains(&mistake.column));
                let (start, length) = (mistake.span.offset(), mistake.span.len());
                prop_assert!(text.get(start..start + length).is_some());
                prop_assert!(!mistake.message.is_empty());
            }
        }
    }
}
