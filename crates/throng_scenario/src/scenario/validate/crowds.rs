//! Validation of crowds: numbers, areas and behaviours.

use std::collections::BTreeSet;

use glam::Vec2;

use super::areas::check_area;
use super::bounds::{check_at_most, check_known, check_range};
use super::limits::{
    CROWD_RATE_MAX, CROWDS_MAX, METRES_MAX, NAME_CHARS_MAX, OBJECT_RATE_MAX, OBJECTS_MAX,
    PARTY_SIZE_MAX, SPEED_M_S_MAX,
};
use super::names::Names;
use super::problems::ValidationErrors;
use crate::crowd::{CROWDS_MAX as LIVE_CROWDS_MAX, PLAYERS_MAX};
use crate::scenario::behaviours::BehaviourSite;
use crate::scenario::schema::{BehaviourSpec, Scenario, ScenarioCrowd};
use crate::scenario::text::{ValidationError, ValuePath};

pub(super) fn check_crowds(scenario: &Scenario, names: &Names, problems: &mut ValidationErrors) {
    let place = ValuePath::root().field("crowds");
    if !problems.check(check_at_most(
        &place,
        "items",
        scenario.crowds.len(),
        CROWDS_MAX,
    )) {
        return;
    }
    let mut counts = CrowdCounts {
        in_scenes: vec![0; scenario.scenes.len()],
        ..CrowdCounts::default()
    };
    for (index, crowd) in scenario.crowds.iter().enumerate() {
        let place = place.item(index);
        if scenario.scenes.is_empty() {
            let message = "expected a scene for this crowd, found none in `scenes`";
            problems.add(ValidationError::new(place, message));
            return;
        }
        crowd_problems(&place, crowd, names, &names.scenes, problems);
        let is_player = names.player_kinds.contains(crowd.kind.as_str());
        if !problems.check(counts.add(&place, crowd, scenario, is_player)) {
            // Every further crowd exceeds the limit as well.
            return;
        }
    }
}

/// The total size of all crowds, including copies of scenes.
#[derive(Default)]
struct CrowdCounts {
    objects: u64,
    players: u64,
    crowds: u64,
    /// The objects of each scene, in one copy of it.
    in_scenes: Vec<u64>,
}

impl CrowdCounts {
    /// Adds a crowd to the totals and to its scene, and checks the limits. These are the limits of a running server.
    fn add(
        &mut self,
        place: &ValuePath,
        crowd: &ScenarioCrowd,
        scenario: &Scenario,
        is_player: bool,
    ) -> Result<(), ValidationError> {
        let copies = u64::from(scenario.copies_of(crowd));
        let objects = u64::from(crowd.count) * copies;
        self.objects += objects;
        self.crowds += copies;
        self.players += if is_player { objects } else { 0 };
        let count = place.field("count");
        for (what, found, limit, place) in [
            ("objects", self.objects, u64::from(OBJECTS_MAX), &count),
            ("players", self.players, PLAYERS_MAX as u64, &count),
            (
                "crowds, with each copy of their scenes",
                self.crowds,
                LIVE_CROWDS_MAX as u64,
                place,
            ),
        ] {
            if found > limit {
                let message = format!(
                    "expected at most {limit} {what} in all crowds, found {found} up to here"
                );
                return Err(ValidationError::new(place.clone(), message));
            }
        }
        count_in_scene(place, crowd, scenario, &mut self.in_scenes)
    }
}

/// Adds the objects of a crowd to its scene, and checks the limit of the scene.
fn count_in_scene(
    place: &ValuePath,
    crowd: &ScenarioCrowd,
    scenario: &Scenario,
    in_scenes: &mut [u64],
) -> Result<(), ValidationError> {
    let of_scene = crowd.scene.as_deref();
    let home = scenario
        .scenes
        .iter()
        .position(|scene| of_scene.is_none_or(|name| name == scene.name));
    let Some(home) = home else { return Ok(()) };
    let scene = &scenario.scenes[home];
    in_scenes[home] += u64::from(crowd.count);
    if in_scenes[home] > u64::from(scene.max_objects) {
        let message = format!(
            "expected at most {} objects in scene `{}` (its `max_objects`, 4096 unless it is set), found {} up to here",
            scene.max_objects, scene.name, in_scenes[home]
        );
        return Err(ValidationError::new(place.field("count"), message));
    }
    Ok(())
}

/// The first error of a crowd.
pub(super) fn check_crowd(
    place: &ValuePath,
    crowd: &ScenarioCrowd,
    names: &Names,
    scenes: &BTreeSet<&str>,
) -> Result<(), ValidationError> {
    ValidationErrors::first(|problems| crowd_problems(place, crowd, names, scenes, problems))
}

fn crowd_problems(
    place: &ValuePath,
    crowd: &ScenarioCrowd,
    names: &Names,
    scenes: &BTreeSet<&str>,
    problems: &mut ValidationErrors,
) {
    let tag_chars = crowd.tag.chars().count();
    problems.check(check_at_most(
        &place.field("tag"),
        "characters",
        tag_chars,
        NAME_CHARS_MAX,
    ));
    problems.check(check_known(
        &place.field("kind"),
        "kind",
        &crowd.kind,
        &names.kinds,
    ));
    problems.check(check_range(
        &place.field("count"),
        crowd.count,
        0..=OBJECTS_MAX,
    ));
    if let Some(scene) = &crowd.scene {
        problems.check(check_known(&place.field("scene"), "scene", scene, scenes));
    }
    problems.check(check_area(&place.field("at"), &crowd.at));
    problems.check(check_range(
        &place.field("party_size"),
        crowd.party_size,
        0..=PARTY_SIZE_MAX,
    ));
    problems.check(check_behaviour(
        &place.field("behaviour"),
        &crowd.behaviour,
        names,
    ));
    for (field, found, limit) in [
        ("speed_m_s", crowd.speed_m_s, SPEED_M_S_MAX),
        ("attributes_per_s", crowd.attributes_per_s, OBJECT_RATE_MAX),
        ("client_share", crowd.client_share, 1.0),
        ("messages_per_s", crowd.messages_per_s, OBJECT_RATE_MAX),
        ("churn_per_s", crowd.churn_per_s, CROWD_RATE_MAX),
    ] {
        problems.check(check_range(&place.field(field), found, 0.0..=limit));
    }
    if let Some(range_m) = crowd.view_range_m {
        let field = place.field("view_range_m");
        problems.check(check_range(&field, range_m, 0.0..=METRES_MAX));
    }
}

pub(super) fn check_behaviour(
    place: &ValuePath,
    behaviour: &BehaviourSpec,
    names: &Names,
) -> Result<(), ValidationError> {
    let site = BehaviourSite {
        path: place.clone(),
        kinds: names.object_kinds,
        scale: Vec2::ONE,
        size_m: Vec2::ONE,
    };
    names.behaviours.resolve(behaviour, &site).map(drop)
}
