//! Validation of scenes.

use super::bounds::{check_at_most, check_distinct, check_name_text, check_range};
use super::limits::{CELL_M, OBJECTS_MAX, SCENES_MAX, TILE_M};
use super::map_sizes::check_tile_total;
use super::problems::ValidationErrors;
use crate::scenario::schema::{Scenario, ScenarioScene};
use crate::scenario::text::{ValidationError, ValuePath};

pub(super) fn check_scenes(scenario: &Scenario, problems: &mut ValidationErrors) {
    let place = ValuePath::root().field("scenes");
    if !problems.check(check_at_most(
        &place,
        "items",
        scenario.scenes.len(),
        SCENES_MAX,
    )) {
        return;
    }
    for (index, scene) in scenario.scenes.iter().enumerate() {
        scene_problems(&place.item(index), scene, problems);
    }
    let names = scenario.scenes.iter().map(|scene| scene.name.as_str());
    problems.check(check_distinct(&place, "scene", "name", names));
    problems.check(check_tile_total(scenario));
}

/// The first error of a scene.
pub(in crate::scenario) fn check_scene(
    place: &ValuePath,
    scene: &ScenarioScene,
) -> Result<(), ValidationError> {
    ValidationErrors::first(|problems| scene_problems(place, scene, problems))
}

fn scene_problems(place: &ValuePath, scene: &ScenarioScene, problems: &mut ValidationErrors) {
    problems.check(check_name_text(&place.field("name"), "scene", &scene.name));
    problems.check(check_range(
        &place.field("copies"),
        scene.copies,
        1..=SCENES_MAX as u32,
    ));
    problems.check(check_range(
        &place.field("tile_m"),
        scene.tile_m,
        TILE_M.0..=TILE_M.1,
    ));
    let is_cell = problems.check(check_range(
        &place.field("cell_m"),
        scene.cell_m,
        CELL_M.0..=CELL_M.1,
    ));
    // The limit of the margin depends on the cell.
    if is_cell {
        problems.check(check_range(
            &place.field("margin_m"),
            scene.margin_m(),
            0.0..=scene.cell_m / 4.0,
        ));
    }
    problems.check(check_range(
        &place.field("max_objects"),
        scene.max_objects,
        1..=OBJECTS_MAX,
    ));
}
