//! Parsing after an error, so that all errors of a text are reported at once.
//!
//! The field or list item with the error is replaced by spaces, and the rest is parsed again. So an unknown field hides no other
//! error. A missing comma is written into the space before the next token.

use super::outline::{Outline, TextSpan, TokenKind};

/// Maximum number of errors that are reported for one text.
pub(in crate::scenario) const ERRORS_MAX: usize = 20;

/// Replaces the field or list item at an error by spaces. Returns its span, and the text, which keeps its length and its lines.
/// `None` if the item is the whole text, or is blank already.
pub(in crate::scenario) fn without_entry(
    text: &str,
    error: &TextSpan,
) -> Option<(TextSpan, String)> {
    let entry = Outline::new(text).entry_at(error)?;
    let blank = |byte: u8| match byte {
        b'\n' | b'\r' => byte,
        _ => b' ',
    };
    let mut bytes = text.as_bytes().to_vec();
    let mut has_changed = false;
    for byte in &mut bytes[entry.clone()] {
        has_changed |= *byte != blank(*byte);
        *byte = blank(*byte);
    }
    // The text stays valid, since whole characters were replaced.
    let rest = String::from_utf8(bytes).ok().filter(|_| has_changed)?;
    Some((entry, rest))
}

/// The value after which a comma is missing, if the reader stopped at this token for it: the token begins a field, or an item of a list.
pub(super) fn value_before_comma(outline: &Outline<'_>, byte: usize) -> Option<TextSpan> {
    let nth = outline.token_from(byte)?;
    let token = outline.token(nth)?;
    let before = outline.token(nth.checked_sub(1)?)?;
    let is_colon_next =
        || outline.token(nth + 1).map(|next| next.kind) == Some(TokenKind::Mark(b':'));
    let (_, bracket) = outline.bracket_around(token.span.start)?;
    let begins_entry = match (bracket, token.kind) {
        (b'[', TokenKind::Word | TokenKind::Quoted | TokenKind::Mark(b'(' | b'[')) => true,
        (b'(', TokenKind::Word) | (b'{', TokenKind::Word | TokenKind::Quoted) => is_colon_next(),
        _ => false,
    };
    let ends_value = !matches!(
        before.kind,
        TokenKind::Mark(b'(' | b'[' | b'{' | b',' | b':')
    );
    (begins_entry && ends_value).then(|| before.span.clone())
}

/// Writes the comma that is missing before the token at an error into the space before it; the text keeps its length and its lines.
/// `None` when a comma would not be enough there, or when there is no space for it.
pub(in crate::scenario) fn with_comma(text: &str, error: &TextSpan) -> Option<String> {
    value_before_comma(&Outline::new(text), error.start)?;
    let space = error.start.checked_sub(1)?;
    let is_space = matches!(text.as_bytes().get(space), Some(b' ' | b'\t'));
    is_space.then(|| {
        let mut text = text.to_owned();
        text.replace_range(space..=space, ",");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_comma_is_written_before_a_field_or_an_item() {
        let fixed = |text: &str, words: &str| {
            let start = text.find(words).unwrap();
            with_comma(text, &(start..start + words.len()))
        };
        for (text, words, expected) in [
            ("A(a: 1\n  b: 2)", "b:", Some("A(a: 1\n ,b: 2)")),
            ("A(a: 1 // x\n  b: 2)", "b:", Some("A(a: 1 // x\n ,b: 2)")),
            ("A(a: [C(1) C(2)])", "C(2", Some("A(a: [C(1),C(2)])")),
            (
                "A(a: {\"x\": 1 \"y\": 2})",
                "\"y",
                Some("A(a: {\"x\": 1,\"y\": 2})"),
            ),
            // No space, no field, nothing before it.
            ("A(a: 1\nb: 2)", "b:", None),
            ("A(a: 1 5, b: 2)", "5", None),
            ("A( b: 2)", "b", None),
            ("A(a: 1, b: 2)", "b", None),
        ] {
            assert_eq!(fixed(text, words).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn wrong_field_or_item_is_replaced_by_spaces() {
        let cut = |text: &str, words: &str| {
            let start = text.find(words).unwrap();
            without_entry(text, &(start..start + words.len())).map(|(_, rest)| rest)
        };
        let text = "Scenario(name: \"é\", colour: Red(5, é: 1), seed: 7)";
        let expected = text.replace("colour: Red(5, é: 1),", &" ".repeat(22));
        assert_eq!(cut(text, "colour"), Some(expected.clone()));
        assert_eq!(cut(text, "Red"), Some(expected));
        let text = "Scenario(crowds: [Crowd(a: 1),\n Crowd(b: 2)])";
        assert_eq!(
            cut(text, "b"),
            Some("Scenario(crowds: [Crowd(a: 1),\n Crowd(    )])".to_owned())
        );
        assert_eq!(
            cut(text, "Crowd"),
            Some(text.replacen("Crowd(a: 1),", &" ".repeat(12), 1))
        );
        assert_eq!(cut("Scenario(x)", "Scenario"), None);
        assert_eq!(without_entry("", &(0..0)), None);
    }
}
