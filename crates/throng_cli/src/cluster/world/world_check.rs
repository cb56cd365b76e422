//! What a world file must not contain.

use std::ops::RangeInclusive;

use glam::Vec2;

use super::world_file::{WorldBoard, WorldFile, WorldMode, WorldPortal, WorldScene};
use crate::CliError;

/// Maximum numbers of scenes and modes, and of NPCs, portals and boards of a scene.
const SCENES_MAX: usize = 1_000;
const MODES_MAX: usize = 16;
const NPCS_MAX: u32 = 2_000;
const PORTALS_MAX: usize = 100;
const BOARDS_MAX: usize = 100;

/// The longest name of a scene or a node, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Side lengths of a scene, in metres.
const SIDES_M: RangeInclusive<f32> = 10.0..=2_000.0;

/// A problem, and the text near which it is: the error points to its first occurrence.
struct WorldProblem {
    message: String,
    near: Vec<String>,
}

/// Fails with the first problem, at its place in the text.
pub(super) fn check(world: &WorldFile, file: &str, text: &str) -> Result<(), CliError> {
    let checked = check_world(world).and_then(|()| {
        let scenes = world.scenes.iter();
        { scenes }.try_for_each(|scene| check_scene(world, scene))?;
        let modes = world.modes.iter();
        { modes }.try_for_each(check_mode)?;
        check_start(world)
    });
    checked.map_err(|problem| {
        let (line, column, length) = place_of(&problem.near, text);
        CliError::in_text(problem.message, (file, text), (line, column, length))
    })
}

/// The line, the column and the length of the last part. Each part is searched for after the one before it.
fn place_of(near: &[String], text: &str) -> (usize, usize, usize) {
    let (mut at, mut end, mut length) = (0, 0, 1);
    for part in near {
        if let Some(found) = text[end..].find(part.as_str()) {
            at = end + found;
            end = at + part.len();
            length = part.chars().count();
        }
    }
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before[start..].chars().count() + 1, length)
}

fn problem(message: String, near: &[&str]) -> WorldProblem {
    let near = near.iter().map(|part| (*part).to_owned()).collect();
    WorldProblem { message, near }
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn check_world(world: &WorldFile) -> Result<(), WorldProblem> {
    if !(1.0..=120.0).contains(&world.tick_hz) {
        let message = format!("tick_hz: expected 1 to 120, found {}", world.tick_hz);
        return Err(problem(message, &["tick_hz"]));
    }
    if !(0.5..=50.0).contains(&world.speed_m_s) {
        let message = format!("speed_m_s: expected 0.5 to 50, found {}", world.speed_m_s);
        return Err(problem(message, &["speed_m_s"]));
    }
    if world.scenes.is_empty() || world.scenes.len() > SCENES_MAX {
        let found = world.scenes.len();
        let message = format!("scenes: expected 1 to {SCENES_MAX}, found {found}");
        return Err(problem(message, &["scenes"]));
    }
    if world.modes.len() > MODES_MAX {
        let found = world.modes.len();
        let message = format!("modes: expected at most {MODES_MAX}, found {found}");
        return Err(problem(message, &["modes"]));
    }
    check_names("scenes", world.scenes.iter().map(|scene| &*scene.name))?;
    check_names("modes", world.modes.iter().map(|mode| &*mode.name))
}

/// Fails if two have the same name.
fn check_names<'w>(what: &str, names: impl Iterator<Item = &'w str>) -> Result<(), WorldProblem> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let Some(two) = names.windows(2).find(|two| two[0] == two[1]) else {
        return Ok(());
    };
    let name = quoted(two[0]);
    let message = format!("two {what} have the name {name}: expected another name for one");
    let declared = format!("name: {name}");
    Err(problem(message, &[&declared, &declared]))
}

fn check_mode(mode: &WorldMode) -> Result<(), WorldProblem> {
    let name = quoted(&mode.name);
    let refuse = |message: String, field: &str| Err(problem(message, &["Mode", &name, field]));
    if !is_name(&mode.name) {
        let message = format!("name: expected 1 to {NAME_BYTES_MAX} bytes, found {name}");
        return Err(problem(message, &["Mode", &name]));
    }
    if !(1..=32).contains(&mode.team_players) {
        let found = mode.team_players;
        let message = format!("team_players: expected 1 to 32, found {found}");
        return refuse(message, "team_players");
    }
    if !(1.0..=3_600.0).contains(&mode.duration_s) {
        let found = mode.duration_s;
        let message = format!("duration_s: expected 1 to 3600, found {found}");
        return refuse(message, "duration_s");
    }
    if !has_valid_sides(mode.size_m) {
        let message = format!(
            "size_m: expected 10 to 2000 m a side, found {}",
            mode.size_m
        );
        return refuse(message, "size_m");
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains('\0')
}

fn has_valid_sides(size_m: Vec2) -> bool {
    SIDES_M.contains(&size_m.x) && SIDES_M.contains(&size_m.y)
}

fn check_start(world: &WorldFile) -> Result<(), WorldProblem> {
    let Some(start) = world.scene(&world.start) else {
        let message = format!("start: no scene has the name `{}`", world.start);
        return Err(problem(message, &["start:", &quoted(&world.start)]));
    };
    let others = world.scenes.iter().filter(|_| world.start_everywhere);
    let mut starts = [start].into_iter().chain(others);
    match starts.find(|scene| !is_inside(world.start_at_m, scene)) {
        Some(scene) => {
            let message = outside("start_at_m", world.start_at_m, scene);
            Err(problem(message, &["start_at_m"]))
        }
        None => Ok(()),
    }
}

fn check_scene(world: &WorldFile, scene: &WorldScene) -> Result<(), WorldProblem> {
    let name = quoted(&scene.name);
    let refuse = |message: String, field: &str| Err(problem(message, &[&name, field]));
    if !is_name(&scene.name) {
        let message = format!("name: expected 1 to {NAME_BYTES_MAX} bytes, found {name}");
        return Err(problem(message, &[&name]));
    }
    let size_m = scene.size_m;
    if !has_valid_sides(size_m) {
        let message = format!("size_m: expected 10 to 2000 m a side, found {size_m}");
        return refuse(message, "size_m");
    }
    if scene.npcs > NPCS_MAX {
        let message = format!("npcs: expected at most {NPCS_MAX}, found {}", scene.npcs);
        return refuse(message, "npcs");
    }
    if let Some(node) = scene.pinned_to.as_deref().filter(|node| !is_name(node)) {
        let message = format!("pinned_to: expected the name of a node, found `{node}`");
        return refuse(message, "pinned_to");
    }
    if scene.portals.len() > PORTALS_MAX {
        let found = scene.portals.len();
        let message = format!("portals: expected at most {PORTALS_MAX}, found {found}");
        return refuse(message, "portals");
    }
    if scene.boards.len() > BOARDS_MAX {
        let found = scene.boards.len();
        let message = format!("boards: expected at most {BOARDS_MAX}, found {found}");
        return refuse(message, "boards");
    }
    let portals = scene.portals.iter();
    { portals }.try_for_each(|portal| check_portal(world, scene, portal))?;
    let boards = scene.boards.iter();
    { boards }.try_for_each(|board| check_board(world, scene, board))
}

/// Fails for a place outside of the scene, or a wrong radius.
fn check_circle(
    (at_m, radius_m): (Vec2, f32),
    scene: &WorldScene,
    near: &str,
) -> Result<(), WorldProblem> {
    let name = quoted(&scene.name);
    let refuse = |message: String, field: &str| Err(problem(message, &[&name, near, field]));
    if !is_inside(at_m, scene) {
        return refuse(outside("at_m", at_m, scene), "at_m");
    }
    if !(0.5..=50.0).contains(&radius_m) {
        let message = format!("radius_m: expected 0.5 to 50, found {radius_m}");
        return refuse(message, "radius_m");
    }
    Ok(())
}

fn check_board(
    world: &WorldFile,
    scene: &WorldScene,
    board: &WorldBoard,
) -> Result<(), WorldProblem> {
    check_circle((board.at_m, board.radius_m), scene, "Board")?;
    if world.mode(&board.mode).is_none() {
        let message = format!("board: no mode has the name `{}`", board.mode);
        let (name, mode) = (quoted(&scene.name), quoted(&board.mode));
        return Err(problem(message, &[&name, "Board", &mode]));
    }
    Ok(())
}

fn check_portal(
    world: &WorldFile,
    scene: &WorldScene,
    portal: &WorldPortal,
) -> Result<(), WorldProblem> {
    let (name, to) = (quoted(&scene.name), quoted(&portal.to));
    let refuse = |message: String, near: &str| Err(problem(message, &[&name, "Portal", near]));
    check_circle((portal.at_m, portal.radius_m), scene, "Portal")?;
    let Some(target) = world.scene(&portal.to) else {
        let message = format!("portal to `{}`: no scene has that name", portal.to);
        return refuse(message, &to);
    };
    if !is_inside(portal.arrive_at_m, target) {
        let message = outside("arrive_at_m", portal.arrive_at_m, target);
        return refuse(message, &to);
    }
    let catches = |other: &&WorldPortal| other.at_m.distance(portal.arrive_at_m) <= other.radius_m;
    if let Some(other) = target.portals.iter().find(catches) {
        let message = format!(
            "arrive_at_m: {} is within a portal of `{}`, which leads on to `{}`: expected a place outside of all portals",
            portal.arrive_at_m, portal.to, other.to
        );
        return refuse(message, &to);
    }
    Ok(())
}

fn is_inside(at_m: Vec2, scene: &WorldScene) -> bool {
    let is_in = |at: f32, side: f32| (1.0..=side - 1.0).contains(&at);
    is_in(at_m.x, scene.size_m.x) && is_in(at_m.y, scene.size_m.y)
}

fn outside(field: &str, at_m: Vec2, scene: &WorldScene) -> String {
    format!(
        "{field}: expected a place in `{}`, 1 m from its edges or more ({} m), found {at_m}",
        scene.name, scene.size_m
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Printer;

    const WORLD: &str = r#"World(
    start: "a", start_at_m: (10, 10),
    scenes: [
        Scene(name: "a", size_m: (50, 40), portals: [
            Portal(at_m: (40, 20), radius_m: 3, to: "b", arrive_at_m: (10, 20)),
        ]),
        Scene(name: "b", size_m: (30, 30), npcs: 5, pinned_to: "n1", portals: [
            Portal(at_m: (25, 20), radius_m: 3, to: "a", arrive_at_m: (20, 20)),
        ], boards: [Board(at_m: (5, 5), radius_m: 2, mode: "duel")]),
    ],
    modes: [Mode(name: "duel", team_players: 1, duration_s: 5, size_m: (20, 20))],
)"#;

    /// What is replaced in the world, by what, and where and how this is reported.
    const CASES: [(&str, &str, &str, &str); 19] = [
        (
            "start: \"a\"",
            "start: \"c\"",
            "2:12",
            "no scene has the name `c`",
        ),
        (
            "(10, 10)",
            "(10, 60)",
            "2:17",
            "start_at_m: expected a place in `a`",
        ),
        (
            "\"b\", size",
            "\"a\", size",
            "7:15",
            "two scenes have the name",
        ),
        (
            "to: \"b\"",
            "to: \"d\"",
            "5:53",
            "portal to `d`: no scene has that name",
        ),
        (
            "(50, 40)",
            "(50, 4)",
            "4:26",
            "size_m: expected 10 to 2000 m",
        ),
        (
            "npcs: 5",
            "npcs: 5000",
            "7:44",
            "npcs: expected at most 2000",
        ),
        (
            "\"n1\"",
            "\"\"",
            "7:53",
            "pinned_to: expected the name of a node",
        ),
        (
            "(40, 20)",
            "(40, 90)",
            "5:20",
            "at_m: expected a place in `a`",
        ),
        (
            "radius_m: 3, to: \"b\"",
            "radius_m: 90, to: \"b\"",
            "5:36",
            "radius_m: expected",
        ),
        (
            "(10, 20)",
            "(10, 29.5)",
            "5:53",
            "arrive_at_m: expected a place in `b`",
        ),
        ("(10, 20)", "(24, 20)", "5:53", "is within a portal of `b`"),
        (
            "start: ",
            "tick_hz: 0, start: ",
            "2:5",
            "tick_hz: expected 1 to 120",
        ),
        (
            "start: ",
            "speed_m_s: 0, start: ",
            "2:5",
            "speed_m_s: expected 0.5 to 50",
        ),
        (
            "start_at_m: (10, 10),",
            "start_at_m: (35, 10), start_everywhere: true,",
            "2:17",
            "start_at_m: expected a place in `b`",
        ),
        (
            "mode: \"duel\"",
            "mode: \"raid\"",
            "9:60",
            "board: no mode has the name `raid`",
        ),
        ("(5, 5)", "(5, 35)", "9:27", "at_m: expected a place in `b`"),
        (
            "team_players: 1",
            "team_players: 0",
            "11:32",
            "team_players: expected 1 to 32",
        ),
        (
            "duration_s: 5",
            "duration_s: 0",
            "11:49",
            "duration_s: expected 1 to 3600",
        ),
        (
            "(20, 20))],\n",
            "(20, 2))],\n",
            "11:64",
            "size_m: expected 10 to 2000 m",
        ),
    ];

    #[test]
    fn problems_are_shown_at_their_place() {
        assert!(WorldFile::parse("w.ron", WORLD).is_ok());
        for (from, to, place, expected) in CASES {
            let text = WORLD.replacen(from, to, 1);
            assert_ne!(text, WORLD, "{from}");
            let error = WorldFile::parse("w.ron", &text).unwrap_err();
            let shown = Printer::for_stderr().render(&error);
            assert!(shown.contains(expected), "{shown}");
            assert!(
                shown.contains(&format!("w.ron:{place}")),
                "{place}: {shown}"
            );
        }
    }
}
