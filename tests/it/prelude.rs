//! The prelude is short, and does not clash with the preludes of Bevy and the standard library.

use std::collections::BTreeSet;
use std::fs;

use crate::harness::root;

/// A program that imports all preludes. A name in two of them would be ambiguous where it is used.
mod program {
    use bevy_app::prelude::*;
    use bevy_ecs::prelude::*;
    use glam::Vec2;
    use throng::prelude::*;

    fn show(mut commands: Commands, players: Query<Entity, (With<Player>, Without<Viewer>)>) {
        for player in &players {
            let mut player = commands.entity(player);
            player.insert((Viewer::default(), Viewable::default()));
        }
    }

    pub(super) fn run(ticks: u64) -> u64 {
        let game = |app: &mut App| {
            app.add_systems(FixedUpdate, show.before(SimSystems::Think));
        };
        let mut server = Server::builder().plugins(game).build();
        let scene = server.world_mut().spawn(SceneSpec::default()).id();
        let place = (InScene(scene), Position(Vec2::splat(5.0)));
        server.world_mut().spawn((Player, PlayerId(1), place));
        server.step(ticks);
        server.tick()
    }
}

/// The names of the prelude, parsed from its source.
fn names() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("src/prelude.rs")).unwrap();
    let code: String = text
        .lines()
        .filter(|line| !line.starts_with("//"))
        .collect();
    let statements = code
        .split(';')
        .filter_map(|statement| statement.trim().strip_prefix("pub use crate::"));
    let lists = statements.map(|path| {
        path.rsplit("::")
            .next()
            .unwrap_or(path)
            .trim_matches(['{', '}', ' '])
            .to_owned()
    });
    let names = lists.flat_map(|list| {
        list.split(',')
            .map(|name| name.trim().to_owned())
            .collect::<Vec<_>>()
    });
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn prelude_has_at_most_sixty_names() {
    let names = names();
    assert!(
        (30..=60).contains(&names.len()),
        "{} names: {names:?}",
        names.len()
    );
}

#[test]
fn prelude_does_not_clash_with_other_preludes() {
    let list = fs::read_to_string(root().join("tests/assets/bevy_prelude.txt")).unwrap();
    let words = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace);
    let bevy: BTreeSet<String> = words.map(str::to_owned).collect();
    assert!(
        bevy.contains("Scene") && bevy.contains("Visibility") && bevy.len() > 500,
        "{} names",
        bevy.len()
    );
    let std = [
        "Path", "Left", "Channel", "Value", "Sync", "Result", "Option", "Some", "None", "Ok",
        "Err", "Vec", "String", "Box",
    ];
    let std: BTreeSet<String> = std.map(str::to_owned).into();
    let clashes: Vec<_> = names()
        .into_iter()
        .filter(|name| bevy.contains(name) || std.contains(name))
        .collect();
    assert_eq!(clashes, [""; 0]);
}

#[test]
fn all_preludes_can_be_imported_together() {
    assert_eq!(program::run(2), 2);
}
