//! Whether the scenes of a scenario make sense.

use super::bounds::{at_most, distinct, name, within};
use super::fits::check_tiles;
use super::limits::{CELL_M, OBJECTS_MAX, SCENES_MAX, TILE_M};
use crate::scenario::schema::{Scenario, ScenarioScene};
use crate::scenario::text::{Problem, ValuePath};

pub(super) fn scenes(scenario: &Scenario) -> Result<(), Problem> {
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

pub(in crate::scenario) fn check_scene(
    place: &ValuePath,
    scene: &ScenarioScene,
) -> Result<(), Problem> {
    name(&place.field("name"), "scene", &scene.name)?;
    within(&place.field("copies"), scene.copies, 1..=SCENES_MAX as u32)?;
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
