//! What all subcommands share: how they end, and how they meet a terminal.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::report::Failure;

/// How a subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Done, and every expectation holds.
    Done,
    /// An expectation does not hold.
    Unmet,
    /// Bad usage or bad input, which has been told.
    Bad,
}

impl From<ExitStatus> for ExitCode {
    fn from(outcome: ExitStatus) -> Self {
        match outcome {
            ExitStatus::Done => Self::SUCCESS,
            ExitStatus::Unmet => Self::from(1),
            ExitStatus::Bad => Self::from(2),
        }
    }
}

/// Writes a line of data to stdout. That nobody reads it any more, as behind `| head`, is no error.
pub(super) fn print(line: &str) -> Result<(), Failure> {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "could not write to the standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Set by Ctrl-C: what runs ends after its tick or its query, with what it has.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C only asks to end.
pub(super) fn listen_for_interrupt() {
    // An embedder's handler, if one is there already, stays.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
}

pub(super) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(super) fn threads(count: usize) -> String {
    format!("{count} thread{}", if count == 1 { "" } else { "s" })
}

/// A bar on a terminal; nothing elsewhere.
pub(super) fn progress(count: u64, what: &str, quiet: bool) -> ProgressBar {
    let target = if quiet || !std::io::stderr().is_terminal() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(count), target);
    if let Ok(style) =
        ProgressStyle::with_template(&format!("{{bar:40}} {what} {{pos}}/{{len}}, {{eta}} left"))
    {
        bar.set_style(style);
    }
    bar
}
