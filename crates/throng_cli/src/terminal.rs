//! Common parts of subcommands: exit status, signals and terminal output.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::error::CliError;

/// How a subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CliStatus {
    /// Done, and every expectation holds.
    Done,
    /// An expectation failed or had nothing to check, or a cue could not run its action.
    Failed,
    /// Stopped by a signal, with the results so far; the exit code is 128 plus the signal number.
    Interrupted(u8),
    /// Invalid usage or input, which has been reported.
    InvalidInput,
}

impl From<CliStatus> for ExitCode {
    fn from(outcome: CliStatus) -> Self {
        match outcome {
            CliStatus::Done => Self::SUCCESS,
            CliStatus::Failed => Self::from(1),
            CliStatus::InvalidInput => Self::from(2),
            CliStatus::Interrupted(code) => Self::from(code),
        }
    }
}

/// Writes a line of data to stdout. A closed stdout, as with `| head`, is not an error.
pub(super) fn print(line: &str) -> Result<(), CliError> {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CliError::new(format!(
            "could not write to the standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes an error line to stderr.
pub(super) fn print_failure(line: &str) {
    // Errors are ignored: if stderr is closed, there is no way to report.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Set by SIGINT and SIGTERM: the command ends after its tick or query, and prints its results so far.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The exit code of the last signal; 0 before the first one.
static INTERRUPT_CODE: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// The exit code of a shell after Ctrl-C.
const SIGINT_CODE: u8 = 130;

/// The signals that request the end, with their exit codes.
const SIGNALS: [(i32, u8); 2] = [(SIGINT, SIGINT_CODE), (SIGTERM, 143)];

/// From now on, the first SIGINT or SIGTERM only requests the end; the second one ends the program at once.
pub(super) fn listen_for_interrupt() {
    for (signal, code) in SIGNALS {
        // If the handlers cannot be installed, signals end the program as usual. The order matters: the first signal must find the flag
        // unset.
        let _ = flag::register_conditional_shutdown(signal, code.into(), INTERRUPTED.clone())
            .and_then(|_| flag::register_usize(signal, INTERRUPT_CODE.clone(), code.into()))
            .and_then(|_| flag::register(signal, INTERRUPTED.clone()));
    }
}

/// From now on, SIGINT and SIGTERM only request the end, each time: the program ends its child processes first.
#[cfg(feature = "cluster")]
pub(super) fn listen_for_end() {
    for (signal, code) in SIGNALS {
        let _ = flag::register_usize(signal, INTERRUPT_CODE.clone(), code.into())
            .and_then(|_| flag::register(signal, INTERRUPTED.clone()));
    }
}

pub(super) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The status of an interrupted command.
pub(super) fn interrupted_status() -> CliStatus {
    let code = u8::try_from(INTERRUPT_CODE.load(Ordering::Relaxed));
    CliStatus::Interrupted(code.ok().filter(|&code| code > 0).unwrap_or(SIGINT_CODE))
}

pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(super) fn threads(count: usize) -> String {
    format!("{count} thread{}", if count == 1 { "" } else { "s" })
}

/// Maximum width of a printed line.
pub(super) const WIDTH: usize = 80;

/// Wraps a line at 80 columns, and indents continuation lines. A shorter line is unchanged. A word that is longer than a line is not split.
pub(super) fn wrapped(line: &str, indent: usize) -> String {
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    let mut text = String::new();
    let mut columns = 0;
    for word in line.split_inclusive(' ') {
        let wide = word.trim_end().chars().count();
        if columns + wide > WIDTH && columns > indent {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            columns = indent;
        }
        text.push_str(word);
        columns += word.chars().count();
    }
    text
}

/// A progress bar on a terminal; hidden elsewhere.
pub(super) fn progress(count: u64, what: &str, quiet: bool) -> ProgressBar {
    let target = if quiet || !std::io::stderr().is_terminal() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(count), target);
    // With a million ticks the bar has 50 columns, so that it fits a narrow window.
    if let Ok(style) = ProgressStyle::with_template(&bar_template(what)) {
        bar.set_style(style);
    }
    bar
}

fn bar_template(what: &str) -> String {
    format!("{{bar:14}} {what} {{pos}}/{{len}}, {{eta}} left")
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io;
    use std::sync::Mutex;

    use indicatif::TermLike;

    /// A terminal that records its output.
    #[derive(Debug, Default)]
    struct RecordingTerminal(Mutex<String>);

    impl TermLike for &'static RecordingTerminal {
        fn width(&self) -> u16 {
            // Wider than any bar, so that nothing is cut.
            200
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn long_line_is_wrapped_with_indent_and_keeps_all_words() {
        let line = format!("ok      {}", "a pair of words ".repeat(20));
        let line = line.trim_end();
        let text = wrapped(line, 8);
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        let is_set_in = |line: &str| line.starts_with("        ") && !line.starts_with("         ");
        assert!(text.lines().skip(1).all(is_set_in), "{text}");
        assert!(text.lines().count() == 5 && text.starts_with("ok      a pair"));
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&text), words(line));
        assert_eq!(wrapped("ok      short", 8), "ok      short");
        let long = "x".repeat(100);
        assert_eq!(wrapped(&long, 8), long);
    }

    #[test]
    fn progress_bar_of_a_million_ticks_fits_fifty_columns() {
        let terminal: &'static RecordingTerminal = Box::leak(Box::default());
        let target = ProgressDrawTarget::term_like(Box::new(terminal));
        let bar = ProgressBar::with_draw_target(Some(1_000_000), target);
        bar.set_style(ProgressStyle::with_template(&bar_template("tick")).unwrap());
        bar.set_position(999_999);
        bar.tick();
        let shown = terminal.0.lock().unwrap().clone();
        assert!(shown.contains("tick 999999/1000000"), "{shown:?}");
        let line = shown.trim();
        assert!(line.chars().count() <= 50, "{line:?}");
    }
}
