//! The outline of a RON text: its tokens, and the place of each field and list item, so that an error can point at it.
//!
//! The RON parser knows only its current position; a parsed value has no location any more. The outline restores it: the text is
//! split into tokens, and brackets, commas and colons form a tree of them.
//!
//! Invariants: every span lies in the text, on character boundaries; any text has an outline, even if it is not RON. Nesting uses
//! no stack. Cost: O(text) to build; O(values) to find a place or the item around a byte.

use std::ops::Range;

use super::value_path::{PathStep, ValuePath};

/// The byte order mark, which some editors put in front of a text.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// The action whose content belongs to the game.
const GAME_ACTION: &str = "Game";

/// A range of bytes of the text.
pub type TextSpan = Range<usize>;

/// The tokens of a text and the tree of its values.
#[derive(Debug)]
pub struct Outline<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// Parents stand before their children; the first is the scenario.
    values: Vec<OutlineValue>,
}

/// A piece of the text between spaces and comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its bytes in the text.
    pub span: TextSpan,
}

/// The kinds of tokens that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name or a number.
    Word,
    /// A text or a character, with its quotes.
    Quoted,
    /// One character of punctuation.
    Mark(u8),
}

/// A value: a word, a text, or a bracket with its content.
#[derive(Debug)]
struct OutlineValue {
    parent: usize,
    /// Its index among the values of its parent.
    index: usize,
    /// The name before the colon.
    key: Option<TextSpan>,
    /// The name before the bracket.
    head: Option<TextSpan>,
    span: TextSpan,
    is_group: bool,
    /// Whether its closing bracket is there.
    is_closed: bool,
    child_count: usize,
}

impl<'a> Outline<'a> {
    /// Splits a text into tokens and finds its values.
    pub fn new(text: &'a str) -> Self {
        let tokens = tokens(text);
        let values = values(&tokens, text.len());
        Self {
            text,
            tokens,
            values,
        }
    }

    /// The name that the whole text begins with, as in `Scenario(…)`.
    pub fn root_head(&self) -> Option<&'a str> {
        let head = self.values.first()?.head.clone()?;
        self.text.get(head)
    }

    /// The first bracket inside more than `depth_max` open brackets. O(tokens).
    pub fn bracket_beyond(&self, depth_max: usize) -> Option<TextSpan> {
        let mut depth = 0_usize;
        let brackets = self.tokens.iter().filter(|token| match token.kind {
            TokenKind::Mark(b'(' | b'[' | b'{') => {
                depth += 1;
                depth > depth_max + 1
            }
            TokenKind::Mark(b')' | b']' | b'}') => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => false,
        });
        brackets.map(|token| token.span.clone()).next()
    }

    /// The span of the head of the first value.
    pub fn root_span(&self) -> TextSpan {
        self.values.first().map_or(0..0, |_| self.short_span(0))
    }

    /// The span of a value, or of the closest enclosing value in the text. For a value in brackets, it is the span of its head.
    pub fn find(&self, place: &ValuePath) -> TextSpan {
        if self.values.is_empty() {
            return 0..0;
        }
        let mut at = 0;
        for &step in place.steps() {
            let Some(next) = self.step_into(at, step) else {
                break;
            };
            at = next;
        }
        self.short_span(at)
    }

    /// The parts of a value in their order: the span of the name before each, and the span of the part. Empty if the text does not
    /// contain the value.
    pub fn parts(&self, place: &ValuePath) -> Vec<(Option<TextSpan>, TextSpan)> {
        if self.values.is_empty() {
            return Vec::new();
        }
        let mut steps = place.steps().iter();
        let Some(at) = steps.try_fold(0, |at, &step| self.step_into(at, step)) else {
            return Vec::new();
        };
        let parts = self.values.iter().enumerate().skip(at + 1);
        let parts = parts.filter(|(_, value)| value.parent == at);
        parts
            .map(|(_, value)| (value.key.clone(), value.span.clone()))
            .collect()
    }

    /// The names of fields and variants for which `is_wanted` is true: the span of each, and the enclosing fields, innermost
    /// last. Words in texts and comments are not names. An enclosing `Game(…)`, whose content belongs to the game, counts as a
    /// field of that name.
    pub fn names(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(TextSpan, Vec<&'a str>)> {
        let mut names = Vec::new();
        for (at, value) in self.values.iter().enumerate() {
            let variant = value.head.clone().or_else(|| {
                let is_word = !value.is_group;
                is_word.then(|| value.span.clone())
            });
            for (span, owner) in [
                (value.key.clone(), (at > 0).then_some(value.parent)),
                (variant, Some(at)),
            ] {
                let span = span.filter(|span| is_wanted(self.text_at(span)));
                names.extend(span.map(|span| (span, self.fields_of(owner))));
            }
        }
        names
    }

    /// The numbers that are values of fields, each with the name of its field; also in `Some(…)`. Without the content of a `Game(…)`, which
    /// belongs to the game.
    pub fn numbers(&self) -> impl Iterator<Item = (&'a str, TextSpan, f64)> {
        self.values.iter().enumerate().filter_map(|(at, value)| {
            if at == 0 || value.is_group {
                return None;
            }
            let number: f64 = self.text_at(&value.span).replace('_', "").parse().ok()?;
            let parent = &self.values[value.parent];
            let is_some = parent.head.as_ref().map(|head| self.text_at(head)) == Some("Some");
            let key = value
                .key
                .as_ref()
                .or(parent.key.as_ref().filter(|_| is_some))?;
            let is_of_game = self.fields_of(Some(value.parent)).contains(&GAME_ACTION);
            (!is_of_game).then(|| (self.text_at(key), value.span.clone(), number))
        })
    }

    /// The fields that enclose a value, innermost last; see [`names`](Self::names).
    fn fields_of(&self, value: Option<usize>) -> Vec<&'a str> {
        let parent = |&at: &usize| (at > 0).then(|| self.values[at].parent);
        let around = std::iter::successors(value, parent);
        let names = around.flat_map(|at| {
            let OutlineValue { key, head, .. } = &self.values[at];
            let head = head.as_ref().map(|head| self.text_at(head));
            let key = key.as_ref().map(|key| self.text_at(key));
            [head.filter(|head| *head == GAME_ACTION), key]
        });
        let mut fields: Vec<&str> = names.flatten().collect();
        fields.reverse();
        fields
    }

    /// The token that contains a byte, or the last one before it.
    pub fn token_before(&self, byte: usize) -> Option<usize> {
        self.tokens
            .partition_point(|token| token.span.start < byte)
            .checked_sub(1)
    }

    /// The token that contains a byte, or the first one after it.
    pub fn token_from(&self, byte: usize) -> Option<usize> {
        let index = self.tokens.partition_point(|token| token.span.end <= byte);
        (index < self.tokens.len()).then_some(index)
    }

    /// A token by its number.
    pub fn token(&self, index: usize) -> Option<&Token> {
        self.tokens.get(index)
    }

    /// The text of a span.
    pub fn text_at(&self, span: &TextSpan) -> &'a str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// The head of the innermost bracket around a byte.
    pub fn group_around(&self, byte: usize) -> Option<TextSpan> {
        let around = |value: &OutlineValue| {
            value.is_group && value.span.start < byte && (byte < value.span.end || !value.is_closed)
        };
        let innermost = self.values.iter().rposition(around)?;
        Some(self.short_span(innermost))
    }

    /// The innermost bracket around a byte: its head, or itself if it has none, and its character.
    pub fn bracket_around(&self, byte: usize) -> Option<(TextSpan, u8)> {
        let around = |value: &OutlineValue| {
            value.is_group && value.span.start < byte && (byte < value.span.end || !value.is_closed)
        };
        let innermost = self.values.iter().rposition(around)?;
        let value = &self.values[innermost];
        let bracket = value
            .head
            .as_ref()
            .map_or(value.span.start, |head| head.end);
        let bracket = self.text.as_bytes()[bracket..].iter().copied();
        let bracket = bracket
            .into_iter()
            .find(|byte| matches!(byte, b'(' | b'[' | b'{'))?;
        Some((self.short_span(innermost), bracket))
    }

    /// Whether a bracket is not closed at the end of the text.
    pub fn has_open_bracket(&self) -> bool {
        let mut groups = self.values.iter().filter(|value| value.is_group);
        groups.any(|value| !value.is_closed)
    }

    /// The field, or the item of a list or of a map, that contains an error, with the comma after it; the innermost one. `None` for
    /// the whole text.
    pub fn entry_at(&self, error: &TextSpan) -> Option<TextSpan> {
        let whole = |value: &OutlineValue| {
            let start = value.key.as_ref().map_or(value.span.start, |key| key.start);
            start..value.span.end
        };
        // An error at the head of a bracket concerns the whole value.
        let contains = |value: &OutlineValue| {
            let entry = whole(value);
            entry.start <= error.start && error.start < entry.end.max(entry.start + 1)
        };
        let mut nested = self.values.iter().enumerate().skip(1);
        let innermost = nested.rfind(|(_, value)| contains(value))?.0;
        // `Some(5)` and `Generate(Town(…))` are values of the field around them.
        let mut at = innermost;
        while self.values[at].key.is_none() {
            let parent = self.values[at].parent;
            let is_list = self.text[self.values[parent].span.clone()].starts_with('[');
            if is_list || parent == 0 {
                break;
            }
            at = parent;
        }
        let entry = whole(&self.values[at]);
        let rest = &self.text[entry.end..];
        let comma = rest.trim_start().starts_with(',');
        let spaces = rest.len() - rest.trim_start().len();
        Some(entry.start..entry.end + if comma { spaces + 1 } else { 0 })
    }

    /// The field name before a value that begins with this token.
    pub fn field_before(&self, index: usize) -> Option<&'a str> {
        let colon = self.tokens.get(index.checked_sub(1)?)?;
        let name = self.tokens.get(index.checked_sub(2)?)?;
        (colon.kind == TokenKind::Mark(b':') && name.kind == TokenKind::Word)
            .then(|| self.text_at(&name.span))
    }

    /// The part of a value that a step of a path names. A bracket with a single unnamed value, as in `Some(…)` or
    /// `Generate(Town(…))`, is skipped.
    fn step_into(&self, mut at: usize, step: PathStep) -> Option<usize> {
        loop {
            let child = self
                .values
                .iter()
                .enumerate()
                .skip(at + 1)
                .find(|(_, value)| {
                    value.parent == at
                        && match step {
                            PathStep::Field(name) => value
                                .key
                                .as_ref()
                                .is_some_and(|key| self.text_at(key) == name),
                            PathStep::Item(index) => value.index == index,
                        }
                });
            if let Some((child, _)) = child {
                return Some(child);
            }
            let only = self
                .values
                .iter()
                .enumerate()
                .skip(at + 1)
                .find(|(_, value)| value.parent == at)?;
            if self.values[at].child_count != 1
                || only.1.key.is_some()
                || matches!(step, PathStep::Item(_))
            {
                return None;
            }
            at = only.0;
        }
    }

    fn short_span(&self, index: usize) -> TextSpan {
        let value = &self.values[index];
        match &value.head {
            Some(head) => head.clone(),
            None if value.is_group => value.span.start..value.span.start + 1,
            None => value.span.clone(),
        }
    }
}

/// Splits a text into tokens. An unfinished text or comment extends to the end.
fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    // A byte order mark is not part of the first word.
    let mut at = text.len() - text.trim_start_matches(BYTE_ORDER_MARK).len();
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let (kind, length) = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => (None, 1),
            b'/' if rest.starts_with(b"//") => (None, line_length(rest)),
            b'/' if rest.starts_with(b"/*") => (None, block_comment_length(rest)),
            b'"' => (Some(TokenKind::Quoted), quoted_length(rest, b'"')),
            b'\'' => (Some(TokenKind::Quoted), quoted_length(rest, b'\'')),
            b'r' if raw_text_length(rest).is_some() => {
                (Some(TokenKind::Quoted), raw_text_length(rest).unwrap_or(1))
            }
            _ if is_word_byte(byte) => (
                Some(TokenKind::Word),
                rest.iter().take_while(|&&byte| is_word_byte(byte)).count(),
            ),
            _ => (Some(TokenKind::Mark(byte)), 1),
        };
        tokens.extend(kind.map(|kind| Token {
            kind,
            span: at..at + length,
        }));
        at += length;
    }
    tokens
}

/// Bytes of names and numbers, and all bytes of characters beyond ASCII.
const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.') || byte >= 0x80
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(rest.len())
}

/// Block comments nest.
fn block_comment_length(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if rest[at..].starts_with(b"*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"` and `r#"…"#`, with any number of `#`.
fn raw_text_length(rest: &[u8]) -> Option<usize> {
    let hashes = rest
        .iter()
        .skip(1)
        .take_while(|&&byte| byte == b'#')
        .count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let body = &rest[2 + hashes..];
    let ends = |at: &usize| {
        body[*at] == b'"'
            && body[at + 1..]
                .iter()
                .take(hashes)
                .take_while(|&&byte| byte == b'#')
                .count()
                == hashes
    };
    Some(
        (0..body.len())
            .find(ends)
            .map_or(rest.len(), |at| 2 + hashes + at + 1 + hashes),
    )
}

/// Builds the tree of values. Brackets that are never closed extend to the end; a closing bracket without an opening one ends the
/// tree.
fn values(tokens: &[Token], end: usize) -> Vec<OutlineValue> {
    let mut values: Vec<OutlineValue> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut key = None;
    let mut head = None;
    let mut index = attributes_end(tokens);
    while let Some(token) = tokens.get(index) {
        let next = tokens.get(index + 1).map(|token| token.kind);
        index += 1;
        match token.kind {
            TokenKind::Word | TokenKind::Quoted if next == Some(TokenKind::Mark(b':')) => {
                key = Some(token.span.clone());
                index += 1;
            }
            TokenKind::Word if next == Some(TokenKind::Mark(b'(')) => {
                head = Some(token.span.clone())
            }
            TokenKind::Mark(b',') => key = None,
            TokenKind::Mark(b')' | b']' | b'}') => {
                key = None;
                if let Some(group) = open.pop() {
                    values[group].span.end = token.span.end;
                    values[group].is_closed = true;
                }
                if open.is_empty() {
                    break;
                }
            }
            TokenKind::Word | TokenKind::Quoted | TokenKind::Mark(b'(' | b'[' | b'{') => {
                let is_group = matches!(token.kind, TokenKind::Mark(_));
                let parent = open.last().copied();
                let place = parent.map_or(0, |parent| {
                    values[parent].child_count += 1;
                    values[parent].child_count - 1
                });
                let head = head.take();
                let start = head.as_ref().map_or(token.span.start, |head| head.start);
                if is_group {
                    open.push(values.len());
                }
                values.push(OutlineValue {
                    // The root is its own parent. Searches for children start behind it, so it is never found as a child.
                    parent: parent.unwrap_or(0),
                    index: place,
                    key: key.take(),
                    head,
                    span: start..if is_group { end } else { token.span.end },
                    is_group,
                    is_closed: false,
                    child_count: 0,
                });
                if open.is_empty() {
                    break;
                }
            }
            TokenKind::Mark(_) => {}
        }
    }
    values
}

/// The number of tokens of the `#![enable(…)]` lines on top.
fn attributes_end(tokens: &[Token]) -> usize {
    let mut end = 0;
    while tokens
        .get(end)
        .is_some_and(|token| token.kind == TokenKind::Mark(b'#'))
    {
        let closing = tokens[end..]
            .iter()
            .position(|token| token.kind == TokenKind::Mark(b']'));
        end += closing.map_or(tokens.len(), |closing| closing + 1);
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r##"#![enable(implicit_some)]
// A comment with "quotes" and (brackets.
Scenario(
    name: "a \" b", /* nested /* ( */ */ seed: 7,
    scenes: [Scene(name: r#"x"y"#, map: Generate(Town(width_tiles: 5))), (name: "z")],
    queues: [(match_scene: Some(Scene(tile_m: -0.5)))],
)"##;

    fn shown(place: &ValuePath) -> &'static str {
        let outline = Outline::new(TEXT);
        outline.text_at(&outline.find(place))
    }

    #[test]
    fn fields_and_items_are_found_through_heads_comments_and_quotes() {
        let root = ValuePath::root();
        let scenes = root.field("scenes");
        assert_eq!(shown(&root), "Scenario");
        assert_eq!(shown(&root.field("name")), r#""a \" b""#);
        assert_eq!(shown(&root.field("seed")), "7");
        assert_eq!(shown(&scenes.item(0)), "Scene");
        assert_eq!(shown(&scenes.item(0).field("name")), r##"r#"x"y"#"##);
        assert_eq!(shown(&scenes.item(1).field("name")), "\"z\"");
        assert_eq!(
            shown(&scenes.item(0).field("map").field("width_tiles")),
            "5"
        );
        let tile = root
            .field("queues")
            .item(0)
            .field("match_scene")
            .field("tile_m");
        assert_eq!(shown(&tile), "-0.5");
    }

    #[test]
    fn missing_value_is_shown_by_its_parent() {
        let scene = ValuePath::root().field("scenes").item(0);
        assert_eq!(shown(&scene.field("cell_m")), "Scene");
        assert_eq!(shown(&ValuePath::root().field("scenes").item(9)), "[");
        assert_eq!(
            shown(&ValuePath::root().field("crowds").item(0)),
            "Scenario"
        );
    }

    #[test]
    fn innermost_bracket_around_a_byte_is_found() {
        let outline = Outline::new(TEXT);
        let byte = TEXT.find("width_tiles").unwrap();
        assert_eq!(
            outline
                .group_around(byte)
                .map(|span| outline.text_at(&span)),
            Some("Town")
        );
        assert_eq!(outline.group_around(0), None);
    }

    #[test]
    fn deep_nesting_uses_no_stack() {
        let text = "Scenario(a: ".to_owned() + &"[".repeat(1 << 20);
        assert_eq!(Outline::new(&text).root_head(), Some("Scenario"));
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn any_text_has_an_outline_in_its_bounds(text in "[a-c0-9é:,()\\[\\]{}\"'#!/*r\\\\ \n.-]{0,60}", byte in 0_usize..70) {
            let outline = Outline::new(&text);
            for token in &outline.tokens {
                prop_assert!(text.get(token.span.clone()).is_some_and(|words| !words.is_empty()));
            }
            prop_assert!(text.get(outline.find(&ValuePath::root().field("a").item(1))).is_some());
            prop_assert!(outline.group_around(byte).is_none_or(|span| text.get(span).is_some()));
        }
    }
}
