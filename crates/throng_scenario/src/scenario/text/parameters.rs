//! A value with a name in front, such as `Wander(radius_m: 5)`, whose type depends on the name: it is stored as text and parsed
//! later, with errors that still point into it.

use serde::de::DeserializeOwned;

use super::outline::{Outline, TextSpan};
use super::syntax::read_value;
use super::value_path::{ValidationError, ValuePath};

/// The name in front of a value; `None` if there is none.
pub fn name(text: &str) -> Option<&str> {
    let span = name_span(text)?;
    text.get(span)
}

/// Parses the parameters of a value; `place` is its path.
///
/// # Errors
/// A [`ValidationError`] with the span of the error, relative to the start of the name, where the value is in its file. If a field
/// is missing, it is the span of the name.
pub fn read<T: DeserializeOwned>(text: &str, place: &ValuePath) -> Result<T, ValidationError> {
    let name = name_span(text).unwrap_or(0..0);
    let (before, after) = text.split_at(name.end);
    // Parses the brackets alone, at their position in the text, since the type may have another name in code.
    let has_brackets = Outline::new(text).root_head().is_some();
    let brackets = if has_brackets {
        " ".repeat(before.len()) + after
    } else {
        "()".to_owned()
    };
    read_value(&brackets, &Outline::new(&brackets)).map_err(|wrong| {
        let is_within = has_brackets && wrong.span.start > name.end;
        let span = if is_within { wrong.span } else { name.clone() };
        // A comment may stand before the name.
        let start = span.start - name.start;
        ValidationError {
            span: Some(start..span.end - name.start),
            help: wrong.help,
            ..ValidationError::new(place.clone(), wrong.message)
        }
    })
}

fn name_span(text: &str) -> Option<TextSpan> {
    let outline = Outline::new(text);
    let span = outline.root_span();
    let words = outline.text_at(&span);
    words
        .starts_with(|first: char| first.is_alphabetic() || first == '_')
        .then_some(span)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        #[serde(default)]
        count: u8,
        size_m: Option<f32>,
    }

    fn read_error(text: &str) -> (String, &str) {
        let problem = read::<Named>(text, &ValuePath::root()).unwrap_err();
        (problem.message, &text[problem.span.unwrap()])
    }

    #[test]
    fn value_is_read_by_its_brackets_for_any_name() {
        let expected = Named {
            count: 3,
            size_m: Some(1.5),
        };
        let text = "Any /* comment */ (count: 3, size_m: 1.5,)";
        assert_eq!(read::<Named>(text, &ValuePath::root()), Ok(expected));
        assert_eq!(name(text), Some("Any"));
        let plain = Named {
            count: 0,
            size_m: None,
        };
        assert_eq!(read::<Named>("Any", &ValuePath::root()), Ok(plain));
        for nameless in ["", "5", "(count: 3)", "\"Any\"", "[Any]", "-Any"] {
            assert_eq!(name(nameless), None, "{nameless}");
        }
    }

    #[test]
    fn comment_before_the_name_moves_no_span() {
        let comment = format!("/* {} */ ", "long ".repeat(20_000));
        let text = format!("{comment}Any(count: 3, sise_m: 4)");
        let problem = read::<Named>(&text, &ValuePath::root()).unwrap_err();
        let from_name = &text[comment.len()..];
        assert_eq!(&from_name[problem.span.unwrap()], "sise_m");
        let missing = format!("{comment}Any(5)");
        let problem = read::<Named>(&missing, &ValuePath::root()).unwrap_err();
        assert!(problem.span.unwrap().end <= missing.len() - comment.len());
    }

    #[test]
    fn error_span_is_the_wrong_value() {
        let (message, words) = read_error("Any(count: 3, sise_m: 4)");
        assert_eq!(words, "sise_m");
        assert!(message.contains("did you mean `size_m`?"), "{message}");
        let (message, words) = read_error("Anyé(\n  count: 300)");
        assert_eq!(
            (message.as_str(), words),
            ("`300` is out of range for `count`", "300")
        );
        let (message, words) = read_error("Any(count: \"five\")");
        assert_eq!(words, "\"five\"");
        assert!(message.starts_with("expected a whole number"), "{message}");
    }

    #[test]
    fn missing_field_is_reported_at_the_name() {
        #[derive(Debug, Deserialize)]
        struct Needy {
            #[expect(dead_code, reason = "it is missing")]
            count: u8,
        }
        for text in ["Any", "Any()"] {
            let problem = read::<Needy>(text, &ValuePath::root()).unwrap_err();
            assert_eq!(problem.message, "the field `count` of `Needy` is missing");
            assert_eq!(&text[problem.span.unwrap()], "Any");
        }
    }
}
