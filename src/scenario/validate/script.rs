//! Whether what a script does makes sense.

use glam::Vec2;

use super::areas::check_area;
use super::attributes::check_value;
use super::bounds::{at_most, known, within};
use super::choose::check_who;
use super::crowds::{check_behaviour, check_crowd};
use super::limits::{
    DURATION_S_MAX, FACTOR_MAX, METRES_MAX, OBJECTS_MAX, PARTY_SIZE_MAX, PERIOD_S_MIN,
    TEXT_BYTES_MAX,
};
use super::names::Names;
use super::scenes::check_scene;
use crate::crowd::{LINE_MS_MAX, LineSpec, SCENE_ATTRIBUTE_NAMES};
use crate::map::{TilePattern, TileRect};
use crate::scenario::behaviours::BehaviourSite;
use crate::scenario::schema::{Action, Crowd, Cue, CueSpec, Scope};
use crate::scenario::text::{Problem, ValuePath};

pub(super) fn check_line(place: &ValuePath, line: LineSpec) -> Result<(), Problem> {
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

pub(super) fn check_cue(place: &ValuePath, cue: &Cue, names: &Names) -> Result<(), Problem> {
    check_times(place, cue)?;
    match cue {
        Cue::At { .. } | Cue::Every { .. } => {}
        Cue::Ramp { run, .. } => {
            if run.spread().is_none() {
                let message = "expected an action with a `count` to spread: `Spawn`, `Despawn`, `Login`, `Logout`, \
                               `Queue` or `Cancel`";
                return Err(Problem::new(place.field("run"), message));
            }
        }
        Cue::When {
            tag,
            attribute,
            below,
            at_least,
            ..
        } => {
            known(&place.field("tag"), "tag", tag, &names.tags)?;
            known(
                &place.field("attribute"),
                "attribute",
                attribute,
                &names.attributes,
            )?;
            one_of_two(
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
            known(&place.field("tag"), "tag", tag, &names.tags)?;
            one_of_two(
                place,
                ("at_most", at_most.is_some()),
                ("at_least", at_least.is_some()),
            )?;
        }
    }
    check_action(&place.field("run"), cue.action(), names)
}

/// A condition has one limit.
fn one_of_two(
    place: &ValuePath,
    (first, has_first): (&'static str, bool),
    (second, has_second): (&'static str, bool),
) -> Result<(), Problem> {
    match (has_first, has_second) {
        (true, false) | (false, true) => Ok(()),
        (true, true) => {
            let message = format!("expected `{first}` or `{second}`, found both");
            Err(Problem::new(place.field(second), message))
        }
        (false, false) => {
            let message = format!("expected `{first}` or `{second}`, found neither");
            Err(Problem::new(place.clone(), message))
        }
    }
}

fn check_times(place: &ValuePath, cue: &Cue) -> Result<(), Problem> {
    let (from_s, until_s) = match cue {
        Cue::At { t_s, .. } => {
            return within(&place.field("t_s"), *t_s, 0.0..=DURATION_S_MAX);
        }
        Cue::Every {
            t_s,
            from_s,
            until_s,
            ..
        } => {
            within(&place.field("t_s"), *t_s, PERIOD_S_MIN..=DURATION_S_MAX)?;
            (*from_s, *until_s)
        }
        Cue::Ramp {
            from_s,
            until_s,
            every_s,
            ..
        } => {
            within(
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
    within(&place.field("from_s"), from_s, 0.0..=DURATION_S_MAX)?;
    until_s.map_or(Ok(()), |until_s| {
        within(&place.field("until_s"), until_s, from_s..=DURATION_S_MAX)
    })
}

fn check_action(place: &ValuePath, action: &Action, names: &Names) -> Result<(), Problem> {
    if let Some(who) = action.who() {
        check_who(place, who, names)?;
    } else if let Some(tag) = action.tag() {
        known(&place.field("tag"), "tag", tag, &names.tags)?;
    }
    match action {
        Action::Spawn(crowd) => check_spawn(place, crowd, names),
        Action::Teleport { to, .. } => check_area(&place.field("to"), to),
        Action::SetAttribute {
            attribute, value, ..
        } => check_value(place, attribute, *value, names),
        Action::AddAttribute { attribute, .. } => known(
            &place.field("attribute"),
            "attribute",
            attribute,
            &names.attributes,
        ),
        Action::ScaleAttribute { attribute, by, .. } => {
            known(
                &place.field("attribute"),
                "attribute",
                attribute,
                &names.attributes,
            )?;
            within(&place.field("by"), *by, -FACTOR_MAX..=FACTOR_MAX)
        }
        Action::Game(cue) => {
            // The name stands within the brackets of `Game`.
            check_game_cue(&place.item(0), cue, names)
        }
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
        | Action::Hide { .. }
        | Action::SetTeam { .. }
        | Action::Login { .. }
        | Action::Logout { .. } => Ok(()),
    }
}

fn check_game_cue(place: &ValuePath, cue: &CueSpec, names: &Names) -> Result<(), Problem> {
    let site = BehaviourSite {
        place: place.clone(),
        kinds: names.object_kinds,
        scale: Vec2::ONE,
        size_m: Vec2::ONE,
    };
    names.behaviours.check(cue, &site)
}

fn check_spawn(place: &ValuePath, crowd: &Crowd, names: &Names) -> Result<(), Problem> {
    if names.all_scenes.is_empty() {
        let message = "expected a scene for this crowd, found none in `scenes`";
        return Err(Problem::new(place.clone(), message));
    }
    check_crowd(place, crowd, names, &names.all_scenes)
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
