//! Cues from outside: an operator's, while the scenario plays. They are a script's actions, read and checked as those of a file
//! are, and run at one place in the tick, behind the script's own.
//!
//! A run that took one is not the run of its scenario and seed any more: [`ExternalActions::run_count`] tells.

use std::collections::VecDeque;

use super::behaviours::Behaviours;
use super::schema::{Action, Scenario};
use super::text::parse_action;
use super::validate::check_external_action;
use crate::crowd::ATTRIBUTE_NAMES;

/// Cues from outside that wait for the next tick, and outcomes that wait to be read, at most.
pub const EXTERNAL_ACTIONS_MAX: usize = 16;

/// The longest text of one, in bytes.
pub const EXTERNAL_ACTION_BYTES_MAX: usize = 1_000;

/// What came of a cue from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalActionResult {
    /// The cue as it was given.
    pub text: String,
    /// The tick in which it ran.
    pub tick: u64,
    /// What it could not do, if anything.
    pub error: Option<String>,
}

/// Cues from outside, on their way.
#[derive(Debug, Default)]
pub(super) struct ExternalActions {
    queue: VecDeque<(String, Action)>,
    results: VecDeque<ExternalActionResult>,
    /// How many ran so far.
    pub run_count: u64,
}

impl ExternalActions {
    /// Lets an action run in the next tick that was [read](read_cue) from a text; what is wrong if it cannot wait for that.
    pub fn enqueue(&mut self, text: &str, action: Action) -> Result<(), String> {
        if self.queue.len() >= EXTERNAL_ACTIONS_MAX {
            return Err(format!(
                "{EXTERNAL_ACTIONS_MAX} actions already wait for the next tick"
            ));
        }
        self.queue.push_back((text.to_owned(), action));
        Ok(())
    }

    /// The next to run in this tick.
    pub fn next(&mut self) -> Option<(String, Action)> {
        self.queue.pop_front()
    }

    /// Takes note of one that ran; of outcomes that nobody reads the oldest go.
    pub fn record(&mut self, text: String, tick: u64, fault: Option<String>) {
        tracing::info!(tick, action = text, error = fault, "external action ran");
        self.run_count += 1;
        if self.results.len() == EXTERNAL_ACTIONS_MAX {
            self.results.pop_front();
        }
        self.results.push_back(ExternalActionResult {
            text,
            tick,
            error: fault,
        });
    }

    /// Takes the outcomes since the last time.
    pub fn take_results(&mut self) -> Vec<ExternalActionResult> {
        self.results.drain(..).collect()
    }
}

/// Reads and checks an action; what is wrong with it.
pub(super) fn read_external_action(
    behaviours: &Behaviours,
    scenario: &Scenario,
    text: &str,
) -> Result<Action, String> {
    if text.len() > EXTERNAL_ACTION_BYTES_MAX {
        let bytes = text.len();
        return Err(format!(
            "expected at most {EXTERNAL_ACTION_BYTES_MAX} bytes, found {bytes}"
        ));
    }
    let action = parse_action(text)?;
    if matches!(action, Action::OpenScene(_)) {
        return Err(
            "expected another action: a scene that is opened may name a file, which only a scenario may".into(),
        );
    }
    check_external_action(scenario, &action, ATTRIBUTE_NAMES, behaviours)?;
    Ok(action)
}
