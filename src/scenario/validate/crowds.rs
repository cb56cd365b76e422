//! Whether the crowds of a scenario make sense: their numbers, their places, and what they do.

use std::collections::BTreeSet;

use super::super::schema::{Area, BehaviourSpec, Crowd, Scenario};
use super::super::text::{Problem, ValuePath};
use super::bounds::{at_most, known, metres, ordered, within};
use super::limits::{
    CROWD_RATE_MAX, CROWDS_MAX, METRES_MAX, NAME_CHARS_MAX, OBJECT_RATE_MAX, OBJECTS_MAX,
    PARTY_SIZE_MAX, POINTS_MAX, SPEED_M_S_MAX,
};
use super::names::Names;

pub(super) fn cast(scenario: &Scenario, names: &Names) -> Result<(), Problem> {
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

pub(super) fn check_crowd(
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

pub(super) fn check_behaviour(
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

pub(super) fn check_area(place: &ValuePath, area: &Area) -> Result<(), Problem> {
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
