//! Durations that are probably a mistake.

use crate::scenario::schema::{Cue, Scenario};
use crate::scenario::text::{ValidationError, ValuePath};

/// Simulated seconds from which a run is unusually long: two hours.
const LONG_S: f64 = 2.0 * 3600.0;

/// Returns a warning for a run of more than two hours in which no cue waits for a condition: the duration may have a digit too
/// many. `written_s` is the duration in the file; a duration that differs from it was set on purpose.
pub(in crate::scenario) fn long_duration(
    scenario: &Scenario,
    written_s: f64,
) -> Option<ValidationError> {
    let waits = |cue: &Cue| matches!(cue, Cue::When { .. } | Cue::WhenCount { .. });
    let is_long = scenario.duration_s > LONG_S && scenario.duration_s == written_s;
    if !is_long || scenario.script.iter().any(waits) {
        return None;
    }
    let message = format!(
        "the run lasts {} of simulated time",
        hours_and_minutes(scenario.duration_s)
    );
    Some(ValidationError::new(
        ValuePath::root().field("duration_s"),
        message,
    ))
}

fn hours_and_minutes(seconds: f64) -> String {
    let minutes = (seconds / 60.0) as u64;
    format!("{} h {} min", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    #[test]
    fn long_run_without_a_condition_is_a_warning() {
        let warning = |fields: &str, written_s: f64| {
            let scenario = parse("t.ron", &format!("Scenario(name: \"x\", {fields})")).unwrap();
            long_duration(&scenario, written_s).map(|warning| warning.to_string())
        };
        assert_eq!(
            warning("duration_s: 75000", 75_000.0).as_deref(),
            Some("duration_s: the run lasts 20 h 50 min of simulated time")
        );
        assert_eq!(warning("duration_s: 7200", 7200.0), None);
        assert_eq!(warning("duration_s: 75000", 60.0), None, "set by a flag");
        let waits = "script: [WhenCount(tag: \"a\", at_most: 0, run: Drain)]";
        assert_eq!(
            warning(&format!("duration_s: 75000, {waits}"), 75_000.0),
            None
        );
    }
}
