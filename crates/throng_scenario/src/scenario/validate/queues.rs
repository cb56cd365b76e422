//! Validation of queues, and of modes without parties of their own.

use std::collections::BTreeSet;

use super::bounds::{check_at_most, check_distinct, check_known, check_name_text, check_range};
use super::limits::{
    CROWD_RATE_MAX, DURATION_S_MAX, OBJECTS_MAX, QUEUES_MAX, RATING_MAX, TICK_HZ_MAX,
};
use super::names::Names;
use super::problems::ValidationErrors;
use super::scenes::check_scene;
use crate::crowd::REGIONS_MAX;
use crate::scenario::schema::{Scenario, ScenarioMatchMode};
use crate::scenario::text::{ValidationError, ValuePath};
use throng::matchmaking::{MatchModeSettings, ModeError};

/// Checks the queues.
pub(super) fn check_queues(scenario: &Scenario, names: &Names, problems: &mut ValidationErrors) {
    let place = ValuePath::root().field("queues");
    if !problems.check(check_at_most(
        &place,
        "items",
        scenario.queues.len(),
        QUEUES_MAX,
    )) {
        return;
    }
    for (index, queue) in scenario.queues.iter().enumerate() {
        queue_problems(&place.item(index), queue, names, scenario.tick_hz, problems);
    }
    let modes = scenario.queues.iter().map(|queue| queue.mode.as_str());
    problems.check(check_distinct(&place, "queue", "mode", modes));
    let mut crowds = BTreeSet::new();
    for (index, queue) in scenario.queues.iter().enumerate() {
        let Some(tag) = &queue.crowd_tag else {
            continue;
        };
        if !crowds.insert(tag) {
            let message = format!("expected one queue per crowd, found `{tag}` in two");
            problems.add(ValidationError::new(
                place.item(index).field("crowd_tag"),
                message,
            ));
            continue;
        }
        let size_max = queue.settings.party_size_max();
        let of_tag = scenario.crowds.iter().filter(|crowd| crowd.tag == *tag);
        let largest = of_tag.map(|crowd| crowd.party_size).max().unwrap_or(0);
        if largest > size_max {
            let message = format!(
                "expected a crowd of parties of at most {size_max} in this mode, found `{tag}` with parties of {largest}"
            );
            problems.add(ValidationError::new(
                place.item(index).field("crowd_tag"),
                message,
            ));
        }
    }
}

/// Checks the modes of the settings, for which only embedders queue parties. Their names must differ from those of the queues.
pub(super) fn check_modes(scenario: &Scenario, problems: &mut ValidationErrors) {
    let place = ValuePath::root()
        .field("settings")
        .field("matchmaking")
        .field("modes");
    let modes = &scenario.settings.matchmaking.modes;
    if !problems.check(check_at_most(&place, "items", modes.len(), QUEUES_MAX)) {
        return;
    }
    let mut names: BTreeSet<&str> = scenario
        .queues
        .iter()
        .map(|queue| queue.mode.as_str())
        .collect();
    for (index, mode) in modes.iter().enumerate() {
        let place = place.item(index);
        problems.check(check_name_text(&place.field("name"), "queue", mode.name()));
        if !names.insert(mode.name()) {
            let message = format!(
                "expected a different name for each queue, found `{}` twice",
                mode.name()
            );
            problems.add(ValidationError::new(place.field("name"), message));
        }
        problems.check(check_rules(&place, mode, scenario.tick_hz));
    }
}

fn check_rules(
    place: &ValuePath,
    mode: &MatchModeSettings,
    tick_hz: f64,
) -> Result<(), ValidationError> {
    // With an invalid rate, times cannot be checked.
    if !(1.0..=TICK_HZ_MAX).contains(&tick_hz) {
        return Ok(());
    }
    mode.check(tick_hz).map_err(|error| {
        let place = match &error {
            ModeError::Range { field, .. } => place.field(field),
            _ => place.clone(),
        };
        ValidationError::new(place, error.to_string())
    })
}

fn queue_problems(
    place: &ValuePath,
    queue: &ScenarioMatchMode,
    names: &Names,
    tick_hz: f64,
    problems: &mut ValidationErrors,
) {
    problems.check(check_name_text(&place.field("mode"), "queue", &queue.mode));
    let rules = place.field("settings");
    let named = queue.settings.name();
    if named != queue.settings.default_name() && named != queue.mode {
        let message = format!(
            "expected the queue's own name `{}` or none, found `{named}`",
            queue.mode
        );
        problems.add(ValidationError::new(rules.field("name"), message));
    }
    problems.check(check_rules(&rules, &queue.settings, tick_hz));
    party_problems(place, queue, problems);
    if let Some(tag) = &queue.crowd_tag {
        let place = place.field("crowd_tag");
        let is_known = problems.check(check_known(&place, "tag", tag, &names.tags));
        if is_known && !names.player_tags.contains(tag.as_str()) {
            let message = format!("expected a crowd of players, but `{tag}` has none");
            problems.add(ValidationError::new(place, message));
        }
    }
    for (field, found, limit) in [
        ("cancels_per_s", queue.cancels_per_s, CROWD_RATE_MAX),
        ("leaves_per_s", queue.leaves_per_s, CROWD_RATE_MAX),
        ("requeue_share", queue.requeue_share, 1.0),
    ] {
        problems.check(check_range(&place.field(field), found, 0.0..=limit));
    }
    for (field, found) in [
        ("match_duration_s", queue.match_duration_s),
        ("requeue_delay_s", queue.requeue_delay_s),
    ] {
        let found = f64::from(found);
        problems.check(check_range(
            &place.field(field),
            found,
            0.0..=DURATION_S_MAX,
        ));
    }
    if let Some(scene) = &queue.match_scene {
        let place = place.field("match_scene");
        problems.check(check_scene(&place, scene));
        if scene.copies != 1 {
            let message = "expected no copies: each match opens its own scene";
            problems.add(ValidationError::new(place.field("copies"), message));
        }
    }
}

/// Checks the definition of synthetic parties.
fn party_problems(place: &ValuePath, queue: &ScenarioMatchMode, problems: &mut ValidationErrors) {
    problems.check(check_range(
        &place.field("parties"),
        queue.parties,
        0..=OBJECTS_MAX,
    ));
    problems.check(check_range(
        &place.field("parties_per_s"),
        queue.parties_per_s,
        0.0..=CROWD_RATE_MAX,
    ));
    let rating_max = i32::try_from(RATING_MAX).unwrap_or(i32::MAX);
    problems.check(check_range(
        &place.field("skill_mean"),
        queue.skill_mean,
        0..=rating_max,
    ));
    for (field, found) in [
        ("skill_deviation", queue.skill_deviation),
        ("power_per_player", queue.power_per_player),
        ("power_deviation", queue.power_deviation),
    ] {
        problems.check(check_range(&place.field(field), found, 0..=RATING_MAX));
    }
    let (low, high) = queue.levels;
    problems.check(check_range(
        &place.field("levels").item(1),
        high,
        low..=u16::MAX,
    ));
    problems.check(check_range(
        &place.field("avoid_share"),
        queue.avoid_share,
        0.0..=1.0,
    ));
    for (field, weights) in [
        ("size_weights", &queue.size_weights[..]),
        ("role_weights", &queue.role_weights[..]),
    ] {
        if weights.iter().all(|&weight| weight == 0) {
            problems.add(ValidationError::new(
                place.field(field),
                "expected at least one weight above 0, found none",
            ));
        }
    }
    problems.check(check_range(
        &place.field("regions"),
        queue.regions,
        0..=REGIONS_MAX,
    ));
}

#[cfg(test)]
mod tests {
    use crate::scenario::{parse, validate};

    /// The first error of a queue with these fields, in a scenario with crowds `players` and `wolves`.
    fn with_queue(fields: &str) -> String {
        let text = format!(
            r#"Scenario(name: "s", scenes: [Scene(name: "a")],
            crowds: [Crowd(tag: "players", kind: "player", party_size: 3), Crowd(tag: "wolves")],
            queues: [Queue({fields}), Queue(mode: "other", crowd_tag: "players")])"#
        );
        let scenario = parse("s.ron", &text).unwrap_or_else(|error| panic!("{error}"));
        validate(&scenario, &[], &crate::scenario::Behaviours::default()).map_or_else(
            |problem| format!("{}: {}", problem.path, problem.message),
            |()| String::new(),
        )
    }

    #[test]
    fn party_values_are_in_their_range() {
        assert_eq!(
            with_queue(
                "levels: (3, 60), avoid_share: 1, role_weights: (0, 1, 0, 0, 0), regions: 32, requeue_delay_s: 0, leaves_per_s: 3, requeue_share: 0.5"
            ),
            ""
        );
        for (fields, expected) in [
            ("levels: (9, 8)", "levels[1]: expected "),
            ("avoid_share: NaN", "avoid_share: expected "),
            ("avoid_share: 1.5", "avoid_share: expected "),
            (
                "role_weights: (0, 0, 0, 0, 0)",
                "role_weights: expected at least one weight above 0, found none",
            ),
            ("regions: 33", "regions: expected "),
            ("leaves_per_s: -1", "leaves_per_s: expected "),
            ("requeue_share: -0.1", "requeue_share: expected "),
            ("requeue_delay_s: inf", "requeue_delay_s: expected "),
        ] {
            let found = with_queue(fields);
            assert!(
                found.starts_with(&format!("queues[0].{expected}")),
                "{fields}: {found}"
            );
        }
    }

    #[test]
    fn queueing_crowd_has_players_and_one_queue() {
        assert_eq!(
            with_queue("crowd_tag: \"plyers\""),
            "queues[0].crowd_tag: unknown tag `plyers`, did you mean `players`?"
        );
        assert_eq!(
            with_queue("crowd_tag: \"wolves\""),
            "queues[0].crowd_tag: expected a crowd of players, but `wolves` has none"
        );
        assert_eq!(
            with_queue("crowd_tag: \"players\", settings: Groups(group_size: 2)"),
            "queues[0].crowd_tag: expected a crowd of parties of at most 2 in this mode, found `players` with parties of 3"
        );
        assert_eq!(
            with_queue("crowd_tag: \"players\""),
            "queues[1].crowd_tag: expected one queue per crowd, found `players` in two"
        );
    }
}
