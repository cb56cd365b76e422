//! Parsing after an error, so that all errors of a text are reported at once.
//!
//! The field or list item with the error is replaced by spaces, and the rest is parsed again. So an unknown field hides no other
//! error.

use super::outline::{Outline, TextSpan};

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

#[cfg(test)]
mod tests {
    use super::*;

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
