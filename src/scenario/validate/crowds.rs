//! Whether the crowds of a scenario make sense: their numbers, their places, and what they do.

use std::collections::BTreeSet;

use glam::Vec2;

use super::areas::check_area;
use super::bounds::{at_most, known, within};
use super::limits::{
    CROWD_RATE_MAX, CROWDS_MAX, NAME_CHARS_MAX, OBJECT_RATE_MAX, OBJECTS_MAX, PARTY_SIZE_MAX,
    SPEED_M_S_MAX,
};
use super::names::Names;
use crate::scenario::behaviours::BehaviourSite;
use crate::scenario::schema::{BehaviourSpec, Crowd, Scenario};
use crate::scenario::text::{Problem, ValuePath};

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
        let of_scene = crowd.scene.as_deref();
        let home = scenario
            .scenes
            .iter()
            .position(|scene| of_scene.is_none_or(|name| name == scene.name));
        let copies = home.map_or(1, |home| scenario.scenes[home].copies);
        total += u64::from(crowd.count) * u64::from(copies);
        if total > u64::from(OBJECTS_MAX) {
            let message = format!(
                "expected at most {OBJECTS_MAX} objects in the whole cast, found {total} up to here"
            );
            return Err(Problem::new(place.field("count"), message));
        }
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
    let site = BehaviourSite {
        place: place.clone(),
        kinds: names.object_kinds,
        scale: Vec2::ONE,
        size_m: Vec2::ONE,
    };
    names.behaviours.resolve(behaviour, &site).map(drop)
}
