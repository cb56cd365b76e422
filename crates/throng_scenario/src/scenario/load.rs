//! Loading scenarios and their maps.

use std::path::{Path, PathBuf};

use super::behaviours::Behaviours;
use super::builtin::{BUILT_IN, built_in};
use super::read::{read_limited, read_text};
use super::schema::{Expectation, MapSource, Scenario, ScenarioScene};
use super::sources::{self, Source, Sources};
use super::text::{
    Outline, ScenarioError, SourceError, ValidationError, ValuePath, closest, list_names,
    read as read_value,
};
use super::validate::{
    ValidationErrors, add_cells, add_tiles, areas_outside_map, check_grid, edit_problems,
    former_counters, is_open_at_start, scenes_with_paths, unused_entries,
};
use super::validate::{check_expectation, long_duration, validate, validate_all};
use throng::map::{self, MapError, TileMap, TileRect};

/// Maximum number of warnings reported at once.
const WARNINGS_MAX: usize = 50;

/// Errors and warnings about a scenario before it runs, each with its place in the text.
#[derive(Debug, Default)]
pub struct ScenarioReview {
    /// Errors; a scenario with errors does not run.
    pub errors: Vec<ScenarioError>,
    /// Warnings: probable mistakes such as old names, text without effect, areas beyond their map.
    pub warnings: Vec<SourceError>,
}

/// A scenario with the text that it was read from, so that errors can point into it.
#[derive(Clone, Debug)]
pub struct LoadedScenario {
    /// The parsed values; [`LoadedScenario::check`] validates them.
    pub scenario: Scenario,
    /// Its file; `None` for a built-in.
    pub path: Option<PathBuf>,
    /// The name of the text in errors: the file as given, or the built-in's file name.
    pub file: String,
    /// The whole text that `scenario` was read from, into which errors point.
    pub text: String,
    /// The included files, and the parameters; empty when it was not read here.
    pub sources: Sources,
}

/// The file name for standard input.
const STDIN: &str = "-";

/// Reads a scenario: a file, or a built-in by its name, or standard input for `-`. A file wins over a built-in of the same
/// name. Parameters have the values that the file gives them.
///
/// # Errors
/// [`ScenarioError`] if neither exists, if the file cannot be read or is larger than
/// [`SCENARIO_BYTES_MAX`](super::SCENARIO_BYTES_MAX), or if its text cannot be parsed. Values are validated by
/// [`LoadedScenario::check`].
pub fn load(source: &str) -> Result<LoadedScenario, ScenarioError> {
    load_with(source, &[])
}

/// Like [`load`], with other values for some parameters: pairs of a name and a value. A value is written as in the file, but a text
/// without quotes.
///
/// # Errors
/// As [`load`], and [`ScenarioError::Parameter`] for a parameter that the scenario does not have, or that does not accept the value.
pub fn load_with(source: &str, set: &[(String, String)]) -> Result<LoadedScenario, ScenarioError> {
    LoadedScenario::assemble(find_source(source)?, set, &mut None)
}

/// Like [`load_with`], but continues after an error of the text: it leaves out the field or the list item with the error. Returns the
/// rest of the scenario with all errors, so that a check reports them at once.
///
/// # Errors
/// All errors found, if parsing could not continue after the last one.
pub fn load_with_errors(
    source: &str,
    set: &[(String, String)],
) -> Result<(LoadedScenario, Vec<ScenarioError>), Vec<ScenarioError>> {
    let source = find_source(source).map_err(|error| vec![error])?;
    let mut errors = Some(Vec::new());
    let loaded = LoadedScenario::assemble(source, set, &mut errors);
    let mut errors = errors.unwrap_or_default();
    match loaded {
        Ok(loaded) => Ok((loaded, errors)),
        Err(error) => {
            errors.push(error);
            Err(errors)
        }
    }
}

/// Finds the text of a scenario: standard input, a file, or a built-in.
fn find_source(source: &str) -> Result<Source, ScenarioError> {
    let path = Path::new(source);
    if source == STDIN {
        return Ok(Source {
            file: "standard input".to_owned(),
            path: None,
            text: read_limited(std::io::stdin().lock(), Path::new("standard input"))?,
        });
    }
    if path.is_file() {
        return Ok(Source {
            file: source.to_owned(),
            path: Some(path.to_owned()),
            text: read_text(path)?,
        });
    }
    if let Some(found) = built_in(source) {
        return Ok(Source {
            file: format!("{}.ron", found.name),
            path: None,
            text: found.text.to_owned(),
        });
    }
    if path.exists() {
        let error = std::io::Error::other("it is not a file");
        return Err(ScenarioError::Read {
            path: path.to_owned(),
            source: error,
        });
    }
    let names = BUILT_IN.map(|built_in| built_in.name);
    Err(ScenarioError::NotFound {
        source_name: source.to_owned(),
        hint: closest(source, names)
            .map_or_else(String::new, |name| format!(", did you mean `{name}`?")),
        help: format!(
            "give a file, or one of the built-in scenarios {}",
            list_names(&names)
        ),
    })
}

/// Reads a scenario from its text, with all included files. `file` is its name in errors.
///
/// # Errors
/// [`ScenarioError::Syntax`] with the place, and the errors of [`load`] for included files.
pub fn parse(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    LoadedScenario::from_text(file, text).map(|loaded| loaded.scenario)
}

impl LoadedScenario {
    /// A scenario from its text, with all included files. `file` is its name in errors; it need not exist.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn from_text(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let source = Source {
            file: file.to_owned(),
            path: None,
            text: text.to_owned(),
        };
        Self::assemble(source, &[], &mut None)
    }

    fn assemble(
        source: Source,
        set: &[(String, String)],
        errors: &mut Option<Vec<ScenarioError>>,
    ) -> Result<Self, ScenarioError> {
        let (file, path, text) = (
            source.file.clone(),
            source.path.clone(),
            source.text.clone(),
        );
        let (scenario, sources) = sources::assemble(source, set, errors)?;
        Ok(Self {
            scenario,
            path,
            file,
            text,
            sources,
        })
    }

    /// Validates the scenario: see [`validate()`]. Errors point into the text.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] for the first problem.
    pub fn check(&self, attributes: &[&str], behaviours: &Behaviours) -> Result<(), ScenarioError> {
        self.locate_result(validate(&self.scenario, attributes, behaviours))
    }

    /// Parses and validates a single expectation, in the context of this scenario.
    ///
    /// # Errors
    /// The error as text.
    pub fn read_expectation(&self, text: &str) -> Result<Expectation, String> {
        let expectation = read_value::<Expectation>(text)?;
        let checked = check_expectation(&ValuePath::root(), &expectation, &self.scenario);
        checked.map_err(|problem| match problem.help {
            Some(help) => format!("{}; {help}", problem.message),
            None => problem.message,
        })?;
        Ok(expectation)
    }

    /// All errors and warnings before a run: invalid values, see [`validate_all`], old names, and text without effect. Maps are
    /// not checked; see [`review_maps`](Self::review_maps).
    #[must_use]
    pub fn review(&self, attributes: &[&str], behaviours: &Behaviours) -> ScenarioReview {
        let problems = validate_all(&self.scenario, attributes, behaviours);
        let warnings = if problems.is_empty() {
            let mut warnings = former_counters(&self.scenario);
            warnings.extend(unused_entries(&self.scenario, behaviours));
            warnings.extend(long_duration(&self.scenario, self.sources.duration_s));
            warnings
        } else {
            Vec::new()
        };
        let invalid = |problem| ScenarioError::Invalid(self.locate_error(problem));
        let mut all = self.old_names();
        all.extend(self.warnings(warnings));
        if problems.is_empty() {
            all.extend(self.sources.unusual_values());
            all.truncate(WARNINGS_MAX);
        }
        ScenarioReview {
            errors: problems.into_iter().map(invalid).collect(),
            warnings: all,
        }
    }

    /// Returns a warning for each old name of a field, an action or another item. Old names are accepted; the message contains the
    /// new name.
    #[must_use]
    pub fn old_names(&self) -> Vec<SourceError> {
        let mut found = self.sources.old_names();
        found.truncate(WARNINGS_MAX);
        found
    }

    fn warnings(&self, problems: Vec<ValidationError>) -> Vec<SourceError> {
        let shown = problems.into_iter().take(WARNINGS_MAX);
        shown.map(|problem| *self.locate_error(problem)).collect()
    }

    /// Adds the location in the text to an error.
    #[must_use]
    pub fn locate_error(&self, problem: ValidationError) -> Box<SourceError> {
        if let Some(mistake) = self.sources.source_error(&problem) {
            return Box::new(mistake);
        }
        let whole = Outline::new(&self.text).find(&problem.path);
        let span = problem.span.clone().map_or(whole.clone(), |part| {
            whole.start + part.start..whole.start + part.end
        });
        Box::new(SourceError::new(&self.file, &self.text, span, problem))
    }

    /// The path of a map file: a relative path is looked up next to the scenario's file first, then in the working directory.
    #[must_use]
    pub fn map_path(&self, named: &Path) -> PathBuf {
        let in_folder = self
            .path
            .as_deref()
            .and_then(Path::parent)
            .map(|folder| folder.join(named));
        in_folder
            .filter(|path| path.is_file())
            .unwrap_or_else(|| named.to_owned())
    }

    /// The paths of all map files, each as [`map_path`](Self::map_path) finds it.
    pub fn map_files(&self) -> impl Iterator<Item = PathBuf> {
        let scenes = scenes_with_paths(&self.scenario).into_iter();
        scenes.filter_map(|(_, scene)| match &scene.map {
            MapSource::File(named) => Some(self.map_path(named)),
            MapSource::Generate(_) => None,
        })
    }

    /// Reads or generates the map of a scene of this scenario.
    ///
    /// # Errors
    /// [`ScenarioError::Map`], pointing at the scene's `map`.
    pub fn open_map(&self, scene: &ScenarioScene) -> Result<TileMap, ScenarioError> {
        self.locate_map_error(
            scene,
            match &scene.map {
                MapSource::File(named) => map::load(self.map_path(named)),
                MapSource::Generate(recipe) => map::generate(recipe, self.scenario.seed),
            },
        )
    }

    /// The rectangle of a scene's map, and its number of free tiles. A generated map is measured without creating search data.
    fn measure_map(&self, scene: &ScenarioScene) -> Result<(TileRect, u64), ScenarioError> {
        match &scene.map {
            MapSource::File(_) => {
                let map = self.open_map(scene)?;
                Ok((map.rect(), map.free_count()))
            }
            MapSource::Generate(recipe) => {
                self.locate_map_error(scene, map::measure_recipe(recipe, self.scenario.seed))
            }
        }
    }

    /// Adds the location of a scene's map to its error.
    fn locate_map_error<T>(
        &self,
        scene: &ScenarioScene,
        opened: Result<T, MapError>,
    ) -> Result<T, ScenarioError> {
        opened.map_err(|error| {
            let place = scenes_with_paths(&self.scenario)
                .into_iter()
                .find(|(_, known)| *known == scene)
                .map_or_else(ValuePath::root, |(place, _)| place.field("map"));
            let place = match (&scene.map, &error) {
                (MapSource::File(_), _) => place.item(0),
                (MapSource::Generate(_), MapError::Recipe { field, .. }) => place.field(field),
                (MapSource::Generate(_), _) => place,
            };
            let mut problem = ValidationError::new(place, error.to_string());
            if let (MapSource::File(named), MapError::Io { .. }) = (&scene.map, &error)
                && named.is_relative()
            {
                let help =
                    "a relative path is looked up beside the scenario's file, then in the working directory";
                problem.help = Some(help.to_owned());
            }
            ScenarioError::Map(self.locate_error(problem))
        })
    }

    /// Reads or generates every map of the scenario once, and checks that grids and the edits of the script fit. Holds one map at
    /// a time.
    ///
    /// # Errors
    /// The first error of [`review_maps`](Self::review_maps).
    pub fn check_maps(&self) -> Result<(), ScenarioError> {
        let errors = self.review_maps(&Behaviours::default()).errors;
        errors.into_iter().next().map_or(Ok(()), Err)
    }

    /// Reads or generates every map of the scenario once, and holds one at a time. Errors: maps that cannot be opened, as in
    /// [`LoadedScenario::open_map`], and grids and edits of the script that do not fit ([`ScenarioError::Invalid`]). Warnings:
    /// maps without a free tile, and areas that reach beyond their map.
    #[must_use]
    pub fn review_maps(&self, behaviours: &Behaviours) -> ScenarioReview {
        let (mut errors, mut problems, mut warnings) =
            (Vec::new(), ValidationErrors::default(), Vec::new());
        let mut seen: Vec<(&MapSource, Option<TileRect>)> = Vec::new();
        let (mut tiles, mut cells) = (0, 0);
        for (place, scene) in scenes_with_paths(&self.scenario) {
            let known = seen.iter().find(|(source, _)| *source == &scene.map);
            let size = if let Some(&(_, size)) = known {
                size
            } else {
                let surveyed = self.measure_map(scene);
                let surveyed = surveyed.map_err(|error| errors.push(error)).ok();
                if surveyed.is_some_and(|(_, free_tiles)| free_tiles == 0) {
                    let message = format!("the map of scene `{}` has no free tile", scene.name);
                    warnings.push(ValidationError::new(place.field("map"), message));
                }
                let size = surveyed.map(|(size, _)| size);
                seen.push((&scene.map, size));
                size.filter(|&size| problems.check(add_tiles(&mut tiles, &place, size)))
            };
            let Some(size) = size else { continue };
            problems.check(check_grid(scene, &place, size).and_then(|of_scene| {
                match is_open_at_start(&place) {
                    true => add_cells(&mut cells, &place, scene, of_scene),
                    false => Ok(()),
                }
            }));
            edit_problems(&self.scenario, scene, size, &mut problems);
            warnings.extend(areas_outside_map(&self.scenario, scene, size, behaviours));
        }
        let problems = problems.into_vec().into_iter();
        errors.extend(problems.map(|problem| ScenarioError::Invalid(self.locate_error(problem))));
        ScenarioReview {
            errors,
            warnings: self.warnings(warnings),
        }
    }

    /// Converts a validation error to an error with its location in the text.
    pub(super) fn locate_result<T>(
        &self,
        checked: Result<T, ValidationError>,
    ) -> Result<T, ScenarioError> {
        checked.map_err(|problem| ScenarioError::Invalid(self.locate_error(problem)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::scenario::SCENARIO_BYTES_MAX;

    /// A temporary folder for a test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("throng-load-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn write(&self, name: &str, content: &[u8]) -> String {
            let path = self.0.join(name);
            fs::write(&path, content).unwrap();
            path.display().to_string()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn located(error: &ScenarioError) -> String {
        let mistake = error.source_error().unwrap();
        format!("{}:{}: {}", mistake.line, mistake.column, mistake.message)
    }

    #[test]
    fn built_in_is_found_by_name_and_typos_get_a_suggestion() {
        assert_eq!(load("town").unwrap().scenario.name, "town");
        assert!(
            load("twon")
                .unwrap_err()
                .to_string()
                .ends_with("did you mean `town`?")
        );
    }

    #[test]
    fn map_path_is_relative_to_the_scenario() {
        let folder = Folder::new("beside");
        folder.write("small.map", b"type octile\nheight 1\nwidth 3\nmap\n..@\n");
        let scenario = r#"Scenario(name: "x", scenes: [Scene(name: "a", map: File("small.map"))])"#;
        let loaded = load(&folder.write("x.ron", scenario.as_bytes())).unwrap();
        assert_eq!(
            loaded.open_map(&loaded.scenario.scenes[0]).unwrap().width(),
            3
        );
        assert!(loaded.check_maps().is_ok());
    }

    #[test]
    fn missing_map_is_reported_at_its_name() {
        let folder = Folder::new("missing");
        let scenario =
            "Scenario(name: \"x\",\n scenes: [Scene(name: \"a\", map: File(\"none.map\"))])";
        let loaded = load(&folder.write("x.ron", scenario.as_bytes())).unwrap();
        let error = loaded.check_maps().unwrap_err();
        assert!(
            located(&error).starts_with("2:38: none.map: "),
            "{}",
            located(&error)
        );
    }

    #[test]
    fn invalid_recipe_is_reported_at_its_field() {
        let text =
            r#"Scenario(name: "x", scenes: [Scene(name: "a", map: Generate(Random(fill: 2)))])"#;
        let scenario = parse("x.ron", text).unwrap();
        let loaded = LoadedScenario {
            scenario,
            path: None,
            file: "x.ron".to_owned(),
            text: text.to_owned(),
            sources: Sources::default(),
        };
        assert!(located(&loaded.check_maps().unwrap_err()).starts_with("1:74: "));
    }

    #[test]
    fn generated_map_without_free_tile_gives_one_warning() {
        let text = r#"Scenario(name: "x", scenes: [
            Scene(name: "a", map: Generate(Random(width_tiles: 20, height_tiles: 10, fill: 1))),
            Scene(name: "b", map: Generate(Random(width_tiles: 20, height_tiles: 10, fill: 1))),
            Scene(name: "c", map: Generate(Random(width_tiles: 20, height_tiles: 10, fill: 0.9))),
        ])"#;
        let loaded = LoadedScenario {
            scenario: parse("x.ron", text).unwrap(),
            path: None,
            file: "x.ron".to_owned(),
            text: text.to_owned(),
            sources: Sources::default(),
        };
        let warnings = loaded.review_maps(&Behaviours::default()).warnings;
        let messages: Vec<&str> = warnings.iter().map(|w| w.message.as_str()).collect();
        assert_eq!(messages, ["the map of scene `a` has no free tile"]);
        assert_eq!(warnings[0].line, 2);
    }

    #[test]
    fn edit_outside_its_map_is_reported() {
        let text = r#"Scenario(name: "x",
            scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 20, height_tiles: 10)))],
            script: [At(t_s: 1, run: Block(rect_tiles: (15, 0, 5, 10))), At(t_s: 1, run: Free(rect_tiles: (15, 0, 6, 10)))])"#;
        let scenario = parse("x.ron", text).unwrap();
        let loaded = LoadedScenario {
            scenario,
            path: None,
            file: "x.ron".to_owned(),
            text: text.to_owned(),
            sources: Sources::default(),
        };
        let error = loaded.check_maps().unwrap_err();
        assert_eq!(
            located(&error),
            "3:107: expected a rectangle within the 20 × 10 tiles of scene `a`, found (15, 0, 6, 10)"
        );
    }

    #[test]
    fn binary_and_oversized_files_are_refused() {
        let folder = Folder::new("refused");
        let error = load(&folder.write("x.ron", b"Scen\xffario(")).unwrap_err();
        assert_eq!(
            located(&error),
            "1:5: expected text in UTF-8, found byte 0xff"
        );
        let large = vec![b' '; SCENARIO_BYTES_MAX as usize + 1];
        let error = load(&folder.write("large.ron", &large)).unwrap_err();
        assert!(matches!(error, ScenarioError::TooLarge { .. }));
        assert!(matches!(
            load(&folder.0.display().to_string()),
            Err(ScenarioError::Read { .. })
        ));
    }
}
