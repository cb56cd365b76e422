//! The format of world files.

use std::path::Path;

use glam::Vec2;
use ron::extensions::Extensions;
use serde::Deserialize;
use throng_core::hash::StateHasher;

use super::world_check::check;
use crate::CliError;

/// The largest world file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The worlds in the program, by name.
const BUILT_IN: [(&str, &str); 1] = [(
    "three_towns",
    include_str!("../../../worlds/three_towns.ron"),
)];

/// A world of several scenes.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "World", deny_unknown_fields)]
pub(in crate::cluster) struct WorldFile {
    /// Ticks per second.
    #[serde(default = "tick_hz")]
    pub tick_hz: f64,
    /// The scene of new players, and their place in it, in metres.
    pub start: String,
    pub start_at_m: Vec2,
    /// The gold of a new player.
    #[serde(default = "gold")]
    pub gold: u32,
    /// How fast players walk, in metres per second.
    #[serde(default = "speed_m_s")]
    pub speed_m_s: f32,
    pub scenes: Vec<WorldScene>,
}

/// A scene of a world.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "Scene", deny_unknown_fields)]
pub(in crate::cluster) struct WorldScene {
    pub name: String,
    /// Width and height.
    pub size_m: Vec2,
    /// NPCs that walk about.
    #[serde(default)]
    pub npcs: u32,
    /// The node that runs it while that node is there.
    #[serde(default)]
    pub pinned_to: Option<String>,
    #[serde(default)]
    pub portals: Vec<WorldPortal>,
}

/// A place that leads to another scene.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "Portal", deny_unknown_fields)]
pub(in crate::cluster) struct WorldPortal {
    pub at_m: Vec2,
    pub radius_m: f32,
    /// The other scene.
    pub to: String,
    /// The place there.
    pub arrive_at_m: Vec2,
}

const fn tick_hz() -> f64 {
    20.0
}

const fn gold() -> u32 {
    100
}

const fn speed_m_s() -> f32 {
    6.0
}

impl WorldFile {
    /// Reads a file, or a world in the program by its name, and checks it.
    pub fn load(name: &str) -> Result<Self, CliError> {
        let path = Path::new(name);
        if path.is_file() {
            let named = |what: String| CliError::new(format!("{name}: {what}"));
            let length = std::fs::metadata(path).map_err(|error| named(error.to_string()))?;
            if length.len() > FILE_BYTES_MAX {
                return Err(named(
                    "expected a world of at most 1 MiB, found more".to_owned(),
                ));
            }
            let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
            return Self::parse(name, &text);
        }
        let built_in = BUILT_IN.iter().find(|(built_in, _)| *built_in == name);
        let Some((_, text)) = built_in else {
            let names = BUILT_IN.map(|(name, _)| format!("`{name}`")).join(", ");
            let message = format!("{name}: expected a world file, found no file of that name");
            let help = format!("give a file, or one of the built-in worlds: {names}");
            return Err(CliError::new(message).with_help(help));
        };
        Self::parse(&format!("{name}.ron"), text)
    }

    /// Reads and checks a text, of which `file` is the name.
    pub fn parse(file: &str, text: &str) -> Result<Self, CliError> {
        let options = ron::Options::default().with_default_extension(Extensions::IMPLICIT_SOME);
        let world: Self = options.from_str(text).map_err(|error| {
            let at = error.span.start;
            CliError::in_text(error.code.to_string(), (file, text), (at.line, at.col, 1))
        })?;
        check(&world, file, text)?;
        Ok(world)
    }

    /// A scene by its name.
    pub fn scene(&self, name: &str) -> Option<&WorldScene> {
        self.scenes.iter().find(|scene| scene.name == name)
    }

    /// The number of a scene: its place in the file.
    pub fn number_of(&self, name: &str) -> Option<u16> {
        let at = self.scenes.iter().position(|scene| scene.name == name);
        at.and_then(|at| u16::try_from(at).ok())
    }

    /// What nodes that run this world together must agree on.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = StateHasher::default();
        hasher.write_bytes(format!("{self:?}").as_bytes());
        hasher.finish_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_worlds_are_valid_and_their_portals_lead_everywhere() {
        for (name, _) in BUILT_IN {
            let world = WorldFile::load(name).unwrap();
            let mut reached = vec![world.start.clone()];
            let mut next = 0;
            while let Some(name) = reached.get(next).cloned() {
                next += 1;
                for portal in &world.scene(&name).unwrap().portals {
                    if !reached.contains(&portal.to) {
                        reached.push(portal.to.clone());
                    }
                }
            }
            assert_eq!(reached.len(), world.scenes.len(), "{name}");
        }
    }

    #[test]
    fn unknown_world_and_wrong_syntax_are_errors_with_their_place() {
        let error = format!("{:?}", WorldFile::load("no_such_world").unwrap_err());
        assert!(error.contains("three_towns"), "{error}");
        let text = "World(\n    start: \"a\",\n    colour: 1,\n)";
        let error = WorldFile::parse("w.ron", text).unwrap_err();
        let error = format!("{error:?}");
        assert!(
            error.contains("colour") && error.contains("line: 3"),
            "{error}"
        );
    }

    #[test]
    fn fingerprint_changes_with_the_world() {
        let world = WorldFile::load("three_towns").unwrap();
        let mut other = world.clone();
        assert_eq!(world.fingerprint(), other.fingerprint());
        other.scenes[0].portals[0].at_m.x += 1.0;
        assert_ne!(world.fingerprint(), other.fingerprint());
    }
}
