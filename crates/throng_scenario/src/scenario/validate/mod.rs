//! Validation of a scenario: its names exist, its numbers are finite and within the [`limits`].
//!
//! It needs only the scenario and not its text, so that scenarios built in code can be validated as well; the loader locates the
//! [`ValuePath`] of an error in the text. Errors are in the order of the fields.
//!
//! | file | holds |
//! |---|---|
//! | `areas.rs` | areas |
//! | `attributes.rs` | custom attributes, and values of attributes |
//! | `bounds.rs` | the basic checks: ranges, lengths, names |
//! | `selection.rs` | the selection of a cue's objects |
//! | `crowds.rs` | crowds: numbers, areas, behaviours |
//! | `duration.rs` | durations that are probably a mistake |
//! | `unused.rs` | entries without effect |
//! | `expect.rs` | expectations |
//! | `map_sizes.rs` | whether maps, grids and edits fit each other |
//! | `limits.rs` | the limits of a scenario |
//! | `names.rs` | the names that parts of the scenario may refer to |
//! | `problems.rs` | the list of all errors |
//! | `queues.rs` | queues and modes of matchmaking |
//! | `area_bounds.rs` | whether areas lie on their maps |
//! | `scenes.rs` | scenes |
//! | `sessions.rs` | logins, and how long sessions are kept |
//! | `script.rs` | cues and their actions, and the network conditions of clients |
//!
//! Invariant: a scenario that passes has no more objects, scenes, cues or time than the limits allow.

mod area_bounds;
mod areas;
mod attributes;
mod bounds;
mod crowds;
mod duration;
mod expect;
pub mod limits;
mod map_sizes;
mod names;
mod problems;
mod queues;
mod scenes;
mod script;
mod selection;
mod sessions;
mod unused;

pub(super) use area_bounds::areas_outside_map;
pub(super) use areas::check_area;
pub(super) use bounds::{check_at_most, check_metres, check_range};
pub(super) use duration::long_duration;
pub(super) use expect::{check_expectation, former_counters};
pub(super) use map_sizes::{
    add_cells, add_tiles, check_edits, check_grid, edit_problems, is_open_at_start,
    scenes_with_paths, with_scaled_edits,
};
pub(super) use names::Names;
pub(super) use problems::ValidationErrors;
pub(super) use unused::unused_entries;

use super::behaviours::Behaviours;
use super::schema::{Action, Scenario};
use super::text::{ValidationError, ValuePath};
use bounds::{check_distinct, check_name_text};
use crowds::check_crowds;
use limits::{
    CUES_MAX, DURATION_S_MAX, EXPECTATIONS_MAX, HEARTBEAT_TICKS_MAX, KINDS_MAX, SPILL_BYTES_MAX,
    TICK_HZ_MAX,
};
use queues::{check_modes, check_queues};
use scenes::check_scenes;
use script::{check_action, check_cue, check_network};
use sessions::check_sessions;
use throng::wire::{MTU_MAX_BYTES, MTU_MIN_BYTES};
use throng::world::{ObjectKinds, ViewRange};

/// Validates a scenario. `attributes` are the names that `SetAttribute` may use, `behaviours` those that crowds may use.
///
/// # Errors
/// The first [`ValidationError`], with its path and the expected value.
pub fn validate(
    scenario: &Scenario,
    attributes: &[&str],
    behaviours: &Behaviours,
) -> Result<(), ValidationError> {
    let problems = validate_all(scenario, attributes, behaviours);
    problems.into_iter().next().map_or(Ok(()), Err)
}

/// Returns all errors of a scenario, in the order of its fields: at most fifty, and at most one per cue. See [`validate`].
#[must_use]
pub fn validate_all(
    scenario: &Scenario,
    attributes: &[&str],
    behaviours: &Behaviours,
) -> Vec<ValidationError> {
    let kinds = object_kinds(scenario);
    let names = Names::new(scenario, &kinds, attributes, behaviours);
    let mut problems = ValidationErrors::default();
    check_whole(scenario, &mut problems);
    problems.check(attributes::check_attributes(scenario));
    check_scenes(scenario, &mut problems);
    check_crowds(scenario, &names, &mut problems);
    check_queues(scenario, &names, &mut problems);
    check_modes(scenario, &mut problems);
    let root = ValuePath::root();
    problems.check(check_network(&root.field("network"), scenario.network));
    let place = root.field("script");
    if problems.check(check_at_most(
        &place,
        "items",
        scenario.script.len(),
        CUES_MAX,
    )) {
        for (index, cue) in scenario.script.iter().enumerate() {
            problems.check(check_cue(&place.item(index), cue, &names));
        }
    }
    let place = root.field("expect");
    let count = scenario.expect.len();
    if problems.check(check_at_most(&place, "items", count, EXPECTATIONS_MAX)) {
        for (index, expectation) in scenario.expect.iter().enumerate() {
            let place = place.item(index);
            problems.check(check_expectation(&place, expectation, scenario));
        }
    }
    problems.into_vec()
}

/// Validates an action in the context of a scenario; returns the error text.
pub(super) fn check_external_action(
    scenario: &Scenario,
    action: &Action,
    attributes: &[&str],
    behaviours: &Behaviours,
) -> Result<(), String> {
    let kinds = object_kinds(scenario);
    let names = Names::new(scenario, &kinds, attributes, behaviours);
    let checked = check_action(&ValuePath::root(), action, &names);
    checked.map_err(|problem| match problem.help {
        Some(help) => format!("{}; {help}", problem.message),
        None => problem.message,
    })
}

/// Checks the fields of the scenario itself, its kinds and its settings.
fn check_whole(scenario: &Scenario, problems: &mut ValidationErrors) {
    let root = ValuePath::root();
    problems.check(check_name_text(
        &root.field("name"),
        "scenario",
        &scenario.name,
    ));
    problems.check(check_range(
        &root.field("tick_hz"),
        scenario.tick_hz,
        1.0..=TICK_HZ_MAX,
    ));
    problems.check(check_range(
        &root.field("heartbeat_ticks"),
        scenario.heartbeat_ticks,
        1..=HEARTBEAT_TICKS_MAX,
    ));
    problems.check(check_range(
        &root.field("duration_s"),
        scenario.duration_s,
        0.0..=DURATION_S_MAX,
    ));
    let kinds = root.field("kinds");
    if problems.check(check_at_most(
        &kinds,
        "items",
        scenario.kinds.len(),
        KINDS_MAX,
    )) {
        for (index, kind) in scenario.kinds.iter().enumerate() {
            let place = kinds.item(index);
            problems.check(check_name_text(&place.field("name"), "kind", &kind.name));
            if kind.visibility == ViewRange::Far(0) {
                problems.add(ValidationError::new(
                    place.field("visibility"),
                    "expected 1 or more grid cells for `Far`, found 0",
                ));
            }
        }
        let names = scenario.kinds.iter().map(|kind| kind.name.as_str());
        problems.check(check_distinct(&kinds, "kind", "name", names));
    }
    let packets = root.field("settings").field("outbox");
    problems.check(check_range(
        &packets.field("mtu_bytes"),
        scenario.settings.outbox.mtu_bytes,
        MTU_MIN_BYTES..=MTU_MAX_BYTES,
    ));
    problems.check(check_range(
        &packets.field("spill_client_bytes_max"),
        scenario.settings.outbox.spill_client_bytes_max,
        0..=SPILL_BYTES_MAX,
    ));
    let place = root.field("settings").field("session");
    problems.check(check_sessions(&place, &scenario.settings.session));
}

/// The built-in kinds of objects and those of the scenario, up to the limit.
fn object_kinds(scenario: &Scenario) -> ObjectKinds {
    let mut kinds = ObjectKinds::default();
    for kind in scenario.kinds.iter().take(KINDS_MAX) {
        kinds.register(kind.clone());
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    /// The first error of `Scenario(name: "x", …)`, as `path: message`, or `ok`.
    fn first_error(fields: &str) -> String {
        let text = format!("Scenario(name: \"x\", {fields})");
        let scenario = parse("t.ron", &text).unwrap_or_else(|error| panic!("{error} in {text}"));
        validate(&scenario, &["health"], &Behaviours::default())
            .map_or_else(|problem| problem.to_string(), |()| "ok".to_owned())
    }

    fn with_crowd(fields: &str) -> String {
        first_error(&format!(
            "scenes: [Scene(name: \"a\")], crowds: [Crowd(tag: \"t\", {fields})]"
        ))
    }

    fn with_action(action: &str) -> String {
        first_error(&format!(
            "scenes: [Scene(name: \"a\")], crowds: [Crowd(tag: \"t\")], queues: [Queue(mode: \"q\")], \
             script: [At(t_s: 1, run: {action})]"
        ))
    }

    #[test]
    fn scenario_needs_only_a_name() {
        assert_eq!(first_error(""), "ok");
        assert_eq!(
            validate(&Scenario::default(), &[], &Behaviours::default())
                .unwrap_err()
                .to_string(),
            "name: expected a name for the scenario, found none"
        );
    }

    #[test]
    fn non_finite_and_out_of_range_numbers_are_refused() {
        for (fields, place) in [
            ("tick_hz: 0", "tick_hz"),
            ("tick_hz: NaN", "tick_hz"),
            ("tick_hz: 1001", "tick_hz"),
            ("heartbeat_ticks: 0", "heartbeat_ticks"),
            ("duration_s: inf", "duration_s"),
            ("duration_s: -1", "duration_s"),
            ("duration_s: 700000", "duration_s"),
            (
                "kinds: [ObjectKind(name: \"k\", visibility: Far(0))]",
                "kinds[0].visibility",
            ),
            (
                "scenes: [Scene(name: \"a\", tile_m: 0)]",
                "scenes[0].tile_m",
            ),
            (
                "scenes: [Scene(name: \"a\", cell_m: NaN)]",
                "scenes[0].cell_m",
            ),
            (
                "scenes: [Scene(name: \"a\", margin_m: 13)]",
                "scenes[0].margin_m",
            ),
            (
                "scenes: [Scene(name: \"a\", max_objects: 1048577)]",
                "scenes[0].max_objects",
            ),
            ("queues: [Queue(parties: 1048577)]", "queues[0].parties"),
            (
                "queues: [Queue(size_weights: (0, 0, 0, 0, 0))]",
                "queues[0].size_weights",
            ),
            (
                "settings: (matchmaking: (modes: [Groups(group_size: 0)]))",
                "settings.matchmaking.modes[0].group_size: queue `arena`",
            ),
            (
                "settings: (matchmaking: (modes: [Groups(name: \"\")]))",
                "settings.matchmaking.modes[0].name",
            ),
            (
                "queues: [Queue()], settings: (matchmaking: (modes: [Groups()]))",
                "settings.matchmaking.modes[0].name",
            ),
            (
                "queues: [Queue(settings: Groups(group_size: 51))]",
                "queues[0].settings.group_size: queue `arena`",
            ),
            ("queues: [Queue(skill_mean: -1)]", "queues[0].skill_mean"),
            (
                "queues: [Queue(match_scene: Scene(name: \"b\", tile_m: -1))]",
                "queues[0].match_scene.tile_m",
            ),
            ("expect: [TickP99UnderMs(-1)]", "expect[0][0]"),
            ("expect: [SetP99UnderMs(View, inf)]", "expect[0][1]"),
            ("expect: [HashIs(\"12\")]", "expect[0][0]"),
        ] {
            assert!(
                first_error(fields).starts_with(&format!("{place}: expected ")),
                "{fields}: {}",
                first_error(fields)
            );
        }
        for (fields, field) in [
            ("count: 1048577", "count"),
            ("party_size: 6", "party_size"),
            ("speed_m_s: -0.1", "speed_m_s"),
            ("attributes_per_s: 1e9", "attributes_per_s"),
            ("client_share: 1.1", "client_share"),
            ("messages_per_s: NaN", "messages_per_s"),
            ("churn_per_s: -1", "churn_per_s"),
            ("view_range_m: -1", "view_range_m"),
            ("at: Share((0, 0), (0.5, 1.5))", "at[1][1]"),
            ("at: Share((0.6, 0), (0.5, 1))", "at[1]"),
            ("at: Rect(min_m: (5, 5), max_m: (6, 4))", "at.max_m"),
            ("at: Ring(center_m: (0, 0), radius_m: -1)", "at.radius_m"),
            ("at: Point(center_m: (inf, 0))", "at.center_m[0]"),
            ("behaviour: Patrol(points: [])", "behaviour.points"),
            (
                "behaviour: Patrol(points: [(1, 1), (NaN, 1)])",
                "behaviour.points[1][0]",
            ),
            ("behaviour: Wander(radius_m: -1)", "behaviour.radius_m"),
            (
                "behaviour: Chase(kind: \"npc\", sight_m: inf)",
                "behaviour.sight_m",
            ),
        ] {
            let first_error = with_crowd(fields);
            assert!(
                first_error.starts_with(&format!("crowds[0].{field}: expected ")),
                "{fields}: {first_error}"
            );
        }
    }

    #[test]
    fn all_errors_are_reported_in_field_order() {
        let text = "Scenario(name: \"\", tick_hz: 0, scenes: [Scene(name: \"a\", tile_m: 0)], crowds: [
            Crowd(kind: \"nobody\", party_size: 9), Crowd(speed_m_s: -1)], queues: [Queue(regions: 99)],
            script: [At(t_s: -1, run: Despawn(tag: \"x\"))], expect: [TickP99UnderMs(-1), WaitUnderS(-1)])";
        let scenario = parse("t.ron", text).unwrap();
        let problems = validate_all(&scenario, &[], &Behaviours::default());
        let places: Vec<String> = problems.iter().map(|p| p.path.to_string()).collect();
        let expected = [
            "name",
            "tick_hz",
            "scenes[0].tile_m",
            "crowds[0].kind",
            "crowds[0].party_size",
            "crowds[1].speed_m_s",
            "queues[0].regions",
            "script[0].t_s",
            "expect[0][0]",
            "expect[1][0]",
        ];
        assert_eq!(places, expected);
        let many = "WaitUnderS(-1), ".repeat(1000);
        let scenario = parse("t.ron", &format!("Scenario(name: \"x\", expect: [{many}])")).unwrap();
        let problems = validate_all(&scenario, &[], &Behaviours::default());
        assert_eq!(problems.len(), 50);
    }

    #[test]
    fn invalid_expectations_are_refused() {
        for (expectation, problem) in [
            (
                "Counter(name: \"paths.found\")",
                "expect[0]: expected `at_least`, `at_most` or both",
            ),
            (
                "Counter(name: \"paths.found\", at_least: 2, at_most: 1)",
                "expect[0].at_most: expected ",
            ),
            (
                "Counter(name: \"objects.npc\", at_least: 2)",
                "expect[0].name: unknown counter `objects.npc`, did you mean `objects.npcs`?",
            ),
            (
                "Counter(name: \"matchmaking.modes.r.matches\", at_least: 2)",
                "expect[0].name: unknown counter",
            ),
            ("PathsExact(share: 2)", "expect[0].share: expected "),
            (
                "TicksUnderMs(ms: 5, share: NaN)",
                "expect[0].share: expected ",
            ),
            (
                "Between(from_s: 2, until_s: 1, expect: ViewsWithinCap)",
                "expect[0].until_s: expected ",
            ),
            (
                "After(t_s: 1, expect: TickP99UnderMs(-1))",
                "expect[0].expect[0]: expected ",
            ),
            (
                "After(t_s: 1, expect: After(t_s: 1, expect: PathsExact))",
                "expect[0].expect: expected an expectation that can be checked",
            ),
            (
                "After(t_s: 1, expect: HashIs(\"0000000000000000\"))",
                "expect[0].expect: expected an expectation that can be checked",
            ),
            (
                "After(t_s: 1, expect: WaitUnderS(5))",
                "expect[0].expect: expected an expectation that can be checked",
            ),
        ] {
            let first_error = first_error(&format!(
                "queues: [Queue(mode: \"q\")], expect: [{expectation}]"
            ));
            assert!(
                first_error.starts_with(problem),
                "{expectation}: {first_error}"
            );
        }
        let sound = "queues: [Queue(mode: \"q.r\")], expect: [Counter(name: \"matchmaking.modes.q.r.matches\", at_least: 0),
            Counter(name: \"systems.view.p99_ms\", at_most: 5), PathsExact(share: 0.5)]";
        assert_eq!(first_error(sound), "ok");
    }

    #[test]
    fn unknown_names_are_refused() {
        assert_eq!(
            with_crowd("kind: \"playr\""),
            "crowds[0].kind: unknown kind `playr`, did you mean `player`?"
        );
        assert_eq!(
            with_crowd("scene: \"z9\""),
            "crowds[0].scene: unknown scene `z9`"
        );
        let of_action = |action: &str| with_action(action).replace("script[0].run.", "");
        assert_eq!(of_action("Despawn(tag: \"u_u\")"), "tag: unknown tag `u_u`");
        assert_eq!(
            of_action("SetAttribute(tag: \"t\", attribute: \"helth\", value: 1)"),
            "attribute: unknown attribute `helth`, did you mean `health`?"
        );
        assert_eq!(
            of_action("SetSceneAttribute(attribute: \"wether\", value: 1)"),
            "attribute: unknown attribute of scenes `wether`, did you mean `weather`?"
        );
        assert_eq!(
            of_action("Announce(tag: \"t\", scope: Radius(-1))"),
            "scope[0]: expected scope[0] from 0 to 1000000, found -1"
        );
        assert_eq!(
            of_action("Cancel(mode: \"pvp\", parties: 1)"),
            "mode: unknown queue `pvp`"
        );
        assert_eq!(
            of_action("CloseScene(scene: \"zzz\")"),
            "scene: unknown scene `zzz`"
        );
        assert_eq!(
            of_action("ChangeScene(tag: \"t\", to: \"zzz\")"),
            "to: unknown scene `zzz`"
        );
        assert_eq!(
            of_action("Block(scene: \"zzz\", rect_tiles: (0, 0, 1, 1))"),
            "scene: unknown scene `zzz`"
        );
        assert_eq!(
            of_action("Spawn(kind: \"zzz\")"),
            "kind: unknown kind `zzz`"
        );
    }

    #[test]
    fn names_defined_by_the_script_may_be_used() {
        let fields = "scenes: [Scene(name: \"a\")], kinds: [ObjectKind(name: \"wolf\")], script: [
            At(t_s: 1, run: Spawn(tag: \"pack\", kind: \"wolf\")), At(t_s: 2, run: OpenScene(name: \"b\")),
            At(t_s: 3, run: ChangeScene(tag: \"pack\", to: \"b\")), At(t_s: 4, run: CloseScene(scene: \"b\"))]";
        assert_eq!(first_error(fields), "ok");
    }

    #[test]
    fn duplicate_names_are_refused() {
        assert!(
            first_error("scenes: [Scene(name: \"a\"), Scene(name: \"a\")]")
                .starts_with("scenes[1].name: ")
        );
        assert!(first_error("queues: [Queue(), Queue()]").starts_with("queues[1].mode: "));
    }

    #[test]
    fn empty_edits_are_refused() {
        assert!(
            with_action("Free(rect_tiles: (1, 1, 0, 5))").starts_with("script[0].run.rect_tiles: ")
        );
        assert!(
            with_action("Paint(at_tile: (1, 1), rows: [\"..\", \".\"])")
                .starts_with("script[0].run.rows: ")
        );
        assert_eq!(
            with_action("Paint(at_tile: (1, 1), rows: [\"..\", \".@\"])"),
            "ok"
        );
    }

    #[test]
    fn crowd_needs_a_scene_with_room_for_it() {
        assert!(first_error("crowds: [Crowd()]").starts_with("crowds[0]: expected a scene"));
        let fields = "scenes: [Scene(name: \"a\", max_objects: 10)], crowds: [Crowd(count: 6), Crowd(count: 5)]";
        assert!(
            first_error(fields)
                .starts_with("crowds[1].count: expected at most 10 objects in scene `a`")
        );
    }
}
