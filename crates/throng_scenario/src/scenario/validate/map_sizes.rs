//! Validates that scenes fit their maps, and that all maps together fit into memory.
//!
//! The checks need only the scenario, except [`check_edits`] and [`check_grid`], which need the size of a scene's map. It is known
//! after the map was loaded.

use super::bounds::check_at_most;
use super::limits::{GRID_CELLS_MAX, SCENES_MAX};
use super::problems::ValidationErrors;
use crate::scenario::schema::{Action, MapSource, Scenario, ScenarioScene};
use crate::scenario::text::{PathStep, ValidationError, ValuePath};
use throng::aoi::SceneGrid;
use throng::map::{MapRecipe, TILES_MAX, TileRect};

/// All scenes of a scenario with their paths: those open from the start, those of matches, and those that the script opens.
pub(in crate::scenario) fn scenes_with_paths(
    scenario: &Scenario,
) -> Vec<(ValuePath, &ScenarioScene)> {
    let root = ValuePath::root();
    let first = scenario
        .scenes
        .iter()
        .enumerate()
        .map(|(index, scene)| (root.field("scenes").item(index), scene));
    let match_scenes = scenario
        .queues
        .iter()
        .enumerate()
        .filter_map(|(index, queue)| {
            let place = root.field("queues").item(index).field("match_scene");
            queue.match_scene.as_ref().map(|scene| (place, scene))
        });
    let opened = scenario
        .script
        .iter()
        .enumerate()
        .filter_map(|(index, cue)| match cue.action() {
            Action::OpenScene(scene) => {
                Some((root.field("script").item(index).field("run"), scene))
            }
            _ => None,
        });
    first.chain(match_scenes).chain(opened).collect()
}

/// Checks that the script's edits of a scene lie within its map, whose tiles are `map`. The error is the first that does not.
pub(in crate::scenario) fn check_edits(
    scenario: &Scenario,
    scene: &ScenarioScene,
    map: TileRect,
) -> Result<(), ValidationError> {
    ValidationErrors::first(|problems| edit_problems(scenario, scene, map, problems))
}

/// Adds an error for each edit of a scene by the script that does not lie within its map, whose tiles are `map`.
pub(in crate::scenario) fn edit_problems(
    scenario: &Scenario,
    scene: &ScenarioScene,
    map: TileRect,
    problems: &mut ValidationErrors,
) {
    let first = scenario.scenes.first().map(|scene| scene.name.as_str());
    for (index, cue) in scenario.script.iter().enumerate() {
        let (named, rect, field) = match cue.action() {
            Action::Block { scene, rect_tiles }
            | Action::Free { scene, rect_tiles }
            | Action::Toggle { scene, rect_tiles } => (scene, *rect_tiles, "rect_tiles"),
            Action::Paint {
                scene,
                at_tile: (x, y),
                rows,
            } => {
                let width = rows.first().map_or(0, |row| row.trim().len());
                let side = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
                (
                    scene,
                    TileRect::new(*x, *y, side(width), side(rows.len())),
                    "at_tile",
                )
            }
            _ => continue,
        };
        let fits = u64::from(rect.x) + u64::from(rect.width) <= u64::from(map.width)
            && u64::from(rect.y) + u64::from(rect.height) <= u64::from(map.height);
        if named.as_deref().or(first) == Some(scene.name.as_str()) && !fits {
            let place = ValuePath::root()
                .field("script")
                .item(index)
                .field("run")
                .field(field);
            let (width, height, name) = (map.width, map.height, &scene.name);
            let message = format!(
                "expected a rectangle within the {width} × {height} tiles of scene `{name}`, found {rect}"
            );
            problems.add(ValidationError::new(place, message));
        }
    }
}

/// Returns the scenario with the script's edits of its first scene converted to the tiles of a replacement map: rectangles are
/// scaled like areas, and rounded outwards to whole tiles; a drawing of `Paint` is moved and keeps its size.
pub(in crate::scenario) fn with_scaled_edits(
    scenario: &Scenario,
    own: TileRect,
    new: TileRect,
) -> Scenario {
    let first = scenario.scenes.first().map(|scene| scene.name.as_str());
    let scale = |at: u32, own: u32, new: u32, round_up: u64| {
        let scaled = (u64::from(at) * u64::from(new) + round_up) / u64::from(own.max(1));
        u32::try_from(scaled).unwrap_or(u32::MAX)
    };
    let corner = |x, y| {
        (
            scale(x, own.width, new.width, 0),
            scale(y, own.height, new.height, 0),
        )
    };
    let scaled_rect = |rect: TileRect| {
        let (x, y) = corner(rect.x, rect.y);
        let (right, bottom) = (
            rect.x.saturating_add(rect.width),
            rect.y.saturating_add(rect.height),
        );
        let (last_x, last_y) = (
            u64::from(own.width.max(1)) - 1,
            u64::from(own.height.max(1)) - 1,
        );
        let right = scale(right, own.width, new.width, last_x);
        let bottom = scale(bottom, own.height, new.height, last_y);
        TileRect::new(x, y, right - x, bottom - y)
    };
    let mut scaled = scenario.clone();
    for cue in &mut scaled.script {
        match cue.action_mut() {
            Action::Block { scene, rect_tiles }
            | Action::Free { scene, rect_tiles }
            | Action::Toggle { scene, rect_tiles }
                if scene.as_deref().or(first) == first =>
            {
                *rect_tiles = scaled_rect(*rect_tiles);
            }
            Action::Paint { scene, at_tile, .. } if scene.as_deref().or(first) == first => {
                *at_tile = corner(at_tile.0, at_tile.1);
            }
            _ => {}
        }
    }
    scaled
}

/// Checks that the interest grid of a scene fits its map, whose tiles are `map`. Returns its number of cells.
pub(in crate::scenario) fn check_grid(
    scene: &ScenarioScene,
    place: &ValuePath,
    map: TileRect,
) -> Result<u64, ValidationError> {
    let metres = |tiles: u32| tiles as f32 * scene.tile_m;
    let (width_m, height_m) = (metres(map.width), metres(map.height));
    SceneGrid::columns_and_rows(width_m, height_m, scene.cell_m, scene.margin_m())
        .map(|(columns, rows)| u64::from(columns) * u64::from(rows))
        .map_err(|error| ValidationError::new(place.field("cell_m"), error.to_string()))
}

/// Adds the grid cells of a scene that is open from the start, and of its copies, to the total, and checks the limit, which is that
/// of a running server.
pub(in crate::scenario) fn add_cells(
    total: &mut u64,
    place: &ValuePath,
    scene: &ScenarioScene,
    cells: u64,
) -> Result<(), ValidationError> {
    *total = total.saturating_add(cells.saturating_mul(u64::from(scene.copies)));
    if *total <= GRID_CELLS_MAX {
        return Ok(());
    }
    let message = format!(
        "expected at most {GRID_CELLS_MAX} grid cells in all open scenes, found {total} up to here: use larger cells"
    );
    Err(ValidationError::new(place.field("cell_m"), message))
}

/// Whether the scene at this path is open from the start.
pub(in crate::scenario) fn is_open_at_start(place: &ValuePath) -> bool {
    place.steps().first() == Some(&PathStep::Field("scenes"))
}

/// Adds the tiles of a map to the total, and checks the limit: all maps together may have as many tiles as one map, so that no list
/// of files fills the memory.
pub(in crate::scenario) fn add_tiles(
    total: &mut u64,
    place: &ValuePath,
    map: TileRect,
) -> Result<(), ValidationError> {
    *total = total.saturating_add(map.tile_count());
    if *total <= TILES_MAX {
        return Ok(());
    }
    let message =
        format!("expected at most {TILES_MAX} tiles in all maps, found {total} up to here");
    Err(ValidationError::new(place.field("map"), message))
}

/// Checks the number of scenes with their copies, and that all generated maps together have no more tiles than one map may have.
/// Scenes with the same recipe share a map.
pub(in crate::scenario) fn check_tile_total(scenario: &Scenario) -> Result<(), ValidationError> {
    let scenes = scenes_with_paths(scenario);
    check_at_most(
        &ValuePath::root(),
        "scenes in all",
        scenes.iter().map(|(_, scene)| scene.copies as usize).sum(),
        SCENES_MAX,
    )?;
    let mut recipes: Vec<&MapRecipe> = Vec::new();
    let mut total = 0_u64;
    for (place, scene) in scenes {
        let MapSource::Generate(recipe) = &scene.map else {
            continue;
        };
        if recipes.contains(&recipe) {
            continue;
        }
        recipes.push(recipe);
        total = total.saturating_add(tile_count(recipe));
        if total > TILES_MAX {
            let message = format!(
                "expected at most {TILES_MAX} tiles in all generated maps, found {total} up to here"
            );
            return Err(ValidationError::new(place.field("map"), message));
        }
    }
    Ok(())
}

fn tile_count(recipe: &MapRecipe) -> u64 {
    let (width, height) = match recipe {
        MapRecipe::Town(town) => (town.width_tiles, town.height_tiles),
        MapRecipe::Cave(cave) => (cave.width_tiles, cave.height_tiles),
        MapRecipe::Maze(maze) => (maze.width_tiles, maze.height_tiles),
        MapRecipe::Rooms(rooms) => (rooms.width_tiles, rooms.height_tiles),
        MapRecipe::Random(random) => (random.width_tiles, random.height_tiles),
    };
    u64::from(width) * u64::from(height)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Behaviours, parse, validate};

    fn scenario(fields: &str) -> Scenario {
        parse("t.ron", &format!("Scenario(name: \"x\", {fields})")).unwrap()
    }

    fn first_error(fields: &str) -> String {
        match validate(&scenario(fields), &[], &Behaviours::default()) {
            Ok(()) => "ok".to_owned(),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn too_small_grid_cells_are_reported_at_their_field() {
        let scenario =
            scenario("scenes: [Scene(name: \"a\", tile_m: 0.5, cell_m: 1, margin_m: 0)]");
        let place = ValuePath::root().field("scenes").item(0);
        let fits = |side| check_grid(&scenario.scenes[0], &place, TileRect::new(0, 0, side, side));
        assert_eq!(fits(2048), Ok(1024 * 1024));
        let problem = fits(2050).unwrap_err().to_string();
        assert!(
            problem.starts_with("scenes[0].cell_m: expected at most 1048576 cells"),
            "{problem}"
        );
    }

    #[test]
    fn scaled_rectangles_round_outwards_and_stay_on_the_map() {
        let (own, new) = (TileRect::new(0, 0, 100, 10), TileRect::new(0, 0, 33, 40));
        let scaled = |cues: &str| {
            let fields = format!("scenes: [Scene(name: \"a\")], script: [{cues}]");
            with_scaled_edits(&scenario(&fields), own, new).script
        };
        let rect = |cue: &crate::scenario::Cue| match cue.action() {
            Action::Block { rect_tiles, .. } => *rect_tiles,
            other => panic!("{other:?}"),
        };
        for (was, is) in [
            ("(0, 0, 100, 10)", (0, 0, 33, 40)),
            ("(99, 9, 1, 1)", (32, 36, 1, 4)),
            ("(50, 1, 10, 2)", (16, 4, 4, 8)),
        ] {
            let cues = scaled(&format!("At(t_s: 1, run: Block(rect_tiles: {was}))"));
            let (x, y, width, height) = is;
            assert_eq!(rect(&cues[0]), TileRect::new(x, y, width, height), "{was}");
        }
        let elsewhere = scaled(
            "At(t_s: 1, run: Block(scene: \"b\", rect_tiles: (50, 1, 10, 2))),
            At(t_s: 1, run: Block(rect_tiles: (4294967295, 0, 4294967295, 1)))",
        );
        assert_eq!(rect(&elsewhere[0]), TileRect::new(50, 1, 10, 2));
        assert!(rect(&elsewhere[1]).x > new.width);
    }

    #[test]
    fn cells_of_all_copies_are_counted_together() {
        let fields = "scenes: [Scene(name: \"a\", copies: 4), Scene(name: \"b\")]";
        let scenario = scenario(fields);
        let place = ValuePath::root().field("scenes").item(0);
        assert!(is_open_at_start(&place) && !is_open_at_start(&ValuePath::root().field("queues")));
        let mut total = 0;
        let quarter = GRID_CELLS_MAX / 4;
        assert_eq!(
            add_cells(&mut total, &place, &scenario.scenes[0], quarter),
            Ok(())
        );
        let problem = add_cells(&mut total, &place, &scenario.scenes[1], 1).unwrap_err();
        assert_eq!(problem.path.to_string(), "scenes[0].cell_m");
    }

    #[test]
    fn maps_from_files_are_counted_together() {
        let (mut total, place) = (0, ValuePath::root().field("scenes").item(1));
        let half = TileRect::new(0, 0, 8192, 16_384);
        assert!((0..2).all(|_| add_tiles(&mut total, &place, half).is_ok()));
        let problem = add_tiles(&mut total, &place, TileRect::new(0, 0, 1, 1))
            .unwrap_err()
            .to_string();
        assert!(
            problem.starts_with("scenes[1].map: expected at most 268435456 tiles"),
            "{problem}"
        );
    }

    #[test]
    fn generated_maps_share_one_limit_and_equal_ones_count_once() {
        let scene = |name: &str, side: u32| {
            let recipe = format!("Random(width_tiles: {side}, height_tiles: 16384)");
            format!("Scene(name: \"{name}\", map: Generate({recipe}))")
        };
        let equal = format!("scenes: [{}, {}]", scene("a", 10_000), scene("b", 10_000));
        assert_eq!(first_error(&equal), "ok");
        let different = format!("scenes: [{}, {}]", scene("a", 10_000), scene("b", 10_001));
        assert!(first_error(&different).starts_with("scenes[1].map: expected at most"));
    }
}
