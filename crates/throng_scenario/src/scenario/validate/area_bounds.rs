//! Validates that the areas of a scenario lie on the maps of its scenes.

use std::collections::BTreeSet;

use glam::Vec2;

use super::object_kinds;
use crate::crowd::{Commute, CrowdArea, Gather, Patrol};
use crate::scenario::behaviours::{BehaviourSite, Behaviours, area_in_metres};
use crate::scenario::schema::{
    Action, BehaviourSpec, ObjectCondition, Scenario, ScenarioArea, ScenarioCrowd, ScenarioScene,
};
use crate::scenario::text::{ValidationError, ValuePath};
use throng::map::TileRect;
use throng::world::ObjectKinds;

/// Returns a warning for each area of a crowd or a cue that reaches beyond the map of its scene, whose tiles are `map`: objects
/// find no free tile there. Tags whose objects a cue moves to another scene are skipped, because their scene is unknown.
pub(in crate::scenario) fn areas_outside_map(
    scenario: &Scenario,
    scene: &ScenarioScene,
    map: TileRect,
    behaviours: &Behaviours,
) -> Vec<ValidationError> {
    let kinds = object_kinds(scenario);
    let mut reach = AreaBoundsCheck {
        scene,
        behaviours,
        kinds: &kinds,
        size_m: Vec2::new(map.width as f32, map.height as f32) * scene.tile_m,
        problems: Vec::new(),
    };
    let first = scenario.scenes.first().map(|scene| scene.name.as_str());
    let is_here = |crowd: &ScenarioCrowd| crowd.scene.as_deref().or(first) == Some(&scene.name);
    let root = ValuePath::root();
    for (index, crowd) in scenario.crowds.iter().enumerate() {
        if is_here(crowd) {
            reach.crowd(&root.field("crowds").item(index), crowd);
        }
    }
    // The tags of objects that are in another scene at any time.
    let mut elsewhere: BTreeSet<&str> = BTreeSet::new();
    let away = scenario.crowds.iter().filter(|crowd| !is_here(crowd));
    elsewhere.extend(away.map(|crowd| crowd.tag.as_str()));
    elsewhere.extend(scenario.script.iter().filter_map(|cue| match cue.action() {
        Action::Spawn(crowd) => (!is_here(crowd)).then_some(crowd.tag.as_str()),
        Action::ChangeScene { tag, .. } => Some(tag.as_str()),
        _ => None,
    }));
    let stays_here = |tag: &str| !elsewhere.contains(tag);
    for (index, cue) in scenario.script.iter().enumerate() {
        // Created on demand, since there may be very many cues, most of them without an area.
        let place = || root.field("script").item(index).field("run");
        if let Some(who) = cue.action().selector().filter(|who| stays_here(who.tag)) {
            reach.only(place, who.only);
        }
        match cue.action() {
            Action::Spawn(crowd) if is_here(crowd) => reach.crowd(&place(), crowd),
            Action::Teleport { tag, to, .. } if stays_here(tag) => {
                reach.area(&place().field("to"), to);
            }
            Action::Gather { tag, at } if stays_here(tag) => reach.area(&place().field("at"), at),
            Action::SetBehaviour { tag, behaviour } if stays_here(tag) => {
                reach.behaviour(place().field("behaviour"), behaviour);
            }
            Action::ChangeScene { to, at, .. } if *to == scene.name => {
                reach.area(&place().field("at"), at);
            }
            _ => {}
        }
    }
    reach.problems
}

/// The input and the result of the check.
struct AreaBoundsCheck<'a> {
    scene: &'a ScenarioScene,
    behaviours: &'a Behaviours,
    kinds: &'a ObjectKinds,
    size_m: Vec2,
    problems: Vec<ValidationError>,
}

impl AreaBoundsCheck<'_> {
    fn crowd(&mut self, place: &ValuePath, crowd: &ScenarioCrowd) {
        self.area(&place.field("at"), &crowd.at);
        self.behaviour(place.field("behaviour"), &crowd.behaviour);
    }

    /// Checks the conditions of a cue: their areas may reach beyond the map, but must not lie completely outside it.
    fn only(&mut self, run: impl Fn() -> ValuePath, only: &[ObjectCondition]) {
        for (index, only) in only.iter().enumerate() {
            let ObjectCondition::Within(area) = only else {
                continue;
            };
            let (min, max) = bounding_rect(&area_in_metres(area, Vec2::ONE, self.size_m));
            if max.cmplt(Vec2::ZERO).any() || min.cmpgt(self.size_m).any() {
                self.check_bounds(run().field("only").item(index).item(0), (min, max));
            }
        }
    }

    fn area(&mut self, place: &ValuePath, area: &ScenarioArea) {
        self.crowd_area(place, &area_in_metres(area, Vec2::ONE, self.size_m));
    }

    /// Checks the areas of built-in behaviours; custom ones are not checked.
    fn behaviour(&mut self, place: ValuePath, behaviour: &BehaviourSpec) {
        let site = BehaviourSite {
            path: place.clone(),
            kinds: self.kinds,
            scale: Vec2::ONE,
            size_m: self.size_m,
        };
        // Validation has reported an invalid one.
        let Ok(behaviour) = self.behaviours.resolve(behaviour, &site) else {
            return;
        };
        if let Some(Gather { at }) = behaviour.downcast_ref() {
            self.crowd_area(&place, at);
        } else if let Some(Commute { between }) = behaviour.downcast_ref() {
            between.iter().for_each(|at| self.crowd_area(&place, at));
        } else if let Some(Patrol { points }) = behaviour.downcast_ref() {
            let points = points.iter().copied().map(CrowdArea::Point);
            points.for_each(|at| self.crowd_area(&place, &at));
        }
    }

    fn crowd_area(&mut self, place: &ValuePath, area: &CrowdArea) {
        let (min, max) = bounding_rect(area);
        // An area that ends with the map may exceed it by a rounding error.
        let slack = Vec2::splat(self.scene.tile_m);
        if min.cmpge(-slack).all() && max.cmple(self.size_m + slack).all() {
            return;
        }
        self.check_bounds(place.clone(), (min, max));
    }

    fn check_bounds(&mut self, place: ValuePath, (min, max): (Vec2, Vec2)) {
        let (Vec2 { x, y }, name) = (self.size_m, &self.scene.name);
        let message = format!(
            "expected an area within the {x} m × {y} m of scene `{name}`, found one from ({}, {}) to ({}, {})",
            min.x, min.y, max.x, max.y
        );
        self.problems.push(ValidationError::new(place, message));
    }
}

/// The axis-aligned bounding rectangle of an area: its top left and bottom right corner.
fn bounding_rect(area: &CrowdArea) -> (Vec2, Vec2) {
    match *area {
        CrowdArea::Rect { min, max } => (min, max),
        CrowdArea::Ring {
            center,
            radius,
            width,
        } => {
            let reach = Vec2::splat(radius + width / 2.0);
            (center - reach, center + reach)
        }
        CrowdArea::Point(point) => (point, point),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    /// The warnings for a scene of 100 m × 50 m.
    fn warnings_of(fields: &str) -> Vec<String> {
        let text = format!(
            "Scenario(name: \"x\", scenes: [Scene(name: \"a\"), Scene(name: \"b\")], {fields})"
        );
        let scenario = parse("t.ron", &text).unwrap_or_else(|error| panic!("{error} in {text}"));
        let map = TileRect::new(0, 0, 200, 100);
        let behaviours = Behaviours::default();
        let problems = areas_outside_map(&scenario, &scenario.scenes[0], map, &behaviours);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn areas_outside_the_map_give_a_warning() {
        let of_crowd = |fields: &str| format!("crowds: [Crowd(tag: \"t\", {fields})]");
        let of_cue = |action: &str| {
            format!("crowds: [Crowd(tag: \"t\")], script: [At(t_s: 1, run: {action})]")
        };
        for (fields, place) in [
            (
                of_crowd("at: Rect(min_m: (0, 0), max_m: (100, 51))"),
                "crowds[0].at",
            ),
            (
                of_crowd("at: Ring(center_m: (10, 20), radius_m: 11)"),
                "crowds[0].at",
            ),
            (
                of_crowd("behaviour: Gather(at: Point(center_m: (1, 60)))"),
                "crowds[0].behaviour",
            ),
            (
                of_crowd("behaviour: Patrol(points: [(1, 1), (101, 1)])"),
                "crowds[0].behaviour",
            ),
            (
                of_crowd(
                    "behaviour: Commute(between: (Share((0, 0), (1, 1)), Point(center_m: (-3, 0))))",
                ),
                "crowds[0].behaviour",
            ),
            (
                of_cue("Teleport(tag: \"t\", to: Point(center_m: (200, 1)))"),
                "script[0].run.to",
            ),
            (
                of_cue("Gather(tag: \"t\", at: Point(center_m: (200, 1)))"),
                "script[0].run.at",
            ),
            (
                of_cue(
                    "Despawn(tag: \"t\", only: [Within(Ring(center_m: (200, 1), radius_m: 99))])",
                ),
                "script[0].run.only[0][0]",
            ),
            (
                of_cue("Spawn(at: Point(center_m: (200, 1)))"),
                "script[0].run.at",
            ),
            (
                of_cue("ChangeScene(tag: \"t\", to: \"a\", at: Point(center_m: (200, 1)))"),
                "script[0].run.at",
            ),
        ] {
            let found = warnings_of(&fields);
            assert_eq!(found.len(), 1, "{fields}: {found:#?}");
            let start = format!("{place}: expected an area within the 100 m × 50 m of scene `a`");
            assert!(found[0].starts_with(&start), "{fields}: {found:#?}");
        }
    }

    #[test]
    fn areas_on_the_map_or_of_other_scenes_give_no_warning() {
        for fields in [
            "crowds: [Crowd(at: Rect(min_m: (0, 0), max_m: (100, 50))), Crowd(at: Ring(center_m: (50, 25), radius_m: 20, width_m: 5))]",
            "crowds: [Crowd(tag: \"t\")], script: [At(t_s: 1, run: Despawn(tag: \"t\", only: [
                Within(Ring(center_m: (200, 1), radius_m: 101)), Outside(Ring(center_m: (200, 1), radius_m: 9))]))]",
            "crowds: [Crowd(scene: \"b\", at: Point(center_m: (200, 1)))]",
            "crowds: [Crowd(tag: \"t\")], script: [At(t_s: 1, run: ChangeScene(tag: \"t\", to: \"b\")),
                At(t_s: 2, run: Teleport(tag: \"t\", to: Point(center_m: (200, 1))))]",
        ] {
            assert_eq!(warnings_of(fields), Vec::<String>::new(), "{fields}");
        }
    }
}
