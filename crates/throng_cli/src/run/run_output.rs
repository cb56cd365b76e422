//! What `--json` prints, and a page is drawn from: the report, and what it was measured on.

use serde::Serialize;

use crate::CliError;
use crate::machine::Machine;
use throng_scenario::Report;

/// A run's report with the machine that it ran on and the words that ran it.
#[derive(Serialize)]
pub(super) struct RunOutput<'a> {
    #[serde(flatten)]
    report: &'a Report,
    machine: Machine,
    /// The words of the command line, the program's own path left out.
    command: Vec<String>,
}

impl<'a> RunOutput<'a> {
    /// A report of this process.
    pub(super) fn new(report: &'a Report, machine: Machine) -> Self {
        let words = std::env::args_os().skip(1);
        Self {
            report,
            machine,
            command: std::iter::once("throng".to_owned())
                .chain(words.map(|word| word.to_string_lossy().into_owned()))
                .collect(),
        }
    }

    /// As text.
    pub(super) fn json(&self) -> Result<String, CliError> {
        serde_json::to_string_pretty(self).map_err(|error| CliError::new(error.to_string()))
    }
}
