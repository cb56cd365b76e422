//! Validation of expectations.

use super::bounds::check_range;
use super::limits::DURATION_S_MAX;
use crate::scenario::counters;
use crate::scenario::schema::{Expectation, Scenario};
use crate::scenario::text::{ValidationError, ValuePath, closest};

pub(in crate::scenario) fn check_expectation(
    place: &ValuePath,
    expectation: &Expectation,
    scenario: &Scenario,
) -> Result<(), ValidationError> {
    match expectation {
        Expectation::WaitUnderS(limit)
        | Expectation::TickP99UnderMs(limit)
        | Expectation::BytesPerClientUnder(limit) => {
            check_range(&place.item(0), *limit, 0.0..=f64::MAX)
        }
        Expectation::SetP99UnderMs(_, limit) => check_range(&place.item(1), *limit, 0.0..=f64::MAX),
        Expectation::TicksUnderMs {
            ms,
            share,
            warm_up_s,
            ..
        } => {
            check_range(&place.field("ms"), *ms, 0.0..=f64::MAX)?;
            check_range(&place.field("share"), *share, 0.0..=1.0)?;
            check_range(&place.field("warm_up_s"), *warm_up_s, 0.0..=DURATION_S_MAX)
        }
        Expectation::PathsExact { share: Some(share) } => {
            check_range(&place.field("share"), *share, 0.0..=1.0)
        }
        Expectation::HashIs(hash) => check_hash(&place.item(0), hash),
        Expectation::Counter {
            name,
            at_least,
            at_most,
        } => {
            check_counter(&place.field("name"), name, scenario)?;
            check_bounds(place, *at_least, *at_most)
        }
        Expectation::After { t_s, expect } => {
            check_range(&place.field("t_s"), *t_s, 0.0..=DURATION_S_MAX)?;
            check_watched(&place.field("expect"), expect, scenario)
        }
        Expectation::Between {
            from_s,
            until_s,
            expect,
        } => {
            check_range(&place.field("from_s"), *from_s, 0.0..=DURATION_S_MAX)?;
            check_range(&place.field("until_s"), *until_s, *from_s..=DURATION_S_MAX)?;
            check_watched(&place.field("expect"), expect, scenario)
        }
        Expectation::NoLeaks if !cfg!(feature = "leak-track") => Err(ValidationError::new(
            place.clone(),
            "this program does not track allocations: build it with `--features leak-track`",
        )),
        Expectation::NoLeaks
        | Expectation::ViewsWithinCap
        | Expectation::ViewsStable
        | Expectation::MirrorsEqual
        | Expectation::PathsExact { share: None }
        | Expectation::NoObjectOnBlockedTile
        | Expectation::NoUnreachable
        | Expectation::MatchesAtLeast(_)
        | Expectation::TicketsConserved
        | Expectation::NoScriptErrors
        | Expectation::NoCuesWithoutEffect
        | Expectation::AllowScriptErrors => Ok(()),
    }
}

/// A warning for each counter that is written with its former name.
pub(in crate::scenario) fn former_counters(scenario: &Scenario) -> Vec<ValidationError> {
    let former = |(index, expectation): (usize, &Expectation)| {
        let (Expectation::Counter { name, .. }, _) = expectation.split_window() else {
            return None;
        };
        let current = counters::current_name(name);
        let place = ValuePath::root().field("expect").item(index);
        let message = format!("counter `{name}` is now `{current}`");
        (current != name).then(|| ValidationError::new(place, message))
    };
    scenario
        .expect
        .iter()
        .enumerate()
        .filter_map(former)
        .collect()
}

fn check_hash(place: &ValuePath, hash: &str) -> Result<(), ValidationError> {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if hash.len() == 16 && hash.bytes().all(is_digit) {
        return Ok(());
    }
    let message = format!("expected 16 digits of 0–9 and a–f, found `{hash}`");
    Err(ValidationError::new(place.clone(), message))
}

fn check_counter(
    place: &ValuePath,
    name: &str,
    scenario: &Scenario,
) -> Result<(), ValidationError> {
    let queues = scenario.queues.iter().map(|queue| queue.mode.as_str());
    let others = scenario.settings.matchmaking.modes.iter();
    let known = counters::counter_names(
        queues.chain(others.map(|mode| mode.name())),
        scenario.tags(),
    );
    if known
        .iter()
        .any(|known| known == counters::current_name(name))
    {
        return Ok(());
    }
    let group = name.split('.').next().unwrap_or_default();
    let siblings = known.iter().filter(|known| {
        let known_group = known.split('.').next().unwrap_or_default();
        known_group == group
    });
    let siblings: Vec<&str> = siblings.map(String::as_str).collect();
    // The second most likely mistake is to give the last part of a name only.
    let by_last = || {
        known
            .iter()
            .find(|known| known.rsplit('.').next() == Some(name))
    };
    let near = closest(name, known.iter().map(String::as_str));
    let near = near.or_else(|| by_last().map(String::as_str));
    let message = format!("unknown counter `{name}`");
    Err(match near {
        Some(near) => {
            ValidationError::new(place.clone(), format!("{message}, did you mean `{near}`?"))
        }
        None if !siblings.is_empty() => ValidationError::new(place.clone(), message).with_help(
            format!("the counters of `{group}` are {}", siblings.join(", ")),
        ),
        None => ValidationError::new(place.clone(), message).with_help(
            "counters are named by their path in the JSON report, such as `paths.found`",
        ),
    })
}

fn check_bounds(
    place: &ValuePath,
    at_least: Option<f64>,
    at_most: Option<f64>,
) -> Result<(), ValidationError> {
    for (field, bound) in [("at_least", at_least), ("at_most", at_most)] {
        if let Some(bound) = bound {
            check_range(&place.field(field), bound, f64::MIN..=f64::MAX)?;
        }
    }
    match (at_least, at_most) {
        (None, None) => Err(ValidationError::new(
            place.clone(),
            "expected `at_least`, `at_most` or both, found neither",
        )),
        (Some(least), Some(most)) if most < least => Err(ValidationError::new(
            place.field("at_most"),
            format!("expected `at_least`, which is {least}, or more, found {most}"),
        )),
        _ => Ok(()),
    }
}

/// Checks that an expectation can be judged for a part of a run.
fn check_watched(
    place: &ValuePath,
    expectation: &Expectation,
    scenario: &Scenario,
) -> Result<(), ValidationError> {
    let why = match expectation {
        Expectation::ViewsStable
        | Expectation::MirrorsEqual
        | Expectation::TicketsConserved
        | Expectation::NoLeaks
        | Expectation::HashIs(_) => "which is only checked at the end of a run",
        Expectation::WaitUnderS(_) => "which is only known of the whole run",
        Expectation::NoScriptErrors
        | Expectation::NoCuesWithoutEffect
        | Expectation::AllowScriptErrors => "which is about the whole script",
        Expectation::After { .. } | Expectation::Between { .. } => {
            "which already has a time window"
        }
        Expectation::ViewsWithinCap
        | Expectation::PathsExact { .. }
        | Expectation::NoObjectOnBlockedTile
        | Expectation::NoUnreachable
        | Expectation::MatchesAtLeast(_)
        | Expectation::TickP99UnderMs(_)
        | Expectation::SetP99UnderMs(..)
        | Expectation::TicksUnderMs { .. }
        | Expectation::BytesPerClientUnder(_)
        | Expectation::Counter { .. } => return check_expectation(place, expectation, scenario),
    };
    let message = format!(
        "expected an expectation that can be checked at any time, found `{expectation}`, {why}"
    );
    Err(ValidationError::new(place.clone(), message))
}
