//! The common format of errors: the message, `file:line:column`, the line, and the fix.
//!
//! ```text
//! error: unknown field `view_capp`, did you mean `view_cap`?
//!   --> siege.ron:4:35
//!    |
//!  4 |     scenes: [ Scene(name: "keep", view_capp: 100) ]
//!    |                                   ^^^^^^^^^
//!    = help: …
//! ```
//! Of a long line only the part around the error is shown. Control characters of the line are shown as spaces, so that the carets stay
//! below the error; those of names and messages are shown as escapes, so that no file can control the terminal.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::path::Path;

use clap::builder::styling::{AnsiColor, Style};

use super::escape::{escaped, is_control};
use throng::map::MapError;
use throng::nav::ScenError;
use throng_scenario::{ScenarioError, SourceError};

/// An error to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CliError {
    message: String,
    excerpt: Option<Excerpt>,
    help: Option<String>,
}

/// The line with the error, and the part of it that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    file: String,
    /// Counted from 1.
    line: usize,
    /// In characters, counted from 1.
    column: usize,
    /// The whole line; empty if it is not known.
    text: String,
    /// Number of wrong characters from the column on.
    length: usize,
}

impl std::fmt::Display for CliError {
    /// Only the message, for the log.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&escaped(&self.message))
    }
}

impl CliError {
    /// An error without a location.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// The same with a line that says what to do.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..self
        }
    }

    /// An error for a new file that could not be written.
    pub(super) fn not_written(file: &Path, error: &io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                "the file already exists and was not changed".to_owned()
            }
            _ => error.to_string(),
        };
        Self::new(format!("could not write {}: {why}", file.display()))
    }

    /// An error at a part of a text. The message shows `file` as the name of the text.
    #[cfg(feature = "cluster")]
    pub(super) fn in_text(
        message: impl Into<String>,
        (file, text): (&str, &str),
        (line, column, length): (usize, usize, usize),
    ) -> Self {
        let excerpt = Excerpt {
            file: file.to_owned(),
            line,
            column,
            text: text
                .lines()
                .nth(line.saturating_sub(1))
                .unwrap_or_default()
                .to_owned(),
            length,
        };
        Self {
            message: message.into(),
            excerpt: Some(excerpt),
            help: None,
        }
    }

    /// An error at a line and column of a file. The line is read from the file again, up to a size limit.
    fn in_file(message: &str, file: &str, (line, column): (u32, u32)) -> Self {
        // The message begins with the location, which is shown below it.
        let place = format!("{file}:{line}:{column}: ");
        Self {
            message: message_with_file(message.strip_prefix(&place).unwrap_or(message), file),
            excerpt: Some(Excerpt {
                file: file.to_owned(),
                line: line as usize,
                column: column as usize,
                text: line_of_file(file, line as usize).unwrap_or_default(),
                length: 1,
            }),
            help: None,
        }
    }
}

impl From<&SourceError> for CliError {
    fn from(error: &SourceError) -> Self {
        let text = error.text.inner();
        let line = text.split('\n').nth(error.line - 1).unwrap_or_default();
        let wrong = text
            .get(error.span.offset()..error.span.offset() + error.span.len())
            .unwrap_or_default();
        Self {
            message: error.message.clone(),
            excerpt: Some(Excerpt {
                file: error.file().to_owned(),
                line: error.line,
                column: error.column,
                text: line.to_owned(),
                length: wrong.lines().next().unwrap_or_default().chars().count(),
            }),
            help: error.help.clone(),
        }
    }
}

impl From<ScenarioError> for CliError {
    fn from(error: ScenarioError) -> Self {
        if let Some(error) = error.source_error() {
            return Self::from(error);
        }
        let help = miette::Diagnostic::help(&error).map(|help| help.to_string());
        Self {
            message: error.to_string(),
            excerpt: None,
            help,
        }
    }
}

impl From<MapError> for CliError {
    fn from(error: MapError) -> Self {
        match (error.file(), error.line_column()) {
            (Some(file), Some(place)) => Self::in_file(&error.to_string(), file, place),
            (file, _) => Self::new(message_with_file(
                &error.to_string(),
                file.unwrap_or_default(),
            )),
        }
    }
}

impl From<ScenError> for CliError {
    fn from(error: ScenError) -> Self {
        Self::in_file(&error.to_string(), error.file(), error.location())
    }
}

/// A message that contains a file name, with line breaks escaped.
fn message_with_file(message: &str, file: &str) -> String {
    if file.is_empty() {
        return message.to_owned();
    }
    message.replace(file, &escaped(file))
}

/// A line of a text file, if it is within the first 64 MiB.
fn line_of_file(file: &str, line: usize) -> Option<String> {
    use std::io::{BufRead, BufReader, Read};
    const READ_MAX: u64 = 64 << 20;
    let reader = BufReader::new(std::fs::File::open(file).ok()?.take(READ_MAX));
    let bytes = reader.split(b'\n').nth(line - 1)?.ok()?;
    Some(
        String::from_utf8_lossy(&bytes)
            .trim_end_matches('\r')
            .to_owned(),
    )
}

/// Prints errors on stderr.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    color: bool,
}

/// Maximum number of characters of a source line, so that they fit 80 columns with the line's number.
const WIDTH_MAX: usize = 72;

impl Printer {
    /// For stderr: in colour on a terminal, unless `NO_COLOR` is set.
    #[must_use]
    pub fn for_stderr() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            color: std::io::stderr().is_terminal() && !no_color() && !dumb,
        }
    }

    /// Whether colours are used.
    #[must_use]
    pub const fn is_colored(&self) -> bool {
        self.color
    }

    /// Prints an error.
    pub fn error(&self, failure: &CliError) {
        // Errors are ignored: if stderr is closed, there is no way to report.
        let _ = std::io::stderr()
            .lock()
            .write_all(self.render(failure).as_bytes());
    }

    /// Prints a warning.
    pub fn warning(&self, doubt: &CliError) {
        let yellow = AnsiColor::Yellow.on_default().bold();
        let text = self.render_as("warning:", yellow, doubt);
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// The text of an error, in colour if colours are used.
    #[must_use]
    pub fn render(&self, failure: &CliError) -> String {
        self.render_as("error:", AnsiColor::Red.on_default().bold(), failure)
    }

    fn render_as(&self, word: &str, style: Style, failure: &CliError) -> String {
        let blue = AnsiColor::Blue.on_default().bold();
        let mut out = format!(
            "{} {}\n",
            self.paint(style, word),
            escaped(failure.message.trim_end())
        );
        let mut margin = 0;
        if let Some(excerpt) = &failure.excerpt {
            let number = excerpt.line.to_string();
            margin = number.len() + 1;
            let Excerpt { line, column, .. } = excerpt;
            let file = escaped(&excerpt.file);
            let arrow = self.paint(blue, "-->");
            let _ = writeln!(
                out,
                "{:width$}{arrow} {file}:{line}:{column}",
                "",
                width = margin
            );
            if !excerpt.text.trim().is_empty() {
                let (text, caret) = window(excerpt);
                let bar = self.paint(blue, "|");
                let _ = writeln!(out, "{:margin$} {bar}", "");
                let _ = writeln!(out, " {} {bar} {text}", self.paint(blue, &number));
                let _ = writeln!(out, "{:margin$} {bar} {}", "", self.paint(style, &caret));
            }
        }
        if let Some(help) = &failure.help {
            let _ = writeln!(
                out,
                "{:margin$} {} help: {}",
                "",
                self.paint(blue, "="),
                escaped(help)
            );
        }
        out
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.color {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// Whether the user wants no colours: <https://no-color.org>.
pub(super) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The part of a line around the error, and the line of carets below it.
fn window(excerpt: &Excerpt) -> (String, String) {
    let letters: Vec<char> = excerpt
        .text
        .chars()
        .map(|letter| if is_control(letter) { ' ' } else { letter })
        .collect();
    let letters = &letters[..letters
        .iter()
        .rposition(|letter| *letter != ' ')
        .map_or(0, |last| last + 1)];
    let wrong = (excerpt.column - 1).min(letters.len());
    let length = excerpt.length.clamp(1, WIDTH_MAX / 2);
    let start = if letters.len() <= WIDTH_MAX || wrong + length <= WIDTH_MAX {
        0
    } else {
        (wrong + length)
            .min(letters.len())
            .saturating_sub(WIDTH_MAX * 3 / 4)
    };
    let end = letters.len().min(start + WIDTH_MAX);
    let before = if start > 0 { "…" } else { "" };
    let after = if end < letters.len() { "…" } else { "" };
    let text: String = letters[start..end].iter().collect();
    let indent = wrong - start + before.chars().count();
    (
        format!("{before}{text}{after}"),
        format!("{:indent$}{}", "", "^".repeat(length)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_scenario::parse;

    const PLAIN: Printer = Printer { color: false };

    #[test]
    fn error_is_shown_with_location_line_and_caret() {
        let error = parse(
            "siege.ron",
            "Scenario(\n    scenes: [Scene(name: \"keep\", view_capp: 100)],\n)",
        )
        .unwrap_err();
        let shown = PLAIN.render(&error.into());
        let expected = "error: unknown field `view_capp`, did you mean `view_cap`?
  --> siege.ron:2:34
   |
 2 |     scenes: [Scene(name: \"keep\", view_capp: 100)],
   |                                  ^^^^^^^^^
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn long_line_is_cut_around_the_error() {
        let text = format!(
            "Scenario({}colour: 1{})",
            " ".repeat(100_000),
            " ".repeat(100_000)
        );
        let shown = PLAIN.render(&parse("t.ron", &text).unwrap_err().into());
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().take(5).all(|line| line.chars().count() < 120));
        let caret = lines[4].chars().position(|letter| letter == '^').unwrap();
        let word: String = lines[3].chars().skip(caret).take(6).collect();
        assert_eq!(word, "colour");
    }

    #[test]
    fn colours_are_used_only_on_request() {
        let failure = CliError::new("no");
        assert_eq!(PLAIN.render(&failure), "error: no\n");
        assert!(Printer { color: true }.render(&failure).contains('\u{1b}'));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let shown = PLAIN.render(
            &parse("t.ron", "Scenario(\u{1b}[2Jcolour: 1)")
                .unwrap_err()
                .into(),
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let failure = CliError::new("no scenario `a\nb\u{9b}2J\u{202e}c`");
        let expected = "error: no scenario `a\\nb\\u{9b}2J\\u{202e}c`\n";
        assert_eq!(PLAIN.render(&failure), expected);
    }
}
