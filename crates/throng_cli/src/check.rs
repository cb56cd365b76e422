//! `throng check`: validates scenarios and maps without running anything.

use std::path::Path;
use std::time::Instant;

use super::escape::escaped;
use super::set::Set;
use super::{CliError, CliStatus, Printer, print};
use throng::map::{self, MapFormat};
use throng_scenario::crowd::ATTRIBUTE_NAMES;
use throng_scenario::{self as scenario, Behaviours, Parameter, Scenario};

/// Arguments of `throng check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  throng check town siege\n  throng check my.ron maps/keep.map --strict"
)]
pub(super) struct Check {
    /// Scenarios (.ron files, built-in names, - for the standard input) and maps
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    set: Set,
}

impl Check {
    /// Checks all files: a line for each that is good, and all that is wrong or doubtful with the others.
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
    /// What a good one holds.
    summary: String,
    errors: Vec<CliError>,
    /// What is allowed and probably not meant.
    warnings: Vec<CliError>,
    /// A line each.
    parameters: Vec<String>,
}

/// Checks one file, and says what is in it.
fn check(file: &str, set: &Set) -> CheckedFile {
    let checked = if MapFormat::of(Path::new(file)).is_ok() {
        check_map(file)
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
            "{} × {} tiles, {} regions, {ms:.1} ms",
            map.width(),
            map.height(),
            map.region_count()
        ),
        warnings: doubt.into_iter().collect(),
        ..CheckedFile::default()
    })
}

/// What can be read as a scenario, with all that is wrong with it and its maps.
fn check_scenario(file: &str, set: &Set) -> Result<CheckedFile, CliError> {
    let loaded = scenario::load_with(file, &set.values)?;
    let behaviours = Behaviours::default();
    let mut review = loaded.review(ATTRIBUTE_NAMES, &behaviours);
    // A map of a scenario that is within no limits is not worth its memory.
    if review.errors.is_empty() {
        let of_maps = loaded.review_maps(&behaviours);
        review.errors.extend(of_maps.errors);
        review.warnings.extend(of_maps.warnings);
    }
    let parameters = loaded.sources.parameters().iter();
    let parameters = parameters.map(|Parameter { name, value, .. }| format!("{name} = {value}"));
    Ok(CheckedFile {
        summary: summary(&loaded.scenario),
        errors: review.errors.into_iter().map(CliError::from).collect(),
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

/// In hours and minutes from an hour on, which shows a slip in a long number.
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
            let said = [found.errors, found.warnings].concat();
            assert_eq!(said, [], "{}", built_in.name);
        }
    }
}
