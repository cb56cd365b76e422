//! Colours on stdout: only on a terminal, and only if the user wants them.

use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::builder::styling::{AnsiColor, Style};

use super::error::no_color;

/// A failure line, red if stdout is a terminal and `NO_COLOR` is not set.
pub(super) fn failure_text(line: &str) -> String {
    static IS_COLORED: OnceLock<bool> = OnceLock::new();
    let is_colored = IS_COLORED.get_or_init(|| wants_color(std::io::stdout().is_terminal()));
    painted(AnsiColor::Red.on_default().bold(), line, *is_colored)
}

/// Whether output to a stream is coloured.
fn wants_color(is_terminal: bool) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    is_terminal && !no_color() && !is_dumb
}

fn painted(style: Style, text: &str, is_colored: bool) -> String {
    if is_colored {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_red_on_a_terminal_only() {
        let red = AnsiColor::Red.on_default();
        let shown = painted(red, "BROKEN", true);
        assert!(
            shown.starts_with("\u{1b}[31m") && shown.ends_with("\u{1b}[0m"),
            "{shown:?}"
        );
        assert_eq!(painted(red, "BROKEN", false), "BROKEN");
        assert!(!wants_color(false));
    }
}
