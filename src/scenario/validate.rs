//! Whether a scenario makes sense: its names exist, its numbers are finite and within the [`limits`](super::limits).
//!
//! Pure: it knows the scenario alone, so that scenarios made by code are checked as well; the loader finds the text of
//! the [`ValuePath`] that is named. The first problem ends it, in the order of the fields.
//!
//! Invariant: a scenario that passes asks for no more objects, scenes, cues or time than the limits allow.

use std::collections::{BTreeMap, BTreeSet};

use super::bounds::{at_most, distinct, known, metres, name, ordered, within};
use super::fits::check_tiles;
use super::limits::{
    CELL_M, CROWD_RATE_MAX, CROWDS_MAX, CUES_MAX, DURATION_S_MAX, EXPECTATIONS_MAX,
    HEARTBEAT_TICKS_MAX, KINDS_MAX, METRES_MAX, NAME_CHARS_MAX, OBJECT_RATE_MAX, OBJECTS_MAX,
    PARTY_SIZE_MAX, PERIOD_S_MIN, POINTS_MAX, SCENES_MAX, SPEED_M_S_MAX, SPILL_BYTES_MAX,
    TEXT_BYTES_MAX, TICK_HZ_MAX, TILE_M,
};
use super::place::{Problem, ValuePath};
use super::queues::{check_modes, check_queues};
use super::schema::{
    Action, Area, BehaviourSpec, Crowd, Cue, Expectation, Scenario, ScenarioScene, Scope,
};
use crate::crowd::{LINE_MS_MAX, LineSpec, SCENE_ATTRIBUTE_NAMES};
use crate::map::{TilePattern, TileRect};
use crate::wire::{MTU_MAX_BYTES, MTU_MIN_BYTES};
use crate::world::{KindClass, ObjectKinds, Visibility};

/// Checks that a scenario makes sense. `attributes` are the names that `SetAttribute` may use.
///
/// # Errors
/// The first [`Problem`], with its place and what would be right.
pub fn validate(scenario: &Scenario, attributes: &[&str]) -> Result<(), Problem> {
    let built_in = ObjectKinds::default();
    let names = Names::of(scenario, &built_in, attributes);
    let root = ValuePath::root();
    name(&root.field("name"), "scenario", &scenario.name)?;
    within(&root.field("tick_hz"), scenario.tick_hz, 1.0..=TICK_HZ_MAX)?;
    within(
        &root.field("heartbeat_ticks"),
        scenario.heartbeat_ticks,
        1..=HEARTBEAT_TICKS_MAX,
    )?;
    within(
        &root.field("duration_s"),
        scenario.duration_s,
        0.0..=DURATION_S_MAX,
    )?;
    at_most(
        &root.field("kinds"),
        "items",
        scenario.kinds.len(),
        KINDS_MAX,
    )?;
    for (index, kind) in scenario.kinds.iter().enumerate() {
        let place = root.field("kinds").item(index);
        name(&place.field("name"), "kind", &kind.name)?;
        if kind.visibility == Visibility::Far(0) {
            return Err(Problem::new(
                place.field("visibility"),
                "expected 1 or more grid cells for `Far`, found 0",
            ));
        }
    }
    let packets = root.field("settings").field("outbox");
    within(
        &packets.field("mtu_bytes"),
        scenario.settings.outbox.mtu_bytes,
        MTU_MIN_BYTES..=MTU_MAX_BYTES,
    )?;
    within(
        &packets.field("spill_client_bytes_max"),
        scenario.settings.outbox.spill_client_bytes_max,
        0..=SPILL_BYTES_MAX,
    )?;
    distinct(
        &root.field("kinds"),
        "kind",
        "name",
        scenario.kinds.iter().map(|kind| kind.name.as_str()),
    )?;
    scenes(scenario)?;
    cast(scenario, &names)?;
    check_queues(scenario, &names)?;
    check_modes(scenario)?;
    check_line(&root.field("line"), scenario.line)?;
    at_most(
        &root.field("script"),
        "items",
        scenario.script.len(),
        CUES_MAX,
    )?;
    for (index, cue) in scenario.script.iter().enumerate() {
        check_cue(&root.field("script").item(index), cue, &names)?;
    }
    at_most(
        &root.field("expect"),
        "items",
        scenario.expect.len(),
        EXPECTATIONS_MAX,
    )?;
    for (index, expectation) in scenario.expect.iter().enumerate() {
        check_expectation(&root.field("expect").item(index), expectation)?;
    }
    Ok(())
}

/// The names that parts of a scenario may use.
pub(super) struct Names<'a> {
    kinds: BTreeSet<&'a str>,
    /// Open from the start.
    scenes: BTreeSet<&'a str>,
    /// Open at some time.
    all_scenes: BTreeSet<&'a str>,
    pub tags: BTreeSet<&'a str>,
    /// Those of crowds of players.
    pub player_tags: BTreeSet<&'a str>,
    modes: BTreeSet<&'a str>,
    attributes: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    fn of(scenario: &'a Scenario, built_in: &'a ObjectKinds, attributes: &[&'a str]) -> Self {
        let scenes: BTreeSet<_> = scenario
            .scenes
            .iter()
            .map(|scene| scene.name.as_str())
            .collect();
        let mut all_scenes = scenes.clone();
        // A kind of the scenario replaces the built-in one of its name.
        let kinds = built_in.iter().chain(&scenario.kinds);
        let classes: BTreeMap<_, _> = kinds.map(|kind| (kind.name.as_str(), kind.class)).collect();
        let mut crowds: Vec<&Crowd> = scenario.cast.iter().collect();
        for cue in &scenario.script {
            match cue.action() {
                Action::Spawn(crowd) => crowds.push(crowd),
                Action::OpenScene(scene) => _ = all_scenes.insert(&scene.name),
                _ => {}
            }
        }
        let of_players =
            |crowd: &&&Crowd| classes.get(crowd.kind.as_str()) == Some(&KindClass::Player);
        let player_crowds = crowds.iter().filter(of_players);
        let player_tags = player_crowds.map(|crowd| crowd.tag.as_str()).collect();
        let mut tags: BTreeSet<_> = crowds.iter().map(|crowd| crowd.tag.as_str()).collect();
        tags.remove("");
        Self {
            kinds: classes.into_keys().collect(),
            scenes,
            all_scenes,
            tags,
            player_tags,
            modes: scenario
                .queues
                .iter()
                .map(|queue| queue.mode.as_str())
                .collect(),
            attributes: attributes.iter().copied().collect(),
        }
    }
}

fn scenes(scenario: &Scenario) -> Result<(), Problem> {
    let place = ValuePath::root().field("scenes");
    at_most(&place, "items", scenario.scenes.len(), SCENES_MAX)?;
    for (index, scene) in scenario.scenes.iter().enumerate() {
        check_scene(&place.item(index), scene)?;
    }
    distinct(
        &place,
        "scene",
        "name",
        scenario.scenes.iter().map(|scene| scene.name.as_str()),
    )?;
    check_tiles(scenario)
}

pub(super) fn check_scene(place: &ValuePath, scene: &ScenarioScene) -> Result<(), Problem> {
    name(&place.field("name"), "scene", &scene.name)?;
    within(&place.field("tile_m"), scene.tile_m, TILE_M.0..=TILE_M.1)?;
    within(&place.field("cell_m"), scene.cell_m, CELL_M.0..=CELL_M.1)?;
    within(
        &place.field("margin_m"),
        scene.margin_m(),
        0.0..=scene.cell_m / 4.0,
    )?;
    within(
        &place.field("max_objects"),
        scene.max_objects,
        1..=OBJECTS_MAX,
    )
}

fn cast(scenario: &Scenario, names: &Names) -> Result<(), Problem> {
    let place = ValuePath::root().field("cast");
    at_most(&place, "items", scenario.cast.len(), CROWDS_MAX)?;
    let mut total = 0_u64;
    let mut in_scenes = vec![0_u64; scenario.scenes.len()];
    for (index, crowd) in scenario.cast.iter().enumerate() {
        let place = place.item(index);
        if scenario.scenes.is_empty() {
            return Err(Problem::new(
                place,
                "expected a scene for this crowd, found none in `scenes`",
            ));
        }
        check_crowd(&place, crowd, names, &names.scenes)?;
        total += u64::from(crowd.count);
        if total > u64::from(OBJECTS_MAX) {
            let message = format!(
                "expected at most {OBJECTS_MAX} objects in the whole cast, found {total} up to here"
            );
            return Err(Problem::new(place.field("count"), message));
        }
        let of_scene = crowd.scene.as_deref();
        let home = scenario
            .scenes
            .iter()
            .position(|scene| of_scene.is_none_or(|name| name == scene.name));
        if let Some(home) = home {
            let scene = &scenario.scenes[home];
            in_scenes[home] += u64::from(crowd.count);
            if in_scenes[home] > u64::from(scene.max_objects) {
                let message = format!(
                    "expected at most {} objects in scene `{}`, as its `max_objects` says, found {} up to here",
                    scene.max_objects, scene.name, in_scenes[home]
                );
                return Err(Problem::new(place.field("count"), message));
            }
        }
    }
    Ok(())
}

fn check_crowd(
    place: &ValuePath,
    crowd: &Crowd,
    names: &Names,
    scenes: &BTreeSet<&str>,
) -> Result<(), Problem> {
    at_most(
        &place.field("tag"),
        "characters",
        crowd.tag.chars().count(),
        NAME_CHARS_MAX,
    )?;
    known(&place.field("kind"), "kind", &crowd.kind, &names.kinds)?;
    within(&place.field("count"), crowd.count, 0..=OBJECTS_MAX)?;
    if let Some(scene) = &crowd.scene {
        known(&place.field("scene"), "scene", scene, scenes)?;
    }
    check_area(&place.field("at"), &crowd.at)?;
    within(
        &place.field("party_size"),
        crowd.party_size,
        0..=PARTY_SIZE_MAX,
    )?;
    check_behaviour(&place.field("behaviour"), &crowd.behaviour, names)?;
    within(
        &place.field("speed_m_s"),
        crowd.speed_m_s,
        0.0..=SPEED_M_S_MAX,
    )?;
    within(
        &place.field("attributes_per_s"),
        crowd.attributes_per_s,
        0.0..=OBJECT_RATE_MAX,
    )?;
    within(&place.field("clients"), crowd.clients, 0.0..=1.0)?;
    within(
        &place.field("messages_per_s"),
        crowd.messages_per_s,
        0.0..=OBJECT_RATE_MAX,
    )?;
    within(
        &place.field("churn_per_s"),
        crowd.churn_per_s,
        0.0..=CROWD_RATE_MAX,
    )
}

fn check_behaviour(
    place: &ValuePath,
    behaviour: &BehaviourSpec,
    names: &Names,
) -> Result<(), Problem> {
    match behaviour {
        BehaviourSpec::Idle => Ok(()),
        BehaviourSpec::Wander { radius_m } => {
            within(&place.field("radius_m"), *radius_m, 0.0..=METRES_MAX)
        }
        BehaviourSpec::Patrol { points } => {
            let place = place.field("points");
            if points.is_empty() {
                return Err(Problem::new(
                    place,
                    "expected at least one point to patrol, found none",
                ));
            }
            at_most(&place, "items", points.len(), POINTS_MAX)?;
            points
                .iter()
                .enumerate()
                .try_for_each(|(index, point)| metres(&place.item(index), *point))
        }
        BehaviourSpec::Chase { kind, sight_m } | BehaviourSpec::Flee { kind, sight_m } => {
            known(&place.field("kind"), "kind", kind, &names.kinds)?;
            within(&place.field("sight_m"), *sight_m, 0.0..=METRES_MAX)
        }
        BehaviourSpec::Commute {
            between: (from, to),
        } => {
            check_area(&place.field("between").item(0), from)?;
            check_area(&place.field("between").item(1), to)
        }
        BehaviourSpec::Gather { at } => check_area(&place.field("at"), at),
    }
}

fn check_area(place: &ValuePath, area: &Area) -> Result<(), Problem> {
    match *area {
        Area::Rect { min_m, max_m } => {
            metres(&place.field("min_m"), min_m)?;
            metres(&place.field("max_m"), max_m)?;
            ordered(&place.field("max_m"), min_m, max_m)
        }
        Area::Ring {
            center_m,
            radius_m,
            width_m,
        } => {
            metres(&place.field("center_m"), center_m)?;
            within(&place.field("radius_m"), radius_m, 0.0..=METRES_MAX)?;
            within(&place.field("width_m"), width_m, 0.0..=METRES_MAX)
        }
        Area::Point { center_m } => metres(&place.field("center_m"), center_m),
        Area::Share(min, max) => {
            for (index, corner) in [min, max].into_iter().enumerate() {
                for (axis, value) in corner.to_array().into_iter().enumerate() {
                    within(&place.item(index).item(axis), value, 0.0..=1.0)?;
                }
            }
            ordered(&place.item(1), min, max)
        }
    }
}

fn check_line(place: &ValuePath, line: LineSpec) -> Result<(), Problem> {
    for (name, share) in [
        ("loss", line.loss),
        ("duplicate", line.duplicate),
        ("reorder", line.reorder),
        ("share", line.share),
    ] {
        within(&place.field(name), share, 0.0..=1.0)?;
    }
    for (name, ms) in [("delay_ms", line.delay_ms), ("jitter_ms", line.jitter_ms)] {
        within(&place.field(name), ms, 0..=LINE_MS_MAX)?;
    }
    Ok(())
}

fn check_cue(place: &ValuePath, cue: &Cue, names: &Names) -> Result<(), Problem> {
    match cue {
        Cue::At { t_s, .. } => within(&place.field("t_s"), *t_s, 0.0..=DURATION_S_MAX)?,
        Cue::Every {
            t_s,
            from_s,
            until_s,
            ..
        } => {
            within(&place.field("t_s"), *t_s, PERIOD_S_MIN..=DURATION_S_MAX)?;
            within(&place.field("from_s"), *from_s, 0.0..=DURATION_S_MAX)?;
            if let Some(until_s) = until_s {
                within(&place.field("until_s"), *until_s, *from_s..=DURATION_S_MAX)?;
            }
        }
    }
    check_action(&place.field("run"), cue.action(), names)
}

fn check_action(place: &ValuePath, action: &Action, names: &Names) -> Result<(), Problem> {
    if let Some(tag) = action.tag() {
        known(&place.field("tag"), "tag", tag, &names.tags)?;
    }
    match action {
        Action::Spawn(crowd) => {
            if names.all_scenes.is_empty() {
                return Err(Problem::new(
                    place.clone(),
                    "expected a scene for this crowd, found none in `scenes`",
                ));
            }
            check_crowd(place, crowd, names, &names.all_scenes)
        }
        Action::Teleport { to, .. } => check_area(&place.field("to"), to),
        Action::SetAttribute { attribute, .. } => known(
            &place.field("attribute"),
            "attribute",
            attribute,
            &names.attributes,
        ),
        Action::SetSceneAttribute {
            scene, attribute, ..
        } => {
            check_changed_scene(place, scene.as_deref(), names)?;
            let attributes = SCENE_ATTRIBUTE_NAMES.iter().copied().collect();
            known(
                &place.field("attribute"),
                "attribute of scenes",
                attribute,
                &attributes,
            )
        }
        Action::Announce { scope, text, .. } => {
            if let Scope::Radius(radius_m) = scope {
                within(&place.field("scope").item(0), *radius_m, 0.0..=METRES_MAX)?;
            }
            at_most(&place.field("text"), "bytes", text.len(), TEXT_BYTES_MAX)
        }
        Action::SetBehaviour { behaviour, .. } => {
            check_behaviour(&place.field("behaviour"), behaviour, names)
        }
        Action::Gather { at, .. } => check_area(&place.field("at"), at),
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
                Err(error) => Err(Problem::new(place.field("rows"), error.to_string())),
            }
        }
        Action::Queue {
            mode,
            parties,
            size,
        } => {
            known(&place.field("mode"), "queue", mode, &names.modes)?;
            within(&place.field("parties"), *parties, 0..=OBJECTS_MAX)?;
            size.map_or(Ok(()), |size| {
                within(&place.field("size"), size, 1..=PARTY_SIZE_MAX)
            })
        }
        Action::Cancel { mode, .. } => known(&place.field("mode"), "queue", mode, &names.modes),
        Action::SetLine(line) => check_line(place, *line),
        Action::OpenScene(scene) => check_scene(place, scene),
        Action::CloseScene { scene } => {
            known(&place.field("scene"), "scene", scene, &names.all_scenes)
        }
        Action::ChangeScene { to, at, .. } => {
            known(&place.field("to"), "scene", to, &names.all_scenes)?;
            check_area(&place.field("at"), at)
        }
        Action::Despawn { .. }
        | Action::SetTeam { .. }
        | Action::Login { .. }
        | Action::Logout { .. } => Ok(()),
    }
}

fn check_changed_scene(
    place: &ValuePath,
    scene: Option<&str>,
    names: &Names,
) -> Result<(), Problem> {
    match scene {
        Some(scene) => known(&place.field("scene"), "scene", scene, &names.all_scenes),
        None if names.scenes.is_empty() => Err(Problem::new(
            place.clone(),
            "expected a scene to change, found none in `scenes`",
        )),
        None => Ok(()),
    }
}

fn check_rect(place: &ValuePath, rect: TileRect) -> Result<(), Problem> {
    if rect.tile_count() == 0 {
        return Err(Problem::new(
            place.clone(),
            format!("expected at least one tile, found the empty rectangle {rect}"),
        ));
    }
    Ok(())
}

fn check_expectation(place: &ValuePath, expectation: &Expectation) -> Result<(), Problem> {
    match expectation {
        Expectation::WaitUnderS(limit)
        | Expectation::TickP99UnderMs(limit)
        | Expectation::BytesPerClientUnder(limit) => within(&place.item(0), *limit, 0.0..=f64::MAX),
        Expectation::SetP99UnderMs(_, limit) => within(&place.item(1), *limit, 0.0..=f64::MAX),
        Expectation::HashIs(hash) => {
            if hash.len() == 16
                && hash
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            {
                return Ok(());
            }
            let message = format!("expected 16 digits of 0–9 and a–f, found `{hash}`");
            Err(Problem::new(place.item(0), message))
        }
        Expectation::ViewsWithinCap
        | Expectation::ViewsStable
        | Expectation::MirrorsEqual
        | Expectation::PathsExact
        | Expectation::NobodyOnBlocked
        | Expectation::NoUnreachable
        | Expectation::MatchesAtLeast(_)
        | Expectation::Conserved => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    /// What is wrong with `Scenario(name: "x", …)`, as `place: message`, or `ok`.
    fn told(fields: &str) -> String {
        let text = format!("Scenario(name: \"x\", {fields})");
        let scenario = parse("t.ron", &text).unwrap_or_else(|error| panic!("{error} in {text}"));
        validate(&scenario, &["health"])
            .map_or_else(|problem| problem.to_string(), |()| "ok".to_owned())
    }

    fn with_crowd(fields: &str) -> String {
        told(&format!(
            "scenes: [ScenarioScene(name: \"a\")], cast: [Crowd(tag: \"t\", {fields})]"
        ))
    }

    fn with_action(action: &str) -> String {
        told(&format!(
            "scenes: [ScenarioScene(name: \"a\")], cast: [Crowd(tag: \"t\")], queues: [Queue(mode: \"q\")], \
             script: [At(t_s: 1, run: {action})]"
        ))
    }

    #[test]
    fn a_scenario_needs_no_more_than_a_name() {
        assert_eq!(told(""), "ok");
        assert_eq!(
            validate(&Scenario::default(), &[]).unwrap_err().to_string(),
            "name: expected a name for the scenario, found none"
        );
    }

    #[test]
    fn numbers_must_be_finite_and_in_range() {
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
                "scenes: [ScenarioScene(name: \"a\", tile_m: 0)]",
                "scenes[0].tile_m",
            ),
            (
                "scenes: [ScenarioScene(name: \"a\", cell_m: NaN)]",
                "scenes[0].cell_m",
            ),
            (
                "scenes: [ScenarioScene(name: \"a\", margin_m: 13)]",
                "scenes[0].margin_m",
            ),
            (
                "scenes: [ScenarioScene(name: \"a\", max_objects: 1048577)]",
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
                "queues: [Queue(rules: Groups(group_size: 51))]",
                "queues[0].rules.group_size: queue `arena`",
            ),
            ("queues: [Queue(skill_mean: -1)]", "queues[0].skill_mean"),
            (
                "queues: [Queue(battle_scene: ScenarioScene(name: \"b\", tile_m: -1))]",
                "queues[0].battle_scene.tile_m",
            ),
            ("expect: [TickP99UnderMs(-1)]", "expect[0][0]"),
            ("expect: [SetP99UnderMs(View, inf)]", "expect[0][1]"),
            ("expect: [HashIs(\"12\")]", "expect[0][0]"),
        ] {
            assert!(
                told(fields).starts_with(&format!("{place}: expected ")),
                "{fields}: {}",
                told(fields)
            );
        }
        for (fields, field) in [
            ("count: 1048577", "count"),
            ("party_size: 6", "party_size"),
            ("speed_m_s: -0.1", "speed_m_s"),
            ("attributes_per_s: 1e9", "attributes_per_s"),
            ("clients: 1.1", "clients"),
            ("messages_per_s: NaN", "messages_per_s"),
            ("churn_per_s: -1", "churn_per_s"),
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
            let told = with_crowd(fields);
            assert!(
                told.starts_with(&format!("cast[0].{field}: expected ")),
                "{fields}: {told}"
            );
        }
    }

    #[test]
    fn names_must_exist() {
        assert_eq!(
            with_crowd("kind: \"playr\""),
            "cast[0].kind: unknown kind `playr`, did you mean `player`?"
        );
        assert_eq!(
            with_crowd("scene: \"z9\""),
            "cast[0].scene: unknown scene `z9`"
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
    fn names_that_the_script_brings_may_be_used() {
        let fields = "scenes: [ScenarioScene(name: \"a\")], kinds: [ObjectKind(name: \"wolf\")], script: [
            At(t_s: 1, run: Spawn(tag: \"pack\", kind: \"wolf\")), At(t_s: 2, run: OpenScene(name: \"b\")),
            At(t_s: 3, run: ChangeScene(tag: \"pack\", to: \"b\")), At(t_s: 4, run: CloseScene(scene: \"b\"))]";
        assert_eq!(told(fields), "ok");
    }

    #[test]
    fn names_must_differ() {
        assert!(
            told("scenes: [ScenarioScene(name: \"a\"), ScenarioScene(name: \"a\")]")
                .starts_with("scenes[1].name: ")
        );
        assert!(told("queues: [Queue(), Queue()]").starts_with("queues[1].mode: "));
    }

    #[test]
    fn edits_must_have_tiles() {
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
    fn a_crowd_needs_a_scene_with_room_for_it() {
        assert!(told("cast: [Crowd()]").starts_with("cast[0]: expected a scene"));
        let fields = "scenes: [ScenarioScene(name: \"a\", max_objects: 10)], cast: [Crowd(count: 6), Crowd(count: 5)]";
        assert!(
            told(fields).starts_with("cast[1].count: expected at most 10 objects in scene `a`")
        );
    }
}
