//! `throng check`: validates scenarios, maps and files of known path lengths without running anything.

use std::path::Path;
use std::time::Instant;

use glam::UVec2;

use super::escape::escaped;
use super::path::read_scen;
use super::set::Set;
use super::{CliError, CliStatus, Printer, print};
use throng::map::{self, MapFormat};
use throng::nav::{ScenQuery, parse_scen};
use throng_scenario::crowd::ATTRIBUTE_NAMES;
use throng_scenario::{self as scenario, Behaviours, Parameter, Scenario};

/// Arguments of `throng check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  throng check town siege\n  throng check my.ron maps/keep.map --strict"
)]
pub(super) struct Check {
    /// Scenarios (.ron files, built-in names, - for the standard input), maps and .scen files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    set: Set,
}

impl Check {
    /// Checks all files. Prints one line per valid file, and all errors and warnings of the others.
    pub(super) fn run(&self, printer: &Printer, quiet: bool) -> Result<CliStatus, CliError> {
        let mut outcome = CliStatus::Done;
        for file in &self.files {
            let found = check(file, &self.set);
            for error in &found.errors {
                printer.error(error);
            }
            for doubt in &found.warnings {
                match self.strict {
                    true => printer.error(doubt),
                    false => printer.warning(doubt),
                }
            }
            if found.errors.is_empty() && (found.warnings.is_empty() || !self.strict) {
                if !quiet {
                    print(&format!("{}: ok, {}", escaped(file), found.summary))?;
                    let mut parameters = found.parameters.iter();
                    parameters.try_for_each(|line| print(&format!("  {}", escaped(line))))?;
                }
            } else {
                outcome = CliStatus::InvalidInput;
            }
        }
        Ok(outcome)
    }
}

/// The report on a file.
#[derive(Debug, Default)]
struct CheckedFile {
    /// A summary of the content; empty if the file cannot be read.
    summary: String,
    errors: Vec<CliError>,
    /// What is allowed but probably a mistake.
    warnings: Vec<CliError>,
    /// One line per parameter.
    parameters: Vec<String>,
}

/// Checks one file.
fn check(file: &str, set: &Set) -> CheckedFile {
    let extension = Path::new(file).extension();
    let checked = if MapFormat::of(Path::new(file)).is_ok() {
        check_map(file)
    } else if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("scen")) {
        check_scen(Path::new(file))
    } else {
        check_scenario(file, set)
    };
    checked.unwrap_or_else(|error| CheckedFile {
        errors: vec![error],
        ..CheckedFile::default()
    })
}

fn check_map(file: &str) -> Result<CheckedFile, CliError> {
    let start = Instant::now();
    let map = map::load(file)?;
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let is_solid = map.free_count() == 0;
    let doubt = is_solid.then(|| CliError::new(format!("{file}: the map has no free tile")));
    Ok(CheckedFile {
        summary: format!(
            "{} × {} tiles, {:.1} % free, {} regions, {ms:.1} ms",
            map.width(),
            map.height(),
            100.0 * map.free_count() as f64 / map.rect().tile_count() as f64,
            map.region_count()
        ),
        warnings: doubt.into_iter().collect(),
        ..CheckedFile::default()
    })
}

/// Checks a file of queries with known path lengths, its patches, and its map if a file with the same name without `.scen` exists.
fn check_scen(file: &Path) -> Result<CheckedFile, CliError> {
    let name = file.display().to_string();
    let scen = parse_scen(&name, &read_scen(file)?)?;
    let patches = match &scen.patch_file {
        Some(patch_file) => map::load_patches(file.with_file_name(patch_file))?,
        None => Vec::new(),
    };
    scen.check_patches(&name, &patches)?;
    let queries = scen.queries().count() as u64;
    let edits = scen.commands.len() as u64 - queries;
    let mut summary = format!(
        "{}, {}",
        match queries {
            1 => "1 query".to_owned(),
            _ => format!("{queries} queries"),
        },
        count_text(edits, "edit")
    );
    let mut warnings = Vec::new();
    if queries == 0 {
        warnings.push(CliError::new(format!("{name}: the file has no query")));
    }
    let beside = file.with_extension("");
    if MapFormat::of(&beside).is_ok() && beside.is_file() {
        let map = map::load(&beside)?;
        scen.check_size(&name, UVec2::new(map.width(), map.height()))?;
        summary += &format!(", map {}", escaped(&beside.to_string_lossy()));
        let is_shut = |query: &&ScenQuery| {
            let ends = [query.from, query.to];
            query.length_tiles.is_some() && ends.iter().any(|end| !map.is_free(*end))
        };
        let shut = scen.queries().filter(is_shut).count();
        // With edits, a blocked end may be free by the time of the query.
        if shut > 0 && edits == 0 {
            warnings.push(CliError::new(format!(
                "{name}: {shut} of {queries} queries begin or end on a blocked tile of {}",
                beside.display()
            )));
        }
    }
    Ok(CheckedFile {
        summary,
        warnings,
        ..CheckedFile::default()
    })
}

/// Checks a scenario with its maps, and collects all errors and warnings.
fn check_scenario(file: &str, set: &Set) -> Result<CheckedFile, CliError> {
    let (loaded, mut errors) = match scenario::load_with_errors(file, &set.values) {
        Ok(loaded) => loaded,
        Err(errors) => {
            return Ok(CheckedFile {
                errors: errors.into_iter().map(CliError::from).collect(),
                ..CheckedFile::default()
            });
        }
    };
    let behaviours = Behaviours::default();
    let mut review = loaded.review(ATTRIBUTE_NAMES, &behaviours);
    errors.append(&mut review.errors);
    // Maps are only loaded if the scenario is within its limits.
    if errors.is_empty() {
        let of_maps = loaded.review_maps(&behaviours);
        errors.extend(of_maps.errors);
        review.warnings.extend(of_maps.warnings);
    }
    let parameters = loaded.sources.parameters().iter();
    let parameters = parameters.map(|Parameter { name, value, .. }| format!("{name} = {value}"));
    Ok(CheckedFile {
        summary: summary(&loaded.scenario),
        errors: errors.into_iter().map(CliError::from).collect(),
        warnings: review.warnings.iter().map(CliError::from).collect(),
        parameters: parameters.collect(),
    })
}

fn summary(scenario: &Scenario) -> String {
    let (scenes, objects) = scenario.census();
    format!(
        "scenario `{}`, {}, {}, {}, {}, {}, {}",
        escaped(&scenario.name),
        duration(scenario.duration_s),
        count_text(scenes, "scene"),
        count_text(objects, "object"),
        count_text(scenario.queues.len() as u64, "queue"),
        count_text(scenario.script.len() as u64, "cue"),
        count_text(scenario.expect.len() as u64, "expectation"),
    )
}

/// From an hour on, hours and minutes are added, so that a typing error in a long number is visible.
fn duration(seconds: f64) -> String {
    let minutes = (seconds / 60.0) as u64;
    match minutes {
        0..60 => format!("{seconds} s"),
        _ => format!("{seconds} s ({} h {} min)", minutes / 60, minutes % 60),
    }
}

fn count_text(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_scenarios_have_no_errors_or_warnings() {
        for built_in in scenario::BUILT_IN {
            let found = check(built_in.name, &Set::default());
            let messages = [found.errors, found.warnings].concat();
            assert_eq!(messages, [], "{}", built_in.name);
        }
    }
}
