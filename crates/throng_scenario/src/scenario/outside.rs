//! Cues from outside: an operator's, while the scenario plays. They are a script's actions, read and checked as those of a file
//! are, and run at one place in the tick, behind the script's own.
//!
//! A run that took one is not the run of its scenario and seed any more: [`ExternalActions::ran`] tells.

use std::collections::VecDeque;

use super::behaviours::Behaviours;
use super::schema::{Action, Scenario};
use super::text::parse_action;
use super::validate::check_extra;
use crate::crowd::ATTRIBUTE_NAMES;

/// Cues from outside that wait for the next tick, and outcomes that wait to be read, at most.
pub const OUTSIDE_CUES_MAX: usize = 16;

/// The longest text of one, in bytes.
pub const OUTSIDE_CUE_BYTES_MAX: usize = 1_000;

/// What came of a cue from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalActionResult {
    /// The cue as it was given.
    pub text: String,
    /// The tick in which it ran.
    pub tick: u64,
    /// What it could not do, if anything.
    pub fault: Option<String>,
}

/// Cues from outside, on their way.
#[derive(Debug, Default)]
pub(super) struct ExternalActions {
    waiting: VecDeque<(String, Action)>,
    outcomes: VecDeque<ExternalActionResult>,
    /// How many ran so far.
    pub ran: u64,
}

impl ExternalActions {
    /// Lets an action run in the next tick that was [read](read_cue) from a text; what is wrong if it cannot wait for that.
    pub fn ask(&mut self, text: &str, action: Action) -> Result<(), String> {
        if self.waiting.len() >= OUTSIDE_CUES_MAX {
            return Err(format!(
                "{OUTSIDE_CUES_MAX} actions already wait for the next tick"
            ));
        }
        self.waiting.push_back((text.to_owned(), action));
        Ok(())
    }

    /// The next to run in this tick.
    pub fn next(&mut self) -> Option<(String, Action)> {
        self.waiting.pop_front()
    }

    /// Takes note of one that ran; of outcomes that nobody reads the oldest go.
    pub fn note(&mut self, text: String, tick: u64, fault: Option<String>) {
        tracing::info!(tick, action = text, error = fault, "external action ran");
        self.ran += 1;
        if self.outcomes.len() == OUTSIDE_CUES_MAX {
            self.outcomes.pop_front();
        }
        self.outcomes
            .push_back(ExternalActionResult { text, tick, fault });
    }

    /// Takes the outcomes since the last time.
    pub fn take_outcomes(&mut self) -> Vec<ExternalActionResult> {
        self.outcomes.drain(..).collect()
    }
}

/// Reads and checks an action; what is wrong with it.
pub(super) fn read_cue(
    behaviours: &Behaviours,
    scenario: &Scenario,
    text: &str,
) -> Result<Action, String> {
    if text.len() > OUTSIDE_CUE_BYTES_MAX {
        let bytes = text.len();
        return Err(format!(
            "expected at most {OUTSIDE_CUE_BYTES_MAX} bytes, found {bytes}"
        ));
    }
    let action = parse_action(text)?;
    if matches!(action, Action::OpenScene(_)) {
        return Err(
            "expected another action: a scene that is opened may name a file, which only a scenario may".into(),
        );
    }
    check_extra(scenario, &action, ATTRIBUTE_NAMES, behaviours)?;
    Ok(action)
}
