//! Validation of the script.

use glam::Vec2;

use super::areas::check_area;
use super::attributes::{check_name, check_value};
use super::bounds::{check_at_most, check_known, check_range};
use super::crowds::{check_behaviour, check_crowd};
use super::limits::{
    DURATION_S_MAX, FACTOR_MAX, METRES_MAX, OBJECTS_MAX, PARTY_SIZE_MAX, PERIOD_S_MIN,
    TEXT_BYTES_MAX,
};
use super::names::Names;
use super::scenes::check_scene;
use super::selection::check_selector;
use crate::crowd::{CrowdNetworkConditions, DELAY_MS_MAX, SCENE_ATTRIBUTE_NAMES};
use crate::scenario::behaviours::BehaviourSite;
use crate::scenario::schema::{Action, Cue, CueSpec, ScenarioAnnouncementScope, ScenarioCrowd};
use crate::scenario::text::{ValidationError, ValuePath};
use throng::map::{TilePattern, TileRect};

pub(super) fn check_network(
    place: &ValuePath,
    network: CrowdNetworkConditions,
) -> Result<(), ValidationError> {
    for (name, share) in [
        ("loss", network.loss),
        ("duplicate", network.duplicate),
        ("reorder", network.reorder),
        ("share", network.share),
    ] {
        check_range(&place.field(name), share, 0.0..=1.0)?;
    }
    for (name, ms) in [
        ("delay_ms", network.delay_ms),
        ("jitter_ms", network.jitter_ms),
    ] {
        check_range(&place.field(name), ms, 0..=DELAY_MS_MAX)?;
    }
    Ok(())
}

/// Checks a crowd that a ramp spawns. Each step is a separate crowd, whose rates and parties would differ from those of the whole
/// crowd.
fn check_ramp(place: &ValuePath, crowd: &ScenarioCrowd, steps: f64) -> Result<(), ValidationError> {
    let receiving = f64::from(crowd.client_share) * f64::from(crowd.count) / steps;
    for (field, is_wrong) in [
        ("client_share", crowd.client_share > 0.0 && receiving < 0.5),
        ("churn_per_s", crowd.churn_per_s > 0.0),
        ("party_size", crowd.party_size > 1),
    ] {
        if is_wrong {
            let message = format!("`{field}` cannot be used with a crowd that is spawned in steps");
            return Err(ValidationError::new(place.field(field), message));
        }
    }
    Ok(())
}

pub(super) fn check_cue(
    place: &ValuePath,
    cue: &Cue,
    names: &Names,
) -> Result<(), ValidationError> {
    check_times(place, cue)?;
    match cue {
        Cue::At { .. } | Cue::Every { .. } => {}
        Cue::Ramp {
            run,
            from_s,
            until_s,
            every_s,
        } => {
            if run.ramp_count().is_none() {
                let message = "expected an action with a `count` to spread: `Spawn`, `Despawn`, `Login`, `Logout`, \
                               `Queue` or `Cancel`";
                return Err(ValidationError::new(place.field("run"), message));
            }
            if let Action::Spawn(crowd) = run {
                let steps = ((until_s - from_s) / every_s).floor() + 1.0;
                check_ramp(&place.field("run"), crowd, steps)?;
            }
        }
        Cue::When {
            tag,
            attribute,
            below,
            at_least,
            ..
        } => {
            check_known(&place.field("tag"), "tag", tag, &names.tags)?;
            check_name(place, attribute, names)?;
            check_exactly_one(
                place,
                ("below", below.is_some()),
                ("at_least", at_least.is_some()),
            )?;
        }
        Cue::WhenCount {
            tag,
            at_most,
            at_least,
            ..
        } => {
            check_known(&place.field("tag"), "tag", tag, &names.tags)?;
            check_exactly_one(
                place,
                ("at_most", at_most.is_some()),
                ("at_least", at_least.is_some()),
            )?;
        }
    }
    check_action(&place.field("run"), cue.action(), names)
}

/// Checks that a condition has exactly one limit.
fn check_exactly_one(
    place: &ValuePath,
    (first, has_first): (&'static str, bool),
    (second, has_second): (&'static str, bool),
) -> Result<(), ValidationError> {
    match (has_first, has_second) {
        (true, false) | (false, true) => Ok(()),
        (true, true) => {
            let message = format!("expected `{first}` or `{second}`, found both");
            Err(ValidationError::new(place.field(second), message))
        }
        (false, false) => {
            let message = format!("expected `{first}` or `{second}`, found neither");
            Err(ValidationError::new(place.clone(), message))
        }
    }
}

fn check_times(place: &ValuePath, cue: &Cue) -> Result<(), ValidationError> {
    let times = match cue {
        Cue::Every { times, .. } => *times,
        Cue::When { times, .. } | Cue::WhenCount { times, .. } => Some(*times),
        Cue::At { .. } | Cue::Ramp { .. } => None,
    };
    if let Some(times) = times {
        check_range(&place.field("times"), times, 1..=u32::MAX)?;
    }
    let (from_s, until_s) = match cue {
        Cue::At { t_s, .. } => {
            return check_range(&place.field("t_s"), *t_s, 0.0..=DURATION_S_MAX);
        }
        Cue::Every {
            t_s,
            from_s,
            until_s,
            ..
        } => {
            check_range(&place.field("t_s"), *t_s, PERIOD_S_MIN..=DURATION_S_MAX)?;
            (*from_s, *until_s)
        }
        Cue::Ramp {
            from_s,
            until_s,
            every_s,
            ..
        } => {
            check_range(
                &place.field("every_s"),
                *every_s,
                PERIOD_S_MIN..=DURATION_S_MAX,
            )?;
            (*from_s, Some(*until_s))
        }
        Cue::When {
            from_s, until_s, ..
        }
        | Cue::WhenCount {
            from_s, until_s, ..
        } => (*from_s, *until_s),
    };
    check_range(&place.field("from_s"), from_s, 0.0..=DURATION_S_MAX)?;
    until_s.map_or(Ok(()), |until_s| {
        check_range(&place.field("until_s"), until_s, from_s..=DURATION_S_MAX)
    })
}

pub(super) fn check_action(
    place: &ValuePath,
    action: &Action,
    names: &Names,
) -> Result<(), ValidationError> {
    if let Some(who) = action.selector() {
        check_selector(place, who, names)?;
    } else if let Some(tag) = action.tag() {
        check_known(&place.field("tag"), "tag", tag, &names.tags)?;
    }
    match action {
        Action::Spawn(crowd) => check_spawn(place, crowd, names),
        Action::Teleport { to, .. } => check_area(&place.field("to"), to),
        Action::SetAttribute {
            attribute, value, ..
        } => check_value(place, attribute, *value, names),
        Action::AddAttribute { attribute, .. } => check_name(place, attribute, names),
        Action::ScaleAttribute { attribute, by, .. } => {
            check_name(place, attribute, names)?;
            check_range(&place.field("by"), *by, -FACTOR_MAX..=FACTOR_MAX)
        }
        Action::Game(cue) => {
            // The name is inside the brackets of `Game`.
            check_game_cue(&place.item(0), cue, names)
        }
        Action::SetSceneAttribute {
            scene, attribute, ..
        } => {
            check_changed_scene(place, scene.as_deref(), names)?;
            let attributes = SCENE_ATTRIBUTE_NAMES.iter().copied().collect();
            check_known(
                &place.field("attribute"),
                "attribute of scenes",
                attribute,
                &attributes,
            )
        }
        Action::Announce { scope, text, .. } => {
            if let ScenarioAnnouncementScope::Radius(radius_m) = scope {
                check_range(&place.field("scope").item(0), *radius_m, 0.0..=METRES_MAX)?;
            }
            check_at_most(&place.field("text"), "bytes", text.len(), TEXT_BYTES_MAX)
        }
        Action::SetBehaviour { behaviour, .. } => {
            check_behaviour(&place.field("behaviour"), behaviour, names)
        }
        Action::Gather { at, .. } => check_area(&place.field("at"), at),
        Action::Block { .. }
        | Action::Free { .. }
        | Action::Toggle { .. }
        | Action::Paint { .. } => check_edit(place, action, names),
        Action::Queue { .. } | Action::Cancel { .. } => check_queue_action(place, action, names),
        Action::SetNetwork(network) => check_network(place, *network),
        Action::OpenScene(scene) => check_scene(place, scene),
        Action::CloseScene { scene } => {
            check_known(&place.field("scene"), "scene", scene, &names.all_scenes)
        }
        Action::ChangeScene { to, at, .. } => {
            check_known(&place.field("to"), "scene", to, &names.all_scenes)?;
            check_area(&place.field("at"), at)
        }
        Action::Disconnect { .. } | Action::Possess { .. } | Action::Spectate { .. } => {
            check_player_action(place, action, names)
        }
        Action::Despawn { .. }
        | Action::Hide { .. }
        | Action::SetTeam { .. }
        | Action::Login { .. }
        | Action::Logout { .. }
        | Action::DuplicateLogin { .. }
        | Action::Kick { .. }
        | Action::Ban { .. }
        | Action::Drain
        | Action::Reopen
        | Action::Release { .. } => Ok(()),
    }
}

/// Checks an action on parties in a queue; accepts other actions.
fn check_queue_action(
    place: &ValuePath,
    action: &Action,
    names: &Names,
) -> Result<(), ValidationError> {
    match action {
        Action::Queue {
            mode,
            parties,
            size,
        } => {
            check_known(&place.field("mode"), "queue", mode, &names.modes)?;
            check_range(&place.field("parties"), *parties, 0..=OBJECTS_MAX)?;
            size.map_or(Ok(()), |size| {
                check_range(&place.field("size"), size, 1..=PARTY_SIZE_MAX)
            })
        }
        Action::Cancel { mode, .. } => {
            check_known(&place.field("mode"), "queue", mode, &names.modes)
        }
        _ => Ok(()),
    }
}

/// Checks an action on players that has further fields; accepts other actions.
fn check_player_action(
    place: &ValuePath,
    action: &Action,
    names: &Names,
) -> Result<(), ValidationError> {
    match action {
        Action::Disconnect { for_s, .. } => {
            check_range(&place.field("for_s"), *for_s, 0.0..=DURATION_S_MAX)
        }
        Action::Possess { of, .. } => check_known(&place.field("of"), "tag", of, &names.tags),
        Action::Spectate { follow, .. } => {
            check_known(&place.field("follow"), "tag", follow, &names.tags)
        }
        _ => Ok(()),
    }
}

/// Checks an action that edits tiles; accepts other actions.
fn check_edit(place: &ValuePath, action: &Action, names: &Names) -> Result<(), ValidationError> {
    match action {
        Action::Block { scene, rect_tiles }
        | Action::Free { scene, rect_tiles }
        | Action::Toggle { scene, rect_tiles } => {
            check_changed_scene(place, scene.as_deref(), names)?;
            check_rect(&place.field("rect_tiles"), *rect_tiles)
        }
        Action::Paint { scene, rows, .. } => {
            check_changed_scene(place, scene.as_deref(), names)?;
            match TilePattern::try_from(rows.clone()) {
                Ok(_) => Ok(()),
                Err(error) => Err(ValidationError::new(place.field("rows"), error.to_string())),
            }
        }
        _ => Ok(()),
    }
}

fn check_game_cue(place: &ValuePath, cue: &CueSpec, names: &Names) -> Result<(), ValidationError> {
    let site = BehaviourSite {
        path: place.clone(),
        kinds: names.object_kinds,
        scale: Vec2::ONE,
        size_m: Vec2::ONE,
    };
    names.behaviours.check_cue(cue, &site)
}

fn check_spawn(
    place: &ValuePath,
    crowd: &ScenarioCrowd,
    names: &Names,
) -> Result<(), ValidationError> {
    if names.all_scenes.is_empty() {
        let message = "expected a scene for this crowd, found none in `scenes`";
        return Err(ValidationError::new(place.clone(), message));
    }
    check_crowd(place, crowd, names, &names.all_scenes)
}

fn check_changed_scene(
    place: &ValuePath,
    scene: Option<&str>,
    names: &Names,
) -> Result<(), ValidationError> {
    match scene {
        Some(scene) => check_known(&place.field("scene"), "scene", scene, &names.all_scenes),
        None if names.scenes.is_empty() => Err(ValidationError::new(
            place.clone(),
            "expected a scene to change, found none in `scenes`",
        )),
        None => Ok(()),
    }
}

fn check_rect(place: &ValuePath, rect: TileRect) -> Result<(), ValidationError> {
    if rect.tile_count() == 0 {
        return Err(ValidationError::new(
            place.clone(),
            format!("expected at least one tile, found the empty rectangle {rect}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Behaviours, parse, validate};

    /// The first error of a scenario with a cue and attributes, or `ok`.
    fn first_error(cue: &str, attributes: &str) -> String {
        let text = format!(
            "Scenario(name: \"x\", scenes: [Scene(name: \"a\")], attributes: [{attributes}], \
             crowds: [Crowd(tag: \"mob\"), Crowd(tag: \"people\", kind: \"player\")], script: [{cue}])"
        );
        let scenario = parse("t.ron", &text).unwrap_or_else(|error| panic!("{error} in {text}"));
        validate(&scenario, &["health"], &Behaviours::default())
            .map_or_else(|problem| problem.to_string(), |()| "ok".to_owned())
    }

    #[track_caller]
    fn refuses(cue: &str, place: &str, message: &str) {
        let expected = if place.is_empty() {
            format!("script[0]: {message}")
        } else {
            format!("script[0].{place}: {message}")
        };
        let found = first_error(cue, "");
        assert!(found.starts_with(&expected), "{cue}: {found}");
    }

    #[test]
    fn cue_times_are_ordered_and_conditions_have_one_limit() {
        let run = "run: Despawn(tag: \"mob\", count: 1)";
        for good in [
            format!("Every(t_s: 1, times: 3, {run})"),
            format!("Ramp(until_s: 5, {run})"),
            format!("When(tag: \"mob\", attribute: \"health\", below: 5, {run})"),
            format!("WhenCount(tag: \"mob\", at_least: 5, times: 2, {run})"),
        ] {
            assert_eq!(first_error(&good, ""), "ok", "{good}");
        }
        let late = "expected script[0].until_s from 3 to 604800 seconds, found 2";
        refuses(
            &format!("Ramp(from_s: 3, until_s: 2, {run})"),
            "until_s",
            late,
        );
        let when = "When(tag: \"mob\", attribute: \"health\"";
        refuses(
            &format!("{when}, below: 1, from_s: 3, until_s: 2, {run})"),
            "until_s",
            late,
        );
        refuses(
            &format!("Ramp(until_s: 2, every_s: 0, {run})"),
            "every_s",
            "expected",
        );
        refuses(
            &format!("Every(t_s: 1, times: 0, {run})"),
            "times",
            "expected",
        );
        let all = "run: Despawn(tag: \"mob\")";
        refuses(
            &format!("Ramp(until_s: 2, {all})"),
            "run",
            "expected an action with a `count`",
        );
        refuses(
            &format!("{when}, {run})"),
            "",
            "expected `below` or `at_least`, found neither",
        );
        refuses(
            &format!("{when}, below: 1, at_least: 2, {run})"),
            "at_least",
            "expected `below` or",
        );
        let count = "WhenCount(tag: \"mob\"";
        refuses(
            &format!("{count}, {run})"),
            "",
            "expected `at_most` or `at_least`, found neither",
        );
        refuses(
            &format!("{count}, at_most: 1, at_least: 2, {run})"),
            "at_least",
            "expected `at_most`",
        );
        let unknown = "unknown tag `mop`, did you mean `mob`?";
        refuses(
            &format!("WhenCount(tag: \"mop\", at_most: 1, {run})"),
            "tag",
            unknown,
        );
        refuses(
            &format!("When(tag: \"mob\", attribute: \"helth\", below: 1, {run})"),
            "attribute",
            "unknown attribute `helth`, did you mean `health`?",
        );
    }

    #[test]
    fn impossible_cue_selectors_are_refused() {
        let only = |only: &str| format!("At(t_s: 1, run: Despawn(tag: \"mob\", only: [{only}]))");
        for (condition, place, message) in [
            (
                "Within(Point(center_m: (1, 1)))",
                "[0]",
                "expected an area with an inside",
            ),
            ("Outside(Share((0, 0), (1, 2)))", "[0][1][1]", "expected"),
            (
                "Near(tag: \"mop\", radius_m: 1)",
                ".tag",
                "unknown tag `mop`",
            ),
            ("Near(tag: \"mob\", radius_m: -1)", ".radius_m", "expected"),
            (
                "InViewOf(\"mob\")",
                "[0]",
                "expected a tag of players, since only players have views",
            ),
            ("Seeing(\"mop\")", "[0]", "unknown tag `mop`"),
            (
                "Below(attribute: \"helth\", value: 1)",
                ".attribute",
                "unknown attribute `helth`",
            ),
            (
                "OutsideZone(center_m: (1, 1), radius_m: 9, to_radius_m: 1, from_s: 2, until_s: 2)",
                ".until_s",
                "expected a time after `from_s`, found 2",
            ),
            (
                "OutsideZone(center_m: (1, 1), radius_m: 9, to_radius_m: inf, from_s: 2, until_s: 3)",
                ".to_radius_m",
                "expected",
            ),
        ] {
            refuses(&only(condition), &format!("run.only[0]{place}"), message);
        }
        assert_eq!(
            first_error(&only("InViewOf(\"people\"), Seeing(\"mob\")"), ""),
            "ok"
        );
        let many = "Seeing(\"mob\"), ".repeat(17);
        refuses(&only(&many), "run.only", "expected at most 16 items");
    }

    #[test]
    fn impossible_player_actions_are_refused() {
        let at = |action: &str| format!("At(t_s: 1, run: {action})");
        for good in [
            "Disconnect(tag: \"people\", for_s: 0)",
            "DuplicateLogin(tag: \"people\", count: 1, pick: Random)",
            "Kick(tag: \"people\")",
            "Ban(tag: \"people\", only: [Seeing(\"mob\")])",
            "Drain",
            "Reopen",
            "Possess(tag: \"people\", of: \"mob\")",
            "Spectate(tag: \"people\", follow: \"people\")",
            "Release(tag: \"people\", count: 2)",
        ] {
            assert_eq!(first_error(&at(good), ""), "ok", "{good}");
        }
        for (action, place, message) in [
            (
                "Disconnect(tag: \"people\", for_s: -1)",
                "for_s",
                "expected",
            ),
            (
                "Disconnect(tag: \"people\", for_s: NaN)",
                "for_s",
                "expected",
            ),
            ("Kick(tag: \"peple\")", "tag", "unknown tag `peple`"),
            (
                "Possess(tag: \"people\", of: \"mop\")",
                "of",
                "unknown tag `mop`, did you mean `mob`?",
            ),
            (
                "Spectate(tag: \"people\", follow: \"\")",
                "follow",
                "unknown tag ``",
            ),
            ("Release(tag: \"x\")", "tag", "unknown tag `x`"),
        ] {
            refuses(&at(action), &format!("run.{place}"), message);
        }
    }

    #[test]
    fn attribute_values_outside_their_range_are_refused() {
        let set = |attribute: &str, value: i64| {
            let cue = format!(
                "At(t_s: 1, run: SetAttribute(tag: \"mob\", attribute: \"{attribute}\", value: {value}))"
            );
            first_error(
                &cue,
                "Attribute(name: \"gold\", encoding: U16, range: (10, 500), start: 10)",
            )
        };
        assert_eq!([set("health", 1000), set("gold", 500)], ["ok", "ok"]);
        let place = "script[0].run.value: expected a value from";
        assert_eq!(
            set("health", 1001),
            format!("{place} 0 to 1000 for `health`, found 1001")
        );
        assert_eq!(
            set("gold", 9),
            format!("{place} 10 to 500 for `gold`, found 9")
        );
        let scale = "At(t_s: 1, run: ScaleAttribute(tag: \"mob\", attribute: \"health\", by: inf))";
        refuses(scale, "run.by", "expected");
    }

    #[test]
    fn invalid_scenario_attributes_are_refused() {
        for (attributes, place, message) in [
            ("Attribute()", "[0].name", "expected a name"),
            (
                "Attribute(name: \"health\")",
                "[0].name",
                "expected another name",
            ),
            (
                "Attribute(name: \"weather\")",
                "[0].name",
                "expected another name",
            ),
            (
                "Attribute(name: \"a\"), Attribute(name: \"a\")",
                "[1].name",
                "expected a different name",
            ),
            (
                "Attribute(name: \"a\", encoding: Bytes(max: 4))",
                "[0].encoding",
                "expected an encoding of numbers",
            ),
            (
                "Attribute(name: \"a\", audience: [])",
                "[0].audience",
                "expected at least one",
            ),
            (
                "Attribute(name: \"a\", encoding: U8, range: (0, 256))",
                "[0].range[1]",
                "expected",
            ),
            (
                "Attribute(name: \"a\", range: (-1, 256))",
                "[0].range[0]",
                "expected",
            ),
            (
                "Attribute(name: \"a\", range: (9, 8))",
                "[0].range[1]",
                "expected",
            ),
            (
                "Attribute(name: \"a\", range: (1, 8))",
                "[0].start",
                "expected",
            ),
        ] {
            let found = first_error("", attributes);
            let expected = format!("attributes{place}: {message}");
            assert!(found.starts_with(&expected), "{attributes}: {found}");
        }
        let many: String = (0..17)
            .map(|nth| format!("Attribute(name: \"a{nth}\"),"))
            .collect();
        assert!(first_error("", &many).starts_with("attributes: expected at most 16 items"));
    }
}
