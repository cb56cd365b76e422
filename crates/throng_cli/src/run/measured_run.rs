//! A run that is repeated with other values of its parameters. Its only output is its report.

use super::Run;
use crate::machine::Machine;
use crate::{CliError, CliStatus, Printer, cores, is_interrupted, progress};
use throng::memory::process_memory;
use throng_scenario::crowd::ATTRIBUTE_NAMES;
use throng_scenario::{
    self as scenario, Behaviours, LoadedScenario, Report, RunOptions, ScenarioRun as Playing,
    TimingChecks,
};

/// The result of a run with these parameter values.
pub(super) struct MeasuredRun {
    pub report: Report,
    pub machine: Machine,
}

impl Run {
    /// Loads and validates the scenario with these parameter values. If it is invalid, prints the errors and returns the exit status.
    pub(super) fn load_measured(
        &self,
        set: &[(String, String)],
    ) -> Result<Result<LoadedScenario, CliStatus>, CliError> {
        let mut loaded = scenario::load_with(&self.scenario, set)?;
        if let Some(duration_s) = self.duration {
            loaded.scenario.duration_s = duration_s;
        }
        let review = loaded.review(ATTRIBUTE_NAMES, &Behaviours::default());
        if review.errors.is_empty() {
            return Ok(Ok(loaded));
        }
        let printer = Printer::for_stderr();
        let errors = review.errors.into_iter().map(CliError::from);
        errors.for_each(|error| printer.error(&error));
        Ok(Err(CliStatus::InvalidInput))
    }

    /// Runs the scenario; `None` if it was interrupted.
    pub(super) fn measure(
        &self,
        loaded: LoadedScenario,
        timing_checks: TimingChecks,
        quiet: bool,
    ) -> Result<Option<MeasuredRun>, CliError> {
        let options = RunOptions {
            seed: self.seed,
            map: self.map.as_deref().map(super::named_map).transpose()?,
            ticks: self.ticks,
            threads: self.threads.map_or_else(cores, usize::from),
            timing_checks,
            memory: Some(process_memory),
            ..RunOptions::default()
        };
        let mut playing = Playing::new(loaded, options)?;
        let machine = Machine::current(playing.threads());
        let bar = progress(playing.ticks(), "tick", quiet);
        let failed = |error| super::write_error(&error);
        while !is_interrupted() && playing.step().map_err(failed)? {
            if playing.tick().is_multiple_of(20) {
                bar.set_position(playing.tick());
            }
        }
        bar.finish_and_clear();
        let report = playing.finish_unless(is_interrupted).map_err(failed)?;
        let is_whole = report.interrupted.is_none();
        Ok(is_whole.then_some(MeasuredRun { report, machine }))
    }
}
