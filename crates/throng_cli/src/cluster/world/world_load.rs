//! Reads world files.

use std::path::Path;

use ron::extensions::Extensions;

use super::world_check::check;
use super::world_file::WorldFile;
use crate::CliError;

/// The largest world file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The worlds in the program, by name.
const BUILT_IN: [(&str, &str); 2] = [
    (
        "three_towns",
        include_str!("../../../worlds/three_towns.ron"),
    ),
    (
        "twelve_woods",
        include_str!("../../../worlds/twelve_woods.ron"),
    ),
];

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

    /// Reads and checks a text. Errors show `file` as its name.
    pub fn parse(file: &str, text: &str) -> Result<Self, CliError> {
        let options = ron::Options::default().with_default_extension(Extensions::IMPLICIT_SOME);
        let world: Self = options.from_str(text).map_err(|error| {
            let at = error.span.start;
            CliError::in_text(error.code.to_string(), (file, text), (at.line, at.col, 1))
        })?;
        check(&world, file, text)?;
        Ok(world)
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
