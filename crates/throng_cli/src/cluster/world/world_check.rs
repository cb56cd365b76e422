//! What a world file must not contain.

use std::ops::RangeInclusive;

use glam::Vec2;

use super::world_file::{WorldFile, WorldPortal, WorldScene};
use crate::CliError;

/// Maximum numbers of scenes, and of NPCs and portals of a scene.
const SCENES_MAX: usize = 1_000;
const NPCS_MAX: u32 = 2_000;
const PORTALS_MAX: usize = 100;

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
    let mut names: Vec<&str> = world.scenes.iter().map(|scene| &*scene.name).collect();
    names.sort_unstable();
    if let Some(two) = names.windows(2).find(|two| two[0] == two[1]) {
        let name = quoted(two[0]);
        let message = format!("two scenes have the name {name}: expected another name for one");
        let declared = format!("name: {name}");
        return Err(problem(message, &[&declared, &declared]));
    }
    Ok(())
}

fn check_start(world: &WorldFile) -> Result<(), WorldProblem> {
    let Some(start) = world.scene(&world.start) else {
        let message = format!("start: no scene has the name `{}`", world.start);
        return Err(problem(message, &["start:", &quoted(&world.start)]));
    };
    if !is_inside(world.start_at_m, start) {
        let message = outside("start_at_m", world.start_at_m, start);
        return Err(problem(message, &["start_at_m"]));
    }
    Ok(())
}

fn check_scene(world: &WorldFile, scene: &WorldScene) -> Result<(), WorldProblem> {
    let name = quoted(&scene.name);
    let refuse = |message: String, field: &str| Err(problem(message, &[&name, field]));
    let is_name = |name: &str| (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains('\0');
    if !is_name(&scene.name) {
        let message = format!("name: expected 1 to {NAME_BYTES_MAX} bytes, found {name}");
        return Err(problem(message, &[&name]));
    }
    let size_m = scene.size_m;
    if !(SIDES_M.contains(&size_m.x) && SIDES_M.contains(&size_m.y)) {
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
    let portals = scene.portals.iter();
    { portals }.try_for_each(|portal| check_portal(world, scene, portal))
}

fn check_portal(
    world: &WorldFile,
    scene: &WorldScene,
    portal: &WorldPortal,
) -> Result<(), WorldProblem> {
    let (name, to) = (quoted(&scene.name), quoted(&portal.to));
    let refuse = |message: String, near: &str| Err(problem(message, &[&name, "Portal", near]));
    if !is_inside(portal.at_m, scene) {
        return refuse(outside("at_m", portal.at_m, scene), "at_m");
    }
    if !(0.5..=50.0).contains(&portal.radius_m) {
        let found = portal.radius_m;
        let message = format!("radius_m: expected 0.5 to 50, found {found}");
        return refuse(message, "radius_m");
    }
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
        ]),
    ],
)"#;

    /// What is replaced in the world, by what, and where and how this is reported.
    const CASES: [(&str, &str, &str, &str); 13] = [
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
