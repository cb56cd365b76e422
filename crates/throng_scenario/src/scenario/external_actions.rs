//! External actions: script actions that an operator starts while a scenario runs. They are parsed and validated like those of a
//! file, and run at a fixed point in the tick, after the script.
//!
//! With external actions a run is no longer determined by its scenario and seed: see [`ExternalActions::run_count`].

use std::collections::VecDeque;

use super::behaviours::Behaviours;
use super::schema::{Action, Scenario};
use super::text::parse_action;
use super::validate::check_external_action;
use crate::crowd::ATTRIBUTE_NAMES;

/// Maximum number of pending external actions, and of unread outcomes.
pub const EXTERNAL_ACTIONS_MAX: usize = 16;

/// Maximum length of an action's text, in bytes.
pub const EXTERNAL_ACTION_BYTES_MAX: usize = 1_000;

/// The outcome of an external action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalActionResult {
    /// The text of the action.
    pub text: String,
    /// The tick in which it ran.
    pub tick: u64,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// Pending external actions.
#[derive(Debug, Default)]
pub(super) struct ExternalActions {
    queue: VecDeque<(String, Action)>,
    results: VecDeque<ExternalActionResult>,
    /// Number of actions run so far.
    pub run_count: u64,
}

impl ExternalActions {
    /// Queues a [parsed](read_external_action) action for the next tick; returns the error text if the queue is full.
    pub fn enqueue(&mut self, text: &str, action: Action) -> Result<(), String> {
        if self.queue.len() >= EXTERNAL_ACTIONS_MAX {
            return Err(format!(
                "{EXTERNAL_ACTIONS_MAX} actions already wait for the next tick"
            ));
        }
        self.queue.push_back((text.to_owned(), action));
        Ok(())
    }

    /// The next action to run in this tick.
    pub fn next(&mut self) -> Option<(String, Action)> {
        self.queue.pop_front()
    }

    /// Records an outcome; if too many are unread, drops the oldest.
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

    /// Takes the outcomes since the last call.
    pub fn take_results(&mut self) -> Vec<ExternalActionResult> {
        self.results.drain(..).collect()
    }
}

/// Parses and validates an action; returns the error text if it is invalid.
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
            "`OpenScene` is not available here: it can name a map file, which only a scenario may do".into(),
        );
    }
    check_external_action(scenario, &action, ATTRIBUTE_NAMES, behaviours)?;
    Ok(action)
}
