//! Errors of scenarios: the location in the file, what was found, and what was expected.

use std::ops::Range;
use std::path::PathBuf;

use miette::{Diagnostic, NamedSource, SourceSpan};
use thiserror::Error;

use super::value_path::ValidationError;

/// Why a scenario could not be used.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Neither a file nor a built-in scenario has this name.
    #[error("no scenario `{source_name}`: neither a file nor a built-in scenario{hint}")]
    NotFound {
        /// The requested name.
        source_name: String,
        /// `, did you mean …` or nothing.
        hint: String,
        /// The names of the built-in scenarios.
        #[help]
        help: String,
    },
    /// The file could not be read.
    #[error("could not read {path}: {source}", path = path.display())]
    Read {
        /// The path of the file that was to be read.
        path: PathBuf,
        /// The system error.
        source: std::io::Error,
    },
    /// The file is larger than any scenario.
    #[error("{path}: file has {found_bytes} bytes, expected at most {bytes_max}", path = path.display())]
    TooLarge {
        /// The path of the file that was to be read.
        path: PathBuf,
        /// How many bytes the file has, or how many had been read when it grew too large.
        found_bytes: u64,
        /// The largest size that is read.
        bytes_max: u64,
    },
    /// A value was given for a parameter that does not exist, or that does not accept it.
    #[error("{message}")]
    Parameter {
        /// What was found and what was expected.
        message: String,
        /// The existing parameters.
        #[help]
        help: String,
    },
    /// The packet capture of a run could not be started.
    #[error("could not write the capture: {source}")]
    Capture {
        /// The system error.
        source: std::io::Error,
    },
    /// The tick table of a run could not be started.
    #[error("could not write the ticks as CSV: {source}")]
    Csv {
        /// The system error.
        source: std::io::Error,
    },
    /// The text cannot be read as a scenario: broken syntax, an unknown field, a value of the wrong type.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Syntax(Box<SourceError>),
    /// The text can be parsed and is invalid: an unknown name, a number out of range.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Invalid(Box<SourceError>),
    /// A map of the scenario cannot be read or generated.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Map(Box<SourceError>),
}

impl ScenarioError {
    /// The location in a scenario's text, if the error has one.
    #[must_use]
    pub fn source_error(&self) -> Option<&SourceError> {
        match self {
            Self::Syntax(mistake) | Self::Invalid(mistake) | Self::Map(mistake) => Some(mistake),
            Self::NotFound { .. }
            | Self::Read { .. }
            | Self::TooLarge { .. }
            | Self::Parameter { .. }
            | Self::Capture { .. }
            | Self::Csv { .. } => None,
        }
    }
}

/// How the message begins if a comma may be missing.
const COMMA_EXPECTED: &str = "expected `,` or ";

/// An error at one place of a scenario's text.
#[derive(Debug, Error, Diagnostic)]
#[error("{message}")]
pub struct SourceError {
    /// What was found and what was expected.
    pub message: String,
    /// Further help, such as the known names.
    #[help]
    pub help: Option<String>,
    /// The text, and the name of its file or built-in.
    #[source_code]
    pub text: NamedSource<String>,
    /// The bytes that are wrong.
    #[label]
    pub span: SourceSpan,
    /// The line of the first of them, from 1.
    pub line: usize,
    /// The column of the first of them in characters, from 1.
    pub column: usize,
}

impl SourceError {
    /// An error at a span of a text. A span beyond the text, or within a character, is moved back to a valid one.
    pub(in crate::scenario) fn new(
        file: &str,
        text: &str,
        span: Range<usize>,
        problem: impl Into<(String, Option<String>)>,
    ) -> Self {
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end).max(start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (message, help) = problem.into();
        Self {
            message,
            help,
            text: NamedSource::new(file, text.to_owned()),
            span: (start..end).into(),
            line: 1 + before.bytes().filter(|&byte| byte == b'\n').count(),
            column: 1 + before[line_start..].chars().count(),
        }
    }

    /// Whether the parser expected a comma, and everything before it is valid.
    pub(in crate::scenario) fn is_missing_comma(&self) -> bool {
        self.message.starts_with(COMMA_EXPECTED)
    }

    /// The words that it points at; if they are the head of a value in parentheses, the whole value.
    #[must_use]
    pub fn marked_value(&self) -> &str {
        let text = self.text.inner();
        let start = self.span.offset();
        let (mut end, mut depth, mut is_text) = (start + self.span.len(), 0, false);
        let rest = text.get(end..).unwrap_or_default();
        if !rest.trim_start().starts_with('(') {
            return text.get(start..end).unwrap_or_default();
        }
        let mut letters = text.get(start..).unwrap_or_default().char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' if is_text => _ = letters.next(),
                '"' => is_text = !is_text,
                '(' | '[' | '{' if !is_text => depth += 1,
                ')' | ']' | '}' if !is_text => depth -= 1,
                _ => continue,
            }
            end = end.max(start + at + letter.len_utf8());
            if depth <= 0 && !is_text {
                break;
            }
        }
        text.get(start..end).unwrap_or_default()
    }

    /// The name of the file or built-in.
    #[must_use]
    pub fn file(&self) -> &str {
        self.text.name()
    }
}

impl From<ValidationError> for (String, Option<String>) {
    fn from(problem: ValidationError) -> Self {
        (problem.message, problem.help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_value_is_the_whole_value_or_word() {
        let text = r#"[At(t_s: 1, run: Say("a)\")é")), Sharp]"#;
        let value = |span: Range<usize>| {
            let mistake = SourceError::new("t.ron", text, span, ("m".to_owned(), None));
            mistake.marked_value().to_owned()
        };
        assert_eq!(value(1..3), r#"At(t_s: 1, run: Say("a)\")é"))"#);
        let word = text.find("Sharp").unwrap();
        assert_eq!(value(word..word + 5), "Sharp");
        assert_eq!(value(text.len()..text.len()), "");
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let text = "é\nab é(x";
        let at = |start: usize| {
            let mistake = SourceError::new("t.ron", text, start..start + 1, ("m".to_owned(), None));
            (mistake.line, mistake.column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(text.find("é(").unwrap()), (2, 4));
        assert_eq!(at(text.find('(').unwrap()), (2, 5));
        assert_eq!(at(1), (1, 1));
        assert_eq!(at(1000), (2, 7));
    }
}
