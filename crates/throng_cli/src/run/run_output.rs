//! The output of `--json` and input of a page: the report, and the machine.

use serde::Serialize;

use crate::CliError;
use crate::machine::Machine;
use throng_scenario::Report;

/// A run's report with its machine and command line.
#[derive(Serialize)]
pub(super) struct RunOutput<'a> {
    #[serde(flatten)]
    report: &'a Report,
    machine: Machine,
    /// The command line arguments, without the path of the program.
    command: Vec<String>,
}

impl<'a> RunOutput<'a> {
    /// The output for a report of this process.
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

    /// The output as JSON text.
    pub(super) fn json(&self) -> Result<String, CliError> {
        serde_json::to_string_pretty(self).map_err(|error| CliError::new(error.to_string()))
    }
}
