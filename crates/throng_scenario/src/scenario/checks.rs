//! Expectations, judged at the end of a run.
//!
//! A passed run means that everything was checked: an expectation with nothing to judge is *not exercised*, which does not count as
//! passed.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde_json::Value;

use super::counters;
use super::leaks::LeakSummary;
use super::margin::{Margin, MarginSide};
use super::report::{ExpectationResult, Report, Verdict};
use super::schema::{Expectation, Scenario, TickLimit};
use super::tick_checks::{TickChecks, TickSpan, WatchedExpectation};
use crate::crowd::mirror_errors;
use throng::aoi::{SceneInterest, validate_views};
use throng::inbox::Inbox;
use throng::matchmaking::Matchmaker;
use throng::memory::allocation_count;
use throng::nav::NavStats;
use throng::session::{SessionStats, Sessions};
use throng::world::SceneId;

/// Which expectations on wall time are judged; the others are only reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimingChecks {
    /// None.
    Never,
    /// Only explicit ones, [`Expectation::TicksUnderMs`].
    #[default]
    AsWritten,
    /// All.
    Always,
}

/// The input of the checks.
pub(super) struct Evidence<'a> {
    pub world: &'a World,
    pub report: &'a Report,
    /// The report as JSON, at the ends of time windows, by tick.
    pub snapshots: &'a BTreeMap<u64, Value>,
    /// Whether the run was idle at the end; the error is the reason why not.
    pub at_rest: Result<(), String>,
    pub time: TimingChecks,
}

/// The result of one check.
struct ExpectationCheck {
    verdict: Verdict,
    found: String,
}

impl ExpectationCheck {
    fn new(holds: bool, found: impl Into<String>) -> Self {
        let verdict = if holds {
            Verdict::Passed
        } else {
            Verdict::Failed
        };
        let found = found.into();
        Self { verdict, found }
    }

    fn not_exercised(found: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::NotExercised,
            found: found.into(),
        }
    }

    /// Checks for leaked memory, which is known only after the world was dropped.
    fn from_leaks(found: Option<&LeakSummary>) -> Self {
        // Without the counting allocator nothing was recorded.
        let Some(found) = found.filter(|_| allocation_count() > 0) else {
            return Self::not_exercised("allocations were not tracked");
        };
        let LeakSummary {
            leaked,
            per_player: growing,
            untracked_blocks: lost_blocks,
            has_line_tables: knows_inlined,
            ..
        } = found;
        let Some(first) = leaked.iter().chain(growing).next() else {
            if !knows_inlined {
                return Self::not_exercised(
                    "the build has no line tables: allocations of inlined functions cannot be named",
                );
            }
            let lost = match lost_blocks {
                0 => String::new(),
                lost => format!("; {lost} small allocations were not tracked"),
            };
            return Self::new(true, format!("nothing is left{lost}"));
        };
        let found = format!(
            "{} bytes in {} blocks of {}",
            first.bytes, first.blocks, first.function
        );
        Self::new(false, found)
    }

    fn not_at_rest(why: &str) -> Self {
        Self::new(false, format!("the run did not become idle: {why}"))
    }
}

/// The counters of a window of time, or of the whole run.
struct WindowCounters<'a> {
    start: Option<&'a Value>,
    end: &'a Value,
}

impl WindowCounters<'_> {
    /// The growth of a monotonic counter, or the value of any other figure at the end.
    fn value(&self, name: &str) -> Option<f64> {
        let end = counters::counter_value(self.end, name)?;
        let start = self.start.filter(|_| counters::only_grows(name));
        Some(
            end - start.map_or(0.0, |start| {
                counters::counter_value(start, name).unwrap_or(0.0)
            }),
        )
    }

    /// A count; 0 for a missing one.
    fn count(&self, name: &str) -> u64 {
        self.value(name).unwrap_or(0.0) as u64
    }
}

/// The ticks at which a snapshot of the report is needed.
pub(super) fn snapshot_ticks(scenario: &Scenario) -> impl Iterator<Item = u64> {
    let spans = scenario
        .expect
        .iter()
        .map(|expectation| TickSpan::from_expectation(expectation, scenario.tick_hz));
    spans.flat_map(|span| [Some(span.after), span.until].into_iter().flatten())
}

/// Judges leaks, after the world was dropped.
pub(super) fn check_leaks(scenario: &Scenario, report: &mut Report, time: TimingChecks) {
    let expect = scenario.expect.iter().zip(&mut report.expectations);
    for (expectation, of) in expect.filter(|(expectation, _)| **expectation == Expectation::NoLeaks)
    {
        *of = expectation_result(
            expectation,
            ExpectationCheck::from_leaks(report.leaks.as_ref()),
            time,
        );
    }
}

/// Judges all expectations, after all activity has stopped. A scenario with a script implicitly expects
/// [`Expectation::NoScriptErrors`].
pub(super) fn check_expectations(
    scenario: &Scenario,
    evidence: &Evidence,
) -> Vec<ExpectationResult> {
    // If the report cannot be converted to JSON, no figure has a value.
    let last = serde_json::to_value(evidence.report).unwrap_or_default();
    let watch = evidence.world.resource::<TickChecks>();
    let report = evidence.report;
    let judge_one = |(nth, expectation): (usize, &Expectation)| {
        let span = TickSpan::from_expectation(expectation, scenario.tick_hz);
        let figures = WindowCounters {
            start: evidence.snapshots.get(&span.after),
            end: span
                .until
                .and_then(|until| evidence.snapshots.get(&until))
                .unwrap_or(&last),
        };
        let (plain, window) = expectation.split_window();
        let ticks = evidence.report.ticks;
        let finding = if window.is_some() && ticks <= span.after {
            ExpectationCheck::not_exercised(format!("the run ended earlier, after tick {ticks}"))
        } else {
            check_expectation(plain, watch.item(nth), &figures, evidence)
        };
        let margin = match finding.verdict {
            Verdict::NotExercised => None,
            _ => margin(plain, watch.item(nth), window.is_some(), &figures, report),
        };
        ExpectationResult {
            margin,
            ..expectation_result(expectation, finding, evidence.time)
        }
    };
    let expect = || scenario.expect.iter();
    let allows = expect().any(|e| matches!(e, Expectation::AllowScriptErrors));
    let is_explicit = expect().any(|e| matches!(e, Expectation::NoScriptErrors));
    let has_script = report.script_cues_run > 0 || report.script_error_count > 0;
    let written = expect()
        .enumerate()
        .filter(|(_, expectation)| !matches!(expectation, Expectation::AllowScriptErrors));
    let mut all: Vec<ExpectationResult> = written.map(judge_one).collect();
    if has_script && !allows && !is_explicit {
        let finding = no_script_errors(report);
        all.push(expectation_result(
            &Expectation::NoScriptErrors,
            finding,
            evidence.time,
        ));
    }
    all
}

/// Whether an expectation needs the state at rest, not only figures, times or the hash of the run.
pub(super) fn needs_rest(expectation: &Expectation) -> bool {
    let (plain, _) = expectation.split_window();
    let is_figure = matches!(plain, Expectation::Counter { .. } | Expectation::HashIs(_));
    !is_figure && plain.tick_limit().is_none()
}

/// The results of the expectations of an interrupted run.
pub(super) fn unchecked_expectations(scenario: &Scenario) -> Vec<ExpectationResult> {
    let not_checked = |expectation: &Expectation| ExpectationResult {
        text: expectation.to_string(),
        passed: None,
        verdict: Verdict::NotChecked,
        found: "interrupted".to_owned(),
        margin: None,
    };
    scenario.expect.iter().map(not_checked).collect()
}

/// The result of an expectation. If it is about wall time and `time` excludes it, a failure becomes `SlowMachine` and any other
/// verdict `NotChecked`.
fn expectation_result(
    expectation: &Expectation,
    finding: ExpectationCheck,
    time: TimingChecks,
) -> ExpectationResult {
    let (plain, _) = expectation.split_window();
    let is_judged = match (plain, plain.tick_limit()) {
        (_, Some(limit)) => match time {
            TimingChecks::Never => false,
            TimingChecks::AsWritten => limit.is_always_checked,
            TimingChecks::Always => true,
        },
        (Expectation::Counter { name, .. }, _) if counters::is_wall_time(name) => {
            time == TimingChecks::Always
        }
        _ => true,
    };
    let verdict = match finding.verdict {
        verdict if is_judged => verdict,
        Verdict::Failed => Verdict::SlowMachine,
        _ => Verdict::NotChecked,
    };
    ExpectationResult {
        text: expectation.to_string(),
        passed: match verdict {
            Verdict::Passed => Some(true),
            Verdict::Failed => Some(false),
            Verdict::NotExercised | Verdict::NotChecked | Verdict::SlowMachine => None,
        },
        verdict,
        found: finding.found,
        margin: None,
    }
}

fn check_expectation(
    expectation: &Expectation,
    watched: Option<&WatchedExpectation>,
    figures: &WindowCounters,
    evidence: &Evidence,
) -> ExpectationCheck {
    let report = evidence.report;
    match expectation {
        Expectation::ViewsWithinCap => never_happened(watched, "no object was in a view", || {
            format!("longest view list {}", report.views.longest_list)
        }),
        Expectation::NoObjectOnBlockedTile => {
            never_happened(watched, "no object was there", || "none".to_owned())
        }
        Expectation::PathsExact { share } => paths_exact(watched, *share),
        Expectation::TickP99UnderMs(_)
        | Expectation::SetP99UnderMs(..)
        | Expectation::TicksUnderMs { .. } => ticks_under(expectation.tick_limit(), watched),
        Expectation::ViewsStable => views_stable(evidence),
        Expectation::MirrorsEqual => mirrors_equal(evidence),
        Expectation::NoUnreachable => {
            let requested = figures.count("paths.requested");
            let unreachable = figures.count("paths.unreachable");
            match requested {
                0 => ExpectationCheck::not_exercised("no path was requested"),
                _ => {
                    ExpectationCheck::new(unreachable == 0, format!("{unreachable} of {requested}"))
                }
            }
        }
        Expectation::MatchesAtLeast(count) => {
            let matches = figures.count("matchmaking.matches");
            if report.matchmaking.queued == 0 {
                return ExpectationCheck::not_exercised("no party queued");
            }
            ExpectationCheck::new(matches >= *count, format!("{matches} matches"))
        }
        Expectation::WaitUnderS(seconds) => {
            // Parties that still wait are included with their waiting time so far.
            let longest = report.matchmaking.max_wait_s;
            let longest = longest.max(report.matchmaking.waiting_for_s);
            match report.matchmaking.matches {
                0 => ExpectationCheck::not_exercised("no match was made"),
                _ => {
                    let waiting = report.matchmaking.waiting;
                    let found = format!("{longest:.1} s, {waiting} parties still waiting");
                    ExpectationCheck::new(longest < *seconds, found)
                }
            }
        }
        Expectation::TicketsConserved => check_conserved(evidence.world, report),
        Expectation::BytesPerClientUnder(bytes) => {
            let seconds = figures.value("clients.mirror_seconds").unwrap_or(0.0);
            if seconds <= 0.0 {
                return ExpectationCheck::not_exercised("no client received anything");
            }
            let found = figures.value("sync.bytes").unwrap_or(0.0) / seconds;
            ExpectationCheck::new(found < *bytes, format!("{found:.0} bytes/s"))
        }
        Expectation::NoLeaks => ExpectationCheck::from_leaks(None),
        Expectation::HashIs(hash) => {
            ExpectationCheck::new(report.state_hash == *hash, report.state_hash.clone())
        }
        Expectation::Counter {
            name,
            at_least,
            at_most,
        } => counter_between(figures.value(name), *at_least, *at_most),
        Expectation::NoScriptErrors => no_script_errors(report),
        Expectation::NoCuesWithoutEffect => no_cues_without_effect(report),
        // `check_expectations` skips or unwraps these, and validation rejects them inside a window.
        Expectation::AllowScriptErrors
        | Expectation::After { .. }
        | Expectation::Between { .. } => ExpectationCheck::not_exercised("nothing to judge"),
    }
}

/// Checks that a counter is available and within its limits.
fn counter_between(
    found: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
) -> ExpectationCheck {
    let Some(found) = found else {
        return ExpectationCheck::not_exercised("the counter is not available here");
    };
    let is_within =
        at_least.is_none_or(|least| found >= least) && at_most.is_none_or(|most| found <= most);
    // Rounded to thousandths; most figures are integers.
    ExpectationCheck::new(is_within, format!("{}", (found * 1e3).round() / 1e3))
}

/// The found value and its limit; `None` for an expectation that does not compare one number.
fn margin(
    expectation: &Expectation,
    watched: Option<&WatchedExpectation>,
    is_in_window: bool,
    figures: &WindowCounters,
    report: &Report,
) -> Option<Margin> {
    let below = |found: f64, limit: f64, unit| Margin::new(found, limit, MarginSide::Below, unit);
    Some(match expectation {
        &Expectation::TickP99UnderMs(ms) if !is_in_window => below(report.tick_ms.p99, ms, "ms"),
        &Expectation::SetP99UnderMs(set, ms) if !is_in_window => {
            below(report.systems.get(set.name())?.p99_ms, ms, "ms")
        }
        &Expectation::TicksUnderMs { ms, share, .. } if share >= 1.0 => {
            below(watched?.longest_ms, ms, "ms")
        }
        &Expectation::TicksUnderMs { share, .. } => {
            let watched = watched.filter(|watched| watched.checked > 0)?;
            let under = 100.0 * watched.below_limit as f64 / watched.checked as f64;
            Margin::new(under, 100.0 * share, MarginSide::AtLeast, "% of ticks")
        }
        &Expectation::BytesPerClientUnder(bytes) => {
            let seconds = figures.value("clients.mirror_seconds")?;
            below(figures.value("sync.bytes")? / seconds, bytes, "bytes/s")
        }
        &Expectation::WaitUnderS(seconds) => {
            let parties = &report.matchmaking;
            below(parties.max_wait_s.max(parties.waiting_for_s), seconds, "s")
        }
        &Expectation::MatchesAtLeast(count) => {
            let found = figures.value("matchmaking.matches")?;
            Margin::new(found, count as f64, MarginSide::AtLeast, "matches")
        }
        Expectation::Counter {
            name,
            at_least,
            at_most,
        } => {
            let found = figures.value(name)?;
            // Of two bounds, the one with less headroom.
            let least = at_least.map(|least| Margin::new(found, least, MarginSide::AtLeast, ""));
            let most = at_most.map(|most| Margin::new(found, most, MarginSide::AtMost, ""));
            let sides = least.into_iter().chain(most);
            sides.min_by(|a, b| a.headroom().total_cmp(&b.headroom()))?
        }
        _ => return None,
    })
}

/// The result of an expectation that is checked in every tick: it must not have been violated.
fn never_happened(
    watched: Option<&WatchedExpectation>,
    nothing: &str,
    describe_success: impl FnOnce() -> String,
) -> ExpectationCheck {
    match watched {
        Some(watched) if watched.checked > 0 => {
            let violation = watched.violations.describe();
            ExpectationCheck::new(
                violation.is_none(),
                violation.unwrap_or_else(describe_success),
            )
        }
        _ => ExpectationCheck::not_exercised(nothing),
    }
}

fn paths_exact(
    watched: Option<&WatchedExpectation>,
    required_share: Option<f64>,
) -> ExpectationCheck {
    let (checked, found) = watched.map_or((0, 0), |watched| (watched.checked, watched.found));
    if found > 0 && (checked as f64) < (required_share.unwrap_or(0.0) * found as f64).floor() {
        return ExpectationCheck::not_exercised(format!(
            "only {checked} of {found} paths could be searched again"
        ));
    }
    let nothing = match found {
        0 => "no path was found".to_owned(),
        _ => format!("none of {found} paths could be searched again"),
    };
    let share = 100.0 * checked as f64 / found.max(1) as f64;
    never_happened(watched, &nothing, || {
        format!("a sample of {checked} of {found} ({share:.1} %) searched again by A*")
    })
}

fn ticks_under(limit: Option<TickLimit>, watched: Option<&WatchedExpectation>) -> ExpectationCheck {
    let (Some(limit), Some(watched)) = (limit, watched.filter(|watched| watched.checked > 0))
    else {
        return ExpectationCheck::not_exercised("the run ended before the first counted tick");
    };
    let (under, ticks) = (watched.below_limit, watched.checked);
    // Rounded up, as for a percentile: 99 % of ten ticks are all ten.
    let needed = (limit.share * ticks as f64).ceil() as u64;
    let share = 100.0 * under as f64 / ticks as f64;
    let longest = watched.longest_ms;
    ExpectationCheck::new(
        under >= needed,
        format!("{share:.1} % of {ticks} ticks, longest {longest:.2} ms"),
    )
}

fn no_script_errors(report: &Report) -> ExpectationCheck {
    let errors = report.script_error_count;
    let ran = match report.script_cues_run {
        0 if errors == 0 => return ExpectationCheck::not_exercised("no cue ran"),
        1 => "a cue ran once".to_owned(),
        ran => format!("cues ran {ran} times"),
    };
    match errors {
        0 => ExpectationCheck::new(true, ran),
        1 => ExpectationCheck::new(false, format!("1 error, {ran}")),
        _ => ExpectationCheck::new(false, format!("{errors} errors, {ran}")),
    }
}

fn no_cues_without_effect(report: &Report) -> ExpectationCheck {
    match &report.cues_without_effect[..] {
        [] if report.script_cues_run == 0 => ExpectationCheck::not_exercised("no cue ran"),
        [] => ExpectationCheck::new(true, "all cues had an effect".to_owned()),
        [first, ..] => ExpectationCheck::new(false, first.clone()),
    }
}

fn mirrors_equal(evidence: &Evidence) -> ExpectationCheck {
    let (mirrors, errors) = mirror_errors(evidence.world, 1);
    match errors.into_iter().next() {
        Some(error) => ExpectationCheck::new(false, error),
        None if let Err(why) = &evidence.at_rest => ExpectationCheck::not_at_rest(why),
        None if mirrors == 0 => {
            ExpectationCheck::not_exercised("no client with a mirror was in the world at the end")
        }
        None => ExpectationCheck::new(true, format!("{mirrors} mirrors")),
    }
}

fn views_stable(evidence: &Evidence) -> ExpectationCheck {
    let world = evidence.world;
    if let Err(why) = &evidence.at_rest {
        return ExpectationCheck::not_at_rest(why);
    }
    let mut links = 0;
    for (id, scene) in world.resource::<throng::world::Scenes>().iter() {
        let Some(interest) = world.get::<SceneInterest>(scene) else {
            continue;
        };
        links += interest.views().link_count();
        if let Err(fault) = validate_views(world, scene) {
            let SceneId(id) = id;
            return ExpectationCheck::new(false, format!("scene {id}: {fault}"));
        }
    }
    if world.resource::<TickChecks>().viewer_count() == 0 {
        return ExpectationCheck::not_exercised("no object had a view at the end");
    }
    ExpectationCheck::new(true, format!("{links} view links are correct"))
}

/// Checks that every party, message, session and path request is accounted for.
fn check_conserved(world: &World, report: &Report) -> ExpectationCheck {
    let inbox = &report.inbox;
    let backlog = world.resource::<Inbox>().backlog() as u64;
    let parties = world.resource::<Matchmaker>().tickets_conserved();
    // These are current counters, not those of the report: messages that arrived after the end of the run are in both sums.
    let counters = world.resource::<Inbox>().counters();
    let messages = counters.received == counters.handled + counters.refused + backlog;
    let stats = world.resource::<SessionStats>();
    let sessions = world
        .resource::<Sessions>()
        .iter()
        .filter(|(_, session)| session.player.is_some());
    let logins = stats.logins == stats.logouts + sessions.count() as u64;
    let nav = world.resource::<NavStats>();
    let answered =
        nav.found + nav.unreachable + nav.blocked + nav.out_of_bounds + nav.capped + nav.cancelled;
    let paths = nav.requested == answered + nav.waiting;
    let queued = report.matchmaking.queued;
    if queued + inbox.received + stats.logins + nav.requested == 0 {
        return ExpectationCheck::not_exercised("no party, message, login or path request");
    }
    let found = format!(
        "{queued} parties, {} messages, {} logins, {} path requests",
        inbox.received, stats.logins, nav.requested
    );
    ExpectationCheck::new(parties && messages && logins && paths, found)
}
