//! Brackets that are not closed where they should be: the error is reported at the opening bracket.

use super::outline::{Outline, TextSpan, TokenKind};

/// Returns the bracket that should have been closed before the token at a byte, and the error text; `None` if that token can be
/// inside its bracket. The parser stops at the first token that cannot.
pub(super) fn unclosed_before(outline: &Outline<'_>, byte: usize) -> Option<(TextSpan, String)> {
    let nth = outline.token_from(byte)?;
    let token = outline.token(nth)?;
    let (opening, kind) = outline.bracket_around(token.span.start)?;
    let next = outline.token(nth + 1).map(|next| next.kind);
    let closing = match kind {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    };
    let words = outline.text_at(&token.span);
    let (is_wrong, what) = match token.kind {
        // A bracket of another kind closes this one.
        TokenKind::Mark(mark @ (b')' | b']' | b'}')) => {
            (mark != closing, format!("`{}`", char::from(mark)))
        }
        // `Ramp(from_s: 5, run: …, At(`: a list item in place of a field.
        TokenKind::Word if kind == b'(' && next == Some(TokenKind::Mark(b'(')) => {
            let is_first = outline.token(nth.checked_sub(1)?)?.kind == TokenKind::Mark(b'(');
            (
                !is_first && outline.has_open_bracket(),
                format!("`{words}(`"),
            )
        }
        // `crowds: [Crowd(…), script: […`: a field in place of a list item.
        TokenKind::Word if kind == b'[' && next == Some(TokenKind::Mark(b':')) => {
            (true, format!("`{words}:`"))
        }
        _ => return None,
    };
    let name = match outline.text_at(&opening) {
        "(" | "[" | "{" => outline.text_at(&opening).to_owned(),
        head => format!("{head}{}", char::from(kind)),
    };
    let message = format!("the bracket of `{name}` is not closed before {what}");
    is_wrong.then_some((opening, message))
}

#[cfg(test)]
mod tests {
    use crate::scenario::text::parse;

    #[track_caller]
    fn check(text: &str, expected: &str, underlined: &str) {
        let error = parse("t.ron", text).unwrap_err();
        let mistake = error.source_error().unwrap();
        let message = format!("{}:{}: {}", mistake.line, mistake.column, mistake.message);
        let words = &text[mistake.span.offset()..mistake.span.offset() + mistake.span.len()];
        assert_eq!(
            (message.as_str(), words),
            (expected, underlined),
            "for {text}"
        );
    }

    #[test]
    fn missing_bracket_is_reported_at_its_opening() {
        check(
            "Scenario(script: [Ramp(from_s: 1, until_s: 2, run: Login(tag: \"a\"),\n At(t_s: 1, run: Drain)])",
            "1:19: the bracket of `Ramp(` is not closed before `At(`",
            "Ramp",
        );
        check(
            "Scenario(crowds: [Crowd(count: 1), script: [At(t_s: 1, run: Drain)])",
            "1:18: the bracket of `[` is not closed before `script:`",
            "[",
        );
        check(
            "Scenario(crowds: [Crowd(count: 1], seed: 1)",
            "1:19: the bracket of `Crowd(` is not closed before `]`",
            "Crowd",
        );
        check(
            "Scenario(crowds: [Crowd(speed_m_s: \"3 km/h\")])",
            "1:36: expected a number in metres a second for `speed_m_s`, found `\"3 km/h\"`",
            "\"3 km/h\"",
        );
        check(
            "Scenario(crowds: [Crowd(speed: 3)])",
            "1:25: unknown field `speed`, did you mean `speed_m_s`?",
            "speed",
        );
    }
}
